#!/usr/bin/env python3
"""Jobs whose lanes use queue pairs, through the lab's fabric: over a fake libibverbs whose wire is UDP.

usage: test_queue_pairs.py FOLIOT PLUGIN.so LIBRARIES (folder). Needs root (skipped without).
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

from interrupt import interrupt

HOURS = 7200  # for a job that the test ends when it has seen enough
FOLIOT, PLUGIN, LIBRARIES = (os.path.abspath(path) for path in sys.argv[1:4])
WHOLE = os.path.join(LIBRARIES, "libfake-verbs-whole.so")
NAME = f"pairs{os.getpid()}"
FABRIC = """name: pairs
why: a job with two NICs a host
fabric: {hosts: 2, nics_per_host: 2, leaves: 2, spines: 2, link_mbps: 200, trunk_mbps: 200, buffer_bytes: 400000}
"""
FOUR_PATHS = FABRIC.replace("nics_per_host: 2", "nics_per_host: 1").replace("spines: 2", "spines: 4")


def lab(*arguments, check=True):
    done = subprocess.run([FOLIOT, "lab", "--name", NAME, *arguments], capture_output=True, text=True, timeout=120, check=False,
                          stdin=subprocess.DEVNULL)
    assert not check or done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


def address(host, nic):
    """The NIC's address in the lab."""
    text = lab("exec", f"host{host}", "ip", "-4", "-o", "address", "show", "dev", f"nic{nic}")
    return re.search(r"inet ([0-9.]+)/", text).group(1)


class Job:
    def __init__(self, folder, duration, *options, **environment):
        self.folder, self.lines, self.duration = folder, [], duration
        words = [FOLIOT, "perf", "all_reduce", "--lab", NAME, "--hosts", "0,1", "--ranks", "2", "--plugin", PLUGIN, "--message", "64K",
                 "--channels", "2", "-b", "1M", "-e", "1M", "-c", "1", "-T", "60", "--duration", str(duration), "--wait", "100",
                 "-J", folder + "/json", *options]
        environment = {**os.environ, "NCCL_DEBUG": "TRACE", "FOLIOT_VERBS": WHOLE, "FOLIOT_FAKE_VERBS_WIRE": "auto", **environment}
        environment.pop("FOLIOT_NIC", None)
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
                                        env=environment)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def text(self):
        return "\n".join(self.lines)

    def count(self, pattern):
        return len(re.findall(pattern, self.text()))

    def all_home(self):
        """True if the last line about each lane, at either end, is about a queue pair."""
        words = re.findall(rf"(?m)^(\d+) .*?\blane (\d+)\.\d.*?({UP}|{DOWN})", self.text())
        last = {(process, lane): word for process, lane, word in words}
        return all(word == UP for word in last.values())

    def failed(self):
        """The number of lanes that failed, at either end. A lane that was never up doesn't count, because it carried nothing. Nor
        does a lane that was closed for another path (a TRACE). On a busy machine there are such lanes, too."""
        up, count = set(), 0
        for process, level, lane, down in re.findall(rf"(?m)^(\d+) .*?(\w+) NET/Foliot: lane (\d+\.\d+) .*(?:({DOWN})|: up$)", self.text()):
            if not down:
                up.add((process, lane))
            elif level == "INFO" and (process, lane) in up:
                count += 1
        return count

    def until(self, true, what):
        end = time.monotonic() + 120
        while not true():
            assert self.process.poll() is None and time.monotonic() < end, f"expected {what} in:\n{self.text()}"
            time.sleep(0.1)

    def wait_for(self, pattern, count=1):
        self.until(lambda: self.count(pattern) >= count, f"{pattern!r} {count} times")

    def wait_for_home(self):
        """Waits until one more lane has a queue pair again. On a busy machine all may have one before they are counted."""
        count = self.count(UP) + 1
        self.until(lambda: self.all_home() or self.count(UP) >= count, "a lane that comes home")

    def end(self):
        if self.duration == HOURS:
            interrupt(self.process)
        status = self.process.wait(timeout=300)
        self.reader.join(timeout=60)
        assert status == 0, self.text()
        result = json.load(open(self.folder + "/json", encoding="utf-8"))["results"][0]["out_of_place"]
        assert result["nwrong"] == 0, self.text()
        return self.text()


UP, DOWN = r": over a queue pair", r"down \("


def job_lives(folder, how, faults):
    job = Job(folder, HOURS, "--transport", "roce", "--rdma", how)
    job.wait_for(UP, 4)
    for fault in faults:
        felt = job.failed()
        lab("fault", *fault)
        job.until(lambda: job.failed() > felt, f"a lane that fails of {fault}")
        lab("fault", "undo", "all")
        job.wait_for_home()
    text = job.end()
    assert re.search(r"survived: [1-9]\d* failures? of a lane", text), text
    return text


def nics_write(folder):
    """lanes write to the receive buffers; paths, a carrier and all acknowledgements die; no byte is wrong, and lanes return to
    queue pairs"""
    text = job_lives(folder, "direct", (("blackhole", "trunk 0-0"), ("carrier", "nic 1.1"), ("blackhole", "nic 0.1", "--direction", "up")))
    written = [int(share) for share in re.findall(r"sent \((\d+) % of it written by NICs", text)]
    print("written by NICs:", written, "%")
    assert len(written) == 2 and min(written) >= 5, text  # 0 if no NIC writes; lanes that stay on TCP for long write nothing


def nics_copy(folder):
    """the same with lanes that copy bytes"""
    text = job_lives(folder, "copy", (("blackhole", "trunk 0-0"),))
    assert "written by NICs" not in text, text


def where_there_are_none(folder):
    """each has one line with advice, and the job goes on over TCP"""
    own = f"a={address(0, 0)} b={address(0, 1)}"
    both = f"a={address(0, 0)} b={address(0, 1)} c={address(1, 0)} d={address(1, 1)}"
    for expected, environment in (
            (r"lanes are TCP connections: .*cannot open shared object", {"FOLIOT_VERBS": "/nowhere/libibverbs.so.1"}),
            (r"lanes are TCP connections: .*has no function ibv_destroy_qp", {"FOLIOT_VERBS": LIBRARIES + "/libfake-verbs-short.so"}),
            (r"lanes are TCP connections: .*no RDMA device", {"FOLIOT_FAKE_VERBS_WIRE": ""}),
            (r"RoCE v1 only", {"FOLIOT_FAKE_VERBS_WIRE": re.sub(r"(\S+)", r"\1,v1", both)}),
            (r"can't register memory: expected a `ulimit -l`|no room for another queue pair or its memory", {"FOLIOT_FAKE_VERBS_MEMLOCK": "65536"}),
            (r"no queue pair \(No such device\): over TCP", {"FOLIOT_FAKE_VERBS_WIRE": own})):
        job = Job(folder, HOURS, "--transport", "roce", "--rdma", "direct", **environment)
        job.wait_for(expected)
        time.sleep(0.5)  # it goes on
        text = job.end()
        assert not re.search(UP, text), text
    job = Job(folder, 1, "--transport", "tcp")
    assert not re.search("RDMA|queue pair", job.end()), job.text()


def spine_of(leaf, source, destination, port):
    """The spine to which that leaf's kernel sends such a packet of RoCE."""
    route = subprocess.run(["ip", "netns", "exec", f"foliot-{NAME}-leaf{leaf}", "ip", "route", "get", "to", destination, "from", source, "iif",
                            f"h{leaf}n0", "ipproto", "udp", "sport", port, "dport", "4791"], capture_output=True, text=True, check=True).stdout
    return re.search(r"dev (spine\d)", route)[1]


def spines_used(host, ports):
    ends = address(host, 0), address(1 - host, 0)
    return len({spine_of(host, *ends, port) for port in ports})


def four_chosen(text):
    """For each process the ports of its lanes, once four lanes have one at one time. On a busy machine a lane may be given up
    before the last one has chosen. Then it chooses again, or gets a port by chance."""
    chosen, four = {}, {}
    for process, lane, port in re.findall(rf"(?m)^(\d+) .*?\blane (\d+)\.\d+(?:: sends from UDP port (\d+)| .*?(?:{DOWN}|: no queue pair))", text):
        lanes = chosen.setdefault(process, {})
        lanes.pop(lane, None)
        if port:
            lanes[lane] = port
        if len(lanes) == 4:
            four.setdefault(process, list(lanes.values()))
    return list(four.values())


def each_lane_has_its_path(folder):
    """four lanes use four spines in both directions, in three of at most eight jobs. By chance one job in a hundred does. The 24
    ports that an end draws may miss a spine. On a busy machine an end may know only some of their paths. A real end asks the
    routers; here it asks the kernel"""
    good, seen = 0, []
    for _ in range(8):
        job = Job(folder, HOURS, "--transport", "roce", "--rdma", "direct", FOLIOT_LANES_PER_SET="4", FOLIOT_STANDBYS="0")
        # Lanes with a port by chance print none: such a job isn't judged.
        job.until(lambda: len(four_chosen(job.text())) == 2 or (job.count(UP) >= 8 and job.all_home()), "four lanes at both ends")
        job.wait_for(UP, 8)
        ports = four_chosen(job.end())
        # the output doesn't show which process is on which host
        used = [[spines_used(host, four) for host in (0, 1)] for four in ports]
        seen.append(used)
        good += len(used) == 2 and (used[0][0] == used[1][1] == 4 or used[0][1] == used[1][0] == 4)
        if good == 3:
            return
    raise AssertionError((job.text(), seen))


def play(fabric, tests):
    lab("down", check=False)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(fabric)
        file.flush()
        lab("up", file.name, "--no-agents")
    try:
        for test in tests:
            with tempfile.TemporaryDirectory() as place:
                test(place)
            print("ok", test.__name__, flush=True)
    finally:
        lab("down", check=False)


if os.geteuid() != 0:
    print("the lab needs root: skipped")
    sys.exit(77)
play(FOUR_PATHS, (each_lane_has_its_path,))
play(FABRIC, (nics_write, nics_copy, where_there_are_none))
