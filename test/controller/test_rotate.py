#!/usr/bin/env python3
"""Another authority and another fleet key under a running fleet. usage: test_rotate.py CONTROLLER AGENT FOLIOT"""
import contextlib
import os
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


class TestRotate(fleet.Fleet):
    HOSTS = 2

    def foliot(self, *arguments, status=0):
        done = subprocess.run(["ip", "netns", "exec", self.space("c"), self.FOLIOT, "host", "rotate", *arguments], text=True,
                              check=False, capture_output=True, env=dict(os.environ, FOLIOT_TOKEN=self.admin))
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def rotation(self):
        return self.get("/api/v1/rotation")

    def authorities(self, path):
        return self.read(path).count("BEGIN CERTIFICATE")

    def no_gap(self, agents):
        """Checks that no host became silent and nothing was lost."""
        self.assertEqual([e["word"] for e in self.events(kind="host") if e["word"] in ("silent", "history-gap", "reports-lost")], [])
        for i, agent in enumerate(agents):
            self.assertIsNone(agent.process.poll(), agent.log())
            self.wait(lambda: self.host(f"h{i}")["freshness"] == "live", 5, agent.log)

    def test_authority(self):
        c = self.start(report="10s", beat="500ms")
        agents = self.members(0, 1)
        first = self.read(self.path("data", "authority.pem"))
        key = self.read(self.path("data", "authority.key"))
        old = [self.read(self.identity(f"h{i}")["certificate"]) for i in range(2)]
        server = self.read(self.path("data", "server.pem"))
        token = self.request("POST", "/api/v1/join-tokens", {})[2]["token"]
        self.assertIn("is trusted too", self.foliot("authority"))
        self.assertNotIn(key, self.read(self.path("data", "authority.key")))
        self.wait(lambda: not self.rotation()["authority"]["rotating"], 15, lambda: str(self.rotation()) + c.log() + agents[0].log())
        self.assertNotIn(first, self.read(self.path("data", "authority.pem")))
        self.assertEqual(self.authorities(self.path("data", "authority.pem")), 1)
        self.assertNotEqual(self.read(self.path("data", "server.pem")), server)
        own = self.path("data", "authority.pem")
        trusted = [os.path.join(os.path.dirname(self.identity(f"h{i}")["certificate"]), "authority.pem") for i in range(2)]
        self.wait(lambda: all(self.read(path) == self.read(own) for path in trusted), 15, agents[0].log)
        # The old certificates are refused, the new ones are accepted, and a host that comes now joins with the token from before.
        self.write("old.pem", old[0])
        self.assertRaisesOr401(lambda: self.post("/agent/v1/report", wire.batch(), self.path("old.pem"), self.identity("h0")["key"])[0])
        self.wait(lambda: all((self.host(f"h{i}") or {}).get("freshness") == "live" for i in range(2)), 10, agents[1].log)
        self.no_gap(agents)
        agents[1].stop()
        self.request("DELETE", "/api/v1/hosts/h1")
        self.ip("h1", "address", "add", "10.89.0.99/24", "dev", "nic0")
        self.join(1, token=token, name="h9")
        # A host that is down delays it, until it is left behind.
        self.foliot("authority")
        self.wait(lambda: self.rotation()["authority"]["hosts_left"] == ["h9"], 10, lambda: str(self.rotation()))
        self.assertIn("isn't over", self.foliot("authority", status=1))
        c.stop()  # in the middle of it
        c = self.controller()
        self.assertTrue(self.rotation()["authority"]["rotating"])
        self.wait(lambda: self.rotation()["authority"]["hosts_left"] == ["h9"], 10, lambda: str(self.rotation()))
        self.assertIn("no other authority is trusted", self.foliot("authority", "--finish"))
        self.wait(lambda: self.host("h0")["freshness"] == "live", 5, agents[0].log)
        self.assertRaisesOr401(lambda: self.post("/agent/v1/report", wire.batch(), **self.identity("h9"))[0])
        self.assertIn("rotate", [a["what"] for a in self.get("/api/v1/audit")["items"]])

    def assertRaisesOr401(self, call):
        try:
            self.assertEqual(call(), 401)
        except OSError:
            pass

    def test_an_exchange_that_was_cut_off(self):
        """kill -9 between the two files: before the key's file the old authority goes on, after it the new one."""
        c = self.start()
        self.join(0)
        c.stop()
        for name in ("key", "pem"):
            self.write(os.path.join("data", f"authority.next.{name}"), "never came to anything")
        c = self.controller()
        self.assertFalse(os.path.exists(self.path("data", "authority.next.pem")))
        self.assertEqual(self.post("/agent/v1/report", wire.batch(), **self.identity("h0"))[0], 200)
        old = self.read(self.path("data", "authority.pem"))
        self.foliot("authority")
        c.stop()
        bundle = self.read(self.path("data", "authority.pem"))
        self.write(os.path.join("data", "authority.next.pem"), bundle)
        self.write(os.path.join("data", "authority.pem"), old)
        c = self.controller()
        self.assertEqual(self.read(self.path("data", "authority.pem")), bundle)
        self.assertEqual(self.post("/agent/v1/report", wire.batch(), **self.identity("h0"))[0], 200)

    def cutting(self, cuts):
        """In the controller's place, with its certificate: tells the agent to renew, and cuts off that many renewals. Returns how
        many came."""
        context, listener = self.place_context(), self.listen("10.90.0.1", 7638)
        end, came = time.monotonic() + fleet.IO_S, 0
        listener.settimeout(1)  # to look at the end

        def one(plain):
            nonlocal came
            with context.wrap_socket(plain, server_side=True) as sock, sock.makefile("rwb") as file:
                while time.monotonic() < end and (line := file.readline()):
                    head = {k.lower(): v.strip() for k, _, v in (h.decode().partition(":") for h in iter(file.readline, b"\r\n"))}
                    file.read(int(head["content-length"]))
                    if b"/renew" in line:
                        came += 1
                        return
                    answer = wire.number(1, 1) + wire.number(8, 1)
                    file.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)
                    file.flush()

        with listener:
            while came < cuts and time.monotonic() < end:
                with contextlib.suppress(OSError):
                    one(listener.accept()[0])
        return came

    def test_a_renewal_that_is_cut_off(self):
        """As if the controller opened its port again in the middle of it: the agent tries again at once, not after a minute."""
        c = self.start(report="10s", beat="500ms")
        agents = self.members(0)
        c.stop()
        self.assertEqual(self.cutting(4), 4, agents[0].log())
        c = self.controller()
        self.foliot("authority")
        self.wait(lambda: not self.rotation()["authority"]["rotating"], 6, lambda: str(self.rotation()) + agents[0].log())
        self.assertEqual(agents[0].log().count("can't be renewed"), 1, agents[0].log())

    def keys(self, name):
        return [line.split()[1] for line in self.read(self.path(f"state-{name}", "fleet.key")).splitlines()]

    def test_fleet_key(self):
        self.start(report="10s", beat="500ms")
        agents = self.members(0, 1)
        self.wait(lambda: all(any(p["state"] == "alive" for p in self.get(f"/api/v1/paths?to={n}")["items"]) for n in (0, 2)), 30, "paths")
        bad = [self.ask(f"h{i}")["bad_packets"]["unknown_key"] for i in range(2)]
        self.assertIn("2 is used from", self.foliot("fleet-key", "--after", "60s"))
        self.assertIn("isn't over", self.foliot("fleet-key", status=1))
        self.wait(lambda: all(self.keys(f"h{i}") == ["1", "2"] for i in range(2)), 3, agents[0].log)
        self.wait(lambda: self.rotation()["fleet_key"]["hosts_behind"] == 0, 3, lambda: str(self.rotation()))
        self.wait(lambda: all(self.keys(f"h{i}") == ["2"] for i in range(2)), 90, lambda: str(self.rotation()))
        self.assertEqual((self.rotation()["fleet_key"]["id"], self.rotation()["fleet_key"]["next_id"]), (2, None))
        # Each host hears the other under the new key, and no packet had a key that its reader didn't have.
        before = self.ask("h0", "links")["nics"][0]["rx_packets"]
        self.wait(lambda: self.ask("h0", "links")["nics"][0]["rx_packets"] > before + 20, 5, "probes under the new key")
        def states():
            return [p["state"] for n in (0, 2) for p in self.get(f"/api/v1/paths?to={n}")["items"]]
        self.wait(lambda: "dead" not in states(), 5, lambda: str(states()))
        self.assertLessEqual(sum(self.ask(f"h{i}")["bad_packets"]["unknown_key"] - bad[i] for i in range(2)), 4)
        self.no_gap(agents)


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)
