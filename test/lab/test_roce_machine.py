#!/usr/bin/env python3
"""`foliot lab --roce` without its virtual machine: refusals before one boots, and questions to a lab in a machine.
usage: test_roce_machine.py FOLIOT FOLDER (of lab/roce-vm)"""
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

FOLIOT, MACHINE = os.path.abspath(sys.argv.pop(1)), os.path.join(os.path.abspath(sys.argv.pop(1)), "machine")
HEAD = "name: one\nwhy: A test.\nworld: both\nduration: 10s\n"
PATIENCE_S = 120


def until(true):
    end = time.monotonic() + PATIENCE_S
    while not (found := true()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def named(text):
    """The command lines that contain this text, without this process's."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/cmdline", encoding="utf-8", errors="replace") as file:
                words = file.read()
        except OSError:  # it has ended
            continue
        if text in words and int(number) != os.getpid():
            found.append(words.replace("\0", " "))
    return found


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="foliot-roce-")
        self.cache = self.folder.name + "/cache"
        self.environment = {**os.environ, "XDG_CACHE_HOME": self.cache}
        self.environment.pop("ROCE_VM", None)

    def tearDown(self):
        self.folder.cleanup()

    def lab(self, *words):
        return subprocess.run([FOLIOT, "lab", *words], capture_output=True, text=True, check=False, env=self.environment, timeout=PATIENCE_S, cwd=self.folder.name)


class Refusals(Folder):
    def refused(self, words, *expected):
        done = self.lab(*words)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        for one in expected:
            self.assertIn(one, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertFalse(os.path.exists(self.cache), "it looked for a machine")

    def scenario(self, rest, name="one.yaml"):
        with open(f"{self.folder.name}/{name}", "w", encoding="utf-8") as file:
            file.write(HEAD + rest)
        return name

    def test_faults_by_name_and_line(self):
        self.scenario("", "good.yaml")
        for rest, *expected in (
                ("faults:\n  - {at: 1s, kind: carrier, target: nic 0.0}\n  - {at: 1s, kind: suspend, target: host 1, for: 1s}\n", "one.yaml", "fault suspend in line 7"),
                ("bounds: [{what: cost.cpu_share, below: 1}]\n", "cost.cpu_share in line 5"),
                ("traffic: [{kind: flow, from: nic 0.0, to: nic 4.0, greedy: yes}]\n", "greedy traffic"),
                ("fabric: {hosts: 20}\n", "40 NICs"), ("fabric: {hosts: 1, leaves: 1}\n", "one host"), ("fabric: {ip: 6}\n", "ip: 6")):
            name = self.scenario(rest)
            self.refused(["run", "--roce", name], "expected a scenario for --roce", *expected)
            self.refused(["run", "--roce", "good.yaml", name], *expected)  # none of them is played
            self.refused(["up", "--roce", name], "expected a lab for --roce", *expected)

    def test_a_fault_of_the_simulator_alone(self):
        self.refused(["run", "--roce", self.scenario("faults: [{at: 1s, kind: reboot, target: host 1, for: 1s}]\n")], "only the simulator")

    def test_options_that_need_this_machine(self):
        name = self.scenario("")
        self.refused(["up", "--roce", "--controller", name], "--controller: ")
        self.refused(["run", "--roce", "--keep", name], "--keep: ", "foliot lab up --roce")

    def test_a_word_is_no_machine(self):
        """On a host with this variable `foliot` changes no routing rule: the host is no machine."""
        self.environment["ROCE_VM"] = "1"
        self.refused(["up", "--roce", self.scenario("fabric: {hosts: 1, leaves: 1}\n")], "expected a lab for --roce", "one host")

    def test_a_lab_of_another_user(self):
        done = self.lab("--name", "none", "down")
        if os.geteuid() == 0:
            self.assertEqual((done.returncode, self.cache + "/roce-vm/labs/none" in done.stdout), (0, True), done.stdout)

    def test_no_machine_without_its_name(self):
        done = self.lab("--name", "none", "down", "other")
        self.assertNotEqual(done.returncode, 0)


class Asked(Folder):
    """Both sides of the folder without a machine between them. The commands of a lab's machine run here."""

    def setUp(self):
        super().setUp()
        self.meeting = self.cache + "/roce-vm/labs/roof"
        os.makedirs(self.meeting)
        # as `run`: the machine's command is its child, and it ends with that
        self.machine = subprocess.Popen([MACHINE, "serve", self.meeting, "echo", "lab is up"], stdin=subprocess.DEVNULL, start_new_session=True)
        with open(self.meeting + "/pid", "w", encoding="utf-8") as file:
            file.write(f"{self.machine.pid}\n")
        self.assertTrue(until(lambda: os.path.exists(self.meeting + "/up")))

    def tearDown(self):
        try:
            os.killpg(self.machine.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.machine.wait()
        super().tearDown()

    def ask(self, *words):
        return subprocess.run([MACHINE, "ask", self.meeting, *words], capture_output=True, text=True, check=False, timeout=PATIENCE_S)

    def test_it_came_up(self):
        with open(self.meeting + "/up", encoding="utf-8") as status, open(self.meeting + "/up.out", encoding="utf-8") as out:
            self.assertEqual((status.read(), out.read()), ("0\n", "lab is up\n"))

    def test_output_status_and_folder(self):
        done = self.ask("sh", "-c", "echo \"$1\"; echo err >&2; pwd; exit 7", "sh", "two words; $HOME")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, f"two words; $HOME\n{os.getcwd()}\n", "err\n"))
        done = self.ask("seq", "40000")
        self.assertEqual((done.returncode, done.stdout.split()), (0, [str(i) for i in range(1, 40001)]))
        self.assertEqual([name for name in os.listdir(self.meeting) if name.startswith("ask")], [])

    def test_output_comes_before_the_end(self):
        asked = subprocess.Popen([MACHINE, "ask", self.meeting, "sh", "-c", "echo first; while [ ! -e go ]; do sleep 0.1; done; echo last"], stdout=subprocess.PIPE, text=True, cwd=self.folder.name)
        self.assertEqual(asked.stdout.readline(), "first\n")
        self.assertEqual(self.ask("echo", "beside it").stdout, "beside it\n")
        open(self.folder.name + "/go", "w", encoding="utf-8").close()
        self.assertEqual((asked.stdout.read(), asked.wait(timeout=PATIENCE_S)), ("last\n", 0))
        asked.stdout.close()

    def test_an_interrupt_ends_the_command(self):
        asked = subprocess.Popen([MACHINE, "ask", self.meeting, "sh", "-c", "echo $$; while :; do sleep 0.1; done"], stdout=subprocess.PIPE, text=True)
        pid = int(asked.stdout.readline())
        asked.send_signal(signal.SIGTERM)
        self.assertEqual(asked.wait(timeout=PATIENCE_S), 130)
        asked.stdout.close()
        self.assertTrue(until(lambda: not os.path.exists(f"/proc/{pid}")))

    def test_the_lab_is_asked_by_its_name(self):
        """In a machine this would be the lab's own status. Here the same program finds no lab."""
        done = self.lab("--name", "roof", "exec", "0", "true")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("roof", done.stderr)
        done = self.lab("--name", "roof", "up", "--roce")
        self.assertEqual(done.returncode, 1)
        self.assertIn("exists already", done.stderr)

    def test_down_ends_it(self):
        done = self.lab("--name", "roof", "down")
        self.assertEqual((done.returncode, done.stdout), (0, "the machine is down\n"), done.stderr)
        self.assertEqual(self.machine.wait(timeout=PATIENCE_S), 0)
        self.assertFalse(os.path.exists(self.meeting))

    def test_a_machine_that_is_gone(self):
        os.killpg(self.machine.pid, signal.SIGKILL)
        self.machine.wait()
        done = self.lab("--name", "roof", "status")
        self.assertEqual(done.returncode, 1)
        self.assertIn("its machine is gone", done.stderr)
        self.assertEqual(self.lab("--name", "roof", "down").returncode, 0)
        self.assertFalse(os.path.exists(self.meeting))


class Killed(Folder):
    """`run` with a program in place of its emulator. That program only stays."""
    COMMANDS = ("busybox", "modprobe", "xz", "ip", "rdma", "apt-get")

    def command(self, name, text="exit 0"):
        path = f"{self.folder.name}/bin/{name}"
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o755)

    def setUp(self):
        super().setUp()
        for folder in ("bin", "tmp", "cache/roce-vm/kernel", "cache/roce-vm/labs"):
            os.makedirs(f"{self.folder.name}/{folder}")
        self.number = self.folder.name + "/emulator"
        for name in self.COMMANDS:
            self.command(name)
        self.command("qemu-system-x86_64", f"echo $$ >{self.number}.new; mv {self.number}.new {self.number}; exec sleep 1000")
        with open(os.path.dirname(MACHINE) + "/run", "rb") as file:
            sum_of_run = subprocess.run(["cksum"], stdin=file, capture_output=True, text=True, check=True).stdout.strip()
        for name, text in (("kernel/ready", "none"), ("initramfs.key", f"none {sum_of_run}"), ("initramfs", "")):
            with open(f"{self.cache}/roce-vm/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        self.environment["PATH"] = f"{self.folder.name}/bin:" + self.environment["PATH"]
        self.environment["TMPDIR"] = self.folder.name + "/tmp"
        self.environment["HOME"] = self.folder.name

    def machine(self, *words):
        return subprocess.run([MACHINE, *words], capture_output=True, text=True, check=False, env=self.environment, timeout=PATIENCE_S)

    def test_nothing_outlives_it(self):
        meeting = self.cache + "/roce-vm/labs/roof"
        up = subprocess.Popen([MACHINE, "up", meeting, "true"], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.assertTrue(until(lambda: os.path.exists(self.number)))
        for name, text in (("up.out", ""), ("up.err", ""), ("up.new", "0\n")):
            with open(f"{meeting}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        os.rename(meeting + "/up.new", meeting + "/up")
        self.assertEqual(up.wait(timeout=PATIENCE_S), 0)
        with open(self.number, encoding="utf-8") as emulator, open(meeting + "/pid", encoding="utf-8") as run:
            emulator, run = int(emulator.read()), int(run.read())
        self.addCleanup(subprocess.run, ["kill", "-9", str(emulator)], check=False, stderr=subprocess.DEVNULL)
        os.kill(run, signal.SIGKILL)
        self.assertTrue(until(lambda: not os.path.exists(f"/proc/{emulator}")), "its emulator goes on")
        self.assertTrue(until(lambda: not named(meeting)), f"processes of it go on: {named(meeting)}")
        done = self.machine("down", meeting)
        self.assertEqual((done.returncode, done.stdout), (0, "the machine is down\n"), done.stderr)
        self.assertFalse(os.path.exists(meeting))
        self.assertEqual(os.listdir(self.folder.name + "/tmp"), [])


if __name__ == "__main__":
    unittest.main()
