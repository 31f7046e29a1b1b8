#!/usr/bin/env python3
"""A real job and a real agent: foliot perf over the plugin, its page, foliot jobs. usage: test_jobs.py AGENT FOLIOT PLUGIN"""
import json
import os
import re
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_agent  # noqa: E402  (takes AGENT off the arguments)
from test_agent import Agent, may_make_namespaces  # noqa: E402

FOLIOT, PLUGIN = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
RANKS = 3


class Jobs(test_agent.AgentCase):
    def setUp(self):
        super().setUp()
        self.jobs = []
        self.agent = Agent(self, 0).ready()

    def tearDown(self):
        for job in self.jobs:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
            job.wait(test_agent.IO_S)
        super().tearDown()

    def environment(self, **more):
        plain = {k: v for k, v in os.environ.items()
                 if not k.startswith(("FOLIOT", "NCCL", "OMPI", "PMI", "SLURM", "RANK", "WORLD", "MASTER"))}
        return {**plain, "FOLIOT_RUNTIME_DIR": self.agent.runtime, "FOLIOT_NIC": "lo", "FOLIOT_PATIENCE": "600", **more}

    def start_job(self, name="4711", seconds=3000):
        """The job lasts longer than any test. Each test ends it."""
        self.jobs.append(subprocess.Popen(
            ["ip", "netns", "exec", self.space(0), FOLIOT, "perf", "--plugin", PLUGIN, "--ranks", str(RANKS), "-b", "256K",
             "-e", "256K", "--duration", str(seconds), "-c", "0", "--wait", "200", "-T", "600"],
            env=self.environment(FOLIOT_JOB=name), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            start_new_session=True))
        return self.jobs[-1]

    def foliot(self, *arguments):
        return subprocess.run([FOLIOT, *arguments], capture_output=True, text=True, timeout=120, env=self.environment(),
                              check=False)

    def processes(self, kind="jobs"):
        return self.agent.ask(kind)["processes"]

    @staticmethod
    def measured(process):
        return [lane for lane in process["lane_list"] if lane["direction"] == "in" and lane["chunks"] > 100]

    def flowing(self):
        def all_flow():
            found = self.processes("lanes")
            return len(found) == RANKS and all(p["state"] == "running" and p["rate_out_bps"] > 0 and p["worst"] is not None and self.measured(p)
                                               for p in found) and found
        return self.wait(all_flow, 30, "every rank sends, and what arrives is measured")

    def test_a_job_is_seen_from_its_first_byte_to_its_end(self):
        job = self.start_job()
        found = self.flowing()
        self.assertEqual({(p["job"], p["rank"], p["ranks"], p["state"]) for p in found},
                         {("4711", rank, RANKS, "running") for rank in range(RANKS)})
        for process in found:
            lanes = process["lane_list"]
            self.assertEqual({lane["direction"] for lane in lanes}, {"in", "out"})
            for lane in self.measured(process):
                for stage in ("owd", "queued", "consumed"):
                    self.assertLessEqual(lane[f"{stage}_ns_p50"], lane[f"{stage}_ns_p99"])
        def shows(pattern, *arguments):
            """Waits for the pattern: if the machine pauses, ranks are idle, lanes aren't active, and the agent doesn't answer."""
            def shown():
                done = self.foliot("jobs", *arguments)
                return done.returncode == 0 and re.search(pattern, done.stdout) and done
            return self.wait(shown, 5, lambda: str(self.foliot("jobs", *arguments)))
        shows(rf"4711 +running +{RANKS}/{RANKS} ")
        first, second = self.path("first.json"), self.path("second.json")
        detail = shows(r"\(rank 0\) .*\(rank 1\) .*active", "4711", "--save", first)
        self.assertIn("began", detail.stdout)
        shows("4711", "4711", "--save", second)
        compared = self.foliot("jobs", "compare", first, second)
        self.assertEqual(compared.returncode, 0, compared.stderr)
        self.assertIn("(rank 0)", compared.stdout)
        os.killpg(job.pid, signal.SIGKILL)
        self.wait(lambda: {p["state"] for p in self.processes()} == {"killed"}, 10, "all ranks are known to be gone")
        self.wait(lambda: not os.listdir(os.path.join(self.agent.runtime, "jobs")), 5, "nothing is left behind")
        shows("without closing its page", "4711")

    def test_a_stopped_rank_is_alive_and_an_agent_that_restarts_sees_it_again(self):
        job = self.start_job("77")
        self.flowing()
        self.assertEqual(self.agent.stop(), 0)
        self.agent = Agent(self, 0).ready()
        self.flowing()
        os.killpg(job.pid, signal.SIGSTOP)
        self.wait(lambda: {p["state"] for p in self.processes()} == {"idle"}, 15, "stopped ranks are idle, not dead")
        os.killpg(job.pid, signal.SIGCONT)
        self.flowing()

    def test_the_agent_outlives_what_others_write_there(self):
        folder = os.path.join(self.agent.runtime, "jobs")
        self.assertEqual(os.stat(folder).st_mode & 0o7777, 0o1777)
        with open(os.path.join(folder, "job-1-bad.page"), "wb") as page:
            page.write(os.urandom(300000))
        other = self.write("other.page", "x" * 300000)
        os.symlink(other, os.path.join(folder, "job-2-link.page"))
        os.mkfifo(os.path.join(folder, "job-3-pipe.page"))
        job = self.start_job()
        self.flowing()
        pages = [entry.path for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)]
        self.assertEqual(len(pages), RANKS + 1)
        for path in pages:  # pages of a live job, cut by their owner while the agent reads them
            os.truncate(path, 4096)
        self.wait(lambda: self.agent.ask("jobs")["pages_refused"] > 0, 10, "what is no page is counted")
        self.flowing()  # the job still writes them, and goes on
        self.assertIsNone(job.poll())
        self.assertEqual(self.agent.ask()["kind"], "status")
        self.assertIsNone(self.agent.process.poll(), self.agent.log())


for inherited in [name for name in dir(test_agent.AgentCase) if name.startswith("test_")]:
    setattr(Jobs, inherited, None)  # these tests run in test_agent.py

if __name__ == "__main__":
    if not may_make_namespaces():
        print("needs root and network namespaces")
        sys.exit(77)
    unittest.main()
