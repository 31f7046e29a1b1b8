// The wall clock as the controller has it, a tick a second: one "now" for all that is shown.
import { signal } from "@preact/signals";

let ahead = 0n; // controller's clock minus this machine's

export const nowNs = signal<bigint>(BigInt(Date.now()) * 1_000_000n);

export function learnNow(controllerNs: bigint): void {
  ahead = controllerNs - BigInt(Date.now()) * 1_000_000n;
}

export function startClock(): void {
  setInterval(() => {
    nowNs.value = BigInt(Date.now()) * 1_000_000n + ahead;
  }, 1_000);
}
