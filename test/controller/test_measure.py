#!/usr/bin/env python3
"""Measurements on demand: may this host join, the full matrix; the hosts that they refuse, and their limits.
usage: test_measure.py CONTROLLER AGENT FOLIOT"""
import json
import os
import re
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleet  # noqa: E402
import wire  # noqa: E402

fleet.Fleet.FOLIOT = os.path.abspath(sys.argv.pop(3))
fleet.Fleet.AGENT = os.path.abspath(sys.argv.pop(2))
fleet.Fleet.CONTROLLER = os.path.abspath(sys.argv.pop(1))

# ld [random]; jgt 2^32 / 3 ? go on : drop
ONE_IN_THREE_DROPPED = "4,32 0 0 4294963256,37 1 0 1431655765,6 0 0 2,6 0 0 4294967295"


class TestMeasure(fleet.Fleet):
    HOSTS = 4

    def setUp(self):
        super().setUp()
        for i in range(self.HOSTS):  # two NICs on one bridge: each must answer for its own address only
            for key, value in (("arp_ignore", 1), ("arp_announce", 2)):
                fleet.run("ip", "netns", "exec", self.space(f"h{i}"), "sysctl", "-qw", f"net.ipv4.conf.all.{key}={value}")

    def foliot(self, *arguments):
        done = subprocess.run(["ip", "netns", "exec", self.space("c"), self.FOLIOT, *arguments], text=True, check=False,
                              capture_output=True, env=dict(os.environ, FOLIOT_TOKEN=self.admin))
        return done.returncode, done.stdout + done.stderr

    def ask_for(self, body, token="admin"):
        status, _, answer = self.request("POST", "/api/v1/measurements", body, token=token)
        return status, answer

    def code(self, body):
        status, answer = self.ask_for(body)
        return status, answer["error"]["code"]

    def refused(self):
        """A host that can't answer isn't asked: the request fails at once with the reason."""
        self.assertEqual(self.code({"kind": "host-check", "host": "h9"}), (404, "no-such-host"))
        self.assertEqual(self.code({"kind": "host-check"}), (400, "bad-body"))
        self.assertEqual(self.code({"kind": "flood"}), (400, "bad-body"))
        self.assertEqual(self.code({"kind": "host-check", "host": "h0", "seconds": 61}), (400, "bad-body"))
        self.assertEqual(self.code({"kind": "host-check", "host": "away"}), (409, "host-unfit"))
        status, text = self.foliot("host", "check", "away")
        self.assertEqual((status, "silent" in text or "not heard" in text), (1, True), text)
        # An agent of the version before: it reports, without the feature of measurements.
        status, _ = self.post("/agent/v1/report", wire.batch([(1, wire.report(covers=1000))], oldest=1), **self.identity("old"))
        self.assertEqual(status, 200)
        status, answer = self.ask_for({"kind": "host-check", "host": "old"})
        self.assertEqual((status, "too old" in answer["error"]["message"]), (409, True), answer)

    def roles(self):
        viewer = self.request("POST", "/api/v1/tokens", {"name": "looks", "role": "viewer"})[2]["token"]
        self.assertEqual(self.ask_for({"kind": "host-check", "host": "h2"}, token=viewer)[0], 403)
        self.assertEqual(self.request("GET", "/api/v1/measurements", token=viewer)[0], 200)
        tenant = self.request("POST", "/api/v1/tokens", {"name": "tenant", "role": "viewer", "scope": "h1"})[2]["token"]
        self.assertEqual(self.request("GET", "/api/v1/measurements", token=tenant)[0], 403)

    def check(self, host, reached):
        """Repeats until reached(answer): an agent without a processor answers late or not at all, and a clock out of step gives
        no delays."""
        text = ""

        def measured():
            nonlocal text
            status, text = self.foliot("host", "check", host, "--seconds", "1", "--json")
            answer = json.loads(text) if text.startswith("{") else {"paths_measured": 0, "paths_all": 1}
            whole = answer["paths_measured"] == answer["paths_all"] and all(p["lost"] is not None for p in answer["paths"])
            return whole and reached(answer) and (status, answer)
        status, answer = self.wait(measured, 20, lambda: f"all paths of {host} measured as expected: {text}")
        self.assertEqual(status, 0 if answer["answer"] == "yes" else 1, text)
        return answer

    @staticmethod
    def nothing_lost(answer):
        expected = {(own, answer["packets_per_path"], 0) for own in (True, False)}
        return {(p["own"], p["sent"], p["lost"]) for p in answer["paths"]} == expected

    @staticmethod
    def bad(answer):
        return [r for r in answer["reasons"] if r["check"] in ("loss", "dead")]

    def matrix(self):
        def measured():
            status, text = self.foliot("mesh", "--full", "--json")
            cells = {(c[0], c[1]): c for c in json.loads(text)["cells"]} if status == 0 else {}
            return all(c[2] is not None for c in cells.values()) and cells
        cells = self.wait(measured, 20, "a whole matrix")
        # Three hosts with two NICs each can measure: all their pairs, and no others.
        self.assertEqual(set(cells), {(a, b) for a in range(6) for b in range(6) if a // 2 != b // 2})
        self.assertTrue(all(0 < c[2] < 1e8 for c in cells.values()), cells)
        return self.get("/api/v1/measurements")["items"][0]["id"]

    def test_measure(self):
        # quiet hosts join last, so that NICs 0 to 5 are those of h0 to h2; and late, because with them h0 to h2 are hardly a
        # majority
        self.start(report="5s", beat="1s")
        self.members(0, 1, 2)
        self.wait(lambda: all((self.host(f"h{i}") or {})["clock"]["status"] == "SYNCED" for i in range(3)), 20,
                  lambda: str([self.host(f"h{i}")["clock"] for i in range(3)]))
        self.join(3, name="old", nics=("nic0",))
        self.join(3, name="away", nics=("nic1",))
        self.refused()
        self.roles()
        # A host like the others. This test allows changed delays as a reason, because a busy machine causes them, and no other
        # reason.
        answer = self.check("h2", self.nothing_lost)
        self.assertLessEqual({r["check"] for r in answer["reasons"] if r["result"] != "good"}, {"delay", "tail"}, answer)
        self.assertEqual((answer["paths_measured"], answer["state"]), (answer["paths_all"], "done"), answer)
        self.assertTrue(any(s.startswith("old: ") for s in answer["skipped"]), answer)
        said = []

        def whole():  # an agent without a processor takes no part in one of them
            said[:] = [self.foliot("host", "check", "h2", "--seconds", "1")[1]]
            return re.search("(?s)^(yes|no): .* probes on each, by 3 hosts", said[0])
        self.wait(whole, 20, lambda: said[0])
        number = self.matrix()
        # One of its NICs loses received packets: the answer is no, with that NIC and that direction, and the other NIC isn't
        # named.
        tc = ("ip", "netns", "exec", self.space("h2"), "tc")
        fleet.run(*tc, "qdisc", "add", "dev", "nic1", "clsact")
        fleet.run(*tc, "filter", "add", "dev", "nic1", "ingress", "bpf", "da", "bytecode", ONE_IN_THREE_DROPPED)
        answer = self.check("h2", lambda a: {(r["nic"], r["direction"]) for r in self.bad(a)} == {(5, "in")})
        bad = self.bad(answer)
        self.assertEqual(answer["answer"], "no", answer["reasons"])
        self.assertIn("its cohort -> h2/nic1: ", bad[0]["text"])
        self.assertIn("h2/nic1, its cable or its switch port", bad[0]["suspect"])
        self.assertIn("its cohort -> h2/nic1: ", answer["sentence"])
        self.bounded(number)

    def begun(self, host):
        """Begins a check of a minute by all hosts, once they are heard: a host that pauses for some seconds is unfit for the
        moment."""
        def running():
            if not all(self.host(f"h{i}")["freshness"] == "live" for i in range(3)):
                return None
            status, answer = self.ask_for({"kind": "host-check", "host": host, "seconds": 60})
            if status == 409:
                self.assertEqual(answer["error"]["code"], "host-unfit", answer)
                return None
            self.assertEqual((status, answer["state"]), (200, "running"), answer)
            return answer
        return self.wait(running, 10, lambda: str(self.host(host)))

    def bounded(self, number):
        """One runs at a time. An operator can stop it. A host that leaves is given up, and nothing hangs."""
        first = self.begun("h2")
        self.assertEqual(self.code({"kind": "host-check", "host": "h1"}), (409, "busy"))
        self.wait(lambda: self.get(f"/api/v1/measurements/{first['id']}")["packets_sent"] > 0, 5, "probes")
        status, _, answer = self.request("DELETE", f"/api/v1/measurements/{first['id']}")
        self.assertEqual((status, answer["state"], answer["answer"]), (200, "stopped", "unknown"))
        second = self.begun("h2")
        self.assertEqual(self.request("DELETE", "/api/v1/hosts/h1")[0], 200)
        self.wait(lambda: any(h["host"] == "h1" and h["trouble"] for h in self.get(f"/api/v1/measurements/{second['id']}")["hosts"]), 10,
                  lambda: str(self.get(f"/api/v1/measurements/{second['id']}")["hosts"]))
        self.request("DELETE", f"/api/v1/measurements/{second['id']}")
        self.assertEqual(self.request("GET", "/api/v1/measurements/999")[0], 404)
        # A tenant without a host in it can't see it.
        nobody = self.request("POST", "/api/v1/tokens", {"name": "nobody", "role": "viewer", "scope": "z-*"})[2]["token"]
        self.assertEqual([self.request("GET", f"/api/v1/latency?measurement={number}", token=t)[0] for t in ("admin", nobody)], [200, 404])
        # The matrix is kept. The audit trail has both requests.
        self.assertEqual(len(self.get(f"/api/v1/latency?measurement={number}")["cells"]), 8)  # without h1's
        self.assertEqual(self.request("GET", "/api/v1/latency?measurement=999")[0], 404)
        self.assertLessEqual({"measurement.start", "measurement.stop"}, {a["what"] for a in self.get("/api/v1/audit")["items"]})


class TestWhoeverAsks(fleet.Fleet):
    """What an agent refuses, and how often it is read, when a controller asks that has the real controller's key."""
    HOSTS = 1

    @staticmethod
    def plan(kind, name):
        """A plan of tests (16) or a matrix (15) that no agent carries out: for a list of members that it does not have."""
        numbers = {3: 2, 4: 1, 6: 5, 8: 20000, 9: 2000} if kind == 15 else {4: 3500, 5: 1000}
        lists = wire.packed(5, (1, 2)) + wire.fixed64(7, 10**18) if kind == 15 else wire.data(6, wire.number(2, 2)) + wire.data(7, bytes(16))
        return wire.data(kind, wire.fixed64(1, name) + wire.number(2, 99) + b"".join(wire.number(k, v) for k, v in numbers.items()) + lists)

    def serve(self, next_answer):
        """Requests of the agent, one after the other, until next_answer(whether there was a report) is None."""
        with self.listen("10.90.0.1", 7638) as server:
            server.settimeout(fleet.IO_S)
            while True:
                plain, _ = server.accept()
                plain.settimeout(fleet.IO_S)
                with self.place_context().wrap_socket(plain, server_side=True) as tls, tls.makefile("rb") as stream:
                    while line := stream.readline():
                        size = 0
                        while line.strip():
                            size = int(line.split(b":")[1]) if line.lower().startswith(b"content-length:") else size
                            line = stream.readline()
                        reports = wire.fields(stream.read(size)).get(11, [])
                        answer = next_answer(bool(reports))
                        if answer is None:
                            return
                        answer += wire.number(1, 1) + (wire.number(2, wire.fields(reports[-1])[1][0]) if reports else b"")
                        tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)

    def test_an_agent_refuses(self):
        controller = self.start(beat="200ms")
        self.join(0)
        self.write("h0.yaml", self.read(self.path("h0.yaml")) + f"inspect: {shutil.which('true')}\n")
        agent = self.agent(0)
        self.wait(lambda: (self.host("h0") or {}).get("paths") is not None, 15, agent.log)
        controller.stop()
        # plans, each sent again, and an older one after it: a replayed one is not even examined
        plans = [self.plan(kind, name) for name in (1 << 62, (1 << 62) + 9) for kind in (15, 16) for name in (name, name, name - 1)]
        self.serve(lambda _: plans.pop(0) if plans else None)
        for what in ("tests that the controller asks for are refused", "a matrix of all NICs that the controller asks for is refused"):
            agent.wait_log(what + ": it is for another version of the fleet's list than this host has")
            self.assertEqual(agent.log().count(what), 2, agent.log())
        # a look after the other: 60, and one a minute
        begin, look = time.monotonic(), 1

        def looked(reported):
            nonlocal look
            look += reported
            return None if look > 200 or "audits have read it so often" in agent.log() else wire.data(14, wire.fixed64(1, look) + wire.number(2, 1))
        self.serve(looked)
        self.assertIn(agent.log().count("foliot-inspect gave no sheet"), range(60, 62 + int(time.monotonic() - begin) // 60), agent.log())


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)
