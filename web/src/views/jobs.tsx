// Jobs: what runs over the plugin, one job on one time axis (throughput, delay, what failover did), its flows, two jobs beside
// each other. Savings: what jobs were spared, each number with its evidence.
import { useMemo, useState } from "preact/hooks";
import type { Job, JobDetail, JobFlow, JobProcess, JobRow, Page, Saving, SavingsAnswer } from "../model.ts";
import { big } from "../model.ts";
import { useResource } from "../resource.ts";
import { go, hrefTo, place } from "../route.ts";
import { nowNs } from "../now.ts";
import { ago, digits, duration, rate } from "../time.ts";
import { Chart } from "../ui/chart.tsx";
import { Empty, Mark, Shown, Tile, type Tone } from "../ui/state.tsx";
import { Strip } from "../ui/strip.tsx";
import { Table } from "../ui/table.tsx";

export const jobTones: Record<Job["state"], Tone> = { running: "good", idle: "none", parted: "bad", ended: "none", killed: "warn", unknown: "none" };
const blame: Record<"yes" | "no" | "unknown", Tone> = { yes: "bad", no: "good", unknown: "none" };
const worry: Record<Job["state"], number> = { parted: 5, running: 4, idle: 3, killed: 2, unknown: 1, ended: 0 };

/** A job is known by name and user: "4711 of 1000" in the address as 4711?user=1000, beside another as beside=1000+4711. */
const path = (job: string, user: string | undefined) => `jobs/${encodeURIComponent(job)}${user === undefined ? "" : `?user=${encodeURIComponent(user)}`}`;
const EARLIER_NS = 60_000_000_000n; // ranks begin before the first report of them
const title = (j: Job) => `${j.job} of user ${j.user}`;

export function Jobs() {
  const { rest, query } = place.value;
  return rest === "" ? <List /> : <One job={rest} user={query["user"]} other={query["beside"]} />;
}

function List() {
  const jobs = useResource<Page<Job>>("jobs?limit=1000", 5_000, ["job"]);
  const now = nowNs.value;
  return (
    <>
      <h1>Jobs</h1>
      {jobs.failure?.kind === "missing" ? <Empty>This controller's version measures no jobs.</Empty> : (
        <Shown of={jobs} what="jobs">
          {(page) => page.items.length === 0 ? <Empty>Agents see no job with Foliot's plugin. A job uses it with NCCL_NET_PLUGIN=foliot.</Empty> : (
            <Table caption="Jobs over the plugin" rows={page.items} id={(j) => `${j.user} ${j.job}`} first="State" columns={[
              { name: "Job", cell: (j) => <a href={hrefTo({ view: "jobs", rest: j.job, query: { user: String(j.user) } })}>{j.job}</a>, sort: (j) => j.job },
              { name: "User", cell: (j) => j.user, sort: (j) => j.user, number: true },
              { name: "State", cell: (j) => <Mark tone={jobTones[j.state]}>{j.state}</Mark>, sort: (j) => worry[j.state] },
              { name: "Ranks", cell: (j) => (j.ranks === null ? j.processes : `${j.processes} of ${j.ranks}`), sort: (j) => j.processes, number: true },
              { name: "Hosts", cell: (j) => j.hosts, sort: (j) => j.hosts, number: true },
              { name: "Lanes", cell: (j) => (j.lanes === null ? "–" : `${j.lanes_usable} of ${j.lanes}`), sort: (j) => (j.lanes ?? 0) - (j.lanes_usable ?? 0), number: true },
              { name: "Sends", cell: (j) => rate(j.rate_bps), sort: (j) => j.rate_bps ?? -1, number: true },
              { name: "Failovers", cell: (j) => j.failovers ?? "–", sort: (j) => j.failovers ?? -1, number: true },
              { name: "No way for", cell: (j) => duration(j.stalled_ns), sort: (j) => j.stalled_ns ?? -1, number: true },
              { name: "Worst delay p99", cell: (j) => duration(j.worst?.owd_ns_p99), sort: (j) => j.worst?.owd_ns_p99 ?? -1, number: true },
              { name: "Since", cell: (j) => ago(big(j.since_utc_ns), now), sort: (j) => Number(j.since_utc_ns) },
            ]} />
          )}
        </Shown>
      )}
    </>
  );
}

const seconds = (past: JobDetail["past"], length: number) => Array.from({ length }, (_, i) => Number(big(past.from_utc_ns) / 1_000_000n) / 1e3 + (i * past.step_ns) / 1e9);

function One({ job, user, other }: { job: string; user: string | undefined; other: string | undefined }) {
  const detail = useResource<JobDetail>(path(job, user), 5_000, ["job"]);
  const since = detail.data === null ? null : big(detail.data.since_utc_ns) - EARLIER_NS;
  const rows = useResource<Page<JobRow>>(since === null ? null : `events?kind=job&limit=1000&since_utc_ns=${since}`, 10_000, ["job"]);
  return (
    <>
      <h1>Job {job}</h1>
      <p><a href={hrefTo({ view: "jobs" })}>All jobs</a></p>
      <Shown of={detail} what={`job ${job}`}>
        {(d) => {
          const happened = (rows.data?.items ?? []).filter((row) => row.detail?.job === d.job && row.detail?.user === d.user);
          return (
            <>
              <div class="tiles">
                <Tile label="State" tone={jobTones[d.state]}>{d.state}</Tile>
                <Tile label="Ranks seen">{d.processes}{d.ranks === null ? "" : ` of ${d.ranks}`}</Tile>
                <Tile label="Sends">{rate(d.rate_bps)}</Tile>
                <Tile label="Lanes usable">{d.lanes === null ? "–" : `${d.lanes_usable} of ${d.lanes}`}</Tile>
                <Tile label="Failovers">{d.failovers ?? "–"}</Tile>
                <Tile label="Without any way">{duration(d.stalled_ns)}</Tile>
              </div>
              {d.network && <p>Is it the network? <Mark tone={blame[d.network.answer]}>{d.network.answer}</Mark> {d.network.sentence}</p>}
              {d.processes_silent > 0 && <p class="banner" role="status">{d.processes_silent} of its processes are on hosts that are silent: what they do is not known.</p>}
              <Past detail={d} happened={happened} />
              <Flows flows={d.flows} />
              <Ranks of={d.process_list} />
              <Shown of={rows} what="what happened to it">{(page) => <Happened rows={happened} whole={page.next === null} />}</Shown>
              <Beside detail={d} other={other} />
            </>
          );
        }}
      </Shown>
    </>
  );
}

function Past({ detail, happened }: { detail: JobDetail; happened: JobRow[] }) {
  const { past } = detail;
  const at = seconds(past, past.rate_bps.length);
  const marks = happened.filter((row) => row.word !== "started").map((row) => ({ at: Number(big(row.at_utc_ns) / 1_000_000n) / 1e3, text: row.word }));
  if (at.length < 2) {
    return <Empty>Its history begins now, with one point each {duration(past.step_ns)}.</Empty>;
  }
  return (
    <>
      <Chart title="Throughput of all ranks; a dashed line where a lane failed, came back or was moved" scale="zero" seconds={at} format={rate} marks={marks} lines={[{ name: "sent", values: past.rate_bps }]} />
      <Chart title="In-band one-way delay, the worst of all ranks" scale="ratio" seconds={at} format={duration} marks={marks} lines={[{ name: "median of lanes", values: past.owd_ns_p50 }, { name: "worst lane, p99", values: past.owd_ns_p99 }]} />
    </>
  );
}

const name = (f: JobFlow) => `${f.from_host}/${f.from_nic} → ${f.to_host}/${f.to_nic} lane ${f.lane}`;

/** The one flow of 94 us among 4 us ones: three times the median, and more than a microsecond. */
export function standsOut(flows: JobFlow[]): JobFlow | null {
  const known = flows.filter((f) => f.owd_ns_p50 !== null).sort((a, b) => a.owd_ns_p50! - b.owd_ns_p50!);
  const usual = Math.max(1_000, known[Math.floor((known.length - 1) / 2)]?.owd_ns_p50 ?? 0);
  const last = known.at(-1);
  return last !== undefined && known.length >= 3 && last.owd_ns_p50! >= 3 * usual ? last : null;
}

function Flows({ flows }: { flows: JobFlow[] }) {
  const odd = standsOut(flows);
  const timed = flows.filter((f) => f.owd_ns_p50 !== null);
  const most = Math.max(1, ...flows.map((f) => f.owd_ns_p99 ?? 0));
  if (flows.length === 0) {
    return <Empty>None of its flows is measured.</Empty>;
  }
  return (
    <>
      {odd && <p><Mark tone="bad">{name(odd)} stands out: {duration(odd.owd_ns_p50)} at the median</Mark></p>}
      {timed.length > 0 && <Strip title="Flows by their median one-way delay, each with its p99" bars={timed.map((f) => ({ name: name(f), p50: f.owd_ns_p50!, p99: f.owd_ns_p99, odd: f === odd }))} />}
      <Table caption="Each rank's slowest flows, and those not well" rows={flows} id={(f) => `${name(f)} ${f.state} ${flows.indexOf(f)}`} first="Network p50" columns={[
        { name: "Flow", cell: (f) => (f === odd ? <strong>{name(f)}</strong> : name(f)), sort: name },
        { name: "State", cell: (f) => <Mark tone={f.state === "active" ? "good" : f.state === "down" ? "bad" : "warn"}>{f.state}{f.reason === null ? "" : `: ${f.reason}`}</Mark>, sort: (f) => f.state },
        { name: "Rate", cell: (f) => rate(f.rate_bps), sort: (f) => f.rate_bps, number: true },
        { name: "Sender p50", cell: (f) => duration(f.queued_ns_p50), sort: (f) => f.queued_ns_p50 ?? -1, number: true },
        { name: "Network p50", cell: (f) => duration(f.owd_ns_p50), sort: (f) => f.owd_ns_p50 ?? -1, number: true },
        { name: "p99", cell: (f) => (f.owd_ns_p99 === null ? "–" : <><meter class="delay" min={0} max={most} value={f.owd_ns_p99} aria-hidden="true" /> {duration(f.owd_ns_p99)}</>), sort: (f) => f.owd_ns_p99 ?? -1, number: true },
        { name: "Receiver p50", cell: (f) => duration(f.consumed_ns_p50), sort: (f) => f.consumed_ns_p50 ?? -1, number: true },
        { name: "± clock", cell: (f) => duration(f.bound_ns), sort: (f) => f.bound_ns ?? -1, number: true },
      ]} />
    </>
  );
}

function Ranks({ of }: { of: JobProcess[] }) {
  return of.length === 0 ? null : (
    <Table caption="Its ranks, and where they run" rows={of} id={(p) => `${p.host} ${p.pid}`} columns={[
      { name: "Rank", cell: (p) => p.rank ?? "–", sort: (p) => p.rank ?? -1, number: true },
      { name: "Host", cell: (p) => <a href={hrefTo({ view: "hosts", rest: p.host })}>{p.host}</a>, sort: (p) => p.host },
      { name: "State", cell: (p) => <Mark tone={jobTones[p.state]}>{p.state}</Mark>, sort: (p) => worry[p.state] },
      { name: "Sends", cell: (p) => rate(p.rate_out_bps), sort: (p) => p.rate_out_bps ?? -1, number: true },
      { name: "Receives", cell: (p) => rate(p.rate_in_bps), sort: (p) => p.rate_in_bps ?? -1, number: true },
      { name: "Lanes", cell: (p) => `${p.lanes_usable} of ${p.lanes}`, sort: (p) => p.lanes - p.lanes_usable, number: true },
      { name: "Failovers", cell: (p) => p.failovers, sort: (p) => p.failovers, number: true },
      { name: "No way for", cell: (p) => duration(p.stalled_ns), sort: (p) => p.stalled_ns, number: true },
      { name: "Delay p50", cell: (p) => duration(p.owd_ns_p50), sort: (p) => p.owd_ns_p50 ?? -1, number: true },
    ]} />
  );
}

/** whole: all that happened since its beginning was looked at. */
function Happened({ rows, whole }: { rows: JobRow[]; whole: boolean }) {
  const now = nowNs.value;
  return (
    <>
      {!whole && <p class="banner" role="status">Only the newest 1000 events of all jobs were searched.</p>}
      {rows.length === 0 ? (whole && <Empty>Nothing has happened to it.</Empty>) : (
        <Table caption="What happened to it" rows={rows} id={(r) => String(r.id)} columns={[
          { name: "When", cell: (r) => <a href={hrefTo({ view: "jobs", rest: place.value.rest, query: place.value.query, at: big(r.at_utc_ns) })}>{ago(big(r.at_utc_ns), now)}</a> },
          { name: "What", cell: (r) => r.word },
          { name: "In words", cell: (r) => r.detail?.text ?? "" },
        ]} />
      )}
    </>
  );
}

type Past = JobDetail["past"];

/** Two pasts from their own beginnings on, in the coarser one's steps. */
export function aligned(a: Past, b: Past, of: "rate_bps" | "owd_ns_p99"): { seconds: number[]; lines: (number | null)[][] } {
  const step = Math.max(a.step_ns, b.step_ns);
  const lines = [a, b].map((past) => {
    const begin = Math.max(0, past.rate_bps.findIndex((v) => v !== null));
    const own = past[of].slice(begin);
    const each = step / past.step_ns;
    return Array.from({ length: Math.ceil(own.length / each) }, (_, i) => {
      const known = own.slice(i * each, (i + 1) * each).filter((v): v is number => v !== null);
      return known.length === 0 ? null : of === "rate_bps" ? known.reduce((x, y) => x + y, 0) / known.length : Math.max(...known);
    });
  });
  const length = Math.max(...lines.map((l) => l.length));
  return { seconds: Array.from({ length }, (_, i) => (i * step) / 1e9), lines: lines.map((l) => Array.from({ length }, (_, i) => l[i] ?? null)) };
}

function Runs({ first, second }: { first: JobDetail; second: JobDetail }) {
  const rates = useMemo(() => aligned(first.past, second.past, "rate_bps"), [first, second]);
  const delays = useMemo(() => aligned(first.past, second.past, "owd_ns_p99"), [first, second]);
  const lines = (of: typeof rates) => of.lines.map((values, i) => ({ name: title([first, second][i]!), values }));
  return rates.seconds.length < 2 ? <Empty>Their histories are too short to draw.</Empty> : (
    <>
      <Chart title="Throughput, each from its own beginning" span scale="zero" seconds={rates.seconds} format={rate} lines={lines(rates)} />
      <Chart title="Worst flow's p99, each from its own beginning" span scale="ratio" seconds={delays.seconds} format={duration} lines={lines(delays)} />
    </>
  );
}

const figures: [string, (j: JobDetail) => string][] = [
  ["State", (j) => j.state],
  ["Ranks", (j) => (j.ranks === null ? String(j.processes) : `${j.processes} of ${j.ranks}`)],
  ["Hosts", (j) => String(j.hosts)],
  ["Sends", (j) => rate(j.rate_bps)],
  ["Delay, median of lanes", (j) => duration(j.owd_ns_p50)],
  ["Worst flow, p99", (j) => (j.worst === null ? "–" : `${duration(j.worst.owd_ns_p99)} ${name(j.worst)}`)],
  ["Failovers", (j) => String(j.failovers ?? "–")],
  ["Without any way", (j) => duration(j.stalled_ns)],
  ["Is it the network?", (j) => j.network?.answer ?? "–"],
];

/** Another run beside this one: was the network different? It may have the same name; then it is another user's. */
function Beside({ detail, other }: { detail: JobDetail; other: string | undefined }) {
  const jobs = useResource<Page<Job>>("jobs?limit=1000", 30_000);
  const key = (j: Job) => `${j.user} ${j.job}`;
  const [, user, job] = /^(\d+) (.+)$/.exec(other ?? "") ?? [];
  const second = useResource<JobDetail>(job === undefined ? null : path(job, user), 10_000);
  const others = (jobs.data?.items ?? []).filter((j) => key(j) !== key(detail));
  return (
    <>
      <h2>Compared with another run</h2>
      <p>
        <label>Beside{" "}
          <select value={other ?? ""} onChange={(e) => go({ query: { ...place.value.query, beside: e.currentTarget.value } })}>
            <option value="">no other run</option>
            {others.map((j) => <option key={key(j)} value={key(j)}>{title(j)}</option>)}
          </select>
        </label>
      </p>
      {job !== undefined && (
        <Shown of={second} what={`job ${job}`}>
          {(d) => (
            <>
              <Runs first={detail} second={d} />
              <Table caption="Two runs side by side" rows={figures} id={([what]) => what} columns={[
                { name: "Figure", cell: ([what]) => what },
                { name: title(detail), cell: ([, of]) => of(detail), number: true },
                { name: title(d), cell: ([, of]) => of(d), number: true },
              ]} />
            </>
          )}
        </Shown>
      )}
    </>
  );
}

export function Savings() {
  const [minutes, setMinutes] = useState(150);
  const answer = useResource<SavingsAnswer>(`savings?restart_minutes=${minutes}`, 30_000, ["job"]);
  return (
    <>
      <h1>Savings</h1>
      <p>
        <label>A restart costs each GPU <input type="number" min={0} max={100_000} value={minutes} onChange={(e) => setMinutes(Math.min(100_000, Math.max(0, Math.round(Number(e.currentTarget.value) || 0))))} /> minutes: an assumption, not a measurement.</label>
      </p>
      <Shown of={answer} what="savings">
        {({ items, whole }) => items.length === 0 ? <Empty>There are no savings yet: no job had a fault.</Empty> : (
          <>
            {!whole && <p class="banner" role="status">There are too many events: only the oldest are counted.</p>}
            <div class="tiles">
              <Tile label="Restarts avoided">{items.reduce((sum, s) => sum + s.restarts_avoided, 0)}</Tile>
              <Tile label="GPU hours saved">{digits(items.reduce((sum, s) => sum + s.gpu_hours_saved, 0))}</Tile>
              <Tile label="GPU hours lost">{digits(items.reduce((sum, s) => sum + s.gpu_hours_lost, 0))}</Tile>
            </div>
            <Table caption="By job and month" rows={items} id={(s) => `${s.month} ${s.user} ${s.job}`} first="Month" columns={[
              { name: "Month", cell: (s) => s.month, sort: (s) => s.month },
              { name: "Job", cell: (s) => <a href={hrefTo({ view: "jobs", rest: s.job, query: { user: String(s.user) } })}>{s.job}</a>, sort: (s) => s.job },
              { name: "Ranks", cell: (s) => s.ranks ?? "–", sort: (s) => s.ranks ?? -1, number: true },
              { name: "Faults", cell: (s) => s.faults, sort: (s) => s.faults, number: true },
              { name: "Restarts avoided", cell: (s) => s.restarts_avoided, sort: (s) => s.restarts_avoided, number: true },
              { name: "GPU hours saved", cell: (s) => digits(s.gpu_hours_saved), sort: (s) => s.gpu_hours_saved, number: true },
              { name: "GPU hours lost", cell: (s) => digits(s.gpu_hours_lost), sort: (s) => s.gpu_hours_lost, number: true },
              { name: "Evidence", cell: (s) => (s.evidence.length === 0 ? "–" : <Evidence saving={s} />) },
            ]} />
          </>
        )}
      </Shown>
    </>
  );
}

const SHOWN = 10; // pieces of evidence at a time

/** Each restart avoided has one event as its evidence; of very many the first are listed. */
function Evidence({ saving: s }: { saving: Saving }) {
  const [shown, setShown] = useState(0);
  const count = s.evidence.length;
  return (
    <>
      <button aria-expanded={shown > 0} onClick={() => setShown(shown > 0 ? 0 : SHOWN)}>{count} {count === 1 ? "event" : "events"}</button>
      {count < s.restarts_avoided && <span class="dim"> the first {count} of {s.restarts_avoided}</span>}
      {s.evidence.slice(0, shown).map((id) => <Piece key={String(id)} id={big(id)} />)}
      {shown > 0 && shown < count && <button onClick={() => setShown(shown + SHOWN)}>Show more</button>}
    </>
  );
}

function Piece({ id }: { id: bigint }) {
  const rows = useResource<Page<JobRow>>(`events?kind=job&word=failover&after=${id - 1n}&limit=1`, 3_600_000);
  return (
    <Shown of={rows} what={`event ${id}`}>
      {(page) => {
        const row = page.items.find((r) => big(r.id) === id);
        if (row === undefined) {
          return <p class="dim">event {String(id)} is no longer kept</p>;
        }
        const at = big(row.at_utc_ns);
        return <p><a href={hrefTo({ view: "jobs", rest: row.detail?.job ?? "", query: row.detail?.user === undefined ? {} : { user: String(row.detail.user) }, at })}>{new Date(Number(at / 1_000_000n)).toISOString()}</a> {row.detail?.text}</p>;
      }}
    </Shown>
  );
}
