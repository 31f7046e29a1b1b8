#!/usr/bin/env python3
"""`foliot selftest rdma`, a job over queue pairs, and a scenario of the lab, on soft-RoCE in a virtual machine, one boot. Skipped where
the machine can't be had without fetching anything. usage: test_roce.py FOLIOT PLUGIN FOLDER (of lab/roce-vm) SCENARIO"""
import os
import re
import subprocess
import sys

SKIPPED = 77
FOLIOT, PLUGIN, FOLDER, SCENARIO = (os.path.abspath(path) for path in sys.argv[1:5])
PORTS = {"h0r0", "h0r1", "h1r0", "h1r1"}


def main():
    done = subprocess.run([os.path.join(FOLDER, "check"), FOLIOT, PLUGIN, "10", "--no-fetch", "--timeout", "500"], capture_output=True, text=True, check=False,
                          env=dict(os.environ, ROCE_ROUNDS="5", ROCE_SCENARIO=SCENARIO))
    print(done.stdout + done.stderr)
    if done.returncode == SKIPPED:
        return SKIPPED
    silent = set(re.findall(r"^(\w+)/1 .*RoCE +active .* silent$", done.stdout, re.MULTILINE))
    if done.returncode != 0 or silent != PORTS:
        print(f"expected {sorted(PORTS)} to be active and silent, found {sorted(silent)}, exit status {done.returncode}")
        return 1
    pairs, wrong = (re.search(rf"^{what} +(\d+)$", done.stdout, re.MULTILINE) for what in ("lanes over queue pairs", "wrong values"))
    if not pairs or int(pairs[1]) < 4 or int(wrong[1]) != 0:
        print("expected 4 lanes or more over queue pairs, and no wrong value")
        return 1
    job = re.search(r"^  holds   a job of 2 ranks \(hosts 0, 1\): .* (\d+) lanes over queue pairs, (\d+) given up, 0 wrong values$", done.stdout, re.MULTILINE)
    if not job or int(job[2]) == 0 or "host1/nic0: link is down" not in done.stderr:
        print("expected a job that goes on over queue pairs when lanes of a cut cable are given up, and an agent that names the cable")
        return 1
    return 0


sys.exit(main())
