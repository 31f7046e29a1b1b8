#!/usr/bin/env python3
"""What the controller keeps, deletes, and gets back: retention, a wrong clock, an old store. usage: test_keep.py CONTROLLER AGENT
FOLIOT"""
import os
import sqlite3
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleet  # noqa: E402
import wire  # noqa: E402

fleet.Fleet.FOLIOT = os.path.abspath(sys.argv.pop(3))
fleet.Fleet.AGENT = os.path.abspath(sys.argv.pop(2))
fleet.Fleet.CONTROLLER = os.path.abspath(sys.argv.pop(1))

DAY = 86400 * 10**9


class TestKeep(fleet.Fleet):
    HOSTS = 2

    def sql(self, text, rows=None):
        """Runs SQL on the store, while the controller is stopped (or only to read)."""
        with sqlite3.connect(self.path("data", "store.db")) as db:
            cursor = db.executemany(text, rows) if rows is not None else db.execute(text)
            return cursor.fetchall()

    def add_events(self, count, age_ns, size):
        at = time.time_ns() - age_ns
        self.sql("INSERT INTO event(at_ns, fleet_ns, host, kind, word, body) VALUES(?, 0, 0, 'controller', 'trial', ?)",
                 [(at, '{"x":"' + "x" * size + '"}')] * count)

    def test_retention_gives_room_back(self):
        """The file shrinks while the controller runs. A store that seems years old isn't touched."""
        self.init(extra="keep: {events: 30d}\n")
        self.add_events(100, 400 * DAY, 50000)
        controller = self.controller()
        controller.wait_log("the store ends 9600 h ago: nothing is deleted from history for a day")
        time.sleep(2.5)  # retention looks once a second
        self.assertEqual(self.sql("SELECT count(*) FROM event WHERE word = 'trial'")[0][0], 100)
        self.assertEqual(controller.stop(), 0)
        self.add_events(1, DAY // 2, 1)
        begin = sum(os.path.getsize(self.path("data", name)) for name in os.listdir(self.path("data")) if name.startswith("store.db"))
        self.assertGreater(begin, 5000000)
        self.controller()
        self.wait(lambda: self.sql("SELECT count(*) FROM event WHERE word = 'trial'")[0][0] == 1, 3, "retention")
        self.wait(lambda: self.get("/api/v1/status")["store"]["file_bytes"] < begin / 2, 3, f"half of {begin}")

    def test_an_old_store_put_back(self):
        """Agents have had lists of members with the numbers that come next: they must not take the new lists for those."""
        controller = self.start()
        self.join(0)
        self.command("backup", self.path("old.db"))
        self.join(1)
        had = self.get("/api/v1/status")["fleet_version"]
        self.assertEqual(controller.stop(), 0)
        self.assertIn("what was removed since is back", self.command("restore", self.path("old.db")).stdout)
        self.controller()
        self.assertEqual([h["name"] for h in self.get("/api/v1/hosts")["items"]], ["h0"])
        self.assertGreater(self.get("/api/v1/status")["fleet_version"], had)
        self.assertEqual(self.post("/agent/v1/report", wire.batch(), **self.identity("h1"))[0], 403)
        self.join(1)
        self.assertEqual(self.post("/agent/v1/report", wire.batch(), **self.identity("h1"))[0], 200)

    def test_a_disk_that_is_read_only(self):
        self.init()
        fleet.run("mount", "--bind", self.path("data"), self.path("data"))
        self.addCleanup(subprocess.run, ["umount", "-l", self.path("data")], check=False)
        fleet.run("mount", "-o", "remount,bind,ro", self.path("data"))
        done = self.command(check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("Read-only file system", done.stderr)


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)
