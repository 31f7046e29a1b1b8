#!/usr/bin/env python3
"""A fleet of two versions: agents and controllers of the last tag and of this tree work together, and a rolling upgrade there and
back loses nothing. The last tag is built here. Without a tag the result is *not measured*, and the output states it.
usage: test_versions.py CONTROLLER AGENT FOLIOT   (FOLIOT_PREVIOUS=BUILD: that build is the earlier one)"""
import os
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleet  # noqa: E402
import previous  # noqa: E402

FOLIOT, AGENT, CONTROLLER = (os.path.abspath(sys.argv.pop(n)) for n in (3, 2, 1))
fleet.Fleet.FOLIOT, fleet.Fleet.AGENT, fleet.Fleet.CONTROLLER = FOLIOT, AGENT, CONTROLLER


class TestVersions(fleet.Fleet):
    HOSTS = 2
    BEFORE = None

    def program(self, name, old):
        return os.path.join(self.BEFORE, "src", "app", name) if old else {"foliot-agent": AGENT,
                                                                        "foliot-controller": CONTROLLER}[name]

    def use(self, old_controller, old_agent):
        fleet.Fleet.CONTROLLER = self.program("foliot-controller", old_controller)
        fleet.Fleet.AGENT = self.program("foliot-agent", old_agent)

    def tearDown(self):
        super().tearDown()
        fleet.Fleet.CONTROLLER, fleet.Fleet.AGENT = CONTROLLER, AGENT

    def live(self, names, why):
        self.wait(lambda: all((self.host(n) or {}).get("freshness") == "live" and self.host(n)["paths"] for n in names), 30, why)

    def test_each_with_each(self):
        for old_controller, old_agent in ((True, False), (False, True)):
            with self.subTest(old_controller=old_controller, old_agent=old_agent):
                self.use(old_controller, old_agent)
                if old_controller:
                    self.spec.answer = lambda *_: None  # this tree's openapi.yaml doesn't describe an older controller's answers
                c = self.start()
                agents = self.members(0, 1)
                self.live(["h0", "h1"], c.log)
                for agent in agents:
                    agent.stop()
                c.stop()
                fleet.run("rm", "-rf", *(self.path(n) for n in ("data", "state-h0", "state-h1", "h0.yaml", "h1.yaml")))
                self.spec.__dict__.pop("answer", None)

    def test_rolling_there_and_back(self):
        """Controller first, then agents. The controller's store doesn't go back, as its schema states."""
        self.use(True, True)
        self.spec.answer = lambda *_: None
        c = self.start()
        agents = self.members(0, 1)
        self.live(["h0", "h1"], c.log)
        away = time.monotonic()
        c.stop()
        self.use(False, True)
        c = self.controller()
        self.live(["h0", "h1"], c.log)
        away = time.monotonic() - away
        for old in (False, True, False):  # agents one by one, back, and there again
            for i in range(2):
                agents[i].stop()
                self.use(False, old)
                agents[i] = self.agent(i)
                agents[i].wait_log("fleet of .* NICs on")  # without it the host counts as live for some seconds, too
            self.live(["h0", "h1"], lambda: c.log() + agents[0].log())
        self.assertEqual(self.events(word="history-gap"), [])
        self.wait(lambda: not self.get("/api/v1/incidents?open=true")["items"], 10, lambda: str(self.get("/api/v1/incidents?open=true")))
        print(f"controller away for {away:.1f} s, all hosts live again")
        self.spec.__dict__.pop("answer", None)


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="foliot-versions-") as place:
        TestVersions.BEFORE, what = os.environ.get("FOLIOT_PREVIOUS"), "FOLIOT_PREVIOUS"
        if not TestVersions.BEFORE:
            tag = previous.last_tag()
            TestVersions.BEFORE, what = (previous.build(tag, place, ["src/app/foliot-agent", "src/app/foliot-controller"]) if tag
                                         else (None, "no tag yet"))
        if not TestVersions.BEFORE:
            print(f"not measured: {what}")
            sys.exit(77)
        print(f"the earlier version: {what}")
        result = unittest.main(verbosity=2, exit=False).result
    sys.exit(0 if result.wasSuccessful() else 1)
