#!/usr/bin/env python3
"""swarm_mutants.py BUILD [--check] [--worlds N] [--jobs N] [NAME…]: does the swarm find a bug in the clock?

It plants one bug at a time in core/clock, core/node or core/page, builds the simulator with it, and plays drawn worlds. A
world must break an invariant of the clock that the intact program keeps in that world. Then the world is shrunk. A bug counts
as found if that takes at most --worlds worlds, at most two faults are left, and the intact program keeps the shrunk world,
too. --check plays no world: it prints the bugs that can't be planted, because the code has changed. With FOLIOT_BENCH (make
soak) the row swarm.mutants is written.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CORE = os.path.join(TOP, "src", "core")
SLICE = 10
NICS = 10  # most of a world: small worlds are played fastest
TRIES = 80
# name, file of src/core, the present text, the text that replaces it
MUTANTS = [
    ("bound-without-growth", "clock/bound.c", "double bound_growth_ns(const struct clock *c, double age_s)\n{\n",
     "double bound_growth_ns(const struct clock *c, double age_s)\n{\n    if (age_s >= 0) {\n        return 0;\n    }\n"),
    ("bound-from-one-direction", "clock/bound.c", "if (!isfinite(best[0]) || !isfinite(best[1])) {", "if (!isfinite(best[1])) {"),
    ("bound-halves-the-edge", "clock/bound.c", "e->w_ns = fmax(fabs(e->upper_ns), fabs(e->lower_ns));",
     "e->w_ns = fmin(fabs(e->upper_ns), fabs(e->lower_ns)) / 8;"),
    ("hard-bound-a-tenth", "clock/report.c", "t->h_ns = bound_aged_ns(c, t->line.r);", "t->h_ns = 0.002 * c->h_ns;"),
    ("bound-sign-of-delay", "clock/bound.c", "(d == 1 ? ahead : -ahead)", "(d == 1 ? -ahead : ahead)"),
    ("core-without-neighbours", "clock/bound.c", "4 * c->hosts_live >= 3 * c->hosts_chosen", "c->hosts_live >= 0"),
    ("stays-synced-alone", "clock/clock.c", "(c->core || now.ns - c->h_at.ns < NS_PER_S)", "(c->core || c->h_known)"),
    ("step-not-taken", "clock/disturbance.c", "    clock_jump(c, whole);\n    clock_forget_stamps(c);", "    clock_forget_stamps(c);"),
    ("step-the-wrong-way", "clock/disturbance.c", "    clock_jump(c, whole);\n    clock_forget_stamps(c);",
     "    clock_jump(c, -whole);\n    clock_forget_stamps(c);"),
    ("step-not-disrupted", "clock/disturbance.c",
     "    clock_disrupt(c, span_ns(DISRUPT_NS));\n    c->disrupted_by = stepped", "    c->disrupted_by = stepped"),
    ("step-limit-far", "clock/disturbance.c", "disturbance_step_limit(const struct clock *c)\n{\n    return ",
     "disturbance_step_limit(const struct clock *c)\n{\n    return 1e6 + "),
    ("merge-never", "clock/disturbance.c", "if (++c->merge_ticks < MERGE_TICKS) {", "if (++c->merge_ticks > 0) {"),
    ("line-jumps-to-the-map", "clock/line.c", "    if (!c->line.valid) {\n        line_restart(c, now);\n        return;\n    }\n    int64_t ns;",
     "    if (c->line.valid || !c->line.valid) {\n        line_restart(c, now);\n        return;\n    }\n    int64_t ns;"),
    ("line-slews-away", "clock/line.c", "fmin(most, fmax(-most, -ahead / (MEET_S * 1e9)))", "fmin(most, fmax(-most, ahead / (MEET_S * 1e9)))"),
    ("timeline-never-adopted", "clock/timeline.c", "    if (c->timeline == timeline) {\n        return;",
     "    if (c->timeline == timeline || c->settled) {\n        return;"),
    ("timeline-largest-founder", "clock/timeline.c", "(smaller(best->peer.founder, best->peer.timeline, c->founder, c->timeline) ||",
     "(smaller(c->founder, c->timeline, best->peer.founder, best->peer.timeline) ||"),
    ("guard-deaf", "node/node_clock.c", "        fault_clocks(n, now, CLOCK_FAULT_GUARD, true);\n        return;", "        return;"),
    ("suspend-not-told", "node/node_clock.c", "    case CLOCK_FACT_SUSPENDED:\n        node_jump_told(n);\n        fault_clocks(n, now, CLOCK_FAULT_SUSPEND, true);",
     "    case CLOCK_FACT_SUSPENDED:\n        node_jump_told(n);"),
    ("guard-says-fine-for-ever", "clock/report.c", "t->guarded = c->guard_seen && t->line.r.ns - c->guard_at.ns < NS_PER_S;", "t->guarded = false;"),
    ("mean-of-levels-doubled", "clock/consensus.c", "const double base = members > 0 ? level_sum / members : 0;",
     "const double base = members > 0 ? 2.5 * level_sum / members : 0;"),
    ("clip-nothing", "clock/consensus.c", "#define CLIP        2.5", "#define CLIP        1e12"),
    ("liar-limit-zero", "clock/liar.c", "static double lie_limit(const struct clock *c, const struct clock_edge *e)\n{\n",
     "static double lie_limit(const struct clock *c, const struct clock_edge *e)\n{\n    if (c->capacity >= 0) {\n        return 0;\n    }\n"),
    ("everybody-is-a-liar", "clock/liar.c", "odds > LIAR_ODDS && 2 * against >= asked", "odds > -1e9 && 2 * against >= 0 * asked"),
    ("steps-without-calm", "clock/disturbance.c",
     "return c->step_sudden && fabs(c->step_ns) > SCATTER * sqrt(c->shift_ms) &&\n           !disturbance_vouched(c);", "return true;"),
    ("leaf-bracket-left-out", "clock/host_leaf.c", "reading.hard_ns + bracket + bent_ns;", "reading.hard_ns * 0.01 + 0 * bracket + bent_ns;"),
    ("leaf-rate-left-out", "clock/host_leaf.c", "ret->line.y = y + rate + y * rate;", "ret->line.y = y;"),
    ("epoch-kept-after-a-step", "page/page.c", "if (shown_at(t, now) < maker->latest) {", "if (shown_at(t, now) < INT64_MIN) {"),
    ("epoch-kept-for-ever", "page/page.c", "        t->epoch = 0;\n    }\n}\n", "        t->epoch += 0;\n    }\n}\n"),
]


def text_to_change(mutant):
    """The file in which that bug is planted; None: the text that it replaces isn't there exactly once."""
    with open(os.path.join(CORE, mutant[1]), encoding="utf-8") as file:
        text = file.read()
    return text if text.count(mutant[2]) == 1 else None


class Simulator:
    """The commands that compile and link the simulator."""

    def __init__(self, build):
        self.build = build
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
            self.commands = {os.path.realpath(os.path.join(c["directory"], c["file"])): c["command"] for c in json.load(file)}
        commands = subprocess.check_output(["ninja", "-C", build, "-t", "commands", "sim/foliot-sim"], text=True)
        self.link = shlex.split(commands.strip().split("\n")[-1])
        self.intact = os.path.join(build, "sim", "foliot-sim")
        self.known, self.lock = {}, threading.Lock()

    def breaks_anyway(self, seed):
        """The invariants that are broken in that world without a planted bug."""
        with self.lock:
            if seed not in self.known:
                self.known[seed] = broken(self.intact, seed, seed).get(seed, set())
            return self.known[seed]

    def mutated(self, mutant, folder):
        """The simulator with that bug; None: it can't be planted any more."""
        _, name, old, new = mutant
        path = os.path.join(CORE, name)
        text = text_to_change(mutant)
        if text is None:
            return None
        source, made, binary = (os.path.join(folder, n) for n in (os.path.basename(name), "made.o", "foliot-sim"))
        with open(source, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new))
        words = [w for w in shlex.split(self.commands[path]) if w not in ("ccache", "-MD")]
        for option in ("-MQ", "-MF", "-o", "-c"):
            del words[words.index(option):words.index(option) + 2]
        words = [f"-I{os.path.dirname(path)}" if w == f"-I{folder}" else w for w in words]
        subprocess.run([*words, "-w", "-c", source, "-o", made], cwd=self.build, check=True)
        link = list(self.link)
        link[link.index("-o") + 1:link.index("-o") + 2] = [binary, made]
        subprocess.run(link, cwd=self.build, check=True, capture_output=True)
        return binary


def broken(binary, first, last):
    """{seed: names of the clock's invariants that are broken there}"""
    done = subprocess.run([binary, "swarm", "--json", "--only", "clock", "--nics", str(NICS), "--seeds", f"{first}..{last}"], capture_output=True, text=True,
                          check=False)
    worlds = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode < 0:  # it died: that counts as found
        return {w["seed"]: set(w["broken"]) for w in worlds} | {(worlds[-1]["seed"] + 1 if worlds else first): {"abort"}}
    return {w["seed"]: set(w["broken"]) for w in worlds if "seed" in w}  # status 2: no world is small enough


def shrunk(simulator, binary, seed, invariant, folder):
    """How many faults are left in the smallest world that breaks it with the bug; None: that world breaks it without the bug,
    too."""
    subprocess.run([binary, "swarm", "--only", invariant, "--shrink", "--tries", str(TRIES), "--out", folder, "--seeds", str(seed)], capture_output=True, check=False)
    path = os.path.join(folder, f"swarm-{invariant}-{seed}.yaml")
    if subprocess.run([simulator.intact, "run", "--quiet", path], capture_output=True, check=False).returncode != 0:
        return None
    with open(path, encoding="utf-8") as file:
        return len(re.findall(r"^  - \{kind: .* at: |^  - \{kind: .*target: ", file.read(), re.M))


def find(simulator, mutant, most):
    """(found, worlds played, invariant, faults left)"""
    with tempfile.TemporaryDirectory(prefix="swarm-mutant") as folder:
        binary = simulator.mutated(mutant, folder)
        if binary is None:
            return False, 0, "can't be planted: the code has changed", 0
        played, first = 0, 1
        while played < most:
            worlds = broken(binary, first, first + SLICE - 1)
            bad = {seed: names for seed, names in worlds.items() if names}
            before, played, first = played, played + len(worlds), first + SLICE
            for seed, names in sorted(bad.items()):
                new = names - simulator.breaks_anyway(seed)
                if not new:
                    continue
                name = sorted(new)[0]
                faults = 0 if name == "abort" else shrunk(simulator, binary, seed, name, folder)
                if faults is not None and faults <= 2:
                    return True, before + 1 + sorted(worlds).index(seed), name, faults
    return False, played, "nothing that the intact program keeps was broken, with two faults or fewer", 0


def main():
    options = argparse.ArgumentParser()
    options.add_argument("build")
    options.add_argument("names", nargs="*")
    options.add_argument("--check", action="store_true")
    options.add_argument("--worlds", type=int, default=500)
    options.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = options.parse_intermixed_args()
    chosen = [m for m in MUTANTS if not arguments.names or m[0] in arguments.names]
    if arguments.check:
        gone = [m for m in chosen if text_to_change(m) is None]
        for name, file, *_ in gone:
            print(f"{name}: src/core/{file} doesn't have what it changes, or more than once")
        return 1 if gone or not chosen else 0
    simulator = Simulator(os.path.abspath(arguments.build))
    caught, begin = 0, time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        waiting = {pool.submit(find, simulator, m, arguments.worlds): m for m in chosen}
        for future in concurrent.futures.as_completed(waiting):
            mutant, (found, worlds, name, faults) = waiting[future], future.result()
            caught += found
            print(f"{'found ' if found else 'MISSED'}  {mutant[0]:28} world {worlds:3}  {name}, {faults} faults left", flush=True)
    print(f"{caught} of {len(chosen)} planted bugs found in {time.monotonic() - begin:.0f} s")
    if os.environ.get("FOLIOT_BENCH") and not arguments.names:
        row = {"id": "swarm.mutants", "value": caught, "unit": f"of {len(chosen)}", "must": len(chosen), "better": "higher", "runs": len(chosen),
               "note": f"simulated; planted in core/clock and core/node, each found within {arguments.worlds} worlds, shrunk to two faults or fewer",
               "command": "bench/swarm_mutants.py build"}
        with open(os.path.join(os.environ["FOLIOT_BENCH"], "swarm-mutants.json"), "w", encoding="utf-8") as file:
            json.dump([row], file)
    return 0 if caught == len(chosen) else 1


sys.exit(main())
