#!/usr/bin/env python3
"""Each check of the catalogue, on machines as files: a planted fault fails it, the machine without it passes, and without its
source it is unknown. usage: test_planted.py FOLIOT FOLIOT-INSPECT [--rows | --gates]"""
import concurrent.futures
import glob
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import faults  # noqa: E402
import machine  # noqa: E402

FOLIOT, INSPECT = (os.path.abspath(path) for path in sys.argv[1:3])
PEERS = 12
DECLARED = """version: 1
checks:
  cfg.kern.net_buf: {declared: "33554432"}
  cfg.mem.shm: {declared: "264106578"}
  cfg.sw.services: {declared: "slurmd chronyd !firewalld"}
  be.topo.spare: {declared: "hops 2 us 25"}
"""
SITE = "#!/bin/sh\necho looked at it\nexit 0\n"
PATIENCE = ["--deadline", "60000", "--mount-deadline", "60000"]  # nothing hangs here, but a loaded machine is slow


class World:
    """Hosts of one kind. Faults are planted in host 1."""

    def __init__(self, folder, kind):
        self.kind, self.folder = kind, os.path.join(folder, kind)
        self.sheets, self.root = os.path.join(self.folder, "sheets"), os.path.join(self.folder, "root")
        self.checks = os.path.join(self.folder, "checks.d")
        self.tree = machine.files(kind, 1)
        self.changed = set()
        self.facts = dict(faults.FACTS.get(kind, {}))  # beside the sheet
        os.makedirs(self.sheets)
        os.makedirs(self.checks)
        self.site(SITE)
        with open(os.path.join(self.folder, "audit.yaml"), "w", encoding="utf-8") as file:
            file.write(DECLARED)
        for number in range(2, PEERS + 1):
            machine.build(self.root, machine.files(kind, number))
            self.inspect(number)
        machine.build(self.root, self.tree)

    def site(self, text):
        path = os.path.join(self.checks, "gpfs")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def inspect(self, number=1):
        done = subprocess.run([INSPECT, "--root", self.root, "--checks", self.checks, *PATIENCE], capture_output=True, timeout=300, check=True)
        sheet = json.loads(done.stdout)
        for place, value in self.facts.items():
            fact, _, subject = place.split(":", 1)[1].partition(" ")
            sheet["facts"].append({"fact": fact, "subject": subject, "source": "made up"} | ({"value": value} if value is not None else {"state": "unreadable"}))
        with open(os.path.join(self.sheets, f"h{number}.json"), "w", encoding="utf-8") as file:
            json.dump(sheet, file)

    def change(self, path, value):
        if path.startswith("fact:"):
            self.facts[path] = value
            return
        self.changed.add(path)
        faults.change(self.root, path, value)

    def judge(self, *options):
        """The results of host 1. With --all they include passes and checks that don't apply; that is 3.5 MB."""
        self.inspect()
        done = subprocess.run([FOLIOT, "audit", "show", self.sheets, "--json", *options, "--config", os.path.join(self.folder, "audit.yaml")],
                              capture_output=True, timeout=300, check=False)
        assert done.returncode in (0, 1, 3), done.stderr
        return [r for r in json.loads(done.stdout)["results"] if r["host"] == f"{self.kind}1"]

    def again(self):
        """Restores the tree: builds only the changed files again."""
        for path in self.changed:
            machine.remove(self.root, path)
        for path in self.changed:
            folder = os.path.dirname(path)
            while folder != "/" and os.path.isdir(self.root + folder) and not os.listdir(self.root + folder):
                os.rmdir(self.root + folder)
                folder = os.path.dirname(folder)
        for path, value in self.tree.items():
            if any(path == one_path or path.startswith(one_path + "/") for one_path in self.changed):
                machine.put(self.root, path, value)
        for path in (faults.LINKS, faults.TABLES):  # routes that are older than the links don't count
            if path in self.tree:
                os.utime(self.root + path)
        self.changed.clear()
        self.facts = dict(faults.FACTS.get(self.kind, {}))

    def lose(self, source):
        """Removes the file. With '!' it puts something else in its place."""
        if source.startswith("!"):
            path = source[1:]
            folder = os.path.isdir(self.root + path) and not os.path.islink(self.root + path)
            self.change(path, None)
            if folder:  # a link to itself can't be listed, but isn't absent
                os.symlink(os.path.basename(path), self.root + path)
            else:
                os.makedirs(self.root + path)
        else:
            self.change(source, None)


def statuses(results, check):
    return {r["status"] for r in results if r["check"] == check}


def outcome(results):
    return sorted((r["check"], r["subject"], r["status"]) for r in results)


def sources(results, check):
    """The sources that are shown for a failed check."""
    return {r["source"] for r in results if r["check"] == check and r["status"] in ("fail", "warn")}


# Checks whose fault is in another file than their source: a value that names a library, a ratio of two, the running kernel, an
# index.
ELSEWHERE = {"cfg.sw.plugin", "nccl.qp_gain", "node.uptime", "be.roce.gid_type"}


def leads_to(root, source, changes):
    """True if the source is a changed file, a folder of one, or a folder of links to one. Also true for a source that is no file
    of the tree."""
    planted = {real for path in changes if not path.startswith("fact:") for real in (root + path, os.path.realpath(root + path))}
    if not source.startswith("/") or all(path.startswith(root + "/answers") for path in planted):
        return True
    folder = source.partition("*")[0].rpartition("/")[0] if "*" in source else source
    found = [root + folder] + (glob.glob(root + folder + "/*") if os.path.isdir(root + folder) else [])
    return any(path == real or path.startswith(real + "/") or real.startswith(path + "/") for path in planted for real in map(os.path.realpath, found))


def bad(results):
    return {r["check"] for r in results if r["status"] in ("fail", "warn")}


def one(world, check, changes, source, well):
    """Plants one fault. Returns the errors of this check, as lines, and the other checks that failed. well: results without any
    fault."""
    wrong, others = [], set()
    for path, value in changes.items():
        world.change(path, value)
    planted = world.judge()
    if check not in bad(planted):
        wrong.append(f"{check} ({world.kind}): the planted fault is {statuses(planted, check)}")
    wrong += [f"{check} ({world.kind}): its source is {source}, and that was not changed" for source in sources(planted, check)
              if source is None or (check not in ELSEWHERE and not leads_to(world.root, source, changes))]
    others = {r["check"] for r in planted if r["status"] == "fail"} - {check} - faults.ALSO.get(check, set())
    world.again()
    if "pass" not in statuses(well, check):
        wrong.append(f"{check} ({world.kind}): without it {statuses(well, check)}")
    if source is not None:
        world.lose(source)
        lost = world.judge()
        if "unknown" not in statuses(lost, check) or check in bad(lost):
            wrong.append(f"{check} ({world.kind}): without its source {statuses(lost, check)}")
        world.again()
    return wrong, others


def gate_passes(world, source):
    """True if the gate lets this host take a job although the source of a blocking check is missing."""
    world.lose(source)
    done = subprocess.run([FOLIOT, "audit", "gate", "--root", world.root, "--format", "slurm"], capture_output=True, timeout=300, check=False)
    world.again()
    return done.returncode == 0


def gates():
    """Measures the gate's time on a machine as files. Counts how often it passes without the source of a blocking rule."""
    listed = json.loads(subprocess.run([FOLIOT, "audit", "checks", "--json"], capture_output=True, check=True).stdout)["checks"]
    blocking = {c["check"] for c in listed if c["severity"] == "block" and "rule" in str(c["compares"])}
    passed = tried = 0
    with tempfile.TemporaryDirectory(prefix="foliot-gates-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        for kind in ("roce", "infiniband"):
            world = World(folder, kind)
            for check, of, _, source in faults.FAULTS:
                # facts of a controller or a fleet's agents are no source for a host alone: there the check is skipped
                if of == kind and check in blocking and source is not None and not source.startswith("fact:"):
                    tried += 1
                    passed += gate_passes(world, source)
    print(json.dumps({"tried": tried, "passed": passed}))


def pairs(folder, count):
    """Plants two faults at once, of different parts and without a common file. Both must be named, and nothing else may fail."""
    world, named, others = World(folder, "roce"), 0, []
    chosen = [f for f in faults.FAULTS if f[1] == "roce"]
    rng = random.Random(7)
    for _ in range(count):
        while True:
            one_fault, other = rng.sample(chosen, 2)
            if one_fault[0].split(".")[:2] != other[0].split(".")[:2] and not set(one_fault[2]) & set(other[2]):
                break
        for path, value in {**one_fault[2], **other[2]}.items():
            world.change(path, value)
        results = world.judge()
        named += (one_fault[0] in bad(results)) + (other[0] in bad(results))
        expected = {one_fault[0], other[0]} | faults.ALSO.get(one_fault[0], set()) | faults.ALSO.get(other[0], set())
        if {one_fault[0], other[0]} - bad(results):
            print(f"pair {one_fault[0]} {other[0]}: {statuses(results, one_fault[0])} {statuses(results, other[0])}", file=sys.stderr)
        others += sorted({r["check"] for r in results if r["status"] == "fail"} - expected)
        world.again()
    return named, others


def site_programs(world):
    """The site's own programs, judged by their exit statuses."""
    wrong = []
    for text, expected in (("#!/bin/sh\necho broken; exit 2\n", "fail"), ("#!/bin/sh\necho so; exit 1\n", "warn"), (SITE, "pass"),
                           ("#!/bin/sh\nexit 3\n", "unknown"), ("#!/bin/sh\nkill -9 $$\n", "unknown"), ("no program", "unknown")):
        world.site(text)
        found = statuses(world.judge("--all"), "node.command")
        if found != {expected}:
            wrong.append(f"node.command: {text!r} is {found}, expected {expected}")
    world.site(SITE)
    return wrong


def play(folder, kind):
    world = World(folder, kind)
    well = world.judge("--all")
    wrong, others, working = [f"{check} ({kind}): fails or warns without any fault" for check in sorted(bad(well))], {}, {}
    for check, of, changes, source in faults.FAULTS:
        if of == kind:
            found, other = one(world, check, changes, source, well)
            wrong += found
            working[check] = working.get(check, True) and not found
            if other:
                others[check] = other
    if kind == "roce":
        found = site_programs(world)
        wrong += found
        working["node.command"] = not found
    if differ := sorted(set(outcome(world.judge("--all"))) ^ set(outcome(well))):
        wrong.append(f"{kind}: the machine is not again what it was before the first fault: {differ}")
    return wrong, others, working


def main():
    if "--gates" in sys.argv:
        gates()
        return 0
    kinds = sorted({fault[1] for fault in faults.FAULTS})
    wrong, others, working = [], {}, {}
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="foliot-planted-", dir=base) as folder, \
            concurrent.futures.ThreadPoolExecutor(len(kinds)) as pool:
        for w, o, k in pool.map(lambda kind: play(folder, kind), kinds):
            wrong += w
            others.update(o)
            for check, good in k.items():
                working[check] = working.get(check, True) and good
    listed = {c["check"] for c in json.loads(subprocess.run([FOLIOT, "audit", "checks", "--json"], capture_output=True, check=True).stdout)["checks"]}
    missing = listed - set(working)
    wrong += [f"{check}: no fault is planted for it" for check in sorted(missing)]
    wrong += [f"{check}: also fails {sorted(other)}" for check, other in others.items()]
    if "--rows" in sys.argv:
        with tempfile.TemporaryDirectory(prefix="foliot-pairs-", dir=base) as folder:
            named, also = pairs(folder, 30)
        print(also, file=sys.stderr)
        print(json.dumps({"checks": len(listed), "working": sum(working.values()), "faults": len(faults.FAULTS) + 1,
                          "named": len(faults.FAULTS) + 1 - sum("the planted fault is" in line for line in wrong),
                          "others": sum(len(o) for o in others.values()), "pairs": 30, "pairs_named": named, "pairs_others": len(also)}))
        return 0
    for line in wrong:
        print(line)
    print(f"{sum(working.values())} of {len(listed)} checks work on machines as files")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
