#!/usr/bin/env python3
"""cost.py: CPU and memory of one agent at its default rate: 2 NICs x 16 peers x 4 paths, and 8 NICs.

Every host has its own leaf, so every edge crosses the spines and has four paths. For comparison the agents are stopped in the
same lab, and bench/bare_exchange.c measures the same packets without an agent: the sockets, the stamps, and the leaves and
spines of this machine. The kernel charges their forwarding to the sender.
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

from world import ASKED, BUILD, Lab, Rows, median, need_root, seconds, spread

NAME = "bench-cost"
BARE = os.path.join(BUILD, "bench", "bare_exchange")
BARE_PORT = "7639"
SHAPES = {  # name: (hosts, NICs a host, must %, aim %, must MiB)
    "2nics": (9, 2, 2.0, 0.5, 24),
    "8nics": (9, 8, 6.0, 2.0, 64),
}


def lab_file(hosts, nics):
    """As many leaves as hosts."""
    path = tempfile.mktemp(prefix="foliot-cost-", suffix=".yaml")
    with open(path, "w", encoding="utf-8") as out:
        out.write(f"name: cost-{nics}-nics\nwhy: who runs this must not notice it\nworld: lab\n"
                  f"fabric: {{hosts: {hosts}, nics_per_host: {nics}, leaves: {hosts}, spines: 4}}\n")
    return path


def exact_cpu_seconds(pid):
    """Of all threads, by the scheduler's count of nanoseconds."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        total += int(open(f"/proc/{pid}/task/{thread}/schedstat").read().split()[0])
    return total * 1e-9


def rss_mib(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return None


def shares_of(pid):
    """The agent's CPU in percent of a core, four times."""
    shares = []
    for _ in range(4):
        begin, used = time.monotonic(), exact_cpu_seconds(pid)
        time.sleep(seconds(6))
        shares.append(100 * (exact_cpu_seconds(pid) - used) / (time.monotonic() - begin))
    return shares


def packets_sent(lab, host):
    """Over all its NICs."""
    lines = subprocess.check_output(["ip", "netns", "exec", lab.namespace(host), "cat", "/proc/net/dev"], text=True).splitlines()
    return sum(int(line.split(":")[1].split()[9]) for line in lines if line.strip().startswith("nic"))


def bare_shares(lab, hosts, nics, rate):
    """The CPU shares of the program that only sends as many packets, on every host; the shares of host 0."""
    running = []
    try:
        for host in range(hosts):
            own = [f"nic{n}=10.{host}.{n}.2" for n in range(nics)]
            peers = [f"10.{other}.{n}.2" for other in range(hosts) for n in range(nics) if other != host]
            running.append(subprocess.Popen(["ip", "netns", "exec", lab.namespace(host), BARE, str(rate / nics), BARE_PORT, *own, "--", *peers]))
        time.sleep(seconds(5))
        return shares_of(running[0].pid)
    finally:
        for process in running:
            process.kill()
            process.wait()


def cost_of(rows, shape):
    hosts, nics, must, aim, memory = SHAPES[shape]
    file = lab_file(hosts, nics)
    try:
        with Lab(NAME, file) as lab:
            lab.wait_synced(90)
            time.sleep(seconds(45))  # discovery is over
            pid = lab.agent_pid(0)
            begin, sent = time.monotonic(), packets_sent(lab, 0)
            shares = shares_of(pid)
            rate = (packets_sent(lab, 0) - sent) / (time.monotonic() - begin)
            mesh = lab.ask("mesh", 0)[0]
            edges, paths = len(mesh["edges"]), sum(len(e["paths"]) for e in mesh["edges"])
            size = rss_mib(pid)
            for host in range(hosts):
                os.kill(lab.agent_pid(host), signal.SIGSTOP)
            bare = bare_shares(lab, hosts, nics, rate)
            for host in range(hosts):
                os.kill(lab.agent_pid(host), signal.SIGCONT)
    finally:
        os.unlink(file)
    command = f"foliot lab up FILE ({hosts} hosts x {nics} NICs, each on a leaf of its own, 4 spines); /proc/PID/task/*/schedstat over 24 s"
    note = f"{nics} NICs, {edges} edges, {paths} paths, {rate:.0f} packets/s each way"
    suffix = "" if shape == "2nics" else ".8nics"
    rows.add(f"cost.agent.cpu_pct{suffix}", median(shares), "% of a core", must, aim, runs=len(shares), spread=spread(shares), command=command,
             note=note)
    rows.add(f"cost.agent.bare_pct{suffix}", median(bare), "% of a core", None, None, runs=len(bare), spread=spread(bare),
             command="build/bench/bare_exchange on every host of the same lab, the agents stopped", note=f"{rate:.0f} packets/s each way")
    rows.add(f"cost.agent.times_bare{suffix}", median(shares) / median(bare), "x", 1.5, 1.25, command=command)
    rows.add(f"cost.agent.rss_mib{suffix}", size, "MiB", memory, command=command, note=note)


def two_nics(rows):
    """2 NICs x 16 peers x 4 paths"""
    cost_of(rows, "2nics")


def eight_nics(rows):
    """8 NICs x 16 peers and more x 4 paths"""
    cost_of(rows, "8nics")


if __name__ == "__main__":
    need_root()
    ROWS = Rows("cost-lab")
    if not ASKED or "two_nics" in ASKED:
        ROWS.measure([("cost.agent.cpu_pct", "% of a core", 2, 0.5), ("cost.agent.rss_mib", "MiB", 24, None)], two_nics)
    if not ASKED or "eight_nics" in ASKED:
        ROWS.measure([("cost.agent.cpu_pct.8nics", "% of a core", 6, 2), ("cost.agent.rss_mib.8nics", "MiB", 64, None)], eight_nics)
    sys.exit(ROWS.finish())
