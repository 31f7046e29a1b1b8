// What open incidents accuse: elements by kind, place and direction, and whether it is for sure or one of several. All that a picture
// marks comes from here and so from what Fleet tells: never from the words of a sentence.
import type { Element, Incident, Ns, Port } from "./model.ts";

export interface Suspect {
  element: Element;
  incident: Ns;
  oneOf: number; // 1: it is that; n: one of n that it may be
  others: boolean; // or something that isn't listed
}

const FABRIC = ["host", "nic", "leaf", "spine", "router", "trunk"];

/** What is surer first. */
export function suspectsOf(incidents: readonly Incident[]): Suspect[] {
  const found = incidents.flatMap((i) => {
    const sure = (i.one_of?.length ?? 0) === 0;
    const elements = sure ? (i.element ? [i.element] : []) : i.one_of!;
    return elements.map((element): Suspect => ({ element, incident: i.incident, oneOf: sure ? 1 : Math.max(2, elements.length), others: !sure && i.others === true }));
  });
  return found.filter((s) => FABRIC.includes(s.element.kind)).sort((a, b) => a.oneOf - b.oneOf);
}

export const isSure = (s: Suspect) => s.oneOf === 1;

/** "suspected"; "may be it: one of 3 or more" */
export function howSure(s: Suspect): string {
  return isSure(s) ? "suspected" : `may be it: one of ${s.oneOf}${s.others ? " or more" : ""}`;
}

type Place = Element["places"][number];
const isAt = (p: Place | undefined, name: string) => p !== undefined && (p.name === name || p.address === name);

/** Of the cable between two switches: what accuses the way from the lower to the higher one, the way down, and it at all. */
export interface Accusation {
  up: Suspect | null;
  down: Suspect | null;
  any: Suspect;
}

export function ofCable(suspects: readonly Suspect[], low: string, high: string): Accusation | null {
  const found = suspects.filter((s) => s.element.kind === "trunk").flatMap((s) => {
    const [a, b] = s.element.places;
    const along = isAt(a, low) && isAt(b, high);
    const { direction } = s.element;
    return !along && !(isAt(a, high) && isAt(b, low)) ? []
      : [{ s, up: direction === "both" || direction === (along ? "out" : "in"), down: direction === "both" || direction === (along ? "in" : "out") }];
  });
  return found.length === 0 ? null : { up: found.find((f) => f.up)?.s ?? null, down: found.find((f) => f.down)?.s ?? null, any: found[0]!.s };
}

export function ofSwitch(suspects: readonly Suspect[], name: string): Suspect | null {
  return suspects.find((s) => ["leaf", "spine", "router"].includes(s.element.kind) && isAt(s.element.places[0], name)) ?? null;
}

export function ofHost(suspects: readonly Suspect[], host: string): Suspect | null {
  return suspects.find((s) => s.element.kind === "host" && (s.element.places[0]?.host ?? s.element.places[0]?.name) === host) ?? null;
}

export function ofNic(suspects: readonly Suspect[], nic: number): Suspect | null {
  return suspects.find((s) => s.element.kind === "nic" && s.element.places[0]?.nic === nic) ?? null;
}

/** What of it, in words; "": all of it, or not known. */
export function directionOf({ kind, direction, places: [a, b] }: Element): string {
  if (direction !== "out" && direction !== "in") {
    return "";
  }
  return kind === "trunk" && a && b ? (direction === "out" ? `${a.name} → ${b.name}` : `${b.name} → ${a.name}`) : direction === "out" ? "what it sends" : "what it receives";
}

/** Of a port, as the server says it. */
export function accusedWords(i: NonNullable<Port["incident"]>): string {
  const of = i.direction === "out" ? ": what it sends" : i.direction === "in" ? ": what it receives" : "";
  return `${i.one_of > 1 ? `one of ${i.one_of} that may be it` : i.kind === "host" ? "its host is suspected" : "suspected"}${of}`;
}
