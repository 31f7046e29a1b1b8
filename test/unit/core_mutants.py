#!/usr/bin/env python3
"""core_mutants.py BUILD [--sample N] [--seed N] [--jobs N] [FOLDER…]: would the unit tests of a folder of src/core notice?

Breaks one place at a time (a comparison, a sign, a constant of one, a condition turned round, a statement left out), links
the folder's unit tests with it and runs them, the quickest first. What they all pass is tried again with the sanitizers, for
the tests run there, too. A mutant that passes that as well is alive: a test is missing, or the place doesn't matter. Those
that were looked at and don't matter stand in core_mutants.txt with the reason; the others are printed. What the compiler makes
the same code of is no mutant. The sample is the same for the same seed and text, wherever else the file changes: try another
seed, for one that was mended tells nothing any more. With FOLIOT_BENCH (make soak) a row for each folder is written.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KNOWN = os.path.join(TOP, "test", "unit", "core_mutants.txt")
TESTS = {
    "alert": ["alert", "alert_rules", "alert_told", "alert_sees", "alert_series", "alert_words", "alert_one"],
    "clock": ["clock_parts", "clock_bound", "clock_steps", "clock_leaf", "clock_queues", "clock_timeline", "clock_edges", "sim_world", "clock_fleet"],
    "brain": ["fleet_brain", "brain_record"],
    "failover": ["watch", "watch_idle", "delivery", "lanes", "transport", "transport_both", "transport_life"],
    "fleet": ["fleet_rules", "blame", "admit", "locate", "inquiry"],
    "finding": ["finding", "element"],
    "link": ["link"],
    "mesh": ["mesh_peers", "mesh_path", "mesh_verdict", "mesh_reach", "mesh_digest", "measure", "node_silent", "node", "sim_world"],
    "node": ["node_parts", "node_findings", "node_clocks", "node_silent", "bad_packets", "sim_world", "record", "node"],
    "page": ["page"],
    "traffic": ["traffic", "traffic_steps", "scheduler_steps", "scheduler", "repath"],
}
SWAPS = [(r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "),
         (r" && ", " || "), (r" \|\| ", " && "), (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " / "), (r" \+= ", " -= "),
         (r" -= ", " += "), (r"\+\+", "--"), (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r" \+ 1\b", ""), (r" - 1\b", ""),
         (r"\bfmin\(", "fmax("), (r"\bfmax\(", "fmin(")]
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
# A whole statement that does something, on a line of its own: left out.
STATEMENT = re.compile(r"^(\s+)((?:[\w.>\[\]-]|->)+(?:\+\+|--|\([^;]*\)| [-+|&^]?= [^;]+);|continue;|break;|return;)$")


def blank(text):
    """Comments and strings out, so that nothing in them is taken for code; lines and columns stay."""
    def gone(match):
        return re.sub(r"[^\n]", " ", match[0])
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|^#.*?(?<!\\)$', gone, text, flags=re.S | re.M)


def mutants_of(path):
    """(line number, old line, new line) of a file; its functions only."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    lines, code, inside, asserts = text.split("\n"), blank(text).split("\n"), False, False
    for number, (line, bare) in enumerate(zip(lines, code)):
        inside = bare.startswith("{") or (inside and not bare.startswith("}"))
        if asserts or "ASSERT(" in bare:
            asserts = ";" not in bare
            continue
        if not inside or bare.lstrip().startswith(("static const", "case ")):
            continue
        for pattern, new in SWAPS:
            for at in re.finditer(pattern, bare):
                yield number, line, line[:at.start()] + new + line[at.end():]
        condition = re.search(r"\bif \((.*)\) \{$", bare)
        if condition:
            yield number, line, f"{line[:condition.start(1)]}!({line[condition.start(1):condition.end(1)]})) {{"
        statement = STATEMENT.match(bare)
        if statement:
            yield number, line, statement[1] + ";"


class Folder:
    """A folder of core, its unit tests, and how each is built."""

    def __init__(self, build, name):
        self.name, self.build = name, build
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
            commands = {os.path.realpath(os.path.join(c["directory"], c["file"])): c["command"] for c in json.load(file)}
        folder = os.path.join(TOP, "src", "core", name)
        self.files = {os.path.join(folder, f): commands[os.path.join(folder, f)] for f in sorted(os.listdir(folder)) if f.endswith(".c")}
        self.links, self.took = {}, {}
        for test in TESTS[name]:
            command = subprocess.check_output(["ninja", "-C", build, "-t", "commands", f"test/test_{test}"], text=True)
            self.links[test] = shlex.split(command.strip().split("\n")[-1])
        self.lock, self.originals = threading.Lock(), {}

    def compiled(self, command, source, made, how=()):
        words = [w for w in shlex.split(command) if w not in ("ccache", "-MD", "-g")]
        for option in ("-MQ", "-MF", "-o", "-c"):
            del words[words.index(option):words.index(option) + 2]
        return subprocess.run([*words, "-O1", "-g0", "-w", *how, "-c", source, "-o", made], cwd=self.build, capture_output=True, check=False).returncode == 0

    def passes(self, test, folder, objects, how=()):
        """Does the test pass with these objects in the place of its own?"""
        words, binary = list(self.links[test]), os.path.join(folder, "test")
        at = words.index("-o")
        words[at + 1:at + 2] = [binary, *objects, *how]
        subprocess.run(words, cwd=self.build, check=True, capture_output=True)
        begin = time.monotonic()
        try:
            status = subprocess.run([binary], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                                    timeout=max(20, 10 * self.took.get(test, 60))).returncode
        except subprocess.TimeoutExpired:
            return False
        if not objects:
            self.took[test] = time.monotonic() - begin
        return status == 0

    def prepare(self):
        with tempfile.TemporaryDirectory() as folder:
            for test in TESTS[self.name]:
                if not self.passes(test, folder, []):
                    sys.exit(f"{test} fails as it is")
        self.tests = sorted(TESTS[self.name], key=self.took.get)

    def lives(self, path, number, new):
        """True, False, or None: it doesn't compile, or is the same code."""
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        with tempfile.TemporaryDirectory(prefix="mutant") as folder:
            source, made = os.path.join(folder, os.path.basename(path)), os.path.join(folder, "made.o")
            digests = []
            for text in (lines, lines[:number] + [new] + lines[number + 1:]):
                with open(source, "w", encoding="utf-8") as file:
                    file.write("\n".join(text))
                if not self.compiled(self.files[path], source, made):
                    return None
                with open(made, "rb") as file:
                    digests.append(hashlib.sha256(file.read()).digest())
            if digests[0] == digests[1]:
                return None
            return (all(self.passes(test, folder, [made]) for test in self.tests) and
                    self.compiled(self.files[path], source, made, SANITIZED) and
                    all(self.passes(test, folder, [made], SANITIZED) for test in self.tests))


def key_of(path, old, new):
    return f"{os.path.relpath(path, os.path.join(TOP, 'src', 'core'))}: {old.strip()} => {new.strip()}"


def known():
    with open(KNOWN, encoding="utf-8") as file:
        return {line.split(" ## ")[0].strip() for line in file if line.strip() and not line.startswith("#")}


def tried(folder, sample, seed, jobs, accepted):
    """How many mutants count, and which of them live."""
    found = {}
    for path in folder.files:
        for number, old, new in mutants_of(path):
            key = key_of(path, old, new)
            if key not in accepted:
                found.setdefault(key, (path, number, new))
    chosen = sorted(found, key=lambda key: hashlib.sha256(f"{seed} {key}".encode()).digest())
    folder.prepare()
    count, alive = 0, []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting, rest = {}, iter(chosen)
        while count < sample:
            while len(waiting) < jobs and count + len(waiting) < sample:
                key = next(rest, None)
                if key is None:
                    break
                waiting[pool.submit(folder.lives, *found[key])] = key
            if not waiting:
                break
            done, _ = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                key, lives = waiting.pop(future), future.result()
                count += lives is not None
                if lives:
                    alive.append(key)
                    print(f"alive  {key}", flush=True)
    return count, alive


def main():
    options = argparse.ArgumentParser()
    options.add_argument("build")
    options.add_argument("folders", nargs="*", default=[])
    options.add_argument("--sample", type=int, default=60, help="mutants of each folder")
    options.add_argument("--seed", type=int, default=1, help="which of them")
    options.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = options.parse_intermixed_args()
    build, accepted, rows = os.path.abspath(arguments.build), known(), []
    for name in arguments.folders or sorted(TESTS):
        begin = time.monotonic()
        count, alive = tried(Folder(build, name), arguments.sample, arguments.seed, arguments.jobs, accepted)
        print(f"{name}: {count} mutants, {len(alive)} alive ({time.monotonic() - begin:.0f} s)", flush=True)
        rows.append({"id": f"mutants.{name}.caught", "value": (count - len(alive)) / max(1, count), "unit": f"of {count}", "better": "higher",
                     "aim": 0.96, "runs": count, "command": f"test/unit/core_mutants.py build --sample {arguments.sample} --seed {arguments.seed} {name}"})
    if os.environ.get("FOLIOT_BENCH"):
        with open(os.path.join(os.environ["FOLIOT_BENCH"], "mutants.json"), "w", encoding="utf-8") as file:
            json.dump(rows, file)
    return 0


sys.exit(main())
