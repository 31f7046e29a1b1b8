// Times and quantities as people read them. Instants are fleet or wall clock nanoseconds since the Unix epoch, as
// bigint: a double holds only microseconds of today. Durations are numbers of nanoseconds.

const units: [number, string][] = [[86_400e9, "d"], [3_600e9, "h"], [60e9, "min"], [1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];

/** 1234 → "1.23 us"; null → "–". Three digits; the sign is kept. */
export function duration(ns: number | null | undefined): string {
  if (ns === null || ns === undefined || !Number.isFinite(ns)) {
    return "–";
  }
  const size = Math.abs(ns);
  for (const [unit, name] of units) {
    if (size >= unit || unit === 1) {
      const value = ns / unit;
      return `${digits(value)} ${name}`;
    }
  }
  return "0 ns";
}

export function digits(value: number): string {
  const size = Math.abs(value);
  return size >= 100 || Number.isInteger(value) ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** Bits a second. */
export function rate(bps: number | null | undefined): string {
  if (bps === null || bps === undefined || bps < 0) {
    return "–";
  }
  for (const [unit, name] of [[1e12, "Tb/s"], [1e9, "Gb/s"], [1e6, "Mb/s"], [1e3, "kb/s"]] as const) {
    if (bps >= unit) {
      return `${digits(bps / unit)} ${name}`;
    }
  }
  return `${bps.toFixed(0)} b/s`;
}

export function bytes(count: number | null | undefined): string {
  if (count === null || count === undefined) {
    return "–";
  }
  for (const [unit, name] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]] as const) {
    if (count >= unit) {
      return `${digits(count / unit)} ${name}`;
    }
  }
  return `${count} B`;
}

export function share(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : `${digits(value * 100)} %`;
}

/** The wall clock of the reader's own zone, to the second: "14:03:07", with the day if it isn't today's. */
export function wall(ns: bigint, now: Date = new Date()): string {
  const date = new Date(Number(ns / 1_000_000n));
  const time = date.toTimeString().slice(0, 8);
  return date.toDateString() === now.toDateString() ? time : `${isoDay(date)} ${time}`;
}

function isoDay(date: Date): string {
  const two = (n: number) => String(n).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** All nine digits, in groups: "1732358587 204 512 031". */
export function fleet(ns: bigint): string {
  const text = ns.toString().padStart(10, "0");
  const second = text.slice(0, -9);
  const rest = text.slice(-9);
  return `${second} ${rest.slice(0, 3)} ${rest.slice(3, 6)} ${rest.slice(6)}`;
}

export function ago(ns: bigint, nowNs: bigint): string {
  const age = Number(nowNs - ns);
  return age < 0 ? `in ${duration(-age)}` : age < 1e9 ? "now" : `${duration(age)} ago`;
}

/** What people type into *go to*: ns since the epoch (spaces and underscores allowed), seconds with a point, or a
 *  date as ISO 8601, with up to nine digits of a second. null: none of these. */
export function parseInstant(text: string): bigint | null {
  const plain = text.trim().replace(/[\s_]/g, "");
  if (/^\d{16,19}$/.test(plain)) {
    return BigInt(plain);
  }
  const seconds = /^(\d{9,10})(?:\.(\d{1,9}))?$/.exec(plain);
  if (seconds) {
    return BigInt(seconds[1]!) * 1_000_000_000n + BigInt((seconds[2] ?? "").padEnd(9, "0"));
  }
  const iso = /^(\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:?\d{2})?$/.exec(text.trim());
  if (iso) {
    const ms = Date.parse(iso[1]!.replace(" ", "T") + (iso[3] ?? ""));
    return Number.isNaN(ms) ? null : BigInt(ms) * 1_000_000n + BigInt((iso[2] ?? "").padEnd(9, "0"));
  }
  return null;
}
