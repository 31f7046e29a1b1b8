#!/usr/bin/env python3
"""`foliot selftest rdma` on trees of /sys and with a fake library. usage: test_selftest_rdma.py FOLIOT TREES LIBRARY"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

LIBRARY, TREES, FOLIOT = (os.path.abspath(sys.argv.pop()) for _ in range(3))


class TestSelftestRdma(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="foliot-rdma-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        # a folder of its own, to see what a recording leaves behind
        self.root, self.scratch = folder.name + "/root", folder.name + "/tmp"
        os.mkdir(self.root)
        os.mkdir(self.scratch)

    def plant(self, tree, device, becomes):
        """Makes a recorded tree, with the device renamed to the library's name for it."""
        with open(os.path.join(TREES, tree), encoding="utf-8") as lines:
            for line in lines:
                path, tab, text = line.replace(f"/{device}/", f"/{becomes}/").partition("\t")
                if tab:
                    self.put(path, text)

    def put(self, path, text):
        path = self.root + path
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def replay(self, recording, *arguments):
        """Replays the recorded machine: its files, and a library with the recorded answers. Returns the exit status and the first
        port."""
        shutil.rmtree(self.root)
        for line in recording.splitlines():
            path, tab, text = line.partition("\t")
            if path.startswith("/sys/") and not text.startswith("-> "):
                self.put(path, text + "\n")
            elif path.startswith("/sys/"):
                os.makedirs(os.path.dirname(self.root + path), exist_ok=True)
                os.symlink(text[3:], self.root + path)
        return self.record(*arguments, FOLIOT_FAKE_VERBS_RECORD=self.file(recording))

    def file(self, text):
        handle, name = tempfile.mkstemp(prefix="foliot-rdma-")
        self.addCleanup(os.unlink, name)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        return name

    def record(self, *arguments, **environment):
        """Returns the exit status, the first port of --json, and the recording."""
        name = self.file("")
        status, port = self.port("--record", name, *arguments, **environment)
        with open(name, encoding="utf-8") as file:
            return status, port, file.read()

    def run_it(self, *arguments, library=LIBRARY, **environment):
        return subprocess.run([FOLIOT, "selftest", "rdma", "--root", self.root, "--library", library, *(() if "--rounds" in arguments else ("--rounds", "8")), *arguments],
                              env={**os.environ, "TMPDIR": self.scratch, **environment}, capture_output=True, text=True, timeout=300, check=False)

    def port(self, *arguments, **environment):
        done = self.run_it("--json", *arguments, **environment)
        return done.returncode, json.loads(done.stdout)["ports"][0]

    def test_a_host_without_rdma(self):
        done = self.run_it()
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("expected RDMA ports, found none", done.stderr)

    def test_a_device_that_is_silent(self):
        self.plant("connectx-roce.txt", "mlx5_0", "fake0")
        status, port = self.port(FOLIOT_FAKE_VERBS_LAG="4")
        self.assertEqual((status, port["verdict"], port["error"], port["advice"]), (0, "silent", None, None))
        self.assertEqual((port["fence"]["rounds"], port["fence"]["moved_after_marker"]), (8, 0))
        self.assertEqual((port["gid_index"], port["mtu"], port["rate_bps"], port["counters"]["ack_timeouts"]), (5, 1024, 400 * 10**9, 13))
        done = self.run_it("--device", "fake0")
        self.assertRegex(done.stdout, r"fake0/1 +eth0 +RoCE +active +400 Gbit/s +5: 10\.1\.0\.2 .* silent\n")
        self.assertEqual(self.run_it("--device", "fake7").returncode, 1)

    def test_a_device_whose_marker_lies(self):
        self.plant("connectx-roce.txt", "mlx5_0", "fake0")
        status, port = self.port("--look", "300", FOLIOT_FAKE_VERBS_LAG="4", FOLIOT_FAKE_VERBS_LIES="100")
        self.assertEqual((status, port["verdict"]), (1, "not silent"))
        self.assertGreater(port["fence"]["bytes_after_marker"], 0)
        self.assertIn("must not have direct lanes", port["advice"])

    def kept(self, recording):
        """The library's answers, and how the rounds ended, without counts and times."""
        lines = {}
        for line in recording.splitlines():
            path, tab, text = line.partition("\t")
            if path.startswith("/verbs/"):
                of_device = path.split("/", 3)[3]
                text = re.sub(r"(writes|bytes_after_marker|_p50|_max) \d+|:\d+|0x[0-9a-f]+|([0-9a-f]{4}:){7}[0-9a-f]{4}", "", text)
                if of_device.endswith("/sends"):
                    text = text.replace("5 ", "")  # if all were stopped in time, some were flushed
                if of_device.endswith("/rounds"):
                    text = re.sub(r" ([1-9]\d*)", " some", text)
                lines[of_device] = text
        return lines

    def test_a_recording_tells_nothing_of_whose_it_is(self):
        self.plant("connectx-roce.txt", "mlx5_0", "fake0")
        self.put("/etc/hostname", "rack7-node12\n")
        status, port, recording = self.record("--rounds", "2")
        self.assertEqual(status, 0, recording)
        for secret in ("fake0", "rack7", "b83f:d203", "d2ff:fe12:3456", "0a01:0002", "2001:0db8:0000:0000:0000:0000:0000:0002"):
            self.assertNotIn(secret, recording)
        self.assertRegex(recording, r"(?m)^/sys/class/infiniband/dev\w+/ports/1/gid_attrs/types/5\tRoCE v2$")
        self.assertRegex(recording, r"(?m)^/verbs/dev\w+/ports/1/fence/verdict\tsilent$")
        self.assertRegex(recording, r"(?m)^/verbs/dev\w+/ports/1/fence/receives\t0:\d+ 5:\d+ $")
        # the kernel's files and the library have the same GID
        used = re.search(r"(?m)^/sys/\S+/gids/5\t(\S+)$", recording).group(1)
        self.assertRegex(recording, rf"(?m)^/verbs/\S+/gids/\d+\tRoCE v2 {used}$")
        self.assertEqual(os.listdir(self.scratch), [])
        status, port, other = self.record("--rounds", "2")
        self.assertNotEqual(re.search("/verbs/(dev\\w+)", other).group(1), re.search("/verbs/(dev\\w+)", recording).group(1))

    def test_a_recording_is_replayed(self):
        for verdict, environment, look in (("silent", {"FOLIOT_FAKE_VERBS_LAG": "4"}, "15"),
                                           ("not silent", {"FOLIOT_FAKE_VERBS_LAG": "4", "FOLIOT_FAKE_VERBS_LIES": "20"}, "100")):
            shutil.rmtree(self.root)
            self.plant("connectx-roce.txt", "mlx5_0", "fake0")
            _, first, recording = self.record("--look", look, **environment)
            _, second, again = self.replay(recording)
            self.assertEqual((first["verdict"], second["verdict"]), (verdict, verdict), recording + again)
            self.assertEqual(self.kept(again), self.kept(recording))
            for what in ("link", "state", "rate_bps", "mtu", "lid", "lmc", "firmware", "gid_index"):
                self.assertEqual(first[what], second[what], what)

    def test_devices_of_others(self):
        """Recordings that no machine here can make, and the verdict of each."""
        self.plant("connectx-roce.txt", "mlx5_0", "fake0")
        _, _, recording = self.record("--rounds", "2")
        for old, new, verdict in (
                (r"no_marker 0", "no_marker 2", "unknown"),  # it never flushes
                (r"out_of_order 0", "out_of_order 2", "not silent"),
                (r"moved_after_return 0", "moved_after_return 2", "silent"),  # the marker is for this case
                (r"(?m)(/fence/sends\t.*)$", r"\g<1>10:900 ", "silent")):  # IBV_WC_REM_ACCESS_ERR
            strange, count = re.subn(old, new, recording)
            self.assertEqual(count, 1, recording)
            # a round in which nothing is left to flush shows nothing; on a busy machine there are some
            status, port, again = self.replay(strange, "--rounds", "2" if verdict == "unknown" else "40")
            self.assertEqual(port["verdict"], verdict, again)
            self.assertEqual(port["fence"]["moved_after_return"] > 0, "moved_after_return" in new)
            self.assertEqual(" 10:" in again, "10:900" in new, again)

    def test_a_recording_that_cannot_be_written(self):
        self.plant("connectx-roce.txt", "mlx5_0", "fake0")
        done = self.run_it("--record", "/nowhere/file")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere/file: expected a file that can be written", done.stderr)
        done = self.run_it("--record", self.file(""), TMPDIR="/nowhere")
        self.assertEqual(done.returncode, 1, "its folder is in TMPDIR")

    def test_ports_that_are_not_tried(self):
        self.plant("connectx-infiniband.txt", "mlx5_10", "fake9")
        done = self.run_it("--json")
        ports = {f"{p['device']}/{p['port']}": p for p in json.loads(done.stdout)["ports"]}
        self.assertEqual({name: p["verdict"] for name, p in ports.items()}, {name: "unknown" for name in ports})
        self.assertIn("subnet manager", ports["fake9/1"]["advice"])
        self.assertEqual(ports["mlx5_2/1"]["error"]["step"], "opening the device")  # the library has no such device
        self.assertEqual(done.returncode, 1)

    def test_without_the_library(self):
        self.plant("connectx-roce.txt", "mlx5_0", "fake0")
        done = self.run_it(library="/nowhere/libibverbs.so.1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the library: /nowhere/libibverbs.so.1: cannot open", done.stdout)
        self.assertIn("install rdma-core", done.stdout)


unittest.main(verbosity=2)
