#!/usr/bin/env python3
"""alert.py: the time from a link down to the notice at a webhook: real agents, a real controller over TLS, network namespaces."""
import os
import sys
import time

from world import AGENT, BUILD, TOP, Rows, Missing, median, need_root, quantile, runs, spread

sys.path.insert(0, os.path.join(TOP, "test", "controller"))
import fleet  # noqa: E402
import hook  # noqa: E402

ALERTS = """
receivers: [{name: hook, webhook: {url: "http://127.0.0.1:9095/"}}]
routes: [{severity: warning, to: [hook]}]
engine: {keep: 500ms, reopen: 500ms, promote: 1000}
"""


class Bench(fleet.Fleet):
    """The fleet of the controller's tests: 2 hosts with 2 NICs, reports each second, beats each 300 ms."""
    HOSTS = 2
    AGENT, FOLIOT = AGENT, os.path.join(BUILD, "src", "app", "foliot")
    CONTROLLER = os.path.join(BUILD, "src", "app", "foliot-controller")

    def runTest(self):  # noqa: N802
        pass


def webhook(rows):
    """carrier off at the far end of a NIC, until the webhook has the notice"""
    os.environ["no_proxy"] = "127.0.0.1"
    found, missed = [], 0
    bench = Bench()
    bench.setUp()
    try:
        receiver = hook.Hook(bench.space("c"))
        bench.write("alerts.yaml", ALERTS)
        bench.start(extra=f"alerts: {bench.path('alerts.yaml')}\n")
        bench.members(0, 1)
        time.sleep(3)
        for turn in range(runs(40, 8)):
            host, nic = turn % 2, turn // 2 % 2
            before = len(receiver.notices)
            begin = time.monotonic()
            bench.ip("c", "link", "set", f"p{host}x{nic}", "down")
            notice = None
            while notice is None and time.monotonic() - begin < 5:
                time.sleep(0.005)
                notice = next((n for n in receiver.notices[before:] if n[1]["cause"] == f"h{host}/nic{nic}" and
                               n[1]["event"] in ("opened", "reopened", "worse")), None)
            if notice is None:
                missed += 1
            else:
                found.append((notice[0] - begin) * 1e3)
                print(f"    h{host}/nic{nic}: {found[-1]:.1f} ms: {notice[1]['event']}: {notice[1]['text'][:60]}", flush=True)
            bench.ip("c", "link", "set", f"p{host}x{nic}", "up")
            bench.wait(lambda: not bench.get("/api/v1/incidents?open=true")["items"], 60, "the incident is over")
            time.sleep(0.6)  # beyond `reopen`
        receiver.close()
    finally:
        bench.tearDown()
    if not found:
        raise Missing("no notice came")
    command = "ip link set <the NIC's far end> down, beside agents, a controller and a webhook in namespaces"
    rows.add("alert.webhook_ms", median(found), "ms", 2000, 200, runs=len(found) + missed, spread=spread(found), command=command,
             note=f"100 ms of it are the rule's own wait for what belongs together; missed {missed}")
    rows.add("alert.webhook_p99_ms", quantile(found, 0.99), "ms", 2000, 200, runs=len(found) + missed, command=command,
             note="nearest rank: the slowest; a veth's kernel may hold its event back for up to a second")


def main():
    need_root()
    rows = Rows("alert-lab")
    rows.measure([("alert.webhook_ms", "ms", 2000, 200), ("alert.webhook_p99_ms", "ms", 2000, 200)], webhook)
    return rows.finish()


sys.exit(main())
