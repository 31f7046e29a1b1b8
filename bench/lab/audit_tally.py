#!/usr/bin/env python3
"""audit_tally.py [soak] [--sets N] [--seed N] [--keep] [--save FILE]: rows audit.lab.tally*: which faults planted in a lab an
audit names, and which an operator finds who compares cables with the plan (LLDP) and pings all pairs of NICs.

A set is 13 faults at once, each on its own NIC, drawn from a seed: 3 cables in the wrong place, 7 that a ping of all pairs
finds, and 3 that neither finds. These are: one of four paths of a pair is dead; a NIC's packets come 25 us later in one
direction; a job's class is slow while probes are fast. Places are drawn. The pair's dead path is none of those that ping
itself takes, or ping would find it.

The judge of the audit reads only its results. The operator's tools use nothing of Foliot. LLDP frames leave each port of each
leaf with the leaf's name, and are read at the host's NIC. `ping -6` of iputils runs between all pairs of NICs of different
hosts, in both directions."""
import argparse
import collections
import ctypes
import json
import os
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from world import FOLIOT, Lab, Missing, Rows, need_root, runs

NAME, HOSTS, NICS, LEAVES, SPINES = "tally", 16, 4, 4, 4
DELAY_US, JOB_MBPS, RANKS, PINGS = 25, 10, 6, 5
FABRIC = f"name: tally\nwhy: thirteen faults\nworld: lab\nduration: 30s\n" \
    f"fabric: {{hosts: {HOSTS}, nics_per_host: {NICS}, leaves: {LEAVES}, spines: {SPINES}, ip: both}}\nclocks: {{stamps: software}}\n"

Fault = collections.namedtuple("Fault", "kind nic other words")


def leaf_of(nic):
    return nic[0] * LEAVES // HOSTS


def name_of(nic):
    return f"host{nic[0]}/nic{nic[1]}"


def address_of(nic):
    return f"fd00:{nic[0]:x}:{nic[1]:x}::2"


# ---- the operator's tools ----

def in_space(space, function):
    """Runs function() in a network namespace and returns its result. Each call has its own process: a thread that entered
    another namespace can't be used afterwards."""
    end, child_end = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with open(f"/run/netns/{space}", "rb") as file:
                if LIBC.setns(file.fileno(), 0x40000000) == 0:
                    os.write(child_end, json.dumps(function()).encode())
                    status = 0
        finally:
            os._exit(status)
    os.close(child_end)
    with os.fdopen(end, "rb") as out:
        text = out.read()
    os.waitpid(child, 0)
    if not text:
        raise Missing(f"nothing came of {space}")
    return json.loads(text)


LIBC = ctypes.CDLL(None, use_errno=True)
ETH_P_LLDP = 0x88CC


def tlv(kind, data):
    return struct.pack("!H", kind << 9 | len(data)) + data


def lldp_send(leaf):
    """Sends LLDP (IEEE 802.1AB) out of each port towards a host, with the leaf's name."""
    ports = [name for _, name in socket.if_nameindex() if re.fullmatch(r"h\d+n\d+", name)]
    for port in ports:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
            out.bind((port, 0))
            source = out.getsockname()[4]
            frame = bytes.fromhex("0180c200000e") + source + struct.pack("!H", ETH_P_LLDP) + tlv(1, b"\x04" + source) + tlv(2, b"\x05" + port.encode()) + \
                tlv(3, struct.pack("!H", 120)) + tlv(5, leaf.encode()) + tlv(0, b"")
            try:
                out.send(frame)
            except OSError:  # its link is down
                pass
    return len(ports)


def lldp_names(sockets, seconds):
    """The name of the switch that each NIC receives."""
    names, end = {}, time.monotonic() + seconds
    while time.monotonic() < end and len(names) < len(sockets):
        for nic, s in sockets.items():
            try:
                frame = s.recv(2048)
            except BlockingIOError:
                continue
            at = 14
            while at + 2 <= len(frame):
                head, = struct.unpack_from("!H", frame, at)
                kind, size = head >> 9, head & 511
                if kind == 5:
                    names[nic] = frame[at + 2:at + 2 + size].decode()
                if kind == 0:
                    break
                at += 2 + size
        time.sleep(0.01)
    return names


def lldp_open(host):
    """Sockets stay usable after their namespace's name is gone: a child opens them there, and hands them back."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)

    def open_all():
        sockets = []
        for nic in range(NICS):
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.htons(ETH_P_LLDP))
            s.bind((f"nic{nic}", ETH_P_LLDP))
            sockets.append(s)
        socket.send_fds(theirs, [b"x"], [s.fileno() for s in sockets])
        return len(sockets)
    in_space(host, open_all)
    _, fds, _, _ = socket.recv_fds(ours, 1, NICS)
    ours.close()
    theirs.close()
    return {nic: socket.socket(fileno=fd) for nic, fd in enumerate(fds)}


def cabling(lab, declared):
    """NICs that receive another leaf's name than the plan has."""
    sockets = {}
    for host in range(HOSTS):
        sockets |= {(host, nic): s for nic, s in lldp_open(lab.namespace(host)).items()}
    for leaf in range(LEAVES):
        in_space(f"foliot-{lab.name}-leaf{leaf}", lambda leaf=leaf: lldp_send(f"leaf{leaf}"))
    names = lldp_names(sockets, 3)
    for s in sockets.values():
        s.close()
    return {nic for nic, leaf in names.items() if leaf != f"leaf{declared[nic]}"}, len(names)


def ping_all(lab, pings):
    """(from, to) -> number of echo requests without an answer. All hosts ping at once, each of them pair by pair."""
    def of_host(host):
        pairs = [((host, nic), (other, its)) for nic in range(NICS) for other in range(HOSTS) for its in range(NICS) if other != host]
        lines = [f"ping -6 -n -q -c {pings} -i 0.002 -W 1 -I {address_of(a)} {address_of(b)} 2>/dev/null; echo; echo ." for a, b in pairs]
        # pylint: disable-next=consider-using-with
        return pairs, subprocess.Popen(lab.words("exec", f"host{host}", "--", "sh"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True), "\n".join(lines)
    started, lost, threads = [of_host(host) for host in range(HOSTS)], {}, []

    def gather(pairs, shell, lines):
        for (a, b), told in zip(pairs, shell.communicate(lines)[0].split("\n.\n"), strict=False):
            found = re.search(r"(\d+) received", told)
            lost[a, b] = pings - (int(found[1]) if found else 0)
    for one in started:
        threads.append(threading.Thread(target=gather, args=one))
        threads[-1].start()
    for thread in threads:
        thread.join()
    if len(lost) != HOSTS * (HOSTS - 1) * NICS * NICS:
        raise Missing(f"pings of {len(lost)} pairs alone")
    return lost


def ping_names(fault, faults, lost, pings):
    """True if pairs that only this fault affects lose more than pairs without a fault. One such pair is enough."""
    ill = {f.nic for f in faults} | {f.other for f in faults if f.other and f.kind in PAIRS}
    if fault.kind in PAIRS:
        own = [lost[fault.nic, fault.other], lost[fault.other, fault.nic]]
    else:
        own = [n for (a, b), n in lost.items() if fault.nic in (a, b) and not (({a, b} - {fault.nic}) & ill)]
    well = [n for (a, b), n in lost.items() if not {a, b} & ill]
    usual = sum(well) / (pings * len(well))
    return sum(own) / (pings * len(own)) > max(0.01, 3 * usual)


# ---- faults ----

PAIRS = ("pair", "path")
CABLES, PINGED, NEITHER = 3, ("carrier", "hole", "mute", "deaf", "loss", "pair", "ipv6"), ("path", "delay", "class")


def draw_set(draw):
    """Thirteen faults on different NICs. Cables come first, because the lab is brought up with them."""
    nics = [(h, n) for h in range(HOSTS) for n in range(NICS)]
    draw.shuffle(nics)
    leaves = draw.sample(range(LEAVES), CABLES)
    cables = [next(n for n in nics if leaf_of(n) == leaf) for leaf in leaves]
    used = set(cables)

    def take(fits=lambda nic: True):
        nic = next(n for n in nics if n not in used and fits(n))
        used.add(nic)
        return nic
    faults = [Fault("cable", nic, cables[(i + 1) % CABLES], None) for i, nic in enumerate(cables)]
    for kind in PINGED:
        nic = take()
        target = f"nic {nic[0]}.{nic[1]}"
        if kind == "pair":
            other = take(lambda n, nic=nic: leaf_of(n) != leaf_of(nic))
            faults.append(Fault(kind, nic, other, ["blackhole", f"edge {nic[0]}.{nic[1]}>{other[0]}.{other[1]}"]))
        else:
            words = {"carrier": ["carrier", target], "hole": ["blackhole", target], "mute": ["blackhole", target, "--direction", "up"],
                     "deaf": ["blackhole", target, "--direction", "down"], "loss": ["loss", target, "--loss", "5%"], "ipv6": None}[kind]
            faults.append(Fault(kind, nic, None, words))
    faults.append(Fault("path", take(), None, None))  # place_path decides between which NICs
    nic = take()
    faults.append(Fault("delay", nic, None, ["delay", f"nic {nic[0]}.{nic[1]}", "--delay", f"{DELAY_US}us", "--direction", "up"]))
    nic = take()
    faults.append(Fault("class", nic, None, ["brownout", f"nic {nic[0]}.{nic[1]}", "--rate_mbps", str(JOB_MBPS), "--class", "job"]))
    return faults


def place_path(lab, faults, draw):
    """One direction of a pair that agents probe, over a spine that ping's own packets of that pair do not take."""
    ill = {f.nic for f in faults}
    fault = next(f for f in faults if f.kind == "path")
    others = [(e["peer_host"], e["peer_name"]) for e in lab.ask("mesh", fault.nic[0])[fault.nic[0]]["edges"]
              if e["local_name"] == f"nic{fault.nic[1]}"]
    others = [(int(host[4:]), int(name[3:])) for host, name in others]
    other = draw.choice(sorted(n for n in others if n not in ill and leaf_of(n) != leaf_of(fault.nic)))
    spine = draw.choice([s for s in range(SPINES) if s != spine_of_ping(lab, fault.nic, other)])
    words = ["blackhole", f"edge {fault.nic[0]}.{fault.nic[1]}>{other[0]}.{other[1]} path {spine}"]
    return [fault._replace(other=other, words=words) if f is fault else f for f in faults]


def spine_of_ping(lab, nic, other):
    """The spine of an echo request: the router that answers when its hops run out."""
    out = subprocess.run(lab.words("exec", f"host{nic[0]}", "--", "ping", "-6", "-n", "-c", "1", "-W", "2", "-t", "2", "-I", address_of(nic), address_of(other)),
                         capture_output=True, text=True, check=False).stdout
    with open(f"{lab.folder}/routers", encoding="utf-8") as file:
        names = dict(line.split() for line in file if not line.startswith("#"))
    found = re.search(r"From (\S+?):? ", out)
    if found is None or not names.get(found[1], "").startswith("spine"):
        raise Missing(f"no spine answered to ping: {out}")
    return int(names[found[1]][5:])


def plant(lab, faults):
    for fault in faults:
        if fault.kind == "ipv6":  # its switch port has no address: packets of that family are dropped there
            port = f"h{fault.nic[0]}n{fault.nic[1]}"
            subprocess.run(["ip", "-n", f"foliot-{lab.name}-leaf{leaf_of(fault.nic)}", "-6", "addr", "flush", "dev", port, "scope", "global"], check=True)
        elif fault.words:
            kind, target, *more = fault.words
            lab.fault(kind, *target.split(), *more)


class Job:
    """Six ranks, one on each host, all on NICs of one number without a fault: small messages with pauses, as in a job that
    computes."""

    def __init__(self, lab, fault, faults, draw):
        ill = {n for f in faults for n in (f.nic, f.other) if n}
        hosts = [fault.nic[0]] + draw.sample([h for h in range(HOSTS) if (h, fault.nic[1]) not in ill], RANKS - 1)
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen([FOLIOT, "perf", "alltoall", "--lab", lab.name, "--hosts", ",".join(map(str, hosts)), "--ranks", str(RANKS),
                                         "-b", "16K", "-e", "16K", "--message", "4K", "--duration", "600", "--pause", "5", "-c", "0", "--wait", "500"],
                                        env={**os.environ, "FOLIOT_NIC": f"nic{fault.nic[1]}"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.hosts = hosts

    def end(self):
        if self.process.poll() is not None:
            raise Missing(f"the job ended by itself, with status {self.process.returncode}")
        self.process.terminate()
        self.process.wait()


# ---- the audit ----

class Api:
    def __init__(self, lab):
        with open(f"{lab.folder}/dashboard", encoding="utf-8") as address, open(f"{lab.folder}/token", encoding="utf-8") as token:
            self.address, self.token = address.read().strip(), token.read().strip()
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def ask(self, path, body=None):
        request = urllib.request.Request(self.address + "api/v1/" + path, headers={"Authorization": "Bearer " + self.token, "Content-Type": "application/json"},
                                         data=None if body is None else json.dumps(body).encode())
        with self.opener.open(request, timeout=60) as answer:
            return json.load(answer)

    def audit(self, **wish):
        """The results of a run that fail, warn or are unknown; and the run."""
        run = self.ask("audit/runs", wish)["run"]
        while self.ask(f"audit/runs/{run}")["state"] not in ("done", "stopped"):
            time.sleep(0.5)
        results = []
        for status in ("fail", "warn", "unknown"):
            cursor = ""
            while cursor is not None:
                page = self.ask(f"audit/runs/{run}/results?limit=1000&status={status}{cursor}")
                results += page["items"]
                cursor = f"&cursor={page['next']}" if page.get("next") is not None else None
        return self.ask(f"audit/runs/{run}"), results


# Which check names which kind of fault; test/audit/test_shown.py: what was shown in the lab.
FAILS = {"cable": ("be.topo.inferred",), "carrier": ("be.matrix.reach",), "hole": ("be.matrix.reach",), "mute": ("be.matrix.reach",), "deaf": ("be.matrix.reach",),
         "loss": ("be.matrix.loss",), "ipv6": ("be.matrix.reach",), "pair": ("be.matrix.reach",), "path": ("be.conn.paths", "be.matrix.path"),
         "delay": ("be.matrix.delay",), "class": ("be.lat.inband", "be.matrix.delay")}


def by_audit(fault, results):
    """Results that name the fault. The subject must be its own NIC. If a pair is faulty, one end names the other, or the
    matrix names both."""
    host, nic = f"host{fault.nic[0]}", f"nic{fault.nic[1]}"
    own = [r for r in results if r["host"] == host and r["status"] == "fail" and (r["subject"] or "").split(" ")[0] == nic]
    if fault.kind in PAIRS:
        ends = {(host, f"{nic} host{fault.other[0]} nic{fault.other[1]}"), (f"host{fault.other[0]}", f"nic{fault.other[1]} {host} {nic}")}
        check = FAILS["path"] if fault.kind == "path" else ("be.conn.matrix", "be.conn.cross")  # the latter where agents probe the pair
        found = [r for r in results if r["status"] in ("fail", "warn") and r["check"] in check and (r["host"], r["subject"]) in ends]
        if fault.kind == "pair":
            both = [r for r in results if r["status"] in ("fail", "warn") and r["check"] in FAILS["pair"] and
                    (r["host"], r["subject"]) in {(host, nic), (f"host{fault.other[0]}", f"nic{fault.other[1]}")}]
            found += both if len(both) == 2 else []
        return found
    return [r for r in own if r["check"] in FAILS[fault.kind]]


def others(faults, results):
    """Failures of links, connectivity and delays that no fault explains."""
    ill = {(f"host{n[0]}", f"nic{n[1]}") for f in faults for n in (f.nic, f.other) if n}
    found = []
    for r in results:
        words = (r["subject"] or "").split(" ")
        ends = {(r["host"], words[0])} | ({(words[1], words[2])} if len(words) == 3 else set())
        if r["status"] == "fail" and re.match(r"be\.(matrix|topo|conn|lat)\.", r["check"]) and not ends & ill:
            found.append(r)
    return found


def one_set(draw, settle_s, keep=False):
    """Counts of named faults: by the audit; by cables; by ping; by either of these two."""
    faults = draw_set(draw)
    with tempfile.TemporaryDirectory(prefix="foliot-tally-") as folder:
        with open(os.path.join(folder, "fabric.yaml"), "w", encoding="utf-8") as file:
            file.write(FABRIC)
        cables = [f.nic for f in faults if f.kind == "cable"]
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with Lab(NAME, file.name, controller=port, more=("--exchange", ",".join(map(name_of, cables)))) as lab:
            api = Api(lab)
            lab.wait_synced(240)
            faults = place_path(lab, faults, draw)
            plant(lab, faults)
            job = Job(lab, next(f for f in faults if f.kind == "class"), faults, draw)
            time.sleep(settle_s)
            if keep:
                input(f"{lab.name}: {faults}\nhosts of the job: {job.hosts}; Enter goes on")
            run, results = api.audit(matrix=True, family=6)
            if ARGUMENTS.save:
                with open(ARGUMENTS.save, "w", encoding="utf-8") as file:
                    json.dump({"faults": faults, "run": run, "results": results, "matrix": api.ask(f"audit/runs/{run['run']}/matrix")}, file, indent=1)
            declared = {(h, n): leaf_of((h, n)) for h in range(HOSTS) for n in range(NICS)}
            for i, nic in enumerate(cables):
                declared[nic] = leaf_of(cables[(i + 1) % len(cables)])
            astray, heard = cabling(lab, declared)
            lost = ping_all(lab, PINGS)
            job.end()
    found = []
    for f in faults:
        audit, cable, ping = bool(by_audit(f, results)), f.kind == "cable" and f.nic in astray, ping_names(f, faults, lost, PINGS)
        found.append((f, audit, cable, ping))
        print(f"  {f.kind:8} {name_of(f.nic):12} {name_of(f.other) if f.other else '':12} {' '.join(f.words or []):50} "
              f"audit {'yes' if audit else 'NO ':3} cables {'yes' if cable else '-':3} ping {'yes' if ping else '-':3} "
              f"{[(r['check'], r['status']) for r in by_audit(f, results)][:2]}", flush=True)
    wrong = others(faults, results)
    for r in wrong:
        print("  other:", r["host"], r["check"], r["subject"], r.get("found"), r.get("note"), flush=True)
    print(f"  run {run['state']}, {run.get('matrix_why')}; {heard} NICs told by LLDP; {sum(lost.values())} of {PINGS * len(lost)} pings without an answer", flush=True)
    return found, wrong


def tally(rows):
    """sets of 13 faults in a lab: named by an audit, by LLDP against the plan, by a ping of all pairs"""
    draw, audited, usual, extra, wrong = random.Random(ARGUMENTS.seed), [], [], [], 0
    for _ in range(ARGUMENTS.sets or runs(10, 1)):
        found, others_found = one_set(draw, ARGUMENTS.settle, ARGUMENTS.keep)
        audited.append(sum(a for _, a, _, _ in found))
        usual.append(sum(c or p for _, _, c, p in found))
        extra.append(100 * (audited[-1] - usual[-1]) / max(1, usual[-1]))
        wrong += len(others_found)
    command = f"bench/lab/audit_tally.py --sets {len(audited)} --seed {ARGUMENTS.seed}"
    note = f"{len(audited)} sets of 13 faults; cables by LLDP and ping6 of all pairs found {sum(usual)}; others that fail: {wrong}"
    rows.add("audit.lab.tally", min(audited), "of 13", 13, None, "higher", len(audited), None, command, "the least of the sets. " + note)
    rows.add("audit.lab.tally_more", min(extra), "%", 30, None, "higher", len(extra), None, command, "the least of the sets. " + note)


if __name__ == "__main__":
    need_root()
    parser = argparse.ArgumentParser()
    parser.add_argument("soak", nargs="?", choices=["soak"], help="ten sets instead of one")
    parser.add_argument("--sets", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--settle", type=float, default=70, help="seconds from the faults to the audit: clocks that are younger than a minute are told as young")
    parser.add_argument("--keep", action="store_true", help="wait for Enter before the audit")
    parser.add_argument("--save", help="all results of the last set and its matrix, as JSON")
    ARGUMENTS = parser.parse_args()
    if subprocess.run(["ping", "-V"], capture_output=True, check=False).returncode != 0:
        print("ping of iputils is not there (Debian: iputils-ping): skipped")
        sys.exit(77)
    ROWS = Rows("audit-tally")
    ROWS.measure([("audit.lab.tally", "of 13", 13, None, "higher"), ("audit.lab.tally_more", "%", 30, None, "higher")], tally)
    sys.exit(ROWS.finish())
