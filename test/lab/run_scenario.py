#!/usr/bin/env python3
"""run_scenario.py FOLIOT SCENARIO: a scenario with real packets, in a lab of its own; skipped without root.

Its bounds are for hosts that run. If a play breaks a bound while the whole machine pauses for STILL_S or longer, the play only
judges the machine, and is repeated. If a play breaks a bound on a machine that runs, the test fails."""
import os
import re
import subprocess
import sys

STILL_S, PLAYS = 0.5, 5
FOLIOT, SCENARIO = (os.path.abspath(path) for path in sys.argv[1:3])
NAME = f"scenario{os.getpid()}"


def play():
    """Returns the exit status, and for how long the machine paused."""
    done = subprocess.run([FOLIOT, "lab", "--name", NAME, "run", SCENARIO], stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="", flush=True)
    still = re.search(r"this machine stood still for up to ([0-9.]+) s", done.stdout)
    return done.returncode, float(still[1]) if still else 0.0


def main():
    status = 1
    for _ in range(PLAYS):
        try:
            status, still_s = play()
        finally:
            subprocess.call([FOLIOT, "lab", "--name", NAME, "down"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if status == 0 or still_s < STILL_S:
            break
    return status


if os.geteuid() != 0:
    print("the lab needs root")
    sys.exit(77)
sys.exit(main())
