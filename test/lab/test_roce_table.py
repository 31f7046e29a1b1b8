#!/usr/bin/env python3
"""lab/roce-vm/table without a machine: rows that miss their bounds, and faults that are compared.
usage: test_roce_table.py TABLE"""
import importlib.machinery
import importlib.util
import sys
import types

LOADER = importlib.machinery.SourceFileLoader("roce_table", sys.argv[1])
sys.dont_write_bytecode = True
TABLE = importlib.util.module_from_spec(importlib.util.spec_from_loader("roce_table", LOADER))
LOADER.exec_module(TABLE)


def check(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: expected {expected}, found {found}")


def bounds():
    rows = TABLE.Rows()
    rows.add("a", "wrong values", 3, "values", must=0)
    rows.add("b", "no wrong value", 0, "values", must=0)
    rows.add("c", "share", 0.7, "times", must=0.9, better="higher")
    rows.add("d", "share", 0.9, "times", must=0.9, aim=0.95, better="higher")
    rows.add("e", "could not be measured", None, "ms", must=1)
    rows.add("f", "of no bound", None, "ms")
    check("rows that miss their bound", [row["id"] for row in rows.rows if TABLE.missed(row)], ["roce.a", "roce.c", "roce.e"])


def same_faults():
    """Three faults. In the second one the queue pair had no error. In the third one the next queue pair had an error, too."""
    moments = [("held", 1.5, 10.0), ("held", 0.3, 20.0), ("loss", 1.5, 30.0)]
    errors = [(10.1, 10.6), (30.0, 30.4), (30.5, 31.5), (50.0, 50.1)]
    ours, own = TABLE.of_same_faults(moments, [100, 999, 200], errors)
    check("our gaps", ours, [100, 200])
    check("gaps of the error", [round(ms) for ms in own], [500, 400])


def part_by_part():
    """A job of 100 messages a second. It has none while a fault of one of its lanes lasts: 20 faults, ten of 0.3 s and ten of 1.5 s, in 60 s.
    The parts without faults play the same kinds for ports that no lane has. If no lane is found, no fault is played, and the row misses."""
    now, faults, control, kinds = [1000.0], [], [], {True: [], False: []}

    class Fault:
        def __init__(self, _):
            self.begun = None

        def begin(self, kind, flow):
            self.begun = (now[0], flow)
            kinds[flow in LANES].append(kind)

        def end(self):
            if self.begun is None:
                return
            (begun, flow), self.begun = self.begun, None
            (faults if flow in LANES else control).append((begun, now[0]))

    class Job:
        def __init__(self, *_, seconds, **__):
            self.span = (now[0], now[0] + seconds)

        def wait_for(self, *_):
            pass

        def end(self):
            check("the job outlives its faults", now[0] <= self.span[1], True)
            return [{"out_of_place": {"nwrong": 0}}]

        def receives(self):
            moments = [self.span[0] + i / 100 for i in range(int(100 * (self.span[1] - self.span[0])))]
            return [at for at in moments if not any(begin <= at < end for begin, end in faults)]

    def sleep(seconds):
        now[0] += seconds

    LANES = [(49153, 49160, 90), (49154, 49170, 80)]
    TABLE.time = types.SimpleNamespace(sleep=sleep, clock_gettime=lambda _: now[0], CLOCK_MONOTONIC=0)
    TABLE.Fault, TABLE.Job, TABLE.lanes = Fault, Job, lambda *_: LANES
    rows = TABLE.Rows()
    TABLE.share({}, rows, 4)
    check("faults", (len(faults), len(control)), (20, 20))
    row = rows.rows[0]
    check("messages with faults ÷ without, 42 s of 60", (row["id"], round(row["value"], 2), row["runs"]), ("roce.share", 0.7, 20))
    check("a share of 0.7 misses", TABLE.missed(row), True)
    check("kinds without faults", kinds[False], kinds[True])
    check("kinds", len(set(kinds[True])), 5)
    TABLE.lanes, rows = lambda *_: LANES[:1], TABLE.Rows()
    TABLE.share({}, rows, 4)
    check("no fault was played", [row["id"] for row in rows.rows if TABLE.missed(row)], ["roce.share", "roce.share.faults"])


def endless():
    """A program that doesn't end has no figure, and is killed. If its server is dead already, nothing waits for it."""
    class Server:
        def __init__(self, *_, **__):
            servers.append(self)
            self.done = []

        def poll(self):
            return ended

        def kill(self):
            self.done.append("kill")

        def wait(self):
            self.done.append("wait")

    def sh(*words, timeout, **_):
        raise TABLE.subprocess.TimeoutExpired(words, timeout)

    def sleep(seconds):
        slept.append(seconds)

    servers, ended, slept, looks, TABLE.sh = [], None, [], [], sh
    TABLE.time = types.SimpleNamespace(sleep=sleep, monotonic=lambda: sum(slept))
    TABLE.listens = lambda _: servers != [] and len(looks) == 3 or looks.append(None)
    popen, TABLE.subprocess.Popen = TABLE.subprocess.Popen, Server
    found = TABLE.perftest("ib_write_bw", "-s", "65536")
    check("figures of a program that doesn't end", [figure == figure for figure in found[:4]], [False] * 4)
    check("its server", [server.done for server in servers], [["kill", "wait"]])
    check("looks before it listened", len(looks), 3)
    ended, slept, TABLE.listens = 1, [], lambda _: False
    TABLE.perftest("ib_write_bw", "-s", "65536")
    TABLE.subprocess.Popen = popen
    check("waits for a dead server", len(slept), 0)


def errors_of_perftest():
    """A program that ends with an error is started again, a few times. A program with figures is not."""
    class Server:
        def __init__(self, *_, **__):
            started.append(self)

        def poll(self):
            return None

        def kill(self):
            pass

        def wait(self):
            pass

    def sh(*_, **__):
        text = " 65536 400 24.10 23.90 0.0004\n" if len(started) > good else "Completion with error at client\n"
        return types.SimpleNamespace(stdout=text, stderr="")

    popen, TABLE.subprocess.Popen, TABLE.sh, TABLE.listens = TABLE.subprocess.Popen, Server, sh, lambda _: True
    for good, tries, figure in ((0, 1, 23.9), (2, 3, 23.9), (99, TABLE.PERFTEST_TRIES, None)):
        started = []
        found = TABLE.perftest("ib_write_bw", "-s", "65536")[3]
        check("tries, and the figure", (len(started), found if found == found else None), (tries, figure))
    TABLE.subprocess.Popen = popen


bounds()
same_faults()
endless()
errors_of_perftest()
part_by_part()
