#!/usr/bin/env python3
"""The controller under attack and in trouble: ten thousand idle connections, a full disk, a host with a wrong clock, an impostor
in the controller's place, nonsense at every address. No secret is in any log. usage: test_security.py CONTROLLER AGENT FOLIOT"""
import contextlib
import http.client
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import ssl
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleet  # noqa: E402
import wire  # noqa: E402

fleet.Fleet.FOLIOT = os.path.abspath(sys.argv.pop(3))
fleet.Fleet.AGENT = os.path.abspath(sys.argv.pop(2))
fleet.Fleet.CONTROLLER = os.path.abspath(sys.argv.pop(1))
ANSWERS = {200, 304, 400, 401, 403, 404, 405, 409, 411, 413, 414, 429, 431, 501, 503}


class TestSecurity(fleet.Fleet):
    HOSTS = 2

    def memory_mib(self, process):
        with open(f"/proc/{process.process.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmHWM:\s+(\d+)", file.read())[1]) / 1024

    # ---- crowds ----

    def test_ten_thousand_idle_connections(self):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]  # the unit gives itself 65,536
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        count = min(10000, most - 200)
        c = self.start()
        self.join(0)
        own = self.identity("h0")
        idle = []
        for i in range(count):
            sock = fleet.connect(self.space(f"h{i % 2}"), "10.90.0.1", 7638)
            if i % 3 == 0:  # some begin a TLS handshake and stop
                sock.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
            idle.append(sock)
        # members and the API are served nevertheless
        self.assertEqual(self.post("/agent/v1/report", wire.batch(), **own)[0], 200)
        self.assertEqual(self.get("/api/v1/status")["hosts"], 1)
        for sock in idle:  # each is cut off, else this times out
            sock.settimeout(fleet.IO_S)
            try:
                while sock.recv(100):
                    pass
            except ConnectionError:
                pass
            sock.close()
        self.assertEqual(self.post("/agent/v1/report", wire.batch(), **own)[0], 200)
        print(f"{count} idle connections: {self.memory_mib(c):.0f} MiB at most")
        self.assertLess(self.memory_mib(c), 1024)
        self.assertIsNone(c.process.poll(), c.log())

    def test_requests_at_the_stop(self):
        """A request that arrives while the controller ends gets one answer or none. The controller ends well."""
        c = self.start()
        self.join(0)
        report = wire.squeeze(wire.report([wire.link_event(0, "up", "x")] * 256))
        self.all_taken(report, 12, self.identity("h0"))
        asks = f"GET /api/v1/events?limit=1000 HTTP/1.1\r\nHost: c\r\nAuthorization: Bearer {self.admin}\r\n\r\n".encode()
        clients = []
        for _ in range(16):  # a known connection: one turn takes its next request
            clients.append(fleet.connect(self.space("c"), "127.0.0.1", 7639))
            clients[-1].sendall(asks.replace(b"1000", b"1"))
            self.assertIn(b"200 OK", clients[-1].recv(1 << 16))
        for sock in clients[:8]:  # the thread beside the store has to do
            sock.sendall(asks)
        c.process.send_signal(signal.SIGTERM)
        for sock in clients[8:]:
            time.sleep(0.0003)
            with contextlib.suppress(ConnectionError):  # it was faster
                sock.sendall(asks)
        self.assertEqual(c.process.wait(fleet.IO_S), 0, c.log())
        for sock in clients:
            sock.close()

    # ---- a member that sends too much ----

    def rows(self):
        return max((e["id"] for e in self.get("/api/v1/events?limit=1")["items"]), default=0)

    def store_bytes(self):
        return sum(os.path.getsize(self.path("data", name)) for name in ("store.db", "store.db-wal"))

    def counter(self, name):
        return int(re.search(rf"^foliot_{name}_total (\d+)", self.get("/metrics").decode(), re.M)[1])

    def said(self, batch, own):
        """The reply's acknowledged, retry_ms and report_refused."""
        return self.told(*self.post("/agent/v1/report", batch, **own))

    def told(self, status, body):
        self.assertEqual(status, 200, body)
        reply = wire.fields(wire.unsqueeze(body) if body[:4] == b"\x28\xb5\x2f\xfd" else body)
        return reply.get(2, [0])[0], reply.get(9, [0])[0], reply.get(11, [b""])[0].decode()

    def all_taken(self, report, count, own):
        """Twelve in a request as a rule; slow ones take several requests. None has to wait."""
        number = 1
        while number <= count:
            batch = wire.batch([(n, report) for n in range(number, min(number + 12, count + 1))], oldest=number, sealed=bytes)
            acknowledged, wait, refused = self.said(batch, own)
            self.assertEqual((acknowledged >= number, wait, refused), (True, 0, ""))
            number = acknowledged + 1

    def test_a_report_has_ceilings(self):
        c = self.start(**fleet.PAUSE)  # a silence would be an event
        self.join(0)
        own = self.identity("h0")
        before = self.rows()
        # 3 KB that were 720,000 rows
        report = wire.report([wire.link_event(0, "up", "x")] * 60000)
        many = [(n, report) for n in range(1, 13)]
        self.assertLess(len(wire.batch(many, sealed=wire.squeeze)), 8000)
        begin, acknowledged = self.store_bytes(), 0
        while acknowledged < 12:  # slow ones take more than one request
            batch = wire.batch(many[acknowledged:], oldest=acknowledged + 1, sealed=wire.squeeze)
            number, _, refused = self.said(batch, own)
            self.assertGreater(number, acknowledged)
            self.assertEqual(refused, f"report {number} is not taken: Report.events: 60000, at most 256")
            acknowledged = number
        self.assertLessEqual(self.rows() - before, 1)
        self.assertLess(self.store_bytes() - begin, 1 << 20)
        self.assertEqual(self.counter("reports_over"), 12)
        self.assertEqual([e["detail"]["text"] for e in self.events(word="report-refused")],
                         ["report 1 is not taken: Report.events: 60000, at most 256"])  # the log reports it once a minute
        c.wait_log("host h0: report 1 is not taken")
        # everything that repeats, every text
        event, job = wire.link_event(0, "up", "x"), wire.job_process("j", 0, 1)
        huge = {
            "text": wire.report([wire.link_event(0, "up", "x" * 1024)]),
            "word": wire.report([wire.link_event(0, "u" * 256, "x")]),
            "ports": wire.report([event], covers=1000, ports=[wire.number(1, 0)] * 17),
            "jobs": wire.report([event], covers=1000, extra=wire.data(11, job) * 65),
            "job": wire.report([event], covers=1000, extra=wire.data(11, wire.job_process("j" * 300, 0, 1))),
            "flows": wire.report([event], covers=1000, extra=wire.data(11, wire.job_process("j", 0, 1, flows=[wire.job_flow("h1", 1)] * 9))),
            "sensors_off": wire.report([event], covers=1000, extra=wire.data(12, "x") * 9),
            "router": wire.report([event], covers=1000, extra=wire.data(7, wire.fixed64(1, 9) + wire.data(11, "r") * 1025)),
            "local": wire.report([event], covers=1000, extra=wire.data(7, wire.fixed64(1, 9) + wire.packed(2, [0] * 8193))),
            "owd_p50": wire.report([event], covers=1000, extra=wire.data(8, wire.fixed64(1, 9) + wire.packed(2, [0] * 8193))),
            "suspect": wire.report([wire.number(1, 1) + wire.data(4, wire.data(17, "s" * 1024))]),
            "numbers": wire.report([wire.number(1, 1) + wire.data(4, wire.packed(20, [1] * 17))]),
        }
        before = self.rows()
        for n, (field, body) in enumerate(huge.items(), 13):
            acknowledged, _, refused = self.said(wire.batch([(n, body)], oldest=n, sealed=wire.squeeze), own)
            self.assertEqual(acknowledged, n)
            self.assertIn(f".{field}: ", refused)
        # one more event a minute later, and nothing else
        self.assertEqual(self.rows() - before, len(self.events(word="report-refused")) - 1)
        self.assertEqual(self.host("h0")["jobs"] if "jobs" in self.host("h0") else [], [])
        # the largest report that an agent makes is taken
        most = wire.report([wire.link_event(0, "up", "x" * 1023)] * 256, covers=1000, ports=[wire.number(1, 0)] * 16,
                           extra=wire.data(11, job) * 64)
        self.assertEqual(self.said(wire.batch([(40, most)], oldest=40, sealed=wire.squeeze), own)[::2], (40, ""))
        told = [e for e in self.events(word="report-refused") if e["id"] > before]
        self.assertEqual(self.rows(), before + len(told) + 257)  # and what lies between was lost

    def test_a_member_has_a_quota(self):
        """A member can't fill the disk, nor hold the others up. Reports beyond its quota wait at the member."""
        self.start(**fleet.PAUSE)
        self.join(0)
        self.join(1)
        own, other = self.identity("h0"), self.identity("h1")
        rows, size = self.rows(), self.store_bytes()
        text = "".join(random.Random(1).choices("\\\"", k=1000))  # twice as long in JSON: the bytes are used up first
        report = wire.squeeze(wire.report([wire.link_event(0, "up", text)] * 256))
        number, wait, begin = 1, 0, time.monotonic()
        while wait == 0:
            self.assertLess(number, 400, "nobody stops it")
            reports = [(n, report) for n in range(number, number + 12)]
            asked = time.monotonic()
            acknowledged, wait, _ = self.said(wire.batch(reports, oldest=number, sealed=bytes), own)
            number = acknowledged + 1
        minutes = (time.monotonic() - begin) / 60
        self.assertLessEqual(wait, 60000)
        self.assertLess(self.rows() - rows, 20000 + 256 + 240 * minutes + 2)
        self.assertLess(self.store_bytes() - size, 64 << 20)
        self.assertGreater(self.counter("reports_held"), 0)
        self.assertEqual(len(self.events(word="over-quota", host="h0")), 1)
        # a host that doesn't wait gets no further; it stays heard, and so do others
        again = wire.batch([(number, wire.report([wire.link_event(0, "up", "later")]))], oldest=number)
        taken = self.said(again, own)[0]
        if time.monotonic() - asked < wait / 1000:
            self.assertEqual(taken, number - 1)
        self.assertEqual(self.post("/agent/v1/report", wire.batch(), **own)[0], 200)
        self.assertEqual(self.said(wire.batch([(1, wire.report([wire.link_event(2, "up", "x")]))]), other)[:2], (1, 0))

    def test_a_host_with_too_many_events_stays_fresh(self):
        """A NIC that flaps without end: not all of its events are kept, but everything else is."""
        self.start(**fleet.PAUSE)
        self.join(0)
        own, before = self.identity("h0"), self.rows()
        report = wire.squeeze(wire.report([wire.link_event(0, "up", "x")] * 256, covers=1000, ports=[wire.number(1, 0) + wire.number(2, 1)]))
        self.all_taken(report, 108, own)
        dropped = self.counter("events_dropped")
        self.assertGreater(dropped, 108 * 256 - 20000 - 256 - 600)
        self.assertLessEqual(self.rows() - before + dropped, 108 * 256 + 2)
        self.assertEqual(self.counter("reports_held"), 0)
        told, = self.events(word="over-quota", host="h0")  # once
        self.assertRegex(told["detail"]["text"], "it sends more events than are kept for one host: [0-9]+ were dropped")
        self.assertEqual(self.host("h0")["freshness"], "live")

    def test_jobs_take_no_room_of_others(self):
        """Any user of a host can write a job page. Even if it is as long as possible, the host's own events are kept."""
        self.start(**fleet.PAUSE)
        self.join(0)
        own = self.identity("h0")
        report = wire.squeeze(wire.report([wire.job_event("failover", "j", 0, 1, "a lane failed", lane=1, reason="carrier")] * 256))
        self.all_taken(report, 108, own)
        self.assertGreater(self.counter("events_dropped"), 108 * 256 - 5000 - 256 - 600)
        link = wire.batch([(109, wire.report([wire.link_event(0, "down", "x")]))], oldest=109)
        self.assertEqual(self.said(link, own), (109, 0, ""))
        self.assertEqual(len(self.events(kind="link", host="h0")), 1)

    def test_what_a_busy_host_needs(self):
        """A NIC that goes down and up as fast as possible needs a small part of the quota. So does the largest rollup."""
        self.start()
        agent, _ = self.members(0, 1)
        rows, begin, flaps = self.rows(), time.monotonic(), 0
        while time.monotonic() < begin + 4:
            for way in ("down", "up"):
                self.ip("c", "link", "set", "p0x0", way)
                self.wait(lambda: self.ask("h0", "links")["nics"][0]["carrier"] == (way == "up"), 1, agent.log)  # seen: each counts
                time.sleep(0.1)
            flaps += 1
        self.wait(lambda: len(self.events(kind="link", host="h0")) >= flaps, 10, agent.log)
        minute = (self.rows() - rows) / (time.monotonic() - begin) * 60
        dice = random.Random(1)
        codes = [dice.randrange(800, 1200) for _ in range(8192)]
        rollup = wire.squeeze(wire.report(covers=10000, extra=wire.data(8, wire.fixed64(1, 9) + wire.packed(2, codes, True) + wire.packed(
            3, [code + dice.randrange(50) for code in codes], True))))
        print(f"{flaps} flaps in 4 s: {minute:.0f} rows a minute; 16 NICs with 512 paths each: {len(rollup)} bytes")
        self.assertEqual(self.counter("reports_held"), 0)
        self.assertLess(minute, 20000 / 10)  # ten minutes of that without a pause
        self.assertLess(len(rollup) * 60, 2 << 20)  # once a second

    def test_an_event_waits_as_long_as_the_controller_said(self):
        """From a controller with the real controller's key."""
        c = self.start()
        self.members(0)
        c.stop()
        with self.in_the_place() as tls, tls.makefile("rb") as stream:
            def reports():
                """The number of reports that the next request brings. The answer to each is: come again in ten minutes."""
                size = 0
                while (line := stream.readline().strip().lower()) != b"":
                    size = int(line.split(b":")[1]) if line.startswith(b"content-length:") else size
                body, answer = stream.read(size), wire.number(1, 1) + wire.number(9, 600000)
                tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)
                return len(wire.fields(body).get(11, []))
            reports()
            for way in ("down", "up", "down", "up"):
                self.ip("c", "link", "set", "p0x0", way)
                self.assertEqual([reports() for _ in range(3)], [0, 0, 0])  # beats

    def test_the_agent_says_what_is_not_taken(self):
        """From a controller with the real controller's key."""
        c = self.start()
        agent, = self.members(0)
        c.stop()
        with self.in_the_place() as tls:
            answer = wire.number(1, 1) + wire.data(11, "report 7 is not taken: Report.events: 257, at most 256")
            tls.recv(1 << 16)
            tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)
            agent.wait_log("the controller: report 7 is not taken: Report.events: 257, at most 256")

    def test_what_is_unpacked_has_a_quota(self):
        """Small bodies that unpack to much: that must not block the loop."""
        self.start(**fleet.PAUSE)
        self.join(0)
        self.join(1)
        own = self.identity("h0")
        report, number, wait = wire.squeeze(wire.report([wire.link_event(0, "up", "x")] * 90000)), 1, 0  # 1.9 MB, over a ceiling
        while wait == 0 and number < 1000:
            batch = wire.batch([(n, b"") for n in range(number, number + 64)], oldest=number, sealed=lambda _: report)
            acknowledged, wait, _ = self.said(batch, own)
            number = acknowledged + 1
        self.assertGreater(wait, 0)
        self.assertLess(self.counter("reports_over"), 200)
        body, answers = wire.squeeze(wire.batch() + wire.data(100, bytes(8000000))), []
        while 429 not in answers and len(answers) < 200:
            answers.append(self.post("/agent/v1/report", body, **own, headers={"Content-Encoding": "zstd"})[0])
            time.sleep(0.1)  # not too often: the number of requests isn't the limit here
        self.assertIn(429, answers)
        self.assertEqual(self.post("/agent/v1/report", wire.batch(), **self.identity("h1"))[0], 200)

    def test_a_member_has_a_quota_of_time(self):
        """Small requests that take long to handle: others get their turns between them, and soon the host has to wait."""
        self.start(**fleet.PAUSE)
        self.join(0)
        self.join(1)
        number, wait, end = 1, 0, time.monotonic() + 300
        # one connection for all: a new one each time takes so long that the quota recovers
        connection = http.client.HTTPConnection("10.90.0.1", 7638)
        connection.sock = self.tls(**self.identity("h0"))
        made_up = [wire.squeeze(wire.report(covers=1000, extra=b"".join(
            wire.data(11, wire.job_process(f"j{64 * n + k}", 0, 1)) for k in range(64)))) for n in range(32)]  # the book holds half of them
        while wait == 0 and time.monotonic() < end:
            batch = wire.batch([(n, made_up[n % 32]) for n in range(number, number + 256)], oldest=number, sealed=bytes)
            connection.request("POST", "/agent/v1/report", batch)
            answer = connection.getresponse()
            acknowledged, wait, _ = self.told(answer.status, answer.read())
            self.assertGreaterEqual(acknowledged + (wait > 0), number)  # each request brings it on
            number = acknowledged + 1
            time.sleep(0.05)  # with the commit that is not too often
        connection.close()
        self.assertGreater(wait, 0)
        told, = self.events(word="over-quota", host="h0")
        self.assertIn("more of the controller's time than one host may have", told["detail"]["text"])
        self.assertEqual(self.said(wire.batch([(1, wire.report([wire.link_event(2, "up", "x")]))]), self.identity("h1"))[:2], (1, 0))
        # an agent starts once in a report, even if the report repeats it
        before = len(self.events(word="agent-started"))
        self.assertEqual(self.said(wire.batch([(2, wire.report([b"\x08\x03"] * 256))], oldest=2), self.identity("h1"))[0], 2)
        self.assertEqual(len(self.events(word="agent-started")), before + 1)

    # ---- hosts that aren't members and join ----

    def test_one_address_stops_no_others_join(self):
        """One address tries a made-up token until it is refused. From another address 30 requests are looked at, at once."""
        self.start()
        body = wire.number(1, 2) + wire.data(2, "made up")
        ask = f"POST /agent/v1/join HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

        def answers(sock, count):
            sock.settimeout(fleet.IO_S)
            text = b""
            while len(found := re.findall(rb"HTTP/1\.1 (\d+)", text)) < count and b" 429 " not in text:
                part = sock.recv(65536)
                if not part:
                    break
                text += part
            return [int(f) for f in found]

        def asked(i, count):
            with self.tls(i=i) as sock:
                sock.sendall(ask * count)
                return answers(sock, count)
        proven, tries = False, 0
        while not proven:
            while 429 not in asked(0, 100):
                pass
            other = asked(1, 30)
            if 429 in other and tries < 3:  # one time in 64 both share a place, until the next minute
                tries += 1
                time.sleep(60)
                continue
            self.assertEqual(other, [403] * 30)
            # Fewer than 30 came back since: were they shared, the other one had not got its 30. If 30 did, both have them again.
            proven = 429 in asked(0, 30)
        with self.tls(i=1) as sock:  # without a token nobody can make the controller keep a megabyte
            sock.sendall(b"POST /agent/v1/join HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
            self.assertEqual(answers(sock, 1), [413])

    def test_certificates_without_end(self):
        """Each costs two syncs of the disk, which the processor time doesn't show."""
        self.start(**fleet.PAUSE)
        self.join(0)
        own = self.identity("h0")
        fleet.run("openssl", "req", "-new", "-key", own["key"], "-subj", "/CN=h0", "-out", self.path("request.pem"))
        body = wire.number(1, 2) + wire.data(2, self.read(self.path("request.pem")))
        connection, seen = http.client.HTTPConnection("10.90.0.1", 7638), []
        connection.sock = self.tls(**own)
        while len(seen) < 20 and (not seen or seen[-1] == 200):
            connection.request("POST", "/agent/v1/renew", body)
            answer = connection.getresponse()
            answer.read()
            seen.append(answer.status)
        connection.close()
        self.assertEqual((seen[0], seen[-1]), (200, 429), seen)

    # ---- numbers ----

    def test_numbers_that_readers_refuse(self):
        """Any process can write them into its job's page. A reader of the fleet's history can read it nevertheless."""
        self.start(**fleet.PAUSE)
        self.join(0)
        most = 2 ** 64 - 1
        event = wire.job_event("failover", "j", 0, 1, "x", lane=0, reason="timeout", stalled=most)
        process = wire.job_process("j", 0, 1, rate=most, stalled=most, failovers=most, sent=most)
        report = wire.report([event], covers=1000, extra=wire.data(11, process))
        self.assertEqual(self.said(wire.batch([(1, report)]), self.identity("h0"))[0], 1)
        told, = self.events(kind="job")
        self.assertEqual(told["detail"]["stalled_ns"], 2 ** 63 - 1)
        self.assertEqual(self.get("/api/v1/jobs/j")["process_list"][0]["stalled_ns"], 2 ** 63 - 1)
        for words in (["changes"], ["jobs", "--controller", "http://127.0.0.1:7639"]):
            shown = fleet.run("ip", "netns", "exec", self.space("c"), self.FOLIOT, *words, check=False,
                              env=dict(os.environ, FOLIOT_API="http://127.0.0.1:7639", FOLIOT_TOKEN=self.admin))
            self.assertEqual((shown.returncode, "j" in shown.stdout), (0, True), shown)

    # ---- the disk ----

    def test_a_full_disk(self):
        os.mkdir(self.path("data"))
        fleet.run("mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", self.path("data"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)  # after the next cleanup
        self.addCleanup(fleet.run, "umount", "-l", self.path("data"), check=False)
        c = self.start()
        self.join(0)
        own = self.identity("h0")
        sent = 0

        def send():
            reports = [(sent + 1, wire.report([wire.link_event(0, "up", f"{sent + 1} " + "x" * 1000)]))]
            status, body = self.post("/agent/v1/report", wire.batch(reports, oldest=sent + 1), **own)
            return status, wire.fields(body).get(2, [0])[0] if status == 200 else None
        filler = os.open(self.path("data", "filler"), os.O_WRONLY | os.O_CREAT)
        with self.assertRaises(OSError):
            while os.write(filler, b"x" * 4096):
                pass
        os.close(filler)
        status, acknowledged = 200, 0
        while status == 200 and sent < 3000:  # as much as SQLite's log had room for
            status, acknowledged = send()
            sent += status == 200
        self.assertEqual(status, 503, c.log())
        self.assertFalse(self.get("/api/v1/status")["store"]["writable"])
        c.wait_log("can't be stored: No space left on device. Nothing is acknowledged until it can")
        time.sleep(3)  # nothing is written meanwhile, so this shows nothing about the disk
        self.assertFalse(self.get("/api/v1/status")["store"]["writable"], c.log())
        self.assertNotIn("can be written again", c.log())
        os.unlink(self.path("data", "filler"))
        self.wait(lambda: self.get("/api/v1/status")["store"]["writable"], fleet.IO_S, c.log)  # by itself
        self.wait(lambda: send() == (200, sent + 1), fleet.IO_S, c.log)
        sent += 1
        self.assertTrue(self.get("/api/v1/status")["store"]["writable"])
        numbers = [int(e["detail"]["text"].split()[0]) for e in reversed(self.events(kind="link"))]
        self.assertEqual(numbers[-1], sent)
        self.assertEqual(numbers, list(range(numbers[0], sent + 1)))
        self.assertEqual(c.stop(), 0)
        self.assertIn("good", self.command("check").stdout)

    # ---- clocks ----

    def test_a_clock_wrong_by_years(self):
        self.start()
        self.join(0)
        own = self.identity("h0")
        for n, at in enumerate((1, 10 ** 18, 2 ** 62, 5), 1):  # readings of a clock that leaps about
            body = wire.report([wire.link_event(0, "up", str(n), at)], at=at, covers=1000,
                               ports=[wire.number(1, 0) + wire.number(2, 1)])
            self.assertEqual(self.post("/agent/v1/report", wire.batch([(n, body)], oldest=n), **own)[0], 200)
        now = time.time_ns()
        for event in self.events(kind="link"):
            self.assertLess(abs(event["at_utc_ns"] - now), 60 * 10 ** 9)
        self.assertEqual(self.get("/api/v1/status")["hosts"], 1)

    def test_nothing_is_older_than_its_host(self):
        """For the time before it joined it may report only what its agent had kept for the controller: hours."""
        self.start(**fleet.PAUSE)
        self.join(0)
        begin, now, hour = time.time_ns(), 10 ** 17, 3600 * 10 ** 9
        reports = [wire.report([wire.link_event(0, "down", "in an old report", now - 9 * hour)], at=now - 9 * hour, covers=1000),
                   wire.report([wire.link_event(0, "down", "three hours", now - 3 * hour), wire.link_event(0, "down", "three years", now - 26280 * hour)],
                               at=now, covers=1000)]
        self.assertEqual(self.said(wire.batch(list(enumerate(reports, 1)), now=now, sealed=wire.squeeze), self.identity("h0"))[0], 2)
        ages = {e["detail"]["text"]: round((begin - e["at_utc_ns"]) / hour, 1) for e in self.events(kind="link")}
        self.assertEqual(ages, {"in an old report": 9, "three hours": 3, "three years": 0})
        self.join(1)
        old = wire.report([wire.link_event(2, "down", "a report of then", now - 26280 * hour)], at=now - 26280 * hour)
        self.assertEqual(self.said(wire.batch([(1, old)], now=now), self.identity("h1"))[0], 1)
        event, = self.events(kind="link", host="h1")
        self.assertLess(begin - event["at_utc_ns"], hour)

    # ---- in the controller's place ----

    def test_agents_believe_their_controller_only(self):
        c = self.start()
        (agent,) = self.members(0)
        self.join(1)
        c.stop()
        agent.wait_log("Reports are kept and tried again")
        fleet.run("openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", self.path("self.key"), "-out",
                  self.path("self.pem"), "-subj", "/CN=controller.foliot", "-addext", "subjectAltName=DNS:controller.foliot",
                  "-days", "9")
        mine = self.identity("h1")  # of the fleet's authority, but a host's
        for certificate, key in ((self.path("self.pem"), self.path("self.key")), (mine["certificate"], mine["key"])):
            self.assertEqual(self.impostor(certificate, key, fleet.IO_S), [], "an agent told an impostor something")
        self.assertFalse(self.ask("h0")["controller"]["connected"])
        self.controller()
        self.wait(lambda: self.ask("h0")["controller"]["connected"], fleet.IO_S, agent.log)

    def impostor(self, certificate, key, seconds):
        """The bytes that clients send to a server with that certificate at the controller's address. The agent connects by
        itself."""
        context = self.place_context(certificate, key)
        heard, tries = [], 0
        server = self.listen("10.90.0.1", 7638)
        server.settimeout(0.5)
        end = time.monotonic() + seconds
        while time.monotonic() < end and (tries < 2 or not heard):
            try:
                plain, _ = server.accept()
            except TimeoutError:
                continue
            tries += 1
            plain.settimeout(5)
            try:
                with context.wrap_socket(plain, server_side=True) as tls:
                    if text := tls.recv(1000):
                        heard.append(text)
            except (ssl.SSLError, OSError):
                pass
            if tries >= 2:
                break
        server.close()
        self.assertGreater(tries, 0, "the agent never came: nothing was tested")
        return heard

    # ---- nonsense ----

    def test_nonsense_at_every_address(self):
        c = self.start()
        self.join(0)
        dice = random.Random(20261121)
        routes = [(method.upper(), path) for path, item in self.spec.spec["paths"].items() for method in item
                  if method in ("get", "post", "delete")]
        self.assertGreater(len(routes), 20)
        words = ["", "0", "-1", "1e9", "9" * 40, "h0", "%00", "%ff%fe", "<script>", "'; DROP TABLE host;--", "../../etc", "null",
                 "true", "x" * 900, "%", "NaN", "%D9%A3", "\\", "%0d%0aSet-Cookie:a", "owd_ns_p50", "0x10"]
        values = [None, True, 0, -1, 1.5, 2 ** 70, "", "x", "<b>", [], {}, [[[[]]]], "\u0000", "x" * 3000]
        connection, seen = None, set()
        for _ in range(1500):
            method, path = dice.choice(routes)
            if path == "/api/v1/events/stream":
                continue
            operation = self.spec.spec["paths"][path][method.lower()]
            names = [p["name"] for p in map(self.spec.resolve, operation.get("parameters", [])) if p["in"] == "query"]
            schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            fields = list(self.spec.resolve(schema).get("properties", {}))
            if dice.random() < 0.1:  # other methods are refused first
                names, fields = [*names, "nonsense", "limit"], [*fields, "nonsense", "name"]
            path = re.sub(r"\{\w+\}", lambda _: dice.choice([w for w in words if w]), path)
            query = "&".join(f"{name}={dice.choice(words)}" for name in dice.sample(names, dice.randrange(min(len(names), 4) + 1)))
            method = dice.choice([method] * 8 + ["PUT", "HEAD", "OPTIONS", "BREW"])
            body = None
            if method in ("POST", "PUT"):
                body = json.dumps({name: dice.choice(values) for name in dice.sample(fields, dice.randrange(min(len(fields), 4) + 1))}).encode()
                if dice.random() < 0.2:
                    body = bytes(dice.randrange(256) for _ in range(dice.randrange(200)))
            target = (path + ("?" + query if query else "")).replace(" ", "+")
            connection = connection or self.api_connection()
            try:
                connection.putrequest(method, target, skip_host=False)
                connection.putheader("Authorization", f"Bearer {self.admin}")
                if dice.random() < 0.1:
                    connection.putheader(dice.choice(["If-None-Match", "Accept", "Last-Event-ID", "X-Y"]), dice.choice(words[:8]))
                if body is not None:
                    connection.putheader("Content-Length", str(len(body)))
                connection.endheaders(body)
                answer = connection.getresponse()
                text = answer.read()
            except http.client.InvalidURL:
                connection = None
                continue
            except (http.client.HTTPException, OSError):
                connection = None  # refused before it was complete
                self.assertIsNone(c.process.poll(), c.log())
                continue
            seen.add(answer.status)
            self.assertIn(answer.status, ANSWERS, f"{method} {target}: {text[:200]}")
            if (answer.getheader("Content-Type") or "").startswith("application/json") and text:
                json.loads(text)
            self.assertIsNone(answer.getheader("Set-Cookie"))
            if answer.will_close:
                connection = None
            if method == "DELETE" and answer.status == 200:  # it deleted its own token, or the host
                self.assertNotIn("/tokens/2", target)
        self.assertLessEqual({200, 400, 404, 405}, seen)
        self.assertIsNone(c.process.poll(), c.log())
        self.assertEqual(self.get("/api/v1/status")["version"], 1)
        self.assertEqual(c.stop(), 0)
        self.assertIn("good", self.command("check").stdout)

    def api_connection(self):
        connection = http.client.HTTPConnection("127.0.0.1", 7639)
        connection.sock = fleet.connect(self.space("c"), "127.0.0.1", 7639)
        return connection

    # ---- secrets ----

    def test_no_secret_is_in_a_log(self):
        c = self.start()
        agents = self.members(0, 1)
        secrets = {"join token": self.token, "admin's token": self.admin}
        secrets["viewer's token"] = self.request("POST", "/api/v1/tokens", {"name": "v", "role": "viewer"})[2]["token"]
        secrets["second join token"] = self.request("POST", "/api/v1/join-tokens", {})[2]["token"]
        wrong = self.token[:10] + ("A" if self.token[10] != "A" else "B") + self.token[11:]
        told = [self.join(0, token=wrong, check=False), self.join(1, token=self.token, check=False)]
        self.request("GET", "/api/v1/status", token="fla_" + "z" * 43)
        self.get("/api/v1/audit")
        bundle = fleet.run("ip", "netns", "exec", self.space("h0"), self.FOLIOT, "support-bundle", "--output",
                           self.path("bundle.tar"), check=False, env=dict(os.environ, FOLIOT_RUNTIME_DIR=self.path("run-h0")))
        self.assertEqual(bundle.returncode, 0, bundle.stderr)
        told.append(bundle)
        for how in (signal.SIGHUP, signal.SIGTERM):
            c.process.send_signal(how)
            time.sleep(0.3)
        for agent in agents:
            agent.process.send_signal(signal.SIGHUP)
            time.sleep(0.3)
            agent.stop()
        c.stop()
        files = {"wrong token": wrong, "guess": "z" * 43}
        secrets.update(files)
        for name in ("authority.key", "server.key", "fleet.key"):
            for i, line in enumerate(self.read(self.path("data", name)).splitlines()):
                secrets.update({f"{name} {i} {k}": word for k, word in enumerate(line.split())
                                if len(word) >= 32 and "---" not in word and not word.startswith("#")})
        for host in ("h0", "h1"):
            key = self.read(self.identity(host)["key"])
            secrets[f"{host}'s key"] = next(line for line in key.splitlines() if "---" not in line)
        logs = "".join(self.read(p.log_path) for p in self.processes) + "".join(t.stdout + t.stderr for t in told)
        self.assertGreater(len(secrets), 9)
        self.assertGreater(len(logs), 500)
        for name, secret in secrets.items():
            for text in (secret, secret[4:40] if secret.startswith("fl") else secret):
                self.assertNotIn(text, logs, f"{name} is in a log")
        content = fleet.run("tar", "-xOf", self.path("bundle.tar")).stdout
        self.assertGreater(len(content), 500)
        for name, secret in secrets.items():
            self.assertNotIn(secret, content, f"{name} is in a support bundle")


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)
