"""fleet.py: shared by the controller's tests: hosts as network namespaces on one bridge, with agents and a controller in them."""
import contextlib
import ctypes
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

import openapi

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
IO_S = 60      # of one answer
PATIENCE, LEAST_S = 8, 60  # what takes a second alone may take eight beside other tests; any process may pause for some seconds
PAUSE = {"report": "60s", "beat": "20s"}  # the test plays the hosts: a pause of this machine isn't their silence


TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} UTC"  # the form of a time in any text for people


def odd_times(text):
    """Times of day in any other form than that or RFC 3339's. Addresses have colons, too."""
    rest = re.sub(TIME + r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "", text)
    return re.findall(r"(?<![\dA-Fa-f:.])\d\d:\d\d:\d\d(?![\dA-Fa-f:])", rest)


def run(*command, check=True, **options):
    return subprocess.run(command, check=check, capture_output=True, text=True, **options)


def program(name):
    """A server for the tests: installed, or unpacked by `tools/install-deps test`."""
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    unpacked = os.path.join(top, "build", "deps", "prometheus", "usr", "bin", name)
    return shutil.which(name) or (unpacked if os.access(unpacked, os.X_OK) else None)


def may_make_namespaces():
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"foliot-probe-{os.getpid()}"
    if run("ip", "netns", "add", name, check=False).returncode != 0:
        return False
    run("ip", "netns", "del", name)
    return True


def within(space, make):
    """Calls make() in a namespace, and returns its result. The caller's own namespace stays the same."""
    with open("/proc/thread-self/ns/net", "rb") as own, open(f"/run/netns/{space}", "rb") as other:
        if LIBC.setns(other.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        try:
            return make()
        finally:
            LIBC.setns(own.fileno(), CLONE_NEWNET)


def connect(space, address, port):
    """A TCP connection out of a namespace."""
    return within(space, lambda: socket.create_connection((address, port), IO_S))


class Process:
    def __init__(self, case, name, space, *command, environment=None):
        self.case, self.name = case, name
        case.log_count += 1
        self.log_path = case.path(f"{name}-{case.log_count}.log")
        self.log_file = open(self.log_path, "w", encoding="utf-8")
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("FOLIOT", "JOURNAL", "NOTIFY"))}
        self.process = subprocess.Popen(["ip", "netns", "exec", space, *command], stdout=self.log_file,
                                        stderr=self.log_file, stdin=subprocess.DEVNULL,
                                        env=dict(clean, **(environment or {})))
        case.processes.append(self)

    def log(self):
        with open(self.log_path, encoding="utf-8") as file:
            return file.read()

    def wait_log(self, pattern, seconds=8):
        return self.case.wait(lambda: re.search(pattern, self.log()), seconds,
                              lambda: f"{pattern!r} in:\n{self.log()}")

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(IO_S)
        self.log_file.close()
        return code


class Fleet(unittest.TestCase):
    """Each test has a folder, namespaces c (controller) and h0 … h3, and processes that end with the test."""
    HOSTS = 3
    spec = openapi.Validator()
    AGENT = CONTROLLER = FOLIOT = None
    count = 0

    def setUp(self):
        Fleet.count += 1
        self.folder = tempfile.mkdtemp(prefix="foliot-controller-test-")
        self.processes, self.log_count, self.admin = [], 0, None
        self.tag = f"fc{os.getpid()}x{Fleet.count}"
        for name in ["c"] + [f"h{i}" for i in range(self.HOSTS)]:
            run("ip", "netns", "add", self.space(name))
        # one process a namespace, not one a line
        cables, switch = [], ["link set lo up", "link add br0 type bridge", "link set br0 up", "link add br1 type bridge",
                              "address add 10.90.0.1/24 dev br1", "link set br1 up"]
        hosts = [["link set lo up"] for _ in range(self.HOSTS)]
        for i, host in enumerate(hosts):
            for device, port, bridge, address in [("mgmt", f"m{i}", "br1", f"10.90.0.{10 + i}")] + \
                    [(f"nic{nic}", f"p{i}x{nic}", "br0", f"10.89.0.{10 + 2 * i + nic}") for nic in (0, 1)]:
                cables.append(f"link add {device} netns {self.space(f'h{i}')} type veth peer name {port} netns {self.space('c')}")
                switch.append(f"link set {port} master {bridge} up")
                host += [f"address add {address}/24 dev {device}", f"link set {device} up"]
        for where, lines in [((), cables), (("-n", self.space("c")), switch)] + [(("-n", self.space(f"h{i}")), host) for i, host in enumerate(hosts)]:
            run("ip", *where, "-batch", "-", input="\n".join(lines))

    def tearDown(self):
        for process in self.processes:
            if process.process.poll() is None:
                process.stop(signal.SIGKILL)
        try:
            self.replay()
        finally:
            for name in ["c"] + [f"h{i}" for i in range(self.HOSTS)]:
                run("ip", "netns", "del", self.space(name), check=False)
            shutil.rmtree(self.folder, ignore_errors=True)

    def replay(self):
        """Replays the inputs of a controller's brain: they must give the same answers again, in every test."""
        for name in ("brain.record", "brain.record.before"):
            if self.FOLIOT is None or not os.path.exists(self.path("data", name)):
                continue
            os.rename(self.path("data", name), self.path("data", "brain.record"))
            copied = self.command("record", self.path(name), check=False)
            if "nothing is recorded yet" in copied.stderr:
                continue
            self.assertEqual(copied.returncode, 0, copied.stderr)
            played = run(self.FOLIOT, "sim", "replay", "--quiet", self.path(name), check=False)
            self.assertEqual(played.returncode, 0, played.stdout + played.stderr)
            print(played.stdout.strip(), flush=True)

    def space(self, name):
        return f"{self.tag}-{name}"

    def ip(self, name, *arguments):
        return run("ip", "-n", self.space(name), *arguments)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text, mode=0o644):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)

    @staticmethod
    def read(path):
        with open(path, encoding="utf-8") as file:
            return file.read()

    def wait(self, true, seconds, what):
        """Waits for true(). `seconds` is what it takes on an idle machine. It waits PATIENCE times that, and at least LEAST_S."""
        seconds = max(seconds * PATIENCE, LEAST_S)
        end = time.monotonic() + seconds
        while True:
            result = true()
            if result:
                return result
            if time.monotonic() > end:
                self.fail(f"not within {seconds} s: {what() if callable(what) else what}")
            time.sleep(0.05)

    # ---- the controller ----

    def command(self, *arguments, check=True):
        """Runs a foliot-controller command, beside or without a running controller."""
        return run("ip", "netns", "exec", self.space("c"), self.CONTROLLER, "--config", self.path("controller.yaml"),
                   *arguments, check=check)

    def init(self, uses=10, extra="", report="1s", beat="300ms", address="10.90.0.1"):
        """report: a host is silent after three missing reports; it is long if a slow machine's pauses must not count."""
        self.write("controller.yaml", f"data_dir: {self.path('data')}\nlisten: 10.90.0.1:7638\n"
                   f"api_listen: 127.0.0.1:7639\nreport: {report}\nbeat: {beat}\n{extra}" +
                   ("" if "record_mib" in extra else "record_mib: 256\n"))
        text = self.command("init", "--address", address, "--uses", str(uses)).stdout
        self.token = re.search(r"flj_\S+", text)[0]
        self.admin = re.search(r"fla_\S+", text)[0]

    def controller(self, wait=True):
        process = Process(self, "controller", self.space("c"), self.CONTROLLER, "--config", self.path("controller.yaml"))
        if wait:
            process.wait_log("agents on port")
        return process

    def start(self, **options):
        self.init(**options)
        return self.controller()

    def request(self, method, path, body=None, token="admin", headers=None):
        """Status, headers, body; JSON parsed."""
        connection = http.client.HTTPConnection("127.0.0.1", 7639)
        connection.sock = connect(self.space("c"), "127.0.0.1", 7639)
        headers = dict(headers or {})
        if token is not None:
            headers["Authorization"] = f"Bearer {self.admin if token == 'admin' else token}"
        data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        connection.request(method, path, data, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        encoding = answer.getheader("Content-Encoding")
        if encoding in ("gzip", "zstd") and content:
            content = subprocess.run([encoding, "-dc"], input=content, stdout=subprocess.PIPE, check=True).stdout
        if (answer.getheader("Content-Type") or "").startswith("application/json") and content:
            content = json.loads(content)
            self.spec.answer(method, path, answer.status, content)
            self.assertEqual(odd_times(json.dumps(content)), [], f"{method} {path}: a time without its date, or in another format")
        return answer.status, dict(answer.getheaders()), content

    def get(self, path, **options):
        status, _, content = self.request("GET", path, **options)
        self.assertEqual(status, 200, content)
        return content

    def host(self, name):
        status, _, content = self.request("GET", f"/api/v1/hosts/{name}")
        return content if status == 200 else None

    def events(self, **arguments):
        query = "&".join(f"{k}={v}" for k, v in arguments.items())
        return self.get(f"/api/v1/events?limit=1000&{query}")["items"]

    def at_once(self, request, count):
        """Sends `count` equal requests on one connection, all before the first answer is read, so that a machine that pauses
        refills no quota in between. Returns (status, head) of each answer."""
        sock = connect(self.space("c"), "127.0.0.1", 7639)
        sender = threading.Thread(target=sock.sendall, args=(request.encode() * count,))
        sender.start()
        answers = []
        with sock.makefile("rb") as stream:
            for _ in range(count):
                head = b"".join(iter(stream.readline, b"\r\n")).decode()
                self.assertRegex(head, r"^HTTP/1\.1 \d+ ")
                size = re.search(r"(?im)^content-length: *(\d+)", head)
                stream.read(int(size[1]) if size else 0)
                answers.append((int(head.split()[1]), head))
        sender.join()
        sock.close()
        return answers

    # ---- agents ----

    def join(self, i, token=None, check=True, name=None, nics=("nic0", "nic1"), leaf=None):
        name = name or f"h{i}"
        return run("ip", "netns", "exec", self.space(f"h{i}"), self.AGENT, "join", "10.90.0.1", token or self.token,
                   "--host", name, *[x for nic in nics for x in ("--nic", nic)], "--config", self.path(f"{name}.yaml"),
                   "--state-dir", self.path(f"state-{name}"), *(["--leaf", leaf] if leaf else []), check=check)

    def agent(self, i, name=None, runtime=None):
        name = name or f"h{i}"
        return Process(self, name, self.space(f"h{i}"), self.AGENT, "--config", self.path(f"{name}.yaml"),
                       environment={"FOLIOT_RUNTIME_DIR": runtime or self.path(f"run-{name}")})

    def members(self, *numbers):
        """Joined, started and heard."""
        agents = []
        for i in numbers:
            self.join(i)
            agents.append(self.agent(i))
        for i in numbers:
            self.wait(lambda: (self.host(f"h{i}") or {}).get("paths") is not None, 15, lambda: str(self.host(f"h{i}")))
        return agents

    def ask(self, name, what="status"):
        """The agent's own answer, on its socket. A new agent may not listen yet."""
        def connected():
            client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            client.settimeout(IO_S)
            try:
                client.connect(self.path(f"run-{name}", "agent.sock"))
                return client
            except (FileNotFoundError, ConnectionRefusedError):
                client.close()
                return None
        client = self.wait(connected, 1, f"{name} doesn't listen")
        client.sendall(json.dumps({"get": what, "version": 1}).encode() + b"\n")
        with client.makefile("r", encoding="utf-8") as lines:
            answer = json.loads(lines.readline())
        client.close()
        return answer

    def check_metrics(self, text):
        """OpenMetrics: every sample belongs to the family above it, each once, with right names and units."""
        lines = text.decode().split("\n")
        self.assertEqual(lines[-2:], ["# EOF", ""])
        families, seen, family, kind = set(), set(), None, None
        for line in lines[:-2]:
            if line.startswith("# TYPE "):
                _, _, family, kind = line.split(" ")
                self.assertNotIn(family, families)
                families.add(family)
            elif line.startswith("# UNIT "):
                self.assertTrue(family.endswith("_" + line.split(" ")[3]), line)
            elif line.startswith("# HELP "):
                self.assertEqual(line.split(" ")[2], family)
            else:
                match = re.fullmatch(r'([a-z_]+)(\{[a-z_]+="[^"]*"(?:,[a-z_]+="[^"]*")*\})? ([-+0-9.e]+|NaN)', line)
                self.assertTrue(match, line)
                self.assertEqual(match[1], family + ("_total" if kind == "counter" else ""), line)
                self.assertNotIn((match[1], match[2]), seen)
                seen.add((match[1], match[2]))
        return seen

    # ---- agents that the test plays ----

    def tls(self, certificate=None, key=None, i=0):
        """A TLS connection to the agents' port, out of h<i>."""
        context = ssl.create_default_context(cafile=self.path("data", "authority.pem"))
        context.check_hostname = False
        if certificate is not None:
            context.load_cert_chain(certificate, key)
        return context.wrap_socket(connect(self.space(f"h{i}"), "10.90.0.1", 7638), server_hostname="controller.foliot")

    def post(self, path, body, certificate=None, key=None, headers=None):
        sock = self.tls(certificate, key)
        connection = http.client.HTTPConnection("10.90.0.1", 7638)
        connection.sock = sock
        try:
            connection.request("POST", path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()
            sock.close()

    def listen(self, address, port):
        """A listening socket in the controller's namespace."""
        return within(self.space("c"), lambda: socket.create_server((address, port)))

    def place_context(self, certificate=None, key=None):
        """TLS as an impostor in the controller's place would offer it: with the controller's certificate, or another."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate or self.path("data", "server.pem"), key or self.path("data", "server.key"))
        return context

    @contextlib.contextmanager
    def in_the_place(self):
        """The first connection to an impostor in the place of a stopped controller, with its certificate."""
        with self.listen("10.90.0.1", 7638) as server:
            server.settimeout(IO_S)
            plain, _ = server.accept()
            plain.settimeout(IO_S)
            with self.place_context().wrap_socket(plain, server_side=True) as tls:
                yield tls

    def identity(self, name):
        return {"certificate": self.path(f"state-{name}", "identity", "host.pem"),
                "key": self.path(f"state-{name}", "identity", "host.key")}
