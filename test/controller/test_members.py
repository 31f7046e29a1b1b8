#!/usr/bin/env python3
"""test_members.py FOLIOT-CONTROLLER FOLIOT-AGENT FOLIOT: which entries the fleet's list of members may have, at both ends.

A host that agents would refuse must not keep others from joining, nor agents from starting: it is refused when it joins. If a
list has such a host, every agent keeps its earlier list, and the operator gets a message.
"""
import http.server
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import unittest

import fleet
import wire


def nic(name="eth7", leaf="", address=b"\x0a\x59\x00\x63", rail=0, address6=b"", number=0):
    return wire.number(1, number) + wire.data(2, name) + wire.number(3, rail) + wire.data(4, leaf) + wire.data(5, address) + \
        wire.data(6, address6)


class Controller(threading.Thread):
    """A controller that answers each report with these lists of members, and keeps the agents' reports."""

    def __init__(self, case):
        super().__init__(daemon=True)
        self.case, self.reply, self.heard = case, wire.number(1, 1), []
        this = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # noqa: N802
                body = self.rfile.read(int(self.headers["Content-Length"]))
                this.heard.append(wire.fields(body))
                reply = this.answer(this.heard[-1])
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *arguments):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self.server.socket.close()
        self.server.socket = case.place_context().wrap_socket(case.listen("10.90.0.1", 7638), server_side=True)
        self.server.daemon_threads = True

    def run(self):
        self.server.serve_forever(0.1)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, heard):
        return self.reply

    def tell(self, version, *nics):
        hosts = wire.data(2, wire.data(1, "h0") + wire.data(2, nic("nic0", address=b"\x0a\x59\x00\x0a")) +
                          wire.data(2, nic("nic1", address=b"\x0a\x59\x00\x0b", rail=1, number=1)))
        other = wire.data(2, wire.data(1, "hx") + b"".join(wire.data(2, n) for n in nics))
        self.reply = wire.number(1, 1) + wire.data(4, wire.number(1, version) + hosts + other)

    def refused(self):
        """Of the last report: what was refused, the reason, and the list in force."""
        last = self.heard[-1] if self.heard else {}
        return last.get(20, [0])[0], last.get(19, [b""])[0].decode(), last.get(7, [0])[0]


class Members(fleet.Fleet):
    def request_of(self, host):
        fleet.run("openssl", "req", "-newkey", "ed25519", "-nodes", "-keyout", self.path("x.key"), "-out", self.path("x.csr"),
                  "-subj", f"/CN={host}")
        return self.read(self.path("x.csr"))

    def ask_to_join(self, host, *nics):
        """Asks as a host that checks nothing itself."""
        secret = self.token[4:47]
        body = wire.number(1, 1) + wire.data(2, secret) + wire.data(3, host) + wire.data(4, self.request_of(host)) + \
            b"".join(wire.data(5, n) for n in nics) + wire.data(6, "test")
        status, answer = self.post("/agent/v1/join", body)
        return status, answer.decode(errors="replace")

    def list_of(self, host):
        """The list that the host's agent has on its disk, as YAML."""
        return fleet.run(self.AGENT, "--config", self.path(f"{host}.yaml"), "members").stdout

    def fill_store(self, count, leaf):
        """Adds NICs 2 to count, of hosts x1000 and so on with 15 each, copied from the host that has joined."""
        with sqlite3.connect(self.path("data", "store.db")) as store:
            hosts = [row[1] for row in store.execute("pragma table_info(host)")]
            nics = [row[1] for row in store.execute("pragma table_info(nic)")]
            (host,) = store.execute(f"select {', '.join(hosts)} from host").fetchall()
            one = store.execute(f"select {', '.join(nics)} from nic where id = 0").fetchone()

            def add(table, names, row, **changes):
                row = [changes.get(name, value) for name, value in zip(names, row, strict=True)]
                store.execute(f"insert into {table}({', '.join(names)}) values ({', '.join('?' * len(row))})", row)
            for i in range(1, count):
                if i % 15 == 1:
                    owner = 1000 + i // 15
                    add("host", hosts, host, id=owner, name=f"x{owner}")
                add("nic", nics, one, id=1 + i, host=owner, name=f"e{i % 15}", leaf=leaf(i), address4=bytes([10, 1, i >> 8, i & 255]))
        store.close()

    def test_refused_where_it_joins(self):
        c = self.start()
        (agent,) = self.members(0)
        for leaf in ("rack 12", "a" * 64, 'x"y', "\x1b[2J"):
            done = self.join(1, check=False, leaf=leaf)
            self.assertEqual(done.returncode, 1)
            self.assertIn("expected a leaf of 1 to 63 of", done.stderr)
            self.assertNotIn("\x1b", done.stderr)
        for why, wrong in (("a leaf of 1 to 63", nic(leaf="rack 12")), ("a leaf of 1 to 63", nic(leaf="\x1b[2J")),
                           ("an interface of 1 to 15", nic("eth 7")), ("an interface of 1 to 15", nic("")),
                           ("an IPv4 address of one NIC", nic(address=b"\xe0\0\0\1")),
                           ("an IPv4 address of one NIC", nic(address=b"\xff\xff\xff\xff")),
                           ("an IPv4 address of one NIC", nic(address=b"\0\0\0\0")),
                           ("an IPv6 address of one NIC", nic(address=b"", address6=b"\xff\x02" + bytes(13) + b"\1")),
                           ("an IPv6 address of one NIC", nic(address=b"", address6=b"\xfe\x80" + bytes(13) + b"\1")),
                           ("an IPv6 address of one NIC", nic(address6=bytes(16))),
                           ("an address", nic(address=b"")), ("a rail below", nic(rail=65535)),
                           ("addresses of 4 and 16 bytes", nic(address=b"\1\2\3"))):
            with self.subTest(why):
                status, text = self.ask_to_join("hx", wrong)
                self.assertEqual(status, 400, text)
                self.assertIn(f"expected {why}", text)
                self.assertNotIn("\x1b", text)
        self.assertIn("each name and each address once", self.ask_to_join("hx", nic(), nic("eth8"))[1])
        self.assertIn("each name and each address once", self.ask_to_join("hx", nic(), nic(address=b"\1\2\3\4"))[1])
        self.assertEqual([h["name"] for h in self.get("/api/v1/hosts")["items"]], ["h0"])
        self.join(1, leaf="rack-12")  # later hosts join, and agents get their entries
        agent.wait_log("members, version .*: 4 NICs of 2 hosts")
        self.assertNotIn("\x1b", c.log())

    def test_as_many_leaves_as_agents_take(self):
        """4,096 names: the next one is refused, one of these is not."""
        c = self.start()
        self.join(0, leaf="leaf-0")
        c.stop()
        self.fill_store(4096, lambda i: f"leaf-{i}")
        self.controller()
        status, text = self.ask_to_join("hx", nic(leaf="leaf-new"))
        self.assertEqual((status, text.strip()), (400, "expected at most 4096 leaves in the fleet"))
        self.assertEqual(self.ask_to_join("hx", nic(leaf="leaf-4095"))[0], 200)

    def test_a_list_that_changes_between_its_pages(self):
        """A host of the first page leaves, and another host joins with its address: the next page has both changes."""
        c = self.start()
        self.join(0)
        c.stop()
        self.fill_store(5000, lambda i: "")
        self.controller()

        def page(cursor, base):
            wish = wire.batch(protocol=2) + wire.fixed64(24, 1) + wire.number(25, cursor) + wire.number(26, base)
            reply = wire.fields(wire.unsqueeze(self.post("/agent/v1/report", wish, **self.identity("h0"))[1], 4 << 20))
            return wire.fields(reply[13][0])
        first = page(1, 0)
        version, (cursor,) = first[2][0], first[7]
        self.assertEqual(self.request("DELETE", "/api/v1/hosts/x1000")[0], 200)
        self.assertEqual(self.ask_to_join("hx", nic(address=bytes([10, 1, 0, 1])))[0], 200)
        last = page(cursor, version)
        self.assertEqual((last[2], last.get(7), last[5]), ([version], None, [b"\1"]))
        self.assertEqual(wire.fields(last[4][-1])[1], [b"hx"])
        names = [wire.fields(h)[1][0] for h in first[4] + last[4]]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(len(names), 2 + (5000 + 13) // 15)

    def test_an_agent_keeps_the_last_good_list(self):
        c = self.start()
        (agent,) = self.members(0)
        c.stop()
        version = int(self.list_of("h0").split("version: ")[1].split()[0])
        impostor = Controller(self)
        impostor.start()
        try:
            for more, (why, *nics) in enumerate((("expected a leaf", nic("eth7", "rack 12", number=2)),
                                                 ("expected an IPv4 address of one", nic("eth7", address=b"\xe0\0\0\1", number=2)),
                                                 ("expected each address once", nic("eth7", number=2), nic("eth8", number=3)),
                                                 ("expected each NIC's id once", nic("eth7", number=1))), 1):
                with self.subTest(why):
                    impostor.tell(version + more, *nics)
                    self.wait(lambda: impostor.refused()[0] == version + more, 10, lambda: str(impostor.refused()) + agent.log())
                    self.assertIn(why, impostor.refused()[1])
                    self.assertEqual(impostor.refused()[2], version)
                    self.assertIn(why, self.ask("h0")["config"]["error"])
            agent.stop()
            agent = self.agent(0)  # it starts, from the last good one
            agent.wait_log("host h0, 2 NICs, fleet of 2 NICs on 1 hosts")
            impostor.tell(version + 9, nic("eth7", number=2))
            agent.wait_log("reloaded .*: 3 NICs of 2 hosts")
            self.wait(lambda: impostor.refused() == (0, "", version + 9), 10, lambda: str(impostor.refused()))
            self.assertIsNone(self.ask("h0")["config"]["error"])
        finally:
            impostor.stop()

    def version_of(self, host):
        return int(re.search(r"^version: (\d+)", self.list_of(host), re.M)[1])

    def test_removed_and_joined_again_under_its_name(self):
        """Agents of protocol 1 are told of removed hosts, too: a name that stands twice has one key. One agent of this version is
        killed meanwhile, again and again: its list on the disk stays good."""
        c = self.start()
        agent, other = self.members(0, 1)
        other.stop()
        for n in range(3):
            self.assertEqual(self.request("DELETE", "/api/v1/hosts/h1")[0], 200)
            agent.stop(signal.SIGKILL)
            self.assertRegex(self.list_of("h0"), "^version: ")
            for name in ("state-h1", "h1.yaml"):
                fleet.run("rm", "-rf", self.path(name))
            self.join(1)
            agent = self.agent(0)
            version = self.get("/api/v1/status")["fleet_version"]
            self.wait(lambda: self.version_of("h0") == version, 10, agent.log)
        listed = self.list_of("h0")
        self.assertEqual(len(re.findall('host: "h1"', listed)), 2)
        self.assertEqual(len(re.findall('"h1": ', listed)), 1)
        self.assertNotIn("refused", agent.log())
        # the whole list, in protocol 1
        status, body = self.post("/agent/v1/report", wire.batch(), **self.identity("h0"))
        hosts = [wire.fields(h) for h in wire.fields(wire.fields(wire.unsqueeze(body))[4][0])[2]]
        self.assertEqual([h[1][0] for h in hosts], [b"h0"] + [b"h1"] * 4)
        self.assertEqual([len(h.get(3, [])) for h in hosts], [0, 0, 0, 0, 1])  # that report removed its own
        self.assertEqual(status, 200, c.log())

    def test_far_behind(self):
        """An agent is 5,000 versions behind, and the controller restarts in the middle. The list comes in pages, and in the end
        it is the controller's. An agent that is a little behind gets only the changes from the same controller."""
        c = self.start()
        agent, other = self.members(0, 1)
        other.stop()
        agent.stop()
        behind = self.version_of("h0")
        c.stop()
        with sqlite3.connect(self.path("data", "store.db")) as store:
            store.execute("update setting set value = cast(? as text) where name = 'fleet_version'", (str(behind + 5000),))
            if store.execute("select typeof(value) from setting where name = 'fleet_version'").fetchone()[0] != "blob":
                store.execute("update setting set value = cast(value as blob) where name = 'fleet_version'")
        store.close()
        c = self.controller()
        agent = self.agent(0)
        agent.wait_log("reloaded .*: 4 NICs of 2 hosts")
        self.assertEqual(self.version_of("h0"), behind + 5000)
        agent.stop()
        self.join(2)
        c.stop()
        self.controller()
        agent = self.agent(0)
        agent.wait_log("members, version .*: 2 NICs joined, 0 left: 6 NICs of 3 hosts")
        self.assertNotIn("reloaded", agent.log())

    def test_a_damaged_list(self):
        """An agent with a damaged file begins with itself alone, logs the reason, and gets the list again. An agent that runs
        needs no file, and writes it again with the next change."""
        self.start()
        agent, _ = self.members(0, 1)
        agent.wait_log("4 NICs of 2 hosts")
        agent.stop()
        with open(self.path("state-h0", "fleet.yaml.members"), "r+b") as file:
            file.seek(65540)
            file.write(b"rubbish")
        agent = self.agent(0)
        agent.wait_log("fleet.yaml.members: expected a list of members as agents keep it, found .*damaged")
        self.wait(lambda: 'host: "h1"' in self.list_of("h0"), 10, agent.log)
        os.truncate(self.path("state-h0", "fleet.yaml.members"), 0)  # an administrator restores a backup
        self.join(2)
        agent.wait_log("members, version .*: 6 NICs of 3 hosts")
        self.assertEqual(self.ask("h0", "mesh")["host"], "h0")
        self.wait(lambda: 'host: "h2"' in self.list_of("h0"), 10, agent.log)

    def test_a_list_that_never_is_the_controllers(self):
        """Its digest never matches: the whole list is sent once, not with each report."""
        c = self.start()
        (agent,) = self.members(0)
        c.stop()
        version = self.version_of("h0") + 1
        own = wire.data(1, "h0") + wire.data(2, nic("nic0", address=b"\x0a\x59\x00\x0a")) + \
            wire.data(2, nic("nic1", address=b"\x0a\x59\x00\x0b", rail=1, number=1))
        page = wire.data(13, wire.number(2, version) + wire.data(4, own) + wire.number(6, 1))
        told = []

        def answer(heard):
            if heard.get(7, [0])[0] == version and heard.get(24, [0])[0] == 0:
                return wire.number(1, 2)
            told.append(heard)
            return wire.number(1, 2) + page
        impostor = Controller(self)
        impostor.answer = answer
        impostor.start()
        try:
            self.wait(lambda: len(impostor.heard) > 6, 20, agent.log)
            self.assertEqual(len(told), 1, agent.log())
            self.assertEqual(impostor.heard[-1][7], [version])
        finally:
            impostor.stop()

    def test_keys_of_probes_reach_all(self):
        """Each agent makes its key, and all lists have it. It survives the controller, and follows a host that is installed
        again."""
        c = self.start()
        agents = self.members(0, 1)
        own = {host: self.read(self.path(f"state-{host}", "pair.key")).strip() for host in ("h0", "h1")}

        def listed(host):
            return dict(re.findall(r'"(h\d)": "([0-9a-f]{64})"', self.list_of(host)))
        for host in ("h0", "h1"):
            self.wait(lambda: set(listed(host)) == {"h0", "h1"}, 20, lambda: str(listed(host)))
            self.assertFalse(set(own.values()) & set(listed(host).values()), "a secret half is in the list")
        self.assertEqual(listed("h0"), listed("h1"))
        # what an agent of before begins with, if the host is taken back to one: it refuses a list with more than these
        self.assertEqual(re.findall(r"^(\w+):", self.read(self.path("state-h0", "fleet.yaml")), re.M), ["version", "hosts", "peers"])
        before = listed("h0")
        c.stop()
        self.controller()
        for i, agent in enumerate(agents):
            agent.stop()
            os.unlink(self.path("state-h0", "pair.key")) if i == 0 else None  # a host that is installed again
            self.agent(i)
        self.wait(lambda: listed("h1").get("h0") not in (None, before["h0"]), 20, lambda: str(listed("h1")))
        self.assertEqual(listed("h1")["h1"], before["h1"])

    def test_a_key_that_changes_all_the_time(self):
        """Each change gives every agent a new list to read: for one host a few an hour are allowed."""
        c = self.start()
        agents = self.members(0, 1)
        self.wait(lambda: len(re.findall("[0-9a-f]{64}", self.list_of("h0"))) == 2, 20, c.log)
        agents[1].stop()
        for n in range(9):  # the first came with the join
            status = self.post("/agent/v1/report", wire.batch() + wire.data(23, bytes([n] * 32)), **self.identity("h1"))[0]
            self.assertEqual(status, 200)
        self.wait(lambda: f'"h1": "{"05" * 32}"' in self.list_of("h0"), 20, lambda: self.list_of("h0"))
        self.assertEqual(c.log().count("host h1 changes the key of its probes"), 1)

    def test_a_store_of_before_has_one(self):
        """An older controller admitted such a member. The others go on without it, and the operator gets the reason."""
        c = self.start()
        agents = self.members(0, 1)
        self.join(2)
        c.stop()
        with sqlite3.connect(self.path("data", "store.db")) as store:
            columns = [row[1] for row in store.execute("pragma table_info(nic)")]
            store.execute(f"update nic set leaf = 'rack 12' where {columns[0]} = 4")
            self.assertEqual(store.total_changes, 1)
            store.execute("update setting set value = cast(cast(cast(value as text) as integer) + 1 as text) where name = 'fleet_version'")
        store.close()
        c = self.controller()
        c.wait_log("host h2 is left out of the list of members")
        self.wait(lambda: self.host("h2")["members_refused"] is not None, 5, "the reason")
        self.assertIn("expected a leaf", self.host("h2")["members_refused"])

        def told():
            return [i for i in self.get("/api/v1/incidents")["items"] if "list of members" in i["text"]]
        self.wait(told, 10, lambda: str(self.get("/api/v1/incidents")))

        def newest(agent, list_):  # as a change, or the whole list if a slow agent has missed one
            self.wait(lambda: re.findall(r": (\d+ NICs of \d hosts)", agent.log())[-1:] == [list_], 8, agent.log)
        for agent in agents:
            newest(agent, "4 NICs of 2 hosts")
        status, _, _ = self.request("DELETE", "/api/v1/hosts/h2")
        self.assertEqual(status, 200)
        self.wait(lambda: not any(i["state"] == "open" for i in told()), 10, lambda: str(told()))
        self.join(2, name="h3")  # the same NICs, as a host of another name
        for i, agent in enumerate(agents):
            newest(agent, "6 NICs of 3 hosts")
            agent.stop()
            self.agent(i).wait_log("fleet of 6 NICs on")


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    fleet.Fleet.CONTROLLER, fleet.Fleet.AGENT, fleet.Fleet.FOLIOT = sys.argv[1:4]
    del sys.argv[1:4]
    unittest.main(verbosity=2)
