#!/usr/bin/env python3
"""dashboard.py: the dashboard in Debian's Chromium: its size, the time from a link down until an open page shows it, and the
heat map of 2,000 NICs: first paint, and the longest task of the main thread while it is panned. The same with 4,000 NICs,
and what axe finds there. dashboard.py week [DAYS]: a page that stays open. It makes as many requests as Fleet makes in that
time (a week in `make soak`), while the fleet has 150 events a second. Its memory and its document must not grow. Things
that views show by the hour are not compressed."""
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import load  # noqa: E402
from world import AGENT, BUILD, Missing, Rows, TOP, median, need_root, quantile, runs, spread  # noqa: E402

sys.path.insert(0, os.path.join(TOP, "test", "controller"))
import fleet  # noqa: E402

MATRIX_HOSTS, MESH_HOSTS = 250, 500  # × 8 NICs


class Bench(fleet.Fleet):
    HOSTS = 2
    AGENT, FOLIOT = AGENT, os.path.join(BUILD, "src", "app", "foliot")
    CONTROLLER = load.CONTROLLER

    def runTest(self):  # noqa: N802
        pass


def browser(prefix, *words):
    home = tempfile.mkdtemp(prefix="foliot-browser-")
    process = subprocess.Popen([*prefix, "node", os.path.join(HERE, "dashboard.mjs"), words[0], words[1],
                                os.path.join(TOP, "web", "node_modules"), words[2]], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, env=dict(os.environ, HOME=home))
    process.home = home
    return process


def tell(process, text):
    process.stdin.write(f"{text}\n")
    process.stdin.flush()


def ended(process):
    process.stdin.close()
    process.wait(60)
    shutil.rmtree(process.home, ignore_errors=True)


def need_chromium():
    if shutil.which(os.environ.get("CHROMIUM", "chromium")) is None or shutil.which("node") is None:
        raise Missing("no chromium, or no node")


def size(rows):
    """the files that a browser fetches, as they are sent"""
    with load.Fleet() as one:
        def fetch(path):
            connection = http.client.HTTPConnection("127.0.0.1", one.api)
            connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
            answer = connection.getresponse()
            return answer.read(), answer.getheader("Content-Encoding")
        import gzip
        first, coding = fetch("/")
        page = gzip.decompress(first).decode() if coding else first.decode()
        paths = sorted(set(re.findall(r'(?:src|href)="([^"#]+)"', page)))
        sizes = {"/": len(first), **{p: len(fetch(p if p.startswith("/") else f"/{p}")[0]) for p in paths if "://" not in p}}
    rows.add("controller.dashboard_kb", sum(sizes.values()) / 1e3, "kB", 120, 60, command="GET / and all that it names, gzip",
             note=", ".join(f"{p} {n}" for p, n in sizes.items()))


def visible(rows):
    """carrier off at the far end of a NIC, until a page that was open all the time shows it"""
    need_root()
    need_chromium()
    found = []
    bench = Bench()
    bench.setUp()
    page = None
    try:
        bench.start()
        bench.members(0, 1)
        page = browser(["ip", "netns", "exec", bench.space("c")], "http://127.0.0.1:7639", bench.admin, "visible")
        for turn in range(runs(40)):
            host, nic = turn % 2, turn // 2 % 2
            tell(page, f"h{host}/nic{nic}")
            json.loads(page.stdout.readline())
            begin = time.time()
            bench.ip("c", "link", "set", f"p{host}x{nic}", "down")
            found.append(json.loads(page.stdout.readline())["at"] - begin * 1e3)
            bench.ip("c", "link", "set", f"p{host}x{nic}", "up")
            time.sleep(0.5)
        tell(page, "")
    finally:
        if page is not None:
            ended(page)
        bench.tearDown()
        bench.doCleanups()
    rows.add("controller.visible_ms_p99", quantile(found, 0.99), "ms", 2000, 300, runs=len(found), spread=spread(found),
             command="ip link set … down, until the row of an open Links view says so", note=f"median {median(found):.0f} ms")


def heat_map(hosts):
    """First paints, and the longest tasks while it is moved; what axe finds in all views."""
    need_chromium()
    with load.Fleet() as made:
        made.begin(hosts)
        time.sleep(14)  # by then each host has reported
        page = browser([], f"http://127.0.0.1:{made.api}", made.admin, "matrix")
        tell(page, hosts * load.NICS)
        paints = json.loads(page.stdout.readline())["first_paint_ms"]
        pans = json.loads(page.stdout.readline())["pan"]
        ended(page)
        page = browser([], f"http://127.0.0.1:{made.api}", made.admin, "axe")
        tell(page, "")
        violations = json.loads(page.stdout.readline())["violations"]
        ended(page)
    return paints, pans, violations


def matrix(rows):
    """the heat map of 2,000 NICs"""
    paints, pans, _ = heat_map(MATRIX_HOSTS)
    rows.add("controller.matrix_first_paint_ms", median(paints), "ms", 1000, 300, runs=len(paints), spread=spread(paints),
             command="from the click on Mesh to the frame", note=f"{MATRIX_HOSTS * load.NICS} NICs, data fetched and drawn")
    rows.add("controller.matrix_pan_ms_p95", quantile(pans, 0.95), "ms", 50, 16, runs=len(pans), spread=spread(pans),
             command="the longest task of the main thread in each of 24 drags", note="software rendering, no GPU")


def mesh4000(rows):
    """the page of 4,000 NICs"""
    paints, pans, violations = heat_map(MESH_HOSTS)
    rows.add("page.mesh4000.s", median(paints) / 1e3, "s", 0.5, 0.2, runs=len(paints), spread=spread(paints) / 1e3,
             command="dashboard.py mesh4000: from the click on Mesh to the frame", note=f"{MESH_HOSTS * load.NICS} NICs, data fetched and drawn")
    rows.add("page.mesh4000.frame_ms", quantile(pans, 0.95), "ms", 16, 8, runs=len(pans), spread=spread(pans),
             command="dashboard.py mesh4000: the longest task of the main thread in each of 24 drags over all NICs, p95",
             note="software rendering, no GPU")
    rows.add("page.axe", len(violations), "", 0, runs=36, command="dashboard.py mesh4000: 12 views, light, dark and on a phone",
             note="; ".join(violations[:5]) or None)


WEEK_HOSTS = 60
REQUESTS_A_DAY = 2 * 86400 // 5 + 2 * 86400 // 10  # Fleet asks for two things each 5 s, for two each 10 s


def stays_open(rows, days):
    """a page that is left open"""
    need_chromium()
    os.environ["FOLIOT_LOAD_EVENTS"] = "1"
    samples = []
    with load.Fleet() as made:
        made.begin(WEEK_HOSTS, report_ms=400, beat_ms=300)
        page = browser([], f"http://127.0.0.1:{made.api}", made.admin, "week")
        tell(page, int(days * REQUESTS_A_DAY))
        errors = None
        for line in page.stdout:
            said = json.loads(line)
            if "errors" in said:
                errors = said["errors"]
                break  # it ends with its input
            samples.append(said["sample"])
            print(f"    {said['sample']}", flush=True)
        ended(page)
        events = int(made.line["acknowledged"])
    if errors is None:
        raise Missing(f"the page ended after {len(samples)} rounds")
    if len(samples) < 6:
        raise Missing(f"{len(samples)} rounds of views: too few to compare")
    settled = samples[1:]  # the first sample still fills lists
    part = max(2, len(settled) // 4)

    def growth(what):
        first, last = (median([s[what] for s in some]) for some in (settled[:part], settled[-part:]))
        return last / first, f"{first:,.0f} at first, {last:,.0f} at last".replace(",", " ")
    command = f"dashboard.py week {days:g}"
    note = f"{samples[-1]['requests']} requests, {events} events, {len(samples)} rounds of all views; page errors: {len(errors)}"
    for name, what, must in (("heap", "heap", 1.2), ("nodes", "nodes", 1.1), ("listeners", "listeners", 1.1)):
        ratio, words = growth(what)
        rows.add(f"controller.page_{name}_growth", ratio, "x", must, None, runs=len(settled), command=command, note=f"{words}; {note}")
    rows.add("controller.page_errors", len(errors), "", 0, None, command=command, note="; ".join(errors[:2])[:200] or None)


def main():
    if sys.argv[1:2] == ["week"]:
        days = float(sys.argv[2]) if len(sys.argv) > 2 else 7

        def week(rows):
            """a page that stays open"""
            stays_open(rows, days)
        rows = Rows("controller-page")
        rows.measure([("controller.page_heap_growth", "x", 1.2, None)], week)
        return rows.finish()
    rows = Rows("controller-dashboard")
    measures = {"size": ([("controller.dashboard_kb", "kB", 120, 60)], size),
                "visible": ([("controller.visible_ms_p99", "ms", 2000, 300)], visible),
                "matrix": ([("controller.matrix_first_paint_ms", "ms", 1000, 300), ("controller.matrix_pan_ms_p95", "ms", 50, 16)],
                           matrix),
                "mesh4000": ([("page.mesh4000.s", "s", 0.5, 0.2), ("page.mesh4000.frame_ms", "ms", 16, 8), ("page.axe", "", 0, None)], mesh4000)}
    for name in sys.argv[1:] or measures:
        rows.measure(*measures[name])
    return rows.finish()


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    sys.exit(main())
