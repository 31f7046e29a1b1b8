#!/usr/bin/env python3
"""Runs the conformance host with a plugin, and with plugins that have one planted bug each: it must find every bug.

usage: test_conformance.py HOST SHIM.so plants PLANTED.so | clean REFERENCE.so | plugin PLUGIN.so
"""
import os
import re
import subprocess
import sys

HOST, SHIM, WHAT, PLUGIN = sys.argv[1:5]
ENVIRONMENT = {**os.environ, "NCCL_SOCKET_IFNAME": "lo", "FOLIOT_NIC": "lo", "FOLIOT_PATIENCE": "8"}

PATIENT = ["--time", "6"]  # for cases that must not hang: the host gives a case up after more than a minute without a message

# plant: (case that must find it, pattern of the finding)
PLANTS = {
    "late-write": ("stream", "late write"),
    "lost-message": ("stream", "holds the bytes of|the plugin says|hung|ncclInvalidUsage"),
    "swapped-tags": ("groups", "holds the bytes of|the plugin says|ncclInvalidUsage"),
    "short-size": ("short", "the plugin says"),
    "double-completion": ("stream", "handed out|wrong|holds|plugin says|hung"),
    "leaked-fd": ("churn", "descriptors left"),
    "leaked-thread": ("churn", "threads left"),
    "leaked-memory": ("churn", "bytes left"),
    "torn-bytes": ("hint", "torn"),
    "blocking-accept": ("early", "must not wait|hung: .*accept"),
    "blocking-connect": ("self", "must not wait|hung: .*connect"),
    "early-done": ("stream", "after its send was done|wrong"),
    "zero-stuck": ("sizes", "hung|the plugin says|ncclInvalidUsage"),
    "deaf": ("killed", "hung"),
    "retry-sent": ("stream", "holds the bytes of|the plugin says|ncclInvalidUsage"),
    "no-cloexec": ("fork", "across exec"),
    "padded": ("short", "the plugin wrote byte"),
    "abort-hang": ("abort", "must not wait|hung: .*close"),
    "reordered": ("stream", "holds the bytes of|the plugin says|ncclInvalidUsage"),
    "bit-flip": ("stream", "is wrong"),
    "close-writes": ("abort", "late write"),
    "garbage-dies": ("strangers", "ncclInternalError"),
}


def host(*arguments, timeout=600, **environment):
    done = subprocess.run([HOST, "--plugin", PLUGIN, *arguments], capture_output=True, text=True, timeout=timeout,
                          env={**ENVIRONMENT, **environment}, check=False)
    return done.returncode, done.stdout + done.stderr


def plants():
    missed = 0
    for plant, (case, says) in PLANTS.items():
        # Some bugs need two messages that wait: on a busy machine that may take several tries. Some bugs break the protocol
        # first, one time in eight: then the peer is gone before a wrong byte is seen.
        for seconds in ("0.4", "0.4", "0.4", "2", "2", "5"):
            status, text = host("--time", seconds, "--churn", "60", case, REFERENCE_PLANT=plant, REFERENCE_GROUP="1")
            found = status == 1 and re.search(says, text)
            if found:
                break
        missed += not found
        print("found " if found else "MISSED", f"{plant}: {text.strip()}", flush=True)
    return missed


# No "hint" under short reads: within one call the kernel copies in no fixed order. So a line that is split between two reads may
# show its flag before its data. NCCL has the same limit on sockets.
def clean():
    bad = 0
    for name, arguments, environment in [
            ("as it is", [], {}),
            ("grouped", ["groups", "short", "many"], {"REFERENCE_GROUP": "1"}),
            ("helper threads", ["sizes", "stream", "large", "short", "many", "churn", "abort", "killed"],
             {"REFERENCE_NTHREADS": "2", "REFERENCE_NSOCKS_PERTHREAD": "2"}),
            ("short and interrupted reads", ["sizes", "stream", "early", "groups"],
             {"LD_PRELOAD": SHIM, "CONFORMANCE_SHIM": "short,again", "REFERENCE_GROUP": "1"}),
            ("v6", ["--version", "6", "sizes", "stream", "hint", "killed"], {})]:
        status, text = host(*PATIENT, *arguments, **environment)
        print(f"-- {name}\n{text}", end="", flush=True)
        bad += status != 0
    # a flipped bit and a broken connection are errors here: the reference has neither checksums nor failover
    for shim, says in (("flip=200", "wrong|ncclInvalidUsage|the plugin says"), ("reset=3000", "ncclRemoteError|is gone")):
        status, text = host("stream", LD_PRELOAD=SHIM, CONFORMANCE_SHIM=shim)
        print(f"-- {shim}\n{text}", end="", flush=True)
        bad += status != 1 or not re.search(says, text)
    return bad


def plugin():
    """A plugin with failover: none of these faults may be visible to the host."""
    bad = 0
    for name, arguments, environment in [
            ("as it is", ["--patience", "10"], {}),
            ("short and interrupted reads", ["sizes", "stream", "early", "groups"],
             {"LD_PRELOAD": SHIM, "CONFORMANCE_SHIM": "short,again"}),
            ("broken connections", ["stream", "large", "short", "many"],
             {"LD_PRELOAD": SHIM, "CONFORMANCE_SHIM": "reset=5000"}),
            ("flipped bits", ["stream", "large"], {"LD_PRELOAD": SHIM, "CONFORMANCE_SHIM": "flip=1000", "FOLIOT_CHECKSUM": "2"})]:
        status, text = host(*PATIENT, *arguments, **environment)
        print(f"-- {name}\n{text}", end="", flush=True)
        bad += status != 0
    return bad


sys.exit(1 if {"plants": plants, "clean": clean, "plugin": plugin}[WHAT]() else 0)
