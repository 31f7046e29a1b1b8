#!/usr/bin/env python3
"""mesh.py: a silent black hole of one path, until it is named; short trunk outages that no host's carrier shows."""
import contextlib
import json
import sys
import time

from world import ASKED, Lab, Missing, Rows, Watch, median, need_root, runs, spread

NAME = "bench-mesh"


def findings(watch, after_ns):
    """(raw time, finding) of findings raised after a moment."""
    for at, line in list(watch.lines):
        if at >= after_ns and line.startswith("{"):
            finding = json.loads(line)
            if finding.get("kind") == "finding" and finding.get("open"):
                yield at, finding


def names(finding, leaf, spine):
    """True if the finding names the trunk, or if it is unknown and the trunk is one of the candidates."""
    elements = [finding.get("suspect") or {}, *(finding.get("one_of") or [])]
    return any(e.get("name") == f"trunk leaf{leaf} - spine{spine}" for e in elements)


def has_path(finding):
    return (finding.get("port") is not None or finding.get("signature") is not None) and finding.get("direction") in ("in", "out", "both")


def wait_named(watches, at, leaf, spine, limit):
    """Times of the first finding with path and direction, and of the first that also names the element; ns after `at`."""
    verdict = named = None
    end = time.monotonic() + limit
    while time.monotonic() < end and named is None:
        for watch in watches:
            for when, finding in findings(watch, at):
                if has_path(finding) and (verdict is None or when < verdict):
                    verdict = when
                if names(finding, leaf, spine) and (named is None or when < named):
                    named = when
        time.sleep(0.01)
    return verdict and (verdict - at) / 1e6, named and (named - at) / 1e6


@contextlib.contextmanager
def mesh_lab():
    """A lab with discovered paths; all its hosts' findings are watched."""
    with Lab(NAME) as lab:
        lab.wait_synced()
        time.sleep(40)
        watches = [Watch(lab, "findings", host, "--json") for host in range(8)]
        time.sleep(1)
        yield lab, watches


def blackhole(rows):
    """leaf to spine drops one direction silently, until path, direction and element are named"""
    verdicts, found, missed = [], [], 0
    with mesh_lab() as (lab, watches):
        for turn in range(runs(10, 5)):
            leaf, spine, way = turn % 2, turn % 4, ("up", "down")[turn // 2 % 2]
            lab.fault("blackhole", f"trunk {leaf}-{spine}", "--direction", way, "--for", "4s")
            at = lab.events("blackhole", "on")[-1]["before_raw_ns"]
            verdict, named = wait_named(watches, at, leaf, spine, 4)
            if verdict is not None:
                verdicts.append(verdict)
            if named is None:
                missed += 1
            else:
                found.append(named)
            time.sleep(5)
    if not found:
        raise Missing(f"{len(verdicts)} verdicts, none named the trunk")
    command = "foliot findings --watch & foliot lab fault blackhole 'trunk 0-2' --direction up --for 4s"
    rows.add("mesh.blackhole.lab_ms", median(found), "ms", 2000, 300, runs=len(found) + missed, spread=spread(found), command=command,
             note=f"path, direction and trunk named, or listed among those that look alike; slowest {max(found):.0f} ms, {missed} not named")
    if verdicts:
        rows.add("mesh.blackhole.verdict_ms", median(verdicts), "ms", 2000, 300, runs=len(verdicts), spread=spread(verdicts), command=command,
                 note=f"first verdict on a path and direction; slowest {max(verdicts):.0f} ms")


def trunk_flaps(rows):
    """a trunk down for 2 s: no NIC's carrier shows it"""
    found, element, total = 0, 0, runs(10, 5)
    with mesh_lab() as (lab, watches):
        for turn in range(total):
            leaf, spine = turn % 2, turn % 4
            lab.fault("flap", f"trunk {leaf}-{spine}", "--count", 1, "--down", "2s", "--up", "1s")
            at = lab.events("flap", "on")[-1]["before_raw_ns"]
            verdict, named = wait_named(watches, at, leaf, spine, 4)
            found += verdict is not None and verdict < 2000
            element += named is not None
            time.sleep(5)
    rows.add("mesh.trunkflaps.found", found, f"of {total}", total, None, "higher", runs=total,
             command="foliot findings --watch & foliot lab fault flap 'trunk 0-2' --count 1 --down 2s",
             note="path and direction named while it was down")
    rows.add("mesh.trunkflaps.named", element, f"of {total}", None, None, "higher", runs=total,
             command="foliot findings --watch & foliot lab fault flap 'trunk 0-2' --count 1 --down 2s",
             note="the trunk named too, not only its spine or nothing: with two leaves both trunks of a spine share all their paths")


if __name__ == "__main__":
    need_root()
    ROWS = Rows("mesh-lab")
    if not ASKED or "blackhole" in ASKED:
        ROWS.measure([("mesh.blackhole.lab_ms", "ms", 2000, 300)], blackhole)
    if not ASKED or "trunk_flaps" in ASKED:
        ROWS.measure([("mesh.trunkflaps.found", "of 10", 10, None, "higher")], trunk_flaps)
    sys.exit(ROWS.finish())
