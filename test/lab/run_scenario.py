#!/usr/bin/env python3
"""run_scenario.py FOLIOT SCENARIO: a scenario with real packets, in a lab of its own; skipped without root."""
import os
import subprocess
import sys

if os.geteuid() != 0:
    print("the lab needs root")
    sys.exit(77)
name = f"scenario{os.getpid()}"
try:
    sys.exit(subprocess.call([os.path.abspath(sys.argv[1]), "lab", "--name", name, "run", sys.argv[2]]))
finally:
    subprocess.call([os.path.abspath(sys.argv[1]), "lab", "--name", name, "down"], stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL)
