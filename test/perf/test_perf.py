#!/usr/bin/env python3
"""foliot perf over a plugin: all collectives, their table and JSON. A plugin that flips a bit is found.

usage: test_perf.py FOLIOT REFERENCE.so PLANTED.so FOLIOT.so
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from interrupt import interrupt

FOLIOT, REFERENCE, PLANTED, OURS = sys.argv[1:5]
OPERATIONS = ["all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "sendrecv", "pingpong", "gather"]
ENVIRONMENT = {k: v for k, v in os.environ.items() if not re.match("(OMPI|PMI|SLURM|RANK|WORLD_SIZE|MASTER|NCCL)", k)}
ENVIRONMENT["NCCL_SOCKET_IFNAME"] = "lo"


def perf(*arguments, plugin=REFERENCE, status=0, before=(), **environment):
    """Runs the command. before: words in front of it."""
    if "-b" in arguments and "-e" not in arguments:  # nccl-tests' default would be 32M in steps of 1M
        arguments = (*arguments, "-e", arguments[arguments.index("-b") + 1])
    done = subprocess.run([*before, FOLIOT, "perf", "--plugin", plugin, "-T", "120", *arguments], capture_output=True,
                          text=True, timeout=300, env={**ENVIRONMENT, **environment}, check=False)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout


def rows(text):
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]


def test_every_operation():
    for operation in OPERATIONS:
        for ranks in ("2", "3", "5"):
            out = perf(operation, "--ranks", ranks, "-b", "4", "-e", "300000", "-f", "37", "-n", "2",
                       "--message", "16K", "--channels", "3")
            table = rows(out)
            assert len(table) == 4, out
            for row in table:
                assert row[8] == "0" and row[12] in ("0", "N/A"), out
            assert "# Out of bounds values : 0 OK" in out, out


def test_types_and_reductions():
    for kind in ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float", "double"):
        for reduction in ("sum", "prod", "max", "min"):
            out = perf("all_reduce", "-b", "10000", "-n", "1", "-w", "0", "-d", kind, "-o", reduction, "--ranks", "3")
            assert rows(out)[0][2:4] == [kind, reduction] and rows(out)[0][8] == "0", out


def test_every_version_and_helpers():
    for version in range(6, 13):
        perf("--net-version", str(version), "-b", "1M", "-n", "2")
    perf("-b", "4M", "-n", "2", REFERENCE_NTHREADS="2", REFERENCE_NSOCKS_PERTHREAD="4")


def test_table_to_the_letter():
    out = perf("-b", "8", "-e", "64", "-f", "8", "-n", "2")
    lines = out.splitlines()
    assert re.match(r"# Collective test starting: all_reduce_perf$", lines[1]), out
    assert re.match(r"#  Rank  0 Group  0 Pid +\d+ on +\S+ device  0 \[0000:00:00\] NET/Reference lo$", lines[5]), out
    assert "           out-of-place                       in-place" in lines[8]
    body = [line for line in lines if not line.startswith("#")]
    for line in body:  # columns as nccl-tests' printf prints them
        assert re.match(r"[ \d]{12}  [ \d]{12}  +float     sum      -1  [ \d.]{7}  [ \d.]{6}  [ \d.]{6}  [ \d]{6}  "
                        r"[ \d.]{7}  [ \d.]{6}  [ \d.]{6}  [ \d]{6}$", line), line


def live_until(pattern, *before, environment):
    """A live job. It gets an interrupt, as from a terminal, when stderr matches the pattern. Returns exit status, stdout,
    stderr."""
    process = subprocess.Popen([*before, FOLIOT, "perf", "--plugin", OURS, "--live", "-b", "64K", "-e", "64K", "--duration", "3600", "-c", "0", "--wait", "200"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    patience, seen, over = threading.Timer(300, interrupt, (process, signal.SIGKILL)), b"", False
    patience.start()
    for line in process.stderr:
        seen += line
        if not over and re.search(pattern, seen, re.M):
            over = True
            interrupt(process)
    out = process.stdout.read()
    patience.cancel()
    return process.wait(), out, seen


def test_live():
    status, out, shown = live_until(rb"^lo \(rank 0\) +\xe2\x86\x92 lo \(rank 1\) +\d +active +[0-9.]+ Mbit/s +\+\S+ [num]?s +\+\S+ [num]?s +0$",
                                    environment={**ENVIRONMENT, "FOLIOT_NIC": "lo"})
    assert status == 0, shown
    assert rows(out.decode())[0][0] == "65536", "the table is as ever"
    refused = subprocess.run([FOLIOT, "perf", "--live", "--hosts", "a,b"], capture_output=True, text=True, timeout=60, env=ENVIRONMENT, check=False)
    assert refused.returncode == 2 and "other hosts" in refused.stderr


def test_no_rank_outlives_the_command():
    command = subprocess.Popen([FOLIOT, "perf", "--plugin", OURS, "--ranks", "2", "-b", "64K", "-e", "64K", "-c", "0", "--duration", "600"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    path = f"/proc/{command.pid}/task/{command.pid}/children"
    ranks = []
    while len(ranks) < 2:
        assert command.poll() is None, command.returncode
        with open(path, encoding="ascii") as children:
            ranks = [int(word) for word in children.read().split()]
        time.sleep(0.01)
    command.terminate()
    command.wait()
    end = time.monotonic() + 60
    # a zombie has no descriptors; its new parent may leave it a zombie
    while any(os.path.exists(f"/proc/{rank}/fd/0") for rank in ranks):
        assert time.monotonic() < end, ranks
        time.sleep(0.05)


def test_a_nic_of_any_name():
    """An interface's name may have any bytes: ranks connect over it, and the terminal never gets these bytes."""
    name = b"v\x1b[2J\xff"
    network = b"ip link set lo up && ip link add '" + name + b"' type veth peer name p && ip address add 10.9.0.1/24 dev '" + name \
        + b"' && ip link set '" + name + b"' up && ip link set p up && exec \"$@\""
    environment = {os.fsencode(k): os.fsencode(v) for k, v in ENVIRONMENT.items()} | {b"FOLIOT_NIC": b"=" + name}
    status, out, shown = live_until(rb"v\?\[2J\? \(rank 0\)(?s:.*)v\?\[2J\? \(rank 1\)", "unshare", "-n", "sh", "-c", network, "sh", environment=environment)
    if b"unshare" in shown:
        return  # not allowed to make a name space
    assert status == 0, shown
    assert rb"NET/Foliot v\x1b[2J\xff" in out and b"\x1b" not in shown + out, out


def test_by_ssh():
    """With a fake ssh that runs the command here: which hosts it is called for, with which command, and that the ranks meet. In a
    network of its own, so that no other program has their port."""
    alone = ("unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        alone = ()  # not allowed to make one
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/ssh", "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\necho "$1 $2" >> {folder}/asked\nshift 2\nexec "$@"\n')
        os.chmod(folder + "/ssh", 0o755)
        out = perf("--hosts", "localhost,127.0.0.1", "--ranks", "4", "-b", "64K", "-n", "2", before=alone, PATH=folder + ":" + os.environ["PATH"])
        assert rows(out)[0][8] == "0" and len(re.findall(r"^#  Rank", out, re.M)) == 4, out
        asked = sorted(open(folder + "/asked", encoding="utf-8").read().splitlines())
        assert asked == ["-oBatchMode=yes 127.0.0.1"] * 2 + ["-oBatchMode=yes localhost"] * 2, asked


def test_no_port_that_kernels_hand_out():
    """No port is in the range from which kernels choose: another connection may have it, and an early rank may connect to
    itself."""
    for job in (12768, 15715, 19999, 4194304):
        environment = {**ENVIRONMENT, "SLURM_STEP_NODELIST": "localhost", "SLURM_JOB_ID": str(job), "SLURM_PROCID": "1", "SLURM_NTASKS": "2"}
        done = subprocess.run([FOLIOT, "perf", "--plugin", REFERENCE, "-T", "1"], capture_output=True, text=True, timeout=120,
                              env=environment, check=False)
        port = int(re.search(r"rank 1: localhost:(\d+): ", done.stderr)[1])
        assert 1024 <= port < 32768, (job, port)


def test_json():
    report = json.loads(perf("alltoall", "-b", "64K", "-n", "2", "--json"))
    row = report["results"][0]
    assert report["version"] == 2 and row["size"] == 65536 and row["type"] == "float" and row["redop"] == "none"
    assert row["out_of_place"]["nwrong"] == 0 and row["in_place"]["nwrong"] is None
    assert row["out_of_place"]["bus_bw"] > 0 and report["out_of_bounds"]["okay"] == "true"
    assert len(report["devices"]) == 2
    with tempfile.TemporaryDirectory() as folder:
        perf("-b", "64K", "-n", "2", "--jobs", "2", "-J", folder + "/j", "--trace", folder)
        for job in range(2):
            assert json.load(open(f"{folder}/j.{job}"))["devices"][1]["group"] == job
            assert os.path.getsize(f"{folder}/job{job}-rank1.trace") % 16 == 0


def test_ranks_started_by_somebody_else():
    with tempfile.TemporaryDirectory() as folder:
        for names in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"),
                      ("SLURM_PROCID", "SLURM_NTASKS")):
            ranks = [subprocess.Popen([FOLIOT, "perf", "--plugin", REFERENCE, "-b", "64K", "-e", "64K", "-n", "2", "--meet",
                                       f"unix:{folder}/meet"], stdout=subprocess.PIPE, text=True,
                                      env={**ENVIRONMENT, names[0]: str(i), names[1]: "2"}) for i in range(2)]
            out = [rank.communicate(timeout=300)[0] for rank in ranks]
            assert [rank.returncode for rank in ranks] == [0, 0] and len(rows(out[0])) == 1 and out[1] == "", out


def test_wrong_bytes_are_found():
    out = perf("-b", "1M", "-n", "1", "-c", "4", plugin=PLANTED, status=1, REFERENCE_PLANT="bit-flip")
    assert int(rows(out)[0][8]) + int(rows(out)[0][12]) > 0 and "FAILED" in out, out


def test_rests_after_checked_rounds():
    begin = time.monotonic()
    perf("sendrecv", "-b", "8", "-n", "1", "-w", "0", "-c", "6", "--pause", "200")
    assert time.monotonic() - begin >= 7 * 0.2


def test_bad_usage():
    for bad in (["-b", "x"], ["nothing"], ["--net-version", "5"], ["--hosts", "a,,b"], ["--rank", "3", "--ranks", "2"]):
        perf(*bad, status=2)
    perf("-b", "8", plugin="/nonexistent.so", status=1)


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print("ok", name, flush=True)
