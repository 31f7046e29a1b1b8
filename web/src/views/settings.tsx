// Settings: the fleet's configuration with a diff before it is applied, tokens, and who changed what. What a token may not see isn't
// offered: the controller's refusal stands in its place.
import { useState } from "preact/hooks";
import { call, type Failure } from "../api.ts";
import type { AuditRow, Config, ConfigChange, ConfigVersion, NewToken, Page, Token } from "../model.ts";
import { big } from "../model.ts";
import { settingsOf } from "../changes.ts";
import { nowNs } from "../now.ts";
import { type Resource, useResource } from "../resource.ts";
import { ago, wall } from "../time.ts";
import { Cut, Empty, Failed, Mark, Shown, type Tone } from "../ui/state.tsx";
import { Table } from "../ui/table.tsx";

export const stateTones: Record<ConfigVersion["state"], Tone> = { active: "good", tried: "warn", replaced: "none", "taken-back": "bad" };

export function Settings() {
  return (
    <>
      <h1>Settings</h1>
      <Configuration />
      <Tokens />
      <Audit />
    </>
  );
}

/** What a role may not see is one line, not an error. */
function Allowed<T>({ of, what, children }: { of: Resource<T>; what: string; children: (data: T) => preact.ComponentChildren }) {
  return of.failure?.kind === "refused" ? <Empty>This token may not see {what}: {of.failure.text}</Empty> : <Shown of={of} what={what}>{children}</Shown>;
}

/** Does something at the controller, and keeps what it answered. */
function useAct(after: () => void): { failure: Failure | null; done: string; act: <T>(method: string, path: string, body: unknown, say: (data: T) => string) => Promise<T | null> } {
  const [failure, setFailure] = useState<Failure | null>(null);
  const [done, setDone] = useState("");
  const act = async <T,>(method: string, path: string, body: unknown, say: (data: T) => string) => {
    const answer = await call<T>(method, path, body);
    setFailure(answer.ok ? null : answer.failure);
    setDone(answer.ok ? say(answer.data) : "");
    after();
    return answer.ok ? answer.data : null;
  };
  return { failure, done, act };
}

function Outcome({ failure, done }: { failure: Failure | null; done: string }) {
  return failure === null ? <p role="status" aria-live="polite">{done}</p> : <Failed text={failure.text} />;
}

// ---- configuration ----

function Configuration() {
  const config = useResource<Config>("config", 5_000, ["controller"]);
  const versions = useResource<Page<ConfigVersion>>("config/versions", 10_000, ["controller"]);
  const again = () => { config.again(); versions.again(); };
  return (
    <>
      <h2>The fleet's configuration</h2>
      <Allowed of={config} what="the configuration">
        {(c) => (
          <>
            <p>
              {c.active === null ? "No version was applied yet: each host uses its own settings." : <>Version {String(c.active.version)} is in force since {wall(big(c.active.at_utc_ns))}, by {c.active.who}{c.active.why ? `: ${c.active.why}` : ""}.</>}{" "}
              {c.hosts_behind > 0 && <Mark tone="warn">{c.hosts_behind} hosts don't run this version yet</Mark>} {c.hosts_refusing > 0 && <Mark tone="bad">{c.hosts_refusing} hosts refuse it</Mark>}
            </p>
            {c.trial !== null && <p><Mark tone="warn">Version {String(c.trial.version.version)} is tried on {c.trial.hosts.length} hosts until {wall(big(c.trial.until_utc_ns))}; {c.trial.confirmed} of them run it.</Mark></p>}
            {c.rolled_back && <p><Mark tone="bad">The newest version was taken back automatically.</Mark></p>}
            <Apply key={String(c.active?.version ?? 0)} text={c.active?.text ?? ""} trial={c.trial !== null} again={again} />
          </>
        )}
      </Allowed>
      {versions.data !== null && versions.data.items.length > 0 && (
        <Table caption="Versions, newest first" rows={versions.data.items} id={(v) => String(v.version)} columns={[
          { name: "Version", cell: (v) => String(v.version), number: true },
          { name: "State", cell: (v) => <Mark tone={stateTones[v.state]}>{v.state}</Mark> },
          { name: "Sets", cell: (v) => settingsOf(versions.data!.items, v.version) || "–" },
          { name: "When", cell: (v) => wall(big(v.at_utc_ns)) },
          { name: "Who", cell: (v) => v.who },
          { name: "Why", cell: (v) => [v.why, v.ended_why].filter(Boolean).join("; ended: ") || "–" },
          { name: "Hosts", cell: (v) => v.hosts, number: true },
        ]} />
      )}
    </>
  );
}

function Apply({ text, trial, again }: { text: string; trial: boolean; again: () => void }) {
  const [draft, setDraft] = useState(text);
  const [why, setWhy] = useState("");
  const [percent, setPercent] = useState("10");
  const [diff, setDiff] = useState<{ of: string; changes: ConfigChange[] } | null>(null);
  const { failure, done, act } = useAct(again);
  const compare = async () => {
    const answer = await act<{ changes: ConfigChange[] }>("POST", "config", { text: draft, dry_run: true }, () => "");
    setDiff(answer === null ? null : { of: draft, changes: answer.changes });
  };
  const shown = diff !== null && diff.of === draft ? diff.changes : null; // of an older draft it would be wrong
  return (
    <details>
      <summary>Change the configuration</summary>
      <p><label>YAML, as described in docs/controller.md<br /><textarea rows={8} value={draft} onInput={(e) => setDraft(e.currentTarget.value)} spellcheck={false} /></label></p>
      <div class="row">
        <label>Why <input value={why} maxLength={159} onInput={(e) => setWhy(e.currentTarget.value)} /></label>
        <label>Try it first on <input class="narrow" type="number" min="0" max="100" value={percent} onInput={(e) => setPercent(e.currentTarget.value)} /> % of the hosts</label>
        <button onClick={() => void compare()}>Show what changes</button>
        <button disabled={shown === null || shown.length === 0} onClick={() => void act("POST", "config", { text: draft, why, canary_percent: Number(percent) }, () => "Applied.")}>Apply</button>
        {trial && <button onClick={() => void act("POST", "config/rollback", {}, () => "The version in trial is taken back.")}>Take back the version in trial</button>}
      </div>
      {shown !== null && (shown.length === 0 ? <Empty>This is the configuration in force: nothing would change.</Empty> : (
        <Table caption="What would change" rows={shown} id={(c) => c.key} columns={[
          { name: "Setting", cell: (c) => c.key },
          { name: "From", cell: (c) => <span class="bad">{value(c.from)}</span> },
          { name: "To", cell: (c) => <span class="good">{value(c.to)}</span> },
        ]} />
      ))}
      <Outcome failure={failure} done={done} />
    </details>
  );
}

/** null: not set; each host then runs its own, or the default. */
export function value(v: unknown): string {
  return v === null || v === undefined ? "not set" : typeof v === "string" ? v : JSON.stringify(v);
}

// ---- tokens ----

function Tokens() {
  const tokens = useResource<Page<Token>>("tokens", 10_000);
  const { failure, done, act } = useAct(tokens.again);
  const now = nowNs.value;
  return (
    <>
      <h2>Tokens</h2>
      <Allowed of={tokens} what="tokens">
        {(page) => (
          <>
            <Table caption="Tokens, and their rights" rows={page.items} id={(t) => t.id} columns={[
              { name: "Name", cell: (t) => t.name, sort: (t) => t.name },
              { name: "Role", cell: (t) => t.role, sort: (t) => t.role },
              { name: "Hosts", cell: (t) => t.scope ?? "all" },
              { name: "Made", cell: (t) => wall(big(t.created_utc_ns)), sort: (t) => Number(t.created_utc_ns) },
              { name: "Ends", cell: (t) => (t.expires_utc_ns === null ? "never" : wall(big(t.expires_utc_ns))), sort: (t) => Number(t.expires_utc_ns ?? Infinity) },
              { name: "Used", cell: (t) => (t.used_utc_ns === null ? "never" : ago(big(t.used_utc_ns), now)), sort: (t) => Number(t.used_utc_ns ?? 0) },
              { name: "", cell: (t) => <Sure label={`Revoke ${t.name}`} does={() => void act("DELETE", `tokens/${t.id}`, undefined, () => `${t.name} is refused from now on.`)} /> },
            ]} />
            <Make act={act} />
          </>
        )}
      </Allowed>
      <Outcome failure={failure} done={done} />
    </>
  );
}

/** What can't be undone is asked for twice. */
function Sure({ label, does }: { label: string; does: () => void }) {
  const [asked, setAsked] = useState(false);
  return asked ? <span class="row"><button onClick={() => { setAsked(false); does(); }}>{label}: yes</button><button onClick={() => setAsked(false)}>No</button></span> : <button onClick={() => setAsked(true)}>{label}</button>;
}

function Make({ act }: { act: ReturnType<typeof useAct>["act"] }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState("viewer");
  const [hours, setHours] = useState("");
  const [scope, setScope] = useState("");
  const [secret, setSecret] = useState<NewToken | null>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    setSecret(await act<NewToken>("POST", "tokens", { name, role, ...(hours === "" ? {} : { hours: Number(hours) }), ...(scope === "" ? {} : { scope }) }, (t) => `${t.name} is made.`));
  };
  return (
    <>
      <form class="row" onSubmit={(e) => void submit(e)}>
        <label>Name <input required maxLength={63} value={name} onInput={(e) => setName(e.currentTarget.value)} /></label>
        <label>Role <select value={role} onChange={(e) => setRole(e.currentTarget.value)}>{["viewer", "operator", "admin"].map((r) => <option key={r} value={r}>{r}</option>)}</select></label>
        <label>Hours <input class="narrow" type="number" min="1" placeholder="no end" value={hours} onInput={(e) => setHours(e.currentTarget.value)} /></label>
        {role === "viewer" && <label>Hosts <input placeholder="all; or gpu-1*, gpu-2*" value={scope} onInput={(e) => setScope(e.currentTarget.value)} /></label>}
        <button type="submit">Make a token</button>
      </form>
      {secret !== null && <p class="banner">The token of {secret.name}, shown this once: <code>{secret.token}</code></p>}
    </>
  );
}

// ---- audit ----

function Audit() {
  const rows = useResource<Page<AuditRow>>("audit?limit=1000", 10_000, ["controller"]);
  const [joins, setJoins] = useState(false);
  return (
    <>
      <h2>Who changed what</h2>
      <Allowed of={rows} what="who changed what">
        {(page) => page.items.length === 0 ? <Empty>Nobody changed anything yet.</Empty> : (
          <>
            <Cut page={page} what="changes" />
            <p><label><input type="checkbox" checked={joins} onChange={(e) => setJoins(e.currentTarget.checked)} /> with the {page.items.filter((a) => a.what === "host.join").length} joins of hosts</label></p>
            <Table caption="Changes by people and programs, newest first" rows={page.items.filter((a) => joins || a.what !== "host.join")} id={(a) => String(a.id)} columns={[
              { name: "When", cell: (a) => <time title={String(a.at_utc_ns)}>{wall(big(a.at_utc_ns))}</time> },
              { name: "Who", cell: (a) => a.who, sort: (a) => a.who },
              { name: "What", cell: (a) => a.what, sort: (a) => a.what },
              { name: "Detail", cell: (a) => a.detail || "–" },
              { name: "From", cell: (a) => a.source ?? "–" },
            ]} />
          </>
        )}
      </Allowed>
    </>
  );
}
