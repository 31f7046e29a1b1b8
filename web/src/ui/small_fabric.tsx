// A small picture of the fabric in which one element, or each that it may be, is lit: where a fault is, and in which direction, at a
// glance. Beside its sentence, never instead of it.
import type { Element, Fabric, Port } from "../model.ts";

const [WIDTH, HEIGHT, DRAWN, HOSTS] = [232, 104, 24, 32];

/** Names of switches, hosts and "nic 7" that the elements are; "leaf0 spine1" of a trunk, by either end. With it the direction: of a
 *  trunk from the first to the second in its name, of a host or a NIC what it sends or receives. */
export function litOf(elements: readonly Element[]): Map<string, Element["direction"]> {
  const names = (p: Element["places"][number]) => (p.kind === "nic" ? [`nic ${p.nic}`] : p.kind === "host" ? [p.host ?? p.name] : [p.name, ...(p.address === undefined ? [] : [p.address])]);
  const other = { out: "in", in: "out", both: "both" } as const;
  return new Map(elements.flatMap(({ kind, direction, places: [a, b] }): [string, Element["direction"]][] => {
    const [first, second] = [a, b].map((p) => (p === undefined ? [] : names(p)));
    return kind !== "trunk" ? [...first!, ...second!].map((n) => [n, b === undefined ? direction : null])
      : first!.flatMap((x) => second!.flatMap((y): [string, Element["direction"]][] => [[`${x} ${y}`, direction], [`${y} ${x}`, direction === null ? null : other[direction]]]));
  }));
}

const inOrder = (a: string, b: string) => a.localeCompare(b, undefined, { numeric: true });

/** In the order that people count; lit ones first where not all have room. */
export function room(names: readonly string[], lit: (name: string) => boolean, most: number): string[] {
  const sorted = [...names].sort(inOrder);
  return sorted.length <= most ? sorted : [...sorted.filter(lit), ...sorted.filter((n) => !lit(n))].slice(0, most).sort(inOrder);
}

/** A line, lit where `is` is a direction: from its first end to its second one "out". null: neither is known. undefined: not lit. */
function Way({ is, may, x1, y1, x2, y2 }: { is: Element["direction"] | undefined; may: boolean; x1: number; y1: number; x2: number; y2: number }) {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const long = Math.hypot(dx, dy);
  const tip = (at: number, way: number) => { // a triangle at that part of the line, to its second end (1) or its first (-1)
    const [x, y, u, v] = [x1 + dx * at, y1 + dy * at, (way * dx) / long, (way * dy) / long];
    return `M${(x + 6 * u).toFixed(1)} ${(y + 6 * v).toFixed(1)}L${(x - 3 * u - 4 * v).toFixed(1)} ${(y - 3 * v + 4 * u).toFixed(1)}L${(x - 3 * u + 4 * v).toFixed(1)} ${(y - 3 * v - 4 * u).toFixed(1)}z`;
  };
  const lit = may ? "lit may" : "lit";
  return (
    <>
      <line class={is === undefined ? "" : lit} x1={x1} y1={y1} x2={x2} y2={y2} />
      {(is === "out" || is === "both") && <path class={`${lit} out`} d={tip(is === "both" ? 0.7 : 0.5, 1)} />}
      {(is === "in" || is === "both") && <path class={`${lit} in`} d={tip(is === "both" ? 0.3 : 0.5, -1)} />}
    </>
  );
}

/** may: it is one of the elements. */
export function SmallFabric({ fabric, ports, elements, may }: { fabric: Fabric; ports: readonly Port[]; elements: readonly Element[]; may: boolean }) {
  const lit = litOf(elements);
  const ends = new Set(elements.flatMap((e) => e.places.flatMap((p) => [p.name, p.address ?? p.name])));
  const mark = (is: boolean) => (!is ? "" : may ? "lit may" : "lit");
  const under = new Map<string, Map<string, Element["direction"] | undefined>>(); // leaf → host → what is lit of it
  for (const p of ports) {
    const leaf = p.leaf ?? p.first_switch ?? p.switch ?? "?";
    const hosts = under.get(leaf) ?? new Map<string, Element["direction"] | undefined>();
    under.set(leaf, hosts);
    const is = lit.has(`nic ${p.nic}`) ? lit.get(`nic ${p.nic}`) : lit.get(p.host);
    hosts.set(p.host, is !== undefined ? is : hosts.get(p.host));
    if (is !== undefined) {
      ends.add(leaf); // where a lit one hangs is drawn
    }
  }
  const lowest = Math.min(...fabric.switches.map((s) => s.tier));
  const leaves = room([...new Set([...under.keys(), ...fabric.switches.filter((s) => s.tier === lowest).map((s) => s.name)])], (n) => ends.has(n), DRAWN);
  const spines = room(fabric.switches.filter((s) => s.tier > lowest).map((s) => s.name), (n) => ends.has(n), DRAWN);
  const x = (names: readonly string[], i: number) => ((i + 0.5) * WIDTH) / names.length;
  return leaves.length === 0 ? null : (
    <svg class="small" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} aria-hidden="true">
      {spines.map((s, i) => leaves.map((l, k) => <Way key={`${s} ${l}`} is={lit.get(`${s} ${l}`)} may={may} x1={x(spines, i)} y1={14} x2={x(leaves, k)} y2={58} />))}
      {spines.map((s, i) => <circle key={s} class={mark(lit.has(s))} cx={x(spines, i)} cy={11} r={5}><title>{s}</title></circle>)}
      {leaves.map((l, k) => {
        const all = under.get(l) ?? new Map<string, Element["direction"] | undefined>();
        const hosts = room([...all.keys()], (h) => all.get(h) !== undefined, HOSTS);
        const step = Math.min(9, (WIDTH / leaves.length - 4) / Math.max(1, hosts.length));
        return (
          <g key={l}>
            {hosts.map((host, i) => {
              const at = x(leaves, k) + (i - (hosts.length - 1) / 2) * step;
              const is = all.get(host);
              return (
                <g key={host}>
                  <Way is={is} may={may} x1={at} y1={86} x2={x(leaves, k)} y2={64} />
                  <rect class={mark(is !== undefined)} x={at - Math.min(3.5, step / 2.6)} y={86} width={Math.min(7, step / 1.3)} height={9}><title>{host}</title></rect>
                </g>
              );
            })}
            <circle class={mark(lit.has(l))} cx={x(leaves, k)} cy={61} r={5}><title>{l}</title></circle>
          </g>
        );
      })}
    </svg>
  );
}
