#!/usr/bin/env python3
"""A real agent's answers match docs/json.md: every documented field is there. usage: test_answers.py FOLIOT"""
import json
import os
import re
import subprocess
import sys
import time

FOLIOT = os.path.abspath(sys.argv[1])
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAME = f"answers{os.getpid()}"
PATIENCE_S = 120
wrong = []


def foliot(*arguments):
    return subprocess.run([FOLIOT, *arguments], capture_output=True, text=True, timeout=180, check=False,
                          stdin=subprocess.DEVNULL)


def lab(*arguments):
    return foliot("lab", "--name", NAME, *arguments)


def ask(what, *more):
    result = foliot(what, *more, "--lab", NAME, "--host", "host0", "--json")
    try:
        return json.loads(result.stdout)
    except ValueError:
        sys.exit(f"foliot {what} --json: no JSON: {result.stdout[:200]!r} {result.stderr}")


def documented():
    """{heading of the table or section: {field: its own fields or None}}"""
    tables, section, header = {}, "", ""
    with open(os.path.join(TOP, "docs", "json.md"), encoding="utf-8") as page:
        for line in page:
            if line.startswith("## "):
                section = line[3:].strip().strip("`")
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if not line.startswith("|") or cells[0].startswith("---"):
                continue
            if "`" not in cells[0]:
                header = cells[0]
                continue
            names = re.findall(r"`([a-z0-9_]+)`", cells[0])
            inner = re.match(r"`\{([^}]*)\}`", cells[1]) if len(cells) > 1 else None
            fields = [name.strip() for name in inner.group(1).split(",")] if inner else None
            tables.setdefault((section, header), {}).update({name: fields for name in names})
    return tables


TABLES = documented()


def check(place, value, section, header):
    fields = TABLES.get((section, header))
    assert fields, f"docs/json.md has no table {header!r} in {section!r}"
    for name, inner in fields.items():
        if name not in value:
            wrong.append(f"{place} has no {name}")
        elif inner and isinstance(value[name], dict):
            wrong.extend(f"{place}.{name} has no {part}" for part in inner if part not in value[name])


def first(place, values):
    if not values:
        wrong.append(f"{place} is empty")
    return values[0] if values else None


def until(true):
    """Waits for true(), and gives up without an error: the checks find what is missing."""
    end = time.monotonic() + PATIENCE_S
    while not true() and time.monotonic() < end:
        time.sleep(0.2)


def heard():
    edges = ask("mesh")["edges"]
    return edges and edges[0]["paths"] and all(path["out"] and path["in"] for edge in edges for path in edge["paths"]) and \
        ask("clock")["members"][0]["edges"]


def check_all():
    answers = {what: ask(what) for what in ("status", "clock", "mesh", "links", "findings")}
    answers["selftest"] = ask("selftest", "clock")
    for what, answer in answers.items():
        check(what, answer, "In every answer", "field")
        if (answer["version"], answer["kind"]) != (1, what):
            wrong.append(f"{what}: version {answer['version']}, kind {answer['kind']}")
    check("status", answers["status"], "status", "field")
    member = first("clock.members", answers["clock"]["members"])
    check("clock.members[]", member, "clock", "field of a member")
    check("clock.members[].edges[]", first("clock edges", member["edges"]), "clock", "field of an edge")
    edge = first("mesh.edges", answers["mesh"]["edges"])
    check("mesh.edges[]", edge, "mesh", "field of an edge")
    for one in answers["mesh"]["edges"]:  # a lab numbers its rails as its NICs
        if one["same_rail"] != (one["local_name"] == one["peer_name"]):
            wrong.append(f"same_rail {one['same_rail']} from {one['local_name']} to {one['peer_name']}, kind {one['kind']}")
    path = first("mesh paths", edge["paths"])
    check("mesh path", path, "mesh", "field of a path")
    for direction in ("out", "in"):
        check(f"mesh path.{direction}", path[direction] or {}, "mesh", "field of a direction")
    check("links.nics[]", first("links.nics", answers["links"]["nics"]), "links", "field of a NIC")
    check("selftest", answers["selftest"], "selftest", "field")
    lab("fault", "carrier", "host0/nic1")
    until(lambda: ask("findings")["findings"])
    found = ask("findings")["findings"]
    finding = found[0] if found else None
    lab("fault", "undo", "all")
    if finding is None:
        wrong.append(f"a cut cable gave no finding within {PATIENCE_S} s")
    else:
        check("findings[]", finding, "finding", "field")
    event = first("links.events", ask("links")["events"])
    for name in ("event", "nic", "name", "at_mono_ns", "at_fleet_ns", "at_utc_ns", "flaps_hour", "carrier_down_count", "text"):
        if event is not None and name not in event:
            wrong.append(f"links.events[] has no {name}")


def main():
    if os.geteuid() != 0:
        print("the lab needs root")
        return 77
    try:
        up = lab("up")
        if up.returncode != 0:
            print(up.stderr)
            return 1
        until(heard)  # nothing here needs a synchronised clock, but edges need packets
        check_all()
    finally:
        lab("down")
    print("\n".join(wrong) or "every documented field is there")
    return 1 if wrong else 0


sys.exit(main())
