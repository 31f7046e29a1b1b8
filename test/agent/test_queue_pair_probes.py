#!/usr/bin/env python3
"""Probes between queue pairs: two agents in two network namespaces, over a fake libibverbs.
usage: test_queue_pair_probes.py AGENT FOLIOT TREES LIBRARY"""
import ctypes
import fcntl
import itertools
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

LIBRARY, TREES, FOLIOT, AGENT = (os.path.abspath(sys.argv.pop()) for _ in range(4))
KEY = "key 1 000102030405060708090a0b0c0d0e0f 2025-01-01T00:00:00Z\n"
PORT = "sys/class/infiniband/fake0/ports/1"
PATIENCE_S = 120
# delay of the slower class: much more than a busy machine causes; both ways together less than a lost packet's limit
LATE_MS = 250


UDP = 17
LANE_ACTIVE = 2
ROCE_PORTS = 0xc000


def raw_socket(space):
    """A raw socket on nic0 of that network namespace. It doesn't block."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    other = os.open(f"/run/netns/{space}", os.O_RDONLY)
    setns = ctypes.CDLL(None, use_errno=True).setns
    try:
        if setns(other, 0) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        setns(own, 0)
    finally:
        os.close(own)
        os.close(other)
    tap.bind(("nic0", 0))
    tap.settimeout(0.1)
    return tap


def record(tap, end):
    """The UDP packets that leave there until `end`, ready to be sent again: with the checksum that the NIC would have added."""
    frames = []
    while time.monotonic() < end:
        try:
            frame, address = tap.recvfrom(2048)
        except TimeoutError:
            continue
        if address[2] == socket.PACKET_OUTGOING and frame[12:14] == b"\x08\x00" and frame[23] == UDP:
            frames.append(frame[:40] + b"\0\0" + frame[42:])
    return frames


def run(*command, check=True, **options):
    return subprocess.run(command, check=check, capture_output=True, text=True, **options)


class TestQueuePairProbes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="foliot-queue-pairs-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.spaces = [f"fq{os.getpid()}h{i}" for i in range(2)]
        self.agents = [None, None]
        for space in self.spaces:
            run("ip", "netns", "add", space)
            self.addCleanup(run, "ip", "netns", "del", space, check=False)
        run("ip", "-n", self.spaces[0], "link", "add", "nic0", "type", "veth", "peer", "name", "nic0", "netns", self.spaces[1])
        for i, space in enumerate(self.spaces):
            for command in ("link set lo up", f"address add 10.88.0.{i + 1}/24 dev nic0", "link set nic0 up"):
                run("ip", "-n", space, *command.split())
            self.plant(i)
        self.write("fleet.key", KEY, 0o600)
        self.late(0)

    def tearDown(self):
        for i in range(2):
            self.stop(i)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name) + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name) + ".new", mode)
        os.rename(self.path(name) + ".new", self.path(name))

    def plant_tree(self, i, tree, device, interface):
        with open(os.path.join(TREES, tree), encoding="utf-8") as lines:
            for line in lines:
                name, tab, text = line.replace(f"/{device}/", "/fake0/").replace(interface, "nic0").partition("\t")
                if tab and "/mlx5_" not in name:
                    self.write(f"root{i}/{name.lstrip('/')}", text)

    def plant(self, i):
        """Makes a recorded tree with the GID of the library's device."""
        self.plant_tree(i, "connectx-roce.txt", "mlx5_0", "eth0")
        self.write(f"root{i}/sys/class/net/nic0/mtu", "1500")
        self.write(f"root{i}/{PORT}/gids/5", f"0000:0000:0000:0000:0000:ffff:0a58:000{i + 1}\n")
        self.write(f"root{i}/{PORT}/gids/4", "0000:0000:0000:0000:0000:0000:0000:0000\n")

    def late(self, ms):
        self.write("late", f"104 {ms}\n")

    def plant_infiniband(self, i):
        shutil.rmtree(self.path(f"root{i}"))
        self.plant_tree(i, "connectx-infiniband.txt", "mlx5_2", "ibs1")
        self.write(f"root{i}/{PORT}/gids/0", f"fe80:0000:0000:0000:0000:0000:0a58:000{i + 1}\n")

    def start(self, i, job_class="job_traffic_class: 104\n", flags="", **more):
        peers = "".join(f"  - {{id: {k}, host: h{k}, nic: nic0, address: 10.88.0.{k + 1}}}\n" for k in range(2))
        self.write(f"h{i}.yaml", f"host: h{i}\nkey_file: {self.path('fleet.key')}\nruntime_dir: {self.path(f'run{i}')}\n{job_class}peers:\n{peers}")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("FOLIOT", "JOURNAL", "NOTIFY"))}
        environment |= {"FOLIOT_VERBS": LIBRARY, "FOLIOT_VERBS_ROOT": self.path(f"root{i}"), "FOLIOT_FAKE_VERBS_LATE": self.path("late"),
                        "FOLIOT_FAKE_VERBS_WIRE": f"fake0=10.88.0.{i + 1}{flags}", **more}
        with open(self.path(f"log{i}"), "a", encoding="utf-8") as log:
            self.agents[i] = subprocess.Popen(["ip", "netns", "exec", self.spaces[i], AGENT, "--config", self.path(f"h{i}.yaml")],
                                              stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)

    def stop(self, i):
        if self.agents[i] is not None and self.agents[i].poll() is None:
            self.agents[i].send_signal(signal.SIGTERM)
            self.assertEqual(self.agents[i].wait(PATIENCE_S), 0)
        self.agents[i] = None

    def ask(self, i, *words):
        return run(FOLIOT, *words, check=False, env=dict(os.environ, FOLIOT_RUNTIME_DIR=self.path(f"run{i}")))

    def answer(self, i, *words):
        try:
            return json.loads(self.ask(i, *words, "--json").stdout)
        except json.JSONDecodeError:
            return {}

    def pair(self, i):
        pairs = self.answer(i, "mesh").get("queue_pairs", [])
        return pairs[0] if pairs else None

    def measured(self, i):
        """The pair, once both classes have delays in both directions."""
        pair = self.pair(i)
        return pair if pair is not None and all(c["out"] and c["in"] for c in pair["classes"]) else None

    def findings(self, i):
        answer = self.answer(i, "findings")
        return [f for f in answer["findings"] if f["open"] and f["finding"] == "rdma-port"] if "findings" in answer else None  # None: no answer

    def port(self, i):
        """The only port in the answer to `links`; {}: the agent doesn't answer now."""
        ports = self.answer(i, "links").get("verbs_ports", [])
        return ports[0] if ports else {}

    def wait(self, true, what):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            result = true()
            if result:
                return result
            time.sleep(0.2)
        logs = [open(self.path(f"log{i}"), encoding="utf-8").read() for i in range(2)]  # pylint: disable=consider-using-with
        self.fail(f"not within {PATIENCE_S} s: {what}\n{self.pair(0)}\n{self.pair(1)}\n{logs[0]}\n{logs[1]}")

    def test_delays_and_a_class_that_is_slower(self):
        self.start(0)
        self.start(1)
        for i in range(2):
            pair = self.wait(lambda i=i: self.measured(i), "delays of both classes")
            self.assertEqual((pair["local_nic"], pair["peer_nic"], pair["peer_host"], pair["device"], pair["port"], pair["stamps"]),
                             (i, 1 - i, f"h{1 - i}", "fake0", 1, "poll"))
            self.assertEqual([(c["class"], c["traffic_class"]) for c in pair["classes"]], [("reference", 0), ("job", 104)])
            for direction in (c[d] for c in pair["classes"] for d in ("out", "in")):
                self.assertGreaterEqual(direction["owd_ns"], direction["half_ns"])
                self.assertGreater(direction["half_ns"], 0)
        row = r"between queue pairs(?s:.*)h0/nic0 <> h1/nic0 +fake0/1 +job \(DSCP 26\) +[0-9.]+ us ±[0-9.]+ us "
        self.wait(lambda: re.search(row, self.ask(0, "mesh").stdout), "its row, with delays")
        self.wait(lambda: self.findings(0) == [] and self.findings(1) == [], "no class is slower")
        self.late(LATE_MS)
        for i in range(2):
            found = self.wait(lambda i=i: self.findings(i), "the class is slower")
            self.assertRegex(found[0]["text"], r"RDMA packets of the job's class \(DSCP 26\) take \d+\.\d+ ms, unmarked ones between the same ports")
            self.assertEqual(found[0]["from"]["nic"], i)
        self.wait(lambda: (self.pair(0) or {}).get("class_slow"), "the pair has it")
        self.wait(lambda: [t["trouble"] for t in self.port(0).get("troubles", [])] == ["class"], "the port has it")
        self.wait(lambda: "for rules for its DSCP" in self.ask(0, "links").stdout, "what to do")
        job = self.wait(lambda: [c for c in (self.measured(0) or {"classes": []})["classes"] if c["class"] == "job" and c["out"]["owd_ns"] > 0.8e6 * LATE_MS], "its delay")[0]
        self.assertGreaterEqual(job["out"]["owd_ns"] + job["out"]["half_ns"], 1e6 * LATE_MS)  # the delay isn't reported too small
        self.late(0)
        for i in range(2):
            self.wait(lambda i=i: self.findings(i) == [], "it is over")

    def job_page(self, i, pair, traffic_class, path_port=0):
        """A process of a job with one lane, as the job page of wire/job_page.h has it."""
        lane = struct.pack("<IIHBBBBHHBBI", 1, 0, 0, 1, LANE_ACTIVE, 0, 0, 7000, 7001, pair, traffic_class, 1)
        for host in (i, 1 - i):
            lane += socket.inet_pton(socket.AF_INET6, f"::ffff:10.88.0.{host + 1}")
        lane = (lane + b"nic0").ljust(176, b"\0") + struct.pack("<I", path_port)
        lane = lane.ljust(232, b"\0")
        header = struct.pack("<QIIIIqq48s64sII", 0x31424f4a4f464f46, 2, 4242, 1024, 1, 1, 1, b"h", b"job", 0, 2).ljust(240, b"\0")
        page = struct.pack("<Q", 2) + header + struct.pack("<Q", 2) + lane
        os.makedirs(self.path(f"run{i}/jobs"), exist_ok=True)
        file = open(self.path(f"run{i}/jobs/job-4242-1.page"), "wb")  # pylint: disable=consider-using-with
        self.addCleanup(file.close)
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(page.ljust(8 + 240 + 1024 * 240, b"\0"))
        file.flush()
        return file

    def test_the_class_of_jobs(self):
        """agent.yaml leaves the class to the jobs: the probes take the class of the running jobs."""
        pages = []
        for i in range(2):
            self.start(i, job_class="job_traffic_class: jobs\n")
            self.wait(lambda i=i: self.answer(i, "links").get("verbs_ports"), "the agent answers")
            pages.append(self.job_page(i, 1 | 3 << 4, 106))
        for i in range(2):
            classes = self.wait(lambda i=i: (p := self.measured(i)) and len(p["classes"]) == 2 and p["classes"], "the job's class")
            self.assertEqual([(c["class"], c["traffic_class"], c["service_level"]) for c in classes], [("reference", 0, 0), ("job", 106, 3)])
        self.wait(lambda: re.search(r"job \(DSCP 26, SL 3\)", self.ask(0, "mesh").stdout), "the class in its row")
        for page in pages:
            page.close()
        self.wait(lambda: (p := self.measured(0)) and len(p["classes"]) == 1, "the job has ended")

    def ports_of(self, tap, seconds):
        """The RoCE ports from which that host sends datagrams: for each class."""
        seen = {}
        for frame in record(tap, time.monotonic() + seconds):
            port = struct.unpack_from("!H", frame, 34)[0]
            if port >= ROCE_PORTS:
                seen.setdefault(frame[15] & 0xfc, set()).add(port)
        return seen

    def test_the_path_of_jobs(self):
        """Probes of both classes use a lane's port, in both directions."""
        ports = [0xc123, 0xd456]
        for i in range(2):
            self.start(i, job_class="job_traffic_class: jobs\n", FOLIOT_FAKE_VERBS_LABELS="1")
            self.wait(lambda i=i: self.answer(i, "links").get("verbs_ports"), "the agent answers")
        self.assertIsNone(self.wait(lambda: self.measured(0), "delays without jobs")["path_port"])
        for i in range(2):
            self.job_page(i, 1 | 2, 104, ports[i])
        for i in range(2):
            self.wait(lambda i=i: (p := self.measured(i)) and len(p["classes"]) == 2 and p["path_port"] == ports[i], "the lane's path")
        with raw_socket(self.spaces[0]) as tap:
            self.wait(lambda: self.ports_of(tap, 2) == {0: {ports[0]}, 104: {ports[0]}}, "both classes, from that port alone")
        with raw_socket(self.spaces[1]) as tap:
            self.wait(lambda: self.ports_of(tap, 2) == {0: {ports[1]}, 104: {ports[1]}}, "questions and answers")
        process = self.wait(lambda: self.answer(0, "jobs", "job").get("processes"), "the job")[0]
        self.assertEqual([lane["path_port"] for lane in process["lane_list"]], [ports[0]], process)

    def test_an_agent_that_is_started_anew(self):
        self.start(0, job_class="")
        self.start(1, job_class="")
        pair = self.wait(lambda: self.measured(0), "delays")
        self.assertEqual([c["class"] for c in pair["classes"]], ["reference"])
        self.stop(1)
        self.wait(lambda: self.pair(0) is None, "who is gone is forgotten")
        self.start(1, job_class="")
        self.wait(lambda: self.measured(0), "its new queue pair")

    def counts(self, i):
        """Counts of the reference class: asked, lost."""
        pair = self.pair(i)
        return (pair["classes"][0]["asked"], pair["classes"][0]["lost"]) if pair else (0, 0)

    def began_at(self):
        """The number of the first question from h0's queue pair to h1, or the number before it. None: there is no pair, or no
        answer yet. Questions are numbered in order, and a pair counts its own."""
        out = (pair := self.pair(0)) and pair["classes"][0]["out"]
        return out["newest"]["exchange"] - pair["classes"][0]["asked"] if out else None

    def test_what_was_recorded_changes_nothing(self):
        """An attacker on the way records all packets of h1, and sends them again after h1's agent has restarted."""
        self.start(0, job_class="")
        self.start(1, job_class="")
        self.wait(lambda: self.measured(0) and self.measured(1), "delays")
        with raw_socket(self.spaces[1]) as tap:
            frames = self.wait(lambda: len(f := record(tap, time.monotonic() + 4)) > 20 and f, "something to record")
            self.wait(lambda: self.counts(0)[0] > 12, "some questions")
            before = self.wait(self.began_at, "answers")
            self.stop(1)
            self.start(1, job_class="")
            self.wait(lambda: (began := self.began_at()) is not None and (began - before) % 2**32 in range(8, 2**31), "it is another queue pair")
            self.wait(lambda: self.measured(0) and self.measured(1), "its delays")

            def undisturbed():
                before = [self.counts(i) for i in range(2)]
                end = time.monotonic() + 15
                for frame in itertools.takewhile(lambda _: time.monotonic() < end, itertools.cycle(frames)):
                    tap.send(frame)
                    time.sleep(0.01)  # this is no flood
                told = [[after - early for after, early in zip(self.counts(i), before[i])] for i in range(2)]
                return all(asked > 4 and lost < 2 + asked / 4 for asked, lost in told)  # an agent may pause in one window
            self.wait(undisturbed, "nobody begins again, and all is answered that should be")

    def test_infiniband(self):
        for i in range(2):
            self.plant_infiniband(i)
            self.start(i, flags=",ib")
        for i in range(2):
            pair = self.wait(lambda i=i: self.measured(i), "delays between LIDs")
            self.assertEqual(pair["device"], "fake0")
        self.assertEqual(self.wait(lambda: self.port(0), "its port")["link"], "infiniband")

    def test_roce_v1_only(self):
        self.write(f"root0/{PORT}/gid_attrs/types/5", "IB/RoCE v1\n")
        self.start(0)
        self.start(1)
        found = self.wait(lambda: self.findings(0), "the type")
        self.assertIn("RDMA port has GIDs of RoCE v1 only", found[0]["text"])
        self.assertIsNone(self.pair(0))
        self.write(f"root0/{PORT}/gid_attrs/types/5", "RoCE v2\n")
        self.wait(lambda: self.measured(0) and self.findings(0) == [], "the right type")


if os.geteuid() != 0 or shutil.which("ip") is None:
    print("skipped: needs root and ip, to make network namespaces")
    sys.exit(77)
unittest.main(verbosity=2)
