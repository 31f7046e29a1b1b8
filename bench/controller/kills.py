#!/usr/bin/env python3
"""kills.py [KILLS]: kill -9 of the controller again and again under load. Then its store is checked: each report that an agent
got an acknowledgement for must be there once, and so must the reports before it. `make test` has a few kills, `make soak`
500."""
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import load  # noqa: E402
from world import Rows, median  # noqa: E402

HOSTS = 60


def run(kills, seed):
    """Seconds from each start of the program to an answer, errors found, acknowledged reports, the store's size in MiB."""
    random.seed(seed)
    back = []
    os.environ["FOLIOT_LOAD_EVENTS"] = "1"
    with load.Fleet() as fleet:
        keep = os.path.join(fleet.folder, "hosts")
        os.mkdir(keep)
        fleet.begin(HOSTS, report_ms=400, beat_ms=300, folder=keep)
        for _ in range(kills):
            time.sleep(random.random() * 1.2)
            fleet.stop(signal.SIGKILL)
            begin = time.monotonic()
            fleet.start(0.01)
            fleet.get("/api/v1/status")
            back.append(time.monotonic() - begin)
        time.sleep(3)
        fleet.load.send_signal(signal.SIGTERM)
        fleet.load.wait()
        fleet.stop()
        wrong, acknowledged = look(os.path.join(fleet.folder, "data", "store.db"), os.path.join(keep, "acknowledged"))
        fleet.log.seek(0)
        for line in fleet.log.read().splitlines():
            if "agents on port" not in line and " by token " not in line:
                wrong.append(line)
        size = os.path.getsize(os.path.join(fleet.folder, "data", "store.db")) / 2 ** 20
    return back, wrong, acknowledged, size


def look(path, acknowledged):
    wrong, total = [], 0
    store = sqlite3.connect(path)
    hosts = {name: (number, stream, identity) for identity, name, stream, number in
             store.execute("SELECT id, name, stream, number FROM host")}
    for line in open(acknowledged, encoding="ascii"):
        name, stream, told = line.split()
        number, have, identity = hosts[name]
        if have & (2 ** 64 - 1) != int(stream):
            wrong.append(f"{name}: another stream")
        if not int(told) <= number <= int(told) + 1:
            wrong.append(f"{name}: told {told}, has {number}")
        events = [int(text) for (text,) in store.execute(
            "SELECT json_extract(body, '$.text') FROM event WHERE host = ? AND kind = 'link' ORDER BY id", (identity,))]
        if events != list(range(1, number + 1)):
            wrong.append(f"{name}: {len(events)} events of {number} reports")
        total += int(told)
    gaps = store.execute("SELECT count(*) FROM event WHERE word = 'history-gap'").fetchone()[0]
    if gaps:
        wrong.append(f"{gaps} gaps")
    if store.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
        wrong.append("the file is damaged")
    store.close()
    return wrong, total


def main():
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    back, wrong, acknowledged, size_mib = run(kills, seed)
    command = f"kills.py {kills} {seed}"
    print(f"{kills} kills, {acknowledged} reports acknowledged, back after {max(back):.2f} s at worst; {'; '.join(wrong) or 'nothing lost'}")
    if os.environ.get("FOLIOT_BENCH"):
        rows = Rows("controller-kills")
        rows.add("controller.kills", kills, "kills", 500, None, "higher", command=command,
                 note=f"{acknowledged} reports of {HOSTS} hosts acknowledged")
        rows.add("controller.kills_lost_or_doubled", len(wrong), "", 0, None, command=command, note="; ".join(wrong)[:200])
        worst = back.index(max(back))
        rows.add("controller.kills_back_s", max(back), "s", 2, None, runs=len(back), spread=max(back) - min(back), command=command,
                 note=f"median {median(back):.2f} s, of the last tenth {median(back[-len(back) // 10:]):.2f} s; the worst was kill {worst + 1}; "
                      f"the store in the end {size_mib:.0f} MiB")
        rows.finish()
    return 1 if wrong or acknowledged < kills or max(back) > 120 else 0


if __name__ == "__main__":
    sys.exit(main())
