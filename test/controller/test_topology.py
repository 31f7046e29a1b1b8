#!/usr/bin/env python3
"""The declared topology compared with the hosts' reports. usage: test_topology.py CONTROLLER AGENT FOLIOT"""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleet  # noqa: E402
import wire  # noqa: E402

fleet.Fleet.FOLIOT = os.path.abspath(sys.argv.pop(3))
fleet.Fleet.AGENT = os.path.abspath(sys.argv.pop(2))
fleet.Fleet.CONTROLLER = os.path.abspath(sys.argv.pop(1))

GOOD = """leaves: [leaf1, leaf2]
spines: [spine1]
hosts:
  h0: {nic0: {rail: 0, leaf: leaf1, port: Ethernet1}, nic1: {rail: 1, leaf: leaf2}}
  h1: {nic0: {rail: 0, leaf: leaf1}, nic1: {rail: 1, leaf: leaf2}}
  h2: {nic0: {rail: 0, leaf: leaf1}, nic1: {rail: 1, leaf: leaf2}}
"""


class TestTopology(fleet.Fleet):
    def foliot(self, *arguments):
        done = subprocess.run(["ip", "netns", "exec", self.space("c"), self.FOLIOT, *arguments], text=True, check=False,
                              capture_output=True, env=dict(os.environ, FOLIOT_TOKEN=self.admin))
        return done.returncode, done.stdout + done.stderr

    def say(self, i, near, down=(), number=1):
        """h<i> reports: ways over one switch from its NICs, and over three to all others; and NICs without a link."""
        rows = [(2 * i + k, other, 1 if (2 * i + k, other) in near else 3) for k in (0, 1) for other in range(6) if other // 2 != i]
        table = (wire.fixed64(1, 99 + number) + wire.packed(6, [r[0] for r in rows]) + wire.packed(7, [r[1] for r in rows]) +
                 wire.packed(8, [7640] * len(rows)) + wire.packed(9, [r[2] for r in rows]))
        # Switches answer from addresses beside NICs, and a spine has a name. h0 has an older agent, which names none.
        if i > 0:
            table += wire.packed(10, [n for r in rows for n in ([1] if r[2] == 1 else [2, 3, 4])])
            table += b"".join(wire.data(11, name) for name in ("leaf1", "10.0.0.1", "spine1", "10.0.9.1"))
        ports = [wire.number(1, 2 * i + k) + wire.number(2, 2 if 2 * i + k in down else 1) for k in (0, 1)]
        report = wire.report(covers=1000, ports=ports, extra=wire.data(7, table))
        status, body = self.post("/agent/v1/report", wire.batch([(number, report)], oldest=number), **self.identity(f"h{i}"))
        self.assertEqual(status, 200, body)

    def name(self, i, names, number):
        """h<i> reports ways over so many switches, two for each."""
        rows = [(2 * i, other, port) for other in range(6) if other // 2 != i for port in range(7640, 7690)][:len(names) // 2]
        table = (wire.fixed64(1, 7000 + number) + wire.packed(6, [r[0] for r in rows]) + wire.packed(7, [r[1] for r in rows]) +
                 wire.packed(8, [r[2] for r in rows]) + wire.packed(9, [2] * len(rows)) +
                 wire.packed(10, range(1, 2 * len(rows) + 1)) + b"".join(wire.data(11, n) for n in names))
        report = wire.report(covers=1000, extra=wire.data(7, table))
        status, body = self.post("/agent/v1/report", wire.batch([(number, report)], oldest=number, sealed=wire.squeeze), **self.identity(f"h{i}"))
        self.assertEqual(status, 200, body)

    def test_one_host_does_not_fill_the_table_of_switches(self):
        c = self.start(report="20s", beat="10s")
        for i in (0, 1, 2):
            self.join(i)
        for n in range(3):
            self.name(1, [f"made-up-{n}-{k}" for k in range(200)], n + 1)
        c.wait_log("host h1 names more than 256 switches")
        self.name(2, ["leaf1", "spine1"], 1)
        self.wait(lambda: {"leaf1", "spine1"} <= {s["name"] for s in self.get("/api/v1/fabric")["switches"]}, 6,
                  lambda: str(len(self.get("/api/v1/fabric")["switches"])))
        made_up = [s for s in self.get("/api/v1/fabric?limit=1000")["switches"] if s["name"].startswith("made-up")]
        self.assertLessEqual(len(made_up), 256)
        self.assertEqual(c.stop(), 0)

    def differences(self):
        return {(d["difference"], d["host"], d["name"]): d for d in self.get("/api/v1/topology")["differences"]}

    def test_topology(self):
        c = self.start(report="20s", beat="10s")
        for i in (0, 1, 2):
            self.join(i)
        status, text = self.foliot("topology")
        self.assertEqual((status, "no topology is declared" in text), (0, True), text)
        # As declared: rails are separate, and one rail is on one leaf.
        near = {(a, b) for a in range(6) for b in range(6) if a % 2 == b % 2}
        for i in (0, 1, 2):
            self.say(i, near)
        path = self.write("topology.yaml", GOOD)
        status, text = self.foliot("topology", "declare", path, "--why", "as built")
        self.assertEqual((status, "the real topology does not differ" in text), (0, True), text)
        seen = [n["leaf_seen"] for h in self.get("/api/v1/topology")["hosts"] for n in h["nics"]]
        self.assertEqual(seen, ["leaf1", "leaf2"] * 3)
        self.between()
        # h2's two cables swapped at the switches, h1's nic1 without a link; a host too many, one too few, a wrong rail, a NIC too many.
        swap = {4: 5, 5: 4}
        swapped = {(a, b) for a in range(6) for b in range(6) if swap.get(a, a) % 2 == swap.get(b, b) % 2}
        for i in (0, 1, 2):
            self.say(i, swapped, down=(3,), number=2)
        self.assertEqual(set(self.differences()), {("miscabled", "h2", "nic0"), ("miscabled", "h2", "nic1"), ("no-link", "h1", "nic1")})
        self.assertIn("its cable is plugged into leaf2", self.differences()["miscabled", "h2", "nic0"]["text"])
        other = GOOD.replace("  h1:", "  h9: {nic0: {}}\n  h1:").replace("h0: {nic0: {rail: 0", "h0: {nic0: {rail: 3").replace(
            "nic1: {rail: 1, leaf: leaf2}}\n  h9", "nic7: {rail: 1}}\n  h9")
        self.write("topology.yaml", "".join(line for line in other.splitlines(True) if not line.startswith("  h2")))
        status, text = self.foliot("topology", "declare", path)
        self.assertEqual(status, 1)
        self.assertEqual(set(self.differences()), {("wrong-rail", "h0", "nic0"), ("missing-nic", "h0", "nic7"), ("undeclared-nic", "h0", "nic1"),
                                                   ("missing-host", "h9", None), ("undeclared-host", "h2", None), ("no-link", "h1", "nic1")})
        self.assertIn("h9 is declared (line 5) and is no member", text)
        self.mistakes(path)
        self.roles()
        # It is kept over a restart, with the earlier one.
        c.stop()
        self.controller()
        self.assertEqual([(v["version"], v["why"]) for v in self.get("/api/v1/topology/versions")["items"]], [(2, None), (1, "as built")])
        self.assertIn(("silent-host", "h0", None), self.differences())
        self.assertIn("topology.declare", {a["what"] for a in self.get("/api/v1/audit")["items"]})

    def between(self):
        """Two hosts have reported the switches on their ways, but not yet what arrives over these."""
        fabric = self.get("/api/v1/fabric")
        self.assertEqual((fabric["ways"], fabric["ways_known"]), (24, 16))
        self.assertEqual({(s["name"], s["tier"], s["declared"]) for s in fabric["switches"]},
                         {("leaf1", 0, "leaf"), ("leaf2", 0, "leaf"), ("10.0.0.1", 0, None), ("10.0.9.1", 0, None), ("spine1", 1, "spine")})
        self.assertEqual({(t["from"], t["to"], t["state"]) for t in fabric["trunks"]},
                         {("10.0.0.1", "spine1", "unknown"), ("spine1", "10.0.9.1", "unknown")})
        self.assertEqual((fabric["trunks_more"], self.get("/api/v1/fabric?limit=1")["trunks_more"]), (0, 1))
        self.assertEqual([x["first_switch"] for x in self.get("/api/v1/links")["items"]][:2], [None, None])

    def send(self, port, body):
        """Sends an LLDP frame from the other end of a cable."""
        code = ("import socket,sys; s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW); s.bind((sys.argv[1],0)); "
                "s.send(bytes.fromhex(sys.argv[2]))")
        fleet.run("ip", "netns", "exec", self.space("c"), sys.executable, "-c", code, port, "0180c200000e02000000000188cc" + body.hex())

    def switch_says(self, nic, name, port, ttl=3600):
        """The same on the cable of h0/nic<nic>."""
        def tlv(kind, value):
            return bytes([kind << 1 | len(value) >> 8, len(value) & 255]) + value
        self.send(f"p0x{nic}", tlv(1, b"\x04\x02\xaa\xbb\xcc\xdd\x0e") + tlv(2, b"\x05" + port.encode()) + tlv(3, ttl.to_bytes(2, "big")) +
                  tlv(5, name.encode()) + tlv(0, b""))

    def switches(self):
        return [(x["switch"], x["switch_port"]) for x in self.get("/api/v1/links")["items"]]

    def test_lldp(self):
        self.start(report="3s")
        self.join(0)
        agent = self.agent(0)
        self.wait(lambda: (self.host("h0") or {}).get("nics_up") == 2, 10, agent.log)
        self.foliot("topology", "declare", self.write("topology.yaml", GOOD))
        for body in (b"", b"\x04\x01", b"\x02"):  # a frame that is no LLDP gives no name
            self.send("p0x0", body + bytes(46))
        self.assertEqual(self.switches(), [(None, None)] * 2)
        self.switch_says(0, "leaf1", "Ethernet1")
        self.switch_says(1, "leaf1", "Ethernet2")
        self.wait(lambda: self.switches() == [("leaf1", "Ethernet1"), ("leaf1", "Ethernet2")], 6, lambda: str(self.switches()))
        self.assertEqual([n["switch_port"] for n in self.ask("h0", "links")["nics"]], ["Ethernet1", "Ethernet2"])
        # nic0 is where it is declared. nic1's switch has another name than declared.
        def miscabled():
            return [(d["name"], d["declared"], d["found"]) for d in self.get("/api/v1/topology")["differences"] if d["difference"] == "miscabled"]
        self.wait(lambda: miscabled() == [("nic1", "leaf2", "leaf1 port Ethernet2")], 6, lambda: str(miscabled()))
        # The suspect of a finding is named with its port. A farewell removes the name.
        self.ip("c", "link", "set", "p0x0", "down")
        self.wait(lambda: "(leaf1 port Ethernet1)" in agent.log(), 10, agent.log)
        self.another_suspects_it()
        self.switch_says(1, "leaf1", "Ethernet2", ttl=0)
        self.wait(lambda: self.switches()[1] == (None, None), 6, lambda: str(self.switches()))

    def another_suspects_it(self):
        """h1 doesn't know the ports of h0's NICs; the controller does."""
        self.join(1)
        words = [("h0/nic1 or its link", "nic", 1, "h0/nic1 or its link (leaf1 port Ethernet2)"),
                 ("h0/nic1 or its link", "nic", 0, "unknown, one of h0/nic1 or its link and others"), ("h0/nic or its link", "nic", 1, "unknown"),
                 ("h0/nic1", "trunk", 1, "unknown"), ("h1/nic0 or its link", "nic", 1, "h1/nic0 or its link")]
        events = []
        for number, (suspect, kind, confident, _) in enumerate(words, 1):
            body = wire.varint(1 << 3 | 5) + (7).to_bytes(4, "little") + wire.number(2, number) + wire.data(3, "path-dead")
            body += wire.number(5, 3) + wire.number(6, 2) + wire.data(16, kind) + wire.data(17, suspect) + wire.number(18, confident)
            events.append(wire.number(1, 1) + wire.number(2, 1000 << 1) + wire.data(4, body) + wire.data(7, "its own words"))
        status, body = self.post("/agent/v1/report", wire.batch([(1, wire.report(events))]), **self.identity("h1"))
        self.assertEqual(status, 200, body)
        said = {f["detail"]["number"]: f["detail"]["text"] for f in self.get("/api/v1/findings?host=h1")["items"]}
        for number, (_, _, _, text) in enumerate(words, 1):
            self.assertIn(f"; suspect: {text}; reported by h1", said[number])

    def mistakes(self, path):
        """The whole file is refused, with the place; the earlier declaration stays."""
        for text, place in ((GOOD.replace("leaf: leaf1, port", "leaf: leaf9, port"), "topology.yaml:4:30: expected one of `leaves`, found"),
                            (GOOD.replace("rail: 1, leaf: leaf2}}", "rail: no}}", 1), "topology.yaml:4:68: expected"),
                            (GOOD.replace("spines:", "spine:"), "topology.yaml:2:"),
                            (GOOD + "  h0: {}\n", "topology.yaml:7:3: expected each key once"),
                            ("leaves: [a, a]\nhosts: {}\n", "topology.yaml:1:13: expected each name once"),
                            ("hosts: [h0]\n", "topology.yaml:1:8: expected hosts, each a key"),
                            ("hosts: {h0: {nic0: {rail: 0}", "topology.yaml:2:1:")):
            self.write("topology.yaml", text)
            status, said = self.foliot("topology", "declare", path)
            self.assertEqual((status, place in said), (2, True), f"{place!r} in {said!r}")
        self.assertEqual(self.get("/api/v1/topology")["declared"]["version"], 2)

    def roles(self):
        operator = self.request("POST", "/api/v1/tokens", {"name": "acts", "role": "operator"})[2]["token"]
        self.assertEqual(self.request("POST", "/api/v1/topology", {"text": GOOD}, token=operator)[0], 403)
        self.assertEqual(self.request("GET", "/api/v1/topology", token=operator)[0], 200)
        large = {"text": "# " + "x" * (70 << 10) + "\n" + GOOD}
        self.assertEqual(self.request("POST", "/api/v1/topology", large, token=operator)[0], 413)
        self.assertEqual(self.request("POST", "/api/v1/config", large)[0], 413)


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)
