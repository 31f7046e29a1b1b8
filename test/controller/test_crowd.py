#!/usr/bin/env python3
"""Many connections and many streams: the API still answers other clients. usage: test_crowd.py CONTROLLER AGENT FOLIOT"""
import contextlib
import os
import re
import resource
import select
import socket
import sqlite3
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleet  # noqa: E402

fleet.Fleet.FOLIOT = os.path.abspath(sys.argv.pop(3))
fleet.Fleet.AGENT = os.path.abspath(sys.argv.pop(2))
fleet.Fleet.CONTROLLER = os.path.abspath(sys.argv.pop(1))
TOKEN_MAX, VIEWERS_MAX = 32, 192  # api_stream.c's
QUIET_S = 15


class TestCrowd(fleet.Fleet):
    HOSTS = 1

    def make_token(self, name, role="viewer", **more):
        return self.request("POST", "/api/v1/tokens", {"name": name, "role": role, **more})[2]["token"]

    def stream(self, token):
        """A stream's connection, and the head of its answer."""
        sock = fleet.connect(self.space("c"), "127.0.0.1", 7639)
        self.addCleanup(sock.close)
        sock.sendall(f"GET /api/v1/events/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        text = b""
        while b"\r\n\r\n" not in text:
            part = sock.recv(4096)
            if not part:
                break
            text += part
        return sock, text.decode()

    # ---- streams ----

    def test_streams_that_their_readers_closed(self):
        """More streams than there are places, and than one address may have. Meanwhile nothing happens in the fleet."""
        self.start()
        token, opened = self.make_token("v"), 0
        while opened < 10 * TOKEN_MAX:
            streams = []
            for _ in range(TOKEN_MAX):
                def one():
                    sock, head = self.stream(token)
                    return (sock, head) if head.startswith("HTTP/1.1 200 ") else sock.close()
                streams.append(self.wait(one, 5, f"a place again after {opened}")[0])
                opened += 1
            for sock in streams:
                sock.close()
        self.assertEqual(self.get("/api/v1/status", token=token)["hosts"], 0)

    def test_room_is_kept(self):
        self.start()
        first, _ = self.stream(self.admin)
        viewers, head = [self.make_token(f"v{i}") for i in range(VIEWERS_MAX // TOKEN_MAX + 1)], ""
        for i, token in enumerate(viewers[:-1]):
            for k in range(TOKEN_MAX):
                _, head = self.stream(token)
                self.assertRegex(head, "^HTTP/1.1 200 ", f"{i}.{k}")
            if i == 0:
                _, head = self.stream(token)
                self.assertRegex(head, r"^HTTP/1\.1 429 (?s:.*)\r\nRetry-After: \d+\r\n")
        _, head = self.stream(viewers[-1])
        self.assertRegex(head, r"^HTTP/1\.1 503 (?s:.*)\r\nRetry-After: \d+\r\n")
        for role in ("operator", "admin"):
            _, head = self.stream(self.make_token(f"one more {role}", role))
            self.assertRegex(head, "^HTTP/1.1 200 ")
        self.assertEqual(self.get("/api/v1/status", token=viewers[-1])["hosts"], 0)
        text = b""
        while not re.search(rb"\n: [^\n]*\n\n", text):  # a comment, in a fleet where nothing happens
            part = first.recv(4096)
            self.assertTrue(part, text)
            text += part

    # ---- connections without a request ----

    def open_idle(self, count, source):
        idle = []
        with open("/proc/self/ns/net", "rb") as own, open(f"/run/netns/{self.space('c')}", "rb") as other:
            fleet.LIBC.setns(other.fileno(), fleet.CLONE_NEWNET)
            try:
                for _ in range(count):
                    idle.append(socket.create_connection(("127.0.0.1", 7639), fleet.IO_S, (source, 0)))
                    self.addCleanup(idle[-1].close)
            finally:
                fleet.LIBC.setns(own.fileno(), fleet.CLONE_NEWNET)
        return idle

    @staticmethod
    def still_open(sock):
        sock.setblocking(False)
        try:
            return sock.recv(1) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def test_strangers_that_say_nothing(self):
        """A request is answered while the silent connections still exist, not only after they were cut off. If the machine
        pauses, they may be cut off before the request: then they are opened again."""
        self.start()
        for sources in (["127.0.0.1"], [f"127.0.0.{i}" for i in range(2, 8)]):
            def answered_beside_them():
                idle = [sock for source in sources for sock in self.open_idle(250 if len(sources) > 1 else 400, source)]
                self.assertEqual(self.get("/api/v1/status")["hosts"], 0)
                left = sum(map(self.still_open, idle))
                self.wait(lambda: not any(map(self.still_open, idle)), 8, "their end")
                return left > 200
            self.wait(answered_beside_them, 15, "an answer before they were cut off")

    def test_who_is_known_stays(self):
        """A connection that has shown a token is still there after a crowd of strangers came and went."""
        self.start()
        sock = fleet.connect(self.space("c"), "127.0.0.1", 7639)
        ask = f"GET /api/v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.admin}\r\n\r\n".encode()
        for _ in range(2):
            sock.sendall(ask)
            text = b""
            while b'"hosts":0' not in text:
                part = sock.recv(65536)
                self.assertTrue(part, text)
                text += part
            time.sleep(0.1)
            self.open_idle(400, "127.0.0.1")
        sock.close()

    # ---- answers that aren't read ----

    def ask_and_read_nothing(self, request):
        with open("/proc/self/ns/net", "rb") as own, open(f"/run/netns/{self.space('c')}", "rb") as other:
            fleet.LIBC.setns(other.fileno(), fleet.CLONE_NEWNET)
            try:
                sock = socket.socket()
                self.addCleanup(sock.close)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                sock.connect(("127.0.0.1", 7639))
            finally:
                fleet.LIBC.setns(own.fileno(), fleet.CLONE_NEWNET)
        sock.setblocking(False)
        with contextlib.suppress(ConnectionError):  # it was cut off already
            sock.sendall(request)
        return sock

    def test_strangers_that_take_no_answer(self):
        """More connections than there are places ask for the page again and again, and read nothing. A request beside them is
        answered while they still exist, not only after they were cut off."""
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self.ip("c", "link", "set", "lo", "mtu", "1500")  # as of a network: the kernel keeps less than an answer
        self.start()
        ask = b"GET /app.js HTTP/1.1\r\nHost: x\r\n\r\n" * 3

        def answered_beside_them():
            crowd = [self.ask_and_read_nothing(ask) for _ in range(1100)]
            self.assertEqual(self.get("/api/v1/status")["hosts"], 0)
            left = sum(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0 for sock in crowd)
            for sock in crowd:
                sock.close()
            return left > 500
        self.wait(answered_beside_them, 15, "an answer before they were cut off")

    def events(self, count, kind, body):
        """A controller with so many events of h0 in its store."""
        c = self.start(**fleet.PAUSE)
        self.join(0)
        self.assertEqual(c.stop(), 0)
        base = sqlite3.connect(self.path("data", "store.db"))
        base.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO event(at_ns, fleet_ns, host, kind, word, body) "
                     "SELECT ? - i * 1000000, 0, 1, ?, 'up', ? FROM n", (count, time.time_ns(), kind, body))
        base.commit()
        base.close()
        return self.controller()

    def test_what_an_answer_takes_is_the_tokens_time(self):
        """The thread reads rows, the loop decodes their content: that takes longest."""
        self.events(10000, "job", '{"job":"j","user":1,"text":[' + 1000 * "1," + "1]}")
        token = self.make_token("v")
        self.wait(lambda: self.request("GET", "/api/v1/savings", token=token)[0] == 429, 20, "its end")

    # ---- questions about everything ----

    def test_a_question_about_everything_holds_up_nobody(self):
        """A filter that matches nothing makes the store read all events; other clients are answered meanwhile.
        FOLIOT_TEST_EVENTS: how many."""
        rows = int(os.environ.get("FOLIOT_TEST_EVENTS", "600000"))
        c = self.start()
        self.join(0)
        self.assertEqual(c.stop(), 0)
        base = sqlite3.connect(self.path("data", "store.db"))
        now = time.time_ns()
        base.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO event(at_ns, fleet_ns, host, kind, word, "
                     "body) SELECT ? - i * 1000000, 0, 1, 'link', 'up', '{\"nic\":0,\"name\":\"nic0\",\"text\":\"nic0: carrier is back\"}' FROM n", (rows, now))
        base.commit()
        base.close()
        self.controller()
        for path in ("/api/v1/events?word=nothing", "/api/v1/findings?kind=rdma-port", "/api/v1/savings", "/api/v1/events?after=0&kind=job"):
            others, took, worst = 0, 0.0, 0.0
            # each with a token of its own: on a busy machine one request takes longer than a token's allowance
            token = f"Host: x\r\nAuthorization: Bearer {self.make_token(path, 'admin')}\r\n\r\n"
            slow, quick = (fleet.connect(self.space("c"), "127.0.0.1", 7639) for _ in range(2))
            slow.sendall(f"GET {path} HTTP/1.1\r\n{token}".encode())
            begin = time.monotonic()
            while not select.select([slow], [], [], 0)[0]:  # counts other answers before its own
                sent = time.monotonic()
                quick.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertTrue(quick.recv(4096).startswith(b"HTTP/1.1 200 "))
                worst = max(worst, time.monotonic() - sent)
                others += 1
            took = time.monotonic() - begin
            self.assertTrue(slow.recv(4096).startswith(b"HTTP/1.1 200 "))
            print(f"{rows} events: {path}: {took * 1e3:.0f} ms, meanwhile {others} others answered, the slowest in {worst * 1e3:.1f} ms")
            if "finding" not in path:  # there are none: nothing to search
                self.assertGreater(others, 3, path)
            slow.close()
            quick.close()


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)
