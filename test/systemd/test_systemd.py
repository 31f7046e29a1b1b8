#!/usr/bin/env python3
"""test_systemd.py BUILD: the installed systemd units, under a real systemd: two Debian 12 hosts on this machine.

The operator's first days: init, join, start, look, reload, a crash, a backup, removing it all. Here a filtered system call kills
(in the field it fails with EPERM), so a unit must allow every call that it needs.
"""
import json
import os
import re
import subprocess
import sys
import time
import unittest

from machine import Groups, Machine, cable, debian_root

PATIENCE_S = 300
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STRICT = "[Service]\nSystemCallErrorNumber=kill\nWatchdogSec=120s\n"  # a machine that pauses is no hang


class Units(unittest.TestCase):
    BUILD = ROOT = None

    @classmethod
    def setUpClass(cls):
        cls.groups, cls.machines = Groups(), []
        try:
            cls.machines = [Machine(name, cls.ROOT, cls.BUILD, cls.groups) for name in ("alpha", "beta")]
            cls.alpha, cls.beta = cls.machines
            for machine in cls.machines:
                machine.wait_up()
                for unit in ("foliot-agent", "foliot-controller"):
                    machine.write(f"/etc/systemd/system/{unit}.service.d/strict.conf", STRICT)
                machine.run("systemctl", "daemon-reload")
            cable(cls.alpha, cls.beta, "nic0", ("10.91.0.1/24", "10.91.0.2/24"))
            cls.start()
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        for machine in cls.machines:
            machine.close()
        cls.groups.close()

    @classmethod
    def start(cls):
        """The commands of docs/controller.md, from nothing to a fleet."""
        cls.alpha.write("/etc/foliot/controller.yaml", "report: 1s\nbeat: 300ms\n")
        text = cls.alpha.run("foliot-controller", "init", "--address", "10.91.0.1", "--uses", "2").stdout
        cls.alpha.run("systemctl", "enable", "--now", "foliot-controller")
        cls.token = re.search(r"fla_\S+", text)[0]
        cls.alpha.write("/etc/foliot/token", cls.token + "\n", 0o600)
        for machine in cls.machines:
            machine.run("foliot-agent", "join", "10.91.0.1", re.search(r"flj_\S+", text)[0], "--nic", "nic0")
            machine.run("systemctl", "enable", "--now", "foliot-agent")

    # ---- helpers ----

    def wait(self, true, what):
        end = time.monotonic() + PATIENCE_S
        while not true():
            if time.monotonic() > end:
                self.fail(f"not within {PATIENCE_S} s: {what() if callable(what) else what}")
            time.sleep(0.1)

    def hosts(self):
        done = self.alpha.run("foliot", "host", "list", "--json", check=False)
        return {h["name"]: h for h in json.loads(done.stdout)["items"]} if done.returncode == 0 else {}

    def all_live(self):
        hosts = self.hosts()
        return len(hosts) == 2 and all(h["freshness"] == "live" for h in hosts.values())

    def both(self):
        return [(m, "foliot-agent") for m in self.machines] + [(self.alpha, "foliot-controller")]

    def assert_well(self):
        self.wait(self.all_live, lambda: f"both hosts live: {self.hosts()}\n" + "\n".join(
            m.journal(unit) for m, unit in self.both()))
        for machine, unit in self.both():
            self.assertEqual(machine.unit(unit, "ActiveState"), "active", machine.journal(unit))

    # ---- the tests, in the order of their names ----

    def test_1_they_run_and_are_heard(self):
        self.assert_well()
        for machine in self.machines:
            self.wait(lambda: machine.run("foliot", "status", check=False).returncode == 0,
                      lambda: machine.run("foliot", "status", check=False).stdout)
        # two hosts measure once their clocks are in step; the controller gets that with the next report
        members = lambda: self.alpha.run("foliot", "host", "list", check=False).stdout  # noqa: E731
        self.wait(lambda: members().count("SYNCED") == 2, members)
        for machine, unit in self.both():
            self.assertEqual(machine.unit(unit, "NRestarts"), "0", machine.journal(unit))
            self.assertNotRegex(machine.journal(unit), "status=31/SYS|Permission denied|not permitted")

    # Their exit statuses show the state of the fleet, and they change nothing: a machine that pauses makes it unwell for a
    # moment.
    LOOKS = {"foliot status", "foliot clock", "foliot mesh", "foliot links", "foliot findings", "foliot jobs", "foliot doctor",
             "foliot host list", "foliot alerts list --all", "foliot levels", "foliot mesh --full", "foliot topology"}

    def test_2_a_days_commands(self):
        self.alpha.write("/etc/foliot/fleet.yaml", "mode: failover\n")
        for command in ("foliot status", "foliot clock", "foliot mesh", "foliot links", "foliot findings", "foliot jobs",
                        "foliot doctor", "foliot host list", "foliot host token --uses 2",
                        "foliot config apply /etc/foliot/fleet.yaml --wait", "foliot config show", "foliot config history",
                        "foliot config observe on", "foliot config observe off", "foliot alerts list --all",
                        "foliot alerts export --prometheus", "foliot alerts silences", "foliot changes --since 1h",
                        "foliot levels", "foliot mesh --full", "foliot topology", "foliot host rotate fleet-key --after 1min",
                        "foliot host rotate", "foliot-controller check", "foliot-controller backup /srv/store.backup",
                        "foliot support-bundle -o /srv/bundle.tar.gz", "foliot record -o /srv/alpha.record",
                        "foliot perf --help"):
            def ask():
                return self.alpha.run(*command.split(), check=False)
            with self.subTest(command):
                if command in self.LOOKS:
                    self.wait(lambda: ask().returncode == 0, lambda: (done := ask()).stdout + done.stderr)
                else:
                    done = ask()
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assert_well()
        # a change is found in the journal by its fields; the journal stores messages a little later
        told = lambda: self.alpha.run("journalctl", "--no-pager", "-o", "json", "-u", "foliot-controller", "FOLIOT_WHAT=token.make").stdout  # noqa: E731
        self.wait(told, lambda: self.alpha.journal("foliot-controller"))
        entry = json.loads(told().splitlines()[-1])
        self.assertEqual((entry["SYSLOG_IDENTIFIER"], entry["PRIORITY"]), ("foliot-controller", "5"))
        self.assertRegex(entry["FOLIOT_SOURCE"], r"^(127\.0\.0\.1|local)$")
        self.assertRegex(entry["MESSAGE"], "^audit: token.make: .* by " + re.escape(entry["FOLIOT_WHO"]) + " from ")

    def test_3_reload(self):
        self.alpha.write("/etc/foliot/alerts.yaml", "rules:\n  - nonsense\n")
        self.alpha.run("systemctl", "reload", "foliot-controller")
        self.wait(lambda: "alerts.yaml" in self.alpha.journal("foliot-controller"), "the bad file is told")
        self.alpha.run("rm", "/etc/foliot/alerts.yaml")
        self.alpha.run("systemctl", "reload", "foliot-controller")
        for machine in self.machines:
            before = machine.journal("foliot-agent").count("reloaded")
            machine.run("systemctl", "reload", "foliot-agent")
            self.wait(lambda: machine.journal("foliot-agent").count("reloaded") > before,
                      lambda: machine.journal("foliot-agent"))
        for machine, unit in self.both():
            self.assertEqual(machine.unit(unit, "NRestarts"), "0", machine.journal(unit))
        self.assert_well()

    def test_4_killed_they_come_back(self):
        for machine, unit in self.both():
            killed, before = machine.unit(unit, "MainPID"), int(machine.unit(unit, "NRestarts"))
            machine.run("sh", "-c", f"kill -9 {killed}")
            self.wait(lambda: machine.unit(unit, "NRestarts") == str(before + 1) and machine.unit(unit, "ActiveState") == "active",
                      lambda: machine.journal(unit))
            self.assertNotEqual(machine.unit(unit, "MainPID"), killed)
        self.assert_well()

    def test_5_stopped_and_started(self):
        for machine, unit in self.both():
            machine.run("systemctl", "stop", unit)
            self.assertEqual(machine.unit(unit, "Result"), "success", machine.journal(unit))
            machine.run("systemctl", "start", unit)
        self.assert_well()

    def test_6_a_copy_of_the_data_stays_down_until_it_is_taken_over(self):
        data, unit = "/var/lib/foliot-controller", "foliot-controller"
        self.alpha.run("systemctl", "stop", unit)
        self.addCleanup(self.alpha.run, "rm", "-rf", data + ".before")  # whatever this test does, later tests find their data
        self.alpha.run("mv", data, data + ".before")
        self.alpha.run("cp", "-a", data + ".before", data)
        before = self.alpha.unit(unit, "NRestarts")
        self.assertNotEqual(self.alpha.run("systemctl", "start", unit, check=False).returncode, 0)
        time.sleep(3)  # RestartSec is 1 s: it would restart and fail by then
        self.assertEqual([self.alpha.unit(unit, what) for what in ("ActiveState", "ExecMainStatus", "NRestarts")],
                         ["failed", "78", before], self.alpha.journal(unit))
        self.wait(lambda: "foliot-controller takeover" in self.alpha.journal(unit), lambda: self.alpha.journal(unit))
        self.alpha.run("foliot-controller", "takeover")
        self.alpha.run("rm", "-r", data + ".before")
        self.alpha.run("systemctl", "start", unit)
        self.assert_well()

    def test_7_users_of_the_group_may_ask(self):
        self.alpha.run("groupadd", "foliot")
        self.alpha.run("systemctl", "reload", "foliot-agent")  # a reload looks the group up

        def ask(groups):
            return self.alpha.run("setpriv", "--reuid=65534", "--regid=65534", groups, "foliot", "status", check=False)
        # when reload returns the signal was sent, but not yet handled
        self.wait(lambda: ask("--groups=foliot").returncode == 0, lambda: (done := ask("--groups=foliot")).stdout + done.stderr)
        done = ask("--clear-groups")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)

    def test_71_the_machine_is_read_through_its_socket(self):
        self.addCleanup(self.alpha.run, "rm", "-rf", "/run/foliot-inspect", "/etc/systemd/system/foliot-inspect@.service.d")
        self.addCleanup(self.alpha.run, "systemctl", "disable", "--now", "foliot-inspect.socket", check=False)
        self.alpha.write("/etc/systemd/system/foliot-inspect@.service.d/strict.conf", STRICT)
        self.alpha.run("systemctl", "daemon-reload")
        self.alpha.run("systemctl", "enable", "--now", "foliot-inspect.socket")

        def read():
            done = self.alpha.run("foliot", "audit", "facts")
            return {(f["fact"], f["subject"]): f for f in json.loads(done.stdout)["facts"]}

        def broken():
            return {key: f for key, f in facts.items() if f.get("state") in ("timeout", "stuck") or "broke off" in f["value"]}
        facts = {}

        def whole():
            """Each source has some seconds, but a machine that pauses may need longer."""
            facts.clear()
            facts.update(read())
            return not broken() and facts["agent", ""]["value"] == "running" and ("edge", "nic0 beta nic0") in facts
        read()
        log = self.alpha.run("journalctl", "-u", "foliot-inspect@*", "--no-pager", check=False).stdout
        self.assertIn("NAccepted=1", self.alpha.run("systemctl", "show", "foliot-inspect.socket", "-p", "NAccepted").stdout)
        self.wait(whole, lambda: f"{broken()} {facts.get(('agent', ''))}\n{log}")
        self.assertNotIn("state", facts["os.kernel", ""])
        self.assertNotIn("state", facts["mem.total", ""])
        denied = {key for key, f in facts.items() if f.get("state") == "no_permission"}
        self.assertEqual({key for key in denied if key[0].startswith(("net.", "pci.", "os.kernel"))}, set(), log)

    def test_72_tests_of_bandwidth_run_in_their_sandbox(self):
        """Each rank of a test is a unit of its own, and its rate comes back."""
        for machine in self.machines:
            self.addCleanup(machine.run, "rm", "-rf", "/run/foliot-inspect", "/etc/systemd/system/foliot-perf@.service.d")
            self.addCleanup(machine.run, "systemctl", "disable", "--now", "foliot-perf.socket", "foliot-inspect.socket", check=False)
            machine.write("/etc/systemd/system/foliot-perf@.service.d/strict.conf", STRICT)
            machine.run("systemctl", "daemon-reload")
            machine.run("systemctl", "enable", "--now", "foliot-perf.socket", "foliot-inspect.socket")
        found, memory, notes = {}, {}, {}

        def tested():
            """If the machine pauses, it begins a step too late."""
            done = self.alpha.run("foliot", "audit", "run", "--fleet", "--bandwidth", "--json", check=False)
            run = json.loads(done.stdout)
            found.clear()
            memory.clear()
            notes.update({r["host"]: r["note"] or "" for r in run["results"] if r["check"] == "node.mem_bw"})
            # none: a host was silent
            memory.update({m["host"]: m["outcome"] for m in (run["tests"] or {"memory": []})["memory"]})
            found.update({r["host"]: (r["found"], r["note"]) for r in run["results"] if r["check"] == "be.bw.pair"})
            return len(found) == 2 and all(re.fullmatch(r"[0-9.]+", rate) for rate, _ in found.values()) and \
                set(memory) == set(found) and set(memory.values()) <= {"done", "failed"}  # failed: they share processors

        def told():
            return [m.run("journalctl", "--no-pager", "-u", "foliot-perf@*", check=False).stdout for m in self.machines]
        self.wait(tested, lambda: f"{found} {memory}\n" + "\n".join(told()))
        self.assertNotRegex(" ".join(notes.values()), "could not begin|caches|quarter of the memory", notes)
        self.assertEqual(set(notes), set(found))
        for machine, log in zip(self.machines, told()):
            accepted = machine.unit("foliot-perf.socket", "NAccepted")
            self.assertGreater(int(accepted), 0)
            self.assertIn("Started foliot-perf@", log)
            self.assertNotRegex(log, "status=31/SYS|Permission denied|not permitted|not safe")

    def test_8_removed(self):
        """The commands of docs/uninstall.md, and the files that stay as the page states."""
        for machine, unit in self.both():
            machine.run("systemctl", "disable", "--now", unit)
        root = f"/proc/{self.alpha.pid}/root"
        subprocess.run([os.path.join(TOP, "tools", "install"), self.BUILD, "uninstall", "/unused"], check=True,
                       env=dict(os.environ, DESTDIR=root))
        self.alpha.run("rm", "-r", "/etc/systemd/system/foliot-agent.service.d", "/etc/systemd/system/foliot-controller.service.d")
        left = self.alpha.run("find", "/", "/run", "-xdev", "(", "-path", "/proc", "-o", "-path", "/sys", "-o", "-path", "/run/systemd", ")", "-prune", "-o", "-iname",
                              "*foliot*", "-print").stdout.split()
        self.assertEqual(sorted(left), ["/etc/foliot", "/var/lib/foliot", "/var/lib/foliot-controller"])


if __name__ == "__main__":
    Units.BUILD = sys.argv.pop(1)
    if os.geteuid() != 0:
        print("expected root: name spaces of every kind")
        sys.exit(77)
    Units.ROOT = debian_root()
    if Units.ROOT is None:
        print("expected build/deps/root-bookworm, which tools/install-deps test makes with mmdebstrap from a Debian mirror")
        sys.exit(77)
    unittest.main()
