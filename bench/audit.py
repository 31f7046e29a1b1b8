#!/usr/bin/env python3
"""audit.py BUILD [--trials N] [--runs N] [--only PART…]: rows audit.*: planted faults, spoiled sources, healthy fleets, wrong
rules, programs that hang.

The machines are those of test/audit/machines, made from public documentation. Fleets are simulated from one of their sheets."""
import argparse
import concurrent.futures
import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "test", "audit"))
import machine  # noqa: E402

PEERS, KINDS = 6, ("roce", "infiniband", "amd")
arguments = argparse.ArgumentParser()
arguments.add_argument("build")
arguments.add_argument("--trials", type=int, default=10500)
arguments.add_argument("--runs", type=int, default=50)
arguments.add_argument("--only", nargs="+", metavar="PART", help="some parts; rows of the others stay as they were")
arguments = arguments.parse_args()
build = os.path.abspath(arguments.build)
foliot, inspect = (os.path.join(build, "src", "app", name) for name in ("foliot", "foliot-inspect"))
rows = []


def row(name, value, unit, must, aim=None, better="lower", runs=1, note=""):
    rows.append({"id": f"audit.{name}", "value": value, "unit": unit, "must": must, "aim": aim, "better": better, "runs": runs,
                 "spread": None, "command": f"bench/audit.py {os.path.basename(build)}", "note": note})
    print(f"{name:24} {value} {unit}  must {must}  {note}", flush=True)


def program(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{words[0]}: {done.stderr}")
    if done.stderr:
        print(done.stderr[:2000], file=sys.stderr)
    return json.loads(done.stdout)


def side_by_side(works):
    """Does all of this work, {name: function}, one for each processor; what each returns, by name. Not for figures of time: these
    need an idle machine."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        begun = {name: pool.submit(work) for name, work in works.items()}
        return {name: work.result() for name, work in begun.items()}


def plant(folder, kind):
    """Peers' sheets, and the tree of host 1."""
    root, sheets = os.path.join(folder, kind, "root"), os.path.join(folder, kind, "sheets")
    os.makedirs(sheets)
    for number in range(PEERS, 0, -1):
        machine.build(root, machine.files(kind, number))
        sheet = program(inspect, "--root", root)
        with open(os.path.join(sheets, f"h{number}.json"), "w", encoding="utf-8") as file:
            json.dump(sheet, file)
    return root, sheets


def planted():
    found = program(sys.executable, os.path.join(TOP, "test", "audit", "test_planted.py"), foliot, inspect, "--rows")
    row("checks.working", found["working"], "", 136, 146, "higher", note="of the 156 that there are; machines as files")
    all_faults = found["faults"] + 2 * found["pairs"]
    row("planted.named", 100 * (found["named"] + found["pairs_named"]) / all_faults, "%", 98, 100, "higher", all_faults,
        f"{found['faults']} single faults, {found['pairs']} pairs; machines as files")
    row("planted.others_failed", found["others"] + found["pairs_others"], "", 0, runs=found["faults"] + found["pairs"], note="machines as files")


def gate(folder):
    root, sheets, times = os.path.join(folder, "roce", "root"), os.path.join(folder, "roce", "sheets"), []
    for _ in range(9):
        begin = time.monotonic()
        subprocess.run([foliot, "audit", "gate", "--root", root], stdout=subprocess.DEVNULL, check=True)
        times.append(time.monotonic() - begin)
    known = os.path.join(folder, "known.json")
    subprocess.run([foliot, "audit", "gate", "--root", root, "--age", "300", "--known", known], stdout=subprocess.DEVNULL, check=True)
    answers = []
    for _ in range(99):
        begin = time.monotonic()
        subprocess.run([foliot, "audit", "gate", "--root", root, "--age", "300", "--known", known], stdout=subprocess.DEVNULL, check=True)
        answers.append(1000 * (time.monotonic() - begin))
    row("gate_ms", sorted(answers)[49], "ms", 200, 20, runs=99, note=f"by facts that are known (--age), the process's start included; p99 {sorted(answers)[98]:.1f} ms")
    row("gate_read_s", sorted(times)[4], "s", 2, 0.5, runs=9, note="it reads the host: a tree of files, no agent")
    found = program(sys.executable, os.path.join(TOP, "test", "audit", "test_planted.py"), foliot, inspect, "--gates")
    row("gate.passed_unknown", found["passed"], "", 0, runs=found["tried"], note="each blocking rule without its source")


def spoil(folder, kind):
    root, sheets = os.path.join(folder, kind, "root"), os.path.join(folder, kind, "sheets")
    return program(os.path.join(build, "bench", "audit_trials"), root, sheets, str(arguments.trials // len(KINDS)), str(KINDS.index(kind) + 1))


MOODS = ("crash", "hang", "late", *(f"error {code}" for code in (1, 15, 999)))
LIBRARIES = {"roce": ("FAKE_NVML", "nvidia-ml", "nvml"), "amd": ("FAKE_AMDSMI", "amd-smi", "amdsmi")}


def read_by_library(folder, kind, name, mood=None):
    """Facts and results of host 1, read by a library of our own, beside its peers: {(fact, subject): what}, {(check, subject): result}."""
    root, sheets = os.path.join(folder, kind, "root"), os.path.join(folder, kind, "sheets")
    environment = dict(os.environ, **({LIBRARIES[kind][0]: mood} if mood else {}))
    late = mood is not None and mood.startswith(("hang", "late"))
    done = subprocess.run([inspect, "--root", root, "--gpu-library", name, "--deadline", "300" if late else "60000"], capture_output=True, check=True, env=environment)
    own = os.path.join(folder, kind, "own.json")
    with open(own, "wb") as file:
        file.write(done.stdout)
    shown = subprocess.run([foliot, "audit", "show", own, *(os.path.join(sheets, f"h{i}.json") for i in range(2, PEERS + 1)), "--json", "--all"],
                           capture_output=True, check=False)
    sheet = json.loads(done.stdout)
    return {(f["fact"], f["subject"]): (f.get("state"), f.get("value")) for f in sheet["facts"]}, \
        {(r["check"], r["subject"]): r for r in json.loads(shown.stdout)["results"] if r["host"] == sheet["host"]}


def libraries_of(folder, kind):
    """A library that crashes, hangs, is late or errs in one function, is of an older release, or is absent: what rests on a fact that
    changed must be unknown, a skip or gone, and nothing may newly fail or warn. Trials, results, and wrong ones."""
    _, stem, source = LIBRARIES[kind]
    path = os.path.join(build, "test", "audit", f"lib{stem}-")
    with open(os.path.join(TOP, "test", "audit", "fake", source + ".c"), encoding="utf-8") as file:
        functions = re.findall(r"^ANSWER\(\s*(\w+)", file.read(), re.M)
    well, results = read_by_library(folder, kind, path + "fake.so")
    checked = wrong = 0
    trials = [(path + "fake.so", f"{mood} {function}") for mood in MOODS for function in (*functions, "all")]
    trials += [(path + "less.so", None), ("/nonexistent.so", None), ("libc.so.6", None)]
    for name, mood in trials:
        facts, now = read_by_library(folder, kind, name, mood)
        changed = {key for key, what in well.items() if what != facts.get(key) and key[0].startswith("gpu.")}
        for key, result in results.items():
            if changed & {(fact["fact"], fact["subject"]) for fact in result["evidence"]} and result["status"] == "pass":
                checked += 1
                if key in now and now[key]["status"] not in ("unknown", "skip"):
                    wrong += 1
                    print(kind, name, mood, key, now[key]["status"], now[key]["found"], file=sys.stderr)
        for key, result in now.items():
            if result["status"] in ("fail", "warn") and results.get(key, {}).get("status") not in ("fail", "warn"):
                wrong += 1
                print(kind, name, mood, key, result["status"], result["found"], file=sys.stderr)
    return {"trials": len(trials), "results": checked, "wrong": wrong}


def spoiled(found, libraries):
    found = [*found, *libraries]
    trials, results, wrong = (sum(one[what] for one in found) for what in ("trials", "results", "wrong"))
    row("sources.wrong", wrong, "", 0, runs=trials, note=f"{results} results; files, answers of libraries, drivers and agent as files; "
        f"{sum(one['trials'] for one in libraries)} with libraries of our own by dlopen that crash, hang, are late, err, lack functions or are absent")


def fleets(folder):
    sheet = os.path.join(folder, "roce", "sheets", "h1.json")
    fleets_of = os.path.join(build, "bench", "audit_fleets")
    found = program(fleets_of, sheet, "1000", str(arguments.runs), "1", "healthy")
    worlds = "simulated; t(3) noise in counters, delays, rates and results, cut at 4 to 20 of its scales; counters of a day before, reboots and driver reloads meanwhile; two batches"
    row("sim.healthy.fails", found["fails"] / found["runs"], "", 0, 0, runs=found["runs"], note=worlds)
    row("sim.healthy.warns", found["warns"] / found["runs"], "", 2, 0, runs=found["runs"], note=worlds)
    found = program(fleets_of, sheet, "100", "1", "1", "breaker")
    row("breaker.condemned", found["condemned"], "", 0, runs=found["rules"], note="simulated")
    row("breaker.said", found["said"], "", 20, better="higher", runs=found["rules"], note="simulated")


def matrix():
    found = program(os.path.join(build, "bench", "audit_matrix"), "1024", "8")
    row("sim.matrix8192_s", found["seconds"], "s", 180, 90, note=f"simulated schedule: {found['rounds']} rounds of {found['round_ms']:.0f} ms; a packet "
        f"costs {found['packet_us']} us here; the rails take {found['rails_seconds']} s")
    row("sim.pairs", found["pairs"] if found["pairs_wrong"] == 0 else None, "", 33550336, better="higher", note="simulated; each once")
    row("matrix8192.judge_s", found["judge_s"] if found["named"] == found["planted"] and found["others"] == 0 else None, "s", 60, 15,
        note=f"rows taken in, polished, judged; {found['named']} of {found['planted']} planted named, {found['others']} others")
    row("matrix8192.memory_mib", found["memory_mib"], "MiB", 600)


def bisect():
    found = program(os.path.join(build, "bench", "audit_search"), "1024", "1000")
    for name, must, aim in (("host", 11, 11), ("three", 40, 25), ("pair", 25, 15)):
        row(f"sim.bisect.{name}", found[name] if found[f"{name}_missed"] == 0 else None, "rounds", must, aim, runs=found["seeds"],
            note=f"simulated; the most of all seeds, mean {found[f'{name}_mean']}")
    row("sim.bisect.suspect", found["suspect"] if found["suspect_missed"] == 0 else None, "rounds", None, runs=found["seeds"],
        note="simulated; one host that came last to meetings: the search begins with it")
    row("sim.bisect.wrong", found["wrong"], "", 0, runs=4 * found["seeds"], note="simulated")


def tally():
    """Drawn sets of faults: how many the audit names, and how many LLDP and a ping of all pairs find."""
    found = program(os.path.join(build, "bench", "audit_tally"), "200", "1")
    kinds = "; ".join(f"{kind} {named} and {usual} of {drawn}" for kind, (drawn, named, usual) in found["kinds"].items())
    row("sim.tally_more", found["more"], "%", 30, 50, "higher", found["sets"],
        f"simulated; the mean of the sets; {found['most']} if each fault were named. Named by the audit, and found by LLDP and ping6: {kinds}. "
        f"Told of NICs that were well: {found['others']}")


def outlier():
    """The share that is found, with the worst of three kinds of noise."""
    found = program(os.path.join(build, "bench", "audit_outlier"), "1000", "300")
    kinds, note = "t(3), t(4), normal", f"; {found['candidates']} candidates a run of 1000 hosts, {found['retests']} retests each"
    row("sim.outlier.false", 1e6 * found["wrong"] / found["tests"], "in 10^6", 2, 0, runs=found["tests"],
        note=f"simulated; {found['wrong']} of {found['tests']} tests of a host, half of them of fleets with nobody slow{note}")
    for name, index, must, aim, spread in (("found", 1, 95, 99, "1.5"), ("found_noisy", 2, 60, 85, "2.5")):
        row(f"sim.outlier.{name}", min(found["found"][index]), "%", must, aim, "higher", 900,
            f"simulated; a host 10 % slower at a spread of {spread} %, the worst of {kinds}: {found['found'][index]}")


def passive(folder):
    times, processor, large = [], [], os.path.join(folder, "large")
    machine.build(large, machine.files("roce", 1, large=True))
    for _ in range(9):
        before, begin = os.times(), time.monotonic()
        program(inspect, "--root", large)
        after = os.times()
        times.append(time.monotonic() - begin)
        processor.append(after.children_user + after.children_system - before.children_user - before.children_system)
    row("host.passive_s", sorted(times)[4], "s", 2, 0.5, runs=9, note="a tree of files with 16 GPUs and 17 NICs")
    row("host.passive_cpu_s", sorted(processor)[4], "s", 0.5, 0.1, runs=9, note="a tree of files with 16 GPUs and 17 NICs")
    hang(large)


def hang(large):
    """A library and a mount that never return, at the same time; and the cost for an agent on the same host."""
    library = os.path.join(build, "test", "audit", "libnvidia-ml-fake.so")
    os.environ["FAKE_NVML"] = "hang nvmlDeviceGetEccMode"
    with open(large + "/proc/mounts", "a", encoding="utf-8") as mounts:
        mounts.write("srv:/dead /dead nfs4 rw 0 0\n")
    with machine.dead_mount(large + "/dead") if os.geteuid() == 0 else contextlib.nullcontext():
        begin = time.monotonic()
        sheet = program(inspect, "--root", large, "--gpu-library", library)
        took = time.monotonic() - begin
        late = {f["fact"] for f in sheet["facts"] if f.get("state") in ("timeout", "stuck")}
        whole = any(f["fact"] == "port.state" for f in sheet["facts"]) and late == {"gpu.library", "gpu.runtime", "gpu.ue", "mount.answers"}
        row("inspect.hang_s", took if whole else None, "s", 6, 3, note="a library of our own that never returns and a mount that never answers, at once; the mount's "
            "deadline is 5 s")
        if os.geteuid() == 0:
            late_ticks(large, library)
    del os.environ["FAKE_NVML"]


def late_ticks(large, library):
    """Processor time of a host's agent while the machine is read a hundred times and hangs each time; and for as long without
    that."""
    def count():
        out = subprocess.run([foliot, "status", "--lab", "late", "--host", "host1", "--json"], capture_output=True, text=True, check=True).stdout
        return json.loads(out)["cost"]["late_ticks"]

    def lab(*words):
        subprocess.run([foliot, "lab", "--name", "late", *words], capture_output=True, check=True)

    lab("up")
    try:
        time.sleep(5)
        before, begin = count(), time.monotonic()
        for _ in range(100):
            subprocess.run(["chrt", "-i", "0", inspect, "--root", large, "--gpu-library", library, "--deadline", "200", "--mount-deadline", "300"],
                           stdout=subprocess.DEVNULL, check=True)
        beside, took = count() - before, time.monotonic() - begin
        time.sleep(took / 2)
        alone = count() - before - beside
    finally:
        lab("down")
    row("inspect.late_ticks", beside, "", 0, runs=100, note=f"one agent of a lab of eight, deadlines of 0.2 and 0.3 s; {alone} in the {took / 2:.0f} s after, without")


signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that labs and mounts end with their blocks
# Figures of what is named run side by side. Figures of time come after them, one by one.
COUNTED = {"spoiled": None, "tally": lambda _: tally(), "planted": lambda _: planted(), "outlier": lambda _: outlier(), "fleets": fleets, "bisect": lambda _: bisect()}
TIMED = {"passive": passive, "matrix": lambda _: matrix(), "gate": gate}
wanted = set(arguments.only or [*COUNTED, *TIMED])
if not wanted <= {*COUNTED, *TIMED}:
    sys.exit(f"parts: {' '.join([*COUNTED, *TIMED])}")
with tempfile.TemporaryDirectory(prefix="foliot-audit-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as place:
    kinds = KINDS if "spoiled" in wanted else KINDS[:1] if wanted & {"fleets", "gate"} else ()
    for one in kinds:
        plant(place, one)
    works = {}
    if "spoiled" in wanted:
        works |= {f"spoiled {one}": functools.partial(spoil, place, one) for one in kinds}
        works |= {f"library {one}": functools.partial(libraries_of, place, one) for one in LIBRARIES}
    works |= {part: functools.partial(measure, place) for part, measure in COUNTED.items() if part in wanted and measure}
    done = side_by_side(works)
    if "spoiled" in wanted:
        spoiled([done[f"spoiled {one}"] for one in kinds], [done[f"library {one}"] for one in LIBRARIES])
    for part, measure in TIMED.items():
        if part in wanted:
            measure(place)
target = os.environ.get("FOLIOT_BENCH", os.path.join(build, "bench"))
os.makedirs(target, exist_ok=True)
target = os.path.join(target, "audit.json")
if arguments.only and os.path.exists(target):
    with open(target, encoding="utf-8") as before:
        rows = [r for r in json.load(before) if r["id"] not in {n["id"] for n in rows}] + rows
with open(target, "w", encoding="utf-8") as output:
    json.dump(rows, output, indent=1)
