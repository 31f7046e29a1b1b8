// The matrix of an audit: every NIC with every NIC, as a heat map, and each NIC's own side of it.
import { codeOf, DEAD, type Latency } from "../latency.ts";
import type { AuditMatrix, AuditMatrixNic } from "../model.ts";
import { useResource } from "../resource.ts";
import { duration } from "../time.ts";
import { HeatMap } from "../ui/heatmap.tsx";
import { Empty, Mark, Shown } from "../ui/state.tsx";
import { Table } from "../ui/table.tsx";

/** As the heat map of the mesh has it: rows receive. A cell that is not measured is left out. */
export function latencyOf(m: AuditMatrix): Latency {
  const size = m.nics.length;
  const from: number[] = [], codes: number[] = [], dead: number[] = [];
  const first = new Uint32Array(size + 1);
  for (let to = 0; to < size; to++) {
    for (let sender = 0; sender < size; sender++) {
      const ns = m.delay_ns?.[sender]?.[to] ?? null;
      if (ns !== null) {
        from.push(sender);
        codes.push(ns === -1 ? 0 : codeOf(ns));
        dead.push(ns === -1 ? 1 : 0);
      }
    }
    first[to + 1] = from.length;
  }
  return {
    atNs: null, stepS: 0, first,
    ids: Uint32Array.from(m.nics, (n) => n.nic),
    labels: m.nics.map((n) => `${n.host}/${n.name}`),
    from: Uint32Array.from(from),
    p50: Int16Array.from(codes), p99: Int16Array.from(codes),
    state: Uint8Array.from(dead, (d) => (d === 1 ? DEAD : 1)),
    paths: new Uint8Array(from.length).fill(1), dead: Uint8Array.from(dead),
    places: m.nics.map((n) => ({ leaf: n.leaf ?? "", host: n.host, rail: n.name })),
  };
}

const astray = (n: AuditMatrixNic) => n.leaf_found !== null && n.leaf_found !== n.leaf;
const worst = (n: AuditMatrixNic) => Math.max(n.out_ns ?? 0, n.in_ns ?? 0);

export function Matrix({ id }: { id: string }) {
  const matrix = useResource<AuditMatrix>(`audit/runs/${id}/matrix`, 60_000);
  return matrix.failure?.kind === "missing" ? null : (
    <>
      <h2>Every NIC with every NIC</h2>
      <Shown of={matrix} what="the matrix">
        {(m) => (m.nics.length === 0 ? <Empty>No NIC that you may see is in it.</Empty> : <Cells m={m} />)}
      </Shown>
    </>
  );
}

function Cells({ m }: { m: AuditMatrix }) {
  const latency = m.delay_ns === undefined ? null : latencyOf(m);
  const missing = Object.entries(m.unmeasured ?? {}).map(([why, count]) => `${count} ${why}`).join(", ");
  const side = (ns: number | null) => (ns === null ? "–" : m.limit_ns !== null && ns > m.limit_ns ? <Mark tone="bad">{duration(ns)}</Mark> : duration(ns));
  return (
    <>
      {m.cells !== undefined && <p>{m.measured} of {m.cells} cells are measured{missing === "" ? "" : `; not: ${missing}`}.</p>}
      {latency === null ? <p class="dim">The map is shown for at most 512 NICs.</p> : <HeatMap latency={latency} codes={latency.p50} what="NICs" onPick={() => undefined} />}
      <Table caption="Delays and losses of each NIC" rows={m.nics} id={(n) => String(n.nic)} first="Receiving" columns={[
        { name: "NIC", cell: (n) => `${n.host}/${n.name}`, sort: (n) => `${n.host}/${n.name}` },
        { name: "Leaf", cell: (n) => n.leaf ?? "–", sort: (n) => n.leaf ?? "" },
        { name: "As near as", cell: (n) => (astray(n) ? <Mark tone="bad">{n.leaf_found}</Mark> : n.leaf_found ?? "–"), sort: (n) => (astray(n) ? 1 : 0), number: true },
        { name: "Not measured", cell: (n) => (n.note === null ? n.unmeasured ?? "–" : `${n.unmeasured ?? "–"}: ${n.note}`), sort: (n) => n.unmeasured ?? 0, number: true },
        { name: "Lost", cell: (n) => (n.lost_out === null ? "–" : `${n.lost_out} sent, ${n.lost_in} to here`), sort: (n) => (n.lost_out ?? 0) + (n.lost_in ?? 0), number: true },
        { name: "Sending", cell: (n) => side(n.out_ns), sort: (n) => n.out_ns ?? 0, number: true },
        { name: "Receiving", cell: (n) => side(n.in_ns), sort: worst, number: true },
      ]} />
    </>
  );
}
