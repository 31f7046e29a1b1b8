#!/usr/bin/env python3
"""storm.py [FAULTS [LABS]]: random faults during jobs in the lab, two and three at once, also stopped processes, while one
path is left.

Jobs follow each other all the time, so some faults come while a job begins or ends. Every byte of every round is checked. At
most one NIC of a host and three of the four spines' trunks have a fault at a time, so every error of a job is wrong. 100
faults in the bench, 10,000 in the soak. LABS: so many labs in parallel share the faults.
"""
import os
import random
import signal
import subprocess
import sys
import threading
import time

from job import FABRIC, PLUGIN
from world import FOLIOT, Lab, Rows, need_root

NAME = "bench-storm"
FAULTS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
LABS = int(sys.argv[2]) if len(sys.argv) > 2 else 1
GAP_S = 0.5
LAST_S = (0.3, 2.5)
HOSTS, SPINES, SPINES_ILL = 4, 4, 3
LATE_MAX = 100  # faults for which the lab may answer late
ROUNDS = 3  # of a job, each checked


class Jobs(threading.Thread):
    """Jobs, one after the other, until `over`; their number, and their errors."""

    def __init__(self, lab):
        super().__init__(daemon=True)
        self.lab, self.over, self.count, self.errors, self.process = lab, False, 0, [], None

    def run(self):
        operations = ("all_reduce", "alltoall", "all_gather", "sendrecv")
        while not self.over:
            words = [FOLIOT, "perf", operations[self.count % len(operations)], "--lab", self.lab.name, "--hosts", "0,1,2,3", "--ranks",
                     str(HOSTS), "--plugin", PLUGIN, "--message", "64K", "-b", "4M", "-e", "4M", "-n", "1", "-c", str(ROUNDS), "-T", "300",
                     "--wait", "200"]
            self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
            said = self.process.communicate()[1]
            self.count += 1
            if self.process.returncode != 0:
                self.errors.append((self.process.returncode, said.strip()[-300:]))
                print(f"    {time.strftime('%X')} job {self.count}: status {self.process.returncode}: {said.strip()[-300:]}", flush=True)

    def ranks(self):
        try:
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
                return [int(word) for word in file.read().split()]
        except (OSError, AttributeError):
            return []


class Storm:
    """The present faults and their ends; and the next place to fail."""

    def __init__(self, lab, jobs, chance):
        self.lab, self.jobs, self.chance = lab, jobs, chance
        self.ill, self.kinds, self.late = {}, {}, 0

    def free(self, places):
        now = time.monotonic()
        self.ill = {place: until for place, until in self.ill.items() if until > now}
        return [place for place in places if place not in self.ill]

    def next(self):
        """True: one more fault, while ranks run."""
        if not self.jobs.ranks():
            return False
        last = self.chance.uniform(*LAST_S)
        kind = self.chance.choice(("nic", "nic", "trunk", "trunk", "pause"))
        places = self.free([(kind, i) for i in range(SPINES if kind == "trunk" else HOSTS)])
        if not places or (kind == "trunk" and len(places) <= SPINES - SPINES_ILL):
            return False
        place = self.chance.choice(places)
        self.ill[place] = time.monotonic() + last + 0.5  # the fault's end takes a moment
        verb = self.pause(last) if kind == "pause" else self.break_link(*place, last)
        if verb is not None:
            self.kinds[verb] = self.kinds.get(verb, 0) + 1
        return verb is not None

    def break_link(self, kind, index, last):
        target = f"nic {index}.{self.chance.randrange(2)}" if kind == "nic" else f"trunk {self.chance.randrange(2)}-{index}"
        verbs = [("blackhole",), ("loss", "--loss", f"{self.chance.choice((1, 10, 50))}%"), ("brownout", "--rate_mbps", "3")]
        if kind == "nic":
            verbs += [("carrier",), ("blackhole", "--direction", self.chance.choice(("up", "down")))]
        else:
            verbs += [("trunk", "--reroute", "200ms")]
        verb = self.chance.choice(verbs)
        try:
            self.lab.fault(verb[0], target, *verb[1:], "--for", f"{last:.2f}s")
        except RuntimeError as error:  # the lab answered late, because the machine is busy; the fault may be there
            self.late += 1
            print(f"    not counted: {error}", flush=True)
            if self.late > LATE_MAX:
                raise
            return None
        return verb[0] if "--direction" not in verb else "one-way"

    def pause(self, last):
        try:
            rank = self.chance.choice(self.jobs.ranks())
            os.kill(rank, signal.SIGSTOP)
            time.sleep(min(last, 1))
            os.kill(rank, signal.SIGCONT)
        except (IndexError, ProcessLookupError):  # its job just ended
            return None
        return "pause"


class Sea(threading.Thread):
    """One lab, its jobs and its faults, until it had its share of the faults."""

    def __init__(self, number, seed):
        super().__init__(daemon=True)
        self.lab, self.count, self.failure = Lab(f"{NAME}{number}", FABRIC, agents=False), 0, None
        self.jobs = Jobs(self.lab)
        self.weather = Storm(self.lab, self.jobs, random.Random(seed + number))
        self.start()

    def run(self):
        try:
            with self.lab:
                self.play()
        except Exception as failure:  # pylint: disable=broad-except
            self.failure = failure

    def play(self):
        self.jobs.start()
        try:
            while self.count < -(-FAULTS // LABS):
                self.count += self.weather.next()
                time.sleep(GAP_S * self.weather.chance.uniform(0.2, 1.8))
        finally:
            self.jobs.over = True
            time.sleep(LAST_S[1] + 1)
            self.lab.undo()
            self.jobs.join(timeout=350)


def storm(rows):
    """random faults during jobs, double ones and stopped processes among them"""
    seed = int(time.time())
    seas = [Sea(i, seed) for i in range(LABS)]
    for sea in seas:
        sea.join()
        if sea.failure is not None:
            raise sea.failure
    count, jobs = sum(sea.count for sea in seas), sum(sea.jobs.count for sea in seas)
    errors = [text for sea in seas for _, text in sea.jobs.errors]
    hang = sum(sea.jobs.is_alive() for sea in seas)
    verbs = sorted({verb for sea in seas for verb in sea.weather.kinds})
    kinds = ", ".join(f"{sum(sea.weather.kinds.get(verb, 0) for sea in seas)} {verb}" for verb in verbs)
    command = f"bench/lab/storm.py {FAULTS}" + (f" {LABS}" if LABS > 1 else "")
    rows.add("failover.storm.faults", count, "faults", 10000 if FAULTS >= 10000 else None, None, "higher", command=command, note=f"seed {seed}: {kinds}")
    rows.add("failover.storm.errors", len(errors) + hang, f"of {jobs} jobs", 0, 0, command=command,
             note=f"wrong bytes, errors or jobs that hang; {jobs} jobs of {ROUNDS} checked rounds" + "".join(f"; {text[-80:]}" for text in errors[:1]))


if __name__ == "__main__":
    need_root()
    ROWS = Rows("failover-storm-soak" if FAULTS >= 10000 else "failover-storm")
    ROWS.measure([("failover.storm.faults", "faults", None, None, "higher"), ("failover.storm.errors", "jobs", 0, 0)], storm)
    sys.exit(ROWS.finish())
