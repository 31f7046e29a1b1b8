// Links: every port, its state, the incident that accuses it whatever its carrier says, and its flaps; the worst first. The server looks for, sorts and cuts: a fleet may have 100,000.
import { useEffect, useState } from "preact/hooks";
import type { LiveRow, Page, Port, Series } from "../model.ts";
import { big } from "../model.ts";
import { useResource } from "../resource.ts";
import { go, hrefTo, place, shownRange } from "../route.ts";
import { nowNs } from "../now.ts";
import { accusedWords } from "../suspect.ts";
import { ago, rate, wall } from "../time.ts";
import { Chart } from "../ui/chart.tsx";
import { Cut, Empty, Mark, Shown, type Tone } from "../ui/state.tsx";
import { type Order, Table } from "../ui/table.tsx";
import { secondsOf } from "./clock.tsx";

export const portTones: Record<Port["state"], Tone> = { up: "good", down: "bad", gone: "bad", unknown: "none" };

const PAGE = 200;
const sorts: Record<string, string> = { NIC: "nic", State: "state", Incident: "incident", Since: "since", "Flaps, hour": "flaps_hour", day: "flaps_day", Speed: "speed", Receives: "receives", Sends: "sends", Errors: "errors", Rail: "rail", Leaf: "leaf" };

export function Links() {
  const { host = "", state = "", incident = "", q = "" } = place.value.query;
  const wanted = [["host", host], ["state", state], ["incident", incident], ["q", q]].map(([name, value]) => (value === "" ? "" : `&${name}=${encodeURIComponent(value ?? "")}`)).join("");
  const [by, setBy] = useState<Order>({ name: "State", down: true });
  const [skipped, setSkipped] = useState({ wanted, rows: 0 });
  const before = skipped.wanted === wanted ? skipped.rows : 0;
  const ports = useResource<Page<Port>>(`links?limit=${PAGE}&cursor=${before}&sort=${sorts[by.name]}&order=${by.down ? "desc" : "asc"}${wanted}`, 5_000, ["link", "finding", "incident", "host"]);
  const [typed, setTyped] = useState(q);
  useEffect(() => {
    const timer = setTimeout(() => typed.trim() !== q && go({ query: { ...place.value.query, q: typed.trim() } }), 250);
    return () => clearTimeout(timer);
  }, [typed]);
  const now = nowNs.value;
  const ask = (rows: number) => setSkipped({ wanted, rows });
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
        <label><input type="checkbox" checked={incident !== ""} onChange={(e) => go({ query: { ...place.value.query, incident: e.currentTarget.checked ? "accused" : "" } })} /> only those in an incident</label>{" "}
        <label>Search <input type="search" placeholder="host, NIC, leaf, switch port" value={typed} onInput={(e) => setTyped(e.currentTarget.value)} /></label>{" "}
        {host !== "" && <>of {host} <button onClick={() => go({ query: { ...place.value.query, host: "" } })}>Of all hosts</button></>}
      </p>
      <Shown of={ports} what="links">
        {(page) => page.items.length === 0 && before === 0 ? <Empty>{wanted === "" ? "No NIC has joined yet." : q === "" ? "No link has this state." : `No link has “${q}” in its names.`}</Empty> : (
          <>
            <Table caption="Ports of the fleet's NICs" rows={page.items} id={(p) => p.nic} order={{ by, set: (order) => { setBy(order); ask(0); } }} columns={[
              { name: "NIC", cell: (p) => <a title="Its host, and its history" href={hrefTo({ view: "hosts", rest: p.host, query: { nic: p.name } })}>{p.host}/{p.name}</a>, sort: byServer },
              { name: "State", cell: (p) => <Mark tone={portTones[p.state]}>{p.state}</Mark>, sort: byServer },
              { name: "Incident", cell: (p) => <Accused port={p} />, sort: byServer },
              { name: "Since", cell: (p) => (p.since_utc_ns === null ? "–" : ago(big(p.since_utc_ns), now)), sort: byServer },
              { name: "Flaps, hour", cell: (p) => p.flaps_hour ?? "–", sort: byServer, number: true },
              { name: "day", cell: (p) => p.flaps_day ?? "–", sort: byServer, number: true },
              { name: "Speed", cell: (p) => rate(p.speed_bps), sort: byServer, number: true },
              { name: "Receives", cell: (p) => rate(p.rx_bps), sort: byServer, number: true },
              { name: "Sends", cell: (p) => rate(p.tx_bps), sort: byServer, number: true },
              { name: "Errors", cell: (p) => (p.rx_errors === null ? "–" : (p.rx_errors ?? 0) + (p.tx_errors ?? 0)), sort: byServer, number: true },
              { name: "Rail", cell: (p) => p.rail, sort: byServer, number: true },
              { name: "Leaf", cell: (p) => hangsOn(p), sort: byServer },
            ]} />
            {(before > 0 || page.next !== null) && (
              <p>
                {before + 1} to {before + page.items.length}{" "}
                <button disabled={before === 0} onClick={() => ask(Math.max(0, before - PAGE))}>Before</button>{" "}
                <button disabled={page.next === null} onClick={() => ask(before + PAGE)}>Next</button>
              </p>
            )}
            {place.value.at !== null && <Changes until={place.value.at} />}
          </>
        )}
      </Shown>
    </>
  );
}

/** A NIC that swallows packets may well have carrier: what the fleet says of it stands beside what its carrier says. */
export function Accused({ port: { incident: i } }: { port: Port }) {
  return !i ? <>–</> : <a href={hrefTo({ view: "alerts", query: { incident: String(i.incident) } })}><Mark tone={i.one_of === 1 ? "bad" : "warn"}>{accusedWords(i)}</Mark></a>;
}

const byServer = () => 0; // the server sorts

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
    <Shown of={rows} what="events of links">
      {(page) => page.items.length === 0 ? <Empty>No link changed in the {place.value.range} before {wall(until)}.</Empty> : (
        <>
          <Cut page={page} what="events of links" />
          <Table caption={`Events of links before ${wall(until)}, newest first`} rows={page.items} id={(e) => String(e.id)} columns={[
            { name: "When", cell: (e) => <time title={String(e.at_utc_ns)}>{wall(big(e.at_utc_ns))}</time> },
            { name: "Host", cell: (e) => e.host ?? "–" },
            { name: "What", cell: (e) => e.detail?.text ?? e.word },
          ]} />
        </>
      )}
    </Shown>
  );
}

export function History({ port }: { port: Port }) {
  const { from, to } = shownRange(nowNs.value);
  const query = `nic=${port.nic}&since_utc_ns=${from - (from % 10_000_000_000n)}&until_utc_ns=${to - (to % 10_000_000_000n)}`;
  const rx = useResource<Series>(`series?metric=rx_bps&${query}`, 10_000);
  const tx = useResource<Series>(`series?metric=tx_bps&${query}`, 10_000);
  return (
    <Shown of={rx} what={`the history of ${port.host}/${port.name}`}>
      {(series) => <Chart scale="zero" title={`${port.host}/${port.name}`} seconds={secondsOf(series)} format={rate} lines={[{ name: "receives", values: series.values }, ...(tx.data ? [{ name: "sends", values: tx.data.values }] : [])]} />}
    </Shown>
  );
}
