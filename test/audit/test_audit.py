#!/usr/bin/env python3
"""foliot audit and foliot-inspect, as a user sees them: exit statuses, the gate, reads that hang, cohorts, other people's files.
usage: test_audit.py FOLIOT FOLIOT-INSPECT"""
import contextlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from xml.etree import ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import machine  # noqa: E402

FOLIOT, INSPECT = (os.path.abspath(path) for path in (sys.argv.pop(1), sys.argv.pop(1)))
FAILS = ("node.mounts", "node.command")  # on a running kernel: test_shown.py


class Audit(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="foliot-audit-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.root = os.path.join(self.folder, "root")
        self.sheets = os.path.join(self.folder, "sheets")
        os.makedirs(self.sheets)

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def foliot(self, *words):
        return subprocess.run([FOLIOT, "audit", *words], capture_output=True, text=True, timeout=300, check=False)

    def inspect(self, *words):
        done = subprocess.run([INSPECT, *words], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def build(self, number=1):
        machine.build(self.root, machine.files("roce", number))

    def change(self, path, text):
        with open(self.root + path, "w", encoding="utf-8") as file:
            file.write(text)

    def cohort(self, count, change=None):
        """Sheets of so many hosts, all made from one. change(number, facts by (name, subject)) alters them."""
        self.build()
        sheet = self.inspect("--root", self.root)
        for number in range(1, count + 1):
            one = json.loads(json.dumps(sheet))
            one["host"] = f"h{number}"
            facts = {(f["fact"], f["subject"]): f for f in one["facts"]}
            facts["os.machine_id", ""]["value"] = f"{number:032x}"
            for f in one["facts"]:
                if f["fact"] == "rdma.guid":
                    f["value"] = f"{number:04x}:0000:0000:000{f['subject'][-1]}"
            if change is not None:
                change(number, facts)
            with open(os.path.join(self.sheets, f"h{number}.json"), "w", encoding="utf-8") as file:
                json.dump(one, file)

    def results(self, *words):
        done = self.foliot("show", self.sheets, "--json", "--all", *words)
        self.assertIn(done.returncode, (0, 1, 3), done.stderr)
        return json.loads(done.stdout)["results"]

    def statuses(self, check, *words):
        return {r["host"]: (r["status"], r["reason"], r["suspect"]) for r in self.results(*words) if r["check"] == check}

    # ---- what a user sees ----

    def test_a_well_host_passes_its_gate(self):
        self.build()
        for form, line in (("text", r"^roce1: pass: "), ("slurm", "^roce1: pass"), ("npd", "^roce1: pass"), ("nagios", "^FOLIOT OK - roce1: ")):
            done = self.foliot("gate", "--root", self.root, "--format", form)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertRegex(done.stdout, line)

    def test_a_host_without_results_of_tests_passes_its_gate(self):
        self.build()
        shutil.rmtree(self.root + "/var/lib/foliot/tests")
        done = self.foliot("gate", "--root", self.root, "--format", "slurm")
        self.assertEqual((done.returncode, done.stdout[:12]), (0, "roce1: pass:"), done.stdout + done.stderr)
        os.mkdir(self.root + "/var/lib/foliot/tests")
        self.assertEqual(self.foliot("gate", "--root", self.root).returncode, 0)

    def test_a_failure_closes_the_gate_and_has_its_evidence(self):
        self.build()
        self.change("/sys/bus/pci/devices/0000:3b:00.0/current_link_width", "8\n")
        for form, code in (("text", 2), ("slurm", 1), ("npd", 1), ("nagios", 2), ("json", 2)):
            done = self.foliot("gate", "--root", self.root, "--format", form)
            self.assertEqual(done.returncode, code, form)
            self.assertIn("cfg.pcie.width", done.stdout)
        shown = self.foliot("run", "--root", self.root)
        self.assertEqual(shown.returncode, 1)
        self.assertRegex(shown.stdout, r"fail cfg\.pcie\.width  roce1 0000:3b:00\.0 \(eth1, mlx5_1, slot 21\)  \(block\)\n  found     x8\n  expected  x16")
        self.assertIn("Reseat the card", shown.stdout)

    def test_a_blocking_check_that_is_unknown_closes_the_gate(self):
        self.build()
        os.unlink(self.root + "/sys/bus/pci/devices/0000:3b:00.0/current_link_width")
        for form, code in (("text", 3), ("slurm", 1), ("npd", 2), ("nagios", 3)):
            done = self.foliot("gate", "--root", self.root, "--format", form)
            self.assertEqual(done.returncode, code, done.stdout)

    def test_many_hosts_are_told_in_few_lines(self):
        """First the hosts that must not take a job; then failures by severity; a failure of several hosts once; unknown hosts by
        name."""
        def change(number, facts):
            if number in (3, 7):
                facts["mem.swaps", ""]["value"] = "1"
            if number == 9:
                facts["pci.width", "0000:3b:00.0"]["value"] = "8"
            if number in (11, 12):
                facts["time.source", ""].update(state="no_permission", value="")
                facts["os.numa_balancing", ""].update(state="no_permission", value="")
            if number in (20, 21, 22):
                facts["os.bios", ""]["value"] = "2.5.0"
            if number == 30:
                facts["port.state", "mlx5_1/1"].update(state="unreadable", value="")
        self.cohort(40, change)
        text = self.foliot("show", self.sheets).stdout
        self.assertRegex(text, r"\Aaudit of 40 hosts: fail\nhosts: 3 fail, 3 unknown, 3 warn, 31 pass\n"
                               r"no job may begin on 1 host \(a blocking check fails\): h9\n"
                               r"no job may begin on 1 host \(a blocking check is unknown\): h30\n")
        self.assertEqual(re.findall(r"^(?:fail|warn|suspect) .*", text, re.M), [
            "fail cfg.pcie.width  h9 0000:3b:00.0 (eth1, mlx5_1, slot 21)  (block)", "fail cfg.mem.swap  2 hosts: h3, h7  (ticket)",
            "suspect cfg.fw.bios  3 hosts: h20, h21, h22  (ticket)"], text)
        self.assertIn("  found     1 (swap areas in use)\n  expected  at most 0\n  source    /proc/swaps\n", text)
        self.assertRegex(text, r"  source    /sys/bus/pci/devices/0000:3b:00.0/current_link_width\n  read      20\d\d-\d\d-\d\d ")
        unknown = text[text.index("NOT KNOWN"):]
        self.assertRegex(unknown, r"cfg\.kern\.numa_balancing and 1 more +no_permission +no_permission +h11, h12\n")
        self.assertRegex(unknown, r"no_source +unreadable +h30\n")
        few = self.foliot("show", os.path.join(self.sheets, "h1.json")).stdout
        self.assertRegex(few, r"NOT KNOWN.*\ncfg\.sw\.kernel and \d+ more +small_cohort +too few others to compare it with +h1\n")
        # rules alone decide the gate, and they pass
        self.assertEqual((few.count("small_cohort"), few.count("no job may begin")), (1, 0), few)

    def test_files_for_pipelines_and_browsers(self):
        """JUnit: a suite for each host, an unknown result is an error. HTML: names are shown as text, and nothing is loaded from
        elsewhere."""
        def change(number, facts):
            if number == 2:
                facts["os.kernel", ""]["value"] = "6.8.0-58-generic"
            if number == 3:
                facts["time.source", ""].update(state="no_permission", value="")
            if number == 4:
                facts["os.product", ""]["value"] = "<script>alert(1)</script>"
        self.cohort(8, change)
        os.rename(os.path.join(self.sheets, "h5.json"), os.path.join(self.sheets, "five.json"))
        path = os.path.join(self.sheets, "five.json")
        with open(path, encoding="utf-8") as file:
            sheet = json.load(file)
        sheet["host"] = "h5<img src=x onerror=alert(2)>\"'&\x1b\ufffe\uffff"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(sheet, file)
        junit, html = (os.path.join(self.folder, name) for name in ("audit.xml", "audit.html"))
        done = self.foliot("show", self.sheets, "--junit", junit, "--html", html, "--json", "--all")
        results = json.loads(done.stdout)["results"]
        suites = {suite.get("name"): suite for suite in ElementTree.parse(junit).getroot()}
        self.assertEqual((len(suites), [name for name in suites if name.startswith("h5")]), (8, ["h5<img src=x onerror=alert(2)>\"'&???"]))
        for host, check, tag in (("h2", "cfg.sw.kernel", "failure"), ("h3", "cfg.time.source", "error"), ("h1", "cfg.sw.kernel", None)):
            case = [c for c in suites[host] if c.get("name") == check][0]
            self.assertEqual([child.tag for child in case], [tag] if tag else [], (host, check))
        self.assertIn("found 6.8.0-58-generic, expected 6.8.0-60-generic", [c for c in suites["h2"] if c.get("name") == "cfg.sw.kernel"][0][0].text)
        for suite in suites.values():
            name = suite.get("name") if "<" not in suite.get("name") else sheet["host"]
            worst = {}
            for r in results:
                if r["host"] == name:
                    order = ["fail", "unknown", "warn", "pass", "skip"]
                    worst[r["check"]] = min(worst.get(r["check"], "skip"), r["status"], key=order.index)
            counts = tuple(list(worst.values()).count(status) for status in ("fail", "unknown", "skip"))
            self.assertEqual(tuple(int(suite.get(key)) for key in ("failures", "errors", "skipped")), counts, name)
            self.assertEqual(int(suite.get("tests")), len(worst), name)
        with open(html, encoding="utf-8") as file:
            page = file.read()
        self.assertNotRegex(page, r"<script|<img|onerror=alert\(2\)>|src=\"|href=|url\(")
        self.assertIn("h5&lt;img src=x onerror=alert(2)&gt;", page)
        self.assertIn("cfg.sw.kernel", page)
        # a file that can't be written is reported, and the exit status shows it
        done = self.foliot("show", self.sheets, "--junit", os.path.join(self.folder, "none", "audit.xml"))
        self.assertEqual((done.returncode, "can't be written" in done.stderr), (3, True), done.stderr)

    def test_nothing_at_all_is_no_pass(self):
        os.makedirs(self.root)
        self.assertEqual(self.foliot("gate", "--root", self.root).returncode, 3)
        self.assertIn(self.foliot("run", "--root", self.root).returncode, (1, 3))

    def test_wrong_usage(self):
        for words in (["what"], ["show"], ["explain"], ["explain", "cfg.nothing"], ["gate", "--format", "xml"], ["show", "x", "--config", "/nonexistent"]):
            self.assertEqual(self.foliot(*words).returncode, 2, words)
        self.assertEqual(self.foliot("show", "/nonexistent").returncode, 3)
        self.assertEqual(self.foliot("show", self.sheets).returncode, 3)

    def test_checks_explain_themselves(self):
        for check in json.loads(self.foliot("checks", "--json").stdout)["checks"][::8]:
            one = self.foliot("explain", check["check"])
            self.assertEqual(one.returncode, 0)
            for word in ("severity", "cost", "reads", "why: ", "remedy: ", "source"):
                self.assertIn(word, one.stdout, check["check"])

    def test_checks_have_limits_and_conditions(self):
        """As JSON a check has what its text has: limits, the rule's values, the condition, the cost of its test."""
        listed = {check["check"]: check for check in json.loads(self.foliot("checks", "--json").stdout)["checks"]}
        for check, one in listed.items():
            self.assertEqual(one["fail"] is None, one["unit"] is None, check)
            self.assertEqual(one["warn"] is None, one["unit"] is None, check)
        self.assertEqual(json.loads(self.foliot("explain", "--json", "node.disk").stdout), listed["node.disk"])
        self.assertEqual([listed["node.disk"][key] for key in ("fail", "warn", "unit", "values", "only_where")], [90, 85, "percent", None, None])
        self.assertEqual((listed["be.lat.base"]["fail"], listed["cfg.kern.governor"]["values"]), (1000, "performance"))
        self.assertEqual({key: listed["be.roce.gid_type"]["only_where"][key] for key in ("fact", "not", "value")},
                         {"fact": "port.layer", "not": False, "value": "Ethernet"})
        self.assertEqual({check: (listed[check]["cost"], listed[check]["test_cost"]) for check in ("be.bw.pair", "nccl.alltoall", "be.matrix.reach", "fe.bw")},
                         {"be.bw.pair": ("passive", "bandwidth"), "nccl.alltoall": ("passive", "exclusive"), "be.matrix.reach": ("packets", None), "fe.bw": ("passive", None)})

    def test_this_machine_is_read(self):
        done = self.foliot("facts", "-o", os.path.join(self.sheets, "me.json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.sheets, "me.json"), encoding="utf-8") as file:
            facts = {f["fact"]: f for f in json.load(file)["facts"]}
        self.assertEqual(facts["os.kernel"]["value"], os.uname().release)
        self.assertNotIn("state", facts["mem.total"])
        self.assertIn(self.foliot("show", self.sheets).returncode, (0, 1, 3))

    # ---- cohorts ----

    def test_runs_that_were_not_checked_have_no_verdict(self):
        path = "/var/lib/foliot/tests/alltoall.txt"
        self.build()
        with open(self.root + path, encoding="utf-8") as file:
            whole = file.read()
        checked = "# Out of bounds values : 0 OK\n"
        for text, wrong in ((whole, "0"), (whole.replace(checked, "", 1), "-1"), (whole.replace(checked, ""), "-1"),
                            (whole.replace(checked, "", 1).replace(": 0 OK", ": 3 FAILED", 1), "3")):
            self.change(path, text)
            facts = {(f["fact"], f["subject"]): f for f in self.inspect("--root", self.root)["facts"]}
            self.assertEqual(str(facts["test.wrong", "alltoall"]["value"]), wrong)

    def test_a_speed_that_the_driver_does_not_tell_is_no_figure(self):
        self.build()
        self.change("/sys/class/net/eno1/speed", "-1\n")
        results = json.loads(self.foliot("run", "--root", self.root, "--json", "--all").stdout)["results"]
        [link] = [r for r in results if r["check"] == "fe.link"]
        self.assertNotIn("-1", json.dumps(link["note"]) + json.dumps(link["found"]), link)
        self.assertIn("no speed told", json.dumps(link))

    def test_a_neighbour_that_nothing_is_heard_from_is_told_so(self):
        """Its paths were measured before. The note was wrong: it was that they were not measured yet."""
        self.build()
        with open(self.root + "/answers/agent/mesh", encoding="utf-8") as file:
            mesh = json.load(file)
        edge = mesh["edges"][1]
        edge["silent"] = True
        for path in edge["paths"]:
            for way in ("out", "in"):
                path[way] = {"state": "unknown", "sent": 400000, "lost": 0, "owd_ns_min": None, "owd_ns_p99": None}
        self.change("/answers/agent/mesh", json.dumps(mesh) + "\n")
        with open(os.path.join(self.sheets, "h1.json"), "w", encoding="utf-8") as file:
            json.dump(self.inspect("--root", self.root), file)
        found = [r for r in self.results() if r["check"] == "be.conn.matrix" and r["subject"].split()[1] == edge["peer_host"] and r["status"] == "unknown"]
        self.assertEqual([r["note"][:27] for r in found], ["nothing is heard from it: w"])

    def test_few_hosts_are_no_cohort(self):
        self.cohort(4)
        self.assertEqual({s[:2] for s in self.statuses("cfg.sw.kernel").values()}, {("unknown", "small_cohort")})

    def test_one_of_five_differs(self):
        def change(number, facts):
            if number == 3:
                facts["os.kernel", ""]["value"] = "6.8.0-58-generic"
        self.cohort(5, change)
        found = self.statuses("cfg.sw.kernel")
        self.assertEqual(found.pop("h3")[0], "fail")
        self.assertEqual({s[0] for s in found.values()}, {"pass"})

    def test_no_majority_condemns_nobody(self):
        def change(number, facts):
            facts["os.kernel", ""]["value"] = f"6.8.0-{number % 2}-generic"
        self.cohort(10, change)
        self.assertEqual({s[:2] for s in self.statuses("cfg.sw.kernel").values()}, {("unknown", "no_majority")})

    def test_a_site_declares_who_is_alike(self):
        """Hosts of one product with two roles: each is compared with the hosts of its own role."""
        def change(number, facts):
            facts["os.kernel", ""]["value"] = f"6.8.0-{number % 2 + 10 * (number == 7)}-generic"
        self.cohort(12, change)
        self.assertEqual({s[:2] for s in self.statuses("cfg.sw.kernel").values()}, {("unknown", "no_majority")})
        odd = self.settings("cohorts:\n  odd: [" + ", ".join(f"h{i}" for i in range(1, 12, 2)) + "]\n  even: ['h*']\n")
        found = self.statuses("cfg.sw.kernel", "--config", odd)
        self.assertEqual({host: status[0] for host, status in found.items()}, {f"h{i}": "fail" if i == 7 else "pass" for i in range(1, 13)})
        few = self.statuses("cfg.sw.kernel", "--config", self.settings("cohorts: {few: [h1, h3], all: ['*']}\n"))
        self.assertEqual({host for host, status in few.items() if status[:2] == ("unknown", "small_cohort")}, {"h1", "h3"})

    def test_a_check_that_would_condemn_many_is_suspect_itself(self):
        def change(number, facts):
            facts["mem.swaps", ""]["value"] = "1" if number <= 6 else "0"
        self.cohort(24, change)
        found = self.statuses("cfg.mem.swap")
        self.assertEqual({found[f"h{n}"] for n in range(1, 7)}, {("warn", None, True)})
        self.assertEqual({found[f"h{n}"][0] for n in range(7, 25)}, {"pass"})
        done = self.foliot("show", self.sheets)
        self.assertIn("suspect cfg.mem.swap", done.stdout)

    def test_one_host_fails_what_many_would_be_suspect_of(self):
        def change(number, facts):
            facts["mem.swaps", ""]["value"] = "1" if number == 1 else "0"
        self.cohort(24, change)
        self.assertEqual(self.statuses("cfg.mem.swap")["h1"], ("fail", None, False))

    def test_a_young_host_fails_nothing(self):
        def change(number, facts):
            if number == 1:
                facts["os.uptime", ""]["value"] = "100"
                facts["pci.width", "0000:3b:00.0"]["value"] = "8"
        self.cohort(6, change)
        wide = {(r["host"], r["subject"]): r for r in self.results() if r["check"] == "cfg.pcie.width"}
        self.assertEqual((wide["h1", "0000:3b:00.0"]["status"], wide["h1", "0000:3b:00.0"]["reason"]), ("unknown", "young"))

    def test_a_port_that_nobody_uses_is_none(self):
        def change(number, facts):
            facts["port.state", "mlx5_1/1"]["value"] = "1: DOWN"
            facts["port.physical", "mlx5_1/1"]["value"] = "2: Polling"
            facts["port.gids", "mlx5_1/1"]["value"] = "0 v1 link, 1 v2 link"
        self.cohort(6, change)
        ports = {r["status"] for r in self.results() if r["check"] == "be.link.initialized" and r["subject"] == "mlx5_1/1"}
        self.assertEqual(ports, {"skip"})

        def but_one(number, facts):
            if number == 2:
                change(number, facts)
        self.cohort(6, but_one)
        ports = {r["host"]: r["status"] for r in self.results() if r["check"] == "be.link.initialized" and r["subject"] == "mlx5_1/1"}
        self.assertEqual(ports["h2"], "fail")

    def test_the_same_facts_give_the_same_results(self):
        self.cohort(6, lambda number, facts: None)
        self.assertEqual(self.foliot("show", self.sheets, "--json", "--all").stdout, self.foliot("show", self.sheets, "--json", "--all").stdout)

    # ---- audit.yaml ----

    def settings(self, text):
        path = os.path.join(self.folder, "audit.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_settings_change_values_and_are_told(self):
        def change(number, facts):
            facts["mem.swaps", ""]["value"] = "1" if number == 1 else "0"
        self.cohort(6, change)
        off = self.settings('version: 1\nchecks:\n  cfg.mem.swap: {off: "anna, 2026-11-20"}\n')
        self.assertEqual({s[0] for s in self.statuses("cfg.mem.swap", "--config", off).values()}, {"skip"})
        self.assertIn("switched off: cfg.mem.swap by anna, 2026-11-20", self.foliot("show", self.sheets, "--config", off).stdout)
        declared = self.settings('version: 1\nchecks:\n  cfg.gpu.count: {declared: "8"}\n')
        found = {r["host"]: r for r in self.results("--config", declared) if r["check"] == "cfg.gpu.count"}
        self.assertTrue(found["h2"]["overridden"])
        self.assertEqual(found["h2"]["expected"], "8")
        self.assertEqual(self.results("--config", declared), self.results("--config", self.settings(
            'checks:\n  cfg.gpu.count: {declared: {all: "8"}}\ncohorts: {all: ["*"]}\n')))
        found = self.statuses("cfg.gpu.count", "--config", self.settings(
            'checks:\n  cfg.gpu.count: {declared: {two: "4", three: "0"}}\ncohorts: {two: [h2], three: [h3]}\n'))
        self.assertEqual((found["h2"][0], found["h3"][0], found["h1"][:2]), ("pass", "fail", ("unknown", "small_cohort")))

    def test_settings_that_name_what_is_not_there_are_refused_with_their_place(self):
        self.cohort(1)
        for text, place in (("version: 1\nchecks:\n  cfg.mem.swop: {off: me}\n", ":3:"), ("version: 1\nchecks:\n  cfg.mem.swap: {of: me}\n", ":3:"),
                            ("version: 2\n", ":1:"), ("chekcs: {}\n", ":1:"), ("matrix: true\n", ":1:"), ("every: 1d\nmatrix: always\n", ":2:"), ("checks:\n  cfg.mem.swap: {fail: 3}\n", ":2:"),
                            ("checks:\n  cfg.pcie.width: {declared: '8'}\n", ":2:"), ("checks: [a]\n", ":1:"), ("a: [\n", ":"),
                            ("cohorts: [h1]\n", ":1:"), ("cohorts:\n  a: h1\n", ":2:"), ("cohorts:\n  a: [h1]\n  b: [h2, h1]\n", ":3:"), ("cohorts:\n  a: []\n", ":2:"),
                            ("checks:\n  cfg.gpu.count:\n    declared: {a: '8',\n      b: '0'}\ncohorts: {a: [h1]}\n", ":4:"),
                            ("checks:\n  cfg.gpu.count: {declared: {a: '8'}}\n", ":2:"), ("checks:\n  cfg.gpu.count: {declared: {}}\n", ":2:"),
                            ("checks:\n  cfg.gpu.count: {declared: {a: [8]}}\ncohorts: {a: [h1]}\n", ":2:"),
                            ("checks:\n  be.roce.dscp_path: {declared: {a: '8'}}\ncohorts: {a: [h1]}\n", ":2:"),
                            ("checks:\n  cfg.pcie.width: {declared: {a: '8'}}\ncohorts: {a: [h1]}\n", ":2:")):
            done = self.foliot("show", self.sheets, "--config", self.settings(text))
            self.assertEqual((done.returncode, done.stdout), (2, ""), text)
            self.assertIn("audit.yaml" + place, done.stderr)

    def test_the_manual_has_each_key_and_an_example_that_is_taken(self):
        top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        with open(os.path.join(top, "man", "foliot-audit.yaml.5.scd"), encoding="utf-8") as file:
            page = file.read()
        with open(os.path.join(top, "src", "service", "audit", "settings.c"), encoding="utf-8") as file:
            keys = set(re.findall(r'"(\w+)"', " ".join(re.findall(r"const keys\[\] = \{(.*?)\}", file.read(), re.S))))
        self.assertLessEqual({"every", "matrix", "fail", "severity", "classes"}, keys)
        self.assertEqual({key for key in keys if f"*{key}*" not in page}, set())
        self.cohort(1)
        done = self.foliot("show", self.sheets, "--config", self.settings(page.split("```")[1].strip() + "\n"))
        self.assertEqual((done.returncode in (0, 1, 3), done.stderr), (True, ""), done.stderr)

    def test_limits_are_tried_on_the_past(self):
        """Limits are tried on the sheets of two days: the output has the hosts that would have failed, and the checks. Nothing
        else changes."""
        days = []
        for day, used in (("monday", {2: 93, 4: 97}), ("tuesday", {2: 94})):
            def change(number, facts, used=used):
                next(f for (fact, _), f in facts.items() if fact == "disk.used")["value"] = str(used.get(number, 10))
            shutil.rmtree(self.root, ignore_errors=True)
            self.cohort(5, change)
            shutil.copytree(self.sheets, os.path.join(self.folder, day))
            days.append(os.path.join(self.folder, day))
        done = self.foliot("test", "node.disk", "--fail", "95", *days, "--json")
        told = json.loads(done.stdout)
        self.assertEqual((done.returncode, told["kind"], told["check"], [os.path.basename(p["path"]) for p in told["paths"]]), (1, "audit-test", "node.disk", ["monday", "tuesday"]), done.stderr)
        self.assertEqual([{(c["host"], c["was"], c["is"] == "fail") for c in p["changed"]} for p in told["paths"]], [{("h2", "fail", False)}] * 2, told)
        self.assertEqual([(p["was"]["fail"], p["is"]["fail"]) for p in told["paths"]], [(2, 1), (1, 0)])
        text = self.foliot("test", "node.disk", "--fail", "95", *days).stdout
        self.assertRegex(text, r"(?s)monday\n  now +fail 2, .*  tried +fail 1, .*  h2 \S+: fail, would be warn  [^\n]*93")
        self.assertEqual(self.foliot("test", "node.disk", "--fail", "90", *days).returncode, 0)
        for words in (("no.such", "--fail", "1"), ("node.disk",), ("node.disk", "--fail", "many"), ("cfg.pcie.width", "--fail", "1"), ("node.disk", "--declared", "9")):
            self.assertEqual(self.foliot("test", *words, days[0]).returncode, 2, words)

    # ---- other people's files ----

    def test_files_of_others_are_refused_or_harmless(self):
        path = os.path.join(self.sheets, "x.json")
        for text in ("", "{", "[]", "{}", '{"version":1,"kind":"audit"}', '{"version":1,"kind":"audit-facts"}', '{"version":1,"kind":"audit-facts","host":"h","facts":{}}'):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            done = self.foliot("show", path)
            self.assertEqual((done.returncode, done.stdout), (2, ""), text)
            self.assertIn("x.json", done.stderr)
        poison = "\x1b[2J\r\nFORGED\u202e"
        facts = [{"fact": name, "subject": poison, "value": poison, "source": poison} for name in ("pci", "net", "port", "gpu", "site", "rdma")]
        facts += [{"fact": "os.kernel", "subject": "", "value": poison, "source": poison}, {"fact": "new.fact", "subject": "", "value": "1"}]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"version": 1, "kind": "audit-facts", "host": "h" + poison, "at_utc_ns": 1, "facts": facts}, file)
        for words in ([], ["--all"], ["--json"]):
            done = self.foliot("show", path, *words)
            self.assertIn(done.returncode, (1, 3), done.stderr)
            self.assertNotIn("\x1b", done.stdout + done.stderr)
            self.assertNotRegex(done.stdout, r"(?m)^FORGED")

    def test_two_sheets_of_one_host_are_refused(self):
        self.cohort(1)
        shutil.copy(os.path.join(self.sheets, "h1.json"), os.path.join(self.sheets, "h2.json"))
        done = self.foliot("show", self.sheets)
        self.assertEqual(done.returncode, 2)
        self.assertIn("a second sheet of host h1", done.stderr)

    def test_a_host_that_is_named_with_markup_stays_text(self):
        self.build()
        self.change("/proc/sys/kernel/hostname", "h\x1b[31mx\n")
        done = self.foliot("run", "--root", self.root)
        self.assertNotIn("\x1b", done.stdout + done.stderr)

    # ---- reads that hang ----

    def test_a_reader_that_never_ends_is_named_and_the_rest_is_there(self):
        self.build()
        begin = time.monotonic()
        sheet = self.inspect("--root", self.root, "--slow", "gpu", "--deadline", "3000")
        self.assertLess(time.monotonic() - begin, 200)
        states = {(f["fact"], f["subject"]): f.get("state", "value") for f in sheet["facts"]}
        self.assertEqual(states["gpu", ""], "timeout")
        self.assertEqual(states["os.kernel", ""], "value")
        self.assertEqual(states["port.state", "mlx5_0/1"], "value")

    def test_a_reader_that_hangs_is_not_started_twice(self):
        self.build()
        run = os.path.join(self.folder, "run")
        os.makedirs(run)
        with open("/proc/self/stat", encoding="utf-8") as file:
            start = file.read().rpartition(")")[2].split()[19]
        for pid, began, expected in ((os.getpid(), start, "stuck"), (os.getpid(), int(start) + 1, "value"), (2**22 + 1, 5, "value")):
            with open(os.path.join(run, "gpu"), "w", encoding="utf-8") as file:
                file.write(f"{pid} {began}\n")
            sheet = self.inspect("--root", self.root, "--run", run)
            states = {(f["fact"], f["subject"]): f.get("state", "value") for f in sheet["facts"]}
            self.assertEqual(states.get(("gpu", ""), states.get(("gpu", "0000:1b:00.0"))), expected)
            with open(os.path.join(self.sheets, "h.json"), "w", encoding="utf-8") as file:
                json.dump(sheet, file)
            if expected == "stuck":
                self.assertEqual(self.statuses("cfg.gpu.count")["roce1"][:2], ("unknown", "stuck"))

    @unittest.skipIf(os.geteuid() != 0 or not os.path.exists("/dev/fuse"), "needs root and /dev/fuse")
    def test_a_mount_that_never_answers_fails_and_keeps_nobody(self):
        self.build()
        self.change("/proc/mounts", "/dev/sda / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw,size=528213156k 0 0\nsrv:/d /data nfs4 rw 0 0\nsrv:/e /dead nfs4 rw 0 0\n")
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(machine.dead_mount(self.root + "/dead"))
            except OSError as error:
                self.skipTest(f"no FUSE mount here: {error}")
            sheet = self.inspect("--root", self.root, "--mount-deadline", "10000")
        states = {f["subject"]: f.get("state", f["value"]) for f in sheet["facts"] if f["fact"] == "mount.answers"}
        self.assertIn(states["/dead"], ("timeout", "stuck"))
        self.assertEqual(states["/data"], "1")
        with open(os.path.join(self.sheets, "h.json"), "w", encoding="utf-8") as file:
            json.dump(sheet, file)
        mounts = {r["subject"]: r["status"] for r in self.results() if r["check"] == FAILS[0]}
        self.assertEqual(mounts, {"": "unknown", "/data": "pass", "/dead": "fail"})

    def test_hostile_programs_of_the_site(self):
        self.build()
        checks = os.path.join(self.folder, "checks.d")
        os.makedirs(checks)
        for name, text, mode in (("loud", "#!/bin/sh\nyes x | head -c 10000000; exit 0\n", 0o755), ("binary", "#!/bin/sh\nprintf '\\033[2J\\377\\n'; exit 2\n", 0o755),
                                 ("open", "#!/bin/sh\nexit 0\n", 0o777), ("folder", None, 0)):
            path = os.path.join(checks, name)
            if text is None:
                os.makedirs(path)
                continue
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, mode)
        with open(os.path.join(self.sheets, "h.json"), "w", encoding="utf-8") as file:
            json.dump(self.inspect("--root", self.root, "--checks", checks), file)
        found = {r["subject"]: r["status"] for r in self.results() if r["check"] == FAILS[1]}
        self.assertEqual(found, {"loud": "pass", "binary": "fail", "open": "unknown", "folder": "unknown"})

    def site(self, programs, *words):
        """Returns {program: (status, reason, evidence)}, and the sheet."""
        checks = os.path.join(self.folder, "checks.d")
        os.makedirs(checks, exist_ok=True)
        for name, text in programs.items():
            with open(os.path.join(checks, name), "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n" + text)
            os.chmod(os.path.join(checks, name), 0o755)
        sheet = self.inspect("--root", self.root, "--checks", checks, *words)
        with open(os.path.join(self.sheets, "h.json"), "w", encoding="utf-8") as file:
            json.dump(sheet, file)
        return {r["subject"]: (r["status"], r["reason"], r["found"]) for r in self.results() if r["check"] == "node.command"}, sheet

    def test_programs_of_the_site_that_do_not_end_keep_no_other(self):
        """A program is silent, one closes its output, one leaves a child that holds it, one kills its reader's group: the others
        are still read."""
        self.build()
        found, sheet = self.site({"a-silent": "sleep 1000", "b-closed": "exec >&- 2>&-; sleep 1000", "c-left": "echo so; sleep 1000 & exit 0",
                                  "d-loud": "yes x | head -c 3000000; exit 2", "e-well": "echo fine", "f-killer": "kill -9 0"}, "--site-deadline", "30000")
        late = ("unknown", "timeout")
        self.assertEqual({name: words[:2] for name, words in found.items()},
                         {"a-silent": late, "b-closed": late, "c-left": late, "d-loud": ("fail", None), "e-well": ("pass", None), "f-killer": ("unknown", "no_source")})
        self.assertEqual(found["e-well"][2], "fine")
        self.assertEqual([f for f in sheet["facts"] if f["fact"] == "os.kernel" and f.get("state", "value") != "value"], [])

    def test_programs_of_the_site_in_a_folder_that_others_may_write(self):
        self.build()
        self.site({"well": f"touch {self.folder}/ran"})
        self.assertTrue(os.path.exists(self.folder + "/ran"))
        os.unlink(self.folder + "/ran")
        os.chmod(os.path.join(self.folder, "checks.d"), 0o777)
        found, _ = self.site({})
        self.assertEqual([words[:2] for words in found.values()], [("unknown", "no_permission")], found)
        self.assertFalse(os.path.exists(self.folder + "/ran"))

    # ---- libraries of GPUs ----

    @staticmethod
    def deadline(mood):
        """A short deadline if the library never answers. Else a long one, so that a pause of the machine makes nothing late."""
        return "3000" if mood.startswith(("hang", "late")) else "60000"

    def library(self, mood="", name="FAKE_NVML_LIBRARY"):
        """Facts of GPUs, from the fake library: {(fact, subject): value or state}."""
        self.build()
        done = subprocess.run([INSPECT, "--root", self.root, "--gpu-library", os.environ[name], "--deadline", self.deadline(mood)], capture_output=True, text=True,
                              timeout=300, check=True, env=dict(os.environ, FAKE_NVML=mood))
        sheet = json.loads(done.stdout)
        with open(os.path.join(self.sheets, "h.json"), "w", encoding="utf-8") as file:
            json.dump(sheet, file)
        return {(f["fact"], f["subject"]): f.get("state", f["value"]) for f in sheet["facts"]}

    def gpu_statuses(self):
        return {r["check"]: r["status"] for r in self.results() if r["check"] in (
            "cfg.gpu.remap", "cfg.gpu.throttle", "cfg.gpu.ecc", "cfg.pcie.replay", "cfg.sw.fabric_manager")}

    def test_a_library_answers_what_its_machine_has(self):
        self.build()
        recorded = {(f["fact"], f["subject"]): f["value"] for f in self.inspect("--root", self.root)["facts"] if f["fact"].startswith("gpu.")}
        found = self.library()
        self.assertEqual({key: value for key, value in found.items() if key[0].startswith("gpu.")}, recorded)
        self.assertEqual(set(self.gpu_statuses().values()), {"pass"})

    def test_a_library_that_hangs_crashes_or_is_late_is_unknown_and_keeps_nobody(self):
        for mood, state in (("hang nvmlInit_v2", "timeout"), ("hang nvmlDeviceGetEccMode", "timeout"), ("late nvmlDeviceGetCount_v2", "timeout"),
                            ("crash nvmlInit_v2", "unreadable"), ("crash nvmlDeviceGetNvLinkState", "unreadable")):
            found = self.library(mood)
            self.assertEqual(found["gpu.library", ""], state, mood)
            self.assertEqual(found["port.state", "mlx5_0/1"], "4: ACTIVE")
            self.assertEqual(set(self.gpu_statuses().values()), {"unknown"}, mood)

    def test_a_librarys_errors_are_no_verdicts(self):
        for code in (1, 2, 4, 9, 10, 13, 15, 18, 999, -1):
            for function in ("nvmlInit_v2", "nvmlDeviceGetCount_v2", "all"):
                self.library(f"error {code} {function}")
                self.assertEqual(set(self.gpu_statuses().values()), {"unknown"}, (code, function))
        found = self.library("error 15 nvmlDeviceGetRemappedRows")
        self.assertEqual(found["gpu.remap_failed", "0000:3d:00.0"], "unreadable")
        self.assertEqual(self.gpu_statuses(), {"cfg.gpu.remap": "unknown", "cfg.gpu.throttle": "pass", "cfg.gpu.ecc": "pass", "cfg.pcie.replay": "pass",
                                               "cfg.sw.fabric_manager": "pass"})
        self.library("error 3 nvmlDeviceGetRemappedRows")  # the GPU does not have it
        self.assertEqual(self.gpu_statuses()["cfg.gpu.remap"], "skip")

    def test_a_library_of_another_version(self):
        found = self.library(name="FAKE_NVML_LESS")
        self.assertEqual(found["gpu.remap_failed", "0000:3d:00.0"], "unreadable")
        self.assertEqual(found["gpu.throttle", "0000:3d:00.0"], "0x0")
        self.assertEqual(self.gpu_statuses(), {"cfg.gpu.remap": "unknown", "cfg.gpu.throttle": "pass", "cfg.gpu.ecc": "pass", "cfg.pcie.replay": "pass",
                                               "cfg.sw.fabric_manager": "unknown"})
        self.build()
        facts = {f["fact"]: f for f in self.inspect("--root", self.root, "--gpu-library", "/nonexistent.so")["facts"]}
        self.assertEqual(facts["gpu.library"].get("state"), "unreadable")
        done = subprocess.run([INSPECT, "--root", self.root, "--gpu-library", "libc.so.6"], capture_output=True, timeout=300, check=True)
        facts = {f["fact"]: f for f in json.loads(done.stdout)["facts"]}
        self.assertEqual(facts["gpu.library"].get("state"), "unreadable")

    def amd_library(self, mood="", name="FAKE_AMDSMI_LIBRARY"):
        machine.build(self.root, machine.files("amd", 1))
        done = subprocess.run([INSPECT, "--root", self.root, "--gpu-library", os.environ[name], "--deadline", self.deadline(mood)], capture_output=True, text=True,
                              timeout=300, check=True, env=dict(os.environ, FAKE_AMDSMI=mood))
        sheet = json.loads(done.stdout)
        with open(os.path.join(self.sheets, "h.json"), "w", encoding="utf-8") as file:
            json.dump(sheet, file)
        replays = {r["status"] for r in self.results() if r["check"] == "cfg.pcie.replay"}
        return {(f["fact"], f["subject"]): f.get("state", f["value"]) for f in sheet["facts"] if f["fact"].startswith("gpu.")}, replays

    def test_amds_library(self):
        """It has the machine's values; it hangs, crashes, is late, returns errors; it is of another release, or missing."""
        machine.build(self.root, machine.files("amd", 1))
        recorded = {(f["fact"], f["subject"]): f.get("state", f["value"]) for f in self.inspect("--root", self.root)["facts"] if f["fact"].startswith("gpu.")}
        self.assertEqual(self.amd_library(), (recorded, {"pass"}))
        for mood, state in (("hang amdsmi_init", "timeout"), ("late amdsmi_get_power_cap_info", "timeout"), ("crash amdsmi_get_gpu_bdf_id", "unreadable"),
                            ("error 10 amdsmi_init", "no_permission"), ("error 34 amdsmi_init", "unreadable"), ("error 1 amdsmi_get_socket_handles", "unreadable")):
            found, replays = self.amd_library(mood)
            self.assertEqual((found["gpu.library", ""], replays), (state, {"unknown"}), mood)
            self.assertEqual(found["gpu.model", "0000:3d:00.0"], recorded["gpu.model", "0000:3d:00.0"])  # by files
        found, replays = self.amd_library("error 2 amdsmi_get_gpu_pci_replay_counter")
        self.assertEqual((found["gpu.replays", "0000:3d:00.0"], replays), ("absent", {"skip"}))
        found, replays = self.amd_library(name="FAKE_AMDSMI_LESS")
        self.assertEqual((found["gpu.power", "0000:3d:00.0"], found["gpu.replays", "0000:3d:00.0"], replays), ("unreadable", "unreadable", {"unknown"}))
        facts = {f["fact"]: f for f in self.inspect("--root", self.root, "--gpu-library", "/nonexistent.so")["facts"]}
        self.assertEqual(facts["gpu.library"].get("state"), "absent")

    # ---- trees that aren't a machine ----

    def test_a_gpu_that_cannot_be_looked_at_is_not_gone(self):
        machine.build(self.root, machine.files("amd", 1))
        driver = self.root + "/sys/class/drm/card2/device/driver"
        os.unlink(driver)
        os.symlink("driver", driver)
        with open(os.path.join(self.sheets, "h.json"), "w", encoding="utf-8") as file:
            json.dump(self.inspect("--root", self.root), file)
        self.assertEqual(self.statuses("cfg.gpu.count")["amd1"][:2], ("unknown", "no_source"))

    def test_the_interface_beside_a_port(self):
        """The interface of a port's device, if there is only one. If there are several, or none because the port is made in
        software: that of the port's GIDs."""
        self.build()
        rdma = self.root + "/sys/class/infiniband/mlx5_1"

        def net(*words, root=self.root):
            facts = self.inspect("--root", root, *words)["facts"]
            return next((f.get("state", "value"), f.get("value")) for f in facts if (f["fact"], f["subject"]) == ("port.net", "mlx5_1/1"))
        self.assertEqual(net(), ("value", "eth1"))
        os.makedirs(rdma + "/ports/1/gid_attrs/ndevs")
        with open(rdma + "/ports/1/gid_attrs/ndevs/1", "w", encoding="utf-8") as file:
            file.write("eth3\n")
        self.assertEqual(net(), ("value", "eth1"))
        device = os.path.realpath(rdma + "/device")
        os.mkdir(device + "/net/eth3")
        self.assertEqual(net(), ("value", "eth3"))
        os.rmdir(device + "/net/eth3")
        os.rename(device + "/net", device + "/kept")
        self.assertEqual(net("--capture", self.folder + "/mine"), ("value", "eth3"))
        self.assertEqual(net(root=self.folder + "/mine"), ("value", "eth3"))
        # an interface that belongs to no device: its MTU is a fact, too
        os.makedirs(self.root + "/sys/class/net/bond7")
        for path, text in ((rdma + "/ports/1/gid_attrs/ndevs/1", "bond7\n"), (self.root + "/sys/class/net/bond7/mtu", "1500\n")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        self.assertEqual(self.verdicts()["be.roce.mtu", "mlx5_1/1"], "fail")
        os.unlink(rdma + "/ports/1/gid_attrs/ndevs/1")
        self.assertEqual(net()[0], "absent")

    # ---- damaged and unusual files ----

    SOURCES = {"/proc/meminfo": "cfg.mem.size", "/proc/swaps": "cfg.mem.swap", "/proc/sys/kernel/numa_balancing": "cfg.kern.numa_balancing",
               "/sys/class/infiniband/mlx5_0/ports/1/phys_state": "be.link.initialized", "/sys/class/infiniband/mlx5_0/ports/1/gids/3": "be.roce.gid_index",
               "/etc/nccl.conf": "be.roce.gid_index", "/proc/mounts": "node.mounts", "/proc/net/route": "fe.link"}

    def verdicts(self):
        with open(os.path.join(self.sheets, "h.json"), "w", encoding="utf-8") as file:
            json.dump(self.inspect("--root", self.root), file)
        return {(r["check"], r["subject"]): r["status"] for r in self.results()}

    # ---- machines of other kinds ----

    # What isn't a pass or a skip on a healthy host of each kind: its sources are of other devices, and none of it blocks a host.
    OTHERS = {
        "cpu": {},
        "vm": {("cfg.time.hwstamp", "warn")},
        "reload": {},
        "efa": {("cfg.fw.nic", "unknown"), ("cfg.fw.psid", "unknown"), ("be.link.drops", "unknown"), ("cfg.time.hwstamp", "warn")},
        "irdma": {("be.link.drops", "unknown"), ("be.roce.ecn", "unknown"), ("be.roce.cnp", "unknown"), ("be.roce.tclass", "unknown")},
    }

    def test_healthy_hosts_of_other_kinds(self):
        """Five hosts of a kind: without GPUs, virtual, with a driver that was loaded anew, with EFA, with Intel's NICs."""
        for kind, expected in self.OTHERS.items():
            with self.subTest(kind):
                for number in range(1, 6):
                    root = os.path.join(self.folder, f"{kind}{number}")
                    machine.build(root, machine.files(kind, number))
                    with open(os.path.join(self.sheets, f"{number}.json"), "w", encoding="utf-8") as file:
                        json.dump(self.inspect("--root", root), file)
                    shutil.rmtree(root)
                results = self.results()
                self.assertEqual({r["host"] for r in results}, {f"{kind}{number}" for number in range(1, 6)})
                self.assertEqual({(r["check"], r["status"]) for r in results if r["status"] not in ("pass", "skip")}, set(expected))
                self.assertFalse([r for r in results if r["status"] == "unknown" and r["severity"] == "block"])

    def test_one_bad_host_of_another_kind(self):
        """A host without GPUs has lost a quarter of its memory: that check fails on it, and nothing else does anywhere."""
        for number in range(1, 7):
            root = os.path.join(self.folder, f"cpu{number}")
            tree = machine.files("cpu", number)
            if number == 4:
                tree["/proc/meminfo"] = tree["/proc/meminfo"].replace(b"1056426312", b"792319734")
            machine.build(root, tree)
            with open(os.path.join(self.sheets, f"{number}.json"), "w", encoding="utf-8") as file:
                json.dump(self.inspect("--root", root), file)
        self.assertEqual({(r["host"], r["check"]) for r in self.results() if r["status"] == "fail"}, {("cpu4", "cfg.mem.size")})

    # ---- routes of an InfiniBand subnet, from opensm's files ----

    def routes(self, links=None, tables=None, conf="dump_files_dir /var/log/sm\n", folder="/var/log/sm", age_s=0):
        """Facts ib.* of a host with these files. None: as opensm wrote them; b"": no such file."""
        tree = machine.files("subnet", 1)
        files = {name: tree[f"/var/log/sm/{name}"] if text is None else text
                 for name, text in (("opensm-subnet.lst", links), ("opensm-lfts.dump", tables))}
        shutil.rmtree(self.root, ignore_errors=True)
        machine.put(self.root, "/etc/opensm/opensm.conf", conf.encode())
        for name, text in files.items():
            if text:
                machine.put(self.root, f"{folder}/{name}", text)
        if age_s:
            path = f"{self.root}{folder}/opensm-lfts.dump"
            os.utime(path, (os.stat(path).st_mtime - age_s,) * 2)
        return {(f["fact"], f["subject"]): f for f in self.inspect("--root", self.root)["facts"] if f["fact"].startswith("ib.")}

    def test_routes_are_followed_from_switch_to_switch(self):
        tree = machine.files("subnet", 1)
        links, tables = tree["/var/log/sm/opensm-subnet.lst"], tree["/var/log/sm/opensm-lfts.dump"]
        well = self.routes()
        self.assertEqual((len(well), well["ib.routes", ""]["value"]), (2, "48 ports, 6 switches, 0 of 2256 routes missing"), well)
        lids = [int(f"0x1{rail}{host}", 16) for rail in range(4) for host in range(1, 13)]
        told = [n for part in well["ib.lids", ""]["value"].split() for first, _, last in [part.partition("-")] for n in range(int(first), int(last or first) + 1)]
        self.assertEqual(told, sorted(lids))
        # opensm.conf names the folder; without that it is /var/log
        self.assertEqual(self.routes(conf="#\n", folder="/var/log")["ib.routes", ""]["value"], well["ib.routes", ""]["value"])
        # a spine without an entry: the leaves that use the spine for that port can't reach it; the port's own leaf can
        name, entry = "b83f:d203:0001:0001/1", re.compile(rb"^0x0111 (\d+)(?= #)", re.M)
        spines = re.split(rb"(?=^Unicast lids )", tables, flags=re.M)
        holes = b"".join(entry.sub(b"0x0111 254", part) if b"'spine" in part.split(b"\n")[0] else part for part in spines)
        found = self.routes(tables=re.sub(rb"^0x0111 254 #.*\n", b"", holes, flags=re.M))
        self.assertEqual(found["ib.routes", ""]["value"], "48 ports, 6 switches, 36 of 2256 routes missing")
        self.assertEqual(found["ib.route", name]["value"], "missing 0 from here, 36 to here, of 47")
        self.assertEqual(sum(f[0] == "ib.route" for f in found), 37)
        # no route: a port that leads to another host, a port without a link, a circle of two switches
        for port in (b"004", b"099", b"001"):
            wrong = b"".join(entry.sub(b"0x0111 " + port, part) if b"'leaf1'" in part.split(b"\n")[0] else part for part in spines)
            found = self.routes(tables=wrong)
            self.assertEqual(found["ib.route", name]["value"], "missing 0 from here, 47 to here, of 47", port)
        # names may contain any characters
        self.assertEqual(self.routes(links=links.replace(b"{node2 mlx5_0}", b"{a } { b, 'c' PN:01 \\x}"))["ib.routes", ""]["value"], well["ib.routes", ""]["value"])

    def test_files_of_a_subnet_manager_that_are_none(self):
        tree = machine.files("subnet", 1)
        links, tables = tree["/var/log/sm/opensm-subnet.lst"], tree["/var/log/sm/opensm-lfts.dump"]
        first, table = links.split(b"\n")[0], tables.split(b"lids dumped\n")[0] + b"lids dumped\n"
        for what, changes in {
                "cut links": {"links": links[:-9]}, "cut tables": {"tables": tables[:-9]}, "no table of a switch": {"tables": tables.replace(table, b"", 1)},
                "a table twice": {"tables": tables + table}, "a line less": {"links": links.replace(first + b"\n", b"", 1)}, "a line twice": {"links": first + b"\n" + links},
                "a third end": {"links": links.replace(b"{node2 mlx5_0}", b"{x} LID:0101 PN:01 } { CA}")}, "binary": {"links": os.urandom(4096)},
                "a NUL": {"tables": tables.replace(b"#", b"\0", 1)}, "empty": {"links": b"\n"}, "numbers": {"tables": tables.replace(b"0x0111", b"0xffff", 1)},
                "a long line": {"links": b"{" + b"x" * (2 << 20) + b"\n"}}.items():
            found = self.routes(**changes)
            self.assertEqual([(f[0], v.get("state")) for f, v in found.items()], [("ib.routes", "garbled")], what)
        self.assertEqual(self.routes(tables=b"")["ib.routes", ""].get("state"), "absent")
        self.assertEqual(self.routes(links=b"")["ib.routes", ""].get("state"), "absent")
        old = self.routes(age_s=3600)["ib.routes", ""]
        self.assertEqual((old.get("state"), old["value"]), ("unreadable", "older than opensm-subnet.lst"))

    def test_who_judges_routes(self):
        """The manager's host must be in the audit, and its files must contain the port."""
        for number in (1, 2):
            machine.build(self.root, machine.files("subnet", number))
            with open(os.path.join(self.sheets, f"h{number}.json"), "w", encoding="utf-8") as file:
                json.dump(self.inspect("--root", self.root), file)
        def routes():
            return {(r["host"], r["subject"]): (r["status"], r["reason"]) for r in self.results() if r["check"] == "be.ib.routes"}
        self.assertEqual(set(routes().values()), {("pass", None)})
        self.change_sheet("h2", "port.lid", "mlx5_2/1", "0x777")
        self.assertEqual({key: value for key, value in routes().items() if value[0] != "pass"}, {("subnet2", "mlx5_2/1"): ("unknown", "stale")})
        os.unlink(os.path.join(self.sheets, "h1.json"))
        self.assertEqual({value[0] for value in routes().values()}, {"skip"})

    def change_sheet(self, name, fact, subject, value):
        path = os.path.join(self.sheets, f"{name}.json")
        with open(path, encoding="utf-8") as file:
            sheet = json.load(file)
        [f for f in sheet["facts"] if f["fact"] == fact and f["subject"] == subject][0]["value"] = value
        with open(path, "w", encoding="utf-8") as file:
            json.dump(sheet, file)

    def test_files_that_are_none(self):
        """A file without an end, a file of a gigabyte, a folder, a pipe without a writer: no read waits for them, and no check is
        judged by them."""
        self.build()
        before = self.verdicts()

        def endless(path):
            os.symlink("/dev/zero", path)

        def huge(path):
            with open(path, "wb") as file:
                file.truncate(1 << 30)

        def binary(path):
            with open(path, "wb") as file:
                file.write(bytes(range(256)) * 8)
        os.makedirs(self.root + "/dev", exist_ok=True)
        if os.geteuid() == 0:
            os.mknod(self.root + "/dev/zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
        for make in (huge, binary, os.mkfifo, os.mkdir, *([endless] if os.geteuid() == 0 else [])):
            for path, check in self.SOURCES.items():
                whole = self.root + path
                os.rename(whole, whole + ".kept")
                make(whole)
                after = self.verdicts()
                worse = {key: status for key, status in after.items() if status not in ("unknown", "skip", before.get(key))}
                self.assertEqual(worse, {}, (make, path))
                self.assertIn("unknown", {status for (name, _), status in after.items() if name == check}, (make, path))
                os.rmdir(whole) if make == os.mkdir else os.unlink(whole)  # pylint: disable=expression-not-assigned
                os.rename(whole + ".kept", whole)
        self.assertEqual(self.verdicts(), before)

    def test_files_that_change_while_they_are_read(self):
        """Files are rewritten and interfaces come and go during a read: each value is unknown, or the same as always."""
        self.build()
        before = self.verdicts()
        kept = {}
        for path in self.SOURCES:
            with open(self.root + path, "rb") as file:
                kept[path] = file.read()
        over = threading.Event()

        def change():
            while not over.is_set():
                for path, content in kept.items():
                    with open(self.root + path, "wb", buffering=0) as file:
                        for i in range(0, len(content), 7):
                            file.write(content[i:i + 7])
                os.mkdir(self.root + "/sys/class/net/veth0")
                os.rmdir(self.root + "/sys/class/net/veth0")
        writer = threading.Thread(target=change)
        writer.start()
        try:
            for _ in range(15):
                after = self.verdicts()
                worse = {key: (before.get(key), status) for key, status in after.items() if status not in ("unknown", "skip", before.get(key))}
                self.assertEqual(worse, {})
        finally:
            over.set()
            writer.join()
        self.assertEqual(self.verdicts(), before)

    def test_trees_with_loops_and_crowds(self):
        self.build()
        net = self.root + "/sys/class/net"
        os.symlink("loop", net + "/loop")
        os.symlink(".", self.root + "/sys/bus/pci/devices/0000:aa:00.0")
        for i in range(10000):
            os.makedirs(f"{net}/veth{i}")
        sheet = self.inspect("--root", self.root)
        states = {(f["fact"], f["subject"]): f.get("state", "value") for f in sheet["facts"]}
        self.assertEqual(states["net", ""], "unreadable")  # too many for a list; the count isn't zero
        self.assertEqual(states["os.kernel", ""], "value")


unittest.main()
