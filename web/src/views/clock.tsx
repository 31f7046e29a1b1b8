// Clock: every host's two bounds, and who is out.
import { useState } from "preact/hooks";
import type { Host, Page, Series } from "../model.ts";
import { big } from "../model.ts";
import { useResource } from "../resource.ts";
import { shownRange } from "../route.ts";
import { nowNs } from "../now.ts";
import { duration } from "../time.ts";
import { Chart } from "../ui/chart.tsx";
import { Empty, Mark, Shown, type Tone } from "../ui/state.tsx";
import { Table } from "../ui/table.tsx";

export const clockTones: Record<Host["clock"]["status"], Tone> = { SYNCED: "good", HOLDOVER: "warn", DISRUPTED: "bad", UNKNOWN: "none" };

export function Clock() {
  const hosts = useResource<Page<Host>>("hosts?limit=1000", 5_000, ["host", "finding"]);
  const [picked, setPicked] = useState<string | null>(null);
  return (
    <>
      <h1>Clock</h1>
      <Shown of={hosts} what="clocks">
        {(page) => {
          if (page.items.length === 0) {
            return <Empty>No host has joined yet.</Empty>;
          }
          const out = page.items.filter((h) => h.clock.status !== "SYNCED");
          const lines = new Set(page.items.map((h) => h.clock.timeline).filter((t) => t !== null));
          return (
            <>
              {page.next !== null && <p class="banner" role="status">Only the first {page.items.length} hosts are shown. Fleet has the number of all synchronised hosts.</p>}
              <p>
                {out.length === 0 ? <Mark tone="good">All {page.items.length} hosts are synchronised</Mark> : <Mark tone="warn">{out.length} of {page.items.length} hosts are not synchronised</Mark>}
                {lines.size > 1 && <> <Mark tone="bad">{lines.size} timelines: hosts that share none can't compare times</Mark></>}
              </p>
              <Table caption="The true time is always within the hard bound, and within the likely bound in 9,999 of 10,000 readings" rows={page.items} id={(h) => h.name} first="Hard bound" columns={[
                { name: "Host", cell: (h) => <button onClick={() => setPicked(h.name)}>{h.name}</button>, sort: (h) => h.name },
                { name: "Status", cell: (h) => <Mark tone={clockTones[h.clock.status]}>{h.clock.status.toLowerCase()}</Mark>, sort: (h) => h.clock.status },
                { name: "Hard bound", cell: (h) => (h.clock.hard_ns === null ? "–" : `± ${duration(h.clock.hard_ns)}`), sort: (h) => h.clock.hard_ns ?? Number.MAX_VALUE, number: true },
                { name: "Likely", cell: (h) => (h.clock.statistical_ns === null ? "–" : `± ${duration(h.clock.statistical_ns)}`), sort: (h) => h.clock.statistical_ns ?? Number.MAX_VALUE, number: true },
                { name: "Own clock off by", cell: (h) => (h.clock.offset_ns === null ? "–" : duration(Number(h.clock.offset_ns))), sort: (h) => Math.abs(Number(h.clock.offset_ns ?? 0)), number: true },
                { name: "Rate", cell: (h) => (h.clock.rate_ppb === null ? "–" : `${(h.clock.rate_ppb / 1000).toFixed(3)} ppm`), sort: (h) => h.clock.rate_ppb ?? 0, number: true },
                { name: "Neighbours", cell: (h) => `${h.clock.edges_live ?? "–"} of ${h.clock.edges_chosen ?? "–"}`, sort: (h) => h.clock.edges_live ?? -1, number: true },
                { name: "Why", cell: (h) => h.clock.why ?? "" },
              ]} />
              {picked !== null && <History host={picked} />}
            </>
          );
        }}
      </Shown>
    </>
  );
}

function History({ host }: { host: string }) {
  const { from, to } = shownRange(nowNs.value);
  const query = `host=${encodeURIComponent(host)}&since_utc_ns=${from - (from % 10_000_000_000n)}&until_utc_ns=${to - (to % 10_000_000_000n)}`;
  const hard = useResource<Series>(`series?metric=clock_hard_ns&${query}`, 10_000);
  const likely = useResource<Series>(`series?metric=clock_statistical_ns&${query}`, 10_000);
  return (
    <Shown of={hard} what={`the history of ${host}`}>
      {(series) => series.values.every((v) => v === null) ? <Empty>{host} reported nothing in this range.</Empty> : (
        <Chart scale="ratio" title={`Bounds of ${host}`} seconds={secondsOf(series)} format={duration} lines={[{ name: "hard", values: series.values }, ...(likely.data ? [{ name: "likely", values: likely.data.values }] : [])]} />
      )}
    </Shown>
  );
}

export function secondsOf(series: Series): number[] {
  const begin = Number(big(series.from_utc_ns)) / 1e9;
  return series.values.map((_, i) => begin + (i * series.step_ns) / 1e9);
}
