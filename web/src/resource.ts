// One thing that a view shows, asked for again and again: loading, ready, stale and failed are states that every
// view draws alike (ui/state.tsx).
import { useEffect, useRef, useState } from "preact/hooks";
import { type Failure, get, onEvent, type Read } from "./api.ts";

export interface Resource<T> {
  data: T | null;
  at: number; // ms; when `data` was true
  failure: Failure | null; // of the last try
  everyMs: number;
  again: () => void;
}

const GAP_MS = 100;

/** `path` null: nothing is asked for. `on`: kinds of live events after which it asks at once, but not more often than each
 *  GAP_MS, and for a quarter of the time at most: a storm of events over a large fleet is no storm of questions.
 *  `read`: of what isn't JSON; the same function each time. */
export function useResource<T>(path: string | null, everyMs = 5_000, on: readonly string[] = [], read?: Read<T>): Resource<T> {
  const [state, setState] = useState<{ path: string | null; data: T | null; at: number; failure: Failure | null }>({
    path: null,
    data: null,
    at: 0,
    failure: null,
  });
  const ask = useRef<() => void>(() => undefined);
  const kinds = on.join(" ");
  useEffect(() => {
    if (path === null) {
      return undefined;
    }
    const abort = new AbortController();
    let timer = 0;
    let begun = 0;
    let gap = GAP_MS;
    let busy = false;
    let due = false; // something happened since it was asked
    const wait = (ms: number) => {
      clearTimeout(timer);
      timer = setTimeout(run, ms) as unknown as number;
    };
    const run = async () => {
      clearTimeout(timer);
      if (busy) {
        due = true;
        return;
      }
      busy = true;
      due = false;
      begun = Date.now();
      const answer = await get<T>(path, abort.signal, read);
      busy = false;
      gap = Math.min(Math.max(GAP_MS, 4 * (Date.now() - begun)), 1_000);
      if (abort.signal.aborted) {
        return;
      }
      setState((was) =>
        answer.ok
          ? { path, data: answer.data, at: answer.at, failure: null }
          : { path, data: was.path === path ? was.data : null, at: was.path === path ? was.at : 0, failure: answer.failure },
      );
      wait(due ? gap : everyMs);
    };
    ask.current = () => void run();
    const off = onEvent((event) => {
      if (kinds.split(" ").includes(event.kind)) {
        due = busy;
        wait(Math.max(0, gap - (Date.now() - begun)));
      }
    });
    void run();
    return () => {
      abort.abort();
      clearTimeout(timer);
      off();
    };
  }, [path, everyMs, kinds]);
  const mine = state.path === path;
  return { data: mine ? state.data : null, at: mine ? state.at : 0, failure: mine ? state.failure : null, everyMs, again: () => ask.current() };
}
