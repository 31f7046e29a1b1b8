// What a view shows when it can't show its subject: loading, empty, failed; and the mark of a stale one.
import type { ComponentChildren } from "preact";
import type { Resource } from "../resource.ts";

const STALE_MS = 30_000;

export function Loading({ what }: { what: string }) {
  return (
    <p class="state" role="status">
      Loading {what}…
    </p>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="state">{children}</p>;
}

export function Failed({ text, again }: { text: string; again?: () => void }) {
  return (
    <div class="state failed" role="alert">
      <p>{text}</p>
      {again && <button onClick={again}>Try again</button>}
    </div>
  );
}

/** Shows `children` of what there is; says so if it is old. */
export function Shown<T>({ of, what, children }: { of: Resource<T>; what: string; children: (data: T) => ComponentChildren }) {
  if (of.data === null) {
    return of.failure ? <Failed text={of.failure.text} again={of.again} /> : <Loading what={what} />;
  }
  const age = Date.now() - of.at;
  const stale = of.failure !== null || age > Math.max(STALE_MS, 2 * of.everyMs);
  return (
    <div class={stale ? "stale" : ""}>
      {stale && (
        <p class="banner" role="status">
          As of {new Date(of.at).toTimeString().slice(0, 8)}, not now. {of.failure?.text ?? ""}
        </p>
      )}
      {children(of.data)}
    </div>
  );
}

/** Of a page that isn't all there is: a list that is cut says so. */
export function Cut({ page, what }: { page: { items: readonly unknown[]; next: string | null }; what: string }) {
  return page.next === null ? null : <p class="dim">The newest {page.items.length} {what}; there are more.</p>;
}

export type Tone = "good" | "warn" | "bad" | "none";
export const shapes: Record<Tone, string> = { good: "●", warn: "▲", bad: "■", none: "○" };

/** Never by colour alone: each tone has a shape, and a word beside it. */
export function Mark({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return (
    <span class={`mark ${tone}`}>
      <span aria-hidden="true">{shapes[tone]}</span> {children}
    </span>
  );
}

export function Tile({ label, tone = "none", href, children }: { label: string; tone?: Tone; href?: string; children: ComponentChildren }) {
  const body = (
    <>
      <span class="label">{label}</span>
      <span class={`value ${tone}`}>{children}</span>
    </>
  );
  return href === undefined ? <div class="tile">{body}</div> : <a class="tile" href={href}>{body}</a>;
}
