// Audit: is each host configured as it should be, and as the others are: the tree of checks, the hosts, what was found and what to do.
import { useState } from "preact/hooks";
import { call } from "../api.ts";
import type { AuditCounts, AuditNode, AuditResult, AuditRun, AuditStatus, AuditTests, Page } from "../model.ts";
import { big } from "../model.ts";
import { nowNs } from "../now.ts";
import { useResource } from "../resource.ts";
import { go, hrefTo, place } from "../route.ts";
import { ago, wall } from "../time.ts";
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
      {runs.failure?.kind === "missing" ? <Empty>This controller's version makes no audits.</Empty> : (
        <Shown of={runs} what="audits">
          {(page) => {
            const chosen = page.items.find((r) => r.run === place.value.rest) ?? page.items[0];
            return (
              <>
                <Start running={page.items.find((r) => r.state !== "done" && r.state !== "stopped")} again={runs.again} />
                {chosen === undefined ? <Empty>No audit was made yet. One reads each host's settings, sends no packet and disturbs no job.</Empty> : <Run key={chosen.run} id={chosen.run} state={chosen.state} />}
                {page.items.length > 1 && <Past items={page.items} />}
              </>
            );
          }}
        </Shown>
      )}
    </>
  );
}

/** What it costs is said before it is started. */
function Start({ running, again }: { running: AuditRun | undefined; again: () => void }) {
  const [said, setSaid] = useState("");
  const [matrix, setMatrix] = useState(false);
  const [nccl, setNccl] = useState(false);
  const send = async (method: "POST" | "DELETE", path: string) => {
    const answer = await call<AuditRun>(method, path, method === "POST" ? { matrix, nccl } : undefined);
    setSaid(answer.ok ? "" : answer.failure.text);
    if (answer.ok) {
      go({ rest: answer.data.run });
    }
    again();
  };
  return (
    <div>
      {running === undefined ? (
        <>
          <button onClick={() => void send("POST", "audit/runs")}>Start audit</button>{" "}
          <label><input type="checkbox" checked={matrix} onChange={() => setMatrix(!matrix)} /> with every NIC to every NIC: 5 packets of each pair, each way</label>{" "}
          <label><input type="checkbox" checked={nccl} onChange={() => setNccl(!nccl)} /> with tests of bandwidth and collectives: full load for a minute, only on hosts without a job</label>
        </>
      ) : (
        <>
          <progress max={running.hosts} value={running.hosts - running.unanswered} aria-label="hosts that have answered" />{" "}
          {running.state === "measuring" ? "every NIC with every NIC is measured" : running.state === "testing" ? `${running.tests_done ?? 0} of ${running.tests_planned ?? 0} results of tests have come` : <>{running.hosts - running.unanswered} of {running.hosts} hosts have answered</>}{running.look > 1 ? ", failures are looked at once more" : ""}{" "}
          <button onClick={() => void send("DELETE", `audit/runs/${running.run}`)}>Stop</button>
        </>
      )}
      <span class="dim"> Each host reads its own files for at most some seconds, at idle priority. Hosts with a failure are read twice.</span>
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
          <p>{r.hosts} {r.hosts === 1 ? "host" : "hosts"}, began {ago(big(r.started_utc_ns), now)} by {r.who}: <strong>{r.state}</strong>{r.why === null ? "" : `: ${r.why}`}{r.matrix_why == null ? "" : `; no matrix: ${r.matrix_why}`}{r.tests_why == null ? "" : `; no tests: ${r.tests_why}`}</p>
          {r.left_out.length > 0 && <details><summary>{r.left_out.length} left out</summary><ul>{r.left_out.map((o) => <li key={o.host}>{o.host}: {o.note} ({o.reason})</li>)}</ul></details>}
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
        <Tile label="Hosts that fail" tone={counts.fail > 0 ? "bad" : "none"}>{counts.fail}</Tile>
        <Tile label="Not known" tone={counts.unknown > 0 ? "warn" : "none"}>{counts.unknown}</Tile>
        <Tile label="Warned of" tone={counts.warn > 0 ? "warn" : "none"}>{counts.warn}</Tile>
        <Tile label="Pass" tone={counts.pass === run.hosts ? "good" : "none"}>{counts.pass} of {run.hosts}</Tile>
      </div>
      <Results id={run.run} />
      <Tree run={run} />
      {run.tests != null && <Tests tests={run.tests} />}
      {run.matrix === true && <Matrix id={run.run} />}
      <Nodes id={run.run} />
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
        {tests.slow && <> <Mark tone="bad">All together are slower</Mark>{tests.named.length > 0 ? `: by ${tests.named.map((n) => (n.with === null ? n.host : `${n.host} with ${n.with}`)).join(", ")}.` : tests.searched ? "; no part of them is." : "; who makes them so was not searched."}</>}
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

function Tree({ run }: { run: AuditRun }) {
  const rows = parts(run);
  return (
    <Table caption="Checks of hosts, by what they are about" rows={rows} id={(p) => `${p.group}/${p.part}`} columns={[
      { name: "Group", cell: (p) => p.group },
      { name: "About", cell: (p) => p.part },
      ...statuses.map((s) => ({ name: s, cell: (p: Part) => (p.counts[s] === 0 ? "·" : s === "pass" || s === "skip" ? p.counts[s] : <Mark tone={tones[s]}>{p.counts[s]}</Mark>), sort: (p: Part) => p.counts[s], number: true })),
    ]} />
  );
}

function Results({ id }: { id: string }) {
  const status = place.value.query["status"] ?? "fail";
  const results = useResource<Page<AuditResult>>(`audit/runs/${id}/results?limit=200&status=${encodeURIComponent(status)}`, 60_000);
  return (
    <>
      <h2>What was found</h2>
      <p>{(["fail", "warn", "unknown"] as const).map((s) => <a key={s} href={hrefTo({ rest: id, query: { status: s } })} {...(s === status ? { "aria-current": "true" as const } : {})}>{s} </a>)}</p>
      <Shown of={results} what="results">
        {(page) => (page.items.length === 0 ? <Empty>Nothing with status {status}.</Empty> : (
          <>
            <Table caption={`Results with status ${status}`} rows={page.items} id={(r) => `${r.check} ${r.host} ${r.subject}`} columns={[
              { name: "Host", cell: (r) => <>{r.host}<br /><span class="dim">{r.subject}</span></>, sort: (r) => r.host },
              { name: "Check", cell: (r) => <><code>{r.check}</code><br /><span class="dim">{r.severity}</span></>, sort: (r) => r.check },
              { name: "Status", cell: (r) => <><State of={r.status} />{r.suspect ? " suspect" : ""}</> },
              { name: "Found", cell: (r) => <>{r.found}{r.note === "" ? null : <><br /><span class="dim">{r.note}</span></>}</> },
              { name: "Expected", cell: (r) => <>{r.expected}{(r.basis ?? "") === "" ? null : <><br /><span class="dim">{r.basis}</span></>}</> },
              { name: "Evidence", cell: (r) => r.evidence.map((e) => <div key={`${e.fact} ${e.subject}`} class="dim">{e.source}</div>) },
              { name: "What to do", cell: (r) => r.remedy ?? "–" },
            ]} />
            {page.next !== null && <p class="dim">The first 200 are shown; <code>foliot audit show --fleet {id} --json</code> has all.</p>}
          </>
        ))}
      </Shown>
    </>
  );
}

function Nodes({ id }: { id: string }) {
  const nodes = useResource<Page<AuditNode>>(`audit/runs/${id}/nodes?limit=1000`, 10_000);
  const column = (name: string, of: (n: AuditNode) => AuditStatus) => ({ name, cell: (n: AuditNode) => <State of={of(n)} />, sort: (n: AuditNode) => worry[of(n)] });
  return (
    <>
      <h2>Hosts</h2>
      <Shown of={nodes} what="hosts">
        {(page) => (
          <Table caption="Hosts of this audit" rows={page.items} id={(n) => n.host} first="Status" columns={[
            { name: "Host", cell: (n) => n.host, sort: (n) => n.host },
            column("Status", (n) => n.status),
            { name: "Agent", cell: (n) => n.agent, sort: (n) => n.agent },
            column("NIC", (n) => n.nic),
            column("Initialized", (n) => n.initialized),
            column("Active", (n) => n.active),
            column("GID index", (n) => n.gid_index),
            column("Connectivity", (n) => n.connectivity),
            { name: "Gate", cell: (n) => <span title={n.gate_text}><State of={n.gate} /></span>, sort: (n) => worry[n.gate] },
          ]} />
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
        { name: "Left out", cell: (r) => r.left_out.length, number: true },
      ]} />
    </>
  );
}
