#!/usr/bin/env python3
"""RDMA ports in `foliot links`: a tree of /sys that changes while an agent reads it, and a fake libibverbs.
usage: test_verbs_ports.py AGENT FOLIOT TREES LIBRARY"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

LIBRARY, TREES, FOLIOT, AGENT = (os.path.abspath(sys.argv.pop()) for _ in range(4))
KEY = "key 1 000102030405060708090a0b0c0d0e0f 2025-01-01T00:00:00Z\n"
PORT = "sys/class/infiniband/fake0/ports/1"
PATIENCE_S = 60


def run(*command, check=True, **options):
    return subprocess.run(command, check=check, capture_output=True, text=True, **options)


class TestVerbsPorts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="foliot-verbs-ports-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.space, self.agent = f"fv{os.getpid()}", None
        run("ip", "netns", "add", self.space)
        self.addCleanup(run, "ip", "netns", "del", self.space, check=False)
        for command in ("link set lo up", "link add nic0 type veth peer name wire0", "address add 10.88.0.1/24 dev nic0",
                        "link set wire0 up", "link set nic0 up"):
            run("ip", "-n", self.space, *command.split())
        self.write("fleet.key", KEY, 0o600)
        self.write("h0.yaml", f"host: h0\nkey_file: {self.path('fleet.key')}\nruntime_dir: {self.path('run')}\npeers:\n"
                   "  - {id: 0, host: h0, nic: nic0, address: 10.88.0.1}\n  - {id: 1, host: h1, nic: nic0, address: 10.88.0.2}\n")
        self.plant("connectx-roce.txt", "mlx5_0", "fake0")
        self.put("sys/class/net/nic0/mtu", "1500")

    def tearDown(self):
        if self.agent is not None and self.agent.poll() is None:
            self.agent.send_signal(signal.SIGTERM)
            self.assertEqual(self.agent.wait(PATIENCE_S), 0)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path("new"), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path("new"), mode)
        os.rename(self.path("new"), self.path(name))  # the agent reads the old file or the new one

    def put(self, name, text):
        self.write(os.path.join("root", name), text)

    def plant(self, tree, device, becomes):
        with open(os.path.join(TREES, tree), encoding="utf-8") as lines:
            for line in lines:
                name, tab, text = line.replace(f"/{device}/", f"/{becomes}/").replace("eth0", "nic0").partition("\t")
                if tab:
                    self.put(name.lstrip("/"), text)

    def start(self, library=LIBRARY):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("FOLIOT", "JOURNAL", "NOTIFY"))}
        environment |= {"FOLIOT_VERBS": library, "FOLIOT_VERBS_ROOT": self.path("root"), "FOLIOT_FAKE_VERBS_WIRE": "fake0=10.88.0.1"}
        with open(self.path("log"), "w", encoding="utf-8") as log:
            self.agent = subprocess.Popen(["ip", "netns", "exec", self.space, AGENT, "--config", self.path("h0.yaml")],
                                          stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)

    def links(self, *arguments):
        return run(FOLIOT, "links", *arguments, check=False, env=dict(os.environ, FOLIOT_RUNTIME_DIR=self.path("run")))

    def answer(self):
        done = self.links("--json")
        try:
            return json.loads(done.stdout)
        except json.JSONDecodeError:
            return {}

    def port(self):
        ports = self.answer().get("verbs_ports", [])
        return ports[0] if ports else {"troubles": [{"trouble": "none yet"}]}

    def port_in(self, trouble):
        """The port, if that is its only trouble."""
        port = self.port()
        return [t["trouble"] for t in port["troubles"]] == [trouble] and port

    def troubles(self):
        return [t["trouble"] for t in self.port()["troubles"]]

    def findings(self):
        done = run(FOLIOT, "findings", "--json", check=False, env=dict(os.environ, FOLIOT_RUNTIME_DIR=self.path("run")))
        try:
            return [f for f in json.loads(done.stdout)["findings"] if f["open"] and f["finding"] == "rdma-port"]
        except (json.JSONDecodeError, KeyError):
            return None  # no answer

    def event(self, word, text=""):
        return [e for e in self.answer().get("events", []) if e["event"] == word and re.search(text, e["text"])]

    def wait(self, true, what):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            result = true()
            if result:
                return result
            time.sleep(0.1)
        with open(self.path("log"), encoding="utf-8") as log:
            self.fail(f"not within {PATIENCE_S} s: {what}\n{json.dumps(self.answer().get('verbs_ports'))}\n{log.read()}")

    def move_gid(self, before, after):
        """Moves a GID at once, as a driver does: the agent doesn't read in between."""
        self.agent.send_signal(signal.SIGSTOP)
        for kind in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
            os.rename(self.path(f"root/{PORT}/{kind}/{before}"), self.path(f"root/{PORT}/{kind}/{after}"))
        self.put(f"{PORT}/gids/{before}", "0000:0000:0000:0000:0000:0000:0000:0000\n")
        self.agent.send_signal(signal.SIGCONT)

    def test_what_becomes_of_a_port(self):
        self.start()
        port = self.wait(lambda: (p := self.port()).get("gid_index") == 5 and not p["troubles"] and p, "an active port")
        self.assertEqual((port["device"], port["port"], port["interface"], port["nic"], port["link"], port["state"]),
                         ("fake0", 1, "nic0", 0, "roce", "active"))
        self.assertEqual((port["gid"], port["mtu"], port["rate_bps"], port["lid"]), ("10.1.0.2", 1024, 400 * 10**9, None))
        self.assertEqual((port["counters"]["ack_timeouts"], port["downs"], self.wait(self.answer, "an answer")["verbs_trouble"]), (13, 0, None))
        self.move_gid(5, 6)
        moved = self.wait(lambda: self.event("gid-moved", r"fake0/1: GID 10\.1\.0\.2 moved from index 5 to 6"), "the index moved")
        self.assertEqual((moved[0]["nic"], moved[0]["name"]), (0, "nic0"))
        self.wait(lambda: self.troubles() == ["gid-moved"], "the index that moved")
        found = self.wait(self.findings, "a finding")
        self.assertEqual((len(found), found[0]["from"]["nic"]), (1, 0))
        self.assertIn("GID of the RDMA port moved from index 5 to 6", found[0]["text"])
        self.move_gid(6, 5)
        self.wait(lambda: not self.troubles() and self.findings() == [], "the index is back")
        for index in (4, 5):  # 4: a global IPv6 address
            self.put(f"{PORT}/gid_attrs/types/{index}", "IB/RoCE v1\n")
        self.wait(lambda: self.troubles() == ["roce-v1"], "the wrong type")
        # 3: the agent doesn't answer now
        done = self.wait(lambda: (found := self.links()).returncode != 3 and found, "an answer")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"h0 +fake0/1 nic0 +roce +roce-v1")
        self.assertIn("h0 fake0/1: it has GIDs of RoCE v1 only, which isn't routed and takes one path: switch RoCE v2 on\n", done.stdout)
        self.put(f"{PORT}/gid_attrs/types/5", "RoCE v2\n")
        self.wait(lambda: not self.troubles(), "the right type")
        self.put("sys/class/net/nic0/mtu", "9000")
        self.wait(lambda: self.event("rdma-trouble", "its MTU is 1024, expected 4096"), "the MTU at odds")
        self.put("sys/class/net/nic0/mtu", "1500")
        self.put(f"{PORT}/counters/symbol_error", "5000")
        self.wait(lambda: self.troubles() == ["cable"], "errors of the cable")

    def test_a_cable_and_a_device_that_go(self):
        self.start()
        self.wait(lambda: self.port().get("mtu") == 1024 and not self.troubles(), "an active port")
        self.put(f"{PORT}/state", "1: DOWN\n")
        run("ip", "-n", self.space, "link", "set", "wire0", "down")  # its device reports PORT_ERR
        port = self.wait(lambda: self.port_in("down"), "it is down")
        self.assertEqual(port["downs"], 1)
        self.put(f"{PORT}/state", "4: ACTIVE\n")
        run("ip", "-n", self.space, "link", "set", "wire0", "up")
        self.wait(lambda: not self.troubles(), "it is up")
        self.put("sys/class/net/nic0/mtu", "9000")
        self.wait(lambda: ["MTU" in f["text"] for f in self.findings() or ()] == [True], "its MTU is at odds")
        os.rename(self.path("root/sys/class/infiniband/fake0"), self.path("away"))
        port = self.wait(lambda: self.port_in("gone"), "it is gone")
        self.assertEqual([port[k] for k in ("state", "mtu", "rate_bps", "gid", "gid_index", "counters")], ["gone", None, None, None, None, {}])
        self.wait(lambda: ["gone" in f["text"] for f in self.findings() or ()] == [True], "what went has no other finding")
        self.put("sys/class/net/nic0/mtu", "1500")
        os.rename(self.path("away"), self.path("root/sys/class/infiniband/fake0"))
        self.wait(lambda: self.port().get("mtu") == 1024 and not self.troubles(), "it is back, and open")
        self.wait(lambda: self.event("rdma-well", "it is over: the device is gone"), "its end is told")

    def test_without_the_library(self):
        self.plant("connectx-infiniband.txt", "mlx5_2", "mlx5_2")
        self.start(library="/nowhere/libibverbs.so.1")
        self.wait(lambda: self.answer().get("verbs_trouble"), "the library is missing")
        found = self.wait(lambda: len(p := self.answer().get("verbs_ports", [])) == 4 and p[0].get("gid_index") == 5 and p, "all ports")
        ports = {f"{p['device']}/{p['port']}": p for p in found}
        self.assertEqual((ports["fake0/1"]["mtu"], ports["mlx5_2/1"]["lid"], ports["mlx5_2/1"]["nic"]), (None, 0x1c2, None))
        self.assertIn("no-subnet-manager", [t["trouble"] for t in ports["mlx5_10/1"]["troubles"]])
        event = self.wait(lambda: self.event("rdma-trouble", "mlx5_10/1: no subnet manager"), "told without a NIC")[0]
        self.assertEqual((event["nic"], event["name"]), (None, "mlx5_10"))
        with open(self.path("log"), encoding="utf-8") as log:
            self.assertIn("RDMA ports are watched by the kernel's files alone", log.read())


if os.geteuid() != 0 or shutil.which("ip") is None:
    print("skipped: needs root and ip, to make network namespaces")
    sys.exit(77)
unittest.main(verbosity=2)
