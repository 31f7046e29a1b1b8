// Alerts: incidents, one per cause; whoever may, acknowledges.
import { useState } from "preact/hooks";
import { call } from "../api.ts";
import type { Incident, Page } from "../model.ts";
import { big } from "../model.ts";
import { useResource } from "../resource.ts";
import { hrefTo } from "../route.ts";
import { nowNs } from "../now.ts";
import { ago, wall } from "../time.ts";
import { Empty, Mark, Shown, type Tone } from "../ui/state.tsx";

const tones: Record<string, Tone> = { page: "bad", critical: "bad", warning: "warn", ticket: "warn", info: "none" };

export function Alerts() {
  const incidents = useResource<Page<Incident>>("incidents?limit=200", 5_000, ["incident", "finding"]);
  const [said, setSaid] = useState("");
  const now = nowNs.value;
  const acknowledge = async (incident: Incident) => {
    const answer = await call("POST", `incidents/${incident.id}/acknowledge`, {});
    setSaid(answer.ok ? `Incident ${incident.id} is yours.` : answer.failure.text);
    incidents.again();
  };
  return (
    <>
      <h1>Alerts</h1>
      <p role="status" aria-live="polite">{said}</p>
      {incidents.failure?.kind === "missing" ? <Empty>This controller evaluates no alert rules. What hosts find is in Fleet.</Empty> : (
        <Shown of={incidents} what="incidents">
          {(page) => page.items.length === 0 ? <Empty>No incident, open or recent.</Empty> : (
            <>
              {page.items.map((i) => (
                <article key={String(i.id)} class={`sentence ${i.resolved_utc_ns === null ? "bad" : "good"}`}>
                  <p>{i.text}</p>
                  <p class="dim">
                    <Mark tone={i.resolved_utc_ns === null ? (tones[i.severity] ?? "warn") : "good"}>{i.resolved_utc_ns === null ? `${i.severity}, ${i.state}` : "resolved"}</Mark>{" "}
                    since {wall(big(i.since_utc_ns))} ({ago(big(i.since_utc_ns), now)}) · {i.alerts_firing} of {i.alerts_total} alerts fire, {i.hosts} hosts
                    {i.silenced && " · silenced"}{i.acknowledged_by !== null && ` · acknowledged by ${i.acknowledged_by}`} ·{" "}
                    <a href={hrefTo({ view: "mesh", at: big(i.since_utc_ns) })}>the mesh at that moment</a>{" "}
                    {i.resolved_utc_ns === null && i.acknowledged_by === null && <button onClick={() => void acknowledge(i)}>Acknowledge</button>}
                  </p>
                </article>
              ))}
            </>
          )}
        </Shown>
      )}
    </>
  );
}
