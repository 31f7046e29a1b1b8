#!/usr/bin/env python3
"""foliot audit gate before a scheduler: known facts, and the files of packaging/gate for Slurm, Kubernetes and
node-problem-detector.
usage: test_gate.py FOLIOT [slurm]

Without the word all except Slurm is tested. With it Debian's slurmctld, slurmd and munged run in name spaces of their own, on a
machine as files: the prolog lets jobs start or not, and the health check drains. They are the installed ones, or those that
tools/install-deps unpacked, laid over /usr there. Skipped (77) without root or without either."""
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import machine  # noqa: E402

FOLIOT = os.path.abspath(sys.argv.pop(1))
SLURM = "slurm" in sys.argv[1:] and bool(sys.argv.pop(sys.argv.index("slurm")))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GATE = os.path.join(TOP, "packaging", "gate")
UNPACKED = os.path.join(TOP, "build", "deps", "slurm")
WIDTH = "/sys/devices/pci0000:39/0000:39:01.0/0000:3b:00.0/current_link_width"


class Place(unittest.TestCase):
    """A machine as files, and a foliot that reads it."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="foliot-gate-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.root, self.known = os.path.join(self.folder, "root"), os.path.join(self.folder, "known", "gate.json")
        machine.build(self.root, machine.files("roce", 1))
        os.mkdir(os.path.join(self.folder, "bin"))
        self.program("foliot", f'#!/bin/sh\necho "$@" >> {self.folder}/asked\nshift 2\nexec {FOLIOT} audit gate --root {self.root} --known {self.known} "$@"\n')

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def program(self, name, text):
        path = os.path.join(self.folder, "bin", name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def width(self, lanes):
        with open(self.root + WIDTH, "w", encoding="utf-8") as file:
            file.write(f"{lanes}\n")

    def run_(self, *words, **more):
        return subprocess.run(words, capture_output=True, text=True, timeout=600, check=False, **more)

    def environment(self):
        return {"PATH": f"{self.folder}/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


class Known(Place):
    def gate(self, *words):
        return self.run_(FOLIOT, "audit", "gate", "--root", self.root, "--known", self.known, "--format", "slurm", *words)

    def test_a_host_passes_by_what_is_known_and_is_closed_by_what_is_read(self):
        self.assertEqual(self.gate("--age", "300").returncode, 0)
        self.width(8)
        self.assertEqual(self.gate("--age", "300").returncode, 0)  # known for so long
        self.assertEqual(self.gate().returncode, 1)                # no age: it is read
        os.utime(self.known, (time.time() - 301,) * 2)
        self.assertEqual(self.gate("--age", "300").returncode, 1)  # too old
        self.assertEqual(self.gate("--age", "300").returncode, 1)  # now it is known that it fails
        self.width(16)
        done = self.gate("--age", "300")                           # and yet mended at once
        self.assertEqual((done.returncode, done.stdout[:11]), (0, "roce1: pass"), done.stdout)

    def test_facts_of_others_are_not_believed(self):
        self.assertEqual(self.gate("--age", "300").returncode, 0)
        self.width(8)
        with open(self.known, encoding="utf-8") as file:
            text = file.read()
        for spoil in ("future", "writable", "link", "garbage", "empty", "owner", "folder", "pipe"):
            os.path.isdir(self.known) and os.rmdir(self.known)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.known)
            if spoil == "folder":
                os.mkdir(self.known)
            elif spoil == "pipe":
                os.mkfifo(self.known)
            elif spoil == "link":
                with open(self.known + ".other", "w", encoding="utf-8") as file:
                    file.write(text)
                os.symlink(self.known + ".other", self.known)
            else:
                with open(self.known, "w", encoding="utf-8") as file:
                    file.write({"garbage": "{", "empty": ""}.get(spoil, text))
                os.chmod(self.known, 0o666 if spoil == "writable" else 0o600)
                if spoil == "future":
                    os.utime(self.known, (time.time() + 1000,) * 2)
                if spoil == "owner":
                    if os.geteuid() != 0:
                        continue
                    os.chown(self.known, 65534, 65534)
            self.assertEqual(self.gate("--age", "300").returncode, 1, spoil)

    def test_without_a_place_for_them_it_reads(self):
        done = self.run_(FOLIOT, "audit", "gate", "--root", self.root, "--known", self.folder + "/no/such/place", "--age", "300")
        self.assertEqual(done.returncode, 0, done.stderr)

    # ---- the files of packaging/gate ----

    def test_the_prolog_by_itself(self):
        prolog = os.path.join(GATE, "slurm-prolog")
        self.assertEqual(self.run_(prolog, env=self.environment()).returncode, 0)
        os.unlink(self.known)
        self.width(8)
        done = self.run_(prolog, env=self.environment())
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^foliot: roce1: fail: cfg\.pcie\.width 0000:3b:00\.0 \(eth1, mlx5_1, slot 21\): x8, expected x16")
        os.unlink(self.root + WIDTH)
        self.assertEqual(self.run_(prolog, env=self.environment()).returncode, 1)  # unknown is not a pass
        self.assertEqual(self.run_(prolog, env={"PATH": "/usr/bin:/bin"} if not shutil.which("foliot", path="/usr/bin:/bin") else {"PATH": ""}).returncode, 1)

    def test_the_health_check_keeps_reasons_that_are_not_its_own(self):
        ours = "foliot audit gate: roce1: fail: cfg.pcie.width 0000:9b:00.0: x4, expected x16"
        self.program("sinfo", f"#!/bin/sh\ncat {self.folder}/sinfo\n")
        self.program("scontrol", f'#!/bin/sh\necho "$*" >> {self.folder}/told\n')
        self.width(8)
        for state, reason, drains in (("idle", "none", True), ("allocated", "none", True), ("mixed", "drain test of down links failed, ok", True),
                                      ("idle*", "none", True), ("drained", ours, True), ("draining", ours, True), ("down*", ours, True),
                                      ("drained", "disk swap, ask ann", False), ("draining", "foliot: ask ann", False), ("drained*", f"was {ours}", False),
                                      ("drained", "drain foliot: see ticket", False), ("down", "Not responding", False), ("failing", "none", False),
                                      ("idle", "down drain foliot", True), ("drained", "none", False), ("drained", "", False)):
            with open(os.path.join(self.folder, "sinfo"), "w", encoding="utf-8") as file:
                file.write(f"{state} {reason}\n")
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.folder, "told"))
            done = self.run_(os.path.join(GATE, "slurm-health"), env=self.environment() | {"SLURMD_NODENAME": "roce1"})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(os.path.exists(os.path.join(self.folder, "told")), drains, (state, reason))
        self.width(16)
        self.assertEqual(self.run_(os.path.join(GATE, "slurm-health"), env=self.environment()).returncode, 0)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "told")))

    def test_a_node_condition(self):
        with open(os.path.join(GATE, "node-problem-detector.json"), encoding="utf-8") as file:
            config = json.load(file)
        rule = config["rules"][0]
        self.assertEqual((config["plugin"], rule["type"], rule["condition"], rule["path"]), ("custom", "permanent", config["conditions"][0]["type"], "/usr/local/bin/foliot"))
        for lanes, status in ((16, 0), (8, 1), (None, 2)):  # node-problem-detector's OK, NonOK, Unknown
            self.width(lanes) if lanes else os.unlink(self.root + WIDTH)
            done = self.run_(os.path.join(self.folder, "bin", "foliot"), *rule["args"])
            self.assertEqual(done.returncode, status, done.stdout)
            self.assertEqual(done.stdout.count("\n"), 1)

    @unittest.skipIf(os.geteuid() != 0, "chroot needs root")
    def test_an_init_container(self):
        """Runs the container's command unchanged, in name spaces of its own, on a host whose first process is the test's."""
        with open(os.path.join(GATE, "kubernetes-init.yaml"), encoding="utf-8") as file:
            command = json.loads(re.search(r"command: (\[\"chroot[^\]]*\])", file.read(), re.DOTALL)[1])
        self.assertEqual(command[:3], ["chroot", "/host", "nsenter"])
        pod, its, seen = (os.path.join(self.folder, name) for name in ("pod", "its", "seen"))
        os.mkdir(pod)
        spaces = "for n in net uts ipc mnt; do readlink /proc/self/ns/$n; done"
        self.program("foliot", f"#!/bin/sh\n{spaces} > {seen}\nshift 2\nexec {FOLIOT} audit gate --root {self.root} --known {self.known} \"$@\"\n")
        self.program("pod", f"#!/bin/sh\nmount --rbind / {pod} && exec " + " ".join(command).replace("/host", pod, 1) + "\n")
        for lanes, status in ((16, 0), (8, 1)):
            self.width(lanes)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.known)
            host = f"{spaces} > {its}; unshare --mount --net --uts --ipc --pid --fork pod"
            done = self.run_("unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", host,
                             env=self.environment())
            self.assertEqual(done.returncode, status, done.stderr + done.stdout)
            with open(its, encoding="utf-8") as of_host, open(seen, encoding="utf-8") as of_gate:
                self.assertEqual(of_gate.read().split(), of_host.read().split())  # it reads the host's files, not the pod's


CLUSTER = """
ClusterName=gate
SlurmctldHost=gatehost(10.91.7.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
MessageTimeout=100
{more}
NodeName=gatehost NodeAddr=10.91.7.1 CPUs=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""
# A host of its own: a name, addresses (getaddrinfo needs one outside the loopback), and processes that end with it.
BEGIN = """
set -e
mount --make-rprivate /
{over}
mount --bind {folder}/bin /usr/local/bin
hostname gatehost
echo 10.91.7.1 gatehost > {folder}/hosts
mount --bind {folder}/hosts /etc/hosts
ip link set lo up
ip link add slurm0 type veth peer slurm1
ip addr add 10.91.7.1/24 dev slurm0
ip link set slurm0 up
ip link set slurm1 up
mkdir {folder}/etc
cp {folder}/slurm.conf {folder}/etc/
mount --bind {folder}/etc /etc/slurm
munged --key-file {folder}/munge.key --socket {folder}/munge.socket --pid-file {folder}/munge.pid --log-file {folder}/munge.log --seed-file {folder}/munge.seed --force -F &
slurmctld -D &
slurmd -D -N gatehost &
state() {{ sinfo -h -o %T 2>/dev/null; }}
wait_for() {{ for i in $(seq 1200); do state | grep -q "$1" && return; sleep 0.1; done; echo "never $1: $(state)"; exit 3; }}
narrow() {{ echo 8 > {root}{width}; rm -f {known}; }}
wide() {{ echo 16 > {root}{width}; }}
wait_for idle
"""


@unittest.skipUnless(SLURM, "another test")
class Slurm(Place):
    def cluster(self, more, script):
        for name in ("state", "spool"):
            os.mkdir(os.path.join(self.folder, name))
        with open(os.path.join(self.folder, "munge.key"), "wb") as file:
            file.write(os.urandom(1024))
        os.chmod(file.name, 0o400)
        with open(os.path.join(self.folder, "slurm.conf"), "w", encoding="utf-8") as file:
            file.write(CLUSTER.format(folder=self.folder, more=more))
        over = "" if os.path.isdir("/etc/slurm") else f"for d in usr etc; do mount -t overlay -o lowerdir={UNPACKED}/$d:/$d overlay /$d; done"
        names = {"over": over, "folder": self.folder, "root": self.root, "width": WIDTH, "known": self.known}
        done = self.run_("unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--mount-proc", "--kill-child", "bash", "-c",
                         BEGIN.format(**names) + textwrap.dedent(script))
        log = ""
        for name in ("slurmd.log", "slurmctld.log"):
            with contextlib.suppress(FileNotFoundError), open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as file:
                log += file.read()[-3000:]
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + log)
        return done.stdout

    def test_a_prolog_keeps_jobs_off_a_host_that_fails(self):
        out = self.cluster(f"Prolog={GATE}/slurm-prolog\nPrologFlags=Alloc", """
            timeout 300 srun echo job 1 ran
            narrow
            timeout 60 srun echo job 2 ran || echo job 2 was refused
            wait_for drain
            wide
            scontrol update nodename=gatehost state=resume
            wait_for idle
            timeout 300 srun echo job 3 ran
            """)
        self.assertEqual([line for line in out.splitlines() if line.startswith("job")], ["job 1 ran", "job 2 was refused", "job 3 ran"])
        with open(os.path.join(self.folder, "asked"), encoding="utf-8") as file:
            self.assertEqual(set(file.read().splitlines()), {"audit gate --format slurm --age 300"})

    def test_a_health_check_drains_with_the_reason(self):
        out = self.cluster(f"HealthCheckProgram={GATE}/slurm-health\nHealthCheckInterval=1\nHealthCheckNodeState=ANY", """
            timeout 300 srun echo job 1 ran
            sleep 3
            wait_for idle
            state
            narrow
            wait_for drain
            echo "reason $(sinfo -h -o %E)"
            wide
            for i in $(seq 20); do  # a check that began before may end, and drain it again
                scontrol update nodename=gatehost state=resume; sleep 4; state | grep -q idle && break
            done
            wait_for idle
            timeout 300 srun echo job 2 ran
            scontrol update nodename=gatehost state=drain reason="disk swap, ask ann"
            narrow
            sleep 4
            echo "theirs $(sinfo -h -o %E)"
            scontrol update nodename=gatehost state=resume
            wait_for drain
            echo "then $(sinfo -h -o %E)"
            """)
        self.assertRegex(out, r"job 1 ran\nidle\*?\n")
        self.assertIn("theirs disk swap, ask ann\n", out)
        self.assertRegex(out, r"then foliot audit gate: roce1: fail")
        self.assertRegex(out, r"reason foliot audit gate: roce1: fail: cfg\.pcie\.width 0000:3b:00\.0 \(eth1, mlx5_1, slot 21\): x8, expected x16")
        self.assertIn("job 2 ran", out)


def missing():
    """The reason why Slurm can't be tested here; None: it can."""
    unpacked = f":{UNPACKED}/usr/sbin:{UNPACKED}/usr/bin" if os.path.isdir(f"{UNPACKED}/etc/slurm") else ""
    programs = [name for name in ("slurmctld", "slurmd", "munged", "srun", "unshare", "ip")
                if not shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin" + unpacked)]
    if not os.path.isdir("/etc/slurm") and not unpacked:
        programs.append("/etc/slurm")
    return "needs root" if os.geteuid() != 0 else f"needs {', '.join(programs)} (Debian: slurmctld slurmd munge)" if programs else None


if SLURM and missing():
    print("skipped:", missing())
    sys.exit(77)
unittest.main(argv=[sys.argv[0], *(["Slurm"] if SLURM else ["Known"])])
