// Topology: hosts under their leaves, with the state of every link, and what findings suspect above them.
import type { Finding, Page, Port } from "../model.ts";
import { useResource } from "../resource.ts";
import { hrefTo } from "../route.ts";
import { rate } from "../time.ts";
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

export function byLeaf(ports: readonly Port[]): Leaf[] {
  const leaves = new Map<string, Map<string, Port[]>>();
  for (const port of ports) {
    const leaf = port.leaf ?? "leaf not known";
    const hosts = leaves.get(leaf) ?? new Map<string, Port[]>();
    leaves.set(leaf, hosts);
    hosts.set(port.host, [...(hosts.get(port.host) ?? []), port]);
  }
  return [...leaves].sort(([a], [b]) => a.localeCompare(b, undefined, { numeric: true })).map(([name, hosts]) => ({ name, hosts: [...hosts].map(([host, list]) => ({ name: host, ports: list })) }));
}

export function suspects(findings: readonly Finding[]): string[] {
  const names = findings.filter((f) => f.open).map((f) => (typeof f.detail?.suspect === "string" ? f.detail.suspect : (f.detail?.suspect?.name ?? "")));
  return [...new Set(names)].filter((n) => n !== "");
}

const WIDTH = 74;
const DRAWN = 512; // hosts; more are a table's business

export function Topology() {
  const ports = useResource<Page<Port>>("links?limit=1000", 5_000, ["link", "finding", "host"]);
  const findings = useResource<Page<Finding>>("findings?open=true&limit=200", 5_000, ["finding"]);
  const declared = useResource<Declared>("topology", 10_000, ["host", "link"]);
  return (
    <>
      <h1>Topology</h1>
      <Shown of={ports} what="the fabric">
        {(page) => {
          if (page.items.length === 0) {
            return <Empty>No NIC has joined yet.</Empty>;
          }
          const leaves = byLeaf(page.items);
          const accused = suspects(findings.data?.items ?? []);
          return (
            <>
              <p>{accused.length === 0 ? "No element of the fabric is suspected." : <>Suspected: {accused.map((a, i) => <strong key={a}>{i > 0 ? ", " : ""}{a}</strong>)}</>}</p>
              {leaves.map((leaf) => <LeafPicture key={leaf.name} leaf={leaf} accused={accused.includes(leaf.name)} />)}
            </>
          );
        }}
      </Shown>
      <h2>As declared</h2>
      <Shown of={declared} what="the declared topology">{(d) => <Differences of={d} />}</Shown>
    </>
  );
}

function Differences({ of }: { of: Declared }) {
  if (of.declared === null) {
    return <Empty>No topology is declared: <code>foliot topology declare FILE</code> keeps what the fabric is meant to be, and differences are shown here.</Empty>;
  }
  if (of.differences.length === 0) {
    return <p><Mark tone="good">What is seen is what version {String(of.declared.version)} declares.</Mark></p>;
  }
  return (
    <>
      <p><Mark tone="warn">{of.differences.length} differences from version {String(of.declared.version)}</Mark></p>
      <Table caption="Where what is seen differs from what is declared" rows={of.differences} id={(d) => `${d.difference} ${d.host} ${d.name ?? ""}`} columns={[
        { name: "Difference", cell: (d) => d.difference, sort: (d) => d.difference },
        { name: "Host", cell: (d) => d.host, sort: (d) => d.host },
        { name: "NIC", cell: (d) => d.name ?? "–" },
        { name: "In words", cell: (d) => d.text },
      ]} />
    </>
  );
}

function LeafPicture({ leaf, accused }: { leaf: Leaf; accused: boolean }) {
  const hosts = leaf.hosts.slice(0, DRAWN);
  const width = Math.max(hosts.length * WIDTH + 20, 240);
  const middle = width / 2;
  const bad = leaf.hosts.reduce((n, h) => n + h.ports.filter((p) => p.state !== "up").length, 0);
  return (
    <section>
      <h2>{leaf.name}{accused ? " (suspected)" : ""}</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label={`${leaf.name}: ${leaf.hosts.length} hosts, ${bad} links that are not up`}>
        <svg class="fabric" viewBox={`0 0 ${width} 130`} role="img" aria-label={`${leaf.name} and its hosts`}>
          <rect class={`box ${accused ? "bad" : ""}`} x={middle - 60} y={8} width={120} height={26} rx={5} />
          <text x={middle} y={25}>{leaf.name}</text>
          {hosts.map((host, i) => {
            const x = 10 + i * WIDTH + WIDTH / 2;
            return (
              <g key={host.name}>
                {host.ports.map((port, k) => {
                  const at = x + (k - (host.ports.length - 1) / 2) * Math.min(12, 50 / host.ports.length);
                  return <line key={port.nic} class={port.state === "up" ? "" : port.state === "unknown" ? "warn" : "bad"} x1={middle + (at - middle) * 0.25} y1={34} x2={at} y2={86}><title>{`${port.host}/${port.name}: ${port.state}, sends ${rate(port.tx_bps)}`}</title></line>;
                })}
                <rect class="box" x={x - 33} y={86} width={66} height={24} rx={4} />
                <text x={x} y={102}>{host.name.slice(0, 11)}</text>
              </g>
            );
          })}
        </svg>
      </div>
      {leaf.hosts.length > DRAWN && <p class="dim">{leaf.hosts.length - DRAWN} more hosts: see <a href={hrefTo({ view: "links" })}>Links</a>.</p>}
    </section>
  );
}
