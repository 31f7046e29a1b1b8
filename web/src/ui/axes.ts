// What stands around a heat map and lies on it: names of leaves, hosts and NICs, borders between them, and of a pair some of whose paths
// are dead the share of them. Drawn on a canvas of its own above the map.
import { type Latency, type Shades, seek, SHADE_PART, shadeOfCode } from "../latency.ts";
import { isSure, ofHost, ofNic, ofSwitch, type Suspect } from "../suspect.ts";
import { css, headings, palette, runs, type Run, thinned, type Window } from "./heat.ts";

const MARGIN = { left: 156, top: 56 }; // pixels of the page; less on a phone: app.css has the last word

export interface Axis {
  leaves: Run[];
  hosts: Run[];
  rows: Run[]; // each row and column
}

/** What stands before a name, by "nic 7", "host h1", "leaf l1": ■ an open incident accuses it, or a NIC of it; ▲ it may be it. */
export type Marks = ReadonlyMap<string, "■" | "▲">;

/** Of the whole matrix, by NICs. */
export function marksOf(latency: Latency, suspects: readonly Suspect[]): Marks {
  const found = new Map<string, "■" | "▲">();
  latency.places.forEach((p, i) => {
    const leafRow = `leaf ${p.leaf || "leaf not known"}`;
    const [nic, host, leaf] = [ofNic(suspects, latency.ids[i]!), ofHost(suspects, p.host), ofSwitch(suspects, p.leaf)];
    for (const [s, names] of [[leaf, [leafRow]], [host, [leafRow, `host ${p.host}`]], [nic, [leafRow, `host ${p.host}`, `nic ${latency.ids[i]}`]]] as const) {
      for (const name of s === null ? [] : names) {
        found.set(name, isSure(s!) || found.get(name) === "■" ? "■" : "▲");
      }
    }
  });
  return found;
}

export function axisOf(latency: Latency, marks: Marks = new Map()): Axis {
  const marked = (name: string, text: string) => (marks.has(name) ? `${marks.get(name)}${text}` : text);
  const areLeaves = latency.places.every((p) => p.host === ""); // rows that are leaves are named once
  const isNic = latency.places.some((p, i) => p.host !== "" && latency.labels[i] !== p.host);
  const along = (kind: "leaf" | "host") => runs(latency.places, (p) => p[kind]).map((r) => ({ ...r, text: r.text === "" ? "" : marked(`${kind} ${r.text}`, r.text) }));
  return {
    leaves: areLeaves ? [] : along("leaf"),
    hosts: along("host"),
    rows: latency.labels.map((label, i) => {
      const text = label.slice(label.indexOf("/") + 1) + (latency.places[i]!.rail === "" ? "" : ` · rail ${latency.places[i]!.rail}`);
      return { begin: i, end: i + 1, text: marked(isNic ? `nic ${latency.ids[i]}` : areLeaves ? `leaf ${label}` : `host ${label}`, text) };
    }),
  };
}

interface Look {
  context: CanvasRenderingContext2D;
  left: number; // of the map
  top: number;
  side: number; // of the map, in pixels of the page
  window: Window;
  ink: string;
  dim: string;
}

/** Names on both axes, the widest that have room: NICs beside their host beside their leaf. */
function names(l: Look, axis: Axis): void {
  const lines = [axis.rows.length > axis.hosts.length || axis.hosts.every((h) => h.text === "") ? axis.rows : [], axis.hosts, axis.leaves].filter((line) => line.some((r) => r.text !== ""));
  const shown = lines.filter((line, i) => i === lines.length - 1 || headings(line, l.window.x, l.window.span, l.side, 11).length * 2 > line.length * Math.min(1, l.window.span / axis.rows.length)).slice(0, 3);
  l.context.textBaseline = "middle";
  shown.forEach((line, depth) => {
    const across = l.top - 10 - 17 * depth;
    l.context.font = `${depth === shown.length - 1 && shown.length > 1 ? "600 " : ""}11px system-ui, sans-serif`;
    l.context.fillStyle = depth === 0 ? l.dim : l.ink;
    const room = (from: number, least: number) => {
      const found = headings(line, from, l.window.span, l.side, least);
      return found.length > 0 ? found : thinned(line, from, l.window.span, l.side, least);
    };
    const upright = depth === 0 ? room(l.window.x, 13).filter((h) => h.text !== "") : [];
    if (upright.some((h) => l.context.measureText(h.text).width > h.to - h.at - 4)) {
      for (const h of upright) { // names that have no room side by side stand
        l.context.save();
        l.context.translate(l.left + (h.at + h.to) / 2, l.top - 6);
        l.context.rotate(-Math.PI / 2);
        write(l.context, h.text, 0, 0, l.top - 8 - 17 * (shown.length - 1), "left");
        l.context.restore();
      }
    } else {
      for (const h of headings(line, l.window.x, l.window.span, l.side, 24)) {
        write(l.context, h.text, l.left + (h.at + h.to) / 2, across, h.to - h.at - 4, "center");
      }
    }
    const width = (l.left - 8) / shown.length;
    for (const h of room(l.window.y, 13)) {
      write(l.context, h.text, l.left - 6 - width * depth, l.top + (h.at + h.to) / 2, width - 4, "right");
    }
  });
}

function write(context: CanvasRenderingContext2D, text: string, x: number, y: number, room: number, align: CanvasTextAlign): void {
  let shown = context.measureText(text).width <= room ? text : text.split(" · ", 1)[0]!; // first the rail goes, then letters
  while (shown.length > 1 && context.measureText(shown).width > room) {
    shown = shown.slice(0, -2) + (shown.length > 2 ? "…" : "");
  }
  if (context.measureText(shown).width <= room) {
    context.textAlign = align;
    context.fillText(shown, x, y);
  }
}

function borders(l: Look, all: readonly Run[], width: number, alpha: number): void {
  const { context, side, window: w, left, top } = l;
  if (all.length < 2 || (side * all.length) / w.span < 1 || (all.length * 6 * w.span) / Math.max(1, all.at(-1)!.end) > side) {
    return; // nothing to part, or lines would hide the cells
  }
  context.globalAlpha = alpha;
  context.lineWidth = width;
  context.strokeStyle = l.ink;
  context.beginPath();
  for (const r of all.slice(1)) {
    const [x, y] = [((r.begin - w.x) * side) / w.span, ((r.begin - w.y) * side) / w.span];
    if (x > 0 && x < side) {
      context.moveTo(left + x, top - 14);
      context.lineTo(left + x, top + side);
    }
    if (y > 0 && y < side) {
      context.moveTo(left - 14, top + y);
      context.lineTo(left + side, top + y);
    }
  }
  context.stroke();
  context.globalAlpha = 1;
}

const CELL_MIN = 13; // pixels: below them a cell has one colour

/** A cell of which some paths are dead: the delay of those alive, and from below as much red as there are dead ones. */
function parts(l: Look, latency: Latency, codes: Int16Array, shades: Shades): void {
  const unit = l.side / l.window.span;
  if (unit < CELL_MIN) {
    return;
  }
  const [last, end] = [Math.min(latency.ids.length, Math.ceil(l.window.y + l.window.span)), l.window.x + l.window.span];
  for (let row = Math.floor(l.window.y); row < last; row++) {
    for (let i = seek(latency, row, Math.floor(l.window.x)); i < latency.first[row + 1]! && latency.from[i]! < end; i++) {
      if (shades.of[i] === SHADE_PART) {
        const [x, y] = [l.left + (latency.from[i]! - l.window.x) * unit, l.top + (row - l.window.y) * unit];
        const share = Math.max(0.15, latency.dead[i]! / latency.paths[i]!);
        l.context.fillStyle = codes[i] === 0 ? l.dim : css(palette[shadeOfCode(shades, codes[i]!)]!); // 0: no delay is known of those alive
        l.context.fillRect(x, y, unit, unit);
        l.context.fillStyle = css(palette[255]!);
        l.context.fillRect(x, y + unit * (1 - share), unit, unit * share);
      }
    }
  }
}

export function drawAxes(canvas: HTMLCanvasElement, side: number, window: Window, axis: Axis, latency: Latency, codes: Int16Array, shades: Shades): void {
  const context = canvas.getContext("2d");
  if (!context) {
    return;
  }
  const style = getComputedStyle(canvas);
  const margin = canvas.parentElement ? getComputedStyle(canvas.parentElement) : style;
  const [left, top] = [parseFloat(margin.paddingLeft) || MARGIN.left, parseFloat(margin.paddingTop) || MARGIN.top];
  const ratio = globalThis.devicePixelRatio || 1;
  const [width, height] = [Math.round((side + left) * ratio), Math.round((side + top) * ratio)];
  if (canvas.width !== width || canvas.height !== height) {
    Object.assign(canvas, { width, height });
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const look: Look = { context, left, top, side, window, ink: style.color, dim: style.getPropertyValue("--dim") || style.color };
  context.save();
  context.beginPath();
  context.rect(left, top, side, side);
  context.clip();
  parts(look, latency, codes, shades);
  context.restore();
  borders(look, axis.hosts, 1, 0.35);
  borders(look, axis.leaves, 2, 0.9);
  names(look, axis);
}
