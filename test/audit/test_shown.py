#!/usr/bin/env python3
"""`foliot audit checks` names what each check was shown on: the tests and benches that plant its fault. This compares the two.
usage: test_shown.py FOLIOT

A program that plants a fault outside of files has a list FAILS of checks, or for each fault the checks that name it. It judges by
that list, too."""
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
    """The checks in the program's FAILS, and whether the program uses FAILS."""
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
