// The controller's REST API from a browser: bearer token, ETags, errors as values, live events. docs/openapi.yaml is
// its specification.
import { signal } from "@preact/signals";

const KEY = "foliot-token";

export type Role = "viewer" | "operator" | "admin";
export const token = signal<string | null>(typeof sessionStorage === "undefined" ? null : sessionStorage.getItem(KEY));
export const role = signal<Role | null>(null);

export interface Failure {
  kind: "unreachable" | "refused" | "missing" | "limited" | "broken";
  status: number; // 0: no answer
  text: string; // what to tell the user
}
export type Answer<T> = { ok: true; data: T; at: number; etag: string | null } | { ok: false; failure: Failure };

/** Takes the token if the controller knows it; else says why not. */
export async function signIn(text: string): Promise<Failure | null> {
  const answer = await call<unknown>("GET", "status", undefined, undefined, text);
  if (!answer.ok) {
    return answer.failure;
  }
  sessionStorage.setItem(KEY, text);
  token.value = text;
  return null;
}

/** By a link's code, which is worth nothing afterwards. */
export async function signInBy(code: string): Promise<Failure | null> {
  const answer = await call<{ token: string }>("POST", "sign-in", { code }, undefined, null);
  return answer.ok ? signIn(answer.data.token) : answer.failure;
}

export function signOut(): void {
  sessionStorage.removeItem(KEY);
  token.value = null;
  role.value = null;
}

const kept = new Map<string, { etag: string; data: unknown }>(); // by address: for 304
const KEPT_MAX = 64;

/** How a body becomes what is shown; what it throws is a broken answer. */
export type Read<T> = (response: Response) => Promise<T>;
const readJson = async <T>(response: Response) => parse(await response.text()) as T;

/** GET /api/v1/<path>. Throws nothing; an aborted request is "unreachable". */
export async function get<T>(path: string, signal?: AbortSignal, read?: Read<T>): Promise<Answer<T>> {
  return call<T>("GET", path, undefined, signal, token.value, read);
}

export async function call<T>(method: string, path: string, body?: unknown, abort?: AbortSignal, bearer = token.value, read: Read<T> = readJson): Promise<Answer<T>> {
  const headers: Record<string, string> = { Accept: "application/json, */*;q=0.9" };
  const known = method === "GET" ? kept.get(path) : undefined;
  if (bearer !== null) {
    headers["Authorization"] = `Bearer ${bearer}`;
  }
  if (known) {
    headers["If-None-Match"] = known.etag;
  }
  const init: RequestInit = { method, headers, cache: "no-store" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(body);
  }
  if (abort) {
    init.signal = abort;
  }
  let response: Response;
  try {
    response = await fetch(`/api/v1/${path}`, init);
  } catch {
    return failed("unreachable", 0, "The controller doesn't answer. Jobs, clocks and failover work without it.");
  }
  const at = Date.now();
  if (response.status === 304 && known) {
    return { ok: true, data: known.data as T, at, etag: known.etag };
  }
  if (!response.ok) {
    return refuse(response);
  }
  try {
    const data = response.status === 204 ? (null as T) : await read(response);
    const etag = response.headers.get("ETag");
    if (method === "GET" && etag !== null) {
      kept.delete(path);
      kept.set(path, { etag, data });
      if (kept.size > KEPT_MAX) {
        kept.delete(kept.keys().next().value as string);
      }
    }
    return { ok: true, data, at, etag };
  } catch {
    return failed("broken", response.status, "The controller's answer could not be read.");
  }
}

/** JSON in which an integer that a double can't hold (nanoseconds since the epoch) becomes a bigint. */
export function parse(text: string): unknown {
  if (!/\d{16}/.test(text)) {
    return JSON.parse(text);
  }
  const revive = (_key: string, value: unknown, context?: { source?: string }) =>
    typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) ? BigInt(context?.source ?? value) : value;
  return JSON.parse(text, revive as (key: string, value: unknown) => unknown);
}

function failed<T>(kind: Failure["kind"], status: number, text: string): Answer<T> {
  return { ok: false, failure: { kind, status, text } };
}

async function refuse<T>(response: Response): Promise<Answer<T>> {
  let detail = "";
  try {
    const body = (await response.json()) as { error?: { message?: string } };
    detail = body.error?.message ?? "";
  } catch {
    /* no words: the status has to do */
  }
  if (response.status === 401) {
    signOut();
    return failed("refused", 401, "This token is unknown or has expired. Sign in again.");
  }
  if (response.status === 403) {
    return failed("refused", 403, detail || "This token may not see that.");
  }
  if (response.status === 404) {
    return failed("missing", 404, detail || "Not found.");
  }
  if (response.status === 429) {
    return failed("limited", 429, "Too many requests; trying again.");
  }
  return failed("broken", response.status, detail || `The controller answered ${response.status}.`);
}

// ---- live events ----

export type Link = "connecting" | "live" | "lost";
export const link = signal<Link>("connecting");
export interface LiveEvent {
  id: string;
  kind: string;
  data: unknown;
}
type Listener = (event: LiveEvent) => void;
const listeners = new Set<Listener>();

export function onEvent(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Feeds text of an event stream; calls `emit` for each whole event. Keeps what is unfinished. */
export function streamParser(emit: Listener): (text: string) => void {
  let rest = "";
  return (text) => {
    rest += text.replace(/\r\n?/g, "\n");
    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
      const event: LiveEvent = { id: "", kind: "message", data: null };
      const data: string[] = [];
      for (const line of rest.slice(0, end).split("\n")) {
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "id") {
          event.id = value;
        } else if (field === "event") {
          event.kind = value;
        } else if (field === "data") {
          data.push(value);
        }
      }
      rest = rest.slice(end + 2);
      if (data.length > 0) {
        try {
          event.data = parse(data.join("\n"));
          emit(event);
        } catch {
          /* not for us */
        }
      }
    }
  };
}

/** Reads /api/v1/<path> as an event stream for ever: EventSource can't carry a token. */
export async function follow(path: string, abort: AbortSignal): Promise<void> {
  let last = "";
  let wait = 500;
  while (!abort.aborted) {
    link.value = link.value === "live" ? "lost" : link.value;
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (token.value !== null) {
        headers["Authorization"] = `Bearer ${token.value}`;
      }
      if (last !== "") {
        headers["Last-Event-ID"] = last;
      }
      const response = await fetch(`/api/v1/${path}`, { headers, signal: abort, cache: "no-store" });
      if (response.ok && response.body) {
        link.value = "live";
        wait = 500;
        const feed = streamParser((event) => {
          last = event.id || last;
          for (const listener of listeners) {
            listener(event);
          }
        });
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let part = await reader.read(); !part.done; part = await reader.read()) {
          feed(part.value);
        }
      } else if (response.status === 401) {
        signOut();
        return;
      }
    } catch {
      /* lost: again, later */
    }
    link.value = "lost";
    await new Promise((done) => setTimeout(done, wait * (0.5 + Math.random())));
    wait = Math.min(wait * 2, 15_000);
  }
}
