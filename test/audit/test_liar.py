#!/usr/bin/env python3
"""One host of a fleet reports false facts, and no other host fails: by `liar`, on machines as files.
usage: test_liar.py FOLIOT-INSPECT LIAR [TRIALS SEED]"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import machine  # noqa: E402

HOSTS = 7
INSPECT, LIAR = (os.path.abspath(path) for path in sys.argv[1:3])
TRIALS, SEED = sys.argv[3:5] if len(sys.argv) > 3 else ("1000", "1")

wrong = 0
for kind in ("roce", "infiniband", "amd"):
    with tempfile.TemporaryDirectory(prefix="foliot-liar-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        os.makedirs(folder + "/sheets")
        for number in range(1, HOSTS + 1):
            machine.build(folder + "/root", machine.files(kind, number))
            with open(f"{folder}/sheets/h{number}.json", "wb") as sheet:
                subprocess.run([INSPECT, "--root", folder + "/root"], stdout=sheet, check=True)
        done = subprocess.run([LIAR, folder + "/sheets", TRIALS, SEED], capture_output=True, text=True, check=False)
        print(f"{kind}: {done.stdout}{done.stderr}", end="")
        wrong += done.returncode != 0
sys.exit(wrong > 0)
