#!/usr/bin/env python3
"""questions.py up|truth|down: the situation for the five questions (docs/five-questions.md).

A lab with a controller, a job, a change of the fleet's configuration, a host that was replaced by another, and a link that
broke while the job ran. A hidden seed decides which link broke, and whether the replacement is well. The true answers are in a
separate file, so that the person who answers need not be the person who set it up.

  questions.py up [--name NAME] [--port PORT] [--seed N]    some 70 s; it stays until `down`
  questions.py truth [--name NAME]                          the true answers
  questions.py down [--name NAME]
"""
import argparse
import datetime
import json
import os
import random
import shutil
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("FOLIOT_BUILD", os.path.join(TOP, "build")))
FOLIOT = os.path.join(BUILD, "src", "app", "foliot")
AGENT = os.path.join(BUILD, "src", "app", "foliot-agent")
PLUGIN = os.path.join(BUILD, "src", "plugin", "libnccl-net-foliot.so")
JOB, JOB_HOSTS, JOB_SECONDS = "train", (2, 3, 6, 7), 3600
REPLACED = 5                # this host has no rank of the job
SETTLE_S, APART_S = 60, 12  # until every host is healthy; between two changes


def utc():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


class Situation:
    """A lab with a controller, and the changes made to it."""

    def __init__(self, name, port):
        self.name, self.port = name, port
        self.folder = f"/run/foliot-lab/{name}"
        self.truth_file = f"/run/foliot-{os.path.basename(sys.argv[0]).partition('.')[0]}-{name}.json"
        self.truth = {}

    def run(self, *words, check=True, env=None):
        result = subprocess.run([FOLIOT, *words], capture_output=True, text=True, timeout=120, check=False,
                                stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
        if check and result.returncode != 0:
            raise RuntimeError(f"foliot {' '.join(words)}: {result.stderr.strip() or result.stdout.strip()}")
        return result.stdout

    def lab(self, *words, check=True):
        return self.run("lab", "--name", self.name, *words, check=check)

    def ask(self, *words, check=True):
        """A question to the controller, as an operator types it."""
        with open(os.path.join(self.folder, "token"), encoding="utf-8") as file:
            token = file.read().strip()
        return self.run(*words, "--controller", f"http://127.0.0.1:{self.port}", check=check, env={"FOLIOT_TOKEN": token})

    def settle(self):
        """Waits until every host is healthy; a busy machine takes longer."""
        end = time.monotonic() + SETTLE_S
        while time.monotonic() < end:
            hosts = json.loads(self.ask("host", "list", "--json"))["items"]
            if hosts and all(h["health"] == "ok" for h in hosts):
                return
            time.sleep(1)
        raise RuntimeError("not every host was healthy within a minute: see `foliot host list`")

    def start_job(self):
        """Runs in its own process and outlives this program; `down` ends it with the lab's namespaces."""
        log = open(self.truth_file + ".job", "w", encoding="utf-8")  # pylint: disable=consider-using-with
        subprocess.Popen([FOLIOT, "perf", "all_reduce", "--lab", self.name, "--hosts", ",".join(map(str, JOB_HOSTS)),
                          "--ranks", str(len(JOB_HOSTS)), "--plugin", PLUGIN, "--message", "64K", "-b", "32K", "-e", "32K",
                          "--duration", str(JOB_SECONDS), "--wait", "200"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                         start_new_session=True, env={**os.environ, "FOLIOT_NIC": "nic", "FOLIOT_JOB": JOB})

    def change_configuration(self):
        file = self.truth_file + ".fleet.yaml"
        with open(file, "w", encoding="utf-8") as out:
            out.write("flap_limit: 6\n")
        self.truth["configuration"] = f"flap_limit: 6 was applied to all hosts at {utc()}"
        self.ask("config", "apply", file, "--why", "a lower limit is tried")

    def replace_host(self, bad):
        """Removes the old host; another machine joins in its place under another name."""
        host, spare = f"host{REPLACED}", f"spare{REPLACED}"
        folder = os.path.join(self.folder, host)
        self.lab("fault", "agent-kill", host)
        self.ask("host", "remove", host)
        shutil.rmtree(os.path.join(folder, "identity"))  # another machine has another key
        token = self.ask("host", "token").split()[-1]
        with open(os.path.join(folder, "agent.yaml"), encoding="utf-8") as file:
            text = file.read()
        with open(os.path.join(folder, "agent.yaml"), "w", encoding="utf-8") as file:
            file.write(text.replace(f"host: {host}\n", f"host: {spare}\n"))
        nics = [word for n in range(2) for word in ("--nic", f"nic{n}", "--leaf", "leaf1")]
        self.lab("exec", host, "--", AGENT, "join", "172.31.0.1", token, "--host", spare, "--config",
                 os.path.join(folder, "agent.yaml"), "--state-dir", folder, *nics)
        self.truth["replaced"] = f"{host} was taken out and {spare} joined in its place at {utc()}"
        if bad:
            self.lab("fault", "delay", f"{host}/nic1", "--delay", "80us")
        self.lab("fault", "agent-restart", host)

    def up(self, seed):
        draw = random.Random(seed)
        bad = draw.random() < 0.5
        link, fault = draw.choice([(f"leaf{draw.randrange(2)}/spine{draw.randrange(4)}", "blackhole"),
                                   (f"host{draw.choice(JOB_HOSTS)}/nic{draw.randrange(2)}", "carrier")])
        self.lab("up", f"--controller={self.port}", "--agent", AGENT)
        self.settle()
        self.start_job()
        time.sleep(APART_S)
        self.change_configuration()
        time.sleep(APART_S)
        self.replace_host(bad)
        time.sleep(APART_S)
        self.settle()
        self.truth["link"] = link
        self.truth["how"] = {"blackhole": "silently swallows every packet, both ways", "carrier": "cut: no carrier"}[fault]
        self.truth["since"] = utc()
        self.lab("fault", fault, link)
        self.truth["network"] = f"yes: job {JOB} has lanes over that link, which fail; others, or other ways, carry its traffic"
        self.truth["join"] = "no: what goes through its nic1 is 80 us late" if bad else "yes"
        with open(self.truth_file, "w", encoding="utf-8") as out:
            json.dump({"seed": seed, **self.truth}, out, indent=1)
        print(f"It stands. The reader:\n  export FOLIOT_API=http://127.0.0.1:{self.port} "
              f"FOLIOT_TOKEN=$(cat {self.folder}/token)\n  foliot help     (or the dashboard, http://127.0.0.1:{self.port}/)\n"
              f"The replaced host is spare{REPLACED}, the job is {JOB}. True answers: questions.py truth --name {self.name}")

    def show(self):
        with open(self.truth_file, encoding="utf-8") as file:
            print(file.read())

    def down(self):
        self.lab("down", check=False)
        for end in ("", ".job", ".fleet.yaml"):
            if os.path.exists(self.truth_file + end):
                os.unlink(self.truth_file + end)


def options_of(doc, commands, *more):
    """The command line of such a situation. more: further arguments, as add_argument() takes them."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=commands)
    for name, words in more:
        parser.add_argument(name, **words)
    parser.add_argument("--name", default="questions")
    parser.add_argument("--port", type=int, default=7639)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit(f"{os.path.basename(sys.argv[0]).partition('.')[0]}: the lab makes network namespaces and needs root")
    return options


def set_up(situation, seed):
    """Leaves nothing behind if it fails."""
    try:
        situation.up(seed if seed is not None else random.SystemRandom().randrange(1 << 30))
    except BaseException:
        situation.down()
        raise


def main():
    options = options_of(__doc__, ["up", "truth", "down"])
    situation = Situation(options.name, options.port)
    if options.what == "up":
        set_up(situation, options.seed)
    elif options.what == "truth":
        situation.show()
    else:
        situation.down()
    return 0


if __name__ == "__main__":
    sys.exit(main())
