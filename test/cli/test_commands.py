#!/usr/bin/env python3
"""foliot's commands with a fake agent: everything that a user would notice. usage: test_commands.py FOLIOT"""
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fake_agent  # noqa: E402
from fake_agent import FakeAgent  # noqa: E402

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLIOT = os.path.abspath(sys.argv.pop(1))


COMMON = {"--help", "--version"}


def options_in(text):
    return set(re.findall(r"(?<![\w-])--[a-z0-9]+(?:[-_][a-z0-9]+)*", text))


class Commands(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="foliot-cli-")
        self.agents = []

    def tearDown(self):
        for agent in self.agents:
            agent.shutdown()
            agent.server_close()
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def agent(self, name="run", **options):
        self.agents.append(FakeAgent(self.path(name), **options))
        return self.agents[-1]

    def foliot(self, *arguments, runtime="run", cwd=None, **environment):
        env = {**os.environ, "FOLIOT_RUNTIME_DIR": self.path(runtime), **environment}
        return subprocess.run([FOLIOT, *arguments], capture_output=True, text=True, env=env, timeout=300,
                              cwd=cwd or self.folder.name, check=False)

    def test_a_fault_is_replayed(self):
        """The recording also has the messages of other hosts about the fault."""
        with open(self.path("hole.yaml"), "w", encoding="utf-8") as file:
            file.write("name: hole\nwhy: replayed\nworld: sim\nduration: 16s\nfabric: {hosts: 4, nics_per_host: 1}\n"
                       "faults: [{at: 12s, kind: blackhole, target: trunk 0-1, direction: up, for: 2s}]\n"
                       "bounds: [{what: fault.missed, equals: 0}]\n")
        run = self.foliot("sim", "run", "--record", "0:rec", "hole.yaml")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        again = self.foliot("sim", "replay", "rec")
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        found = re.search(r"of (\d+) recorded findings 0 differ", again.stdout)
        self.assertGreater(int(found[1]), 0, again.stdout)

    def test_every_command_explains_itself(self):
        listing = self.foliot("help")
        self.assertEqual(listing.returncode, 0)
        names = re.findall(r"^  ([a-z][a-z-]+)  ", listing.stdout, re.M)
        self.assertGreaterEqual(len(names), 11)
        for name in names:
            one = self.foliot(name, "--help")
            self.assertEqual(one.returncode, 0, name + one.stderr)
            self.assertIn(f"foliot {name}", one.stdout)
            self.assertEqual([line for line in one.stdout.splitlines() if len(line) > 100], [], name)
            if name not in ("lab", "perf", "sim"):  # these have usages of their own
                for word in set(re.findall(rf"^  foliot {name} \[?([a-z][a-z-]+)\b", one.stdout, re.M)):
                    again = self.foliot(name, word, "--help")
                    self.assertEqual((again.returncode, again.stderr), (0, ""), (name, word))
                    self.assertEqual(self.foliot("help", name, word).stdout, again.stdout)
                    self.assertRegex(again.stdout, rf"\n  foliot {name} \[?{word}\b")
                    self.assertLess(len(again.stdout), len(one.stdout), (name, word))

    def test_each_form_and_each_option_has_a_sentence(self):
        names = set(re.findall(r"^  ([a-z][a-z-]+)  ", self.foliot("help").stdout, re.M)) - {"lab", "perf", "sim"}
        self.assertGreater(len(names), 15)
        for name in sorted(names):
            usage, *explained = self.foliot(name, "--help").stdout.split("\nusage:\n")[1].split("\noptions:\n")
            forms = re.findall(r"^  foliot .*(?:\n {6}\S.*)*((?:\n {8}.*)*)", usage, re.M)
            self.assertTrue(forms, name)
            for does in forms if len(forms) > 1 else []:
                self.assertRegex(does, r"^\n {8}[A-Za-z](.|\n)*\.$", name)
            told = re.findall(r"^  (--[a-z-]+) +\S", "".join(explained), re.M)
            self.assertEqual(sorted(told), sorted(set(re.findall(r"--[a-z]+(?:-[a-z]+)*", re.sub(r"\n {8}.*", "", usage)))), name)
        silence = self.foliot("alerts", "silence", "--help").stdout
        self.assertEqual(re.findall(r"^ {8}(--[a-z-]+) ", silence, re.M), ["--host", "--element", "--rule", "--for", "--maintenance", "--why"])
        wrong = self.foliot("status", "--no-such-option")
        self.assertEqual((wrong.returncode, wrong.stderr), (2, "foliot status: no option '--no-such-option'; --help lists them\n"))

    def test_each_form_of_an_audit_has_its_help_and_the_manual_has_the_same(self):
        """What it does, its output, its exit statuses: of all forms that begin with the word, and of no others."""
        plain = lambda text: " ".join(re.sub(r"[*_\\]", "", text).split())
        with open(os.path.join(TOP, "man", "foliot.1.scd"), encoding="utf-8") as page:
            manual = plain(re.sub(r"^\t- ", "\t", page.read(), flags=re.M))
        all_forms = re.findall(r"^  foliot audit .*(?:\n {6}\S.*)*", self.foliot("audit", "--help").stdout, re.M)
        self.assertGreater(len(all_forms), 15)
        words = {re.match(r"  foliot audit \[?([a-z]+)", form)[1] for form in all_forms}
        seen = 0
        for word in sorted(words):
            text = self.foliot("audit", word, "--help").stdout
            self.assertEqual([line for line in text.splitlines() if len(line) > 100], [], word)
            forms = re.sub(r"\n {8}--.*(?:\n {9}.*)*", "", text).split("\n\n")[1:-1]
            seen += len(forms)
            for form in forms:
                self.assertRegex(form, rf"^  foliot audit \[?{word}\b")
                found = re.search(r"\n {8}([A-Z](?:.|\n)*)\n {8}It prints ((?:.|\n)*)\n {8}Exit status: ((?:.|\n)*)", form)
                self.assertTrue(found, form)
                does, prints, exits = (plain(part) for part in found.groups())
                self.assertTrue(plain(f"{does} It prints {prints}") in manual, form)
                for one in re.split(r"; |\. ", exits):
                    self.assertTrue(one in manual, (word, one))
        self.assertEqual(seen, len(all_forms))
        self.assertIn("1 something fails", self.foliot("audit", "--help").stdout)

    def test_help_of_the_lab_does_nothing_else(self):
        for command in ("up", "status", "exec", "eval", "traffic", "run", "fault", "down"):
            for word in ("lab", "--name"), ("lab",):
                name = ("no-such-lab",) if "--name" in word else ()
                one = self.foliot(*word, *name, command, "--help")
                self.assertEqual((one.returncode, one.stderr), (0, ""), command)
                self.assertRegex(one.stdout, r"^Usage: foliot lab")

    @unittest.skipIf(os.geteuid() != 0, "says first that it needs root")
    def test_a_lab_named_in_the_wrong_place_is_not_taken_for_another(self):
        for words in ("down", "other"), ("status", "other"), ("up", "one.yaml", "two.yaml"):
            one = self.foliot("lab", "--name", "no-such-lab", *words)
            self.assertEqual(one.returncode, 2, words)
            self.assertIn("one argument too many", one.stderr)

    def test_the_swarm_refuses_what_it_cannot_do_before_the_first_world(self):
        self.assertIn("18446744073709551615", self.foliot("sim", "swarm", "--seeds", "18446744073709551615", "--only", "stale").stdout)
        for words in (["--seeds", "-5"], ["--seeds", "1..-3"], ["--seeds", "1.."], ["--seeds", "5..4"], ["--seeds", "18446744073709551616"],
                      ["--seeds", "1", "--shrink", "--out", self.path("none")], ["--seeds", "1", "--shrink", "--out", FOLIOT],
                      ["--lab", "--shrink"], ["--lab", "--only", "clock"], ["--lab", "--nics", "8"], ["--lab", "--out", self.path("none")],
                      ["--seeds", "18446744073709551615", "--nics", "2"]):  # there is no world that small
            done = self.foliot("sim", "swarm", *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn("foliot sim swarm: ", done.stderr)
            self.assertIn("expected ", done.stderr)

    def test_the_manual_says_what_help_says(self):
        listing = self.foliot("help").stdout
        names = set(re.findall(r"^  ([a-z][a-z-]+)  ", listing, re.M))
        with open(os.path.join(TOP, "man", "foliot.1.scd"), encoding="utf-8") as page:
            manual = page.read()
        section = manual.split("# COMMANDS")[1].split("\n# ")[0]
        # a colon: an entry of a command's own list
        self.assertEqual(set(re.findall(r"^\*([a-z-]+)\*(?!:)", section, re.M)), names)
        helped = set()
        for name in names - {"lab", "perf", "sim"}:  # these have manuals of their own
            helped |= set(re.findall(r"--[a-z]+(?:-[a-z]+)*", self.foliot(name, "--help").stdout))
        described = set(re.findall(r"\*(--[a-z]+(?:-[a-z]+)*)\*", manual)) - {"--help", "--version"}
        self.assertEqual(described, helped - {"--help"})

    def test_a_command_takes_what_its_help_has(self):
        """An option of another command is refused, and the command does nothing."""
        names = set(re.findall(r"^  ([a-z-]+) ", self.foliot("help").stdout, re.M)) - {"lab", "perf", "sim", "help"}
        helped = {name: set(re.findall(r"--[a-z]+(?:-[a-z]+)*", self.foliot(name, "--help").stdout)) for name in names}
        self.assertGreater(len(helped), 15)
        for name, own in sorted(helped.items()):
            for option in sorted(set().union(*helped.values()) - own):
                if not any(known.startswith(option) for known in own):  # otherwise it is an abbreviation
                    done = self.foliot(name, option, "1")
                    self.assertEqual(done.returncode, 2, (name, option, done.stdout, done.stderr))

    def test_the_other_manuals_say_what_help_says(self):
        """Each option that a program's help has is in its manual, and no manual has one that the help lacks."""
        folder = os.path.dirname(FOLIOT)
        lab, perf, sim = ([FOLIOT, name] for name in ("lab", "perf", "sim"))
        manuals = {
            "foliot-lab.1": [lab] + [lab + [word] for word in ("eval", "traffic", "run", "fault")],
            "foliot-perf.1": [perf],
            "foliot-sim.1": [sim] + [sim + [word] for word in ("run", "replay", "swarm", "scale")],
            "foliot-agent.8": [[os.path.join(folder, "foliot-agent")]],
            "foliot-controller.8": [[os.path.join(folder, "foliot-controller")]],
            "foliot-inspect.8": [[os.path.join(folder, "foliot-inspect")]],
        }
        for name, programs in manuals.items():
            helped, manual = set(), set()
            for program in programs:
                done = subprocess.run(program + ["--help"], capture_output=True, text=True, timeout=300, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""), program)
                helped |= options_in(done.stdout)
            with open(os.path.join(TOP, "man", name + ".scd"), encoding="utf-8") as page:
                # "foliot jobs ID --watch" belongs to another command
                text = re.sub(r"\*foliot (?:jobs|status)\b.{0,12}--[a-z]+", "", page.read())
                manual = options_in(text)
            self.assertEqual(manual - COMMON, helped - COMMON, name)

    def test_completion_offers_commands_and_options(self):
        def complete(*words):
            script = (f". {TOP}/packaging/completion/foliot.bash; COMP_WORDS=({' '.join(words)}); "
                      f"COMP_CWORD={len(words) - 1}; _foliot; echo ${{COMPREPLY[@]}}")
            path = os.path.dirname(FOLIOT) + ":" + os.environ["PATH"]
            return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True,
                                  env={**os.environ, "PATH": path}).stdout.split()
        self.assertIn("support-bundle", complete("foliot", "s"))
        self.assertEqual(complete("foliot", "mesh", "--p"), ["--paths"])
        self.assertEqual(complete("foliot", "host", "--tok"), ["--token-file"])
        self.assertEqual(complete("foliot", "perf", "--net-v"), ["--net-version"])
        self.assertIn("scale", complete("foliot", "sim", "s"))

    def test_completion_knows_what_may_follow_a_command(self):
        """bash and zsh offer the same words after a command as the manual."""
        def listed(name, what):
            with open(os.path.join(TOP, "packaging", "completion", name), encoding="utf-8") as script:
                return {command: set(words.split()) for command, words in
                        re.findall(r"^ *([a-z]+)\) " + what + r"=['(]([a-z_ ]+)[')] ;;", script.read(), re.M)}
        offered = listed("foliot.bash", "words")
        self.assertEqual(offered, listed("_foliot", "options"))
        with open(os.path.join(TOP, "man", "foliot.1.scd"), encoding="utf-8") as page:
            section = page.read().split("# COMMANDS")[1].split("\n# ")[0]
        values = {"on", "off", "authority", "fleet-key"}  # values that follow those words
        for command in set(offered) - {"lab", "perf", "sim"}:
            synopsis = " ".join(re.findall(rf"^\*{command}\*(.*)", section, re.M))
            self.assertEqual(set(re.findall(r"\*([a-z-]+)\*", re.sub(r"\*--[a-z-]+\*", "", synopsis))) - values,
                             offered[command], command)

    def test_zsh_completion_is_zsh(self):
        if shutil.which("zsh") is None:
            self.skipTest("no zsh")
        subprocess.run(["zsh", "-n", f"{TOP}/packaging/completion/_foliot"], check=True)

    def test_typo_gets_a_suggestion(self):
        typo = self.foliot("clok")
        self.assertEqual(typo.returncode, 2)
        self.assertIn("did you mean 'foliot clock'?", typo.stderr)
        self.assertNotIn("did you mean", self.foliot("xylophone").stderr)

    def test_errors_have_what_was_expected_and_found(self):
        """Wrong arguments are found before any request, and without a token."""
        wrong = [
            ("status extra", "expected options only, found 'extra'"),
            ("host", "expected one of list, check, remove, token, rotate, found nothing"),
            ("host remov x", "expected one of list, check, remove, token, rotate, found 'remov' 'x'"),
            ("host check", "expected: foliot host check NAME [--seconds N]"),
            ("host remove A/B", "expected a host's name"),
            ("host token --uses many", "--uses: expected a whole number above 0, found 'many'"),
            ("host rotate keys", "expected authority or fleet-key, found 'keys'"),
            ("host rotate fleet-key --after soon", "--after: expected a time like 90s, 10min or 1h, found 'soon'"),
            ("token make viewer", "expected: foliot token make viewer|operator|admin NAME"),
            ("token make root bob", "expected viewer, operator or admin, found 'root'"),
            ("alerts ack", "expected: foliot alerts ack N"),
            ("alerts export", "expected: foliot alerts export --prometheus"),
            ("alerts silence", "expected at least one of --host, --element, --rule"),
            ("alerts test no-rule", "no rule 'no-rule': expected one of the built-in rules"),
            ("config observe maybe", "expected on or off, found 'maybe'"),
            ("config rollback last", "expected a version's number, found 'last'"),
            ("config apply x --canary 200%", "--canary: expected a share from 0% to 100%, found '200%'"),
            ("config apply", "expected: foliot config apply FILE"),
            ("levels all", "expected options only, found 'all'"),
            ("topology declared", "expected one of show, declare, history, found 'declared'"),
            ("audit gte", "expected one of run, show, gate, facts,"),
            ("audit show", "expected: foliot audit show PATH..."),
            ("audit diff 1", "expected: foliot audit diff RUN RUN"),
            ("audit explain cfg.foo", "no check 'cfg.foo'"),
            ("findings --controller ftp://x", "expected https://HOST[:PORT]"),
            ("mesh --full --rail x", "--rail: expected a number from 0 on, found 'x'"),
            ("keygen --host --rotate key", "expected --host alone"),
            ("selftest clock --nics lo --peer alpha", "--peer: expected an IPv4 or IPv6 address, no name, found 'alpha'"),
            ("perf bogus", "expected all_reduce, all_gather, reduce_scatter,"),
        ]
        for words, told in wrong:
            done = self.foliot(*words.split(), FOLIOT_API="http://127.0.0.1:9", FOLIOT_TOKEN="")
            self.assertEqual((done.returncode, done.stdout), (2, ""), (words, done.stderr))
            self.assertIn(told, done.stderr, words)
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_version_and_bad_options(self):
        self.assertRegex(self.foliot("--version").stdout, r"^foliot \d+\.\d+\.\d+\n$")
        self.assertEqual(self.foliot().returncode, 2)
        self.assertEqual(self.foliot("status", "--nonsense").returncode, 2)
        self.assertEqual(self.foliot("status", "extra").returncode, 2)
        self.assertEqual(self.foliot("status", "--interval", "0").returncode, 2)

    def test_no_agent_says_what_to_do(self):
        result = self.foliot("status")
        self.assertEqual(result.returncode, 3)
        self.assertIn("no agent answers", result.stderr)
        self.assertEqual(result.stdout, "")

    def test_status_of_a_well_host(self):
        self.agent()
        result = self.foliot("status")
        self.assertEqual(result.returncode, 0)
        self.assertIn("SYNCED", result.stdout)
        self.assertIn("none open", result.stdout)
        self.assertNotIn("\033", result.stdout, "colour into a pipe")

    def test_an_open_finding_shows_in_status_and_exit_status(self):
        self.agent(well=False)
        for command in ("status", "findings"):
            result = self.foliot(command)
            self.assertEqual(result.returncode, 1, command)
            self.assertIn("trunk leaf0–spine2", result.stdout)

    def test_json_is_what_the_agent_said(self):
        self.agent(well=False)
        for command in ("status", "clock", "mesh", "links", "findings"):
            result = self.foliot(command, "--json")
            answer = json.loads(result.stdout)
            self.assertEqual((answer["version"], answer["kind"]), (1, command))
            self.assertEqual(answer["now_fleet_ns"], 1795229112123456789, "64 bits are kept")

    def test_jobs_lists_what_runs_and_one_in_full(self):
        self.agent(well=False)
        listing = self.foliot("jobs")
        self.assertEqual(listing.returncode, 0, listing.stderr)
        self.assertRegex(listing.stdout, r"4711 +running +1/4 +1 +1 +7/8 +40 Gbit/s +1 ")
        self.assertRegex(listing.stdout, r"9@h0 +idle")
        one = self.foliot("jobs", "4711")
        self.assertEqual(one.returncode, 0, one.stderr)
        self.assertRegex(one.stdout, r"h0/eth1 \(rank 0\) +h1/eth1 \(pid 101\) +1 .*down +carrier")
        self.assertRegex(one.stdout, r"h0/eth0 \(rank 0\) +h1/eth0 .*\) +2 queue pair DSCP 26 SL 3 +7002→")
        self.assertRegex(one.stdout, r"h0/eth1 \(rank 0\) +h1/eth1 .*\) +3 standby queue pair +7003→")
        self.assertRegex(one.stdout, r"h0/eth0 \(rank 0\) +h1/eth0 .*\) +0 +7000→")
        self.assertIn("h0/eth1 → h1/eth1 lane 1 (rank 0) failed; its traffic went on over the others: carrier", one.stdout)
        self.assertNotIn("\033", one.stdout)
        nameless = self.foliot("jobs", "9@h0")
        self.assertEqual(nameless.returncode, 0, nameless.stderr)
        self.assertNotIn("rank 0", nameless.stdout)
        missing = self.foliot("jobs", "12")
        self.assertEqual(missing.returncode, 3)
        self.assertIn("no job '12' here", missing.stderr)
        saved = self.path("saved")  # options are read in the same way as those of any command, in any place
        self.assertEqual(self.foliot("jobs", f"--save={saved}", "4711").returncode, 0)
        self.assertEqual(self.foliot("jobs", "compare", "--js", saved, saved).stdout[:1], "{")
        for words in ("a", "b"), ("compare", "a"), ("--save", "x"):
            self.assertEqual(self.foliot("jobs", *words).returncode, 2, words)
        self.assertEqual(json.loads(self.foliot("jobs", "--json").stdout)["kind"], "jobs")
        self.assertEqual(len(json.loads(self.foliot("jobs", "4711", "--json").stdout)["processes"][0]["lane_list"]), 8)

    def test_the_one_slow_flow_stands_out(self):
        """One run reached 360, the next one 190: which flow was slow?"""
        runs = []
        for slow in False, True, False:
            self.agent(f"run{len(runs)}", host=2, slow=slow)
            runs.append(self.path(f"{len(runs)}.json"))
            saved = self.foliot("jobs", "4711", "--save", runs[-1], runtime=f"run{len(runs) - 1}")
            self.assertEqual(saved.returncode, 0, saved.stderr)
        compared = self.foliot("jobs", "compare", runs[0], runs[1])
        self.assertEqual(compared.returncode, 0, compared.stderr)
        self.assertIn("one flow stands out in the second run: h1/eth1 (pid 101) → h2/eth1 (rank 2), lane 3: network", compared.stdout)
        self.assertIn("94.0 us at the median", compared.stdout)
        first_flow = [line for line in compared.stdout.splitlines() if "→" in line and "Mbit/s" in line][0]
        self.assertIn("4.00 us → 94.0 us", first_flow)
        result = json.loads(self.foliot("jobs", "compare", runs[0], runs[1], "--json").stdout)
        self.assertEqual([flow["lane"] for flow in result["flows"] if flow["stands_out"]], [3])
        for before, after in (0, 2), (1, 0), (1, 1):  # nothing became slower: nothing stands out
            self.assertIn("no flow stands out", self.foliot("jobs", "compare", runs[before], runs[after]).stdout)
        with open(self.path("bad.json"), "w", encoding="utf-8") as file:
            file.write("{}")
        self.assertEqual(self.foliot("jobs", "compare", runs[0], self.path("bad.json")).returncode, 3)

    def ring(self, change=lambda process: None, again=None):
        """A saved run of all four ranks. `change` alters each process. `again`: a run under the same name that ended before."""
        answers = [fake_agent.jobs(host, True, True, False) for host in range(fake_agent.HOSTS)]
        for answer in answers:
            change(answer["processes"][0])
            if again is not None:
                before = json.loads(json.dumps(answer["processes"][0]))
                before.update(pid=before["pid"] + 1000, state="ended", age_ns=10**11, silent_ns=3 * 10**11, ended_ns=3 * 10**11)
                again(before)
                answer["processes"].insert(1, before)
        path = self.path(f"ring{len(os.listdir(self.folder.name))}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"version": 1, "kind": "job-run", "job": "4711", "saved_utc_s": 1, "answers": answers}, file)
        return path

    def compare(self, first, second):
        done = self.foliot("jobs", "compare", first, second)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, json.loads(self.foliot("jobs", "compare", first, second, "--json").stdout)

    def test_two_runs_of_one_name_are_not_one(self):
        def slow(process):
            for lane in process["lane_list"]:
                lane.update(owd_ns_p50=9 * 10**8, own_port=lane["own_port"] + 500, peer_port=lane["peer_port"] + 500, peer_pid=lane["peer_pid"] + 1000)
        text, result = self.compare(self.ring(), self.ring(again=slow))
        self.assertEqual([result[run][what] for run in ("first", "second") for what in ("processes", "flows")], [4, 16, 4, 16])
        self.assertIn("no flow stands out", text)
        # the same with an agent that still reports the run before
        agent = self.agent("again", change=lambda a: {**a, "processes": [*a["processes"], *(
            {**p, "pid": 1, "state": "ended", "silent_ns": 2 * 10**11, "ended_ns": 2 * 10**11} for p in a["processes"] if p["job"])]})
        self.assertRegex(self.foliot("jobs", runtime="again").stdout, r"4711 +running +1/4 ")
        one = self.foliot("jobs", "4711", runtime="again").stdout
        self.assertIn("1 of 4 ranks", one)
        self.assertIn("earlier runs", one)
        agent.shutdown()

    def test_flows_of_two_runs_are_matched_by_rank_and_nic(self):
        def elsewhere(process):  # other hosts, processes and ports; lanes are drawn to NICs anew
            process["host"] = "x" + process["host"]
            process["pid"] += 5000
            for lane in process["lane_list"]:
                lane.update(lane=(lane["lane"] + 1) % 4, peer_host="x" + lane["peer_host"], peer_pid=lane["peer_pid"] + 5000)
                lane.update({end: lane[end] + (9 if lane[end] % 10 else 7) for end in ("own_port", "peer_port")})
        _, result = self.compare(self.ring(), self.ring(elsewhere))
        self.assertEqual([flow for flow in result["flows"] if flow["first"] is None or flow["second"] is None], [])
        self.assertEqual(len(result["flows"]), 16)

    def test_slow_flows_into_one_nic_name_it(self):
        def slow(wanted):
            def change(process):
                for lane in process["lane_list"]:
                    if lane["direction"] == "in" and wanted(process["rank"], lane["lane"]):
                        lane.update(owd_ns_p50=94_000, owd_ns_p99=190_000)
            return change
        text, result = self.compare(self.ring(), self.ring(slow(lambda rank, lane: rank == 2 and lane % 2 == 1)))
        self.assertIn("2 flows stand out in the second run, and all 2 of them go into h2/eth1: network", text)
        self.assertEqual({flow["to"] for flow in result["flows"] if flow["stands_out"]}, {"h2/eth1 (rank 2)"})
        text, result = self.compare(self.ring(), self.ring(slow(lambda rank, lane: rank == 2)))
        self.assertIn("4 flows stand out in the second run, and all 4 of them go into h2: network", text)
        text, result = self.compare(self.ring(), self.ring(slow(lambda rank, lane: lane == rank)))
        self.assertIn("4 flows stand out in the second run, and they have no NIC in common", text)
        self.assertEqual(sum(flow["stands_out"] for flow in result["flows"]), 4)
        self.assertEqual(len(re.findall(r"(?m)^slow ", text)), 4)

    def test_clock_shows_members_plot_and_edges(self):
        self.agent()
        text = self.foliot("clock").stdout
        for word in ("9.40 us", "210 ns", "-31.250", "bound of the host clock", "h3/eth0"):
            self.assertIn(word, text)

    def test_mesh_marks_the_dead_and_the_slow_path(self):
        self.agent(well=False)
        result = self.foliot("mesh")
        self.assertEqual(result.returncode, 1)
        self.assertIn("1/4X", result.stdout)
        self.agent("second", host=1)
        result = self.foliot("mesh", runtime="second")
        self.assertEqual(result.returncode, 0)
        self.assertIn("73.0!", result.stdout)
        worst = next(line for line in result.stdout.splitlines() if "<>" in line)
        for column in ("73.0 us", "21.0 us", "21.5 us", "26.0 us"):  # out, in, RTT/2, the asymmetry that RTT/2 hides
            self.assertIn(column, worst)

    def test_links_and_their_events(self):
        self.agent()
        self.assertIn("200 Mbit/s", self.foliot("links").stdout)
        watched = self.foliot("links", "--watch")  # the fake agent closes the connection after one event
        self.assertIn("lost its carrier", watched.stdout)
        self.assertEqual(watched.returncode, 3)
        events = [json.loads(line) for line in self.foliot("links", "--watch", "--json").stdout.splitlines()]
        self.assertEqual([event["kind"] for event in events], ["links", "link-event"])

    def test_an_agent_that_refuses_or_talks_nonsense(self):
        agent = self.agent()
        agent.RequestHandlerClass = type("Bad", (agent.RequestHandlerClass,), {
            "handle": lambda self: self.wfile.write(b"{not json\n")})
        result = self.foliot("status")
        self.assertEqual(result.returncode, 3)
        self.assertIn("no JSON", result.stderr)

    def test_selftest_and_doctor(self):
        self.agent()
        self.assertIn("honest", self.foliot("selftest", "clock").stdout)
        self.assertEqual(self.foliot("selftest").returncode, 2)
        text = self.foliot("doctor").stdout
        self.assertIn("UDP 7637", text)
        kinds = {check["check"] for check in json.loads(self.foliot("doctor", "--json").stdout)["checks"]}
        self.assertLessEqual({"agent", "clocksource", "port", "capabilities"}, kinds)

    def test_doctor_ends_with_1_if_a_check_warns_or_fails(self):
        agent = self.agent()
        for result in ("ok", "skip", "warn", "fail"):
            agent.change = lambda answer, result=result: {
                **answer, **({"checks": [{**answer["checks"][-1], "result": result}]} if "checks" in answer else {})}
            own = {c["check"]: c["result"] for c in json.loads(self.foliot("doctor", "--json").stdout)["checks"] if c["check"] != "port"}
            if own.pop("interfaces") == "warn":
                self.skipTest("no network interface of this machine is up")
            self.assertLessEqual(set(own.values()), {"ok", "skip"})
            wrong = result in ("warn", "fail")
            for options in ((), ("--json",)):
                ended = self.foliot("doctor", *options)
                self.assertEqual(ended.returncode, int(wrong), f"{result} {options} {ended.stdout}")

    def test_doctor_needs_the_agents_own_checks(self):
        agent = self.agent()
        agent.change = lambda answer: {**answer, "kind": "error"} if answer["kind"] == "doctor" else answer
        for options in ((), ("--json",)):
            ended = self.foliot("doctor", *options)
            self.assertEqual(ended.returncode, 1)
            self.assertRegex(ended.stdout, "fail +agent|\"result\": ?\"fail\"")

    def test_doctor_works_without_an_agent(self):
        result = self.foliot("doctor")
        self.assertEqual(result.returncode, 1)
        self.assertIn("fail", result.stdout)

    def test_record_saves_the_bytes(self):
        self.agent()
        self.assertEqual(self.foliot("record", "-o", "saved").returncode, 0)
        with open(self.path("saved"), "rb") as saved:
            self.assertEqual(saved.read(), b"bytes")
        self.assertEqual(self.foliot("record", "-o", "saved").returncode, 3, "never overwrites")

    def test_keygen_makes_keeps_and_rotates(self):
        self.assertEqual(self.foliot("keygen", "key").returncode, 0)
        self.assertEqual(stat.S_IMODE(os.stat(self.path("key")).st_mode), 0o600)
        first = self.read("key")
        self.assertRegex(first, r"^key 1 [0-9a-f]{32} \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n$")
        again = self.foliot("keygen", "key")
        self.assertEqual(again.returncode, 1)
        self.assertEqual(self.read("key"), first, "an existing key file is never lost")
        self.assertEqual(self.foliot("keygen", "--rotate", "key").returncode, 0)
        second = self.read("key")
        self.assertTrue(second.startswith(first))
        self.assertEqual(len(second.splitlines()), 2)
        self.assertEqual(self.foliot("keygen", "--rotate", "key").returncode, 0)
        third = self.read("key")
        self.assertEqual([line.split()[1] for line in third.splitlines()], ["2", "3"])
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["key"], "nothing left behind")
        for bad in (["keygen"], ["keygen", "--id", "0", "x"], ["keygen", "a", "b"]):
            self.assertEqual(self.foliot(*bad).returncode, 2)

    def test_support_bundle_has_no_key(self):
        self.agent(well=False)
        self.foliot("keygen", "key")
        secret = self.read("key").split()[2]
        with open(self.path("agent.yaml"), "w") as config:
            config.write(f"key_file: key\n# someone pasted {secret} here\n")
        result = self.foliot("support-bundle", "-o", "bundle.tar", "--config", "agent.yaml")
        self.assertEqual(result.returncode, 0, result.stderr)
        with tarfile.open(self.path("bundle.tar")) as bundle:
            names = {os.path.basename(name) for name in bundle.getnames()}
            whole = b"".join(bundle.extractfile(member).read() for member in bundle.getmembers())
        self.assertLessEqual({"status.json", "mesh.json", "agent.yaml", "host.txt"}, names)
        self.assertNotIn(secret.encode(), whole)
        self.assertIn(b"someone pasted xxxx", whole)


unittest.main()
