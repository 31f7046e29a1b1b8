// A finding, an incident, an event: one sentence, when, and a way to that moment.
import type { Finding } from "../model.ts";
import { big } from "../model.ts";
import { hrefTo } from "../route.ts";
import { ago, wall } from "../time.ts";
import { Mark } from "./state.tsx";

export function FindingSentence({ finding, now }: { finding: Finding; now: bigint }) {
  const since = big(finding.since_utc_ns);
  const until = finding.until_utc_ns === null ? null : big(finding.until_utc_ns);
  return (
    <article class={`sentence ${finding.open ? "bad" : "good"}`}>
      <p>{finding.detail?.text ?? `${finding.kind}, reported by ${finding.host ?? "a host that left"}`}</p>
      <p class="dim">
        <Mark tone={finding.open ? "bad" : "good"}>{finding.open ? "open" : "over"}</Mark> since <time>{wall(since)}</time> ({ago(since, now)})
        {until !== null && <>, until {wall(until)}</>} · <a href={hrefTo({ view: "mesh", at: since })}>the mesh at that moment</a>
      </p>
    </article>
  );
}
