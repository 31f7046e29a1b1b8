#!/usr/bin/env python3
"""foliot-agent as its operator sees it: two hosts as network namespaces, joined by two wires.
usage: test_agent.py AGENT; foliot-inspect is in the same folder

Bad input and bad luck: each case asserts the message that a person reads, and that the agent goes on."""
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

AGENT = os.path.abspath(sys.argv.pop(1))
KEY = "key 1 000102030405060708090a0b0c0d0e0f 2025-01-01T00:00:00Z\n"
KEY2 = "key 2 ffeeddccbbaa99887766554433221100 2025-02-01T00:00:00Z\n"


IO_S = 60  # the limit for one answer or one end; no test judges how long it takes


def run(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True)


def may_make_namespaces():
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"foliot-probe-{os.getpid()}"
    if run("ip", "netns", "add", name, check=False).returncode != 0:
        return False
    run("ip", "netns", "del", name)
    return True


class Agent:
    """One running agent in a namespace."""

    def __init__(self, case, host, config=None, runtime=None, prefix=()):
        self.case, self.host = case, host
        self.runtime = runtime or case.path(f"run{host}")
        self.log_path = case.path(f"log{host}-{len(case.agents)}")
        self.log_file = open(self.log_path, "w", encoding="utf-8")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("FOLIOT", "JOURNAL", "NOTIFY"))}
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", case.space(host), *prefix, AGENT, "--config", config or case.path(f"h{host}.yaml")],
            stdout=self.log_file, stderr=self.log_file, stdin=subprocess.DEVNULL, env=environment)
        case.agents.append(self)

    def log(self):
        with open(self.log_path, encoding="utf-8") as file:
            return file.read()

    def wait_log(self, pattern, seconds=IO_S):
        return self.case.wait(lambda: re.search(pattern, self.log()), seconds,
                              lambda: f"{pattern!r} in:\n{self.log()}")

    def ask(self, what="status"):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.settimeout(IO_S)
        client.connect(os.path.join(self.runtime, "agent.sock"))
        client.sendall(json.dumps({"get": what, "version": 1}).encode() + b"\n")
        line = client.makefile("r", encoding="utf-8").readline()
        client.close()
        return json.loads(line)

    def answers(self):
        """The answer to `status`. None: no socket, or a killed agent's socket, which refuses."""
        try:
            return self.ask()
        except (FileNotFoundError, ConnectionRefusedError):
            return None

    def ready(self):
        """Waits for the first answer: then everything else is there, too."""
        self.case.wait(lambda: self.process.poll() is not None or self.answers(), 5, self.log)
        self.case.assertIsNone(self.process.poll(), self.log())
        return self

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(IO_S)
        self.log_file.close()
        return code


class AgentCase(unittest.TestCase):
    count = 0

    def setUp(self):
        AgentCase.count += 1
        self.folder = tempfile.mkdtemp(prefix="foliot-agent-test-")
        self.agents, self.mounts = [], []
        self.tag = f"fa{os.getpid()}x{AgentCase.count}"
        for host in (0, 1):
            run("ip", "netns", "add", self.space(host))
            self.ip(host, "link", "set", "lo", "up")
        for wire in (0, 1):
            run("ip", "link", "add", f"nic{wire}", "netns", self.space(0), "type", "veth", "peer", "name", f"nic{wire}",
                "netns", self.space(1))
            for host in (0, 1):
                self.ip(host, "address", "add", f"10.88.{wire}.{host + 1}/24", "dev", f"nic{wire}")
                self.ip(host, "link", "set", f"nic{wire}", "up")
        self.write("fleet.key", KEY, 0o600)
        for host in (0, 1):
            self.configure(host)

    def tearDown(self):
        for agent in self.agents:
            if agent.process.poll() is None:
                agent.stop(signal.SIGKILL)
        for mount in self.mounts:
            run("umount", mount, check=False)
        for host in (0, 1):
            run("ip", "netns", "del", self.space(host), check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def space(self, host):
        return f"{self.tag}-{host}"

    def ip(self, host, *arguments):
        return run("ip", "-n", self.space(host), *arguments)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text, mode=0o644):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def configure(self, host, name=None, extra="", runtime=None, peers=None):
        peers = peers or [(2 * h + n, h, n) for h in (0, 1) for n in (0, 1)]
        text = f"host: h{host}\nkey_file: {self.path('fleet.key')}\nruntime_dir: {runtime or self.path(f'run{host}')}\n{extra}peers:\n"
        for identity, h, n in peers:
            text += f"  - {{id: {identity}, host: h{h}, nic: nic{n}, rail: {n}, address: 10.88.{n}.{h + 1}}}\n"
        return self.write(name or f"h{host}.yaml", text)

    def wait(self, true, seconds, what):
        """Waits until true() holds. `seconds` is what it takes on an idle machine. On a busy machine it may take five times that,
        and at least IO_S: speed is a benchmark's business."""
        seconds = max(5 * seconds, IO_S)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            result = true()
            if result:
                return result
            time.sleep(0.05)
        self.fail(f"not within {seconds} s: {what() if callable(what) else what}")

    def start(self, host, **options):
        return Agent(self, host, **options).ready()

    # ---- normal operation ----

    def test_two_hosts_hear_each_other(self):
        a, b = self.start(0), self.start(1)
        self.wait(lambda: a.ask()["clock"]["edges_live"] >= 2 and b.ask()["clock"]["edges_live"] >= 2, 10, "live edges")
        for kind in ("status", "clock", "mesh", "links", "findings", "doctor", "selftest"):
            answer = a.ask(kind)
            self.assertEqual((answer["kind"], answer["version"], answer["host"]), (kind, 1, "h0"))
        self.assertEqual(a.ask("nonsense")["error"], "unknown-request")
        self.assertEqual(a.ask()["bad_packets"]["forged"], 0)
        # an undisciplined clock doesn't give UTC
        if a.ask("doctor")["now_utc_ns"] is None:
            self.assertFalse(a.ask()["clock"]["utc_known"])
        self.assertEqual(a.stop(), 0)
        self.assertEqual(b.stop(), 0)

    def test_its_knowledge_is_facts_of_an_audit(self):
        agents = [Agent(self, host).ready() for host in (0, 1)]
        os.makedirs(self.path("root/etc/foliot"))
        self.write("root/etc/foliot/agent.yaml", "host: h0\n")

        def facts():
            done = run(os.path.join(os.path.dirname(AGENT), "foliot-inspect"), "--root", self.path("root"), "--agent", os.path.join(agents[0].runtime, "agent.sock"))
            return {(f["fact"], f["subject"]): f.get("state", f["value"]) for f in json.loads(done.stdout)["facts"]}
        edge = r"^\w+, hops -?\d+, paths \d+, alive [1-9]\d*, dead 0 out 0 in, sent \d+, lost \d+, (none|least )"

        def all_known():  # waits for each answer: if one is late, its absence is a fact
            status, found = agents[0].ask(), facts()
            known = {("agent", ""): "running", ("agent.version", ""): status["agent_version"], ("clock.status", ""): status["clock"]["status"],
                     ("net.switch", "nic0"): "none"}
            return re.search(edge, found.get(("edge", "nic0 h1 nic0"), "")) and found.get(("clock.stamps", "")) in ("software", "hardware") and \
                known.items() <= found.items()
        self.wait(all_known, IO_S, lambda: str(facts()))
        agents[0].stop(signal.SIGKILL)
        found = facts()
        self.assertEqual(found["agent", ""], "silent")
        self.assertEqual(found["edge", ""], "unreadable")

    def test_a_restart_is_warm(self):
        for host in (0, 1):
            self.configure(host, peers=[(0, 0, 0), (2, 1, 0)])
        a, b = self.start(0), self.start(1)
        self.wait(lambda: a.ask("clock")["members"][0]["settled"], 25, lambda: str(a.ask("clock")))

        def page():
            with open(os.path.join(self.path("run0"), "clock.page"), "rb") as file:
                return file.read()

        self.wait(lambda: page()[20] != 0, 25, "a known time")
        time.sleep(0.3)
        page = page()
        self.assertEqual(page[page.index(b"nic0\0") + 20], 0)  # the time of a NIC with software stamps is unknown
        a.stop()
        warm = self.start(0)
        warm.wait_log(r"warm start from a state of \d+ s ago")
        warm.stop(signal.SIGKILL)
        again = self.start(0)  # the remains of a killed agent are not in the way
        again.wait_log("warm start|cold start")
        state = os.path.join(self.path("run0"), "agent.state")
        again.stop()
        with open(state, "r+b") as file:
            file.seek(400)
            file.write(b"damaged")
        self.start(0).wait_log("cold start: the saved state is .* but it is damaged")

    # ---- configuration ----

    def test_a_bad_file_is_refused_with_its_place(self):
        config = self.configure(0, extra="prot: 7637\n")
        a = Agent(self, 0, config=config)
        self.assertEqual(a.process.wait(IO_S), 1)
        self.assertIn(f"{config}:4:1: expected one of the keys: host key_file port", a.log())
        self.assertIn("found 'prot'", a.log())

    def test_a_bad_reload_keeps_the_old(self):
        a = self.start(0)
        self.configure(0, extra="port: many\n")
        a.process.send_signal(signal.SIGHUP)
        a.wait_log(r"reload refused, the old configuration stays in force: .*h0.yaml:4:7: expected a whole number from 1 to 65535, found 'many'")
        self.assertIn("h0.yaml:4:7", a.ask()["config"]["error"])
        self.configure(0, extra="diameter: 3\n")
        a.process.send_signal(signal.SIGHUP)
        a.wait_log("own NICs, port, directories and limits take a restart")
        self.configure(0, peers=[(0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1), (9, 1, 2)])
        a.process.send_signal(signal.SIGHUP)
        a.wait_log(r"reloaded .*: 5 NICs of 2 hosts")
        self.assertIsNone(a.ask()["config"]["error"])

    def test_keys(self):
        self.write("fleet.key", KEY, 0o640)
        a = Agent(self, 0)
        self.assertEqual(a.process.wait(IO_S), 1)
        self.assertIn("expected mode 0600, found 0640: chmod 0600", a.log())
        self.write("fleet.key", "key 1 0001 2025-01-01T00:00:00Z\n", 0o600)
        a = Agent(self, 0)
        self.assertEqual(a.process.wait(IO_S), 1)
        self.assertRegex(a.log(), r"fleet.key:1:1: expected 32 hexadecimal digits in the third field")
        self.assertNotIn("0001 ", a.log())

    def test_rotation_and_strangers(self):
        self.write("fleet.key", KEY, 0o600)
        a = self.start(0)
        self.write("fleet.key", KEY + KEY2, 0o600)
        b = self.start(1)  # sends with the newer key at once, because its time has come
        self.wait(lambda: a.ask()["bad_packets"]["unknown_key"] > 5, 5, "unknown key counted")
        self.assertEqual(a.ask()["clock"]["edges_live"], 0)
        checks = {c["check"]: c["result"] for c in a.ask("doctor")["checks"]}
        self.assertEqual(checks["keys"], "warn")
        a.process.send_signal(signal.SIGHUP)
        a.wait_log("2 keys")
        self.wait(lambda: a.ask()["clock"]["edges_live"] >= 2 and b.ask()["clock"]["edges_live"] >= 2, 10, "heard again")

    def test_garbage_is_counted(self):
        a = self.start(0)
        sender = ("import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
                  "for n in (0,1,159,160,161,1400): s.sendto(bytes([0x4f,0x46,2,1])[:n]+b'x'*max(0,n-4),('10.88.0.1',7637))\n")
        run("ip", "netns", "exec", self.space(1), sys.executable, "-c", sender)
        self.wait(lambda: a.ask()["cost"]["packets_bad"] == 6, 5, "six bad packets")
        self.assertEqual(a.ask()["bad_packets"]["truncated"], 5)  # none of these had 160 bytes
        self.assertIsNone(a.process.poll())

    def test_another_wire_version_is_said(self):
        a = self.start(0)
        sender = ("import socket,time\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
                  "for n in range(4000): s.sendto(bytes([0x46,0x4f,9,1])+b'x'*156,('10.88.0.1',7637)); time.sleep(0.05)\n")
        process = subprocess.Popen(["ip", "netns", "exec", self.space(1), sys.executable, "-c", sender])
        try:
            a.wait_log(r"h0: \d+ packets refused, the last one for its newer wire version, .*; upgrade the older agents", 22)
        finally:
            process.kill()
            process.wait()
        self.assertGreater(a.ask()["bad_packets"]["version"], 10)

    def test_a_client_that_never_reads(self):
        a = self.start(0)
        request = json.dumps({"get": "doctor", "version": 1}).encode() + b"\n"

        def resident():
            with open(f"/proc/{a.process.pid}/status", encoding="ascii") as file:
                return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1])

        a.ask("doctor")
        before = resident()
        greedy = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(4)]
        for client in greedy:
            client.connect(os.path.join(a.runtime, "agent.sock"))
            client.setblocking(False)
        sent = 0
        for _ in range(8000):
            for client in greedy:
                try:
                    sent += client.send(request)
                except BlockingIOError:
                    pass
        self.assertEqual(a.ask()["kind"], "status")
        self.assertLess(resident() - before, 3000)
        # a client gets an answer to each question, even if it has closed its sending side
        idle = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(70)]
        for client in idle:  # more clients than places: the client that was idle for longest is dropped
            client.connect(os.path.join(a.runtime, "agent.sock"))
            time.sleep(0.005)
        self.assertEqual(a.ask()["kind"], "status")
        for client in idle:
            client.close()
        polite = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        polite.settimeout(IO_S)
        polite.connect(os.path.join(a.runtime, "agent.sock"))
        polite.sendall(request * 70)
        polite.shutdown(socket.SHUT_WR)
        answers = polite.makefile("r", encoding="utf-8").readlines()
        self.assertEqual([json.loads(line)["kind"] for line in answers], ["doctor"] * 70)
        for client in (*greedy, polite):
            client.close()

    def test_who_asks_nothing_for_long_makes_room(self):
        a = self.start(0)

        def connect():
            client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            client.settimeout(IO_S)
            client.connect(os.path.join(a.runtime, "agent.sock"))
            return client

        watcher = connect()
        watcher.sendall(json.dumps({"watch": "findings", "version": 1}).encode() + b"\n")
        a.ask()
        mute = connect()  # later than the watcher's last request

        def made_room():  # only a new connection makes room, 30 s after the agent has seen this client
            connect().close()
            return select.select([mute], [], [], 1)[0]
        self.wait(made_room, 30, "the mute one is still there")
        self.assertEqual(mute.recv(1), b"")
        talker = connect()
        request = json.dumps({"get": "status", "version": 1}).encode() + b"\n"
        talker.sendall(request)
        self.assertEqual(json.loads(talker.makefile("r", encoding="utf-8").readline())["kind"], "status")
        watcher.setblocking(False)
        try:
            while watcher.recv(65536):  # open findings, then nothing; but not the end of the connection
                pass
            self.fail("a watcher was dropped")
        except BlockingIOError:
            pass
        for client in (mute, watcher, talker):
            client.close()

    # ---- two agents, permission, disk ----

    def test_two_agents_on_one_host(self):
        self.start(0)
        second = Agent(self, 0)
        self.assertEqual(second.process.wait(IO_S), 1)
        self.assertRegex(second.log(), r"another foliot-agent \(process \d+\) runs in .*: expected one agent per host")
        third = self.start(0, config=self.configure(0, name="third.yaml", runtime=self.path("third")), runtime=self.path("third"))
        third.wait_log(r"nic0: UDP port 7637 of this address is taken: expected it free; another foliot-agent")
        self.assertIn("is taken", third.ask("links")["nics"][0]["trouble"])
        checks = {c["check"]: c["result"] for c in third.ask("doctor")["checks"]}
        self.assertEqual(checks["port"], "fail")

    def test_without_permission(self):
        if shutil.which("setpriv") is None:
            self.skipTest("no setpriv")
        os.chmod(self.folder, 0o777)
        self.write("fleet.key", KEY, 0o600)
        os.chown(self.path("fleet.key"), 65534, 65534)
        a = self.start(0, prefix=("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"))
        a.wait_log(r"routers can't be heard: expected CAP_NET_RAW.*\(Operation not permitted\)")
        checks = {c["check"]: c["result"] for c in a.ask("doctor")["checks"]}
        self.assertEqual(checks["capabilities"], "warn")

    def asked_as(self, agent, *who):
        """The answer that a process of that user and those groups gets."""
        ask = ("import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
               "s.sendall(b'{\"get\": \"status\", \"version\": 1}\\n' * 2); s.settimeout(60); "
               "print(s.makefile().readline())")
        return json.loads(run("setpriv", *who, "/usr/bin/python3", "-c", ask, os.path.join(agent.runtime, "agent.sock")).stdout)

    def test_who_may_ask(self):
        os.chmod(self.folder, 0o755)
        stranger = ("--reuid=65534", "--regid=65534", "--clear-groups")
        a = self.start(0)  # for the group foliot, which need not exist
        answer = self.asked_as(a, *stranger)
        self.assertEqual(answer["error"], "not-allowed")
        self.assertIn("expected root or a member of group foliot, found user 65534", answer["message"])
        self.configure(0, extra="socket_group: daemon\n")
        a.process.send_signal(signal.SIGHUP)
        a.wait_log("reloaded")
        self.assertEqual(self.asked_as(a, *stranger)["kind"], "error")
        self.assertEqual(self.asked_as(a, "--reuid=65534", "--regid=1", "--clear-groups")["kind"], "status")
        self.assertEqual(self.asked_as(a, "--reuid=65534", "--regid=65534", "--groups=2,1")["kind"], "status")
        self.configure(0, extra="socket_group: '*'\n")
        a.process.send_signal(signal.SIGHUP)
        self.wait(lambda: a.log().count("reloaded") == 2, 5, a.log)
        self.assertEqual(self.asked_as(a, *stranger)["kind"], "status")

    def test_a_full_disk(self):
        disk = self.path("disk")
        os.mkdir(disk)
        run("mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk)
        self.mounts.append(disk)
        filler = os.open(os.path.join(disk, "filler"), os.O_WRONLY | os.O_CREAT)
        try:
            while True:
                os.write(filler, b"x" * 4096)
        except OSError:
            os.close(filler)
        self.configure(0, extra=f"state_dir: {disk}\n")
        a, b = self.start(0), self.start(1)
        a.wait_log(r"agent.state: can't be written \(No space left on device\): a restart will be a cold one", 20)
        self.wait(lambda: a.ask()["clock"]["edges_live"] >= 2, 10, "live edges all the same")
        self.wait(lambda: {c["check"]: c["result"] for c in a.ask("doctor")["checks"]}["recorder"] == "warn", 20, "doctor says so")
        os.unlink(os.path.join(disk, "filler"))
        a.wait_log("agent.state: can be written again", 15)

    # ---- NICs ----

    def event(self, agent, kind):
        return [e for e in agent.ask("links")["events"] if e["event"] == kind]

    def test_a_nic_vanishes_and_returns(self):
        a, b = self.start(0), self.start(1)
        self.wait(lambda: a.ask()["clock"]["edges_live"] >= 2, 10, "live edges")
        self.ip(0, "link", "del", "nic1")
        self.wait(lambda: self.event(a, "vanished"), 3, "vanished")
        self.assertFalse(a.ask("links")["nics"][1]["present"])
        run("ip", "link", "add", "nic1", "netns", self.space(0), "type", "veth", "peer", "name", "nic1", "netns", self.space(1))
        for host in (0, 1):
            self.ip(host, "address", "add", f"10.88.1.{host + 1}/24", "dev", "nic1")
            self.ip(host, "link", "set", "nic1", "up")
        self.wait(lambda: self.event(a, "returned"), 3, "returned")
        heard = a.ask("links")["nics"][1]["rx_packets"]
        self.wait(lambda: a.ask("links")["nics"][1]["rx_packets"] > heard + 5, 8, "packets again")
        self.wait(lambda: a.ask("links")["nics"][1]["trouble"] is None, 3, "no trouble left")

    def test_a_nic_is_renamed_and_readdressed(self):
        a, b = self.start(0), self.start(1)
        self.wait(lambda: a.ask()["clock"]["edges_live"] >= 2, 10, "live edges")
        self.ip(0, "link", "set", "nic1", "down")
        self.ip(0, "link", "set", "nic1", "name", "ens9")
        self.ip(0, "link", "set", "ens9", "up")
        self.wait(lambda: self.event(a, "renamed"), 3, "renamed")
        self.assertEqual(a.ask("links")["nics"][1]["name"], "ens9")
        self.ip(0, "address", "del", "10.88.1.1/24", "dev", "ens9")
        self.ip(0, "address", "add", "10.88.1.77/24", "dev", "ens9")
        self.wait(lambda: a.ask("links")["nics"][1]["address"] == "10.88.1.77", 3, "the new address")
        a.wait_log("ens9: has another address than the peers list has")
        b.wait_log(r"NIC 1 \(host h0\) sends from another address than the peers list has: probes follow it", 8)
        heard = a.ask("links")["nics"][1]["rx_packets"]
        self.wait(lambda: a.ask("links")["nics"][1]["rx_packets"] > heard + 5, 8, "answers at the new address")

    # ---- who sent a packet ----

    def host_key(self, host, name):
        """A key for a host's state folder, as `foliot keygen --host` makes it. Returns its public half."""
        os.makedirs(self.path(f"state{host}"), 0o700, exist_ok=True)
        told = run(os.path.join(os.path.dirname(AGENT), "foliot"), "keygen", "--host", self.path(name)).stdout
        return re.search(r'"([0-9a-f]{64})"', told).group(1)

    def prove(self, keys, hosts=(0, 1)):
        for host in hosts:
            path = self.configure(host, extra=f"state_dir: {self.path(f'state{host}')}\n")
            with open(path, "a", encoding="utf-8") as file:
                file.write("host_keys: {" + ", ".join(f"h{i}: {key}" for i, key in keys.items()) + "}\n")
            os.utime(path, (0, 0))  # an old file: the keys are binding at once

    def test_only_a_host_itself_speaks_for_it(self):
        keys = {host: self.host_key(host, f"state{host}/pair.key") for host in (0, 1)}
        self.assertEqual(self.host_key(0, "state0/pair.key"), keys[0])  # it stays
        self.prove(keys)
        a, b = self.start(0), self.start(1)
        self.wait(lambda: a.ask()["clock"]["edges_live"] >= 2 and b.ask()["clock"]["edges_live"] >= 2, 10, "live edges")
        self.assertEqual(b.ask()["bad_packets"]["forged"], 0)
        self.assertEqual(a.stop(), 0)
        self.wait(lambda: b.ask()["clock"]["edges_live"] == 0, 10, "the host is gone")
        # a host with the fleet's key and the list, but without this host's own key
        os.rename(self.path("state0/pair.key"), self.path("kept.key"))
        a = self.start(0)
        a.wait_log("host_keys has another key for this host: others can't read its probes")
        self.wait(lambda: b.ask()["bad_packets"]["forged"] > 50, 10, "its probes are refused")
        self.assertEqual(b.ask()["clock"]["edges_live"], 0)
        self.assertEqual(a.stop(), 0)
        os.rename(self.path("kept.key"), self.path("state0/pair.key"))
        a = self.start(0)
        self.wait(lambda: b.ask()["clock"]["edges_live"] >= 2, 10, "itself again")
        # an agent of a version without such keys: its probes have the fleet's key
        self.assertEqual(a.stop(), 0)
        self.configure(0, extra=f"state_dir: {self.path('state0')}\n")
        heard = b.ask()["bad_packets"]["forged"]
        a = self.start(0)
        self.wait(lambda: b.ask()["bad_packets"]["forged"] > heard + 50, 10, "refused while the list has its key")
        self.prove({1: keys[1]}, hosts=(1,))
        b.process.send_signal(signal.SIGHUP)
        self.wait(lambda: b.ask()["clock"]["edges_live"] >= 2, 10, "heard when the list has none any more")

    def test_keys_come_while_agents_run(self):
        keys = {host: self.host_key(host, f"state{host}/pair.key") for host in (0, 1)}
        for host in (0, 1):
            self.configure(host, extra=f"state_dir: {self.path(f'state{host}')}\n")
        a, b = self.start(0), self.start(1)
        self.wait(lambda: a.ask()["clock"]["edges_live"] >= 2 and b.ask()["clock"]["edges_live"] >= 2, 10, "live edges")
        self.prove(keys, hosts=(1,))
        b.process.send_signal(signal.SIGHUP)
        b.wait_log("reloaded")
        time.sleep(1)  # only one of the two hosts has the keys
        self.prove(keys, hosts=(0,))
        a.process.send_signal(signal.SIGHUP)
        a.wait_log("reloaded")
        heard = b.ask("links")["nics"][0]["rx_packets"]
        self.wait(lambda: b.ask("links")["nics"][0]["rx_packets"] > heard + 50, 10, "packets go on")
        for agent in (a, b):
            self.wait(lambda: agent.ask()["clock"]["edges_live"] == 2, 10, "live edges")
            self.assertEqual(agent.ask()["bad_packets"]["forged"], 0)

    def test_a_nic_whose_transmit_stamps_never_come(self):
        """If one macvlan sends to its neighbour on the same device, no driver stamps the packet."""
        self.ip(0, "link", "del", "nic0")
        for host in (0, 1):
            self.configure(host, peers=[(0, 0, 0), (2, 1, 0)])
        run("ip", "link", "add", "base", "netns", self.space(0), "type", "veth", "peer", "name", "end", "netns", self.space(0))
        for host in (0, 1):
            made = run("ip", "-n", self.space(0), "link", "add", "link", "base", "name", f"mv{host}", "type", "macvlan", "mode",
                       "bridge", check=False)
            if made.returncode != 0:
                self.skipTest(f"no macvlan here: {made.stderr.strip()}")
            self.ip(0, "link", "set", f"mv{host}", "netns", self.space(host))
            self.ip(host, "link", "set", f"mv{host}", "name", "nic0")
            self.ip(host, "address", "add", f"10.88.0.{host + 1}/24", "dev", "nic0")
            self.ip(host, "link", "set", "nic0", "up")
        for device in ("base", "end"):
            self.ip(0, "link", "set", device, "up")
        a, b = self.start(0), self.start(1)
        a.wait_log(r"h0/nic0: \d+ of \d+ transmit stamps are missing, .*; check the NIC's driver and its time stamping settings", 15)
        clock = a.ask()["clock"]
        self.assertEqual(clock["status"], "UNKNOWN")
        self.assertIn("the kernel gives no transmit stamps", clock["why"])
        self.assertIsNone(clock["hard_ns"])
        check = {c["check"]: c for c in a.ask("doctor")["checks"]}["stamps"]
        self.assertEqual(check["result"], "fail")
        self.assertIn("ethtool -T", check["advice"])
        self.wait(lambda: a.ask("links")["nics"][0]["rx_packets"] > 50, 5, "they do hear each other")

    def test_carrier_and_flaps(self):
        a = self.start(0)
        self.wait(lambda: a.ask("links")["nics"][0]["carrier"], 3, "carrier")
        count = a.ask("links")["nics"][0]["carrier_down_count"]
        self.ip(1, "link", "set", "nic0", "down")
        self.wait(lambda: self.event(a, "down"), 1, "a link that is down")
        for _ in range(25):
            self.ip(1, "link", "set", "nic0", "up")
            self.ip(1, "link", "set", "nic0", "down")
        self.wait(lambda: a.ask("links")["nics"][0]["carrier_down_count"] == count + 26, 3, "all counted by the kernel")
        self.wait(lambda: a.ask("links")["nics"][0]["flaps_hour"] == 26, 3, lambda: str(a.ask("links")["nics"][0]))
        a.wait_log("link has flapped more than 8 times within the past hour")


if __name__ == "__main__":
    if not may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)
