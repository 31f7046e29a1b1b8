"""balance.py: decides which uplink a packet takes in the lab's leaves, while a `with` lasts: dynamic load balancing
(balance.bpf.c) or a bad draw of ports (badstart.bpf.c)."""
import os
import subprocess
import tempfile

from world import Missing

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = 200
PREFERENCE = 40  # of the filter: it comes before the lab's own


def run(words, **more):
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, **more)
    if done.returncode != 0:
        raise Missing(f"{words[0]}: {(done.stderr.strip() or done.stdout.strip())[-300:]}")
    return done.stdout


def within(space, script):
    run(["ip", "netns", "exec", space, "sh", "-ec", script])


class Steer:
    """Needs the default wiring and IPv4: hosts of a leaf have neighbouring numbers. program: in this folder, compiled with
    `defines`."""

    def __init__(self, lab, program, defines, hosts=4, nics=2, leaves=2, spines=4):
        self.lab, self.program, self.defines = lab, program, defines
        self.hosts, self.nics, self.leaves, self.spines = hosts, nics, leaves, spines

    def ports(self, leaf):
        each = self.hosts // self.leaves
        return [f"h{host}n{nic}" for host in range(leaf * each, leaf * each + each) for nic in range(self.nics)]

    def __enter__(self):
        for leaf in range(self.leaves):
            each = self.hosts // self.leaves
            defines = dict(self.defines, FIRST_HOST=leaf * each, LAST_HOST=leaf * each + each - 1)
            include = run(["gcc", "-print-multiarch"]).strip()
            with tempfile.NamedTemporaryFile(suffix=".o") as built:
                run(["clang", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{include}", *[f"-D{k}={v}" for k, v in defines.items()],
                     "-c", os.path.join(HERE, self.program), "-o", built.name])
                script = [f"ip rule add fwmark {1 + s} lookup {TABLE + s}\n"
                          f"ip route add 10.0.0.0/8 via 172.20.{leaf}.{4 * s + 2} dev spine{s} table {TABLE + s}" for s in range(self.spines)]
                script += [f"tc filter add dev {port} ingress pref {PREFERENCE} bpf direct-action object-file {built.name} section tc"
                           for port in self.ports(leaf)]
                within(f"foliot-{self.lab.name}-leaf{leaf}", "\n".join(script))
        return self

    def __exit__(self, *_):
        for leaf in range(self.leaves):
            script = [f"tc filter del dev {port} ingress pref {PREFERENCE} || true" for port in self.ports(leaf)]
            script += [f"ip rule del fwmark {1 + s} || true\nip route flush table {TABLE + s} || true" for s in range(self.spines)]
            within(f"foliot-{self.lab.name}-leaf{leaf}", "\n".join(script))


class Balance(Steer):
    """Each flowlet takes the uplink with the shortest queue."""

    def __init__(self, lab, rate_mbps=50, buffer_bytes=200000, slow=-1):
        super().__init__(lab, "balance.bpf.c", {"RATE_MBPS": rate_mbps, "BUFFER_BYTES": buffer_bytes, "SLOW_UPLINK": slow})


class BadStart(Steer):
    """Until then (CLOCK_MONOTONIC) all connections between two hosts use one uplink, which is drawn for each pair."""

    def __init__(self, lab, draw, until_ns):
        super().__init__(lab, "badstart.bpf.c", {"DRAW": draw, "UNTIL_NS": f"{until_ns}ULL"})
