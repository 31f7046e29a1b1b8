#!/usr/bin/env python3
"""On what `foliot audit checks` names each check as shown is what tests and benches plant faults on. usage: test_shown.py FOLIOT

Programs that plant a fault where it is no file have it as FAILS: a list of checks, or for each fault those that name it. They judge by that, too."""
import ast
import json
import os
import subprocess
import sys

import faults

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLANTED = {"lab": ("test/lab/test_lab_audit.py", "test/controller/test_inspection.py", "bench/audit_tests.py", "bench/lab/audit_tally.py"),
           "kernel": ("test/audit/test_audit.py",), "soft-RoCE": ("lab/roce-vm/audit",)}


def fails(path):
    """What its FAILS names; and whether something goes by it."""
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    value, = [n.value for n in tree.body if isinstance(n, ast.Assign) and [getattr(t, "id", "") for t in n.targets] == ["FAILS"]]
    named = ast.literal_eval(value)
    used = sum(isinstance(n, ast.Name) and n.id == "FAILS" and isinstance(n.ctx, ast.Load) for n in ast.walk(tree))
    return {check for checks in named.values() for check in checks} if isinstance(named, dict) else set(named), used > 0


def main():
    listed = json.loads(subprocess.run([sys.argv[1], "audit", "checks", "--json"], capture_output=True, check=True).stdout)["checks"]
    shown = {c["check"]: set(c["shown_on"].split(", ")) for c in listed}
    planted = {"files": {"node.command"}, "facts": set()}  # test_planted.py: a program beside the machine's files
    for check, _, changes, _ in faults.FAULTS:
        planted["facts" if all(path.startswith("fact:") for path in changes) else "files"].add(check)
    wrong = []
    for what, programs in PLANTED.items():
        planted[what] = set()
        for path in programs:
            checks, used = fails(path)
            planted[what] |= checks
            wrong += [] if used else [f"{path}: nothing goes by its FAILS"]
    for what, checks in planted.items():
        claimed = {check for check, on in shown.items() if what in on}
        wrong += [f"{check} is called shown on {what}, and no fault is planted there" for check in sorted(claimed - checks)]
        wrong += [f"{check} has a fault planted on {what}, and is not called shown there" for check in sorted(checks - claimed)]
    wrong += [f"{check}: nobody knows what {on - set(planted)} is" for check, on in shown.items() if on - set(planted)]
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
