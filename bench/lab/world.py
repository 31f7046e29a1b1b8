"""world.py: shared by the lab's benches: a lab that is always brought down again, loads on it, and rows.

The measured programs are those of the build ($FOLIOT_BUILD, set by `make bench`). Times that are compared with each other are
CLOCK_MONOTONIC_RAW, as in the lab's own records.
"""
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("FOLIOT_BUILD", os.path.join(TOP, "build"))
FOLDER = os.environ.get("FOLIOT_BENCH", os.path.join(BUILD, "bench"))
FOLIOT = os.path.join(BUILD, "src", "app", "foliot")
AGENT = os.path.join(BUILD, "src", "app", "foliot-agent")
QUICK = os.environ.get("FOLIOT_BENCH_QUICK")  # a shorter run, for people who change these scripts
SOAK = "soak" in sys.argv[1:]  # `make soak` has the time; `make bench` has an hour for all its programs
ASKED = [word for word in sys.argv[1:] if word != "soak"]


def raw_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def seconds(full):
    return full / 5 if QUICK else full


def runs(full, short=None):
    """How often a value is measured: `full` times in the soak, else `short` times."""
    if SOAK:
        return full
    count = short or full
    return max(2, count // 5) if QUICK else count


def median(values):
    return statistics.median(values) if values else None


def quantile(values, p):
    """The value that a share p doesn't exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-p * len(ordered) // 1) - 1))] if ordered else None


def spread(values):
    return max(values) - min(values) if len(values) > 1 else None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Missing(Exception):
    """A measurement lacks something that it needs: its row has the reason."""


class Lab:
    """One lab, up; `with` always takes it down. controller: a port of this machine for its API (0: any). machines: a folder of
    trees that its hosts read as their own. more: further arguments of `up`."""

    def __init__(self, name, file=None, agents=True, controller=None, machines=None, more=()):
        self.name = f"{name}-{os.getpid()}"  # two runs of a bench must not remove each other's lab
        self.file, self.agents, self.controller, self.machines, self.more = file, agents, controller, machines, more
        self.folder = f"/run/foliot-lab/{self.name}"
        self.running = []

    def __enter__(self):
        self.command("down", check=False)
        more = ["--agent", AGENT] if self.agents else ["--no-agents"]
        if self.controller is not None:
            more.append(f"--controller={self.controller or free_port()}")
        if self.machines is not None:
            more += ["--machines", self.machines]
        more += self.more
        if self.agents and not os.path.exists(AGENT):
            raise Missing("foliot-agent isn't built")
        self.command("up", *([self.file] if self.file else []), *more)
        self.up_raw_ns = raw_ns()
        return self

    def __exit__(self, *_):
        for process in self.running:
            if process.poll() is None:
                process.kill()
                process.wait()
        self.command("down", check=False)

    def words(self, *arguments):
        return [FOLIOT, "lab", "--name", self.name, *[str(a) for a in arguments]]

    def command(self, *arguments, check=True, timeout=300):
        result = subprocess.run(self.words(*arguments), capture_output=True, text=True, timeout=timeout,
                                stdin=subprocess.DEVNULL, check=False)
        if check and result.returncode != 0:
            raise RuntimeError(f"foliot lab {' '.join(str(a) for a in arguments)}: {result.stderr.strip() or result.stdout.strip()}")
        return result.stdout

    def start(self, *arguments, **more):
        """A lab command that runs in parallel."""
        process = subprocess.Popen(self.words(*arguments), text=True, stdin=subprocess.DEVNULL,
                                   stdout=more.get("stdout", subprocess.DEVNULL), stderr=more.get("stderr"))
        self.running.append(process)
        return process

    def namespace(self, host):
        return f"foliot-{self.name}-host{host}"

    # ---- clocks ----
    def eval(self, duration, *arguments):
        """`foliot lab eval --json`; exit status 1 (a bound was broken) is a result, too."""
        result = subprocess.run(self.words("eval", "--json", "--seconds", duration, *arguments), capture_output=True, text=True,
                                stdin=subprocess.DEVNULL, timeout=duration + 600, check=False)
        if not result.stdout.startswith("{"):
            raise RuntimeError(result.stderr.strip() or "foliot lab eval said nothing")
        return json.loads(result.stdout)

    def wait_synced(self, limit=60):
        result = self.eval(0.2, "--wait", limit, "--interval", 5)
        if result["all_synced_raw_ns"] is None:
            raise Missing(f"the hosts weren't all SYNCED within {limit} s")
        return result["all_synced_raw_ns"]

    # ---- answers of agents ----
    def ask(self, what, host=None):
        """An answer per host, by its number."""
        result = subprocess.run([FOLIOT, what, "--json", "--lab", self.name] + (["--host", f"host{host}"] if host is not None else []),
                                capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
        answers = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
        return {int(a["host"][4:]): a for a in answers}

    def agent_pid(self, host):
        return int(open(f"{self.folder}/host{host}/agent.pid").read())

    # ---- faults ----
    def fault(self, *arguments):
        self.command("fault", *arguments)

    def undo(self):
        self.command("fault", "undo", "all", check=False)

    def events(self, kind=None, event=None):
        """The lab's own record of when each fault took effect."""
        try:
            lines = open(f"{self.folder}/events").read().splitlines()
        except FileNotFoundError:
            return []
        found = [json.loads(line) for line in lines]
        return [e for e in found if kind in (None, e["kind"]) and event in (None, e["event"])]


class Traffic:
    """`foliot lab traffic` during a measurement."""

    def __init__(self, lab, *arguments):
        self.lab, self.arguments = lab, arguments
        self.report = None

    def __enter__(self):
        self.process = self.lab.start("traffic", "--seconds", "0", "--json", *self.arguments, stdout=subprocess.PIPE)
        time.sleep(2)
        if self.process.poll() is not None:
            raise RuntimeError(f"foliot lab traffic {' '.join(self.arguments)} ended at once")
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=20)
        if out.startswith("{"):
            self.report = json.loads(out)


class Watch(threading.Thread):
    """Lines of `foliot … --watch`, each with its raw time of arrival."""

    def __init__(self, lab, what, host, *arguments):
        super().__init__(daemon=True)
        self.lines = []
        self.process = subprocess.Popen([FOLIOT, what, "--watch", *arguments, "--lab", lab.name, "--host", f"host{host}"],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                        text=True, bufsize=1)
        lab.running.append(self.process)
        self.start()

    def run(self):
        for line in self.process.stdout:
            self.lines.append((raw_ns(), line.rstrip("\n")))

    def first(self, after_ns, matches, limit):
        """The first line after a moment for which matches(line) holds; None after `limit` seconds."""
        end = time.monotonic() + limit
        while True:
            for at, line in list(self.lines):
                if at >= after_ns and matches(line):
                    return at, line
            if time.monotonic() > end:
                return None
            time.sleep(0.005)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Rows:
    """The rows of one bench program: printed, and written to $FOLIOT_BENCH/<name>.json."""

    def __init__(self, name):
        self.name, self.rows = name + ("-soak" if SOAK else ""), []

    def add(self, id, value, unit, must=None, aim=None, better="lower", runs=1, spread=None, command="", note=None):
        row = {"id": id, "value": value, "unit": unit, "must": must, "aim": aim, "better": better, "runs": runs,
               "spread": spread, "command": command + (" soak" if SOAK and command.startswith("bench/") else "")}
        if note:
            row["note"] = note
        self.rows.append(row)
        print(f"  {id} = {value if not isinstance(value, float) else round(value, 4)} {unit}"
              f"  (must {must}, aim {aim}; runs {runs}, spread {spread})" + (f"  {note}" if note else ""), flush=True)

    def measure(self, ids, function):
        """Runs one measurement. If it fails, its rows have the reason, and the other measurements go on."""
        print(f"{self.name}: {function.__name__}: {(function.__doc__ or '').strip().splitlines()[0]}", flush=True)
        before = len(self.rows)
        try:
            function(self)
        except Exception as error:  # pylint: disable=broad-except  # a bench must go on
            print(f"  failed: {error}", file=sys.stderr, flush=True)
            done = {row["id"] for row in self.rows[before:]}
            for id, unit, must, aim, *better in ids:
                if id not in done:
                    self.add(id, None, unit, must, aim, better[0] if better else "lower", 0, note=f"not measured: {error}")

    def finish(self):
        os.makedirs(FOLDER, exist_ok=True)
        with open(os.path.join(FOLDER, f"{self.name}.json"), "w", encoding="utf-8") as out:
            json.dump(self.rows, out, indent=1)
            out.write("\n")
        return 0


def need_root():
    if os.geteuid() != 0:
        print("the lab needs root: skipped")
        sys.exit(77)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that `with` takes labs down
