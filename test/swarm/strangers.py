#!/usr/bin/env python3
"""strangers.py FOLIOT-SIM [--seed N] [--worlds N] [--known SEED:WHAT…] [--show] [--keep FOLDER] [--rows FILE]: random worlds from
another draw, with another judge.

It shares neither the draw nor the judge with `foliot sim swarm`. Scenario files are written from the manual alone
(docs/scenarios.md), and the agents' findings are read as data (`foliot sim run --json --findings`). The judge knows only where
packets can go: a path is a NIC, a spine or none, and a NIC; a fault takes some of the paths.

wrong    an element is named, but some path that crosses it in that direction was taken by no fault of the last 25 s
list     `unknown, one of …` with all candidates, but no candidate is or contains an element with a fault, or can't be told from
         one
false    a path is called dead, lossy or silent, although no fault took any path between these two
missed   a fault alone in its time took all packets of its paths for 5 s, or 20 % for 15 s, and no finding reports it
clock    a bound of the scenario about the clock is broken (clock_bounds). The checkers of scenarios measure these. They have no
         line in common with the invariants of `foliot sim swarm`
number   (not judged) faults whose element was named within 5 s
"""
import argparse
import concurrent.futures
import json
import os
import random
import subprocess
import sys
import tempfile

AFTER_S = 25
DURATION_S = 50
LOST = {"path-dead", "path-lossy", "path-flapping", "peer-silent"}
TELLS = LOST | {"path-slow", "link-down", "link-flapping", "nic-gone"}
SILENT = {"agent-kill", "agent-stop", "reboot", "suspend"}


# ---- the draw ---------------------------------------------------------------------------------------------------------

def draw_fabric(dice):
    leaves = dice.choice([1, 2, 2, 3, 3, 4])
    nics = dice.choice([1, 1, 2, 2, 3, 4])
    fabric = {"hosts": dice.randint(max(2, leaves), max(3, leaves, 12 // nics)), "nics_per_host": nics, "leaves": leaves, "spines": dice.randint(1, 5),
              "wiring": dice.choice(["host", "host", "rail"]) if nics > 1 else "host", "ip": dice.choice([4, 4, 6, "both"]),
              "link_mbps": dice.choice([200, 200, 1000, 25000, 100000])}
    if dice.random() < 0.15:
        fabric["routers_answer"] = "no"
    if dice.random() < 0.15:
        fabric["probe_class"] = "no"
    if dice.random() < 0.2:
        fabric["trunk_mbps"] = fabric["link_mbps"] * 2
    return fabric


def draw_target(dice, fabric, kinds):
    """Draws a fault's target: its words in the scenario file, and the same for the judge."""
    kind = dice.choice(kinds)
    host, other = dice.sample(range(fabric["hosts"]), 2)
    nic, far = dice.randrange(fabric["nics_per_host"]), dice.randrange(fabric["nics_per_host"])
    leaf, spine = dice.randrange(fabric["leaves"]), dice.randrange(fabric["spines"])
    if kind == "nic":
        return f"nic {host}.{nic}", ("nic", host, nic)
    if kind == "trunk":
        return f"trunk {leaf}-{spine}", ("trunk", leaf, spine)
    if kind == "spine":
        return f"spine {spine}", ("spine", spine)
    if kind == "edge":
        return f"edge {host}.{nic}>{other}.{far} path {spine}", ("edge", (host, nic), (other, far), spine)
    if kind == "hosts":
        last = min(fabric["hosts"] - 1, host + dice.randrange(1 + fabric["hosts"] // 2))
        return f"hosts {host}-{last}", ("hosts", host, last)
    return f"host {host}", ("hosts", host, host)


KINDS = [("blackhole", ["nic", "trunk", "trunk", "spine", "edge"], 6), ("loss", ["nic", "trunk", "trunk", "spine", "edge"], 5),
         ("carrier", ["nic"], 2), ("flap", ["nic", "trunk"], 2), ("trunk", ["trunk"], 2), ("spine", ["spine"], 1), ("partition", ["hosts"], 2),
         ("brownout", ["nic", "trunk"], 2), ("delay", ["edge", "trunk"], 2), ("agent-kill", ["host"], 1), ("agent-stop", ["host"], 1),
         ("reboot", ["host"], 1), ("suspend", ["host"], 1)]


def draw_fault(dice, fabric, begin, until):
    kind, targets, _ = dice.choices(KINDS, [weight for _, _, weight in KINDS])[0]
    words, target = draw_target(dice, fabric, targets)
    fault = {"at": round(dice.uniform(begin, until), 2), "kind": kind, "target": words, "for": round(dice.choice([0.4, 2, 6, 12, 20]) * dice.uniform(0.8, 1.3), 2)}
    share = 1.0
    if kind in ("blackhole", "loss", "delay") and target[0] in ("nic", "trunk", "spine"):
        fault["direction"] = dice.choice(["up", "down", "both"])
    if kind == "loss":
        share = dice.choice([0.03, 0.1, 0.2, 0.3, 0.6])
        fault["loss"] = f"{share * 100:.0f}%"
        fault["for"] = round(fault["for"] + 10, 2)
    if kind == "blackhole" and dice.random() < 0.15:
        fault["class"] = "job"
    if kind == "flap":
        fault.update(count=dice.randint(1, 6), down="0.5s", up="1s")
        del fault["for"]
    if kind == "brownout":
        fault["rate_mbps"] = max(1, fabric["link_mbps"] * dice.choice([0.05, 0.2, 0.5]))
    if kind == "delay":
        fault["delay"] = dice.choice(["20us", "100us", "1ms"])
    if kind in ("agent-kill", "reboot"):
        fault["for"] = max(fault["for"], 3)
    length = fault.get("for", fault.get("count", 0) * 1.5)
    return fault, {"kind": kind, "target": target, "direction": fault.get("direction", "both"), "at": fault["at"], "end": fault["at"] + length, "share": share,
                   "whole": kind in ("blackhole", "carrier", "partition") and "class" not in fault}


def draw_clocks(dice, fabric):
    """Draws oscillators, and sometimes a clock that breaks. It has random numbers of its own, so that fabrics and faults stay the
    same."""
    clocks = {"offset": dice.choice(["1ms", "10s", "1h"]), "ppm": dice.choice([5, 50, 150]), "wander": dice.choice([1, 10, 40]),
              "guard": dice.choice(["yes", "yes", "no"]), "anchors": dice.choice([0, 0, 2])}
    host = dice.randrange(fabric["hosts"])
    fault = {"at": round(dice.uniform(16, 30), 2), **dice.choice([
        {"kind": "clock-step", "target": f"host {host}", "step": dice.choice(["30us", "2ms", "-3ms", "2s", "-1s"])},
        {"kind": "clock-freq", "target": f"host {host}", "ppm": dice.choice([-200, -30, 30, 200]), "for": 5},
        {"kind": "suspend", "target": f"host {host}", "told": dice.choice(["yes", "no"]), "for": dice.choice([0.3, 4, 9])},
        {"kind": "reboot", "target": f"host {host}", "for": 6}])}
    return clocks, fault if dice.random() < 0.35 else None


def clock_bounds(world):
    """Conditions that must hold in any world. A host whose clock never broke must not be SYNCED if its interval excludes the
    others'. A page must not be SYNCED if it is no longer written. After a clock broke the same holds, if something in the host
    shows it at once. At the end there is one timeline."""
    bounds = ["{what: clock.hard.outside, equals: 0}", "{what: clock.stale, equals: 0}", "{what: clock.backwards, equals: 0}", "{what: false.liar, equals: 0}",
              "{what: false.step, equals: 0}"]
    broken = [i for i, fault in enumerate(world["all"]) if fault["kind"] in ("suspend", "reboot")
              and fault.get("told") != "no" or fault["kind"] in ("clock-step", "clock-freq", "suspend") and world["guard"]]
    bounds += [f"{{what: clock.fault.late, fault: {i}, equals: 0}}" for i in broken]
    if all(fault.get("at", 0) + fault.get("for", fault.get("count", 0) * 1.5) < DURATION_S - 16 for fault in world["all"]):
        bounds.append("{what: clock.timelines, equals: 1}")
    return bounds


def draw_world(seed):
    dice = random.Random(f"strangers {seed}")
    fabric = draw_fabric(dice)
    clocks = {"stamps": dice.choice(["software", "software", "nic"]), "noise": dice.choice(["5ns", "20ns", "200ns"])}
    more, broken = draw_clocks(random.Random(f"strangers' clocks {seed}"), fabric)
    clocks = {**clocks, **more, "stamps": "mixed" if seed % 6 == 0 else clocks["stamps"]}
    if clocks["noise"] == "200ns" and clocks["stamps"] != "nic":
        clocks["noise"] = "100ns"  # agents use no software stamps that may be wrong by a microsecond
    early = dice.random() < 0.2  # while agents learn the ways
    faults = [draw_fault(dice, fabric, 3 if early else 15, 15 if early else 30) for _ in range(dice.choice([0, 1, 1, 1, 2, 2, 3]))]
    lines = [{"at": 0, "kind": "version", "target": f"hosts 0-{max(0, fabric['hosts'] // 2 - 1)}", "version": 2}] if dice.random() < 0.25 else []
    traffic = []
    if dice.random() < 0.3:
        a, b = dice.sample(range(fabric["hosts"]), 2)
        traffic = [dice.choice([{"kind": "flow", "from": f"nic {a}.0", "to": f"nic {b}.0", "load": "60%"}, {"kind": "all-to-all", "load": "30%"}])]
    text = [f"name: stranger-{seed}", "why: drawn by a stranger", "world: sim", f"seed: {seed}", f"duration: {DURATION_S}s", f"wire: {dice.choice(['yes', 'no'])}",
            f"fabric: {flow(fabric)}", f"clocks: {flow(clocks)}"]
    if traffic:
        text += ["traffic:"] + [f"  - {flow(t)}" for t in traffic]
    if broken and not any(fault["kind"] in SILENT | {"partition"} for fault, _ in faults):
        faults.append((broken, {"kind": broken["kind"], "target": ("hosts",) + 2 * (int(broken["target"].split()[1]),), "direction": "both", "at": broken["at"],
                                "end": broken["at"] + broken.get("for", 0), "share": 0.0, "whole": False}))
    faults.sort(key=lambda fault: fault[0]["at"])
    lines += [fault for fault, _ in faults]
    bounds = clock_bounds({"all": lines, "guard": clocks["guard"] == "yes"})
    if lines:
        text += ["faults:"] + [f"  - {flow(seconds(line))}" for line in lines]
    text += ["bounds:"] + [f"  - {bound}" for bound in bounds] + [""]
    return {"seed": seed, "fabric": fabric, "faults": [fault for _, fault in faults], "loaded": bool(traffic), "text": "\n".join(text)}


def seconds(line):
    return {key: f"{value}s" if key in ("at", "for") else value for key, value in line.items()}


def flow(words):
    return "{" + ", ".join(f"{key}: {value}" for key, value in words.items()) + "}"


# ---- where packets go -----------------------------------------------------------------------------------------------

class Fabric:
    """All ways of a fabric: ((host, nic), spine or None, (host, nic))."""

    def __init__(self, drawn):
        self.hosts, self.nics, self.leaves, self.spines = drawn["hosts"], drawn["nics_per_host"], drawn["leaves"], drawn["spines"]
        self.rail = drawn["wiring"] == "rail"
        self.ways = set()
        ends = [(host, nic) for host in range(self.hosts) for nic in range(self.nics)]
        for a in ends:
            for b in ends:
                if a[0] != b[0]:
                    spines = [None] if self.leaf(a) == self.leaf(b) else range(self.spines)
                    self.ways.update((a, spine, b) for spine in spines)

    def leaf(self, end):
        return end[1] % self.leaves if self.rail else end[0] * self.leaves // self.hosts

    def through(self, what, direction):
        """The ways that cross it. Direction `up` is from the host or the leaf."""
        up, down = direction in ("up", "both"), direction in ("down", "both")
        kind = what[0]
        if kind == "nic":
            end = what[1:]
            return {w for w in self.ways if (up and w[0] == end) or (down and w[2] == end)}
        if kind == "hosts":
            inside = range(what[1], what[2] + 1)
            return {w for w in self.ways if (up and w[0][0] in inside) or (down and w[2][0] in inside)}
        if kind == "trunk":
            return {w for w in self.ways if w[1] == what[2] and ((up and self.leaf(w[0]) == what[1]) or (down and self.leaf(w[2]) == what[1]))}
        if kind == "spine":  # up: what it sends away
            return {w for w in self.ways if w[1] == what[1]}
        if kind == "leaf":
            return {w for w in self.ways if what[1] in (self.leaf(w[0]), self.leaf(w[2]))}
        return {w for w in self.ways if (w[0], w[2]) == what[1:3] and w[1] in (None, what[3])}

    def taken(self, fault):
        if fault["kind"] in ("clock-step", "clock-freq"):
            return set()
        if fault["kind"] == "partition":
            inside = range(fault["target"][1], fault["target"][2] + 1)
            return {w for w in self.ways if (w[0][0] in inside) != (w[2][0] in inside)}
        return self.through(fault["target"], fault["direction"] if fault["kind"] in ("blackhole", "loss", "delay") else "both")

    def element(self, told):
        """The element that a finding names, in the words of this file; None: something else."""
        place, far = told["a"], told["b"]
        if told["kind"] == "nic" and place:
            return ("nic",) + divmod(place["number"], self.nics)
        if told["kind"] == "host" and place:
            return ("hosts", place["number"], place["number"])
        if told["kind"] in ("leaf", "spine") and place:
            return (told["kind"], place["number"])
        if told["kind"] == "trunk" and place and far:
            ends = {end["kind"]: end["number"] for end in (place, far)}
            if set(ends) == {"leaf", "spine"}:
                return ("trunk", ends["leaf"], ends["spine"])
        return None

    def crossed(self, told):
        """Sets of ways. For the name to be right, one set must have a fault. A finding without a direction has a set for each
        direction."""
        element = self.element(told)
        if element is None:
            return []
        turned = told["kind"] == "trunk" and told["a"]["kind"] == "spine"
        directions = {"out": ["down" if turned else "up"], "in": ["up" if turned else "down"]}.get(told["direction"], ["up", "down"])
        return [self.through(element, direction) for direction in directions]


# ---- the judge ------------------------------------------------------------------------------------------------------

def judge(world, findings):
    fabric, out = Fabric(world["fabric"]), []
    taken = [fabric.taken(fault) for fault in world["faults"]]

    def recent(at):
        return [i for i, fault in enumerate(world["faults"]) if fault["at"] <= at <= fault["end"] + AFTER_S]

    for told in findings:
        if told["kind"] not in TELLS or told["phase"] == "closed":
            continue
        at = told["at_s"]
        now = recent(at)
        lost = set().union(*(taken[i] for i in now))
        what = f"{at:.2f} s host {told['host']} {told['kind']}"
        if told["suspect"]["kind"] != "unknown":
            ways = fabric.crossed(told["suspect"])
            quiet = {host for i in now if world["faults"][i]["kind"] in SILENT for host in range(world["faults"][i]["target"][1], world["faults"][i]["target"][2] + 1)}
            element = fabric.element(told["suspect"])
            of_host = element and element[0] == "nic" and fabric.nics > 1 and element[1] in quiet and not any(
                way and way <= set().union(*(taken[i] for i in now if world["faults"][i]["kind"] not in SILENT)) for way in ways)
            if not any(way and way <= lost for way in ways) or of_host:
                out.append(("wrong", f"{what}: {words(told['suspect'])}"))
        elif told["one_of"] and told["one_of_total"] <= len(told["one_of"]) and told["kind"] in LOST:
            fits = [way for choice in told["one_of"] for way in fabric.crossed(choice)]
            if fits and not any(way and (way <= lost or any(taken[i] and taken[i] <= way for i in now)) for way in fits):
                out.append(("list", f"{what}: " + ", ".join(words(choice) for choice in told["one_of"])))
        if told["kind"] in LOST and not any(between(fabric, told, way) for way in lost):
            out.append(("false", f"{what}: {told['from']} -> {told['to']}, {told['from_host']} -> {told['to_host']}"))
    out += missed(world, fabric, taken, findings)
    return out


def between(fabric, told, way):
    """True if the way goes between the two ends of the finding, in either direction. An end that the finding leaves open matches
    any."""
    hosts = {told["from_host"], told["to_host"]} | {end // fabric.nics for end in (told["from"], told["to"]) if end is not None}
    return hosts - {None} <= {way[0][0], way[2][0]}


def missed(world, fabric, taken, findings):
    for i, fault in enumerate(world["faults"]):
        length = fault["end"] - fault["at"]
        alone = all(k == i or other["end"] + AFTER_S < fault["at"] or other["at"] > fault["end"] + 5 for k, other in enumerate(world["faults"]))
        clear = (fault["whole"] and length >= 5) or (fault["kind"] == "loss" and fault["share"] >= 0.2 and length >= 15)
        if not alone or not clear or not taken[i] or fault["at"] < 15 or fault["target"][0] == "edge":
            continue
        if not any(told["kind"] in TELLS and fault["at"] <= told["at_s"] <= fault["end"] + 3 and any(between(fabric, told, way) for way in taken[i])
                   for told in findings):
            yield "missed", f"{fault['kind']} of {fault['target']} at {fault['at']} s for {length:.1f} s"


def named_in_time(world, findings):
    """(faults that are alone, black holes of a NIC or trunk, those of them named within 5 s)."""
    fabric, count, named = Fabric(world["fabric"]), 0, 0
    for fault in world["faults"]:
        if len(world["faults"]) == 1 and fault["kind"] == "blackhole" and fault["whole"] and fault["target"][0] in ("nic", "trunk") and \
                fault["at"] >= 15 and fault["end"] - fault["at"] >= 5:
            ways = fabric.taken(fault)
            count += bool(ways)
            named += bool(ways) and any(told["suspect"]["kind"] != "unknown" and fault["at"] <= told["at_s"] <= fault["at"] + 5 and
                                        any(way and way <= ways for way in fabric.crossed(told["suspect"])) for told in findings)
    return count, named


def words(told):
    places = [f"{place['kind']}{place['number']}" for place in (told["a"], told["b"]) if place]
    return f"{told['kind']} {'-'.join(places)} {told['direction'] or ''}".strip()


# ---- a run ----------------------------------------------------------------------------------------------------------

def play(simulator, world):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write(world["text"])
        file.flush()
        done = subprocess.run([simulator, "run", "--json", "--findings", file.name], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"world {world['seed']} can't be played: {done.stderr}\n{world['text']}")
    played = json.loads(done.stdout)
    broken = [bound for bound in played["bounds"] if not bound["holds"]]
    return played["findings"], [("clock", f"{bound['what']} is {bound['value']}, not {bound['limit']}") for bound in broken]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("simulator")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--known", nargs="*", default=[], metavar="SEED:WHAT", help="worlds that are known to be broken, and by what: scenarios/broken has them")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--keep", default=None)
    parser.add_argument("--rows", default=None)
    options = parser.parse_args()
    first = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 40)
    simulator = os.path.abspath(options.simulator)
    worlds = [draw_world(seed) for seed in range(first, first + options.worlds)]
    broken, counts, faults, named = 0, {}, 0, 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for world, (findings, problems) in zip(worlds, pool.map(lambda world: play(simulator, world), worlds)):
            problems = judge(world, findings) + problems
            alone, right = named_in_time(world, findings)
            faults, named = faults + alone, named + right
            for kind in {kind for kind, _ in problems}:
                counts[kind] = counts.get(kind, 0) + 1
            unknown = {kind for kind, _ in problems if f"{world['seed']}:{kind}" not in options.known}
            broken += bool(unknown)
            if problems:
                print(f"world {world['seed']}{'' if unknown else ', known'}:")
                for kind, text in problems[:None if options.show else 4]:
                    print(f"  {kind}: {text}")
                print("  " + "\n  ".join(world["text"].split("bounds:")[0].splitlines()[5:]), flush=True)
            if problems and options.keep:
                with open(os.path.join(options.keep, f"stranger-{world['seed']}.yaml"), "w", encoding="utf-8") as file:
                    file.write(world["text"])
    print(f"{len(worlds)} worlds of strangers, seeds {first}..{first + len(worlds) - 1}: {broken} broken"
          f"{''.join(f', {kind} {count}' for kind, count in sorted(counts.items()))}; {named} of {faults} lone black holes of a NIC or trunk named within 5 s")
    if options.rows:
        write_rows(options.rows, first, len(worlds), counts)
        return 0
    return 1 if broken else 0


def write_rows(file, first, played, counts):
    """Rows of the soak: wrong names have a limit, and each kind of error has a row."""
    by = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))
    rows = [{"id": "swarm.strangers.worlds", "value": played, "unit": "worlds", "must": 200, "better": "higher"}] + [
        {"id": f"swarm.strangers.{kind}", "value": counts.get(kind, 0), "unit": "worlds", "must": 0, "aim": 0, "better": "lower"}
        for kind in ("wrong", "list", "false", "missed", "clock")]
    for row in rows:
        row.update({"runs": 1, "note": f"simulated; seeds {first} to {first + played - 1}; {by}"[:159],
                    "command": f"test/swarm/strangers.py build/sim/foliot-sim --worlds {played} --seed {first}"})
    with open(os.path.join(os.environ.get("FOLIOT_BENCH", "build/bench"), file), "w", encoding="utf-8") as out:
        json.dump(rows, out)


sys.exit(main())
