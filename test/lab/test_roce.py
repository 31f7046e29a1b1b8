#!/usr/bin/env python3
"""`foliot selftest rdma` on soft-RoCE in a virtual machine, one boot. Skipped where the machine can't be had without fetching anything.
usage: test_roce.py FOLIOT FOLDER (of lab/roce-vm)"""
import os
import re
import subprocess
import sys

SKIPPED = 77
FOLIOT, FOLDER = (os.path.abspath(path) for path in sys.argv[1:3])
PORTS = {"h0r0", "h0r1", "h1r0", "h1r1"}


def main():
    done = subprocess.run([os.path.join(FOLDER, "selftest"), FOLIOT, "--no-fetch", "--", "--rounds", "5"],
                          capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr)
    if done.returncode == SKIPPED:
        return SKIPPED
    silent = set(re.findall(r"^(\w+)/1 .*RoCE +active .* silent$", done.stdout, re.MULTILINE))
    if done.returncode != 0 or silent != PORTS:
        print(f"expected {sorted(PORTS)} to be active and silent, found {sorted(silent)}, exit status {done.returncode}")
        return 1
    return 0


sys.exit(main())
