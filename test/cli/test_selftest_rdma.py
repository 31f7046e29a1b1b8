#!/usr/bin/env python3
"""`foliot selftest rdma` on trees of /sys and a library of our own. usage: test_selftest_rdma.py FOLIOT TREES LIBRARY"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

LIBRARY, TREES, FOLIOT = (os.path.abspath(sys.argv.pop()) for _ in range(3))


class TestSelftestRdma(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="foliot-rdma-")
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def plant(self, tree, device, becomes):
        """A recorded tree, its device under the name that the library has."""
        with open(os.path.join(TREES, tree), encoding="utf-8") as lines:
            for line in lines:
                path, tab, text = line.replace(f"/{device}/", f"/{becomes}/").partition("\t")
                if tab:
                    path = self.root + path
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(text)

    def run_it(self, *arguments, library=LIBRARY, **environment):
        return subprocess.run([FOLIOT, "selftest", "rdma", "--root", self.root, "--library", library, "--rounds", "8", *arguments],
                              env=dict(os.environ, **environment), capture_output=True, text=True, timeout=60, check=False)

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

    def test_what_is_not_tried(self):
        self.plant("connectx-infiniband.txt", "mlx5_10", "fake9")
        done = self.run_it("--json")
        ports = {f"{p['device']}/{p['port']}": p for p in json.loads(done.stdout)["ports"]}
        self.assertEqual({name: p["verdict"] for name, p in ports.items()}, {name: "unknown" for name in ports})
        self.assertIn("subnet manager", ports["fake9/1"]["advice"])
        self.assertEqual(ports["mlx5_2/1"]["error"]["step"], "opening the device")  # the library doesn't have it
        self.assertEqual(done.returncode, 1)

    def test_without_the_library(self):
        self.plant("connectx-roce.txt", "mlx5_0", "fake0")
        done = self.run_it(library="/nowhere/libibverbs.so.1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the library: /nowhere/libibverbs.so.1: cannot open", done.stdout)
        self.assertIn("install rdma-core", done.stdout)


unittest.main(verbosity=2)
