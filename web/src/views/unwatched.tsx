// What nobody watches: NICs, and sensors of hosts. Two tiles in Fleet, and what they open.
import type { Host, Nic, Page, Status } from "../model.ts";
import { useResource } from "../resource.ts";
import { go, hrefTo, place } from "../route.ts";
import { Empty, Mark, Shown, Tile } from "../ui/state.tsx";
import { Table } from "../ui/table.tsx";
import { portTones } from "./links.tsx";

const toggled = (what: string) => hrefTo({ query: { ...place.value.query, unwatched: place.value.query["unwatched"] === what ? "" : what } });
const silent = (s: Status) => s.freshness.stale + s.freshness.never;

/** None is good only where all is known. */
function Count({ label, what, count, of, unknown }: { label: string; what: string; count: number; of: number; unknown: number }) {
  return <Tile label={label} tone={count + unknown > 0 ? "warn" : of > 0 ? "good" : "none"} href={toggled(what)}>{count} of {of}{unknown > 0 ? ` (${unknown} unknown)` : ""}</Tile>;
}

export function UnwatchedTiles({ s }: { s: Status }) {
  return (
    <>
      <Count label="NICs unwatched" what="nics" count={s.watching.nics_unwatched} of={s.watching.nics} unknown={s.watching.nics_unknown} />
      <Count label="Hosts with sensors off" what="sensors" count={s.watching.hosts_sensors_off} of={s.hosts} unknown={silent(s)} />
    </>
  );
}

/** What the address asks for, below the tiles. */
export function Unwatched({ status }: { status: Status | null }) {
  const what = place.value.query["unwatched"] ?? "";
  const nics = useResource<Page<Nic>>(what === "nics" ? "nics?unwatched=true&limit=1000" : null, 5_000, ["host", "link"]);
  const hosts = useResource<Page<Host>>(what === "sensors" ? "hosts?sensors_off=true&limit=1000" : null, 5_000, ["host"]);
  if (what !== "nics" && what !== "sensors") {
    return null;
  }
  return (
    <section aria-label="Not watched">
      <p class="row">
        {what === "nics" ? "The link is up, but the NIC can't send probes; or the link's state can't be read. So faults are not seen." : "A permission or the hardware is missing. Everything else is watched."}
        <button onClick={() => go({ query: { ...place.value.query, unwatched: "" } })}>Close</button>
      </p>
      {status !== null && <Unknown status={status} what={what} />}
      {what === "nics" ? <Shown of={nics} what="NICs that are not watched">{(page) => <Nics page={page} whole={status?.watching.nics_unknown === 0} />}</Shown>
        : <Shown of={hosts} what="hosts that can't watch all">{(page) => <Hosts page={page} whole={status !== null && silent(status) === 0} />}</Shown>}
    </section>
  );
}

function Unknown({ status, what }: { status: Status; what: string }) {
  const [count, word] = what === "nics" ? [status.watching.nics_unknown, "NIC"] : [silent(status), "host"];
  return count === 0 ? null : <p class="banner" role="status">No current state of {count} {word}{count === 1 ? "" : "s"}: <a href={hrefTo({ query: { ...place.value.query, health: "unknown" } })}>hosts that aren't heard</a>.</p>;
}

function First({ page }: { page: Page<unknown> }) {
  return page.next === null ? null : <p class="banner" role="status">The first {page.items.length} of them.</p>;
}

function Nics({ page, whole }: { page: Page<Nic>; whole: boolean }) {
  return page.items.length === 0 ? <Empty>{whole ? "Every NIC is watched." : "No NIC of a host that reports is unwatched."}</Empty> : (
    <>
      <First page={page} />
      <Table caption="NICs that are not watched" rows={page.items} id={(n) => n.nic} columns={[
        { name: "NIC", cell: (n) => <a href={hrefTo({ view: "hosts", rest: n.host })}>{n.host}/{n.name}</a>, sort: (n) => `${n.host}/${n.name}` },
        { name: "Link", cell: (n) => <Mark tone={portTones[n.state]}>{n.state}</Mark>, sort: (n) => n.state },
        { name: "Why", cell: (n) => n.trouble ?? (n.state === "unknown" ? "its link can't be read" : "it can't send probes"), sort: (n) => n.trouble ?? "" },
      ]} />
    </>
  );
}

function Hosts({ page, whole }: { page: Page<Host>; whole: boolean }) {
  return page.items.length === 0 ? <Empty>{whole ? "Every host watches everything." : "No host that reports has a sensor off."}</Empty> : (
    <>
      <First page={page} />
      <Table caption="Hosts that can't watch all" rows={page.items} id={(h) => h.name} columns={[
        { name: "Host", cell: (h) => <a href={hrefTo({ view: "hosts", rest: h.name })}>{h.name}</a>, sort: (h) => h.name },
        { name: "What isn't watched", cell: (h) => h.sensors_off.join("; "), sort: (h) => h.sensors_off.join("; ") },
        { name: "Agent", cell: (h) => h.agent.version ?? "–", sort: (h) => h.agent.version ?? "" },
      ]} />
    </>
  );
}
