// The address bar is the state that all views share: which view, which range of time, which instant. A link to it
// shows another person the same thing. "#/mesh?range=1h&at=1732358587204512031"
import { computed, signal } from "@preact/signals";

export const ranges = { "15min": 900, "1h": 3_600, "6h": 21_600, "1d": 86_400, "7d": 604_800 } as const;
export type Range = keyof typeof ranges;

export interface Place {
  view: string;
  rest: string; // after the view: "/jobs/42" → "42"
  range: Range;
  at: bigint | null; // null: now, live
  query: Readonly<Record<string, string>>; // what a view keeps for itself
}

export function parsePlace(hash: string): Place {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parameters = new URLSearchParams(search);
  const [view = "", ...rest] = path.split("/");
  const range = parameters.get("range") ?? "";
  const at = parameters.get("at") ?? "";
  const query: Record<string, string> = {};
  for (const [key, value] of parameters) {
    if (key !== "range" && key !== "at") {
      query[key] = value;
    }
  }
  return {
    view: view === "" ? "fleet" : view,
    rest: decode(rest.join("/")),
    range: range in ranges ? (range as Range) : "1h",
    at: /^\d{16,19}$/.test(at) ? BigInt(at) : null,
    query,
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function formatPlace(p: Place): string {
  const parameters = new URLSearchParams();
  if (p.range !== "1h") {
    parameters.set("range", p.range);
  }
  if (p.at !== null) {
    parameters.set("at", p.at.toString());
  }
  for (const [key, value] of Object.entries(p.query)) {
    if (value !== "") {
      parameters.set(key, value);
    }
  }
  const search = parameters.toString();
  return `#/${p.view}${p.rest === "" ? "" : `/${encodeURIComponent(p.rest)}`}${search === "" ? "" : `?${search}`}`;
}

export const place = signal<Place>(parsePlace(typeof location === "undefined" ? "" : location.hash));
export const isLive = computed(() => place.value.at === null);

/** Goes there; other views' own parameters don't come along. */
export function go(change: Partial<Place>): void {
  const moved = change.view !== undefined && change.view !== place.value.view;
  const next: Place = { ...place.value, ...(moved ? { rest: "", query: {} } : {}), ...change };
  location.hash = formatPlace(next);
}

export function hrefTo(change: Partial<Place>): string {
  return formatPlace({ ...place.value, rest: "", query: {}, ...change });
}

/** From and to of what is shown, in ns; `to` is now when live. */
export function shownRange(nowNs: bigint): { from: bigint; to: bigint } {
  const to = place.value.at ?? nowNs;
  return { from: to - BigInt(ranges[place.value.range]) * 1_000_000_000n, to };
}

export function listen(): void {
  addEventListener("hashchange", () => {
    place.value = parsePlace(location.hash);
  });
}
