#!/usr/bin/env python3
"""swarm.py BUILD [--worlds N] [--first SEED] [--lab]: the swarm's soak: plays so many new worlds, one process per processor.

Rows: worlds played, worlds with a broken invariant of the clock, worlds with a broken one of findings, and the cost of one
world. Seeds of broken worlds go to $FOLIOT_BENCH/swarm-broken.txt, each with the broken invariants. `foliot sim swarm --seeds
N --shrink` makes a scenario of one. --lab: 300 worlds with real packets, one after another. --known FILE…: worlds that are
known to be broken.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import time

SLICE = 20


def play(binary, first):
    out = subprocess.run([binary, "swarm", "--json", "--seeds", f"{first}..{first + SLICE - 1}"], capture_output=True, text=True, check=False).stdout
    lines = [json.loads(line) for line in out.splitlines()]
    if len(lines) != SLICE + 1:
        sys.exit(f"foliot sim swarm ended early in the worlds {first} to {first + SLICE - 1}")
    return lines[:-1]


def lab(build, folder, first, count):
    """Worlds with real packets, one after another, half a minute each. The files of broken ones stay in the folder."""
    if os.geteuid() != 0:
        print("needs root for the lab")
        return 77
    words = [os.path.join(build, "src", "app", "foliot"), "sim", "swarm", "--lab", "--json", "--out", folder, "--seeds", f"{first}..{first + count - 1}"]
    lines = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False).stdout.splitlines()
    end = json.loads(lines[-1])
    if "worlds" not in end:
        sys.exit("foliot sim swarm --lab ended early")
    note = f"real packets, at most 8 hosts; seeds {first} to {first + count - 1}"
    rows = [{"id": "swarm.lab.worlds", "value": end["worlds"], "unit": "worlds", "must": 300, "aim": 1000, "better": "higher"},
            {"id": "swarm.lab.broken", "value": end["broken"], "unit": "worlds", "must": 0, "aim": 0, "better": "lower"}]
    for row in rows:
        row.update({"runs": 1, "note": note, "command": f"bench/swarm.py build --lab --worlds {count} --first {first}"})
    with open(os.path.join(folder, "swarm-lab.json"), "w", encoding="utf-8") as file:
        json.dump(rows, file)
    print(f"{end['worlds']} worlds on real packets, {end['broken']} broken")
    return 0


def known(build, folder, files):
    """Worlds that the swarm broke and shrank, and that are not mended yet: how many are still broken."""
    names = []
    for file in files:
        status = subprocess.run([os.path.join(build, "sim", "foliot-sim"), "run", "--quiet", file], stdout=subprocess.DEVNULL, check=False).returncode
        name = os.path.basename(file)[:-5]
        print(f"{'broken' if status == 1 else 'HOLDS: move it to the other scenarios' if status == 0 else 'NOT PLAYED'}  {name}", flush=True)
        names += [name] if status else []
    row = {"id": "swarm.known_broken", "value": len(names), "unit": "worlds", "must": 0, "aim": 0, "better": "lower", "runs": 1,
           "note": f"simulated; scenarios/broken: {', '.join(names)}"[:159], "command": "bench/swarm.py build --known scenarios/broken/*.yaml"}
    with open(os.path.join(folder, "swarm-known.json"), "w", encoding="utf-8") as file:
        json.dump([row], file)
    return 0


def main():
    options = argparse.ArgumentParser()
    options.add_argument("build")
    options.add_argument("--worlds", type=int, default=None)
    options.add_argument("--lab", action="store_true")
    options.add_argument("--known", nargs="+", default=[])
    options.add_argument("--first", type=int, default=int(time.time()) * 1000)
    arguments = options.parse_args()
    binary = os.path.join(arguments.build, "sim", "foliot-sim")
    folder = os.environ.get("FOLIOT_BENCH", os.path.join(arguments.build, "bench"))
    if arguments.known:
        return known(arguments.build, folder, sorted(arguments.known))
    if arguments.lab:
        return lab(arguments.build, folder, arguments.first, arguments.worlds or 300)
    count = -(-(arguments.worlds or 20000) // SLICE) * SLICE
    names, clock, finding, seconds, done = {}, 0, 0, 0.0, 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool, \
            open(os.path.join(folder, "swarm-broken.txt"), "w", encoding="utf-8") as list_of_broken:
        for worlds in pool.map(lambda first: play(binary, first), range(arguments.first, arguments.first + count, SLICE)):
            for world in worlds:
                done += 1
                seconds += world["seconds"]
                broken = set(world["broken"])
                clock += bool(broken - {"false", "wrong", "missed"})
                finding += bool(broken & {"false", "wrong", "missed"})
                for name in broken:
                    names[name] = names.get(name, 0) + 1
                    print(world["seed"], name, world["broken"][name]["text"], sep="\t", file=list_of_broken, flush=True)
            print(f"{done} worlds, clock broken in {clock}, findings in {finding}", flush=True)
    by = ", ".join(f"{name} {n}" for name, n in sorted(names.items()))
    note = f"simulated; seeds {arguments.first} to {arguments.first + count - 1}; {by}"[:159]
    command = f"bench/swarm.py build --worlds {count} --first {arguments.first}"
    rows = [{"id": "swarm.worlds", "value": done, "unit": "worlds", "must": 20000, "aim": 200000, "better": "higher"},
            {"id": "swarm.clock_broken", "value": clock, "unit": "worlds", "must": 0, "aim": 0, "better": "lower"},
            {"id": "swarm.findings_broken", "value": finding, "unit": "worlds", "better": "lower"},
            {"id": "swarm.world_s", "value": seconds / max(1, done), "unit": "s of a processor", "better": "lower"}]
    for row in rows:
        row.update({"runs": 1, "note": note, "command": command})
    with open(os.path.join(folder, "swarm.json"), "w", encoding="utf-8") as file:
        json.dump(rows, file)
    print(f"{done} worlds: clock broken in {clock}, findings in {finding} ({by}); {seconds / max(1, done):.2f} s each")
    return 0


sys.exit(main())
