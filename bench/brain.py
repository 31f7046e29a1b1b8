#!/usr/bin/env python3
"""brain.py BUILD: rows brain.clocks and brain.parsers: counts what tools/tidy forbids.

brain.clocks   symbols of a clock, a file or another outside service that libraries of src/core use; static state in them and in
               the controller's library
brain.parsers  places in the decisions, the alerts, the controller and the dashboard that parse a rendered sentence"""
import importlib.machinery
import importlib.util
import json
import os
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("tidy", os.path.join(TOP, "tools", "tidy"))
tidy = importlib.util.module_from_spec(importlib.util.spec_from_loader("tidy", loader))
loader.exec_module(tidy)
build = os.path.abspath(sys.argv[1])


def row(name, value, note):
    print(f"{name:24} {value}   must 0  {note}", flush=True)
    return {"id": name, "value": value, "unit": "places", "must": 0, "aim": 0, "better": "lower", "runs": 1, "spread": None,
            "command": f"bench/brain.py {os.path.basename(build)}", "note": note}


tidy.check_symbols(build)
tidy.check_state(build)
clocks = len(tidy.offences)
found, sources = [], [path for path in tidy.tracked() if path.endswith((".c", ".h", ".ts", ".tsx"))]
for path in sources:
    text = open(path, encoding="utf-8", errors="replace").read()
    found += [f"{os.path.relpath(path, TOP)}:{number}" for number in tidy.parsers(path, text)]
for text in tidy.offences + found:
    print(text, file=sys.stderr)
rows = [row("brain.clocks", clocks, "symbols from outside and static state, by nm"),
        row("brain.parsers", len(found), "")]
target = os.environ.get("FOLIOT_BENCH", os.path.join(build, "bench"))
os.makedirs(target, exist_ok=True)
with open(os.path.join(target, "brain.json"), "w", encoding="utf-8") as output:
    json.dump(rows, output, indent=1)
