#!/usr/bin/env python3
"""The controller as operators, agents and strangers use it. usage: test_controller.py CONTROLLER AGENT FOLIOT"""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import struct
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleet  # noqa: E402
import wire  # noqa: E402

fleet.Fleet.FOLIOT = os.path.abspath(sys.argv.pop(3))
fleet.Fleet.AGENT = os.path.abspath(sys.argv.pop(2))
fleet.Fleet.CONTROLLER = os.path.abspath(sys.argv.pop(1))


def unpack(data):
    """docs/openapi.yaml's format=binary, written anew."""
    magic, n, m, step, at = struct.unpack_from("<4sIIIq", data)
    assert magic in (b"FLX1", b"FLX2")
    ids = struct.unpack_from(f"<{n}I", data, 24)
    first = struct.unpack_from(f"<{n + 1}I", data, 24 + 4 * n)
    place = 28 + 8 * n
    sender, p50, p99, state = (struct.unpack_from(f"<{m}{kind}", data, place + offset * m) for kind, offset in (("I", 0), ("h", 4), ("h", 6), ("B", 8)))
    more = [struct.unpack_from(f"<{m}B", data, place + offset * m) for offset in (9, 10)] if magic == b"FLX2" else []
    names = data[place + (9 + len(more)) * m:].decode().split("\n")

    def delay(code):
        k = abs(code) - 1
        s = k // 64 - 1
        ns = k if k < 64 else ((64 + k % 64) << s) + (1 << s) // 2
        return None if code == 0 else ns if code > 0 else -ns
    cells = [[ids[sender[i]], ids[row], delay(p50[i]), delay(p99[i]), state[i], *(column[i] for column in more)] for row in range(n) for i in range(first[row], first[row + 1])]
    return {"at_utc_ns": at, "step_ns": step * 10**9, "states": None, "columns": None, "cells": cells,
            "nics": [[nic, *name.split("\t")[0].split("/")] for nic, name in zip(ids, names[:-1], strict=True)]}


class TestFleet(fleet.Fleet):
    def test_openapi_examples(self):
        self.spec.examples()

    def test_what_nobody_watches_is_not_well(self):
        self.start(**fleet.PAUSE)
        self.join(0)
        numbers = iter(range(1, 99))

        def say(stamps, state=1, extra=b""):
            number = next(numbers)
            port = wire.number(1, 0) + wire.number(2, state) + wire.number(15, stamps)
            report = wire.report(covers=1000, ports=[port], extra=wire.data(5, wire.number(1, 1)) + extra)
            self.assertEqual(self.post("/agent/v1/report", wire.batch([(number, report)], oldest=number), **self.identity("h0"))[0], 200)
            return self.host("h0")
        self.assertEqual(say(2)["health"], "ok")
        for host in say(0), say(2, state=0):  # up, but no socket to probe from; a link that can't be read
            self.assertEqual((host["health"], host["nics_unwatched"]), ("warn", 1))
            self.assertEqual([(n["nic"], n["watched"]) for n in self.get("/api/v1/nics?unwatched=true")["items"]], [(0, False)])
            self.assertEqual(self.get("/api/v1/status")["watching"], {"nics": 2, "nics_unwatched": 1, "nics_unknown": 1, "hosts_sensors_off": 0})
        self.assertEqual(self.get("/api/v1/hosts?sensors_off=true")["items"], [])
        host = say(2, extra=wire.data(12, "routers can't be heard"))
        self.assertEqual((host["health"], host["nics_unwatched"], host["sensors_off"]), ("ok", 0, ["routers can't be heard"]))
        self.assertEqual(self.get("/api/v1/nics?unwatched=true")["items"], [])
        # no report has it for the other NIC
        self.assertEqual([n["watched"] for n in self.get("/api/v1/nics")["items"]], [True, None])
        self.assertEqual([h["name"] for h in self.get("/api/v1/hosts?sensors_off=true")["items"]], ["h0"])
        self.assertEqual(self.get("/api/v1/status")["watching"], {"nics": 2, "nics_unwatched": 0, "nics_unknown": 1, "hosts_sensors_off": 1})
        metrics = self.get("/metrics").decode()
        self.assertIn('foliot_host_sensors_off{host="h0"} 1', metrics)
        self.assertIn('foliot_host_nics_unwatched{host="h0"} 0', metrics)
        self.assertIn('foliot_hosts_by_mode{mode="none"} 1', metrics)
        # a path without packets in a rollup doesn't keep its old values
        table = (wire.fixed64(1, 9) + wire.packed(2, [0] * 4) + wire.packed(3, [1] * 4) + wire.packed(4, range(7640, 7644)) +
                 wire.data(5, bytes(32)))
        # an older agent repeats the last delays of a silent or dead path as if they were measured now
        rollup = (wire.fixed64(1, 9) + wire.packed(2, [65] * 4, True) + wire.packed(3, [65] * 4, True) + wire.packed(4, [0, 7, 0, 9]) +
                  wire.packed(5, [1, 3, 0, 4]))

        def paths():
            return [(p["state"], p["owd_ns_p50"], p["owd_ns_p99"], p["loss_ppm"]) for p in self.get("/api/v1/paths")["items"]]
        say(2, extra=wire.data(7, table) + wire.data(8, rollup))
        self.assertEqual(paths(), [("alive", 64, 64, 0), ("lossy", 64, 64, 7), ("unknown", None, None, None), ("dead", None, None, 10**6)])
        say(2)
        self.assertEqual(paths(), [("unknown", None, None, None)] * 4)
        self.assertEqual(self.get("/api/v1/latency")["cells"], [[1, 0, None, None, None, 0, None, None]])

    def test_join_report_see(self):
        controller = self.start()
        agents = self.members(0, 1)
        # the first agent gets the second's entry within seconds, and each measures the other
        self.wait(lambda: self.host("h0")["paths"] >= 2 and self.host("h1")["paths"] >= 2, 15,
                  lambda: str(self.host("h0")) + agents[0].log())
        hosts = self.get("/api/v1/hosts")["items"]
        self.assertEqual([h["name"] for h in hosts], ["h0", "h1"])
        self.wait(lambda: self.host("h0")["freshness"] == "live", 5, lambda: str(self.host("h0")) + agents[0].log())
        nics = self.get("/api/v1/nics")["items"]
        self.assertEqual([(n["nic"], n["host"], n["name"], n["rail"]) for n in nics],
                         [(0, "h0", "nic0", 0), (1, "h0", "nic1", 1), (2, "h1", "nic0", 0), (3, "h1", "nic1", 1)])
        self.wait(lambda: all(link["state"] == "up" for link in self.get("/api/v1/links")["items"]), 5, lambda: str(self.get("/api/v1/links")))
        self.wait(lambda: any(p["state"] == "alive" for p in self.get("/api/v1/paths?from=0&to=2")["items"]), 10, "a path")
        self.earlier = self.matrices()
        self.check_metrics(self.get("/metrics", headers={"Accept": "application/openmetrics-text"}))
        def control():
            return [self.ask("h0")["controller"][key] for key in ("address", "connected", "trouble")]
        self.wait(lambda: control() == ["10.90.0.1:7638", True, None], 5, lambda: str(control()))
        # a cut link is in all answers at once
        self.ip("c", "link", "set", "p1x0", "down")
        begin = time.monotonic()
        self.wait(lambda: any(e["word"] == "down" for e in self.events(kind="link", host="h1")), 2, lambda: str(self.events()) + str(self.get("/api/v1/links?host=h1")) + agents[1].log() + controller.log() + str(self.get("/api/v1/status")))
        print(f"link down -> event in {time.monotonic() - begin:.2f} s")
        self.wait(lambda: self.get("/api/v1/findings?open=true&host=h1")["items"], 3, "the finding")
        self.wait(lambda: self.host("h1")["health"] == "bad", 5, lambda: str(self.host("h1")))
        for agent in agents:
            self.assertEqual(agent.stop(), 0)
        self.wait(lambda: self.host("h0")["freshness"] == "stale", 6, "silence")
        self.assertEqual(self.host("h0")["health"], "unknown")
        # their last values are no longer current: the cells are unknown now, as at that time, and a silent direction isn't
        # measured
        self.wait(lambda: {(cell[2], cell[5]) for cell in self.get("/api/v1/latency")["cells"]} == {(None, 0)}, 6, "unknown cells")
        then = self.get(f"/api/v1/latency?at={self.earlier['at_utc_ns']}")
        self.assertEqual([(c[0], c[1], c[5]) for c in then["cells"]], [(c[0], c[1], 1) for c in self.earlier["cells"]])
        self.assertEqual(controller.stop(), 0)

    def matrices(self):
        """The matrix now, at this instant from the store, and in bytes; and at a time long ago, when there was none."""
        pairs = [(a, b) for a in range(4) for b in range(4) if a // 2 != b // 2]
        now = self.wait(lambda: (m := self.get("/api/v1/latency")) and sum(c[2] is not None for c in m["cells"]) == len(pairs) and m, 15,
                        lambda: str(self.get("/api/v1/latency")))
        self.assertEqual((now["at_utc_ns"], now["step_ns"]), (None, None))
        self.assertEqual(sorted((c[0], c[1]) for c in now["cells"]), pairs)

        def history():
            """Values of a step that ended five seconds ago, so that its last reports are there. The first report may have
            verdicts only, and a machine that pauses makes a path silent in some."""
            m = self.get(f"/api/v1/latency?at={time.time_ns() - 15 * 10**9}")
            return sorted((c[0], c[1]) for c in m["cells"]) == pairs and all(c[5] == 1 and c[7] == 0 and c[2] and c[2] < 10**9 for c in m["cells"]) and m
        at = self.wait(history, 60, lambda: str(self.get(f"/api/v1/latency?at={time.time_ns() - 15 * 10**9}")))
        self.assertTrue(all(c[6] > 0 and c[3] and c[2] <= c[3] for c in at["cells"]), at)
        self.assertEqual(at["step_ns"], 10**10)
        query = f"/api/v1/latency?at={at['at_utc_ns']}"

        def same():
            now = self.get(query)  # the last report of that slot may come between the two
            return all(unpack(self.get(f"{query}&format={version}")) == now | {"states": None, "columns": None, "cells": [c[:4] + c[5:width] for c in now["cells"]]}
                       for version, width in (("binary", 6), ("binary2", 8)))
        self.wait(same, 15, lambda: str((unpack(self.get(f"{query}&format=binary")), self.get(query))))

        def unchanged():
            _, headers, _ = self.request("GET", f"{query}&format=binary")
            self.assertEqual(headers["Content-Type"], "application/octet-stream")
            return self.request("GET", f"{query}&format=binary", headers={"If-None-Match": headers["ETag"]})[0] == 304
        self.wait(unchanged, 15, "304")
        none = self.get("/api/v1/latency?at=1700000000000000000")
        self.assertEqual((none["nics"], none["cells"]), (now["nics"], []))
        for query in ("at=0", "at=x", "at=-5", "format=xml"):
            self.assertEqual(self.request("GET", f"/api/v1/latency?{query}")[0], 400)
        return at

    def test_metrics_of_an_agent(self):
        self.start()
        self.join(0)
        self.write("h0.yaml", self.read(self.path("h0.yaml")) + "metrics_listen: 127.0.0.1:7636\n")
        self.agent(0)

        def get():
            try:
                sock = fleet.connect(self.space("h0"), "127.0.0.1", 7636)
            except OSError:
                return None
            sock.sendall(b"GET /metrics HTTP/1.0\r\nAccept: application/openmetrics-text\r\n\r\n")
            text = b""
            while part := sock.recv(65536):
                text += part
            sock.close()
            return text.split(b"\r\n\r\n", 1)[1]
        names = {name for name, _ in self.check_metrics(self.wait(get, 5, "metrics"))}
        self.assertLessEqual({"foliot_port_up", "foliot_packets_sent_total", "foliot_controller_connected"}, names)

    # ---- members ----

    def test_a_removed_host(self):
        self.start()
        a, b = self.members(0, 1)
        old = self.identity("h1")
        self.assertEqual(self.post("/agent/v1/report", wire.batch(), **old)[0], 200)
        environment = dict(os.environ, FOLIOT_TOKEN=self.admin)
        command = ["ip", "netns", "exec", self.space("c"), self.FOLIOT, "host"]
        listed = fleet.run(*command, "list", env=environment).stdout
        self.assertIn("h1", listed)
        self.assertIn("is no longer a member", fleet.run(*command, "remove", "h1", env=environment).stdout)
        self.assertEqual(self.post("/agent/v1/report", wire.batch(), **old)[0], 403)
        a.wait_log("0 NICs joined, 2 left: 2 NICs of 1 hosts")
        b.wait_log("answers 403: not allowed")
        b.stop()
        self.assertEqual([h["name"] for h in self.get("/api/v1/hosts")["items"]], ["h0"])
        # a new host in its place has new numbers, and h0 goes on
        token = fleet.run(*command, "token", env=environment).stdout.split()[-1]
        shutil.rmtree(self.path("state-h1"))
        os.unlink(self.path("h1.yaml"))
        self.join(1, token=token)
        c = self.agent(1)
        self.wait(lambda: (self.host("h1") or {}).get("freshness") == "live", 10, c.log)
        self.assertEqual([n["nic"] for n in self.get("/api/v1/nics?host=h1")["items"]], [4, 5])
        self.wait(lambda: (self.host("h0")["paths"] or 0) >= 2, 15, a.log)
        self.assertNotIn("refused", a.log())
        words = [x["what"] for x in self.get("/api/v1/audit")["items"]]
        self.assertIn("host.remove", words)

    def test_tokens_are_not_for_two(self):
        self.start(uses=1)
        self.join(0)
        again = self.join(1, check=False)
        self.assertEqual(again.returncode, 1)
        self.assertIn("the token was used already", again.stderr)
        self.join(0)  # the same host, whose answer may have been lost
        shutil.rmtree(self.path("state-h0"))
        other = self.join(0, check=False)  # but no other host under its name
        self.assertIn("a host h0 is a member already, with another key", other.stderr)
        wrong = self.token[:10] + ("A" if self.token[10] != "A" else "B") + self.token[11:]
        self.assertIn("the token is unknown", self.join(2, token=wrong, check=False).stderr)
        wrong = self.token[:-10] + ("A" if self.token[-10] != "A" else "B") + self.token[-9:]
        self.assertIn("is the token from this controller?", self.join(2, token=wrong, check=False).stderr)
        self.assertIn("belongs to", self.second_with_the_same_address())

    def second_with_the_same_address(self):
        token = self.request("POST", "/api/v1/join-tokens", {})[2]["token"]
        self.ip("h2", "address", "del", "10.89.0.14/24", "dev", "nic0")
        self.ip("h2", "address", "add", "10.89.0.10/24", "dev", "nic0")
        return self.join(2, token=token, check=False).stderr

    def test_a_certificate_is_renewed(self):
        c = self.start()
        (a,) = self.members(0)
        before = self.host("h0")["certificate_not_after_utc_ns"]
        old = self.read(self.identity("h0")["certificate"])
        c.stop()
        text = self.read(self.path("controller.yaml"))
        self.write("controller.yaml", text + "certificate_life: 400d\n")
        self.controller()
        a.wait_log("renewed this host's certificate", 15)
        self.assertGreater(self.host("h0")["certificate_not_after_utc_ns"], before + 200 * 86400 * 10**9)
        self.assertNotEqual(self.read(self.identity("h0")["certificate"]), old)
        self.wait(lambda: self.host("h0")["freshness"] == "live", 5, a.log)
        # the earlier one is valid until the new one was used long enough; one that somebody else made never is
        self.write("old.pem", old)
        self.assertEqual(self.post("/agent/v1/report", wire.batch(), self.path("old.pem"), self.identity("h0")["key"])[0], 200)

    # ---- strangers ----

    def test_strangers(self):
        c = self.start()
        self.join(0)
        self.assertEqual(self.post("/agent/v1/report", wire.batch())[0], 401)
        run = fleet.run
        # a self-signed certificate with a member's name
        run("openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", self.path("self.key"), "-out",
            self.path("self.pem"), "-subj", "/CN=h0", "-days", "9")
        self.refused(self.path("self.pem"), self.path("self.key"))
        # signed by the fleet's authority, but for another purpose: the controller's own
        self.refused(self.path("data", "server.pem"), self.path("data", "server.key"))
        # signed by the authority for a member's name, but expired; or never issued by the controller
        for name, days in (("late", "-1"), ("unknown", "9")):
            run("openssl", "req", "-newkey", "ed25519", "-nodes", "-keyout", self.path(f"{name}.key"), "-out",
                self.path("x.csr"), "-subj", "/CN=h0")
            self.write("x.ext", "extendedKeyUsage=clientAuth\n")
            run("openssl", "x509", "-req", "-in", self.path("x.csr"), "-CA", self.path("data", "authority.pem"), "-CAkey",
                self.path("data", "authority.key"), "-CAcreateserial", "-days", days, "-extfile", self.path("x.ext"), "-out",
                self.path(f"{name}.pem"))
        self.refused(self.path("late.pem"), self.path("late.key"))
        self.assertEqual(self.post("/agent/v1/report", wire.batch(), self.path("unknown.pem"), self.path("unknown.key"))[0], 403)
        # plain HTTP, and noise, at the agents' port
        for noise in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(500)):
            sock = fleet.connect(self.space("h0"), "10.90.0.1", 7638)
            sock.sendall(noise)
            sock.settimeout(fleet.IO_S)
            try:
                while sock.recv(1000):
                    pass
            except OSError:
                pass
            sock.close()
        self.assertIsNone(c.process.poll(), c.log())
        self.assertEqual(self.get("/api/v1/status")["hosts"], 1)

    def refused(self, certificate, key):
        try:
            status = self.post("/agent/v1/report", wire.batch(), certificate, key)[0]
        except (ssl.SSLError, OSError):
            return
        self.assertEqual(status, 401)

    def test_bad_bodies(self):
        c = self.start()
        self.join(0)
        own = self.identity("h0")

        def peak_kb():
            with open(f"/proc/{c.process.pid}/status", encoding="ascii") as file:
                return int(next(line for line in file if line.startswith("VmHWM")).split()[1])
        before = peak_kb()

        def post(body, path="/agent/v1/report", **headers):
            return self.post(path, body, **own, headers={k.replace("_", "-"): v for k, v in headers.items()})[0]
        self.assertEqual(post(b"\xff" * 100), 400)
        self.assertEqual(post(wire.batch()[:-3]), 400)
        self.assertEqual(post(b"garbage", Content_Encoding="zstd"), 400)
        self.assertEqual(post(b"garbage", Content_Encoding="br"), 400)
        self.assertEqual(post(wire.batch(protocol=99)), 409)
        self.assertEqual(post(wire.bomb(64 << 20), Content_Encoding="zstd"), 413)
        self.assertEqual(post(wire.bomb(1 << 20), Content_Encoding="zstd"), 400)
        self.assertEqual(post(b"x", path="/agent/v1/nothing"), 404)
        self.assertIn(self.oversize(own), (413, None))
        # a bad report inside a good batch is taken and counted: otherwise it would come again for ever
        for n, sealed in enumerate((b"no zstd", wire.bomb(64 << 20), wire.zstd(b"\xff\xff\xff")), 1):
            status, body = self.post("/agent/v1/report", wire.batch([(n, b"")], oldest=n, sealed=lambda _: sealed), **own)
            self.assertEqual((status, wire.fields(body)[2]), (200, [n]))
        self.assertGreaterEqual(self.get("/api/v1/status")["ingest"]["malformed"], 8)
        self.assertLess(peak_kb() - before, 48 << 10)  # no bomb of 64 MiB was ever unpacked
        self.assertIsNone(c.process.poll(), c.log())

    def oversize(self, own):
        try:
            return self.post("/agent/v1/report", b"x" * (3 << 20), **own)[0]
        except OSError:
            return None  # cut off while it wrote

    def test_a_host_speaks_for_itself_only(self):
        self.start(**fleet.PAUSE)
        self.join(0)
        self.join(1)
        own = self.identity("h0")

        def port(nic, state):
            return wire.number(1, nic) + wire.number(2, state)
        body = wire.report([wire.link_event(2, "down", "a lie"), wire.link_event(0, "down", "<b>true</b>\n")],
                           covers=1000, ports=[port(0, 2), port(2, 2)])
        self.assertEqual(self.post("/agent/v1/report", wire.batch([(1, body)]), **own)[0], 200)
        self.assertEqual([e["detail"]["text"] for e in self.events(kind="link")], ["<b>true</b>\n"])
        links = {link["nic"]: link["state"] for link in self.get("/api/v1/links")["items"]}
        self.assertEqual((links[0], links[2]), ("down", "unknown"))
        self.assertEqual(self.get("/api/v1/status")["ingest"]["foreign_nics"], 2)

    def test_links_sorted_and_looked_for(self):
        self.start(**fleet.PAUSE)
        order = [10, 2, 1]  # natural order: h2 before h10
        for space, index in enumerate(order):
            self.join(space, name=f"h{index}")

        def names(query):
            return [f"{x['host']}/{x['name']}" for x in self.get(f"/api/v1/links?{query}")["items"]]
        every = [f"h{index}/nic{nic}" for index in sorted(order) for nic in (0, 1)]
        self.assertEqual(names("sort=nic"), every)
        self.assertEqual(names("sort=nic&order=desc"), every[::-1])
        self.assertEqual(names("sort=rail&order=desc"), [n for n in every if n.endswith("1")] + [n for n in every if n.endswith("0")])
        identity = self.identity("h10")
        nic = next(x["nic"] for x in self.get("/api/v1/links")["items"] if (x["host"], x["name"]) == ("h10", "nic1"))
        down = wire.report([], covers=1000, ports=[wire.number(1, nic) + wire.number(2, 2)])
        self.assertEqual(self.post("/agent/v1/report", wire.batch([(1, down)]), **identity)[0], 200)
        self.assertEqual(names("sort=state&order=desc")[0], "h10/nic1")
        self.assertEqual(names("q=H10%20down"), ["h10/nic1"])
        self.assertEqual(names("q=h1/%20RAIL1"), ["h1/nic1"])
        self.assertEqual(names("q=nobody&sort=nic"), [])
        # all pages together, one after the other, are the whole list
        seen, cursor = [], "0"
        while cursor is not None:
            page = self.get(f"/api/v1/links?sort=nic&limit=3&cursor={cursor}")
            seen += [f"{x['host']}/{x['name']}" for x in page["items"]]
            cursor = page["next"]
        self.assertEqual(seen, every)
        self.assertEqual(self.request("GET", "/api/v1/links?sort=colour")[0], 400)
        self.assertEqual(self.request("GET", "/api/v1/links?order=desc")[0], 400)

    # ---- exactly once ----

    def test_a_byte_of_a_job_counts_once(self):
        """The sum doesn't depend on how often a host reports: three ranks at 1 Gb/s each are 3 Gb/s all the time. It survives a
        restart."""
        c = self.start(**fleet.PAUSE)
        second = 10**9
        for n in range(3):
            self.join(n)
        begun = time.monotonic()
        for n, every in enumerate((1, 10, 25)):
            reports = [(i, wire.report(at=at * second, covers=every * 1000, extra=wire.data(11, wire.job_process(
                "4711", n, 3, rate=10**9, sent=at * 125_000_000, age=at * 1000)))) for i, at in enumerate(range(every, 101, every), 1)]
            status, body = self.post("/agent/v1/report", wire.batch(reports, now=200 * second), **self.identity(f"h{n}"))
            self.assertEqual(status, 200, body)
        past = self.get("/api/v1/jobs/4711")["past"]
        self.assertEqual(past["step_ns"], 10 * second)
        # steps: the hosts reported one after the other, so their ends don't meet
        apart = 1 + int((time.monotonic() - begun) // 10)
        inner = past["rate_bps"][apart:-apart]
        self.assertGreaterEqual(len(inner), 9 - 2 * apart, past)
        self.assertGreater(len(inner), 0, past)
        self.assertEqual([r for r in inner if r is None or abs(r / 3e9 - 1) > 0.02], [], past)
        mine = self.request("POST", "/api/v1/tokens", {"name": "t", "role": "viewer", "scope": "h0"})[2]["token"]
        self.assertEqual(c.stop(), 0)
        c = self.controller()
        kept = self.get("/api/v1/jobs/4711")["past"]
        self.assertEqual([kept["rate_bps"][apart:apart + len(inner)], kept["from_utc_ns"]], [inner, past["from_utc_ns"]])
        self.assertEqual(self.request("GET", "/api/v1/jobs/4711", token=mine)[0], 404, "its hosts are known, too")
        for n in range(3):  # it goes on: the same job
            report = wire.report(covers=1000, extra=wire.data(11, wire.job_process("4711", n, 3)))
            self.assertEqual(self.post("/agent/v1/report", wire.batch([(102, report)], oldest=102), **self.identity(f"h{n}"))[0], 200)
        self.assertEqual([(j["job"], j["processes"]) for j in self.get("/api/v1/jobs")["items"]], [("4711", 3)])
        c.stop(signal.SIGKILL)  # the last minutes may be lost, the job isn't
        self.controller()
        self.assertEqual(self.get("/api/v1/jobs/4711")["past"]["rate_bps"][apart:apart + len(inner)], inner)

    def test_jobs_from_two_hosts_are_one(self):
        self.start(**fleet.PAUSE)
        for n in (0, 1):
            self.join(n)
        sides = [self.identity("h0"), self.identity("h1")]

        def say(n, number, report):
            self.assertEqual(self.post("/agent/v1/report", wire.batch([(number, report)], oldest=number), **sides[n])[0], 200)
        rollup = [wire.report(covers=10000, extra=wire.data(11, wire.job_process("4711", n, 2, failovers=n, stalled=7200 * 10**9 * n, flows=[
            wire.job_flow(f"h{1 - n}", 3, 94000 if n else 4000), wire.job_flow(f"h{1 - n}", 1, sending=True, state="down", reason="carrier")])))
            for n in (0, 1)]
        for n in (0, 1):
            say(n, 1, rollup[n])
        other = wire.data(11, wire.job_process("4711", 0, 2, user=7)) + wire.data(11, wire.job_process("", 1, 4, pid=8))
        say(1, 2, rollup[1] + other)
        jobs = {(job["job"], job["user"]): job for job in self.get("/api/v1/jobs")["items"]}
        self.assertEqual(set(jobs), {("4711", 1000), ("4711", 7), ("9@h1", 1000)}, "another user's job of that name is another job")
        one = jobs["4711", 1000]
        self.assertEqual((one["state"], one["processes"], one["hosts"], one["ranks"], one["rate_bps"], one["failovers"]),
                         ("running", 2, 2, 2, 2 * 10**10, 1))
        self.assertEqual((one["worst"]["owd_ns_p50"], one["worst"]["from_host"], one["worst"]["to_host"]), (94000, "h0", "h1"))
        detail = self.get("/api/v1/jobs/4711?user=1000")
        self.assertEqual(len(detail["flows"]), 4)
        self.assertEqual([flow["reason"] for flow in detail["flows"] if flow["state"] == "down"], ["carrier", "carrier"])
        past, covers = detail["past"], 10**10
        open_ns = self.get("/api/v1/status")["now_utc_ns"] - covers  # reports about what ended later may still come
        self.assertEqual({rate for i, rate in enumerate(past["rate_bps"], 1) if past["from_utc_ns"] + i * past["step_ns"] > open_ns} - {None}, set(), past)
        self.assertEqual(self.request("GET", "/api/v1/jobs/12")[0], 404)

        def foliot(*words):
            return fleet.run("ip", "netns", "exec", self.space("c"), self.FOLIOT, "jobs", *words, "--controller", "http://127.0.0.1:7639",
                             env=dict(os.environ, FOLIOT_TOKEN=self.admin), check=False)
        self.assertRegex(foliot().stdout, r"4711 +1000 +running +2/2 +2 +14/16 +20 Gbit/s")
        self.assertRegex(foliot("9@h1").stdout, r"9@h1 +1000 +running +1/4")
        shown = foliot("4711").stdout
        self.assertIn("4711", shown)
        self.assertIn("no agent has reported such a job lately", foliot("12").stderr)
        self.assertIn("no flow stands out", foliot("compare", "4711", "9@h1").stdout)

        # two faults within a minute count as one avoided restart; one more later is another; a change of the path is none
        def failover(at, reason="carrier"):
            return wire.job_event("failover", "4711", 0, 2, "job 4711, rank 0 on h0: lane 1 failed", lane=1, reason=reason, at=at)
        minute = 60 * 10**9
        for number, (at, word) in enumerate([(0, "carrier"), (minute // 2, "timeout"), (3 * minute, "reset"), (9 * minute, "repath")], 2):
            # counted from the end: later ones are younger
            self.assertEqual(self.post("/agent/v1/report", wire.batch(
                [(number, wire.report([failover(10**12 + at, word)], at=10**12 + 9 * minute))], oldest=number, now=10**12 + 9 * minute),
                **sides[0])[0], 200)
        say(1, 3, wire.report([wire.job_event("killed", "4711", 1, 2, "job 4711, rank 1 on h1, is gone", stalled=7200 * 10**9)]))
        events = self.get("/api/v1/events?kind=job")["items"]
        self.assertEqual([event["word"] for event in events].count("failover"), 4)
        self.assertTrue(all(event["detail"]["job"] == "4711" for event in events))
        savings = self.get("/api/v1/savings")["items"]
        self.assertEqual(len(savings), 1, savings)
        self.assertEqual((savings[0]["restarts_avoided"], savings[0]["faults"], savings[0]["gpu_hours_saved"], savings[0]["gpu_hours_lost"]),
                         (2, 3, 2 * 2.5 * 2, 4.0))
        self.assertEqual(len(savings[0]["evidence"]), 2)
        self.assertEqual(self.get("/api/v1/savings?restart_minutes=60")["items"][0]["gpu_hours_saved"], 4.0)
        # an agent without jobs, and one that reports nonsense
        say(0, 6, wire.report(covers=10000))
        self.assertEqual(self.get("/api/v1/jobs/4711?user=1000")["processes"], 1)
        odd = wire.data(11, wire.data(1, "x\x1b[31m<b>" * 40) + wire.number(6, 99) + wire.number(14, 2**64 - 1) + b"".join(
            wire.data(23, wire.data(1, "y" * 500)) for _ in range(40)))
        say(0, 7, wire.report(covers=10000, extra=odd))
        names = [job["job"] for job in self.get("/api/v1/jobs")["items"]]
        self.assertTrue(all(len(name) < 72 and "\x1b" not in name for name in names), names)

        # the same job twice; the second time its ranks are on each other's hosts: flows are compared by ranks
        def run(job, n, rank):
            delay = 94000 if rank else 4000
            return wire.data(11, wire.job_process(job, rank, 2, pid=9 - rank, flows=[wire.job_flow(f"h{1 - n}", 3, delay)]))
        for n in (0, 1):
            say(n, 8, wire.report(covers=10000, extra=run("first", n, n) + run("second", n, 1 - n)))
        flows = self.get("/api/v1/jobs/first")["flows"]
        self.assertEqual({(f["from_host"], f["from_rank"], f["to_host"], f["to_rank"]) for f in flows}, {("h0", 0, "h1", 1), ("h1", 1, "h0", 0)})
        compared = json.loads(foliot("compare", "first", "second", "--json").stdout)["flows"]
        self.assertEqual([(f["first"] or {}).get("owd_ns_p50") for f in compared], [f["second"]["owd_ns_p50"] for f in compared])
        self.assertEqual({f["to"].split(" ", 1)[1] for f in compared}, {"(rank 0)", "(rank 1)"})

    def test_exactly_once_in_order(self):
        c = self.start()
        self.join(0)
        own = self.identity("h0")

        def send(numbers, oldest, stream=77):
            reports = [(n, wire.report([wire.link_event(0, "up", f"{stream}.{n}")])) for n in numbers]
            status, body = self.post("/agent/v1/report", wire.batch(reports, stream, oldest), **own)
            self.assertEqual(status, 200, body)
            return wire.fields(body).get(2, [0])[0]

        def texts():
            return [e["detail"]["text"] for e in reversed(self.events(kind="link"))]
        self.assertEqual(send([1, 2], 1), 2)
        self.assertEqual(send([1, 2, 3], 1), 3)
        self.assertEqual(send([5], 4), 3)  # 4 exists: that must come first
        c.stop(signal.SIGKILL)
        c = self.controller()
        self.assertEqual(send([3, 4, 5], 3), 5)  # acknowledged numbers are kept
        self.assertEqual(texts(), [f"77.{n}" for n in range(1, 6)])
        self.assertEqual(send([9], 9), 9)
        self.assertEqual([e["detail"] for e in self.events(word="history-gap")], [{"reports_missing": 3}])
        self.assertEqual(send([1], 1, stream=78), 1)
        self.assertEqual(texts()[-1], "78.1")

    def test_an_outage(self):
        c = self.start()
        agents = self.members(0, 1)
        c.stop(signal.SIGKILL)
        agents[0].wait_log("Reports are kept and tried again; this host goes on alone")
        flaps, turns = 5, []
        for _ in range(flaps):
            for what in ("down", "up"):
                turns.append(time.time())
                self.ip("c", "link", "set", "p1x1", what)
                self.wait(lambda: self.ask("h1", "links")["nics"][1]["carrier"] == (what == "up"), 3, "the agent to see it")
                turns.append(time.time())
                time.sleep(0.3)
        kept = self.ask("h1")["controller"]["reports_waiting"]
        self.wait(lambda: self.ask("h1")["controller"]["reports_waiting"] > kept, 3, "a report with the last of them")
        agents[1].stop(signal.SIGKILL)  # and waiting reports survive the agent
        agents[1] = self.agent(1)
        time.sleep(1)
        self.controller()
        agents[0].wait_log("answers again", 12)

        def told():  # a restarted agent reports its links and counts as events of other words
            found = [e for e in reversed(self.events(kind="link", host="h1")) if e["word"] in ("down", "up")]
            return len(found) >= 2 * flaps and found
        events = self.wait(told, 12, lambda: str(self.events(kind="link")))
        self.assertEqual([e["word"] for e in events], ["down", "up"] * flaps)
        self.assertEqual(sorted(events, key=lambda e: e["at_utc_ns"]), events)
        # an event has the time when it happened; the reports themselves came together, at once
        self.assertGreater((events[-1]["at_utc_ns"] - events[0]["at_utc_ns"]) / 1e9, 0.9 * (turns[-2] - turns[1]))
        self.assertGreater((time.time_ns() - events[0]["at_utc_ns"]) / 1e9, 3)
        self.assertEqual(self.events(word="history-gap"), [])
        self.wait(lambda: any(v is not None for v in self.get("/api/v1/series?metric=port_state&nic=3&step_s=10")["values"]), 5, "a value of the port")

    def test_killed_again_and_again(self):
        c = self.start()
        self.join(0)
        own = self.identity("h0")
        acknowledged, sent = 0, 0
        for round_ in range(12):
            for _ in range(4 + round_):
                sent = max(sent, acknowledged) + 1
                reports = [(n, wire.report([wire.link_event(0, "up", str(n))])) for n in range(acknowledged + 1, sent + 1)]
                try:
                    status, body = self.post("/agent/v1/report", wire.batch(reports, oldest=acknowledged + 1), **own)
                    if status == 200:
                        acknowledged = wire.fields(body).get(2, [0])[0]
                except (OSError, http.client.HTTPException):
                    pass
            c.process.send_signal(signal.SIGKILL)
            c.process.wait(fleet.IO_S)
            c = self.controller()
        numbers = [int(e["detail"]["text"]) for e in reversed(self.events(kind="link"))]
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertEqual(numbers[:acknowledged], list(range(1, acknowledged + 1)))

    # ---- the API ----

    def test_the_api(self):
        self.start()
        self.join(0)
        self.assertEqual(self.request("GET", "/api/v1/status", token=None)[0], 401)
        self.assertEqual(self.request("GET", "/api/v1/status", token="fla_" + "x" * 43)[0], 401)
        self.assertEqual(self.request("GET", "/api/v1/nothing")[0], 404)
        self.assertEqual(self.request("POST", "/api/v1/status", {})[0], 405)
        self.assertEqual(self.request("GET", "/api/v1/hosts/nobody")[0], 404)
        for query in ("limit=0", "limit=1001", "limit=x", "cursor=-1"):
            self.assertEqual(self.request("GET", f"/api/v1/hosts?{query}")[0], 400)
        self.assertEqual(self.request("GET", "/api/v1/series?metric=owd_ns_p50&from=0&to=0")[0], 400)
        self.assertEqual(self.request("GET", "/api/v1/series?metric=x")[0], 400)
        viewer = self.request("POST", "/api/v1/tokens", {"name": "<i>v</i>", "role": "viewer", "hours": 1})[2]
        self.assertEqual(self.request("GET", "/api/v1/hosts", token=viewer["token"])[0], 200)
        self.assertEqual(self.request("DELETE", "/api/v1/hosts/h0", token=viewer["token"])[0], 403)
        self.assertEqual(self.request("GET", "/api/v1/tokens", token=viewer["token"])[0], 403)
        for bad in ({}, {"name": "", "role": "viewer"}, {"name": "x", "role": "god"}, [], b"{", b'{"name":"a","name":"b"}'):
            self.assertEqual(self.request("POST", "/api/v1/tokens", bad)[0], 400)
        self.assertEqual(self.request("POST", "/api/v1/tokens", b"x" * 100000)[0], 413)
        tokens = self.get("/api/v1/tokens")["items"]
        self.assertEqual([t["role"] for t in tokens], ["join", "admin", "viewer"])
        self.assertNotIn(viewer["token"], json.dumps(tokens))
        with open(self.path("data", "store.db"), "rb") as file:
            self.assertNotIn(viewer["token"][4:].encode(), file.read())
        # pages and tags
        self.join(1)
        self.join(2)
        page = self.get("/api/v1/hosts?limit=2")
        self.assertEqual([h["name"] for h in page["items"]], ["h0", "h1"])
        page = self.get(f"/api/v1/hosts?limit=2&cursor={page['next']}")
        self.assertEqual(([h["name"] for h in page["items"]], page["next"]), (["h2"], None))
        events = self.get("/api/v1/events?limit=2")
        older = self.get(f"/api/v1/events?limit=2&cursor={events['next']}")["items"]
        self.assertEqual([e["id"] for e in events["items"] + older], [3, 2, 1])
        self.assertEqual([e["id"] for e in self.get("/api/v1/events?after=1")["items"]], [2, 3])
        tag = self.request("GET", "/api/v1/nics")[1]["ETag"]
        self.assertEqual(self.request("GET", "/api/v1/nics", headers={"If-None-Match": tag})[0], 304)
        # revoked at once, and the audit trail has everything
        self.assertEqual(self.request("DELETE", f"/api/v1/tokens/{viewer['id']}")[0], 200)
        self.assertEqual(self.request("DELETE", f"/api/v1/tokens/{viewer['id']}")[0], 404)
        self.assertEqual(self.request("GET", "/api/v1/hosts", token=viewer["token"])[0], 401)
        audit = self.get("/api/v1/audit")["items"]
        self.assertEqual([a["what"] for a in audit[:4]], ["token.remove", "host.join", "host.join", "token.make"])
        # a client that guesses tokens is slowed down
        sock = fleet.connect(self.space("c"), "127.0.0.1", 7639)
        guess = f"GET /api/v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer fla_{'y' * 43}\r\n"
        sock.sendall((guess + "\r\n").encode() * 299 + (guess + "Connection: close\r\n\r\n").encode())
        text = b""
        while part := sock.recv(65536):
            text += part
        sock.close()
        self.assertEqual({c: text.count(f"HTTP/1.1 {c} ".encode()) > 0 for c in (200, 401, 429)}, {200: False, 401: True, 429: True})
        self.assertEqual(self.get("/api/v1/status")["hosts"], 3)

    def test_live_events(self):
        self.start()
        self.join(0)
        sock = fleet.connect(self.space("c"), "127.0.0.1", 7639)
        head = f"GET /api/v1/events/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.admin}\r\n"
        sock.sendall((head + "Last-Event-ID: 0\r\n\r\n").encode())
        sock.settimeout(fleet.IO_S)
        text = b""

        def until(word):
            nonlocal text
            while word not in text:
                part = sock.recv(4096)
                self.assertTrue(part, text)
                text += part
        until(b'"word":"joined"')
        self.join(1)
        until(b"id: 2\nevent: host\ndata: {")
        self.assertEqual(text.count(b"id: 1\n"), 1)
        # a client that doesn't read is cut off once more data wait for it than the kernel takes, and no other client waits
        # meanwhile
        fleet.run("ip", "netns", "exec", self.space("c"), "sh", "-c", "echo 4096 4096 4096 > /proc/sys/net/ipv4/tcp_wmem")
        lazy = fleet.connect(self.space("c"), "127.0.0.1", 7639)
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.sendall((head + "\r\n").encode())
        own = self.identity("h0")
        for n in range(1, 60):
            report = wire.report([wire.link_event(0, "up", "x" * 1000) for _ in range(60)])
            self.assertEqual(self.post("/agent/v1/report", wire.batch([(n, report)], oldest=n), **own)[0], 200)
        self.assertEqual(self.get("/api/v1/status")["hosts"], 2)
        lazy.settimeout(fleet.IO_S)  # its end comes, else this times out
        try:
            while lazy.recv(65536):
                pass
        except ConnectionError:
            pass
        lazy.close()
        sock.close()

    def stream(self, last=""):
        sock = fleet.connect(self.space("c"), "127.0.0.1", 7639)
        self.addCleanup(sock.close)
        sock.settimeout(fleet.IO_S)
        sock.sendall(f"GET /api/v1/events/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.admin}\r\n{last}\r\n".encode())
        return sock

    def ids_until(self, sock, word):
        """The events of a stream up to the one that has this word."""
        text = b""
        while word not in text:
            part = sock.recv(1 << 16)
            self.assertTrue(part, f"cut after {len(text)} bytes")
            text += part
        return [int(n) for n in re.findall(rb"^id: (\d+)$", text, re.M)]

    def test_a_reader_that_comes_back(self):
        """However many events it missed, and however large they are."""
        self.start(**fleet.PAUSE)
        self.join(0)
        self.join(1)
        own, last = self.identity("h0"), max(e["id"] for e in self.events())
        report = wire.report([wire.link_event(0, "up", "\x01" * 1000)] * 256)  # 6 KB each as JSON
        for n in range(1, 6):
            self.assertEqual(self.post("/agent/v1/report", wire.batch([(n, report)], oldest=n, sealed=wire.squeeze), **own)[0], 200)
        fault = wire.batch([(1, wire.report([wire.link_event(2, "down", "a real fault")]))])
        self.assertEqual(self.post("/agent/v1/report", fault, **self.identity("h1"))[0], 200)
        sock = self.stream(f"Last-Event-ID: {last}\r\n")
        self.assertEqual(self.ids_until(sock, b"a real fault"), list(range(last + 1, last + 5 * 256 + 2)))
        again = wire.batch([(2, wire.report([wire.link_event(2, "up", "it is well")]))], oldest=2)
        self.assertEqual(self.post("/agent/v1/report", again, **self.identity("h1"))[0], 200)
        self.assertEqual(self.ids_until(sock, b"it is well"), [last + 5 * 256 + 2])  # it is live now

    def test_more_events_at_once_than_are_kept(self):
        """A reader that keeps up gets all of them."""
        self.start(**fleet.PAUSE)
        self.join(0)
        last, sock = max(e["id"] for e in self.events()), self.stream()
        self.ids_until(sock, b"retry")
        reports = [(n, wire.report([wire.link_event(0, "up", "x")] * 255 + [wire.link_event(0, "up", f"end {n}")])) for n in range(1, 7)]
        own, number = self.identity("h0"), 1
        while number < 7:  # usually one request: some hundred more than the 1,024
            batch = wire.batch(reports[number - 1:], oldest=number, sealed=wire.squeeze)
            status, body = self.post("/agent/v1/report", batch, **own)
            self.assertEqual(status, 200)
            number = wire.fields(wire.unsqueeze(body) if body[:4] == b"\x28\xb5\x2f\xfd" else body)[2][0] + 1
        self.assertEqual(self.ids_until(sock, b"end 6"), list(range(last + 1, last + 6 * 256 + 1)))

    # ---- the machine ----

    def test_slow_and_idle_clients(self):
        c = self.start()
        self.join(0)
        lazy = [fleet.connect(self.space("c"), "127.0.0.1", 7639) for _ in range(200)]
        idle = [fleet.connect(self.space("h0"), "10.90.0.1", 7638) for _ in range(300)]
        for sock in lazy:
            sock.sendall(b"GET /api/v1/status HT")
        self.assertEqual(self.get("/api/v1/status")["hosts"], 1)
        self.assertEqual(self.post("/agent/v1/report", wire.batch(), **self.identity("h0"))[0], 200)
        for sock in lazy + idle:  # each is cut off, else this times out
            sock.settimeout(fleet.IO_S)
            try:
                while sock.recv(100):
                    pass
            except ConnectionError:
                pass
            sock.close()
        self.assertIsNone(c.process.poll(), c.log())

    def test_two_controllers_damage_and_restore(self):
        c = self.start()
        self.join(0)
        second = self.command(check=False)
        self.assertEqual(second.returncode, 1)
        self.assertIn("another foliot-controller has it", second.stderr)
        self.assertIn("copied from", self.command("backup", self.path("backup.db")).stdout)
        self.assertEqual(self.command("backup", self.path("backup.db"), check=False).returncode, 1)
        self.assertIn("good", self.command("check").stdout)
        self.assertIn("another foliot-controller has it", self.command("restore", self.path("backup.db"), check=False).stderr)
        self.assertEqual(c.stop(), 0)
        with open(self.path("data", "store.db"), "r+b") as file:
            file.seek(16384)
            file.write(b"Z" * 40000)
        broken = self.command(check=False)
        self.assertEqual(broken.returncode, 1)
        self.assertIn("is damaged", broken.stderr)
        self.assertIn("restore BACKUP", broken.stderr)
        self.assertIn("restored", self.command("restore", self.path("backup.db")).stdout)
        self.controller()
        self.assertEqual([h["name"] for h in self.get("/api/v1/hosts")["items"]], ["h0"])
        self.assertEqual(self.post("/agent/v1/report", wire.batch(), **self.identity("h0"))[0], 200)

    def test_init_is_done_once(self):
        self.init()
        again = self.command("init", check=False)
        self.assertEqual(again.returncode, 1)
        self.assertIn("nothing was changed", again.stderr)
        self.assertEqual(os.stat(self.path("data", "authority.key")).st_mode & 0o777, 0o600)
        self.assertEqual(os.stat(self.path("data", "store.db")).st_mode & 0o777, 0o600)
        self.write("controller.yaml", "lsten: x\n")
        wrong = self.command(check=False)
        self.assertIn("controller.yaml:1:1: expected one of the keys", wrong.stderr)


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)
