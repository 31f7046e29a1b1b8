#!/usr/bin/env python3
"""A job of two ranks. Each NIC has one address, of IPv6, and so only that GID is routed. Over a fake libibverbs whose wire is
UDP.

usage: test_queue_pairs_ipv6.py FOLIOT PLUGIN.so LIBRARIES (folder). Needs root (skipped without).
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from interrupt import interrupt

FOLIOT, PLUGIN, LIBRARIES = (os.path.abspath(path) for path in sys.argv[1:4])
SPACES = [f"six{os.getpid()}-{host}" for host in (0, 1)]
UP, DOWN = r"lane (\d+)\.\d+: over a queue pair", r"lane (\d+)\.\d+ .*: down \(carrier"
HOURS, PATIENCE_S = 7200, 120


def ip(*words, check=True):
    subprocess.run(["ip", *words], check=check, capture_output=not check)


def build():
    for space in SPACES:
        ip("netns", "add", space)
        ip("-n", space, "link", "set", "lo", "up")
        subprocess.run(["ip", "netns", "exec", space, "sysctl", "-q", "net.ipv6.conf.all.keep_addr_on_down=1",
                        "net.ipv6.conf.default.keep_addr_on_down=1"], check=True)
    for nic in (0, 1):
        ip("link", "add", f"nic{nic}", "netns", SPACES[0], "type", "veth", "peer", "name", f"nic{nic}", "netns", SPACES[1])
        for host, space in enumerate(SPACES):
            ip("-n", space, "address", "add", f"fd00:88:{nic}::{host + 1}/64", "dev", f"nic{nic}", "nodad")
            ip("-n", space, "link", "set", f"nic{nic}", "mtu", "4500", "up")


def tear_down():
    for space in SPACES:
        ip("netns", "delete", space, check=False)


class Job:
    def __init__(self, folder):
        self.folder, self.ranks = folder, []
        for rank, space in enumerate(SPACES):
            words = [FOLIOT, "perf", "all_reduce", "--rank", str(rank), "--ranks", "2", "--meet", f"unix:{folder}/meet", "--plugin", PLUGIN,
                     "--transport", "roce", "--rdma", "direct", "--message", "64K", "--channels", "2", "-b", "1M", "-e", "1M", "-c", "1", "-T", "60",
                     "--duration", str(HOURS), "--wait", "100"] + (["-J", folder + "/json"] if rank == 0 else [])
            environment = {**os.environ, "NCCL_DEBUG": "TRACE", "NCCL_SOCKET_FAMILY": "AF_INET6", "FOLIOT_NIC": "nic0,nic1",
                           "FOLIOT_PERF_HOST": space, "FOLIOT_VERBS": os.path.join(LIBRARIES, "libfake-verbs-whole.so"),
                           "FOLIOT_FAKE_VERBS_WIRE": "auto6"}
            with open(f"{folder}/rank{rank}", "w", encoding="utf-8") as log:
                self.ranks.append(subprocess.Popen(["ip", "netns", "exec", space, *words], stdout=log, stderr=subprocess.STDOUT,
                                                   stdin=subprocess.DEVNULL, env=environment))

    def texts(self):
        return [open(f"{self.folder}/rank{rank}", encoding="utf-8").read() for rank in (0, 1)]

    def until(self, true, what):
        end = time.monotonic() + PATIENCE_S
        while not true():
            assert time.monotonic() < end and all(rank.poll() is None for rank in self.ranks), f"expected {what} in:\n" + "\n".join(self.texts())
            time.sleep(0.1)

    def each(self, pattern):
        return min(len(re.findall(pattern, text)) for text in self.texts())

    def end(self):
        for rank in self.ranks:
            interrupt(rank)
        texts = [(rank.wait(timeout=PATIENCE_S), text) for rank, text in zip(self.ranks, self.texts())]
        assert all(status == 0 for status, _ in texts), "\n".join(self.texts())
        result = json.load(open(self.folder + "/json", encoding="utf-8"))["results"][0]["out_of_place"]
        assert result["nwrong"] == 0, "\n".join(self.texts())
        return self.texts()


def a_job_over_ipv6(folder):
    """lanes write over queue pairs; a carrier goes and comes back, and its lanes return to queue pairs; no value is wrong"""
    job = Job(folder)
    job.until(lambda: job.each(UP) >= 4, "four lanes over queue pairs at both ends")
    ip("-n", SPACES[1], "link", "set", "nic1", "down")
    job.until(lambda: job.each(DOWN) >= 1, "a lane that fails")
    ups = job.each(UP)
    ip("-n", SPACES[1], "link", "set", "nic1", "up")
    job.until(lambda: job.each(UP) > ups, "a lane that comes home")
    texts = job.end()
    written = [int(share) for text in texts for share in re.findall(r"sent \((\d+) % of it written by NICs", text)]
    print("written by NICs:", written, "%")
    assert len(written) == 2 and min(written) >= 5, "\n".join(texts)
    assert not re.search(r"RoCE v1 only|reached by IPv|no GID with", "\n".join(texts)), "\n".join(texts)


if os.geteuid() != 0:
    print("namespaces need root: skipped")
    sys.exit(77)
tear_down()
build()
try:
    with tempfile.TemporaryDirectory() as place:
        a_job_over_ipv6(place)
    print("ok a_job_over_ipv6", flush=True)
finally:
    tear_down()
