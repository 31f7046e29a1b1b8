"""An agent's socket without an agent: answers in the format of docs/json.md, with made-up but consistent figures."""
import json
import os
import socketserver
import threading

NOW_FLEET = 1795229112_123456789
HOSTS, NICS = 4, 2


def header(kind, host):
    return {"version": 1, "kind": kind, "host": f"h{host}", "host_index": host, "now_mono_ns": 5_000_000_000,
            "now_fleet_ns": NOW_FLEET, "now_utc_ns": NOW_FLEET + 40, "clock_status": "SYNCED"}


def finding(host, open_=True):
    text = ("h0/eth0 → h2/eth1, path 2: nothing arrives since 2026-11-21 02:45:12.123 UTC; the other direction is "
            "alive, so both NICs are; suspect: trunk leaf0–spine2; look at its transceiver")
    return {**header("finding", host), "id": 7, "finding": "path-dead", "open": open_,
            "from": {"host": "h0", "nic": 0, "name": "eth0"}, "to": {"host": "h2", "nic": 5, "name": "eth1"},
            "path": 2, "port": 50002, "signature": "00112233aabbccdd", "direction": "out",
            "since_fleet_ns": NOW_FLEET, "since_utc_ns": NOW_FLEET + 40, "until_fleet_ns": None, "until_utc_ns": None,
            "detected_ns": 180_000_000, "what": "nothing arrives", "other_direction": "alive",
            "rules_out": "both NICs", "advice": "look at its transceiver",
            "suspect": {"kind": "trunk", "name": "leaf0–spine2"}, "text": text}


def status(host, well):
    return {**header("status", host), "agent_version": "0.1.0", "agent_pid": 4242, "uptime_ns": 90_000_000_000,
            "config": {"path": "/etc/foliot/agent.yaml", "loaded_utc_ns": NOW_FLEET, "error": None},
            "clock": {"status": "SYNCED", "why": None, "timeline": "0123456789abcdef", "epoch": 0, "hard_ns": 9_400,
                      "statistical_ns": 210, "edges_live": 6, "edges_chosen": 6, "edges_parked": 0,
                      "utc_known": False},
            "mesh": {"peers": 6, "paths": 24, "paths_bad": 0 if well else 1, "coverage": "full"},
            "links": {"nics": 2, "nics_up": 2, "flaps_hour": 0},
            "cost": {"cpu_ppm": 4_100, "memory_bytes": 9_437_184, "packets_sent": 1000, "packets_received": 999,
                     "packets_bad": 0},
            "bad_packets": {}, "findings": [] if well else [finding(host)]}


def clock(host):
    edges = [{"local_nic": host * NICS, "local_name": "eth0", "peer_nic": peer * NICS, "peer_name": "eth0",
              "peer_host": f"h{peer}", "role": "used", "error_ns": 12 * (peer - host), "level_ns": 3, "bound_ns": 5_800,
              "rtt_floor_ns": 21_000, "pure_ppm": 700_000, "points": 4, "queue_ns": 0, "noise_ns": 90, "gate_ppm": 900_000, "peer_state": "track"}
             for peer in range(HOSTS) if peer != host]
    history = [{"age_ns": (60 - i) * 10**9, "hard_ns": int(9_000 + 4e6 / (1 + i * i)),
                "statistical_ns": int(200 + 1e6 / (1 + i**3)), "status": "SYNCED" if i > 4 else "UNKNOWN"}
               for i in range(60)]
    return {**header("clock", host), "members": [
        {"name": "host", "nic": None, "stamps": "software", "state": "track", "status": "SYNCED", "why": None,
         "hard_ns": 9_400, "statistical_ns": 210, "offset_ns": 123, "rate_ppb": -31_250, "slew_ppb": 0,
         "edges_chosen": 6, "edges_live": 6, "edges_parked": 0, "scale_ns": 30, "sqrt_p_ns": 12, "tight": True,
         "core": True, "guard": "peers", "guard_age_ns": None, "anchors": 0, "edges": edges}], "history": history}


def direction(owd_ns, state="alive"):
    return {"state": state, "since_fleet_ns": NOW_FLEET, "owd_ns_min": owd_ns - 500,
            "owd_ns_p50": None if state == "dead" else owd_ns, "owd_ns_p99": None if state == "dead" else owd_ns * 2,
            "loss_ppm": 1_000_000 if state == "dead" else 0, "sent": 100, "lost": 0, "reordered": 0, "age_ns": 10**7}


def mesh(host, well):
    edges = []
    for nic in range(NICS):
        for peer in range(HOSTS * NICS):
            if peer // NICS == host:
                continue
            paths = []
            for path in range(4):
                out = direction(20_000 + 1000 * path + (50_000 if (host, peer, path) == (1, 6, 3) else 0),
                                "dead" if not well and (host, nic, peer, path) == (0, 0, 5, 2) else "alive")
                paths.append({"path": path, "port": 50000 + path, "signature": f"{path:016x}",
                              "hops": ["10.1.0.1", f"10.2.{path}.1", None], "rtt_ns_p50": 43_000, "rtt_ns_min": 40_000,
                              "out": out, "in": direction(21_000)})
            edges.append({"local_nic": host * NICS + nic, "local_name": f"eth{nic}", "peer_nic": peer,
                          "peer_name": f"eth{peer % NICS}", "peer_host": f"h{peer // NICS}", "kind": "full",
                          "bound_hard_ns": 18_000, "bound_statistical_ns": 420, "paths": paths})
    return {**header("mesh", host), "edges": edges}


def event(host, what="down"):
    return {**header("link-event", host), "event": what, "nic": host * NICS, "name": "eth0", "at_mono_ns": 1,
            "at_fleet_ns": NOW_FLEET, "at_utc_ns": NOW_FLEET, "flaps_hour": 1, "carrier_down_count": 3,
            "text": f"h{host}/eth0 lost its carrier"}


def links(host):
    nics = [{"nic": host * NICS + n, "name": f"eth{n}", "address": f"10.0.{host}.{n}", "present": True, "carrier": True,
             "admin_up": True, "since_utc_ns": NOW_FLEET - 10**10, "since_fleet_ns": NOW_FLEET - 10**10,
             "speed_bps": 200_000_000, "width": None, "driver": "veth", "stamps": "software", "carrier_down_count": 2,
             "flaps_minute": 0, "flaps_hour": 1, "flaps_day": 1, "flaps_total": 1, "damped": False, "rx_packets": 9,
             "tx_packets": 9, "rx_bytes": 9, "tx_bytes": 9, "rx_errors": 0, "tx_errors": 0, "rx_dropped": 0,
             "tx_dropped": 0} for n in range(NICS)]
    return {**header("links", host), "nics": nics, "events": [event(host), event(host, "up")]}


def lane(number, direction, own, peer, delay_us=None, **more):
    known = direction == "in"

    def of(value):
        return int(value) if known else None
    base = (delay_us or 4) * 1000
    return {"set": 0, "lane": number, "direction": direction, "own_nic": f"eth{number % 2}", "peer_host": f"h{peer}",
            "peer_pid": 100 + peer, "peer_nic": f"eth{number % 2}", "own_address": f"10.0.{own}.0",
            "own_port": 7000 + own * 100 + (number if direction == "out" else 0), "peer_address": f"10.0.{peer}.0",
            "peer_port": 7000 + peer * 100 + (number if direction == "in" else 0), "state": "active", "reason": None,
            "since_ns": 10**10, "carrier": "tcp", "traffic_class": 0 if direction == "out" else None,
            "service_level": None, "standby": False, "epoch": 1, "failovers": 0, "chunks": 10**6, "bytes": 10**11, "resent": 0,
            "rate_bps": 10**10, "capacity_bps": 10**11, "owd_ns_floor": of(base - 500), "owd_ns_mean": of(base),
            "owd_ns_max": of(base * 9), "owd_ns_p50": of(base), "owd_ns_p99": of(base * 2), "bound_ns": of(420),
            "queued_ns_p50": of(900), "queued_ns_p99": of(2000), "consumed_ns_p50": of(1100), "consumed_ns_p99": of(3000), **more}


def jobs(host, well, detail, slow):
    """Rank h on host h of a ring of HOSTS. slow: one lane from h1 to h2 is slow. Without well: a lane of h0 failed."""
    after, before = (host + 1) % HOSTS, (host - 1) % HOSTS
    lanes = [lane(n, "out", host, after) for n in range(4)]
    lanes += [lane(n, "in", host, before, 94 if slow and (host, n) == (2, 3) else None) for n in range(4)]
    if not well and host == 0:
        lanes[1].update(state="down", reason="carrier", failovers=1)
        lanes[2].update(carrier="queue-pair", traffic_class=106, service_level=3)
        lanes[3].update(carrier="queue-pair", standby=True)
    worst = max((x for x in lanes if x["direction"] == "in"), key=lambda x: x["owd_ns_p99"])
    process = {"job": "4711", "rank": host, "ranks": HOSTS, "pid": 100 + host, "host": f"h{host}", "user": 1000, "state": "running",
               "mode": "full", "fleet_time": True, "age_ns": 10**11, "silent_ns": 10**8, "comms": 2, "sets": 2, "peers": 1,
               "lanes": 8, "lanes_usable": sum(x["state"] == "active" for x in lanes), "lanes_down": 0, "lanes_cut": False,
               "bytes_out": 10**12, "bytes_in": 10**12, "rate_out_bps": 4 * 10**10, "rate_in_bps": 4 * 10**10, "resent": 0,
               "failovers": sum(x["failovers"] for x in lanes), "repaths": 0, "parted": 0, "stalled_ns": 0, "worst": worst,
               "ended_ns": None}
    events = [{"event": "started", "job": "4711", "rank": host, "pid": 100 + host, "host": f"h{host}", "user": 1000, "at_mono_ns": 1,
               "at_fleet_ns": NOW_FLEET, "at_utc_ns": NOW_FLEET, "count": 1, "lane": None}]
    if not well and host == 0:
        events.append({**events[0], "event": "failover", "lane": 1, "reason": "carrier", "own_nic": "eth1", "peer_host": "h1",
                       "peer_pid": 101, "peer_nic": "eth1"})
    nameless = {**process, "job": None, "rank": None, "ranks": None, "pid": 9, "state": "idle", "worst": None}
    if detail:
        process["lane_list"], nameless["lane_list"] = lanes, []
    return {**header("lanes" if detail else "jobs", host), "processes": [process, nameless], "events": events, "pages_refused": 0}


def selftest(host):
    return {**header("selftest", host), "verdict": "honest", "why": "all of 2 witness edges within the bound",
            "statistical_ns": 210, "witness": [{"local_nic": 0, "peer_nic": 5, "peer_host": "h2", "error_ns_mean": 12,
                                                "error_ns_max": 80, "samples": 100}],
            "triangles": {"count": 4, "residual_ns_p50": 9, "residual_ns_max": 30},
            "nics": [{"nic": 0, "name": "eth0", "stamps": "software", "sigma_ns": 90, "pure_ppm": 700_000,
                      "skipped_stamps": 0, "bracket_ns": None}]}


def doctor(host):
    return {**header("doctor", host), "checks": [
        {"check": "clocksource", "result": "ok", "expected": "tsc, or another source that the kernel trusts", "found": "tsc", "advice": ""},
        {"check": "capabilities", "result": "ok", "expected": "CAP_NET_RAW", "found": "CAP_NET_RAW", "advice": ""},
        {"check": "port", "result": "warn", "expected": "UDP 7637 open to all peers", "found": "h3 is silent",
         "advice": "let UDP 7637 pass the firewall"}]}


class Handler(socketserver.StreamRequestHandler):
    def say(self, answer):
        self.wfile.write(json.dumps(self.server.change(answer)).encode() + b"\n")

    def handle(self):
        host, well = self.server.host, self.server.well
        for line in self.rfile:
            request = json.loads(line)
            self.server.requests.append(request)
            watch, what = request.get("watch"), request.get("get")
            if watch == "findings":
                self.say(finding(host))
                self.say(finding(host, False))
                return
            if watch == "links":
                self.say(links(host))
                self.say(event(host))
                return
            if what == "record":
                self.say({**header("record", host), "size_bytes": 5, "oldest_mono_ns": 0, "newest_mono_ns": 6 * 10**11,
                          "events": 3})
                try:
                    self.wfile.write(b"bytes")
                except BrokenPipeError:  # the file was there already: the client has ended
                    return
                continue
            answers = {"status": lambda: status(host, well), "clock": lambda: clock(host),
                       "mesh": lambda: mesh(host, well), "links": lambda: links(host),
                       "findings": lambda: {**header("findings", host), "findings": [] if well else [finding(host)]},
                       "jobs": lambda: jobs(host, well, False, self.server.slow),
                       "lanes": lambda: jobs(host, well, True, self.server.slow),
                       "doctor": lambda: doctor(host), "selftest": lambda: selftest(host)}
            if what in answers:
                self.say(answers[what]())
            else:
                self.say({"version": 1, "kind": "error", "error": "unknown-request", "message": f"what is {what}?"})


class FakeAgent(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, folder, host=0, well=True, slow=False, change=lambda answer: answer):
        os.makedirs(folder, exist_ok=True)
        self.change = change  # applied to each answer before it is sent
        self.host, self.well, self.slow, self.requests = host, well, slow, []
        super().__init__(os.path.join(folder, "agent.sock"), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()
