// The dashboard: sign-in, the frame that all views share, and the way from the address to a view.
import "./app.css";
import { signal } from "@preact/signals";
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type Failure, follow, get, link, signIn, signInBy, signOut, token } from "./api.ts";
import { big, type Status } from "./model.ts";
import { learnNow, nowNs, startClock } from "./now.ts";
import { go, hrefTo, listen, parsePlace, place, type Range, ranges, shownRange } from "./route.ts";
import { fleet, parseInstant, wall } from "./time.ts";
import { Failed, Mark } from "./ui/state.tsx";
import { Alerts } from "./views/alerts.tsx";
import { Audit } from "./views/audit.tsx";
import { Clock } from "./views/clock.tsx";
import { Fleet } from "./views/fleet.tsx";
import { Host } from "./views/host.tsx";
import { Jobs, Savings } from "./views/jobs.tsx";
import { Levels } from "./views/levels.tsx";
import { Links } from "./views/links.tsx";
import { Mesh } from "./views/mesh.tsx";
import { Settings } from "./views/settings.tsx";
import { Topology } from "./views/topology.tsx";

const views: [string, string, () => preact.JSX.Element][] = [
  ["fleet", "Fleet", Fleet],
  ["clock", "Clock", Clock],
  ["mesh", "Mesh", Mesh],
  ["links", "Links", Links],
  ["jobs", "Jobs", Jobs],
  ["audit", "Audit", Audit],
  ["alerts", "Alerts", Alerts],
  ["levels", "Levels", Levels],
  ["topology", "Topology", Topology],
  ["savings", "Savings", Savings],
  ["settings", "Settings", Settings],
];

/** Where links lead, and no heading does. */
const others: typeof views = [["hosts", "Host", Host]];

/** What of a view is of the moment that the address names; mesh and alerts say it themselves. */
const then: Record<string, string> = {
  fleet: "Faults and changes are of the chosen moment. Numbers and hosts are of now.",
  clock: "Charts end at the chosen moment. The table is of now.",
  hosts: "Events and charts are of the range that ends at the chosen moment. The rest is of now.",
  links: "Events of links end at the chosen moment. The table is of now.",
  jobs: "Jobs are shown with their whole history. States and flows are of now.",
  levels: "Levels are of now. Their changes are of the range that ends at the chosen moment.",
  topology: "The topology is of now.",
  audit: "Audits are shown with their results. Agents and connectivity are of now.",
  savings: "Savings are of the whole kept history.",
  settings: "Settings are of now.",
};

const refused = signal<Failure | null>(null); // the link that was followed

function SignIn() {
  const [text, setText] = useState("");
  const [said, setSaid] = useState("");
  const submit = async (event: Event) => {
    event.preventDefault();
    setSaid("");
    const failure = await signIn(text.trim());
    if (failure) {
      setSaid(failure.status === 401 ? "This token is unknown to the controller, or it has expired." : failure.text);
    }
  };
  return (
    <main class="signin">
      <h1>Foliot</h1>
      <form onSubmit={submit}>
        <label for="token">Token</label>
        <input id="token" type="password" autocomplete="current-password" required value={text} onInput={(e) => setText(e.currentTarget.value)} aria-describedby="how" />
        <button type="submit">Sign in</button>
      </form>
      <p id="how" class="dim">An administrator makes one: <code>foliot-controller token api viewer NAME</code></p>
      <p role="alert" class="bad">{said || (refused.value?.status === 401 ? "This link was used already, or it is older than ten minutes. Sign in with a token." : refused.value?.text)}</p>
    </main>
  );
}

function ClockBar() {
  const [text, setText] = useState("");
  const [said, setSaid] = useState("");
  const { from, to } = shownRange(nowNs.value);
  const at = place.value.at;
  const submit = (event: Event) => {
    event.preventDefault();
    const instant = parseInstant(text);
    setSaid(instant === null ? "Expected nanoseconds or seconds since 1970, or 2026-11-21T14:03:07.123456789Z" : "");
    if (instant !== null) {
      go({ at: instant });
    }
  };
  return (
    <div class="clockbar">
      <label>
        Range{" "}
        <select value={place.value.range} onChange={(e) => go({ range: e.currentTarget.value as Range })}>
          {Object.keys(ranges).map((r) => <option key={r} value={r}>{r}</option>)}
        </select>
      </label>
      <span>{wall(from)} – {wall(to)} <span class="dim">{Intl.DateTimeFormat().resolvedOptions().timeZone}</span></span>
      <span title="fleet time, ns since 1970">{fleet(to)}</span>
      <form onSubmit={submit}>
        <label class="dim" for="goto">Go to</label>
        <input id="goto" value={text} onInput={(e) => setText(e.currentTarget.value)} placeholder="this nanosecond" />
        <button type="submit">Go</button>
      </form>
      {at !== null ? <button onClick={() => go({ at: null })}>Back to now</button> : <Live />}
      <span role="alert" class="bad">{said}</span>
    </div>
  );
}

function Live() {
  return link.value === "live" ? <Mark tone="good">live</Mark> : <Mark tone="warn">{link.value === "lost" ? "not live: asking every few seconds" : "connecting"}</Mark>;
}

function Frame() {
  const known = [...views, ...others].find(([word]) => word === place.value.view);
  useEffect(() => {
    const abort = new AbortController();
    void follow("events/stream", abort.signal);
    void get<Status>("status").then((answer) => answer.ok && learnNow(big(answer.data.now_utc_ns)));
    return () => abort.abort();
  }, []);
  useEffect(() => {
    document.title = `${known?.[1] ?? "Foliot"} · Foliot`;
  }, [known]);
  const View = known?.[2];
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to the view</a>
      <header class="top">
        <span class="name">Foliot</span>
        <nav aria-label="Views">
          <ul>
            {views.map(([word, name]) => (
              <li key={word}>
                <a href={hrefTo({ view: word })} {...(word === place.value.view ? { "aria-current": "page" as const } : {})}>{name}</a>
              </li>
            ))}
          </ul>
        </nav>
        <button onClick={signOut}>Sign out</button>
      </header>
      <ClockBar />
      <main id="main" tabIndex={-1}>
        {place.value.at !== null && then[place.value.view] !== undefined && <p class="dim moment">{then[place.value.view]}</p>}
        {View ? <View /> : <Failed text={`There is no view '${place.value.view}'.`} />}
      </main>
    </>
  );
}

function App() {
  return token.value === null ? <SignIn /> : <Frame />;
}

/** "/#code=…" signs in once, as `foliot lab up --controller` prints it. The address stays in the browser's history: what is there is spent. */
async function takeCode(): Promise<void> {
  const given = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (given !== undefined) {
    history.replaceState(null, "", "#/");
    place.value = parsePlace("#/");
    refused.value = await signInBy(given);
  }
}

void takeCode();
listen();
startClock();
const root = document.getElementById("app")!;
root.textContent = "";
render(<App />, root);
