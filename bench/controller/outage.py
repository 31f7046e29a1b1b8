#!/usr/bin/env python3
"""outage.py [SECONDS]: the controller is away so long (an hour in `make soak`), with real agents. Then its history must have
no gap, and the hosts' clocks must not be affected. The clocks are also checked as often while the controller is there,
because a machine that lacks processors puts clocks into HOLDOVER by itself. Reports come each second, so 360 s have as many
reports as an hour at the default rate. Then the controller of a lab is killed while a job runs for a sixth of that time.
Once a minute a NIC under the job fails. The job must neither end nor get a wrong byte, and the history must have its events
afterwards."""
import http.client
import json
import math
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import load  # noqa: E402
from job import FABRIC, NS, Job  # noqa: E402
from world import AGENT, BUILD, Lab, Missing, Rows, TOP, need_root  # noqa: E402

sys.path.insert(0, os.path.join(TOP, "test", "controller"))
import fleet  # noqa: E402


class Bench(fleet.Fleet):
    HOSTS = 2
    AGENT, FOLIOT = AGENT, os.path.join(BUILD, "src", "app", "foliot")
    CONTROLLER = load.CONTROLLER

    def runTest(self):  # noqa: N802
        pass


LATE_S = 10  # a clock may need so long to be in step again after its agent had to wait for a processor


class Watch:
    """The status of the hosts' clocks meanwhile, and whether their agents got the processor in time."""

    def __init__(self, bench):
        self.bench, self.late, self.late_at = bench, {}, {}
        self.samples, self.starved, self.off = 0, 0, []

    def look(self):
        now = time.monotonic()
        for host in ("h0", "h1"):
            answer = self.bench.ask(host)
            late = answer["cost"]["late_ticks"]
            if late > self.late.get(host, late):
                self.late_at[host] = now
            self.late[host] = late
            self.samples += 1
            if answer["clock_status"] == "SYNCED":
                continue
            if any(now - at < LATE_S for at in self.late_at.values()):  # its own agent, or that of the host it is in step with
                self.starved += 1
            else:
                self.off.append(f"{host}'s clock: {answer['clock_status']}: {answer['clock']['why']}")

    def go_on(self, seconds, flaps):
        """Checks for so long; each time a link is cut for a second, until `flaps` times. Returns how often it was cut."""
        begin, done = time.monotonic(), 0
        while time.monotonic() - begin < seconds:
            self.look()
            if done < flaps:  # these events belong to the history, too
                self.bench.ip("c", "link", "set", "p1x1", "down")
                time.sleep(1)
                self.bench.ip("c", "link", "set", "p1x1", "up")
                done += 1
            time.sleep(min(2, seconds / 20))
        return done

    def words(self):
        return (f"{len(self.off) + self.starved} of {self.samples} looks not SYNCED, {self.starved} of them within {LATE_S} s of an agent "
                "that waited for a processor")


def noticed(there, away):
    """Checks that found a clock out of step without a reason of its own, beyond the share found with the controller there."""
    return max(0, len(away.off) - math.ceil(len(there.off) / max(there.samples, 1) * away.samples))


def outage(rows, seconds):
    """with the controller, without it, and with it again"""
    need_root()
    bench = Bench()
    bench.setUp()
    begin = None
    try:
        c = bench.start()
        bench.members(0, 1)
        bench.wait(lambda: all(bench.ask(h)["clock_status"] == "SYNCED" for h in ("h0", "h1")), 90, lambda: str(bench.ask("h0")["clock"]))
        time.sleep(15)
        there, away = Watch(bench), Watch(bench)
        before = there.go_on(min(seconds, 60), 10)  # the same for comparison: same machine, same flaps
        bench.wait(lambda: sum(e["word"] == "down" for e in bench.events(kind="link", host="h1")) >= before, 20, "the flaps before")
        begin = time.time()
        c.stop()
        flaps = away.go_on(seconds, 10)
        back = time.time()
        bench.controller()

        def downs():
            return [e for e in bench.events(kind="link", host="h1") if e["word"] == "down"][:-before or None]  # newest first

        def missing():
            values = bench.get(f"/api/v1/series?metric=port_state&nic=0&step_s=10&since_utc_ns={int(begin * 1e9)}"
                               f"&until_utc_ns={int(back * 1e9)}")["values"]
            return sum(v is None for v in values[1:-1])
        bench.wait(lambda: len(downs()) >= flaps and missing() == 0, 120, lambda: f"{len(downs())} downs, {missing()} missing")
        delivered = time.time() - back
        gaps = bench.events(word="history-gap") + bench.events(word="reports-lost")
        found = sorted(e["at_utc_ns"] for e in downs())
        outside = [t for t in found if not begin - 2 <= t / 1e9 <= back + 2]
        wrong = len(gaps) + abs(len(found) - flaps) + len(outside)
    finally:
        bench.tearDown()
        bench.doCleanups()
    command = f"outage.py {seconds:.0f}"
    rows.add("controller.outage_gaps", wrong, "", 0, None, command=command,
             note=f"{seconds:.0f} s of reports each second, {flaps} flaps meanwhile, all at their time")
    rows.add("controller.outage_noticed", noticed(there, away), "", 0, None, command=command,
             note=f"away: {away.words()}; with it there: {there.words()}" + "".join("; " + w for w in away.off[:2]))
    rows.add("controller.outage_delivered_s", delivered, "s", None, None, command=command, note="all of it, after it was back")


class Away:
    """The controller of a lab: killed at once, restarted at the end."""

    def __init__(self, lab):
        self.lab, self.space = lab, f"foliot-{lab.name}-mgmt"
        found = subprocess.run(["ip", "netns", "pids", self.space], capture_output=True, text=True, check=True).stdout.split()
        if len(found) != 1:
            raise Missing(f"{len(found)} processes where the lab's controller should be")
        os.kill(int(found[0]), signal.SIGKILL)
        self.begin = time.time()

    def back(self):
        self.end = time.time()
        config = os.path.join(self.lab.folder, "controller.yaml")
        self.lab.running.append(subprocess.Popen(["ip", "netns", "exec", self.space, load.CONTROLLER, "--config", config],
                                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def events(self, **query):
        """The history of the time away, oldest first; None: nobody answers yet."""
        words = "&".join(f"{k}={v}" for k, v in query.items())
        connection = http.client.HTTPConnection("127.0.0.1", self.lab.controller, timeout=30)
        try:
            connection.sock = fleet.connect(self.space, "127.0.0.1", self.lab.controller)
            with open(f"{self.lab.folder}/token", encoding="ascii") as token:
                headers = {"Authorization": f"Bearer {token.read().strip()}"}
            connection.request("GET", f"/api/v1/events?limit=1000&after=0&since_utc_ns={int((self.begin - 2) * NS)}"
                               f"&until_utc_ns={int((self.end + 2) * NS)}&{words}", headers=headers)
            answer = connection.getresponse()
            return json.loads(answer.read())["items"] if answer.status == 200 else None
        except OSError:
            return None
        finally:
            connection.close()


FAULT_S = 3


def job_through(rows, seconds):
    """a job with a NIC that dies, and no controller"""
    need_root()
    faults = max(1, round(seconds / 60))
    with Lab("bench-outage", FABRIC, controller=load.free_port()) as lab:
        lab.wait_synced()
        away = Away(lab)
        died, job = "", Job(lab, seconds, FOLIOT_JOB="outage")
        try:
            with job:
                time.sleep(5)  # by then lanes are up, and rates are known
                for turn in range(faults):
                    lab.fault("carrier", f"nic {turn % 4}.{turn % 2}", "--for", f"{FAULT_S}s")
                    time.sleep(seconds / faults if turn + 1 < faults else FAULT_S)
        except Missing as error:
            died = str(error)
        away.back()
        end = time.monotonic() + 120
        told, downs = [], []
        while time.monotonic() < end and not (told and len(downs) >= faults):
            time.sleep(0.5)
            told = [e for e in away.events(kind="job", word="failover") or [] if e["detail"]["job"] == "outage"]
            downs = [e for e in away.events(kind="link", word="down") or []]
        onsets = [e["before_raw_ns"] + job.shift for e in lab.events("carrier", "on")]
        gap = max((job.gap_ms(t, t + NS) for t in onsets), default=0) if not died else None
    wrong = (1 if died else job.wrong()) + abs(len(downs) - faults) + (0 if told else 1)
    rows.add("controller.outage_job", wrong, "", 0, None, command=f"outage.py {seconds * 6:.0f}",
             note=died or f"{seconds:.0f} s without its controller, {faults} NICs dead for {FAULT_S} s: longest gap {gap:.0f} ms, wrong bytes "
             f"{job.wrong()}; in the history afterwards: {len(downs)} links down, {sum(e['detail']['count'] or 1 for e in told)} lanes failed over")


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 360
    rows = Rows("controller-outage")

    def away(rows):
        """the controller away, with it again"""
        outage(rows, seconds)

    def job(rows):
        """a job meanwhile"""
        job_through(rows, max(20, seconds / 6))
    rows.measure([("controller.outage_gaps", "", 0, None)], away)
    rows.measure([("controller.outage_job", "", 0, None)], job)
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main())
