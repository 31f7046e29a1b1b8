// Alerts: incidents, one per cause; whoever may, acknowledges.
import { useState } from "preact/hooks";
import { call } from "../api.ts";
import type { Incident, Page } from "../model.ts";
import { big } from "../model.ts";
import { useResource } from "../resource.ts";
import { hrefTo } from "../route.ts";
import { nowNs } from "../now.ts";
import { ago, wall } from "../time.ts";
import { Empty, Mark, Shown, type Tone } from "../ui/state.tsx";

const tones: Record<string, Tone> = { page: "bad", critical: "bad", warning: "warn", ticket: "warn", info: "none" };

export function Alerts() {
  const incidents = useResource<Page<Incident>>("incidents?limit=200", 5_000, ["incident", "finding"]);
  const [said, setSaid] = useState("");
  const now = nowNs.value;
  const acknowledge = async (incident: Incident) => {
    const answer = await call("POST", `incidents/${incident.incident}`, { acknowledge: true });
    setSaid(answer.ok ? `Incident ${incident.incident} is yours.` : answer.failure.text);
    incidents.again();
  };
  return (
    <>
      <h1>Alerts</h1>
      <p role="status" aria-live="polite">{said}</p>
      {incidents.failure?.kind === "missing" ? <Empty>This controller evaluates no alert rules. What hosts find is in Fleet.</Empty> : (
        <Shown of={incidents} what="incidents">
          {(page) => page.items.length === 0 ? <Empty>No incident, open or recent.</Empty> : (
            <>
              {page.items.map((i) => {
                const over = i.state === "resolved" || i.state === "merged";
                const since = i.since_utc_ns === null ? null : big(i.since_utc_ns);
                return (
                <article key={String(i.incident)} class={`sentence ${over ? "good" : "bad"}`}>
                  <p>{i.text}</p>
                  <p class="dim">
                    <Mark tone={over ? "good" : (tones[i.severity] ?? "warn")}>{over ? i.state : `${i.severity}, ${i.state}`}</Mark>{" "}
                    {since !== null && <>since {wall(since)} ({ago(since, now)}) · </>}{i.alerts} of {i.alerts_total} alerts fire, {i.hosts} hosts
                    {i.silenced && " · silenced"}{i.acknowledged_by !== null && ` · acknowledged by ${i.acknowledged_by}`} ·{" "}
                    <a href={hrefTo({ view: "mesh", at: since })}>the mesh at that moment</a>{" "}
                    {!over && i.acknowledged_by === null && <button onClick={() => void acknowledge(i)}>Acknowledge</button>}
                  </p>
                </article>
                );
              })}
            </>
          )}
        </Shown>
      )}
    </>
  );
}
