#!/usr/bin/env python3
"""`foliot selftest rdma` and a job over queue pairs, on soft-RoCE in a virtual machine, one boot. Skipped where the machine can't be
had without fetching anything. usage: test_roce.py FOLIOT PLUGIN FOLDER (of lab/roce-vm)"""
import os
import re
import subprocess
import sys

SKIPPED = 77
FOLIOT, PLUGIN, FOLDER = (os.path.abspath(path) for path in sys.argv[1:4])
PORTS = {"h0r0", "h0r1", "h1r0", "h1r1"}


def main():
    done = subprocess.run([os.path.join(FOLDER, "check"), FOLIOT, PLUGIN, "10", "--no-fetch", "--timeout", "500"], capture_output=True, text=True, check=False,
                          env=dict(os.environ, ROCE_ROUNDS="5"))
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
    return 0


sys.exit(main())
