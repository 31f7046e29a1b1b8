// Topology: the middle of the fabric with its trunks, hosts under their leaves with the state and load of every link, what open incidents
// accuse among them, and where all that isn't as declared.
import { useState } from "preact/hooks";
import { get, parse } from "../api.ts";
import type { Fabric, Incident, Page, Port } from "../model.ts";
import { useResource } from "../resource.ts";
import { hrefTo } from "../route.ts";
import { rate } from "../time.ts";
import { accusedWords, directionOf, howSure, isSure, ofHost, ofSwitch, type Suspect, suspectsOf } from "../suspect.ts";
import { load, loadText, Middle } from "../ui/fabric.tsx";
import { Empty, Mark, Shown } from "../ui/state.tsx";
import { Table } from "../ui/table.tsx";

/** As declared beside as seen: docs/topology.md. */
export interface Declared {
  declared: { version: number; who: string } | null;
  differences: { difference: string; host: string; name: string | null; text: string }[];
}

export interface Leaf {
  name: string;
  hosts: { name: string; ports: Port[] }[];
}

const UNKNOWN = "leaf not known";

/** A NIC hangs where it joined; else on the switch that its packets pass first; else on the one that says so (LLDP). */
export function byLeaf(ports: readonly Port[]): Leaf[] {
  const leaves = new Map<string, Map<string, Port[]>>();
  for (const port of ports) {
    const leaf = port.leaf ?? port.first_switch ?? port.switch ?? UNKNOWN;
    const hosts = leaves.get(leaf) ?? new Map<string, Port[]>();
    leaves.set(leaf, hosts);
    hosts.set(port.host, [...(hosts.get(port.host) ?? []), port]);
  }
  return [...leaves].sort(([a], [b]) => a.localeCompare(b, undefined, { numeric: true })).map(([name, hosts]) => ({ name, hosts: [...hosts].map(([host, list]) => ({ name: host, ports: list })) }));
}

const WIDTH = 74;
const DRAWN = 512; // hosts; more are a table's business
const PAGES = 16; // of 1,000 NICs
const OPEN = 8; // leaves of which all are shown unasked

/** All pages of a list, up to PAGES of them. */
async function readAll(response: Response): Promise<Page<Port>> {
  const found = parse(await response.text()) as Page<Port>;
  for (let left = PAGES - 1; found.next !== null && left > 0; left--) {
    const more = await get<Page<Port>>(`links?limit=1000&cursor=${found.next}`);
    if (!more.ok) {
      break; // what is there is said to be a part
    }
    found.items = [...found.items, ...more.data.items];
    found.next = more.data.next;
  }
  return found;
}

export function Topology() {
  const ports = useResource<Page<Port>>("links?limit=1000", 10_000, ["link"], readAll);
  const incidents = useResource<Page<Incident>>("incidents?open=true", 5_000, ["incident", "finding"]);
  const fabric = useResource<Fabric>("fabric?limit=16384", 10_000, ["finding"]);
  const declared = useResource<Declared>("topology", 10_000, ["host", "link"]);
  const suspects = suspectsOf(incidents.data?.items ?? []);
  return (
    <>
      <h1>Topology</h1>
      <Accused of={suspects} known={incidents.data !== null && incidents.failure === null} />
      <h2>Between the leaves</h2>
      {fabric.failure?.kind === "missing" ? <Empty>This controller's version has no spines and trunks.</Empty>
        : <Shown of={fabric} what="spines and trunks">{(f) => <Middle fabric={f} ports={ports.data?.items ?? []} suspects={suspects} />}</Shown>}
      <h2>Leaves and their hosts</h2>
      <Shown of={ports} what="the fabric">
        {(page) => page.items.length === 0 ? <Empty>No NIC has joined yet.</Empty> : <Leaves leaves={byLeaf(page.items)} suspects={suspects} more={page.next !== null} />}
      </Shown>
      <h2>As declared</h2>
      <Shown of={declared} what="the declared topology">{(d) => <Differences of={d} />}</Shown>
    </>
  );
}

/** A line for each incident: what it is, or what it may be. */
function Accused({ of, known }: { of: Suspect[]; known: boolean }) {
  const name = ({ element }: Suspect) => `${element.name ?? element.kind}${directionOf(element) === "" ? "" : ` (${directionOf(element)})`}`;
  const incidents = [...new Set(of.map((s) => String(s.incident)))].map((number) => of.filter((s) => String(s.incident) === number));
  return !known ? <p class="warn">The present suspects are not known.</p> : of.length === 0 ? <p>No open incident suspects an element of the fabric.</p> : (
    <ul class="plain">
      {incidents.map((all) => (
        <li key={String(all[0]!.incident)}>
          {isSure(all[0]!) ? <>Suspected: <strong>{name(all[0]!)}</strong></> : <>One of: {all.map((s, i) => <span key={name(s)}>{i > 0 ? ", " : ""}<strong>{name(s)}</strong></span>)}{all[0]!.others ? " and others" : ""}</>}{" · "}
          <a href={hrefTo({ view: "alerts", query: { incident: String(all[0]!.incident) } })}>incident {String(all[0]!.incident)}</a>
        </li>
      ))}
    </ul>
  );
}

function Differences({ of }: { of: Declared }) {
  if (of.declared === null) {
    return <Empty>No topology is declared: <code>foliot topology declare FILE</code> stores the planned fabric. Then differences are shown here.</Empty>;
  }
  if (of.differences.length === 0) {
    return <p><Mark tone="good">The fabric is as declared in version {String(of.declared.version)}.</Mark></p>;
  }
  return (
    <>
      <p><Mark tone="warn">{of.differences.length} differences from version {String(of.declared.version)}</Mark></p>
      <Table caption="Differences from the declared topology" rows={of.differences} id={(d) => `${d.difference} ${d.host} ${d.name ?? ""}`} columns={[
        { name: "Difference", cell: (d) => d.difference, sort: (d) => d.difference },
        { name: "Host", cell: (d) => d.host, sort: (d) => d.host },
        { name: "NIC", cell: (d) => d.name ?? "–" },
        { name: "In words", cell: (d) => d.text },
      ]} />
    </>
  );
}

function Leaves({ leaves, suspects, more }: { leaves: Leaf[]; suspects: Suspect[]; more: boolean }) {
  return (
    <>
      {more && <p class="banner" role="status">Only the first {leaves.reduce((n, l) => n + l.hosts.reduce((k, h) => k + h.ports.length, 0), 0)} NICs are drawn and counted. All are in <a href={hrefTo({ view: "links" })}>Links</a>.</p>}
      {leaves.map((leaf) => <LeafPicture key={leaf.name} leaf={leaf} suspects={suspects} unasked={leaves.length <= OPEN} />)}
    </>
  );
}

function LeafPicture({ leaf, suspects, unasked }: { leaf: Leaf; suspects: Suspect[]; unasked: boolean }) {
  const accused = ofSwitch(suspects, leaf.name);
  const ports = leaf.hosts.flatMap((h) => h.ports);
  const down = ports.filter((p) => p.state === "down" || p.state === "gone").length;
  const unknown = ports.filter((p) => p.state === "unknown").length;
  const ill = ports.filter((p) => p.incident).length;
  const [asked, setAsked] = useState<boolean | null>(null);
  const shown = asked ?? (unasked || accused !== null || down > 0 || ill > 0);
  return (
    <section>
      <h3>
        {leaf.name}{accused !== null ? ` (${howSure(accused)})` : ""}{" "}
        <Mark tone={down > 0 ? "bad" : unknown > 0 ? "none" : "good"}>
          {leaf.hosts.length} hosts, {down > 0 ? `${down} of ${ports.length} links down` : unknown > 0 ? `${unknown} of ${ports.length} links not known` : `all ${ports.length} links up`}
        </Mark>{" "}
        {ill > 0 && <><Mark tone="bad">{ill} of them {ill === 1 ? "is" : "are"} in an incident</Mark>{" "}</>}
        <span class="dim">{loadText(load(ports))}</span>{" "}
        <button aria-expanded={shown} onClick={() => setAsked(!shown)}>{shown ? "Hide" : "Show"}</button>
      </h3>
      {shown && <Hosts leaf={leaf} accused={accused} suspects={suspects} />}
    </section>
  );
}

/** Thicker the nearer to its speed. */
function thickness(port: Port): number {
  const most = Math.max(port.tx_bps ?? 0, port.rx_bps ?? 0);
  return port.speed_bps === null || port.speed_bps === 0 ? 1.5 : 1.5 + 5 * Math.min(1, most / port.speed_bps);
}

/** A mark of what is accused: "maybe": it is one of several. */
const tone = (s: Suspect | null) => (s === null ? "" : isSure(s) ? "bad" : "maybe");

function lineOf(p: Port): string {
  return p.state === "down" || p.state === "gone" || p.incident?.one_of === 1 ? "bad" : p.incident ? "maybe" : p.state === "unknown" ? "gone" : "";
}

function Hosts({ leaf, accused, suspects }: { leaf: Leaf; accused: Suspect | null; suspects: Suspect[] }) {
  const hosts = leaf.hosts.slice(0, DRAWN);
  const width = Math.max(hosts.length * WIDTH + 20, 240);
  const middle = width / 2;
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label={`${leaf.name} and its hosts`}>
        <svg class="fabric" viewBox={`0 0 ${width} 130`} width={width} height={130} role="img" aria-label={`${leaf.name} and its hosts`}>
          <rect class={`box ${tone(accused)}`} x={middle - 60} y={8} width={120} height={26} rx={5} />
          <text x={middle} y={25}>{leaf.name.slice(0, 18)}</text>
          {hosts.map((host, i) => {
            const x = 10 + i * WIDTH + WIDTH / 2;
            return (
              <g key={host.name}>
                {host.ports.map((port, k) => {
                  const at = x + (k - (host.ports.length - 1) / 2) * Math.min(12, 50 / host.ports.length);
                  return <line key={port.nic} class={lineOf(port)} stroke-width={thickness(port)} x1={middle + (at - middle) * 0.25} y1={34} x2={at} y2={86}><title>{`${port.host}/${port.name}: ${port.state}${port.incident ? `, ${accusedWords(port.incident)}` : ""}, sends ${rate(port.tx_bps)}, receives ${rate(port.rx_bps)} of ${rate(port.speed_bps)}`}</title></line>;
                })}
                <rect class={`box ${tone(ofHost(suspects, host.name))}`} x={x - 33} y={86} width={66} height={24} rx={4} />
                <text x={x} y={102}>{host.name.slice(0, 11)}</text>
              </g>
            );
          })}
        </svg>
      </div>
      {leaf.hosts.length > DRAWN && <p class="dim">{leaf.hosts.length - DRAWN} more hosts: see <a href={hrefTo({ view: "links" })}>Links</a>.</p>}
    </>
  );
}
