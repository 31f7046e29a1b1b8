#!/usr/bin/env python3
"""A tenant's token sees only the tenant's own things. The wrong tenant tries every route. usage: test_tenant.py CONTROLLER AGENT
FOLIOT"""
import json
import os
import re
import sqlite3
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleet  # noqa: E402
import wire  # noqa: E402

fleet.Fleet.FOLIOT = os.path.abspath(sys.argv.pop(3))
fleet.Fleet.AGENT = os.path.abspath(sys.argv.pop(2))
fleet.Fleet.CONTROLLER = os.path.abspath(sys.argv.pop(1))
QUIET_S = 15  # api_stream.c's time: then a comment is due
# Everything that identifies h1 and h2: names, and addresses of both networks.
FOREIGN = re.compile(r'\bh[12]\b|10\.89\.0\.1[2-5]\b|10\.90\.0\.1[12]\b')


def finding(number, from_nic, to_nic, text):
    """A finding of h<to>: nothing arrives from <from>. NICs of h<i> are 2i and 2i + 1."""
    body = wire.varint(1 << 3 | 5) + (7).to_bytes(4, "little") + wire.number(2, number) + wire.data(3, "path-dead")
    body += wire.number(5, from_nic + 1) + wire.number(6, to_nic + 1) + wire.number(9, 2) + wire.data(15, text)
    return wire.number(1, 1) + wire.number(2, 1000 << 1) + wire.data(4, body) + wire.data(7, text)


def table(pairs):
    return (wire.fixed64(1, 99) + wire.packed(2, [to for _, to in pairs]) + wire.packed(3, [at for at, _ in pairs]) +
            wire.packed(4, [7640] * len(pairs)) + wire.data(5, bytes(8 * len(pairs))))


def rollup(pairs):
    count = len(pairs)
    return wire.fixed64(1, 99) + wire.packed(2, [900] * count, True) + wire.packed(3, [950] * count, True)


class TestTenant(fleet.Fleet):
    def init(self, **options):
        super().init(**(fleet.PAUSE | options))

    def token_for(self, scope):
        status, _, made = self.request("POST", "/api/v1/tokens", {"name": f"tenant {scope}", "role": "viewer", "scope": scope})
        self.assertEqual((status, made["scope"]), (200, scope))
        return made["token"]

    def say(self, i, reports):
        status, body = self.post("/agent/v1/report", wire.batch(reports), **self.identity(f"h{i}"))
        self.assertEqual(status, 200, body)

    def fill(self):
        """Three hosts. Each hears the two others, and reports findings about both."""
        for i in range(3):
            self.join(i)
        for i in range(3):
            pairs = [(2 * k, 2 * i) for k in range(3) if k != i]
            events = [wire.link_event(2 * i, "flap", f"h{i}/nic0: flap")]
            events += [finding(n + 1, a, b, f"h{a // 2}/nic0 -> h{b // 2}/nic0: dead, since: UTC unknown (fleet time unknown)") for n, (a, b) in enumerate(pairs)]
            ports = [wire.number(1, 2 * i) + wire.number(2, 1)]
            first = wire.report(covers=1000, ports=ports, extra=wire.data(7, table(pairs)) + wire.data(8, rollup(pairs)))
            # a job of its own, and one with ranks on all three
            jobs = wire.data(11, wire.job_process(f"of-h{i}", 0, 1)) + wire.data(11, wire.job_process("wide", i, 3, flows=[
                wire.job_flow(f"h{(i + 1) % 3}", 1, 5000)]))
            events += [wire.job_event("failover", "wide", i, 3, f"job wide, rank {i} on h{i}: lane 1 to h1 failed", lane=1, reason="carrier"),
                       wire.job_event("failover", f"of-h{i}", 0, 1, f"job of-h{i}, rank 0 on h{i}: a lane failed", reason="carrier")]
            self.say(i, [(1, first), (2, wire.report(events, covers=0)), (3, wire.report(covers=1000, ports=ports, extra=jobs))])
        self.filled_ns = time.time_ns()
        self.wait(lambda: len(self.get("/api/v1/findings?open=true")["items"]) == 6, 5, "findings")
        # hosts without a UTC: the answer has the controller's, and marks it
        for f in self.get("/api/v1/findings?open=true")["items"]:
            self.assertRegex(f["detail"]["text"], r"black hole, since 20\d\d-[-:. 0-9]+ UTC by the controller's clock; .*; reported by h\d$")
        self.wait(lambda: self.get("/api/v1/alerts")["items"], 5, "alerts")
        self.assertRegex(self.get("/api/v1/jobs/wide")["network"]["sentence"], rf"lanes failed \d+ times from {fleet.TIME} to {fleet.TIME}; ")
        self.request("POST", "/api/v1/silences", {"minutes": 5, "host": "h1", "why": "h1 is another's"})
        self.request("POST", "/api/v1/config", {"text": "flap_limit: 9\n"})

    def urls(self):
        """Each GET of the API's own description, with foreign names and numbers in its parameters."""
        for path, operations in self.spec.spec["paths"].items():
            if "get" in operations and not path.endswith("/stream") and operations["get"].get("security") != []:
                filled = path.replace("{name}", "h1")
                for number in ("1", "2", "3") if "{" in filled else ("1",):
                    yield re.sub(r"{\w+}", number, filled)
        for query in ("hosts?member=any", "nics?host=h1", "links?host=h2", "paths?host=h1", "paths?from=2", "findings?host=h1",
                      "jobs/wide", "jobs/of-h1", "jobs/of-h2?user=1000", "events?host=h1", "events?kind=job", "events?after=0", "incidents?open=true", "series?metric=clock_hard_ns&host=h1",
                      "series?metric=port_state&nic=2", "series?metric=owd_ns_p50&from=2&to=0&port=7640",
                      "series?metric=owd_ns_p50&from=0&to=2&port=7640", f"latency?at={self.filled_ns}",
                      f"latency?at={self.filled_ns}&format=binary", "latency?format=binary"):
            yield "/api/v1/" + query

    def test_the_wrong_tenant(self):
        self.start()
        self.fill()
        mine = self.token_for("h0")
        seen = {}
        for url in self.urls():
            status, _, content = self.request("GET", url, token=mine)
            text = content.decode(errors="replace") if isinstance(content, bytes) else json.dumps(content)
            self.assertNotRegex(text, FOREIGN, url)
            self.assertIn(status, (200, 400, 403, 404), url)
            seen[url] = status
            if status == 200:
                continue
            self.assertIn("error", content, url)
        # Each attempt in another's name gives unknown or refused, and nothing else.
        for url, status in seen.items():
            if re.search(r"h[12]|nic=2|from=2|to=2", url):
                self.assertIn(status, (404,) if "paths?from" not in url else (200,), url)
        self.assertEqual(seen["/api/v1/config"], 403)
        self.assertEqual(seen["/api/v1/silences"], 403)
        for path, operations in self.spec.spec["paths"].items():
            for method in set(operations) & {"post", "delete", "put", "patch"}:
                if path.startswith("/api/v1/sign-in"):
                    continue  # with the token that the caller has; below
                url = re.sub(r"{\w+}", "1", path.replace("{name}", "h0"))
                self.assertEqual(self.request(method.upper(), url, {}, token=mine)[0], 403, url)
        # The tenant sees its own: so the checks above don't pass on empty answers.
        self.assertEqual([h["name"] for h in self.get("/api/v1/hosts", token=mine)["items"]], ["h0"])
        self.assertEqual(self.get("/api/v1/status", token=mine)["hosts"], 1)
        self.assertEqual([n["nic"] for n in self.get("/api/v1/nics", token=mine)["items"]], [0, 1])
        self.assertEqual(self.get("/api/v1/paths", token=mine)["items"], [])
        self.assertEqual(self.get("/api/v1/findings", token=mine)["items"], [])
        # paths to other tenants' hosts, and findings about those, aren't counted either
        own, = self.get("/api/v1/hosts", token=mine)["items"]
        self.assertEqual((own["paths"], own["paths_dead"], own["findings_open"]), (0, 0, 0))
        status = self.get("/api/v1/status", token=mine)
        self.assertEqual((status["paths"]["measured"], status["findings_open"]), (0, 0))
        self.assertEqual((self.host("h0")["paths"], self.host("h0")["findings_open"]), (2, 2))
        self.assertNotIn(b"host_worst_path_owd_seconds{", self.get("/metrics", token=mine))
        self.assertIn(b'foliot_host_findings_open{host="h0"} 0', self.get("/metrics", token=mine))
        two, cursor, seen = self.token_for("h0,h1"), "0", []  # nor do pages count them: a cursor is a number of visible rows
        while cursor:
            page = self.get(f"/api/v1/paths?host=h1&limit=1&cursor={cursor}", token=two)
            seen += [(p["from"], p["to"]) for p in page["items"]]
            cursor = page["next"]
            self.assertIn(cursor, ("1", None))
        self.assertEqual(seen, [(0, 2)])
        self.assertEqual({e["kind"] for e in self.get("/api/v1/events", token=mine)["items"]}, {"host", "link", "job"})
        self.assertEqual([job["job"] for job in self.get("/api/v1/jobs", token=mine)["items"]], ["of-h0"])
        self.assertEqual(len(self.get("/api/v1/jobs")["items"]), 4)
        self.assertEqual([saving["job"] for saving in self.get("/api/v1/savings", token=mine)["items"]], ["of-h0"])
        self.assertEqual(self.request("GET", "/api/v1/jobs/wide", token=mine)[0], 404)
        self.assertIn(b'host="h0"', self.get("/metrics", token=mine))

    def test_a_link_signs_in_once(self):
        """With the token with which it was made, and no other; and never after that was revoked."""
        self.start()
        status, _, made = self.request("POST", "/api/v1/tokens", {"name": "t", "role": "viewer", "scope": "h0"})
        codes = [self.request("POST", "/api/v1/sign-in/codes", {}, token=made["token"])[2]["code"] for _ in range(2)]
        self.assertEqual(len(set(codes)), 2)
        self.assertEqual(self.request("POST", "/api/v1/sign-in/codes", {}, token=None)[0], 401)
        status, _, content = self.request("POST", "/api/v1/sign-in", {"code": codes[0]}, token=None)
        self.assertEqual((status, content["token"]), (200, made["token"]))
        for code in (codes[0], "", "x", made["token"], None, 7):
            self.assertEqual(self.request("POST", "/api/v1/sign-in", {"code": code}, token=None)[0], 401, code)
        self.request("DELETE", f"/api/v1/tokens/{made['id']}")
        self.assertEqual(self.request("POST", "/api/v1/sign-in", {"code": codes[1]}, token=None)[0], 401)
        guess = json.dumps({"code": "0" * 43})
        guesses = self.at_once(f"POST /api/v1/sign-in HTTP/1.1\r\nHost: x\r\nContent-Length: {len(guess)}\r\n\r\n{guess}", 300)
        self.assertEqual({status for status, _ in guesses}, {401, 429})

    def test_a_link_outlives_the_links_of_others(self):
        self.start()
        code = self.request("POST", "/api/v1/sign-in/codes", {})[2]["code"]
        mine = self.token_for("h0")
        codes = [self.request("POST", "/api/v1/sign-in/codes", {}, token=mine)[2]["code"] for _ in range(65)]
        self.assertEqual(self.request("POST", "/api/v1/sign-in", {"code": code}, token=None)[0], 200)
        status = [self.request("POST", "/api/v1/sign-in", {"code": c}, token=None)[0] for c in codes[-5:]]
        self.assertEqual(status, [401, 200, 200, 200, 200])

    def test_two_hosts_of_one_tenant(self):
        self.start()
        self.fill()
        mine = self.token_for("h1,h2")
        self.assertEqual([h["name"] for h in self.get("/api/v1/hosts", token=mine)["items"]], ["h1", "h2"])
        pairs = [(2, 4), (4, 2)]
        self.assertEqual(sorted((p["from"], p["to"]) for p in self.get("/api/v1/paths", token=mine)["items"]), pairs)
        for query in ("", f"?at={self.filled_ns}"):
            self.assertEqual(sorted((c[0], c[1]) for c in self.get(f"/api/v1/latency{query}", token=mine)["cells"]), pairs)
        findings = self.get("/api/v1/findings", token=mine)["items"]
        self.assertEqual(sorted((f["detail"]["from"]["nic"], f["detail"]["to"]["nic"]) for f in findings), pairs)
        alerts = self.get("/api/v1/alerts", token=mine)["items"]
        self.assertTrue(alerts)
        self.assertEqual([a for a in alerts if "h0" in json.dumps(a)], [])
        self.assertTrue([a for a in self.get("/api/v1/alerts")["items"] if "h0" in json.dumps(a)])
        self.assertEqual(self.get("/api/v1/series?metric=owd_ns_p50&from=2&to=4&port=7640", token=mine)["host"], "h2")
        # Pages go on although rows in between are hidden.
        ids, cursor = [], "0"
        while cursor is not None:
            page = self.get(f"/api/v1/findings?limit=1&cursor={cursor}", token=mine)
            ids += [f["id"] for f in page["items"]]
            cursor = page["next"]
        self.assertEqual(ids, [f["id"] for f in findings])

    def test_what_strangers_do_changes_nothing_that_a_tenant_reads(self):
        self.start(beat="60s")  # h0 reports once, and everything is read again and again: with a shorter beat it would be late
        self.fill()
        mine = self.token_for("h0")

        def ask(url):
            while True:  # a viewer's token has 200 requests at once
                status, headers, content = self.request("GET", url, token=mine)
                if status != 429:
                    return status, content
                time.sleep(float(headers["Retry-After"]))

        def read():
            """For each URL its status, its text without times, and its times."""
            seen = {}
            for url in self.urls():
                if "/latency" in url or url.startswith("/metrics"):
                    continue  # of now
                status, content = ask(url)
                text = content.decode(errors="replace") if isinstance(content, bytes) else json.dumps(content)
                text = re.sub(r'"(now|heard|used)_utc_ns": \d+|"age_ns": \d+', "", text)
                seen[url] = status, re.sub(r'_utc_ns": \d+', "", text), [int(at) for at in re.findall(r'_utc_ns": (\d+)', text)]
            return seen

        def same(was, now):
            """UTC changes: the kernel slews it, by at most 500 ppm."""
            return was[:2] == now[:2] and all(abs(a - b) < 20e6 for a, b in zip(was[2], now[2], strict=True))
        self.request("GET", "/api/v1/hosts", token=mine)
        before, settled = {}, read()

        def rests():
            nonlocal before, settled
            before, settled = settled, read()
            return all(same(before[url], settled[url]) for url in before)
        self.wait(rests, 40, "what was on its way")
        for i, n in ((1, 4), (2, 4)):
            jobs = wire.data(11, wire.job_process("new", i, 3)) + wire.data(11, wire.job_process("of-h0", i, 3))
            self.say(i, [(n, wire.report([wire.link_event(2 * i, "down", "down"), self.claim(70, "link-down", 2 * i), self.claim(71, "clock-disrupted"),
                                          self.claim(72, "path-dead", 0, 2 * i, suspect=("nic", "h0/nic0 or its link")),
                                          wire.job_event("failover", "of-h0", i, 3, "a lane failed", lane=1, reason="carrier")],
                                         covers=1000, ports=[wire.number(1, 2 * i) + wire.number(2, 2)], extra=jobs))])
        self.request("POST", "/api/v1/silences", {"minutes": 5, "host": "h2", "why": "quiet"})
        self.request("POST", "/api/v1/config", {"text": "flap_limit: 11\n"})
        self.wait(lambda: [f["detail"]["number"] for f in self.get("/api/v1/findings?open=true&limit=100")["items"]].count(72) == 2, 5, "accusations")
        hosts = read()["/api/v1/hosts"]
        # two hosts accuse h0, and neither is of its tenant
        self.assertTrue(same(before["/api/v1/hosts"], hosts), (before["/api/v1/hosts"], hosts))
        self.token_for("h2")
        self.assertEqual(self.request("DELETE", "/api/v1/hosts/h2")[0], 200)
        after = read()
        for url, was in before.items():
            self.assertTrue(same(was, after[url]), (url, was, after[url]))

    def test_a_page_tells_of_nobody_else(self):
        """An empty page with a cursor showed that others had something, and its time to the microsecond."""
        self.start()
        for i in (1, 0, 2):
            self.join(i)
        mine = self.token_for("h0")
        self.say(0, [(1, wire.report([wire.link_event(2, "up", "own")] * 3))])
        self.say(1, [(1, wire.report([wire.link_event(0, "down", "foreign")] * 40 + [finding(n, 4, 0, "h2 -> h1: dead") for n in range(40)]))])
        self.say(2, [(1, wire.report(covers=1000, extra=b"".join(wire.data(11, wire.job_process(f"j{n}", 0, 1)) for n in range(40))))])
        self.wait(lambda: self.events(kind="link", host="h1"), 5, "events")
        for url in ("events", "events?after=0", "findings", "hosts", "nics", "paths", "jobs"):
            for limit in (1, 2, 3, 4, 10, 1000):
                more = "&" if "?" in url else "?"
                page = self.get(f"/api/v1/{url}{more}limit={limit}", token=mine)
                items, pages = page["items"], 1
                while page["next"] is not None:
                    page, pages = self.get(f"/api/v1/{url}{more}limit={limit}&cursor={page['next']}", token=mine), pages + 1
                    items += page["items"]
                self.assertLessEqual(pages, len(items) // limit + 1, url)
                self.assertNotRegex(json.dumps(items), FOREIGN, url)
        theirs = self.events(kind="link", host="h1")[0]["at_utc_ns"]
        for query in (f"events?kind=link&since_utc_ns={theirs}&until_utc_ns={theirs + 1}&limit=1", "findings?limit=1", "jobs?limit=1",
                      f"events?limit=1&after=0&since_utc_ns={theirs}"):
            page = self.get("/api/v1/" + query, token=mine)
            self.assertEqual((page["items"], page["next"]), ([], None), query)
        self.assertEqual(len(self.get("/api/v1/events?kind=link&limit=3", token=mine)["items"]), 3)

    def test_one_name_of_two_tenants(self):
        """If a tenant gives a job another tenant's name, that tenant's job stays visible to him."""
        self.start()
        mine, theirs = self.token_for("h0"), self.token_for("h1*")
        for i in range(3):
            self.join(i)
        for n in (1, 2):
            for i in range(3):
                job = wire.data(11, wire.job_process("train", i, 3, rate=10**9 * (i + 1)))
                event = wire.job_event("failover", "train", i, 3, "a lane failed", lane=1, reason="carrier")
                self.say(i, [(2 * n - 1, wire.report(covers=1000, extra=job)), (2 * n, wire.report([event.replace(b"h1", b"h%d" % i)]))])
        for token, rate in ((mine, 10**9), (theirs, 2 * 10**9)):
            jobs = self.get("/api/v1/jobs", token=token)["items"]
            self.assertEqual([(job["job"], job["processes"], job["rate_bps"]) for job in jobs], [("train", 1, rate)])
            self.assertEqual(len(self.get("/api/v1/jobs/train", token=token)["process_list"]), 1)
            self.assertEqual([s["faults"] for s in self.get("/api/v1/savings", token=token)["items"]], [2])
        self.assertEqual(sorted(job["rate_bps"] for job in self.get("/api/v1/jobs")["items"]), [10**9, 2 * 10**9, 3 * 10**9])
        self.assertEqual([s["faults"] for s in self.get("/api/v1/savings")["items"]], [2, 2, 2])

    def test_made_up_jobs_push_nobody_out(self):
        self.start()
        for i in range(2):
            self.join(i)
        self.say(0, [(1, wire.report(covers=1000, extra=wire.data(11, wire.job_process("true", 0, 1, state=4))))])
        for n in range(1, 21):
            jobs = b"".join(wire.data(11, wire.job_process(f"false-{n}-{k}", 0, 1)) for k in range(64))
            status, body = self.post("/agent/v1/report", wire.batch([(n, wire.report(covers=1000, extra=jobs))], sealed=wire.squeeze), **self.identity("h1"))
            self.assertEqual(status, 200, body)
        self.assertEqual(self.request("GET", "/api/v1/jobs/true")[0], 200)

    def claim(self, number, kind, from_nic=None, to_nic=None, from_host=None, to_host=None, suspect=None, element=None, one_of=(), phase=0, since=0, times=()):
        """A finding with as many texts of its own as possible. element: its kind, direction and places of (kind, number, host).
        times: when it ended, and how far its length may be from the true one."""
        body = wire.varint(1 << 3 | 5) + (7).to_bytes(4, "little") + wire.number(2, number) + wire.data(3, kind)
        for field, nic in ((5, from_nic), (6, to_nic)):
            body += wire.number(field, nic + 1) if nic is not None else b""
        for field, name in ((7, from_host), (8, to_host)):
            body += wire.data(field, name) if name else b""
        if suspect:
            body += wire.data(16, suspect[0]) + wire.data(17, suspect[1]) + wire.number(18, 1)
        for field, e in [(26, element)] * bool(element) + [(28, e) for e in one_of]:
            places = [wire.number(1, kind) + wire.number(2, of + 1 if of is not None else 0) + (wire.data(4, host) if host else b"") for kind, of, host in e[2:]]
            body += wire.data(field, wire.number(1, e[0]) + wire.number(2, e[1]) + b"".join(wire.data(3 + k, p) for k, p in enumerate(places)))
        body += wire.number(4, phase) + wire.number(12, since << 1 ^ since >> 63)
        for field, ns in zip((14, 30), times):
            body += wire.number(field, ns << 1 ^ ns >> 63)
        body += wire.data(15, "FORGED what") + wire.data(19, "FORGED advice") + wire.data(21, "FORGED other")
        return wire.number(1, 1) + wire.number(2, 1000 << 1) + wire.data(4, body) + wire.data(7, "FORGED text about h1\x1b[2J\n")

    def test_a_host_reports_what_it_observes(self):
        """A finding of h0 that is taken over. NICs are 2i and 2i + 1 of host i."""
        self.start()
        for i in range(3):
            self.join(i)
        forged = [self.claim(1, "link-down", 2), self.claim(2, "nic-gone", 5), self.claim(3, "path-dead", 2, 4), self.claim(4, "clock-disrupted", from_host="h1"),
                  self.claim(5, "stamps-missing", 2), self.claim(6, "link-flapping", 0, 2), self.claim(7, "clock-liar", from_host="nobody"),
                  self.claim(8, "tomorrows-kind", 2), self.claim(9, "peer-silent", from_host="h1", to_host="h2")]
        self.say(0, [(1, wire.report(forged))])
        self.assertEqual(self.get("/api/v1/findings")["items"], [])
        self.assertEqual(self.get("/api/v1/status")["ingest"]["foreign_nics"], len(forged))
        true = [self.claim(11, "path-dead", 2, 0, suspect=("host", "h2")), self.claim(12, "link-down", 0), self.claim(13, "path-dead", 0, 4, suspect=("trunk", "trunk leaf0 - spine1")),
                self.claim(14, "path-dead", 2, 0, suspect=("spine", "spine1; FORGED")), self.claim(15, "path-dead", 2, 0, suspect=("nic", "h1/nic0 or its link")),
                self.claim(16, "clock-liar", from_host="h1", suspect=("host", "h1")), self.claim(17, "clock-disrupted")]
        self.say(0, [(2, wire.report(true))])
        said = {f["detail"]["number"]: f["detail"] for f in self.get("/api/v1/findings")["items"]}
        self.assertEqual(sorted(said), list(range(11, 18)))
        self.assertNotIn("FORGED", json.dumps([self.get(f"/api/v1/{what}") for what in ("findings", "events", "alerts", "incidents")]))
        since = r", since 20[-:. 0-9]+ UTC by the controller's clock"
        for number, text in ((11, rf"h1/nic0 -> h0/nic0: silent black hole{since}; suspect: unknown; reported by h0"),
                             (12, rf"h0/nic0: link is down \(0 times since the agent started\){since}; suspect: unknown"),
                             (13, r".*; suspect: trunk leaf0 - spine1; reported by h0"), (14, r".*; suspect: unknown; reported by h0"),
                             (15, r".*; suspect: h1/nic0 or its link; reported by h0"), (16, r"h1: clock is wrong.*; suspect: h1; reported by h0"),
                             (17, r"h0: clock is disrupted.*; suspect: unknown")):
            self.assertRegex(said[number]["text"], "^" + text + "$")
        self.assertIsNone(said[11]["length_ns"])
        # how long it lasted, and with which error; numbers that no host has don't count
        ms, last = 10**6, 2**63 - 1
        ended = [(21, 300 * ms, 45 * ms, 300 * ms, 45 * ms, "0.300 s ± 0.045 s"), (22, 300 * ms, 0, 300 * ms, None, "0.300 s"),
                 (23, 300 * ms, -1, 300 * ms, None, "0.300 s"), (24, 300 * ms, last, 300 * ms, None, "0.300 s"), (25, last, 45 * ms, 0, None, "0.000 s"),
                 (26, -last, 45 * ms, 0, None, "0.000 s")]
        self.say(0, [(3, wire.report([self.claim(n, "path-dead", 2, 0, phase=2, since=-1, times=(end - 1, error)) for n, end, error, *_ in ended]))])
        said = {f["detail"]["number"]: f["detail"] for f in self.get("/api/v1/findings")["items"]}
        for n, _, _, length, error, text in ended:
            self.assertEqual((said[n]["length_ns"], said[n]["length_error_ns"]), (length, error), n)
            self.assertIn(f", over after {text}; suspect", said[n]["text"])
        self.assertEqual(said[11]["suspect"], {"kind": "unknown", "name": None, "confident": False})

    def test_what_a_host_suspects_is_data(self):
        """A suspicion of h0: an element names one of the two ends, or the fabric. The answer is the same in every place. The text
        doesn't count."""
        self.write("alerts.yaml", "rules:\n  - {name: dead, finding: path-dead, for: 0s, wait: 0s, severity: page}\n")
        controller = self.start(extra=f"alerts: {self.path('alerts.yaml')}\n", report="5s", beat="30s")
        for i in range(3):
            self.join(i)
        host, nic, leaf, spine, trunk = 1, 2, 3, 4, 6
        nic_of_h1 = {"kind": "nic", "host": "h1", "nic": 2, "name": "h1/nic0"}
        told = {1: ((nic, 1, (2, 2, None)), ("nic", "out", [nic_of_h1])),
                2: ((trunk, 2, (3, 0, None), (4, 1, None)), ("trunk", "in", [{"kind": "leaf", "number": 0, "name": "leaf0"}, {"kind": "spine", "number": 1, "name": "spine1"}])),
                3: ((host, 9, (1, None, "h1")), ("host", None, [{"kind": "host", "host": "h1", "name": "h1"}])),
                4: ((spine, 3, (4, 2, None)), ("spine", "both", [{"kind": "spine", "number": 2, "name": "spine2"}]))}
        lies = [(nic, 1, (2, 5, None)), (host, 1, (1, None, "h2")), (nic, 1, (2, 99, None)), (leaf, 1, (4, 1, None)), (trunk, 1, (3, 1, None)),
                (trunk, 1, (3, 1, None), (2, 2, None)), (99, 1, (3, 1, None)), (nic, 1), (host, 1, (1, None, "nobody"))]
        events = [self.claim(n, "path-dead", 2, 0, suspect=("host", "h1"), element=e) for n, (e, _) in told.items()]
        events += [self.claim(10 + n, "path-dead", 2, 0, suspect=("host", "h1"), element=e) for n, e in enumerate(lies)]
        self.say(0, [(1, wire.report(events))])
        said = {f["detail"]["number"]: f["detail"] for f in self.get("/api/v1/findings?limit=100")["items"]}
        for n, (_, (kind, direction, places)) in told.items():
            element = said[n]["element"]
            self.assertEqual((element["kind"], element["direction"], element["places"]), (kind, direction, places), n)
        for n in range(len(lies)):
            self.assertEqual(said[10 + n]["element"], {"kind": "unknown", "direction": None, "name": None, "places": []}, lies[n])
        self.wait(lambda: any(i["element"]["kind"] == "trunk" for i in self.get("/api/v1/incidents")["items"]), 5, "an incident of the trunk")
        trunks = [i["element"] for i in self.get("/api/v1/incidents")["items"] if i["element"]["kind"] == "trunk"]
        self.assertEqual(trunks, [said[2]["element"]])
        self.assertRegex(self.get("/metrics").decode(), r'foliot_incident_open\{[^}]*element="trunk leaf0 - spine1",element_kind="trunk",direction="in"')
        self.assertEqual(controller.stop(), 0)
        self.controller()
        self.assertEqual([i["element"] for i in self.get("/api/v1/incidents")["items"] if i["element"]["kind"] == "trunk"], trunks)

    def test_what_is_unknown_is_one_of_several_until_it_is_known(self):
        """A finding of h0 lists its candidates. It must not list others' hosts. The incident is named after them, over a restart
        too, and its name changes in place."""
        self.write("alerts.yaml", "rules:\n  - {name: dead, finding: path-dead, for: 0s, wait: 0s, severity: page}\n")
        controller = self.start(extra=f"alerts: {self.path('alerts.yaml')}\n", report="5s", beat="30s")
        for i in range(3):
            self.join(i)
        host, nic, spine, trunk = 1, 2, 4, 6
        may_be = [(spine, 3, (4, 2, None)), (trunk, 1, (3, 0, None), (4, 2, None)), (nic, 1, (2, 2, None)), (host, 1, (1, None, "h2"))]
        incident = lambda: [i for i in self.get("/api/v1/incidents")["items"] if i["state"] in ("new", "open")]
        self.say(0, [(1, wire.report([self.claim(1, "path-dead", 2, 0, one_of=may_be)]))])
        said = self.get("/api/v1/findings")["items"][0]["detail"]
        self.assertEqual(said["suspect"], {"kind": "unknown", "name": None, "confident": False})
        self.assertEqual([e["name"] for e in said["one_of"]], ["spine2", "trunk leaf0 - spine2", "h1/nic0 or its link"])
        self.assertTrue(said["others"])
        self.assertIn("; suspect: unknown, one of spine2, trunk leaf0 - spine2, h1/nic0 or its link and others; reported by h0", said["text"])
        self.wait(lambda: incident(), 5, "an incident")
        called = "unknown, one of spine2, trunk leaf0 - spine2, h1/nic0 and others"
        one = incident()[0]
        self.assertEqual((one["cause"], one["element"]["kind"], [e["name"] for e in one["one_of"]], one["others"]), (called, "unknown", [e["name"] for e in said["one_of"]], True))
        self.assertIn('element="unknown",element_kind="unknown"', self.get("/metrics").decode())
        # a NIC that may be at fault is marked, even if its carrier is up; the server filters and sorts by it
        links = {link["nic"]: link["incident"] for link in self.get("/api/v1/links?sort=incident&order=desc")["items"]}
        self.assertEqual((links.pop(2), set(links.values())), ({"incident": one["incident"], "kind": "nic", "direction": one["one_of"][2]["direction"], "one_of": 4}, {None}))
        self.assertEqual([[link["nic"] for link in self.get(f"/api/v1/links?{query}")["items"]][:1] for query in
                          ("incident=accused", "incident=any", "sort=incident&order=desc", "sort=state&order=desc", "incident=any&host=h2")], [[2]] * 4 + [[]])
        self.assertEqual([link["incident"] is None for link in self.get("/api/v1/hosts/h1")["links"]], [False, True])
        self.assertEqual(self.request("GET", "/api/v1/links?incident=7")[0], 400)
        self.assertEqual(controller.stop(), 0)
        self.controller()
        self.assertEqual([(i["incident"], i["cause"]) for i in incident()], [(one["incident"], called)])
        self.say(0, [(2, wire.report([self.claim(1, "path-dead", 2, 0, element=(spine, 3, (4, 2, None)), suspect=("spine", "spine2"), phase=1)]))])
        self.wait(lambda: [(i["incident"], i["cause"], i["one_of"]) for i in incident()] == [(one["incident"], "spine2", [])], 5, lambda: str(incident()))
        self.say(1, [(1, wire.report([self.claim(1, "path-dead", 0, 2, one_of=may_be[:3]), self.claim(2, "path-dead", 0, 2, one_of=may_be[:1])]))])
        told = {f["detail"]["number"]: f["detail"]["fault"] for f in self.get("/api/v1/findings")["items"] if f["host"] == "h1"}
        self.assertRegex(said["fault"], "^[0-9a-f]{16}$")
        self.assertEqual((told[1], told[2] == said["fault"]), (said["fault"], False))

    def test_one_hosts_word_wakes_nobody_for_another_tenant(self):
        self.write("alerts.yaml", "rules:\n  - {name: liar, finding: clock-liar, for: 0s, wait: 0s, severity: page}\n")
        self.start(extra=f"alerts: {self.path('alerts.yaml')}\n", report="5s", beat="30s")
        self.token_for("h0")
        self.token_for("h1")
        for i in range(3):
            self.join(i)

        def incident(host):
            found = [i for i in self.get("/api/v1/incidents")["items"] if i["cause"] == f"clock of {host}"]
            return (found[0]["severity"], found[0]["pages"]) if found else None
        self.say(0, [(1, wire.report([self.claim(1, "clock-liar", from_host="h1", suspect=("host", "h1"))]))])
        self.wait(lambda: incident("h1"), 5, "an incident")
        time.sleep(1.5)  # as long as its severity could still rise
        self.assertEqual(incident("h1"), ("warning", 0))
        self.say(2, [(1, wire.report([self.claim(1, "clock-liar", from_host="h1", suspect=("host", "h1"))]))])
        self.wait(lambda: incident("h1") == ("page", 1), 5, lambda: str(incident("h1")))
        self.say(1, [(1, wire.report([self.claim(1, "clock-liar", from_host="h0")]))])  # without a suspect
        self.wait(lambda: incident("h0"), 5, "an incident")
        time.sleep(1.5)
        self.assertEqual(incident("h0"), ("warning", 0))

    def test_nor_does_a_doubt(self):
        """The element is unknown, and all candidates are another tenant's: nobody is paged, and that host's health stays as
        before."""
        self.write("alerts.yaml", "rules:\n  - {name: dead, finding: path-dead, for: 0s, wait: 0s, severity: page}\n")
        self.start(extra=f"alerts: {self.path('alerts.yaml')}\n", report="5s", beat="30s")
        for name in ("h0", "h1", "h2"):
            self.token_for(name)
        for i in range(3):
            self.join(i)
        for i in range(2):
            self.say(i, [(1, wire.report(extra=wire.data(5, wire.number(1, 1))))])
        before, own = self.host("h1")["health"], [(2, 1, (2, 2, None)), (1, 3, (1, None, "h1"))]
        told = lambda: [(i["severity"], i["pages"]) for i in self.get("/api/v1/incidents")["items"]]
        self.say(0, [(2, wire.report([self.claim(1, "path-dead", 2, 0, one_of=own)]))])
        self.wait(told, 5, "an incident")
        time.sleep(1.5)
        self.assertEqual((told(), self.host("h1")["health"]), ([("warning", 0)], before))
        self.say(2, [(1, wire.report([self.claim(1, "path-dead", 2, 4, one_of=own)]))])  # a third tenant's host has it, too
        self.wait(lambda: any(i == ("page", 1) for i in told()), 5, lambda: str(told()))

    def test_a_since_of_long_ago_is_no_for(self):
        """A host reports when the fault began. Only the time that the controller itself has seen counts for `for`, also over a
        restart."""
        self.write("alerts.yaml", "rules:\n  - {name: down, finding: link-down, for: 25s, wait: 0s, severity: page}\n")
        c = self.start(extra=f"alerts: {self.path('alerts.yaml')}\n", report="5s", beat="30s")
        self.join(0)
        begin = time.monotonic()
        self.say(0, [(1, wire.report([self.claim(2, "link-errors", 1), self.claim(1, "link-down", 0, since=-600 * 10**9)]))])
        told, other = self.get("/api/v1/findings")["items"]
        self.assertGreater(told["detail"]["heard_utc_ns"], told["since_utc_ns"] + 599 * 10**9)
        time.sleep(2.5)
        pages = lambda: sum(i["pages"] for i in self.get("/api/v1/incidents")["items"])
        self.assertEqual((pages(), [a["state"] for a in self.get("/api/v1/alerts")["items"] if a["rule"] == "down"]), (0, ["pending"]))
        self.assertEqual(c.stop(), 0)
        self.controller()
        self.say(0, [(2, wire.report([self.claim(1, "link-down", 0, since=-900 * 10**9, phase=1),
                                      # what has been open so long becomes something else
                                      self.claim(2, "link-down", 1, phase=1)]))])
        again, another = self.get("/api/v1/findings")["items"]
        self.assertGreater(another["detail"]["heard_utc_ns"], other["detail"]["heard_utc_ns"] + 2 * 10**9)
        self.assertEqual(again["detail"]["heard_utc_ns"], told["detail"]["heard_utc_ns"])
        # this link's alert: the other link's comes some seconds later, and a machine that pauses sees both at once
        self.wait(lambda: pages() >= 1 and [a for a in self.get("/api/v1/alerts")["items"] if (a["rule"], a["nic"], a["state"]) == ("down", "h0/nic0", "firing")], 20,
                  lambda: str(self.get("/api/v1/alerts")))
        self.assertGreater(time.monotonic(), begin + 24.5)

    def test_updates_put_no_page_off_after_utc_was_put_back(self):
        """A finding with a time in the future counts as heard now, once."""
        self.write("alerts.yaml", "rules:\n  - {name: down, finding: link-down, for: 4s, wait: 0s, severity: page}\n")
        c = self.start(extra=f"alerts: {self.path('alerts.yaml')}\n", report="5s", beat="30s")
        self.join(0)
        self.say(0, [(1, wire.report([self.claim(1, "link-down", 0)]))])
        self.assertEqual(c.stop(), 0)
        with sqlite3.connect(self.path("data", "store.db")) as store:
            store.execute("UPDATE finding SET body = json_set(body, '$.heard_utc_ns', ?)", (time.time_ns() + 600 * 10**9,))
        self.controller()
        pages, report = 0, 1
        while pages == 0 and report < 30:
            report += 1
            self.say(0, [(report, wire.report([self.claim(1, "link-down", 0, phase=1)]))])
            time.sleep(1)
            pages = sum(i["pages"] for i in self.get("/api/v1/incidents")["items"])
        self.assertEqual(pages, 1)
        self.assertLess(self.get("/api/v1/findings")["items"][0]["detail"]["heard_utc_ns"], time.time_ns())

    def test_findings_of_one_host_are_few(self):
        """There is room for others' alerts, however many runs and numbers a host makes up."""
        self.start()
        self.join(0)
        for n in range(1, 9):
            events = [self.claim(100 * n + k, "link-down", 0).replace((7).to_bytes(4, "little"), n.to_bytes(4, "little")) for k in range(60)]
            status, _ = self.post("/agent/v1/report", wire.batch([(n, wire.report(events))], sealed=wire.squeeze), **self.identity("h0"))
            self.assertEqual(status, 200)
        self.assertLessEqual(len(self.get("/api/v1/findings?open=true&limit=1000")["items"]), 60)
        for n in range(9, 14):
            events = [self.claim(1000 * n + k, "link-down", 0).replace((7).to_bytes(4, "little"), (8).to_bytes(4, "little")) for k in range(60)]
            status, _ = self.post("/agent/v1/report", wire.batch([(n, wire.report(events))], sealed=wire.squeeze), **self.identity("h0"))
            self.assertEqual(status, 200)
        self.assertEqual(len(self.get("/api/v1/findings?open=true&limit=1000")["items"]), 256)

    # ---- tokens ----

    def token_command(self, *arguments, check=True):
        return fleet.run("ip", "netns", "exec", self.space("c"), self.FOLIOT, "token", *arguments, check=check,
                         env=dict(os.environ, FOLIOT_TOKEN=self.admin, FOLIOT_API="http://127.0.0.1:7639"))

    def test_tokens_of_a_running_controller(self):
        self.start()
        made = self.token_command("make", "viewer", "board", "--hours", "24", "--scope", "h0").stdout.strip()
        self.assertTrue(made.startswith("fla_"))
        self.assertEqual(self.request("GET", "/api/v1/hosts", token=made)[0], 200)
        again = self.token_command("make", "viewer", "board", check=False)
        self.assertEqual(again.returncode, 1)
        self.assertIn("a token board exists: take another name, or revoke it", again.stderr)
        self.assertIn("foliot-agent join ADDRESS flj_", self.token_command("join", "--uses", "2").stdout)
        self.token_command("join")
        listed = self.token_command().stdout
        names = [line.split()[2] for line in listed.splitlines()[1:]]
        self.assertEqual(sorted(names), sorted(set(names)))
        self.assertLessEqual({"board", "admin", "join", "join-2", "first"}, set(names))
        self.assertNotIn(made[4:], listed)
        self.assertNotIn(made[4:], json.dumps(self.get("/api/v1/tokens")))
        for wrong in (("make", "king", "x"), ("revoke", "nobody"), ("make", "viewer", "x", "--hours", "no"), ("join", "--scope", "A b")):
            self.assertNotEqual(self.token_command(*wrong, check=False).returncode, 0, wrong)
        self.assertIn("is revoked", self.token_command("revoke", "board").stdout)
        self.assertEqual(self.request("GET", "/api/v1/hosts", token=made)[0], 401)
        self.token_command("make", "viewer", "board")
        what = [(a["who"], a["what"]) for a in self.get("/api/v1/audit")["items"]]
        self.assertEqual(what.count(("admin", "token.make")), 4)
        self.assertEqual(what.count(("admin", "token.remove")), 1)
        viewer = self.request("POST", "/api/v1/tokens", {"name": "v", "role": "viewer"})[2]["token"]
        self.assertEqual(self.request("GET", "/api/v1/tokens", token=viewer)[0], 403)

    def test_a_join_token_is_for_names(self):
        self.start()
        token = self.request("POST", "/api/v1/join-tokens", {"uses": 5, "scope": "h0,b-*"})[2]["token"]
        refused = self.join(1, token=token, check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("lets only hosts join that are named h0,b-*", refused.stdout + refused.stderr)
        self.join(0, token=token)
        self.join(1, token=token, name="b-7")
        self.assertEqual([h["name"] for h in self.get("/api/v1/hosts")["items"]], ["h0", "b-7"])
        # It names hosts, which may join, and not a tenant.
        for body in ({"scope": ""}, {"scope": 7}, {"scope": "<b>"}, {"name": ""}):
            self.assertEqual(self.request("POST", "/api/v1/join-tokens", body)[0], 400, body)

    def test_one_token_does_not_starve_others(self):
        self.start()
        for i in range(2):
            self.join(i)
        for i in range(2):
            self.say(i, [(1, wire.report([wire.link_event(2 * i, "up", "x" * 1000)] * 50))])
        mine, other = self.token_for("h0"), self.token_for("h1")
        count = 2000  # all at once: on any machine that is more than 50 a second
        sock = fleet.connect(self.space("c"), "127.0.0.1", 7639)
        sock.settimeout(fleet.IO_S)
        threading.Thread(target=sock.sendall, args=(f"GET /api/v1/nics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {mine}\r\n\r\n".encode() * count,)).start()
        text = b""
        while text.count(b"HTTP/1.1 ") < count or not text.endswith(b"}\n"):
            part = sock.recv(1 << 16)
            self.assertTrue(part, f"cut after {len(text)} bytes")
            text += part
        sock.close()
        good, refused = text.count(b"HTTP/1.1 200"), text.count(b"HTTP/1.1 429")
        self.assertEqual(good + refused, count)
        self.assertGreaterEqual(good, 200)  # a page of the dashboard needs fewer
        self.assertGreater(refused, 0)
        self.assertEqual(self.request("GET", "/api/v1/status", token=other)[0], 200)
        self.assertEqual(self.request("GET", "/api/v1/status")[0], 200)
        _, headers, body = self.request("GET", "/api/v1/status", token=mine)
        if "error" in body:  # less than a second later
            self.assertIn("Retry-After", headers)
        self.wait(lambda: self.request("GET", "/api/v1/status", token=mine)[0] == 200, 5, "it may ask again")

    # ---- live ----

    def stream(self, token, after=0):
        """An open stream of events: its connection, and its first text."""
        sock = fleet.connect(self.space("c"), "127.0.0.1", 7639)
        self.addCleanup(sock.close)
        sock.settimeout(fleet.IO_S)
        sock.sendall(f"GET /api/v1/events/stream?after={after} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        return sock, self.read_until(sock, lambda text: b"retry: " in text or b" 401 " in text)

    def read_until(self, sock, true, seconds=fleet.IO_S):
        """The text of a stream. It must not end before true(text) holds."""
        text, end = b"", time.monotonic() + seconds
        while not true(text):
            sock.settimeout(max(end - time.monotonic(), 0.01))
            part = sock.recv(4096)
            self.assertTrue(part, text)
            text += part
        return text

    @staticmethod
    def over(text):
        return text.endswith(b"0\r\n\r\n")  # the last chunk

    def test_live_events_and_the_end_of_a_token(self):
        self.start()
        for i in range(2):
            self.join(i)
        made = self.request("POST", "/api/v1/tokens", {"name": "t", "role": "viewer", "scope": "h0"})[2]
        sock, text = self.stream(made["token"])
        others, _ = self.stream(self.admin)
        self.say(1, [(1, wire.report([wire.link_event(2, "down", "h1/nic0: foreign")]))])
        self.say(0, [(1, wire.report([wire.link_event(0, "down", "h0/nic0: own"), finding(1, 2, 0, "h1/nic0 -> h0/nic0: dead")]))])
        begun = time.monotonic()
        self.say(0, [(2, wire.report([wire.link_event(0, "up", "h0/nic0: own again")]))])
        text += self.read_until(sock, lambda text: b"own again" in text)
        self.assertEqual(text.count(b"\nevent: link\n"), 2)
        self.assertNotRegex(text.decode(), FOREIGN)
        # Revoked, with an event at the same moment: that isn't sent any more, and the stream ends at once.
        self.assertEqual(self.request("DELETE", f"/api/v1/tokens/{made['id']}")[0], 200)
        self.say(0, [(3, wire.report([wire.link_event(0, "down", "h0/nic0: after the end")]))])
        ended = time.monotonic()
        last = self.read_until(sock, self.over)
        self.assertNotIn(b"after the end", last)
        if ended - begun < QUIET_S:
            self.assertNotRegex(last, rb"(?m)^: ")  # at once: not when it has been quiet for so long that a comment is due
        self.assertIn(b" 401 ", self.stream(made["token"])[1])
        self.read_until(others, lambda text: b"after the end" in text)  # a stream with a valid token goes on

    def test_a_token_expires_under_a_stream(self):
        """An hour is the least that the API takes. So the test sets seconds in the store."""
        c = self.start()
        self.join(0)
        made = self.request("POST", "/api/v1/tokens", {"name": "t", "role": "viewer", "hours": 1})[2]
        number = iter(range(1, 99))

        def reads(text):
            """An event comes on an open stream, or the stream ended before."""
            if b" 401 " not in text:
                self.say(0, [(next(number), wire.report([wire.link_event(0, "down", "h0/nic0: in time")]))])
                text += self.read_until(sock, lambda more: b"in time" in more or self.over(more))
            return text
        life, text = 4, b""
        while b"in time" not in text and life < fleet.IO_S:  # on a slow machine it ends before the controller is back
            life *= 2
            self.assertEqual(c.stop(), 0)
            base = sqlite3.connect(self.path("data", "store.db"))
            expires = time.time() + life
            self.assertEqual(base.execute("UPDATE token SET expires_ns = ? WHERE id = ?", (int(expires * 1e9), made["id"])).rowcount, 1)
            base.commit()
            base.close()
            c = self.controller()
            sock, text = self.stream(made["token"])
            text = reads(text)
        lasting, _ = self.stream(self.admin)
        rest = b"" if self.over(text) else self.read_until(sock, self.over, max(expires - time.time(), 0) + fleet.IO_S)
        self.assertGreaterEqual(time.time(), expires)
        if life < QUIET_S:
            self.assertNotRegex(rest, rb"(?m)^: ")  # it ends with the token, not when a comment is due
        self.assertIn(b" 401 ", self.stream(made["token"])[1])
        self.say(0, [(next(number), wire.report([wire.link_event(0, "up", "h0/nic0: later")]))])
        self.read_until(lasting, lambda text: b"later" in text)

    def test_hours_of_a_token(self):
        """A token gets the number of hours in the request, also 24."""
        self.init()
        for name, hours in (("day", 24), ("two", 2), ("lasts", None)):
            self.command("token", "api", "viewer", name, *(["--hours", str(hours)] if hours else []))
        self.command("token", "join", "--hours", "24")
        self.command("token", "join")
        self.controller()
        lives = {}
        for t in self.get("/api/v1/tokens")["items"]:
            lives.setdefault(t["name"], []).append(t["expires_utc_ns"] and (t["expires_utc_ns"] - t["created_utc_ns"]) // 3600 // 10**9)
        self.assertEqual((lives["day"], lives["two"], lives["lasts"], lives["join"], lives["join-2"]), ([24], [2], [None], [24], [24]))

    def test_a_scope_is_a_viewers(self):
        self.start()
        for body in ({"role": "admin", "scope": "h0"}, {"role": "operator", "scope": "h0"}, {"role": "viewer", "scope": ""},
                     {"role": "viewer", "scope": 7}, {"role": "viewer", "scope": "h0,,h1"}, {"role": "viewer", "scope": "<b>"},
                     {"role": "viewer", "scope": "h" * 256}):
            self.assertEqual(self.request("POST", "/api/v1/tokens", {"name": "x", **body})[0], 400, body)
        self.token_for("h0")
        self.assertEqual([t["scope"] for t in self.get("/api/v1/tokens")["items"] if t["name"] == "tenant h0"], ["h0"])

    def test_a_store_from_before_scopes(self):
        c = self.start()
        self.assertEqual(c.stop(), 0)
        base = sqlite3.connect(self.path("data", "store.db"))
        base.executescript("ALTER TABLE token DROP COLUMN scope; ALTER TABLE audit DROP COLUMN source; ALTER TABLE finding DROP COLUMN named; "
                           "DROP TABLE fact_body; DROP TABLE host_part; DROP TABLE host_look; DROP TABLE audit_run; DROP TABLE audit_host; DROP TABLE alike; PRAGMA user_version = 1;")
        base.close()
        self.controller()
        self.assertEqual([t["scope"] for t in self.get("/api/v1/tokens")["items"]], [None, None])
        self.token_for("h*")


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)
