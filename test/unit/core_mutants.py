#!/usr/bin/env python3
"""core_mutants.py BUILD [--sample N] [--seed N] [--jobs N] [--seconds S] [FOLDER…]: would the unit tests of a folder of src/core
notice a bug?

Breaks one place at a time: a comparison, a sign, a constant of one, a reversed condition, a statement left out. Links the
folder's unit tests with it and runs them, the quickest first. If all pass, the quick ones run again with the sanitizers. The
audit's last test is the one that plants a fault for each check.

A mutant that passes that as well is alive: a test is missing, or the place doesn't matter. core_mutants.txt has those that were
examined and don't matter, with the reason. The others are printed. If the compiler makes the same code of it, it is no mutant.
The sample is the same for the same seed and text, whatever else in the file changes. After a repair try another seed.

--seconds leaves out the tests that take longer: one of those may catch what is then printed as `open`, so there is no figure and
no row. Longer tests only run for mutants that the quicker ones let pass. With FOLIOT_BENCH (make soak) a row for each folder is
written.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KNOWN = os.path.join(TOP, "test", "unit", "core_mutants.txt")
# Tests of other folders that rest on this one. They run beside its own (test/unit/FOLDER, by test/meson.build).
OTHERS = {
    "audit": ["audit_cohort", "audit_fleet", "planted"],
    "brain": ["fleet_brain", "brain_record"],
    "clock": ["sim_world"],
    "failover": ["delivery", "transport", "transport_both", "transport_life"],
    "mesh": ["node_silent", "node", "sim_world"],
    "node": ["sim_world", "record"],
}
with open(os.path.join(TOP, "test", "meson.build"), encoding="utf-8") as build_file:
    OWN = re.findall(r"\['(\w+)', files\('unit/(\w+)/test_", build_file.read())
TESTS = {folder: [test for test, of in OWN if of == folder] + OTHERS.get(folder, []) for folder in sorted({of for _, of in OWN})}
# Tests of whole programs.
PROGRAMS = {"planted": ("test/audit/test_planted.py", ["src/app/foliot", "src/app/foliot-inspect"])}
SANITIZED_S = 10  # processor time: a test that takes longer isn't run with the sanitizers
SWAPS = [(r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "),
         (r" && ", " || "), (r" \|\| ", " && "), (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " / "), (r" \+= ", " -= "),
         (r" -= ", " += "), (r"\+\+", "--"), (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r" \+ 1\b", ""), (r" - 1\b", ""),
         (r"\bfmin\(", "fmax("), (r"\bfmax\(", "fmin(")]
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
# A whole statement with an effect, on a line of its own: left out.
STATEMENT = re.compile(r"^(\s+)((?:[\w.>\[\]-]|->)+(?:\+\+|--|\([^;]*\)| [-+|&^]?= [^;]+);|continue;|break;|return;)$")


def blank(text):
    """Without comments and strings, so that nothing in them counts as code. Lines and columns stay the same."""
    def gone(match):
        return re.sub(r"[^\n]", " ", match[0])
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|^#.*?(?<!\\)$', gone, text, flags=re.S | re.M)


def mutants_of(path):
    """(line number, old line, new line) of a file; only of its functions."""
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

    def __init__(self, build, name, seconds):
        self.name, self.build, self.seconds = name, build, seconds
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
            commands = {os.path.realpath(os.path.join(c["directory"], c["file"])): c["command"] for c in json.load(file)}
        folder = os.path.join(TOP, "src", "core", name)
        self.files = {os.path.join(folder, f): commands[os.path.join(folder, f)] for f in sorted(os.listdir(folder)) if f.endswith(".c")}
        self.links, self.took, self.walls, self.same = {}, {}, {}, {}
        for test in TESTS[name]:
            self.links[test] = [self.link_of(program) for program in PROGRAMS.get(test, ("", [f"test/test_{test}"]))[1]]
        self.lock = threading.Lock()

    def link_of(self, program):
        command = subprocess.check_output(["ninja", "-C", self.build, "-t", "commands", program], text=True)
        return shlex.split(command.strip().split("\n")[-1])

    def compiled(self, command, source, made, how=()):
        words = [w for w in shlex.split(command) if w not in ("ccache", "-MD", "-g")]
        for option in ("-MQ", "-MF", "-o", "-c"):
            del words[words.index(option):words.index(option) + 2]
        words += ["-O1", "-g0", "-w", f"-fmacro-prefix-map={os.path.dirname(source)}=", *how, "-c", source, "-o", made]
        return subprocess.run(words, cwd=self.build, capture_output=True, check=False).returncode == 0

    def passes(self, test, folder, objects, how=()):
        """True if the test passes with these objects in place of its own."""
        programs = []
        for link in self.links[test]:
            at = link.index("-o")
            programs.append(os.path.join(folder, os.path.basename(link[at + 1])))
            subprocess.run([*link[:at + 1], programs[-1], *objects, *how, *link[at + 2:]], cwd=self.build, check=True, capture_output=True)
        script = [sys.executable, os.path.join(TOP, PROGRAMS[test][0])] if test in PROGRAMS else []
        limit = ["prlimit", f"--cpu={5 + 5 * self.took[test] if objects else min(1 + self.seconds, 1e6):.0f}"]
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        try:
            status = subprocess.run([*limit, *script, *programs], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                                    timeout=60 + 20 * self.walls.get(test, 60)).returncode
        except subprocess.TimeoutExpired:
            return False
        if not objects:
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.took[test] = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
            self.walls[test] = time.monotonic() - begin
        return status == 0

    def prepare(self):
        with tempfile.TemporaryDirectory() as folder:
            for test in TESTS[self.name]:
                if not self.passes(test, folder, []) and self.took[test] <= self.seconds:
                    sys.exit(f"{test} fails as it is")
        self.tests = sorted((test for test in TESTS[self.name] if self.took[test] <= self.seconds), key=self.took.get)
        self.whole = len(self.tests) == len(TESTS[self.name])

    def digest(self, path, lines, source, made):
        """Of the object of this text; None: it doesn't compile."""
        with open(source, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        if not self.compiled(self.files[path], source, made):
            return None
        with open(made, "rb") as file:
            return hashlib.sha256(file.read()).digest()

    def lives(self, path, number, new):
        """True if it lives; None: it doesn't compile, or is the same code."""
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        with tempfile.TemporaryDirectory(prefix="mutant") as folder:
            source, made = os.path.join(folder, os.path.basename(path)), os.path.join(folder, "made.o")
            with self.lock:
                if path not in self.same:
                    self.same[path] = self.digest(path, lines, source, made)
            if self.digest(path, lines[:number] + [new] + lines[number + 1:], source, made) in (None, self.same[path]):
                return None
            return (all(self.passes(test, folder, [made]) for test in self.tests) and
                    self.compiled(self.files[path], source, made, SANITIZED) and
                    all(self.passes(test, folder, [made], SANITIZED) for test in self.tests if self.took[test] <= SANITIZED_S))


def key_of(path, old, new):
    return f"{os.path.relpath(path, os.path.join(TOP, 'src', 'core'))}: {old.strip()} => {new.strip()}"


def known():
    with open(KNOWN, encoding="utf-8") as file:
        return {line.split(" ## ")[0].strip() for line in file if line.strip() and not line.startswith("#")}


def tried(folder, arguments, accepted):
    """The number of mutants that count, and those that live."""
    found = {}
    for path in folder.files:
        for number, old, new in mutants_of(path):
            key = key_of(path, old, new)
            if key not in accepted:
                found.setdefault(key, (path, number, new))
    chosen = sorted(found, key=lambda key: hashlib.sha256(f"{arguments.seed} {key}".encode()).digest())
    folder.prepare()
    count, alive = 0, []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        waiting, rest = {}, iter(chosen)
        while count < arguments.sample:
            while len(waiting) < arguments.jobs and count + len(waiting) < arguments.sample:
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
                    print(f"{'alive' if folder.whole else 'open '}  {key}", flush=True)
    return count, alive


def main():
    options = argparse.ArgumentParser()
    options.add_argument("build")
    options.add_argument("folders", nargs="*", default=[])
    options.add_argument("--sample", type=int, default=60, help="mutants of each folder")
    options.add_argument("--seed", type=int, default=1, help="which of them")
    options.add_argument("--jobs", type=int, default=os.cpu_count())
    options.add_argument("--seconds", type=float, default=1e9, help="leave out the tests that take more processor time: no figure")
    arguments = options.parse_intermixed_args()
    build, accepted, rows = os.path.abspath(arguments.build), known(), []
    for name in arguments.folders or sorted(TESTS):
        begin = time.monotonic()
        folder = Folder(build, name, arguments.seconds)
        count, alive = tried(folder, arguments, accepted)
        print(f"{name}: {count} mutants, {len(alive)} {'alive' if folder.whole else 'open'} ({time.monotonic() - begin:.0f} s)", flush=True)
        if not folder.whole: # it isn't known which mutants live
            continue
        rows.append({"id": f"mutants.{name}.caught", "value": (count - len(alive)) / max(1, count), "unit": f"of {count}", "better": "higher",
                     "aim": 0.96, "runs": count, "command": f"test/unit/core_mutants.py build --sample {arguments.sample} --seed {arguments.seed} {name}"})
    if os.environ.get("FOLIOT_BENCH"):
        with open(os.path.join(os.environ["FOLIOT_BENCH"], "mutants.json"), "w", encoding="utf-8") as file:
            json.dump(rows, file)
    return 0


sys.exit(main())
