#!/usr/bin/env python3
"""The controller as operators, agents and strangers meet it. usage: test_controller.py CONTROLLER AGENT FOLIOT"""
import json
import os
import signal
import ssl
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleet  # noqa: E402

fleet.Fleet.FOLIOT = os.path.abspath(sys.argv.pop(3))
fleet.Fleet.AGENT = os.path.abspath(sys.argv.pop(2))
fleet.Fleet.CONTROLLER = os.path.abspath(sys.argv.pop(1))


class TestFleet(fleet.Fleet):
    def test_openapi_examples(self):
        self.spec.examples()

    def test_join_report_see(self):
        controller = self.start()
        agents = self.members(0, 1)
        # the first was told of the second within seconds, and each measures the other
        self.wait(lambda: self.host("h0")["paths"] >= 2 and self.host("h1")["paths"] >= 2, 15,
                  lambda: str(self.host("h0")) + agents[0].log())
        hosts = self.get("/api/v1/hosts")["items"]
        self.assertEqual([h["name"] for h in hosts], ["h0", "h1"])
        self.assertEqual(hosts[0]["freshness"], "live")
        nics = self.get("/api/v1/nics")["items"]
        self.assertEqual([(n["nic"], n["host"], n["name"], n["rail"]) for n in nics],
                         [(0, "h0", "nic0", 0), (1, "h0", "nic1", 1), (2, "h1", "nic0", 0), (3, "h1", "nic1", 1)])
        self.assertTrue(all(link["state"] == "up" for link in self.get("/api/v1/links")["items"]))
        self.wait(lambda: any(p["state"] == "alive" for p in self.get("/api/v1/paths?from=0&to=2")["items"]), 10, "a path")
        self.assertTrue(self.get("/api/v1/latency")["cells"])
        self.assertIn(b"# EOF", self.get("/metrics"))
        # a cut link is seen by all who ask, at once
        self.ip("c", "link", "set", "p1x0", "down")
        begin = time.monotonic()
        self.wait(lambda: any(e["word"] == "down" for e in self.events(kind="link", host="h1")), 2, lambda: str(self.events()) + str(self.get("/api/v1/links?host=h1")) + agents[1].log() + controller.log() + str(self.get("/api/v1/status")))
        print(f"link down -> event in {time.monotonic() - begin:.2f} s")
        self.wait(lambda: self.get("/api/v1/findings?open=true&host=h1")["items"], 3, "the finding")
        self.assertEqual(self.host("h1")["health"], "bad")
        for agent in agents:
            self.assertEqual(agent.stop(), 0)
        self.wait(lambda: self.host("h0")["freshness"] == "stale", 6, "silence")
        self.assertEqual(self.host("h0")["health"], "unknown")
        self.assertEqual(controller.stop(), 0)


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)
