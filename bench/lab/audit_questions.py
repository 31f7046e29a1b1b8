#!/usr/bin/env python3
"""audit_questions.py up|ask|answer|judge|down: the situation for the five questions about an audit (docs/five-questions.md).

A lab with a controller. Its packets are real; what its hosts read is a machine as files, made up from public documentation. An audit
of the healthy fleet is accepted. Then one host gets a fault that blocks jobs, another host gets another setting, and the agent of a
third stops. Then the fleet is audited again. A hidden seed decides which hosts and which fault. The true answers are in a separate
file, so that the person who answers need not be the person who set it up.

  audit_questions.py up [--name NAME] [--port PORT] [--seed N]   about two minutes; it stays until `down`
  audit_questions.py ask N                                       prints question N, 1 to 5; its time begins
  audit_questions.py answer N TEXT                               its time ends
  audit_questions.py judge [RIGHT...]                            answers beside the truth; with 1 or 0 for each question it writes the rows
  audit_questions.py down
"""
import json
import os
import random
import shutil
import sys
import time

from questions import FOLIOT, TOP, Situation, options_of, set_up
from world import Rows

sys.path.insert(0, os.path.join(TOP, "test", "audit"))
import faults  # pylint: disable=wrong-import-position
import machine  # pylint: disable=wrong-import-position

HOSTS = 8
QUESTIONS = ("Which host must not take a job?", "Why must it not?", "What is to be done there?",
             "What changed since the accepted audit, apart from that host?", "What was not looked at?")
LIMIT_S, AIM_S = 60, 20
SETTLED_S = 60


class Audited(Situation):
    """Such a fleet, and its audits."""

    def __init__(self, name, port):
        super().__init__(name, port)
        self.roots = self.truth_file + ".machines"

    def root(self, host):
        return os.path.join(self.roots, f"host{host}")

    def candidates(self):
        """Faults of files alone, of checks that block; and those of settings that don't."""
        severity = {check["check"]: check["severity"] for check in json.loads(self.run("audit", "checks", "--json"))["checks"]}
        plain = [(check, tree) for check, kind, tree, _ in faults.FAULTS
                 if kind == "roce" and check.startswith("cfg.") and all(path.startswith(("/sys/", "/proc/", "/etc/")) for path in tree)]
        return [f for f in plain if severity[f[0]] == "block"], [f for f in plain if severity[f[0]] == "ticket"]

    def plant(self, host, tree):
        for path, value in tree.items():
            faults.change(self.root(host), path, value)

    def audit(self):
        return json.loads(self.ask("audit", "run", "--fleet", "--json", check=False))

    def failed(self, run, host):
        return [r for r in run["results"] if r["host"] == f"host{host}" and r["status"] == "fail"]

    def up(self, seed):
        draw = random.Random(seed)
        bad, changed, silent = draw.sample(range(HOSTS), 3)
        blocking, settings = self.candidates()
        (check, tree), (setting, other) = draw.choice(blocking), draw.choice(settings)
        for host in range(HOSTS):
            machine.build(self.root(host), machine.files("roce", host + 1))
        self.lab("up", f"--controller={self.port}", "--machines", self.roots)
        self.settle()
        run = self.audit()
        self.ask("audit", "baseline", "accept", run["run"], "delivered")
        self.plant(bad, tree)
        self.plant(changed, other)
        self.lab("fault", "agent-kill", f"host{silent}")
        time.sleep(SETTLED_S)
        run = self.audit()
        worst = [r for r in self.failed(run, bad) if r["check"] == check]
        if not worst:
            raise RuntimeError(f"{check} on host{bad} doesn't fail: {self.failed(run, bad)}")
        self.truth = {"1": f"host{bad}", "2": f"{check}: found {worst[0]['found']}, expected {worst[0]['expected']}", "3": worst[0]["remedy"],
                      "4": f"host{changed}: {setting}, {', '.join(other)}", "5": f"host{silent}: its agent doesn't answer"}
        with open(self.truth_file, "w", encoding="utf-8") as out:
            json.dump({"seed": seed, "truth": self.truth, "asked": {}, "answers": {}}, out, indent=1)
        print(f"It stands. The reader:\n  export FOLIOT_API=http://127.0.0.1:{self.port} FOLIOT_TOKEN=$(cat {self.folder}/token)\n"
              f"  {FOLIOT} help     (or the dashboard, http://127.0.0.1:{self.port}/)\nThe newest audit is over: nothing needs to be started.")

    def note(self, change):
        with open(self.truth_file, encoding="utf-8") as file:
            state = json.load(file)
        change(state)
        with open(self.truth_file, "w", encoding="utf-8") as out:
            json.dump(state, out, indent=1)
        return state

    def question(self, number):
        self.note(lambda state: state["asked"].setdefault(number, time.time()))
        print(f"{number}. {QUESTIONS[int(number) - 1]}")

    def answer(self, number, text):
        def add(state):
            state["answers"][number] = [text, time.time() - state["asked"][number]]
        self.note(add)

    def judge(self, right):
        state = self.note(lambda _: None)
        for number, question in enumerate(QUESTIONS, 1):
            text, took = state["answers"].get(str(number), ["–", float("nan")])
            print(f"{number}. {question}\n   answer ({took:.0f} s): {text}\n   truth: {state['truth'][str(number)]}")
        if len(right) != len(QUESTIONS):
            return
        rows = Rows("audit-reader")
        command = f"bench/lab/audit_questions.py up --seed {state['seed']}, ask, answer, judge"
        rows.add("audit.reader.right", sum(word == "1" for word in right), "of 5", 5, None, "higher", 1, None, command, "one reader, who knew only the README")
        rows.add("audit.reader.s", max(took for _, took in state["answers"].values()), "s", LIMIT_S, AIM_S, "lower", len(QUESTIONS), None, command,
                 "the slowest of five answers")
        rows.finish()

    def down(self):
        self.lab("down", check=False)
        shutil.rmtree(self.roots, ignore_errors=True)
        if os.path.exists(self.truth_file):
            os.unlink(self.truth_file)


def main():
    options = options_of(__doc__, ["up", "ask", "answer", "judge", "down"], ("words", {"nargs": "*"}))
    fleet = Audited(options.name, options.port)
    if options.what == "up":
        set_up(fleet, options.seed)
    elif options.what == "ask":
        fleet.question(*options.words)
    elif options.what == "answer":
        fleet.answer(*options.words)
    elif options.what == "judge":
        fleet.judge(options.words)
    else:
        fleet.down()
    return 0


if __name__ == "__main__":
    sys.exit(main())
