// Links: every port, its state and its flaps; the worst first.
import { useState } from "preact/hooks";
import type { LiveRow, Page, Port, Series } from "../model.ts";
import { big } from "../model.ts";
import { useResource } from "../resource.ts";
import { go, place, shownRange } from "../route.ts";
import { nowNs } from "../now.ts";
import { ago, rate, wall } from "../time.ts";
import { Chart } from "../ui/chart.tsx";
import { Cut, Empty, Mark, Shown, type Tone } from "../ui/state.tsx";
import { Table } from "../ui/table.tsx";
import { secondsOf } from "./clock.tsx";

export const portTones: Record<Port["state"], Tone> = { up: "good", down: "bad", gone: "bad", unknown: "none" };
const rank: Record<Port["state"], number> = { down: 3, gone: 2, unknown: 1, up: 0 };

export function Links() {
  const { host = "", state = "" } = place.value.query;
  const wanted = `${host === "" ? "" : `&host=${encodeURIComponent(host)}`}${state === "" ? "" : `&state=${encodeURIComponent(state)}`}`;
  const ports = useResource<Page<Port>>(`links?limit=1000${wanted}`, 5_000, ["link", "finding", "host"]);
  const [picked, setPicked] = useState<Port | null>(null);
  const [search, setSearch] = useState("");
  const now = nowNs.value;
  return (
    <>
      <h1>Links</h1>
      <p>
        <label>State{" "}
          <select value={state} onChange={(e) => go({ query: { ...place.value.query, state: e.currentTarget.value } })}>
            <option value="">all</option>
            {Object.keys(portTones).map((word) => <option key={word} value={word}>{word}</option>)}
          </select>
        </label>{" "}
        <label>Search <input type="search" placeholder="host, NIC, leaf, switch port" value={search} onInput={(e) => setSearch(e.currentTarget.value)} /></label>{" "}
        {host !== "" && <>of {host} <button onClick={() => go({ query: { ...place.value.query, host: "" } })}>Of all hosts</button></>}
      </p>
      <Shown of={ports} what="links">
        {(page) => page.items.length === 0 ? <Empty>{wanted === "" ? "No NIC has joined yet." : "No link is like that."}</Empty> : (
          <>
            {search !== "" && !page.items.some((p) => matches(p, search)) && <Empty>No link of those shown has “{search}” in its names.</Empty>}
            {page.next !== null && <p class="banner" role="status">The first {page.items.length} of them; others can be looked for by their state, or from their host in Fleet.</p>}
            <Table caption="Ports of the fleet's NICs" rows={page.items.filter((p) => matches(p, search))} id={(p) => p.nic} first="State" columns={[
              { name: "NIC", cell: (p) => <button onClick={() => setPicked(p)}>{p.host}/{p.name}</button>, sort: (p) => `${p.host}/${p.name}` },
              { name: "State", cell: (p) => <Mark tone={portTones[p.state]}>{p.state}</Mark>, sort: (p) => rank[p.state] * 1e6 + (p.flaps_day ?? 0) },
              { name: "Since", cell: (p) => (p.since_utc_ns === null ? "–" : ago(big(p.since_utc_ns), now)), sort: (p) => Number(p.since_utc_ns ?? 0) },
              { name: "Flaps, hour", cell: (p) => p.flaps_hour ?? "–", sort: (p) => p.flaps_hour ?? -1, number: true },
              { name: "day", cell: (p) => p.flaps_day ?? "–", sort: (p) => p.flaps_day ?? -1, number: true },
              { name: "Speed", cell: (p) => rate(p.speed_bps), sort: (p) => p.speed_bps ?? -1, number: true },
              { name: "Receives", cell: (p) => rate(p.rx_bps), sort: (p) => p.rx_bps ?? -1, number: true },
              { name: "Sends", cell: (p) => rate(p.tx_bps), sort: (p) => p.tx_bps ?? -1, number: true },
              { name: "Errors", cell: (p) => (p.rx_errors === null ? "–" : (p.rx_errors ?? 0) + (p.tx_errors ?? 0)), sort: (p) => (p.rx_errors ?? 0) + (p.tx_errors ?? 0), number: true },
              { name: "Rail", cell: (p) => p.rail, sort: (p) => p.rail, number: true },
              { name: "Leaf", cell: (p) => hangsOn(p), sort: (p) => hangsOn(p) },
            ]} />
            {picked && <History port={picked} />}
            {place.value.at !== null && <Changes until={place.value.at} />}
          </>
        )}
      </Shown>
    </>
  );
}

/** Each word of the search is in one of its names. */
export function matches(p: Port, search: string): boolean {
  const names = `${p.host}/${p.name} rail${p.rail} ${hangsOn(p)} ${p.state}`.toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => names.includes(word));
}

/** Where its cable ends: the leaf's name, and the switch's own word for the port, where it gives one. */
export function hangsOn(p: Port): string {
  const leaf = p.leaf ?? p.first_switch ?? null;
  const said = p.switch === null ? null : `${p.switch === leaf ? "" : `${p.switch} `}${p.switch_port ?? ""}`.trim();
  return [leaf, said].filter((part) => part !== null && part !== "").join(" · ") || "–";
}

/** Up to a moment chosen: what links had done. */
function Changes({ until }: { until: bigint }) {
  const { from } = shownRange(nowNs.value);
  const rows = useResource<Page<LiveRow>>(`events?kind=link&limit=200&since_utc_ns=${from}&until_utc_ns=${until + 1n}`, 60_000);
  return (
    <Shown of={rows} what="what links did">
      {(page) => page.items.length === 0 ? <Empty>No link changed in the {place.value.range} before {wall(until)}.</Empty> : (
        <>
          <Cut page={page} what="events of links" />
          <Table caption={`What links did before ${wall(until)}, newest first`} rows={page.items} id={(e) => String(e.id)} columns={[
            { name: "When", cell: (e) => <time title={String(e.at_utc_ns)}>{wall(big(e.at_utc_ns))}</time> },
            { name: "Host", cell: (e) => e.host ?? "–" },
            { name: "What", cell: (e) => e.detail?.text ?? e.word },
          ]} />
        </>
      )}
    </Shown>
  );
}

function History({ port }: { port: Port }) {
  const { from, to } = shownRange(nowNs.value);
  const query = `nic=${port.nic}&since_utc_ns=${from - (from % 10_000_000_000n)}&until_utc_ns=${to - (to % 10_000_000_000n)}`;
  const rx = useResource<Series>(`series?metric=rx_bps&${query}`, 10_000);
  const tx = useResource<Series>(`series?metric=tx_bps&${query}`, 10_000);
  return (
    <Shown of={rx} what={`the history of ${port.host}/${port.name}`}>
      {(series) => <Chart title={`${port.host}/${port.name}`} seconds={secondsOf(series)} format={rate} lines={[{ name: "receives", values: series.values }, ...(tx.data ? [{ name: "sends", values: tx.data.values }] : [])]} />}
    </Shown>
  );
}
