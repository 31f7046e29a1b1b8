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

/** `path` null: nothing is asked for. `on`: kinds of live events after which it asks at once (at most twice a second).
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
    let busy = false;
    const run = async () => {
      clearTimeout(timer);
      if (busy) {
        return;
      }
      busy = true;
      begun = Date.now();
      const answer = await get<T>(path, abort.signal, read);
      busy = false;
      if (abort.signal.aborted) {
        return;
      }
      setState((was) =>
        answer.ok
          ? { path, data: answer.data, at: answer.at, failure: null }
          : { path, data: was.path === path ? was.data : null, at: was.path === path ? was.at : 0, failure: answer.failure },
      );
      timer = setTimeout(run, everyMs) as unknown as number;
    };
    ask.current = () => void run();
    const off = onEvent((event) => {
      if (kinds.split(" ").includes(event.kind)) {
        clearTimeout(timer);
        timer = setTimeout(run, Math.max(0, 500 - (Date.now() - begun))) as unknown as number;
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
