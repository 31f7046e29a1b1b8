#!/usr/bin/env python3
"""chrony.py: the real chronyd compared with Foliot, in the same namespaces, over the same links, in the same class.

Its task is easier: all hosts read one kernel clock, so there is no oscillator to learn, and the true offset is zero. The
offset that a chronyd (-x: it corrects nothing) reports is its error. It gets the best conditions: host 0 is the only source.
(With all hosts as each other's servers it was ten times worse, because offsets of unsteered clocks circulate.) It polls 8 to
32 times a second in interleaved mode with kernel stamps, in the probes' class. The best of the settings counts.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

from world import SOAK, Lab, Missing, Rows, Traffic, need_root, quantile, seconds

HOSTS = 8
SETTINGS = {  # name: options of the source
    "8 a second": "minpoll -3 maxpoll -3 iburst xleave maxsamples 64",
    "16 a second, median of 8": "minpoll -4 maxpoll -4 iburst xleave maxsamples 16 filter 8",
    "32 a second": "minpoll -5 maxpoll -5 iburst xleave maxsamples 64",
}


def find(program):
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise Missing(f"{program} isn't installed")
    return path


class Chrony:
    """One chronyd on each host of a lab."""

    def __init__(self, lab, options):
        self.lab, self.options, self.daemons, self.asking = lab, options, [], []
        self.folder = tempfile.mkdtemp(prefix="foliot-chrony-")

    def config(self, host):
        own = f"{self.folder}/{host}"
        os.mkdir(own, 0o700)
        lines = ["user root", "allow all", "cmdport 0", f"bindcmdaddress {own}/socket", f"pidfile {own}/pid",
                 f"bindaddress 10.{host}.0.2", f"bindacqaddress 10.{host}.0.2", "dscp 48", "combinelimit 1000"]
        lines.append("local stratum 1" if host == 0 else f"server 10.0.0.2 {self.options}")
        with open(f"{own}/conf", "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")
        return f"{own}/conf"

    def __enter__(self):
        daemon = find("chronyd")
        for host in range(HOSTS):
            self.daemons.append(subprocess.Popen(["ip", "netns", "exec", self.lab.namespace(host), daemon, "-x", "-d", "-f",
                                                  self.config(host)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        time.sleep(1)
        for host in range(HOSTS):
            self.asking.append(subprocess.Popen([find("chronyc"), "-c", "-h", f"{self.folder}/{host}/socket"], text=True,
                                                stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return self

    def __exit__(self, *_):
        for process in self.asking + self.daemons:
            process.kill()
        for process in self.asking + self.daemons:
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def offsets_ns(self):
        """Each host's estimate of its clock's offset, now; host 0 is the source: 0."""
        for process in self.asking:
            process.stdin.write("tracking\n")
            process.stdin.flush()
        return [float(process.stdout.readline().split(",")[4]) * 1e9 for process in self.asking]

    def pair_errors(self, duration):
        errors, end = [], time.monotonic() + duration
        while time.monotonic() < end:
            offsets = self.offsets_ns()
            offsets[0] = 0.0
            errors += [abs(a - b) for i, a in enumerate(offsets) for b in offsets[:i]]
            time.sleep(0.1)
        return errors


def best(load):
    """(p50, p99, name) of the setting with the lowest p99, and all p99."""
    found = []
    with Lab("bench-chrony", agents=False) as lab:
        for name, options in SETTINGS.items():
            with Chrony(lab, options) as chrony:
                time.sleep(seconds(12))
                if load:
                    with Traffic(lab, "--pattern", "fill", "--load", "80"):
                        time.sleep(seconds(5))
                        errors = chrony.pair_errors(seconds(15))
                else:
                    errors = chrony.pair_errors(seconds(15))
            found.append((quantile(errors, 0.99), quantile(errors, 0.5), name))
            print(f"    chronyd, {name}: p50 {found[-1][1]:.0f}, p99 {found[-1][0]:.0f} ns", flush=True)
    return min(found)


def foliot_p99(load):
    with Lab("bench-chrony") as lab:
        lab.wait_synced()
        time.sleep(seconds(10))
        if load:
            with Traffic(lab, "--pattern", "fill", "--load", "80"):
                time.sleep(seconds(5))
                return lab.eval(seconds(15))["pair_error_ns"]["p99"]
        return lab.eval(seconds(15))["pair_error_ns"]["p99"]


def compare(rows, load):
    word = "loaded" if load else "idle"
    p99, _, name = best(load)
    command = "bench/lab/chrony.py"
    rows.add(f"clock.vs.chrony.{word}.chrony_p99_ns", p99, "ns", runs=len(SETTINGS), command=command,
             note=f"chronyd -x, best of its settings ({name})")
    own = foliot_p99(load)
    rows.add(f"clock.vs.chrony.{word}.foliot_p99_ns", own, "ns", command=command)
    rows.add(f"clock.vs.chrony.{word}", p99 / own if own else None, "times better", must=1, aim=5, better="higher", command=command)


def idle(rows):
    """chronyd -x and Foliot side by side, no other traffic"""
    compare(rows, False)


def loaded(rows):
    """the same with every link at 80 %"""
    compare(rows, True)


if __name__ == "__main__":
    need_root()
    ROWS = Rows("clock-chrony")
    ROWS.measure([("clock.vs.chrony.idle", "times better", 1, 5, "higher")], idle)
    if SOAK:
        ROWS.measure([("clock.vs.chrony.loaded", "times better", 1, 5, "higher")], loaded)
    sys.exit(ROWS.finish())
