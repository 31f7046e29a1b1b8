#!/usr/bin/env python3
"""upgrade.py [COMMIT]: a rolling upgrade from the version before to this tree and back, under load: the controller first, then
the agents; back in the other order. A controller doesn't open the store of a newer one, so it goes back only if both have one
schema. The version before is the last tag, or COMMIT, or, without a tag, the commit 50 before
this one. It is built in build/previous. Then the real agents of both versions run with the controllers of both
(test/controller/test_versions.py)."""
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import load  # noqa: E402
from world import AGENT, BUILD, FOLIOT, Missing, Rows, TOP  # noqa: E402

sys.path.insert(0, os.path.join(TOP, "test", "controller"))
import previous  # noqa: E402

CONTROLLER = load.CONTROLLER  # this tree's
HOSTS = 100
BACK = 50
ALONE_S = 6  # least time that each pair of versions works together


def the_one_before(words):
    """Its build, and its name."""
    if os.environ.get("FOLIOT_PREVIOUS"):
        return os.environ["FOLIOT_PREVIOUS"], "FOLIOT_PREVIOUS"
    commit = words[0] if words else previous.last_tag() or previous.commit_before(BACK)
    if not commit:
        raise Missing(f"no tag, and no {BACK} commits of history to build an earlier version from")
    build, what = previous.build(commit, os.path.join(BUILD, "previous"),
                                 ["src/app/foliot-agent", "src/app/foliot-controller", "bench/fleet_load"])
    if build is None:
        raise Missing(what)
    return build, previous.git("log", "-1", "--format=%h of %cs", commit) or what


class Roll:
    """A fleet whose controller and agents each run one of two builds at a time."""

    def __init__(self, fleet, builds):
        self.fleet, self.builds = fleet, builds
        self.keep = os.path.join(fleet.folder, "hosts")
        os.mkdir(self.keep)
        self.told, self.away, self.live_s = [], [], []

    def wait_live(self):
        end = time.monotonic() + 60
        while json.loads(self.fleet.get("/api/v1/status")[1])["freshness"]["live"] < HOSTS:
            if time.monotonic() > end:
                raise Missing(f"not all hosts are live: {self.fleet.get('/api/v1/status')[1][:300]}")
            time.sleep(0.1)

    def agents(self, version):
        """All agents of that version. The ones before have ended, and keep their state."""
        if self.fleet.load is not None:
            self.fleet.load.send_signal(signal.SIGTERM)
            self.fleet.load.wait()
            with open(os.path.join(self.keep, "acknowledged"), encoding="ascii") as file:
                self.told.append({name: int(number) for name, _, number in map(str.split, file)})
        if version is None:
            return
        load.LOAD = os.path.join(self.builds[version], "bench", "fleet_load")
        self.fleet.begin(HOSTS, report_ms=1000, beat_ms=500, folder=self.keep)
        self.wait_live()
        time.sleep(ALONE_S)

    def controller(self, version):
        """Ends one controller and starts the other: the time from its end until the API answers, and until all hosts are live."""
        begin = time.monotonic()
        self.fleet.stop()
        load.CONTROLLER = os.path.join(self.builds[version], "src", "app", "foliot-controller")
        self.fleet.start(0.01)
        self.fleet.get("/api/v1/status")
        self.away.append(time.monotonic() - begin)
        self.wait_live()
        self.live_s.append(time.monotonic() - begin)
        time.sleep(ALONE_S)

    def schema(self):
        """Of the store, as the controller of now or of before has made it."""
        store = sqlite3.connect(os.path.join(self.fleet.folder, "data", "store.db"))
        version = store.execute("PRAGMA user_version").fetchone()[0]
        store.close()
        return version

    def look(self):
        """Reports that aren't there once and in order. Each run of an agent numbers its reports from the start."""
        wrong = []
        store = sqlite3.connect(os.path.join(self.fleet.folder, "data", "store.db"))
        for identity, name in store.execute("SELECT id, name FROM host").fetchall():
            numbers = [int(text) for (text,) in store.execute(
                "SELECT json_extract(body, '$.text') FROM event WHERE host = ? AND kind = 'link' ORDER BY id", (identity,))]
            starts = [i for i, n in enumerate(numbers) if n == 1] + [len(numbers)]
            runs = [numbers[a:b] for a, b in zip(starts, starts[1:])]
            good = len(runs) == len(self.told) and all(
                run == list(range(1, len(run) + 1)) and told[name] <= len(run) <= told[name] + 1
                for run, told in zip(runs, self.told))
            if not good:
                wrong.append(f"{name}: runs of {[len(r) for r in runs]} reports, told {[t[name] for t in self.told]}")
        for word in ("history-gap", "reports-lost"):
            if count := store.execute("SELECT count(*) FROM event WHERE word = ?", (word,)).fetchone()[0]:
                wrong.append(f"{count} {word}")
        if store.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
            wrong.append("the file is damaged")
        store.close()
        return wrong


def roll(rows, builds, what, command):
    """there and back under load"""
    os.environ["FOLIOT_LOAD_EVENTS"] = "1"
    load.CONTROLLER = os.path.join(builds["before"], "src", "app", "foliot-controller")
    with load.Fleet() as fleet:
        r = Roll(fleet, builds)
        r.agents("before")
        schemas = [r.schema()]
        r.controller("now")
        schemas.append(r.schema())
        r.agents("now")
        r.agents("before")
        if schemas[0] == schemas[1]:
            r.controller("before")
        incidents = json.loads(fleet.get("/api/v1/incidents")[1])["items"]
        r.agents(None)
        fleet.stop()
        wrong = r.look()
    note = f"from {what}; {HOSTS} hosts, {sum(sum(t.values()) for t in r.told)} reports acknowledged"
    if schemas[0] != schemas[1]:
        note += f"; the controller does not go back: schema {schemas[0]} before, {schemas[1]} now"
    rows.add("controller.upgrade_lost", len(wrong), "", 0, None, command=command, note="; ".join([note] + wrong[:3]))
    rows.add("controller.upgrade_alerts", len(incidents), "", 0, None, command=command,
             note="; ".join(i.get("text") or str(i) for i in incidents[:2])[:200] or "no incident was ever opened")
    rows.add("controller.upgrade_away_s", max(r.away), "s", 5, None, runs=len(r.away), command=command,
             note=f"until the API answers; all hosts live again after {max(r.live_s):.1f} s")


def each_with_each(rows, builds, what, command):
    """real agents of both versions with controllers of both; one by one, there and back"""
    done = subprocess.run([sys.executable, os.path.join(TOP, "test", "controller", "test_versions.py"), CONTROLLER, AGENT, FOLIOT],
                          capture_output=True, text=True, check=False, env=dict(os.environ, FOLIOT_PREVIOUS=builds["before"]))
    if done.returncode == 77:
        raise Missing(done.stdout.strip().splitlines()[-1])
    ran = re.search(r"Ran (\d+) test", done.stdout + done.stderr)
    failed = len(re.findall(r"^(?:FAIL|ERROR):", done.stdout + done.stderr, re.M)) + (done.returncode != 0 and not ran)
    rows.add("controller.versions_failed", failed, "tests", 0, None, runs=int(ran[1]) if ran else 0, command=command,
             note=f"from {what}" + ("" if done.returncode == 0 else ": " + done.stderr.strip()[-200:]))


def main():
    rows = Rows("controller-upgrade")
    command = " ".join(["upgrade.py", *sys.argv[1:]])
    ids = [("controller.upgrade_lost", "", 0, None), ("controller.upgrade_alerts", "", 0, None), ("controller.upgrade_away_s", "s", 5, None)]
    more = [("controller.versions_failed", "tests", 0, None)]
    try:
        before, what = the_one_before(sys.argv[1:])
    except Missing as error:
        for id, unit, must, aim in ids + more:
            rows.add(id, None, unit, must, aim, runs=0, note=f"not measured: {error}")
        return rows.finish()
    builds = {"before": before, "now": BUILD}

    def upgrade(r):
        """there and back under load"""
        roll(r, builds, what, command)

    def versions(r):
        """real agents and controllers of both versions"""
        each_with_each(r, builds, what, command)
    rows.measure(ids, upgrade)
    rows.measure(more, versions)
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main())
