// A page for views under test: as much of a document as Preact asks for, and a controller of canned answers. What only a browser
// can tell (layout, colours, keys, policies) is test/web's business.
import type { TestContext } from "node:test";
import { type ComponentChild, h, render } from "preact";
import { parsePlace, place } from "../../src/route.ts";

type Listener = (event: object) => void;

class Node {
  parentNode: Node | null = null;
  childNodes: Node[] = [];
  attributes = new Map<string, string>();
  listeners = new Map<string, Listener[]>();
  style = {};
  data = "";
  value?: string;
  disabled?: boolean;
  onclick = null; // known events: Preact looks for them
  onchange = null;
  oninput = null;
  onsubmit = null;
  readonly ownerDocument = document_;

  constructor(readonly nodeType: number, readonly localName: string) {}

  get nodeName() { return this.localName; }
  get firstChild() { return this.childNodes[0] ?? null; }
  get nextSibling(): Node | null { return this.parentNode?.childNodes[this.parentNode.childNodes.indexOf(this) + 1] ?? null; }
  get textContent(): string { return this.data + this.childNodes.map((c) => c.textContent).join(""); }
  get clientWidth() { return 800; }

  insertBefore(child: Node, before: Node | null): Node {
    child.remove();
    this.childNodes.splice(before === null ? this.childNodes.length : this.childNodes.indexOf(before), 0, child);
    child.parentNode = this;
    return child;
  }
  appendChild(child: Node): Node { return this.insertBefore(child, null); }
  removeChild(child: Node): void {
    this.childNodes = this.childNodes.filter((c) => c !== child);
    child.parentNode = null;
  }
  remove(): void { this.parentNode?.removeChild(this); }
  setAttribute(name: string, value: unknown): void { this.attributes.set(name, String(value)); }
  removeAttribute(name: string): void { this.attributes.delete(name); }
  getAttribute(name: string): string | null { return this.attributes.get(name) ?? null; }
  addEventListener(type: string, listener: Listener): void { this.listeners.set(type, [...(this.listeners.get(type) ?? []), listener]); }
  removeEventListener(type: string, listener: Listener): void { this.listeners.set(type, (this.listeners.get(type) ?? []).filter((l) => l !== listener)); }

  all(name: string): Node[] {
    return this.childNodes.flatMap((c) => [...(c.localName === name ? [c] : []), ...c.all(name)]);
  }
  fire(type: string): void {
    for (const listener of this.listeners.get(type) ?? []) {
      listener.call(this, { type, target: this, currentTarget: this, preventDefault: () => undefined } as never);
    }
  }
}

const document_ = {
  createElement: (name: string) => new Node(1, name),
  createElementNS: (_: string, name: string) => new Node(1, name),
  createTextNode: (text: string) => Object.assign(new Node(3, "#text"), { data: text }),
};

export interface Page {
  asked: string[]; // of the API, in order
  answers: Record<string, unknown>; // by what comes after /api/v1/; a function is given the address and the body; "POST …" is that method's. What isn't here is 404
  root: Node;
  /** Until that text is there, or that is true. */
  until: (what: string | RegExp | (() => boolean)) => Promise<void>;
  text: () => string;
  button: (name: string | RegExp) => Node;
  /** Of the table that is captioned so: its cells, row by row. */
  table: (caption: string) => string[][];
  links: () => Record<string, string>; // by text
  choose: (option: string) => void; // in the first select that has it
}

const PATIENCE_MS = 60_000;
const SETTLE_MS = 100; // Preact runs effects up to 35 ms after it has drawn

/** Draws a view at an address, as the browser would, until the test is over and nothing is on its way any more: an answer that comes after the last
 *  expectation and can't be drawn fails the test that gave it, not one in seventy. */
export function open(test: TestContext, view: () => preact.JSX.Element, hash: string, answers: Page["answers"]): Page {
  const root = new Node(1, "main");
  const page: Page = {
    asked: [], answers, root,
    text: () => root.textContent,
    until: async (what) => {
      const there = () => (typeof what === "function" ? what() : root.textContent.match(what) !== null);
      for (const end = Date.now() + PATIENCE_MS; !there(); await new Promise((done) => setTimeout(done, 2))) {
        if (Date.now() > end) {
          throw new Error(`expected ${what}, found: ${root.textContent}`);
        }
      }
    },
    button: (name) => root.all("button").find((b) => b.textContent.match(name))!,
    table: (caption) => {
      const table = root.all("table").find((t) => t.all("caption")[0]?.textContent === caption);
      return (table?.all("tr") ?? []).slice(1).map((row) => row.all("td").map((cell) => cell.textContent));
    },
    links: () => Object.fromEntries(root.all("a").map((a) => [a.textContent, a.getAttribute("href") ?? String((a as unknown as { href?: string }).href)])),
    choose: (option) => {
      const select = root.all("select").find((s) => s.all("option").some((o) => o.textContent === option))!;
      select.value = optionValue(select.all("option").find((o) => o.textContent === option)!);
      select.fire("change");
    },
  };
  const globals = globalThis as unknown as Record<string, unknown>;
  Object.assign(globals, {
    document: document_,
    location: { set hash(to: string) { place.value = parsePlace(to); } },
    requestAnimationFrame: (run: () => void) => setTimeout(run, 0),
    getComputedStyle: () => ({ color: "rgb(0, 0, 0)" }),
    ResizeObserver: class { observe() {} disconnect() {} },
    fetch: async (address: string, init?: { method?: string; body?: string }) => {
      const path = address.replace("/api/v1/", "");
      page.asked.push(path);
      const found = answers[`${init?.method} ${path}`] ?? answers[path] ?? answers[path.split("?")[0]!];
      const body = typeof found === "function" ? (found as (path: string, body?: string) => unknown)(path, init?.body) : found;
      return body === undefined ? new Response('{"error":{"message":"no such thing"}}', { status: 404 }) : new Response(JSON.stringify(body));
    },
  });
  place.value = parsePlace(hash);
  test.after(async () => {
    for (let before = -1; before !== page.asked.length; ) {
      before = page.asked.length;
      await new Promise((done) => setTimeout(done, SETTLE_MS));
    }
    render(null, root as never);
  });
  render(h(view, null) as ComponentChild, root as never);
  return page;
}

const optionValue = (option: Node) => option.getAttribute("value") ?? option.value ?? option.textContent;
