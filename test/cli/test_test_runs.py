#!/usr/bin/env python3
"""Verdicts on runs of the tests: a skip that isn't allowed is a failure (tools/run-tests), ten runs are counted
(tools/ten-runs)."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import threading
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def tool(name):
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), os.path.join(TOP, "tools", name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


class Skips(unittest.TestCase):
    def skipped(self, label, no_skip):
        tally = tool("run-tests").Tally(set(no_skip))
        with contextlib.redirect_stdout(io.StringIO()) as out:
            tally.add(label, 77, 1, 1, "much\nno Debian root here\n")
        self.assertIn("no Debian root here", out.getvalue())
        self.assertEqual((tally.passed, tally.failed + tally.skipped), (0, 1))
        self.assertEqual(tally.names, [label] * tally.failed)
        return tally.skipped == 1

    def test_a_named_skip_is_a_failure(self):
        self.assertTrue(self.skipped("system/systemd", []))
        self.assertFalse(self.skipped("system/systemd", ["systemd", "debian"]))
        self.assertTrue(self.skipped("system/tenant", ["systemd", "debian"]))
        self.assertTrue(self.skipped("asan/debian", ["debian"]), "it can't run there")
        self.assertFalse(self.skipped("system/tenant", ["all"]))
        self.assertTrue(self.skipped("gpu/gpu", ["all"]))
        self.assertFalse(self.skipped("gpu/gpu", ["all", "gpu"]))

    def test_ci_names_tests_that_there_are(self):
        with open(os.path.join(TOP, ".ci", "run"), encoding="utf-8") as file:
            names = file.read().split("FOLIOT_NO_SKIP-", 1)[1].split("}", 1)[0].split(",")
        builds = subprocess.run(["git", "grep", "-h", "^test('", "--", "test"], cwd=TOP, capture_output=True, text=True, check=False).stdout
        for name in names if builds else []:  # an unpacked archive has no git
            self.assertIn(f"test('{name}'", builds)


class Help(unittest.TestCase):
    """--help prints what a program does, and begins nothing: these would else take minutes to hours."""

    def test_help_runs_nothing(self):
        for name in ("run-tests", "run-bench", "tidy", "prose", "bench-table", "ten-runs", "gpu-check"):
            with self.subTest(name):
                done = subprocess.run([sys.executable, os.path.join(TOP, "tools", name), "--help"], capture_output=True, text=True, timeout=20, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(name, done.stdout.splitlines()[0])


class Order(unittest.TestCase):
    TESTS = {"waits": ({"waits"}, True), "computes": ({"unit"}, True), "alone": ({"lab"}, False)}

    def test_waiting_tests_run_beside_computing_ones_and_timed_ones_alone(self):
        """Tests that wait run together with tests that compute, and those yield. When all have ended, the last kind runs one at a
        time."""
        runs, now, seen, begun = tool("run-tests"), set(), {}, {name: threading.Event() for name in self.TESTS}

        def run_one(_build, _folder, test, yields):
            now.add(test["name"])
            seen[test["name"]] = (set(now), yields)
            begun[test["name"]].set()
            good = test["name"] != "waits" or begun["computes"].wait(60)
            now.discard(test["name"])
            return 0 if good else 1, 0, 0, ""
        runs.run_one = run_one
        tally = runs.Tally()
        tests = [(name, {"name": name, "suite": sorted(suites), "is_parallel": parallel}, "gcc", "build")
                 for name, (suites, parallel) in self.TESTS.items()]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            runs.run_all(tally, tests)
        self.assertEqual((tally.passed, tally.failed), (3, 0), out.getvalue())
        self.assertEqual((seen["alone"], seen["computes"][1], seen["waits"][1]), (({"alone"}, False), True, False))

    def test_a_yielding_test_is_nice_as_a_process_and_as_a_session(self):
        asks = "import os; print(os.getpriority(os.PRIO_PROCESS, 0), open('/proc/self/autogroup').read().split()[-1])"
        wait = "import time; time.sleep(1); "
        done = tool("run-tests").run([sys.executable, "-c", wait + asks], 60, yields=True)
        if not os.path.exists("/proc/self/autogroup"):
            self.skipTest("this kernel has no groups of sessions")
        self.assertEqual(done[3].split(), ["10", "10"])


class Ten(unittest.TestCase):
    MAKEFILE = ("test:\n\t@echo run >>runs; test \"$(TESTS)\" = 'unit lab' || exit 3\n"
                "\t@if [ $$(wc -l <runs) = 2 ]; then echo 'failed: lab/lab'; echo '8 passed, 1 failed'; exit 1; fi; echo '9 passed, 0 failed'\n")

    def ten(self, *words):
        with tempfile.TemporaryDirectory(prefix="ten-runs") as folder:
            with open(os.path.join(folder, "Makefile"), "w", encoding="utf-8") as file:
                file.write(self.MAKEFILE)
            for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "x"]):
                subprocess.run(["git", *command], cwd=folder, check=True)
            done = subprocess.run([os.path.join(TOP, "tools", "ten-runs"), "--of", folder, *words], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout

    def test_a_test_that_failed_once_is_named_with_its_run(self):
        code, text = self.ten("-n", "3", "unit", "lab")
        self.assertEqual(code, 1, text)
        self.assertRegex(text, r"run  1 +\d+\.\d min  9 passed, 0 failed\nrun  2 .*  8 passed, 1 failed\nrun  3 .*  9 passed, 0 failed\n")
        self.assertRegex(text, r"lab/lab +1/3 +2\n")

    def test_all_well(self):
        code, text = self.ten("-n", "1", "unit", "lab")
        self.assertEqual(code, 0, text)
        self.assertIn("no test failed in 1 run\n", text)


if __name__ == "__main__":
    unittest.main()
