// One host: how it is, what is wrong with it and what happened to it, its NICs, and whether it may take a job.
import { changes } from "../changes.ts";
import type { AuditGate, Finding, Host as HostRow, LiveRow, Page, Port } from "../model.ts";
import { big } from "../model.ts";
import { nowNs } from "../now.ts";
import { useResource } from "../resource.ts";
import { go, hrefTo, place, shownRange } from "../route.ts";
import { ago, bytes, duration, rate, wall } from "../time.ts";
import { FindingSentence } from "../ui/sentence.tsx";
import { Cut, Empty, Mark, Shown, Tile, type Tone } from "../ui/state.tsx";
import { Table } from "../ui/table.tsx";
import { Check } from "./check.tsx";
import { healthTones } from "./fleet.tsx";
import { Accused, hangsOn, History, portTones } from "./links.tsx";

type WithLinks = HostRow & { links: Port[] };
const gateTones: Record<AuditGate["status"], Tone> = { pass: "good", fail: "bad", warn: "warn", unknown: "warn", skip: "none" };

export function Host() {
  const name = place.value.rest;
  const host = useResource<WithLinks>(`hosts/${encodeURIComponent(name)}`, 5_000, ["host", "link", "finding", "incident"]);
  return (
    <>
      <h1>Host {name}</h1>
      <Shown of={host} what={`host ${name}`}>{(h) => <One key={h.name} h={h} />}</Shown>
    </>
  );
}

function One({ h }: { h: WithLinks }) {
  const of = `host=${encodeURIComponent(h.name)}`;
  const now = nowNs.value;
  const { from, to } = shownRange(now);
  const findings = useResource<Page<Finding>>(`findings?open=true&limit=50&${of}`, 5_000, ["finding"]);
  const events = useResource<Page<LiveRow>>(`events?limit=200&${of}&since_utc_ns=${from - (from % 10_000_000_000n)}&until_utc_ns=${to - (to % 10_000_000_000n) + 10_000_000_000n}`, 10_000, ["finding", "link", "host"]);
  const gate = useResource<AuditGate>(`audit/hosts/${encodeURIComponent(h.name)}/gate`, 30_000);
  return (
    <>
      <div class="tiles">
        <Tile label="Health" tone={healthTones[h.health]}>{h.health}</Tile>
        <Tile label="Heard" tone={h.freshness === "live" ? "good" : "bad"}>{h.heard_utc_ns === null ? "never" : ago(big(h.heard_utc_ns), now)}</Tile>
        <Tile label="Clock" tone={h.clock.status === "SYNCED" ? "good" : "warn"} href={hrefTo({ view: "clock" })}>{h.clock.status.toLowerCase()}{h.clock.statistical_ns === null ? "" : ` ± ${duration(h.clock.statistical_ns)}`}</Tile>
        <Tile label="NICs up" tone={h.nics_up === h.nics ? "good" : h.nics_up === null ? "none" : "bad"}>{h.nics_up ?? "–"} of {h.nics}</Tile>
        <Tile label="Paths dead / lossy" tone={h.paths_dead === null ? "none" : h.paths_dead > 0 ? "bad" : h.paths_lossy ? "warn" : "good"}>{h.paths_dead ?? "–"} / {h.paths_lossy ?? "–"} of {h.paths ?? "–"}</Tile>
        {gate.data !== null && <Tile label="May take a job (audit)" tone={gateTones[gate.data.status]} href={hrefTo({ view: "audit", query: { host: h.name } })}>{gate.data.status}</Tile>}
        <Tile label={`Agent ${h.agent.version}`}>{h.agent.cpu_ppm === null ? "–" : `${(h.agent.cpu_ppm / 10_000).toFixed(2)} %, ${bytes(h.agent.memory_bytes)}`}</Tile>
      </div>
      {gate.data !== null && gate.data.status !== "pass" && <p class="dim">{gate.data.text}</p>}
      {h.clock.why !== null && <p class="warn">Its clock: {h.clock.why}</p>}
      {h.sensors_off.length > 0 && <p class="warn">Its agent lacks: {h.sensors_off.join("; ")}</p>}
      <h2>Its findings now</h2>
      <Shown of={findings} what="findings">
        {(page) => page.items.length === 0 ? <Empty>This host has no open finding.</Empty> : <><Cut page={page} what="findings" />{page.items.map((f) => <FindingSentence key={String(f.id)} finding={f} now={now} />)}</>}
      </Shown>
      <Nics ports={h.links} />
      <h2>What happened to it</h2>
      <Shown of={events} what="events">{(page) => <Events page={page} />}</Shown>
      <Check hosts={[h.name]} />
    </>
  );
}

function Nics({ ports }: { ports: readonly Port[] }) {
  const port = ports.find((p) => p.name === place.value.query["nic"]);
  const now = nowNs.value;
  return (
    <>
      <h2>NICs</h2>
      <Table caption="Its NICs" rows={ports} id={(p) => p.nic} columns={[
        { name: "NIC", cell: (p) => <button class="link" title="Its history" onClick={() => go({ query: { nic: p.name } })}>{p.name}</button>, sort: (p) => p.name },
        { name: "State", cell: (p) => <Mark tone={portTones[p.state]}>{p.state}</Mark>, sort: (p) => p.state },
        { name: "Incident", cell: (p) => <Accused port={p} /> },
        { name: "Since", cell: (p) => (p.since_utc_ns === null ? "–" : ago(big(p.since_utc_ns), now)) },
        { name: "Flaps, hour", cell: (p) => p.flaps_hour ?? "–", number: true },
        { name: "day", cell: (p) => p.flaps_day ?? "–", number: true },
        { name: "Speed", cell: (p) => rate(p.speed_bps), number: true },
        { name: "Receives", cell: (p) => rate(p.rx_bps), number: true },
        { name: "Sends", cell: (p) => rate(p.tx_bps), number: true },
        { name: "Errors", cell: (p) => (p.rx_errors === null ? "–" : (p.rx_errors ?? 0) + (p.tx_errors ?? 0)), number: true },
        { name: "Rail", cell: (p) => p.rail, number: true },
        { name: "Leaf", cell: (p) => hangsOn(p) },
      ]} />
      {port !== undefined && <History key={port.nic} port={port} />}
    </>
  );
}

function Events({ page }: { page: Page<LiveRow> }) {
  const rows = changes(page.items, true);
  return rows.length === 0 ? <Empty>Nothing in this range.</Empty> : (
    <>
      <Cut page={page} what="events of this range" />
      <Table caption="What happened to it, newest first" rows={rows} most={50} id={(c) => c.id} columns={[
        { name: "When", cell: (c) => <time title={String(c.atNs)}>{wall(c.atNs)}</time> },
        { name: "What", cell: (c) => c.text },
        { name: "Who", cell: (c) => c.who ?? "–" },
      ]} />
    </>
  );
}
