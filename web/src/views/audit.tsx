// Audit: is each host configured as it should be, and as the others are: the tree of checks, the hosts, what was found and what to do.
import { useState } from "preact/hooks";
import { call } from "../api.ts";
import type { AuditBaseline, AuditCheck, AuditCost, AuditCounts, AuditDiff, AuditNode, AuditResult, AuditRun, AuditStatus, AuditTests, Page } from "../model.ts";
import { big } from "../model.ts";
import { nowNs } from "../now.ts";
import { useResource } from "../resource.ts";
import { go, hrefTo, place } from "../route.ts";
import { ago, duration, wall } from "../time.ts";
import { Empty, Mark, Shown, Tile, type Tone } from "../ui/state.tsx";
import { Table } from "../ui/table.tsx";
import { Matrix } from "./audit_matrix.tsx";

const tones: Record<AuditStatus, Tone> = { fail: "bad", unknown: "warn", warn: "warn", pass: "good", skip: "none" };
const worry: Record<AuditStatus, number> = { fail: 4, unknown: 3, warn: 2, pass: 1, skip: 0 };
const statuses: AuditStatus[] = ["fail", "unknown", "warn", "pass", "skip"];

function State({ of: status }: { of: AuditStatus }) {
  return <Mark tone={tones[status]}>{status}</Mark>;
}

export function Audit() {
  const runs = useResource<Page<AuditRun>>("audit/runs?limit=20", 2_000);
  return (
    <>
      <h1>Audit</h1>
      {runs.failure?.kind === "missing" ? <Empty>This controller's version has no audits.</Empty> : (
        <Shown of={runs} what="audits">
          {(page) => {
            const chosen = page.items.find((r) => r.run === place.value.rest) ?? page.items[0];
            return (
              <>
                <Start running={page.items.find((r) => r.state !== "done" && r.state !== "stopped")} again={runs.again} />
                {chosen === undefined ? <Empty>There was no audit yet. An audit reads each host's settings, sends no packet and disturbs no job.</Empty> : <Run key={chosen.run} id={chosen.run} state={chosen.state} />}
                {page.items.length > 1 && <Past items={page.items} />}
              </>
            );
          }}
        </Shown>
      )}
    </>
  );
}

/** How far a run is: of the present plan where its end is known, else by what has arrived. */
export function progress(r: AuditRun): { value: number; max: number; text: string } {
  const known = r.left_ns != null && r.stage_ns != null && r.stage_ns > 0;
  const left = known ? `; ${duration(r.left_ns!)} left${r.state === "testing" ? " of this part" : ""}` : "";
  const text = r.state === "measuring" ? `all pairs of NICs are measured${left}` : r.state === "testing" ? `${r.tests_done ?? 0} of ${r.tests_planned ?? 0} results of tests have arrived${left}` : `${r.hosts - r.unanswered} of ${r.hosts} hosts have answered`;
  return known ? { value: Math.max(0, r.stage_ns! - r.left_ns!), max: r.stage_ns!, text } : { value: r.hosts - r.unanswered, max: r.hosts, text };
}

/** What it costs is said before it is started. */
function Start({ running, again }: { running: AuditRun | undefined; again: () => void }) {
  const [said, setSaid] = useState("");
  const [matrix, setMatrix] = useState(false);
  const [nccl, setNccl] = useState(false);
  const asked = useResource<AuditCost>("audit/cost", 30_000);
  const send = async (method: "POST" | "DELETE", path: string) => {
    const answer = await call<AuditRun>(method, path, method === "POST" ? { matrix, nccl } : undefined);
    setSaid(answer.ok ? "" : answer.failure.text);
    if (answer.ok) {
      go({ rest: answer.data.run });
    }
    again();
  };
  const cost = asked.data;
  const hosts = cost?.hosts ?? null;
  const done = running === undefined ? null : progress(running);
  return (
    <div class="card">
      {running === undefined ? (
        <>
          <p class="row">
            <button onClick={() => void send("POST", "audit/runs")}>Start audit</button>
            <label><input type="checkbox" checked={matrix} onChange={() => setMatrix(!matrix)} /> with every NIC to every NIC</label>
            <label><input type="checkbox" checked={nccl} onChange={() => setNccl(!nccl)} /> with tests of bandwidth and collectives</label>
          </p>
          <p>What it costs:</p>
          <ul>
            <li>{hosts === null ? "Each host reads" : hosts === 1 ? "1 host reads" : `${hosts} hosts read`} {hosts === null || hosts === 1 ? "its" : "their"} own files, for at most some seconds, at idle priority. No packet is sent. Hosts with a failure are read twice.</li>
            {matrix && <li>{cost?.matrix == null ? "Each NIC sends 5 packets to each other one." : `${cost.nics} NICs: ${duration(cost.matrix.ns)}, and each sends ${cost.matrix.packets} small packets, never more than 2000 a second from one host, or 500 where a job runs.`} NICs that stand out are measured once more.</li>}
            {nccl && <li>Full load{cost?.nccl == null ? "" : `: at most ${duration(cost.nccl.pairs_ns)} for pairs of hosts, ${duration(cost.nccl.fabric_ns)} for the fabric, ${duration(cost.nccl.rings_ns)} for all together, ${duration(cost.nccl.round_ns)} for each round of a search; ${duration(cost.lead_ns)} between these. NICs that look slow are tested again`}. Only on hosts without a job; a job that begins ends the test there within a second.</li>}
          </ul>
        </>
      ) : (
        <p>
          <progress max={done!.max} value={done!.value} aria-label="how far the audit is" />{" "}
          {done!.text}{running.look > 1 ? ", failures are checked once more" : ""}{" "}
          <button onClick={() => void send("DELETE", `audit/runs/${running.run}`)}>Stop</button>
        </p>
      )}
      <p role="alert" class="bad">{said}</p>
    </div>
  );
}

function Run({ id, state }: { id: string; state: AuditRun["state"] }) {
  const run = useResource<AuditRun>(`audit/runs/${id}`, state === "done" || state === "stopped" ? 60_000 : 2_000);
  const now = nowNs.value;
  return (
    <Shown of={run} what="the audit">
      {(r) => (
        <>
          <p>{r.hosts} {r.hosts === 1 ? "host" : "hosts"}, began {ago(big(r.started_utc_ns), now)} by {r.who}: <strong>{r.state}</strong>{r.why && `: ${r.why}`}{r.matrix_why && `; no matrix: ${r.matrix_why}`}{r.tests_why && `; no tests: ${r.tests_why}`}{r.covered && Object.entries(r.covered).map(([what, s]) => s && `; ${s.done} of ${s.of} ${what}`)}</p>
          {r.not_read.length > 0 && <details open={r.not_read.length <= 10}><summary class="warn">Not read: {r.not_read.length} of {r.hosts} hosts</summary><ul>{r.not_read.map((o) => <li key={o.host}>{o.host}: {o.note} ({o.reason})</li>)}</ul></details>}
          {r.counts !== undefined && r.checks !== undefined && <Found run={r} counts={r.counts} />}
        </>
      )}
    </Shown>
  );
}

function Found({ run, counts }: { run: AuditRun; counts: AuditCounts }) {
  return (
    <>
      <div class="tiles">
        <Tile label="Not read" tone={run.not_read.length > 0 ? "warn" : "none"}>{run.not_read.length}</Tile>
        <Tile label="Hosts that fail" tone={counts.fail > 0 ? "bad" : "none"}>{counts.fail}</Tile>
        <Tile label="Not known" tone={counts.unknown > 0 ? "warn" : "none"}>{counts.unknown}</Tile>
        <Tile label="Warned of" tone={counts.warn > 0 ? "warn" : "none"}>{counts.warn}</Tile>
        <Tile label="Pass" tone={counts.pass === run.hosts ? "good" : "none"}>{counts.pass} of {run.hosts}</Tile>
      </div>
      <Results id={run.run} />
      <Since run={run} />
      <Tree run={run} />
      {run.tests != null && <Tests tests={run.tests} />}
      {run.matrix === true && <Matrix id={run.run} />}
      <Nodes id={run.run} of={run.hosts} />
    </>
  );
}

/** All hosts at once, at 1 to 8 lanes a peer; who makes them slow. */
function Tests({ tests }: { tests: AuditTests }) {
  const rate = (bytes: number | null) => (bytes === null ? "–" : `${(bytes / 1e9).toFixed(3)} GB/s`);
  return (
    <>
      <h2>Bandwidth and collectives</h2>
      <p>
        Pairs of hosts carry {rate(tests.expected)} over all their NICs.
        {tests.slow && <> <Mark tone="bad">All together are slower</Mark>{tests.named.length > 0 ? `: by ${tests.named.map((n) => (n.with === null ? n.host : `${n.host} with ${n.with}`)).join(", ")}.` : tests.searched ? "; no part of them is." : "; the cause was not searched."}</>}
      </p>
      {tests.rows.length > 0 && <Table caption="All-reduce of all hosts" rows={tests.rows} id={(r) => `${r.lanes} ${r.order}`} columns={[
        { name: "Lanes", cell: (r) => r.lanes, number: true },
        { name: "Ranks by", cell: (r) => r.order },
        { name: "Hosts", cell: (r) => r.hosts, number: true },
        { name: "Bus bandwidth", cell: (r) => (r.busbw === null ? r.outcome : rate(r.busbw)), sort: (r) => r.busbw ?? -1, number: true },
        { name: "Spread", cell: (r) => (r.spread_1e4 === null ? "–" : `${(r.spread_1e4 / 100).toFixed(1)} %`), number: true },
      ]} />}
    </>
  );
}

interface Part { group: string; part: string; counts: AuditCounts }

function parts(run: AuditRun): Part[] {
  const out: Part[] = [];
  for (const c of run.checks ?? []) {
    const last = out[out.length - 1];
    if (last !== undefined && last.group === (c.group ?? "") && last.part === (c.part ?? "")) {
      for (const s of statuses) {
        last.counts[s] += c.counts[s];
      }
    } else {
      out.push({ group: c.group ?? "", part: c.part ?? "", counts: { ...c.counts } });
    }
  }
  return out;
}

const count = (status: AuditStatus, of: AuditCounts) => (of[status] === 0 ? "·" : status === "pass" || status === "skip" ? of[status] : <Mark tone={tones[status]}>{of[status]}</Mark>);

/** Groups, of each its parts; a part opens its checks, a check what was found. */
function Tree({ run }: { run: AuditRun }) {
  const rows = parts(run);
  const open = place.value.query["part"] ?? "";
  const { query } = place.value;
  return (
    <>
      <h2>The checks</h2>
      <Table caption="Checks of hosts, by what they are about" rows={rows} id={(p) => `${p.group}/${p.part}`} columns={[
        { name: "Group", cell: (p) => p.group },
        { name: "About", cell: (p) => <a href={hrefTo({ rest: run.run, query: { ...query, part: open === `${p.group}/${p.part}` ? "" : `${p.group}/${p.part}` } })} aria-expanded={open === `${p.group}/${p.part}`}>{p.part}</a> },
        ...statuses.map((s) => ({ name: s, cell: (p: Part) => count(s, p.counts), sort: (p: Part) => p.counts[s], number: true })),
      ]} />
      {open !== "" && (
        <Table caption={`Checks of ${open}`} rows={(run.checks ?? []).filter((c) => `${c.group ?? ""}/${c.part ?? ""}` === open)} id={(c) => c.check} columns={[
          { name: "Check", cell: (c) => <a href={hrefTo({ rest: run.run, query: { part: open, check: c.check, status: "" } })}><code>{c.check}</code></a>, sort: (c) => c.check },
          ...statuses.map((s) => ({ name: s, cell: (c: { counts: AuditCounts }) => count(s, c.counts), sort: (c: { counts: AuditCounts }) => c.counts[s], number: true })),
        ]} />
      )}
    </>
  );
}

/** The catalogue is of one version of the controller. */
const NEVER = 3_600_000;

function Results({ id }: { id: string }) {
  const { check = "", host = "", status = check === "" && host === "" ? "fail" : "" } = place.value.query;
  const wanted = [["status", status], ["check", check], ["host", host]].map(([name, value]) => (value === "" ? "" : `&${name}=${encodeURIComponent(value!)}`)).join("");
  const results = useResource<Page<AuditResult>>(`audit/runs/${id}/results?limit=200${wanted}`, 60_000);
  const catalogue = useResource<Page<AuditCheck>>("audit/checks", NEVER);
  const known = new Map((catalogue.data?.items ?? []).map((c) => [c.check, c]));
  const of = `${status === "" ? "all that is not well" : status}${check === "" ? "" : ` of ${check}`}${host === "" ? "" : ` of ${host}`}`;
  return (
    <>
      <h2>What was found</h2>
      <p class="row">
        {(["fail", "warn", "unknown", ""] as const).map((s) => <a key={s} href={hrefTo({ rest: id, query: { ...place.value.query, status: s } })} {...(s === status ? { "aria-current": "true" as const, class: "chosen" } : {})}>{s === "" ? "all of them" : s}</a>)}
        {(check !== "" || host !== "") && <a href={hrefTo({ rest: id })}>of all hosts and checks</a>}
      </p>
      <Shown of={results} what="results">
        {(page) => (page.items.length === 0 ? <Empty>Nothing: {of}.</Empty> : (
          <>
            <Table caption={`Results: ${of}`} rows={page.items} id={(r) => `${r.check} ${r.host} ${r.subject}`} most={50} columns={[
              { name: "Host", cell: (r) => <><a href={hrefTo({ view: "hosts", rest: r.host })}>{r.host}</a><br /><span class="dim">{r.subject}{r.device ? ` (${r.device})` : ""}</span></>, sort: (r) => r.host },
              { name: "Check", cell: (r) => <>{known.get(r.check)?.title ?? r.check}<br /><code class="dim">{r.check}</code></>, sort: (r) => r.check },
              { name: "Status", cell: (r) => <><State of={r.status} />{r.suspect ? " suspect" : ""}<br /><span class="dim">{r.severity === "block" && r.status === "fail" ? "takes no job" : r.severity}</span></> },
              { name: "Found", cell: (r) => <>{r.found}{r.note === "" ? null : <><br /><span class="dim">{r.note}</span></>}</> },
              { name: "Expected", cell: (r) => <>{r.expected}{(r.basis ?? "") === "" ? null : <><br /><span class="dim">{r.basis}</span></>}</> },
              { name: "Why, and what to do", cell: (r) => <>{known.get(r.check) && <>{known.get(r.check)!.why}<br /></>}<strong>{r.remedy ?? "–"}</strong></> },
              { name: "Evidence", cell: (r) => <details><summary>{r.evidence.length} facts</summary>{r.evidence.map((e) => <div key={`${e.fact} ${e.subject}`} class="dim">{e.fact} {e.subject}: {e.state === "value" ? e.value : e.state}<br />{e.source}{e.at_utc_ns === undefined ? "" : `, ${wall(big(e.at_utc_ns))}`}</div>)}</details> },
            ]} />
            {page.next !== null && <p class="dim">The first 200 are shown; <code>foliot audit show --fleet {id} --json</code> has all.</p>}
          </>
        ))}
      </Shown>
    </>
  );
}

/** What is another than in the audit that a person accepted; or how to accept this one. */
function Since({ run }: { run: AuditRun }) {
  const baselines = useResource<Page<AuditBaseline>>("audit/baselines", 30_000);
  const accepted = baselines.data?.items[0];
  const diff = useResource<AuditDiff>(accepted === undefined || accepted.run === run.run ? null : `audit/runs/${run.run}/diff?with=baseline`, NEVER);
  const [name, setName] = useState("");
  const [said, setSaid] = useState("");
  const accept = async () => {
    const answer = await call<unknown>("POST", "audit/baselines", { run: run.run, name });
    setSaid(answer.ok ? "This audit is accepted: later ones are compared with it." : answer.failure.text);
    baselines.again();
  };
  return (
    <>
      <h2>Since the accepted audit</h2>
      {baselines.data !== null && accepted === undefined && <Empty>No audit was accepted yet. Later audits are compared with an accepted one.</Empty>}
      {accepted !== undefined && (
        <>
          <p>{accepted.run === run.run ? "This audit" : <a href={hrefTo({ rest: accepted.run })}>The audit of {wall(big(accepted.started_utc_ns))}</a>} was accepted by {accepted.who}{accepted.name === "" ? "" : `: ${accepted.name}`}, {wall(big(accepted.accepted_utc_ns))}.{(accepted.measured ?? accepted.hosts) < accepted.hosts && ` The measurements of ${accepted.measured} of ${accepted.hosts} hosts are kept.`}</p>
          {accepted.run !== run.run && <Shown of={diff} what="what changed">{(d) => <Changed d={d} />}</Shown>}
        </>
      )}
      {run.state === "done" && accepted?.run !== run.run && (
        <p class="row">
          <label>Name <input maxLength={63} value={name} onInput={(e) => setName(e.currentTarget.value)} placeholder="as delivered" /></label>
          <button onClick={() => void accept()}>Accept this audit</button>
        </p>
      )}
      <p role="status" aria-live="polite">{said}</p>
    </>
  );
}

/** Statuses of one host that became the same are one line: a host that nobody looked at is no hundred changes. */
export function together(results: AuditDiff["results"]): { host: string; what: string; was: string; is: string }[] {
  const found = new Map<string, { host: string; checks: string[]; was: Set<string>; is: string }>();
  for (const r of results) {
    const key = r.is === "unknown" ? `${r.host} unknown` : `${r.host} ${r.check}`;
    const f = found.get(key) ?? { host: r.host, checks: [], was: new Set<string>(), is: r.is };
    f.checks.push(r.check);
    f.was.add(r.was);
    found.set(key, f);
  }
  return [...found.values()].map(({ host, checks, was, is }) => ({ host, what: checks.length > 3 ? `${checks.length} checks: ${checks[0]}, ${checks[1]}, …` : checks.join(", "), was: [...was].join(", "), is }));
}

function Changed({ d }: { d: AuditDiff }) {
  const rows = [...d.facts.map((f) => ({ host: f.host, what: `${f.fact} ${f.subject}`.trim(), was: f.was ?? "not there", is: f.is ?? "not there", kind: "fact" })),
    ...(d.measured ?? []).map((m) => ({ host: m.host, what: `${m.check} ${m.subject}`.trim(), was: m.was, is: m.is, kind: "measured" })),
    ...together(d.results).map((r) => ({ ...r, kind: "" }))];
  return rows.length === 0 ? <Empty>Nothing: {d.hosts} hosts are in both.</Empty> : (
    <>
      {d.cut && <p class="banner" role="status">Not all changes are shown.</p>}
      <Table caption={`Changes of ${d.hosts} hosts that are in both`} rows={rows} id={(r) => `${r.kind} ${r.host} ${r.what}`} most={50} columns={[
        { name: "Host", cell: (r) => <a href={hrefTo({ view: "hosts", rest: r.host })}>{r.host}</a>, sort: (r) => r.host },
        { name: "What", cell: (r) => <><code>{r.what}</code> <span class="dim">{r.kind}</span></>, sort: (r) => r.what },
        { name: "Was", cell: (r) => r.was },
        { name: "Is", cell: (r) => r.is },
      ]} />
    </>
  );
}

/** The server sends the worst hosts first: those that take no job. What is cut off is told. */
function Nodes({ id, of }: { id: string; of: number }) {
  const nodes = useResource<Page<AuditNode>>(`audit/runs/${id}/nodes?limit=1000`, 10_000);
  const column = (name: string, of: (n: AuditNode) => AuditStatus) => ({ name, cell: (n: AuditNode) => <State of={of(n)} />, sort: (n: AuditNode) => worry[of(n)] });
  return (
    <>
      <h2>Hosts</h2>
      <Shown of={nodes} what="hosts">
        {(page) => (
          <>
          {page.next !== null && <p class="banner" role="status">The first {page.items.length} of {of} hosts are shown, the worst first; <code>foliot audit nodes {id}</code> has all.</p>}
          <Table caption="Hosts of this audit" most={50} rows={page.items} id={(n) => n.host} columns={[
            { name: "Host", cell: (n) => <a href={hrefTo({ rest: id, query: { host: n.host } })}>{n.host}</a>, sort: (n) => n.host },
            column("Status", (n) => n.status),
            { name: "Agent now", cell: (n) => n.agent, sort: (n) => n.agent },
            column("NIC", (n) => n.nic),
            column("Initialized", (n) => n.initialized),
            column("Active", (n) => n.active),
            column("GID index", (n) => n.gid_index),
            { name: "Connectivity", cell: (n) => <><State of={n.connectivity} />{n.connectivity_now && <span class="dim"> now</span>}</>, sort: (n) => worry[n.connectivity] },
            { name: "Gate", cell: (n) => <span title={n.gate_text}><State of={n.gate} /></span>, sort: (n) => worry[n.gate] },
          ]} />
          </>
        )}
      </Shown>
    </>
  );
}

function Past({ items }: { items: AuditRun[] }) {
  return (
    <>
      <h2>Audits</h2>
      <Table caption="Audits, newest first" rows={items} id={(r) => r.run} columns={[
        { name: "Began", cell: (r) => <a href={hrefTo({ rest: r.run })}>{wall(big(r.started_utc_ns))}</a> },
        { name: "By", cell: (r) => r.who },
        { name: "State", cell: (r) => r.state },
        { name: "Hosts", cell: (r) => r.hosts, number: true },
        { name: "Not read", cell: (r) => r.not_read.length, number: true },
      ]} />
    </>
  );
}
