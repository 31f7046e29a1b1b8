// A small picture of the fabric in which one element, or each that it may be, is lit: where a fault is, at a glance. Beside its sentence, never instead of it.
import type { Element, Fabric, Port } from "../model.ts";

const [WIDTH, HEIGHT, DRAWN] = [232, 104, 24];

/** Names of switches, hosts and "nic 7" that the elements are; "leaf0 spine1" of a trunk. */
export function litOf(elements: readonly Element[]): Set<string> {
  const name = (p: Element["places"][number]) => (p.kind === "nic" ? `nic ${p.nic}` : p.kind === "host" ? (p.host ?? p.name) : p.name);
  return new Set(elements.flatMap((e) => (e.kind === "trunk" ? [e.places.map(name).join(" "), e.places.map(name).reverse().join(" ")] : e.places.map(name))));
}

/** In the order that people count; lit ones first where not all have room. */
function room(names: string[], lit: ReadonlySet<string>): string[] {
  const sorted = [...names].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
  return sorted.length <= DRAWN ? sorted : [...sorted.filter((n) => lit.has(n)), ...sorted.filter((n) => !lit.has(n))].slice(0, DRAWN).sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
}

export function SmallFabric({ fabric, ports, elements }: { fabric: Fabric; ports: readonly Port[]; elements: readonly Element[] }) {
  const lit = litOf(elements);
  const ends = new Set(elements.flatMap((e) => e.places.map((p) => p.name)));
  const leafOf = (p: Port) => p.leaf ?? p.first_switch ?? p.switch ?? "?";
  const under = new Map<string, Map<string, boolean>>(); // leaf → host → is lit
  for (const p of ports) {
    const hosts = under.get(leafOf(p)) ?? new Map<string, boolean>();
    under.set(leafOf(p), hosts);
    hosts.set(p.host, (hosts.get(p.host) ?? false) || lit.has(p.host) || lit.has(`nic ${p.nic}`));
  }
  const lowest = Math.min(...fabric.switches.map((s) => s.tier));
  const leaves = room([...new Set([...under.keys(), ...fabric.switches.filter((s) => s.tier === lowest).map((s) => s.name)])], ends);
  const spines = room(fabric.switches.filter((s) => s.tier > lowest).map((s) => s.name), ends);
  const x = (names: readonly string[], i: number) => ((i + 0.5) * WIDTH) / names.length;
  return leaves.length === 0 ? null : (
    <svg class="small" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} aria-hidden="true">
      {spines.map((s, i) => leaves.map((l, k) => (
        <line key={`${s} ${l}`} class={lit.has(`${l} ${s}`) ? "lit" : ""} x1={x(spines, i)} y1={14} x2={x(leaves, k)} y2={58} />
      )))}
      {spines.map((s, i) => <circle key={s} class={lit.has(s) ? "lit" : ""} cx={x(spines, i)} cy={11} r={5}><title>{s}</title></circle>)}
      {leaves.map((l, k) => {
        const hosts = [...(under.get(l) ?? [])].slice(0, 32);
        const step = Math.min(9, (WIDTH / leaves.length - 4) / Math.max(1, hosts.length));
        return (
          <g key={l}>
            {hosts.map(([host, is], i) => {
              const at = x(leaves, k) + (i - (hosts.length - 1) / 2) * step;
              return <g key={host}><line class={is ? "lit" : ""} x1={x(leaves, k)} y1={64} x2={at} y2={86} /><rect class={is ? "lit" : ""} x={at - Math.min(3.5, step / 2.6)} y={86} width={Math.min(7, step / 1.3)} height={9} /></g>;
            })}
            <circle class={lit.has(l) ? "lit" : ""} cx={x(leaves, k)} cy={61} r={5}><title>{l}</title></circle>
          </g>
        );
      })}
    </svg>
  );
}
