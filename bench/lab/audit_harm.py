#!/usr/bin/env python3
"""audit_harm.py: a transfer on all links, with audits of the fleet and without, in turns: the cost of an audit for a job.

Audits follow one another without a pause. In each, the hosts are read (machines as files), and every NIC exchanges packets
with every NIC.
"""
import json
import os
import subprocess
import sys
import tempfile
import threading

from world import FOLIOT, TOP, Lab, Missing, Rows, median, need_root, runs, spread

sys.path.insert(0, os.path.join(TOP, "test", "audit"))
import machine  # noqa: E402

NAME, HOSTS, BYTES, TURNS = "bench-audit-harm", 8, 40_000_000, 20


def transfer(lab):
    out = subprocess.run(lab.words("traffic", "--pattern", "leaf", "--job", BYTES, "--repeat", 2, "--json"), capture_output=True, text=True,
                         check=True, stdin=subprocess.DEVNULL, timeout=300).stdout
    return sum(json.loads(out)["seconds"][1:])  # the first one only opens TCP windows


class Audits:
    """Audits, one after the other, while the block lasts; how many ended, and the cells of the last."""

    def __init__(self, lab):
        with open(f"{lab.folder}/dashboard", encoding="utf-8") as address, open(f"{lab.folder}/token", encoding="utf-8") as token:
            self.where = ["--json", "--controller", address.read().strip().rstrip("/")]
            self.environment = {**os.environ, "FOLIOT_TOKEN": token.read().strip()}
        self.done, self.measured, self.why = 0, 0, ""

    def run(self, *words):
        return subprocess.run([FOLIOT, "audit", *words, *self.where], capture_output=True, text=True, check=False, env=self.environment,
                              stdin=subprocess.DEVNULL)

    def __enter__(self):
        self.going, self.thread = True, threading.Thread(target=self.go)
        self.thread.start()
        return self

    def go(self):
        while self.going:
            run = self.run("run", "--fleet", "--matrix")
            found = json.loads(run.stdout) if run.stdout[:1] == "{" else {"state": run.stderr}
            if found["state"] != "done" or found["not_read"]:
                self.why = str(found["state"] if found["state"] != "done" else found["not_read"])[:120]
                return
            self.done += 1

    def __exit__(self, *_):
        self.going = False
        self.thread.join()


def harm(rows):
    """throughput of transfers with audits and without, in turns"""
    with tempfile.TemporaryDirectory(prefix="foliot-bench-") as folder:
        for host in range(HOSTS):
            machine.build(os.path.join(folder, f"host{host}"), machine.files("roce", host + 1))
        with Lab(NAME, controller=0, machines=folder) as lab:
            lab.wait_synced()
            audits, ratios = Audits(lab), []
            for turn in range(runs(TURNS, 8)):
                took = {}
                for beside in (True, False) if turn % 2 == 0 else (False, True):
                    if beside:
                        with audits:
                            took[beside] = transfer(lab)
                    else:
                        took[beside] = transfer(lab)
                ratios.append(took[False] / took[True])
                if audits.why:
                    raise Missing(f"an audit did not end well: {audits.why}")
            measured = json.loads(audits.run("matrix").stdout)
            if audits.done < len(ratios):
                raise Missing(f"{audits.done} audits in {len(ratios)} turns")
            rows.add("audit.lab.harm", median(ratios), "ratio", 0.99, 0.998, "higher", len(ratios), spread(ratios), "bench/lab/audit_harm.py",
                     f"{audits.done} audits beside {len(ratios)} transfers; {measured['measured']} of {measured['cells']} cells of the last measured")


if __name__ == "__main__":
    need_root()
    ROWS = Rows("audit-harm")
    ROWS.measure([("audit.lab.harm", "ratio", 0.99, 0.998, "higher")], harm)
    sys.exit(ROWS.finish())
