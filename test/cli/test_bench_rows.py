#!/usr/bin/env python3
"""The state of rows of `make bench` (tools/bench_rows.py): a must without a value is missed, and a row older than its code is
stale. Also how long `make bench` takes: docs/bench.md has the time of each program."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tools"))
import bench_rows  # noqa: E402


class Rows(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="bench-rows")
        self.addCleanup(self.folder.cleanup)
        self.top = self.folder.name
        self.git("init", "-q")
        self.first = self.commit("src/core/clock/bound.c", "one")

    def git(self, *words):
        return subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *words], cwd=self.top, capture_output=True,
                              text=True, check=True).stdout.strip()

    def commit(self, path, text):
        os.makedirs(os.path.join(self.top, os.path.dirname(path)), exist_ok=True)
        with open(os.path.join(self.top, path), "w", encoding="utf-8") as file:
            file.write(text)
        self.git("add", "-A")
        self.git("commit", "-qm", text)
        bench_rows.changed.cache_clear()
        return self.git("rev-parse", "--short", "HEAD")

    def row(self, **more):
        return {"id": "clock.sim.hw20.p99_ns", "value": 12, "must": 13, "aim": 10, "better": "lower", "commit": self.first, **more}

    def test_goals(self):
        self.assertEqual(bench_rows.verdict(self.row(), self.top), "must met, aim missed")
        self.assertEqual(bench_rows.verdict(self.row(value=14), self.top, "**{}**".format), "**must missed**, aim missed")
        self.assertEqual(bench_rows.verdict(self.row(better="higher"), self.top), "must missed, aim met")
        self.assertTrue(bench_rows.missed(self.row(value=14)))
        self.assertFalse(bench_rows.missed(self.row(must=None, value=None)))

    def test_a_must_without_a_value_is_missed(self):
        for name in "clock.sim.hw20.p99_ns", "alert.webhook_ms", "job.scale":
            row = self.row(id=name, value=None, note="no root")
            self.assertTrue(bench_rows.missed(row), name)
            self.assertEqual(bench_rows.verdict(row, self.top), "must missed, no root", name)

    def test_a_row_older_than_its_code_is_stale(self):
        self.commit("docs/clock.md", "two")
        self.assertFalse(bench_rows.stale(self.row(), self.top))
        self.commit("src/core/clock/bound.c", "three")
        self.assertTrue(bench_rows.stale(self.row(), self.top))
        self.assertEqual(bench_rows.verdict(self.row(), self.top), "stale: then must met, aim missed")
        self.assertFalse(bench_rows.stale(self.row(id="alert.webhook_ms"), self.top), "of other code")
        self.assertTrue(bench_rows.stale(self.row(commit=self.first + "-dirty"), self.top))
        self.assertTrue(bench_rows.stale(self.row(commit="0123456"), self.top), "a commit that isn't there: nobody can look at its code")
        with tempfile.TemporaryDirectory() as copy:
            self.git("clone", "-q", "--depth", "1", "file://" + self.top, copy)
            self.assertFalse(bench_rows.stale(self.row(), copy), "a shallow clone tells nothing")

    def test_a_comment_is_no_code(self):
        source = 'int a; /* one */\nconst char *b = "/* kept */ // kept";\n'
        row = self.row(commit=self.commit("src/core/clock/bound.c", source))
        self.commit("src/core/clock/bound.c", source.replace("/* one */\n", "// two: \"three\n\n"))
        self.assertFalse(bench_rows.stale(row, self.top))
        self.commit("src/core/clock/bound.c", source.replace("kept */", "gone */"))
        self.assertTrue(bench_rows.stale(row, self.top), "in a string")
        self.commit("src/core/clock/bound.c", source.replace("int a", "int c"))
        self.assertTrue(bench_rows.stale(row, self.top))
        self.commit("src/core/clock/bound.c", source)
        self.commit("src/core/clock/more.c", "/* nothing */\n")
        self.assertTrue(bench_rows.stale(row, self.top), "a new file")

    def test_code_that_rows_are_about_is_there(self):
        for prefix, paths in bench_rows.PATHS.items():
            for path in paths:
                files = subprocess.run(["git", "ls-files", "--", path.removeprefix(":!")], cwd=TOP, capture_output=True, text=True, check=True).stdout
                self.assertTrue(files, f"{prefix}: {path}")


class Times(unittest.TestCase):
    MOST_S = 75 * 60

    def programs(self, soak):
        """Programs of `make bench` or `make soak`, from meson."""
        build = os.environ.get("FOLIOT_BUILD", os.path.join(TOP, "build"))
        tests = json.loads(subprocess.check_output(["meson", "introspect", build, "--benchmarks"], cwd=TOP))
        return {test["name"] for test in tests if soak == ("soak" in {suite.split(":", 1)[-1] for suite in test["suite"]})}

    def test_make_bench_takes_75_minutes_at_most(self):
        with open(os.path.join(TOP, "docs", "bench.md"), encoding="utf-8") as page:
            text = page.read().split("\n## How long it takes\n", 1)[1].split("\n## ", 1)[0]
        took = {name: seconds for names, seconds in re.findall(r"^\| (`.*`) \| (\d+|\?) \|$", text, re.M) for name in re.findall(r"`([a-z-]+)`", names)}
        self.assertEqual(set(took), self.programs(False), "docs/bench.md lists the programs of make bench")
        self.assertLessEqual(sum(int(seconds) for seconds in took.values() if seconds != "?"), self.MOST_S, took)

    def test_a_longer_program_is_of_make_soak(self):
        self.assertLessEqual({"clock-worlds-soak", "clock-soak", "job-curve-soak", "clock-cost-soak"}, self.programs(True))


unittest.main()
