#!/usr/bin/env python3
"""reader.py page|audit [SEED]: what a person finds who has never seen the program. An invented fleet of 500 hosts with 8 NICs
under 4,096 trunks has faults drawn from the seed. Questions come one at a time, and a line on standard input answers each.
An answer is right if it has every word of the truth. It prints where to look and the questions, and nothing that answers
them.

page: only the dashboard: the dead trunk, the NIC that is down, who changed what, the worst pair. audit: README and its pages,
and the programs: which host must not take a job, why, what to do, what changed, what was not checked.

The person who starts it must not be the person who answers, and no reader answers the same seed twice."""
import http.client
import json
import os
import random
import re
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import load  # noqa: E402
from world import BUILD, Missing, Rows  # noqa: E402

HOSTS, LEAVES, SPINES = 500, 64, 64
PEOPLE = ("dana", "otto", "mira", "noor", "ines")


def ask(fleet, method, path, body, token=None):
    connection = http.client.HTTPConnection("127.0.0.1", fleet.api, timeout=60)
    connection.request(method, path, json.dumps(body), {"Authorization": f"Bearer {token or fleet.admin}", "Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise Missing(f"{method} {path}: {answer.status} {text[:200]}")
    return json.loads(text)


def nics(folder):
    """Names of all NICs, by their number in the fleet: from the numbers that each host got when it joined."""
    names = {}
    for index in range(HOSTS):
        with open(os.path.join(folder, f"{index}.nic"), encoding="ascii") as file:
            first = int(file.read())
        names.update({first + i: f"load{index}/nic{i}" for i in range(load.NICS)})
    return names


def page(fleet, drawn, folder):
    """Questions, and the words of their answers."""
    leaf, spine = drawn.randrange(LEAVES), drawn.randrange(SPINES)
    down, slow = drawn.sample(range(HOSTS * load.NICS), 2)
    os.environ["FOLIOT_LOAD_FAULTS"] = f"{leaf} {spine} {down} {slow}"
    fleet.begin(HOSTS, folder=folder)
    names = nics(folder)
    who, other = drawn.sample(PEOPLE, 2)
    tokens = {name: ask(fleet, "POST", "/api/v1/tokens", {"name": name, "role": "admin"})["token"] for name in (who, other)}
    limit = drawn.randrange(5, 15)
    ask(fleet, "POST", "/api/v1/config", {"text": f"flap_limit: {limit}\n", "why": "fewer pages at night", "canary_percent": 0}, tokens[who])
    silenced = f"load{drawn.randrange(HOSTS)}"
    ask(fleet, "POST", "/api/v1/silences", {"host": silenced, "minutes": 600, "why": "new fans"}, tokens[other])
    with open(os.path.join(folder, "peer"), encoding="ascii") as file:
        peer = names[int(file.read())]
    return [("Which trunk between two switches is dead? Name both switches.", [f"leaf{leaf}", f"spine{spine}"]),
            ("Which NIC is down? Name host and NIC.", [names[down].replace("/", ".*")]),
            ("Somebody changed the fleet's configuration in the last hour. Who, which setting, to what?", [who, "flap_limit", str(limit)]),
            ("Which host was silenced, and by whom?", [silenced, other]),
            ("Which two NICs have by far the longest delay between them? Name both.", [names[slow].replace("/", ".*"), peer.replace("/", ".*")])]


def change(sheet, part, host, fact, subject, to):
    """Gives a host its own part with one changed fact. Returns the old value."""
    own = os.path.join(sheet, f"{part}.{host}")
    with open(own if os.path.exists(own) else os.path.join(sheet, part), encoding="utf-8") as file:
        lines = [line.split("\t") for line in file.read().splitlines()]
    found = [line for line in lines if line[0] == fact and line[2] == subject]
    was, found[0][3] = found[0][3], to
    with open(own, "w", encoding="utf-8") as file:
        file.write("".join("\t".join(line) + "\n" for line in lines))
    return was


def audit(fleet, drawn, folder):
    """An accepted audit, two changes, a host that can't be audited, and an audit after them."""
    sheet = os.path.join(fleet.folder, "sheet")
    os.makedirs(sheet)
    load.write_sheet(sheet, large=False)
    os.remove(os.path.join(sheet, "os.odd"))
    os.environ["FOLIOT_LOAD_SHEET"] = sheet
    fleet.begin(HOSTS, folder=folder)
    time.sleep(12)  # by then each host has reported
    narrow, newer, absent = (f"load{i}" for i in drawn.sample(range(HOSTS), 3))
    _, accepted, _ = load.audit_run(fleet)
    ask(fleet, "POST", "/api/v1/audit/baselines", {"run": accepted["run"], "name": "as delivered"})
    with open(os.path.join(sheet, "pcie"), encoding="utf-8") as file:
        cards = [line.split("\t")[2] for line in file if line.startswith("pci.width\tvalue") and line.split("\t")[3] == "16"]
    change(sheet, "pcie", narrow, "pci.width", drawn.choice(cards), "8")
    change(sheet, "os", newer, "os.kernel", "", "6.8.0-99-generic")
    with open(os.path.join(sheet, f"absent.{absent}"), "w", encoding="ascii"):
        time.sleep(5)  # by then its agent has reported it
    load.audit_run(fleet)
    return [("Which host must not take a job?", [narrow]),
            ("Why not? What was found there, and what was expected?", ["x?8", "x?16", "width|lane"]),
            ("What is to be done about it?", ["reseat|riser"]),
            ("What changed since the accepted audit? Name each host with what changed there.", [narrow, "width|lane", newer, "kernel"]),
            ("What was not looked at?", [absent])]


def put(questions, rows, name):
    """Asks one question after the other, each with its time."""
    right, times = 0, []
    for number, (question, truth) in enumerate(questions, 1):
        print(f"\n{number}. {question}", flush=True)
        begin = time.monotonic()
        answer = sys.stdin.readline()
        if answer == "":
            raise Missing("the reader went away")
        times.append(time.monotonic() - begin)
        is_right = all(re.search(rf"(?<![a-z0-9])(?:{word})(?![0-9])", answer.lower()) for word in truth)
        right += is_right
        print(f"   {times[-1]:.1f} s", flush=True)
    rows.add(f"{name}.reader.right", right, "", len(questions), None, "higher", len(questions), command=f"reader.py {name} SEED, a reader beside it",
             note=f"of {len(questions)}")
    limit, aim = (20, 8) if name == "page" else (60, 20)
    rows.add("page.reader" if name == "page" else "audit.reader.s", max(times), "s", limit, aim, runs=len(times), command="the same",
             note="each: " + ", ".join(f"{t:.0f}" for t in times))


def main():
    what, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else int.from_bytes(os.urandom(4), "big")
    drawn, rows = random.Random(f"{what} {seed}"), Rows(f"controller-reader-{what}")
    with load.Fleet() as fleet:
        folder = os.path.join(fleet.folder, "kept")
        os.makedirs(folder)
        questions = {"page": page, "audit": audit}[what](fleet, drawn, folder)
        time.sleep(15)  # each has reported, and the page shows it
        print(f"The dashboard: http://127.0.0.1:{fleet.api}/  token {fleet.admin}")
        print(f"The programs: export FOLIOT_API=http://127.0.0.1:{fleet.api} FOLIOT_TOKEN={fleet.admin} PATH={BUILD}/src/app:$PATH")
        print("Have the page open, then press Enter: the first question comes, and its time runs.", flush=True)
        sys.stdin.readline()
        put(questions, rows, what)
    return rows.finish()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
