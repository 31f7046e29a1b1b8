// May this host join? A measurement on demand, started here, followed, and answered in one sentence.
import { useState } from "preact/hooks";
import { call } from "../api.ts";
import { useResource } from "../resource.ts";
import { Failed, Mark, Shown, type Tone } from "../ui/state.tsx";

export interface HostCheck {
  id: number;
  state: "running" | "done" | "stopped";
  packets: number;
  packets_sent: number;
  answer: "yes" | "no" | "unknown" | null;
  sentence: string | null;
  reasons: { check: string; result: "good" | "unknown" | "bad"; text: string }[];
}

const tones: Record<"yes" | "no" | "unknown", Tone> = { yes: "good", no: "bad", unknown: "warn" };
const results: Record<"good" | "unknown" | "bad", Tone> = { good: "good", unknown: "warn", bad: "bad" };

/** Per cent of the probes that are sent; nothing to send yet is none. */
export const progress = (m: Pick<HostCheck, "packets" | "packets_sent">) => (m.packets > 0 ? Math.min(100, Math.floor((100 * m.packets_sent) / m.packets)) : 0);

export function Check({ hosts }: { hosts: string[] }) {
  const [host, setHost] = useState("");
  const [id, setId] = useState<number | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const start = async () => {
    setTrouble(null);
    setId(null);
    const answer = await call<HostCheck>("POST", "measurements", { kind: "host-check", host, seconds: 5 });
    if (answer.ok) {
      setId(answer.data.id);
    } else {
      setTrouble(answer.failure.text);
    }
  };
  return (
    <>
      <h2>May this host join?</h2>
      <p>
        <label>Host{" "}
          <select value={host} onChange={(e) => { setHost(e.currentTarget.value); setId(null); setTrouble(null); }}>
            <option value="">choose one</option>
            {hosts.map((one) => <option key={one} value={one}>{one}</option>)}
          </select>
        </label>{" "}
        <button disabled={host === ""} onClick={() => void start()}>Check {host}</button>
      </p>
      {trouble !== null && <Failed text={trouble} />}
      {id !== null && <Answer id={id} />}
    </>
  );
}

function Answer({ id }: { id: number }) {
  const [over, setOver] = useState(false);
  const measured = useResource<HostCheck>(`measurements/${id}`, over ? 60_000 : 1_000);
  if (!over && measured.data !== null && measured.data.state !== "running") {
    setOver(true);
  }
  return (
    <Shown of={measured} what="the measurement">
      {(m) => m.answer === null ? <p class="state" role="status">Probing its paths and its cohort's paths: {progress(m)} %.</p> : (
        <>
          <p role="status"><Mark tone={tones[m.answer]}>{m.answer}</Mark> {m.sentence}</p>
          <ul>{m.reasons.map((r) => <li key={r.text}><Mark tone={results[r.result]}>{r.result}</Mark> {r.text}</li>)}</ul>
        </>
      )}
    </Shown>
  );
}
