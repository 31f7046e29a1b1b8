#!/usr/bin/env python3
"""foliot audit capture: turns a machine into files that give the same verdicts and identify nobody.
usage: test_capture.py FOLIOT FOLIOT-INSPECT"""
import contextlib
import ctypes
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import faults  # noqa: E402
import machine  # noqa: E402

FOLIOT, INSPECT = (os.path.abspath(path) for path in (sys.argv.pop(1), sys.argv.pop(1)))
HOST, SITE, USER = "quux17", "acmecorp", "annalena"
HOMES = os.path.join("/", "home")
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 1 << 14, 1 << 18
SERIAL, MAC, GUID = "MT2233X01234", "0c:42:a1:03:04:05", "0c42:a103:0004:0506"
UUID, IP4, IP6, PEER = "4c4c4544-0037-4d10-8052-b7c04f4e3532", "198.51.100.37", "2001:db8:77:1::37", "quux18"
BARE = MAC.replace(":", "")
DECIMAL, DECIMAL_GUID = "104212030405", "1042120300040506"  # addresses without a letter
NEEDLES = [HOST, PEER, SITE, USER, SERIAL, MAC, MAC.upper(), BARE, GUID, GUID.replace(":", ""), UUID, UUID[:8], DECIMAL, DECIMAL_GUID, IP4, IP6, "2001:db8:77", "c6336425", "256433C6"]
GUID6 = "fe80:0000:0000:0000:0e42:a1ff:fe03:0405"


def hexed(text):
    return (machine.content(text).strip()).decode()


def identifying():
    """Everything that identifies the machine's owner, in all places where a machine has it: {path: bytes, or a link's target}."""
    tree = machine.files("roce", 1)
    old = {path: value.decode(errors="replace") for path, value in tree.items() if isinstance(value, bytes)}
    nic = "/sys/devices/pci0000:39/0000:39:01.0/0000:3b:00.0"
    config = bytearray(tree[nic + "/config"])
    struct.pack_into("<HHQ", config, 0x108, 0x0003, 1, int(BARE + "0001", 16))  # Device Serial Number
    struct.pack_into("<H", config, 0x102, 1 | 0x108 << 4)
    config[0x40:0x4c] = SERIAL.encode()
    memory = bytearray(128)
    memory[1:17], memory[20:36], memory[36:38] = b"EXAMPLE".ljust(16), b"OSFP-400G-FR4".ljust(16), b"01"
    memory[38:54] = SERIAL.encode().ljust(16)
    name = machine.attribute(1, machine.attribute(2, b"eth1\0") + machine.attribute(9, SITE.encode()))
    answers = {}
    for what in ("fec", "pause", "rings", "channels", "coalesce"):
        answers[f"/answers/eth1/{what}"] = (name + bytes.fromhex(old[f"/answers/eth1/{what}"].strip())).hex().encode() + b"\n"
    answers["/answers/eth1/module-0-128"] = (name + machine.attribute(7, bytes(memory))).hex().encode() + b"\n"
    mesh = json.loads(old["/answers/agent/mesh"])
    for edge in mesh["edges"]:
        edge |= {"peer_host": f"{PEER}.{SITE}.example", "peer_address": IP4, "host": HOST}
        for path in edge["paths"]:
            path["hops"] = [f"leaf1.{SITE}"] if path.get("hops") else path.get("hops")
    links = json.loads(old["/answers/agent/links"])
    for number, nic_of in enumerate(links["nics"]):
        nic_of |= {"switch": f"{SITE}-leaf{number}", "mac": MAC}
    status = json.loads(old["/answers/agent/status"]) | {"host": HOST, "addresses": [IP4, IP6]}
    return {
        "/proc/sys/kernel/hostname": f"{HOST}.{SITE}.example", "/etc/hostname": HOST, "/etc/machine-id": UUID.replace("-", ""),
        "/proc/sys/kernel/random/boot_id": UUID,
        "/proc/cmdline": old["/proc/cmdline"].strip() + f" root=UUID={UUID} ip={IP4}::eth0 nfsroot={IP4}:/{SITE} BOOTIF=01-{MAC.replace(':', '-')}",
        "/dev/kmsg": old["/dev/kmsg"].replace(";Command line:", f";{HOST} Command line:") + f"6,1300,9000001,-;mlx5_core 0000:19:00.0 eth0: {MAC} {SERIAL}\n"
        f"3,1301,9000002,-;INFO: task {SITE}d:4711 blocked for more than 120 seconds.\n",
        "/proc/mounts": old["/proc/mounts"] + f"{IP4}:/export/{SITE} {HOMES}/{USER} nfs4 rw,addr={IP4},clientaddr={IP6} 0 0\n/dev/disk/by-id/nvme-{SERIAL} /mnt/{SITE} ext4 rw 0 0\n",
        HOMES + "/" + USER + "/README": "x", "/mnt/" + SITE + "/README": "x",
        "/proc/swaps": f"Filename Type Size Used Priority\n{HOMES}/{USER}/{SITE}.swap file 8388604 0 -2\n",
        "/proc/net/arp": old["/proc/net/arp"] + f"{IP4} 0x1 0x2 {MAC} * eth0\n",
        "/proc/net/route": old["/proc/net/route"] + "eth0\t256433C6\t00000000\t0005\t0\t0\t0\tFFFFFFFF\t0\t0\t0\n",
        "/proc/net/fib_trie": old["/proc/net/fib_trie"] + f"           |-- {IP4}\n              /32 host LOCAL\n",
        "/etc/resolv.conf": f"search {SITE}.example\nnameserver {IP4}\nnameserver {IP6}\n",
        "/etc/nccl.conf": old["/etc/nccl.conf"] + f"NCCL_TOPO_FILE={HOMES}/{USER}/{SITE}/topo.xml\nNCCL_SOCKET_HOST={HOST}\n# {SITE}: ask {USER}\nOTHER={SITE}\n",
        "/proc/915/stat": f"915 ({SITE}-agent) S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 400 0 0 0", "/proc/915/fd/0": faults.Link(f"{HOMES}/{USER}/log"),
        "/proc/900/limits": old["/proc/900/limits"] + f"{SITE}   {USER}\n",
        f"/sys/fs/cgroup/system.slice/{SITE}-backup.service/cgroup.procs": "915", f"/sys/fs/cgroup/system.slice/backup@{USER}.service/cgroup.procs": "916",
        "/proc/driver/nvidia/gpus/0000:1b:00.0/information": old["/proc/driver/nvidia/gpus/0000:1b:00.0/information"] + f"GPU UUID: \t GPU-{UUID}\nSerial: {SERIAL}\n",
        "/proc/driver/nvidia/version": old["/proc/driver/nvidia/version"] + f"built by {USER}@{SITE}\n",
        "/sys/class/dmi/id/bios_version": f"2.19.1 {DECIMAL} {DECIMAL_GUID}",
        "/sys/class/infiniband/mlx5_1/node_guid": GUID, "/sys/class/infiniband/mlx5_1/ports/1/gids/0": GUID6,
        "/sys/class/infiniband/mlx5_1/ports/1/gids/3": "0000:0000:0000:0000:0000:ffff:c633:6425", "/sys/class/infiniband/mlx5_1/ports/1/gids/2": "0000:0000:0000:0000:0000:ffff:c633:6425",
        nic + "/config": bytes(config), **answers,
        "/answers/agent/mesh": json.dumps(mesh).encode() + b"\n", "/answers/agent/links": json.dumps(links).encode() + b"\n",
        "/answers/agent/status": json.dumps(status).encode() + b"\n",
        "/var/lib/foliot/tests/allreduce-q1.txt": f"{HOST}:1:1 [0] NCCL INFO NET/IB : {MAC} {IP4}\n".encode() + tree["/var/lib/foliot/tests/allreduce-q1.txt"],
        f"/var/lib/foliot/tests/{SITE}.csv": f"{HOST},{SERIAL}\n",
        "/var/lib/foliot/tests/dcgm.json": old["/var/lib/foliot/tests/dcgm.json"].replace('{"status":"Pass"}', '{"status":"Pass","info":"%s %s"}' % (HOST, SERIAL)).encode(),
        "/var/lib/foliot/tests/values": old["/var/lib/foliot/tests/values"] + f"# {USER}\n{SITE}_bw 3 GB/s\n",
    }


def renamed(tree):
    """The front end's interface has an address in its name; eth3 has a name of the site."""
    new = {}
    for path, value in tree.items():
        for was, name in (("eno1", "enx" + BARE), ("eth3", SITE + "0")):
            path = path.replace(f"/{was}/", f"/{name}/")
            path = re.sub(f"/{was}$", f"/{name}", path)
            if isinstance(value, str):
                value = re.sub(f"/{was}$", f"/{name}", value)
            elif not path.endswith("/config") and path.startswith(("/proc/net/", "/sys/class/net/bond0", "/etc/", "/answers/agent")):
                value = re.sub(rf"\b{was}\b".encode(), name.encode(), value)
        new[path] = value
    return new


class Capture(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="foliot-capture-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.root, self.kept = os.path.join(self.folder, "root"), os.path.join(self.folder, "kept")

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def capture(self, *words):
        return subprocess.run([FOLIOT, "audit", "capture", self.kept, *words], capture_output=True, text=True, timeout=600, check=False)

    def verdicts(self, root=None):
        done = subprocess.run([FOLIOT, "audit", "run", "--json", "--all", *(["--root", root] if root else [])], capture_output=True, text=True, timeout=600, check=False)
        self.assertIn(done.returncode, (0, 1, 3), done.stderr)
        found = {}
        for r in json.loads(done.stdout)["results"]:
            found.setdefault(r["check"], []).append((r["status"], r["reason"] or ""))
        return {check: sorted(results) for check, results in found.items()}

    def played(self, root=None):
        before, after = self.verdicts(root), self.verdicts(self.kept)
        return {check: (before[check], after.get(check)) for check in before if before[check] != after.get(check)}

    def left(self):
        """Names, link targets and bytes of the capture that contain one of the needles."""
        found, files = [], 0
        for folder, folders, names in os.walk(self.kept):
            for name in folders + names:
                path = os.path.join(folder, name)
                link = os.path.islink(path)
                text = path[len(self.kept):].encode() + b"\n"
                text += os.readlink(path).encode() if link else b""
                if not link and os.path.isfile(path):
                    files += 1
                    with open(path, "rb") as file:
                        content = file.read()
                    text += content
                    if "/answers/" in path:
                        text += b"".join(bytes.fromhex(line) for line in content.decode().split() if re.fullmatch("([0-9a-f]{2})+", line))
                for needle in NEEDLES:
                    if needle.encode() in text or bytes.fromhex(BARE) in text or bytes.fromhex(BARE)[::-1] in text:
                        found.append((path[len(self.kept):], needle))
        self.assertGreater(files, 20)
        return found

    def test_machines_are_judged_the_same(self):
        for kind in ("roce", "infiniband", "amd"):
            machine.build(self.root, machine.files(kind, 1))
            done = self.capture("--root", self.root)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.played(self.root), {}, kind)
            shutil.rmtree(self.kept)

    def test_nothing_tells_whose_it_is(self):
        tree = dict(machine.files("roce", 1))
        tree |= {path: value if isinstance(value, (bytes, faults.Link)) else machine.content(value) for path, value in identifying().items()}
        machine.build(self.root, renamed(tree))
        before = self.verdicts(self.root)
        for check in ("cfg.mem.swap", "cfg.kern.log"):
            self.assertEqual(before[check][0][0], "fail", check)  # the planted fault was read
        done = self.capture("--root", self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.left(), [])
        self.assertNotRegex(done.stdout, "|".join(NEEDLES[:8]))
        self.assertEqual(self.played(self.root), {})

    def test_a_log_of_many_megabytes(self):
        """Early and late lines of a log are kept. So is a counter that has as many digits as an address."""
        tree = dict(machine.files("roce", 1))
        quiet = "".join(f"6,{number},{9000000 + number},-;usb 1-1: new high-speed USB device number {number}\n" for number in range(1301, 60000))
        self.assertGreater(len(quiet), 2 << 20)
        tree["/dev/kmsg"] += b"3,1300,9000000,-;watchdog: BUG: soft lockup - CPU#3 stuck for 22s!\n" + quiet.encode()
        tree["/dev/kmsg"] += b"4,60000,9100000,-;NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.\n"
        tree["/sys/class/net/eth1/statistics/rx_bytes"] = b"104212030405\n"
        machine.build(self.root, tree)
        before = self.verdicts(self.root)
        self.assertEqual((before["cfg.kern.log"][0][0], before["cfg.gpu.xid"][0][0]), ("fail", "fail"))
        self.assertEqual(self.capture("--root", self.root).returncode, 0)
        self.assertEqual(self.played(self.root), {})
        with open(self.kept + "/sys/class/net/eth1/statistics/rx_bytes", encoding="utf-8") as file:
            self.assertEqual(file.read(), "104212030405\n")

    def test_faults_stay_and_reasons_too(self):
        """The capture gives the same verdicts for each planted fault and for each missing source."""
        chosen = [f for f in faults.FAULTS if f[1] == "roce" and not any(path.startswith("fact:") for path in f[2])]
        for _, _, changes, source in chosen[::7]:
            for lost in (False, True):
                tree = dict(machine.files("roce", 1))
                for path, value in changes.items():
                    if value is None:
                        tree = {p: v for p, v in tree.items() if p != path and not p.startswith(path + "/")}
                    else:
                        tree[path] = str(value) if isinstance(value, faults.Link) else value if isinstance(value, bytes) else machine.content(value)
                if lost and source is not None:
                    tree = {p: v for p, v in tree.items() if p != source.lstrip("!") and not p.startswith(source.lstrip("!") + "/")}
                machine.build(self.root, tree)
                self.assertEqual(self.capture("--root", self.root).returncode, 0)
                self.assertEqual(self.played(self.root), {}, (changes.keys(), lost))
                shutil.rmtree(self.kept)

    def test_what_cannot_be_read_stays_unknown_and_leaves_nothing(self):
        machine.build(self.root, machine.files("roce", 1))
        width = self.root + "/sys/devices/pci0000:39/0000:39:01.0/0000:3b:00.0/current_link_width"
        link = "link to itself"
        for content in (b"\xff\x00" + SERIAL.encode(), SERIAL.encode(), b"8\n" * 600000, link, None):
            os.unlink(width)
            if content is None:
                os.mkdir(width)
            elif content == link:
                os.symlink("current_link_width", width)
            else:
                with open(width, "wb") as file:
                    file.write(content)
            self.assertEqual(self.capture("--root", self.root).returncode, 0)
            self.assertEqual(self.played(self.root), {})
            self.assertEqual(self.left(), [])
            shutil.rmtree(self.kept)

    def test_this_machine(self):
        if os.geteuid() == 0:  # other tests' mounts come and go: this process sees only those of now
            libc = ctypes.CDLL(None, use_errno=True)
            self.assertEqual(libc.unshare(CLONE_NEWNS) or libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), 0, os.strerror(ctypes.get_errno()))
        before, done = self.verdicts(), self.capture()
        self.assertEqual(done.returncode, 0, done.stderr)
        # other tests' processes come and go, and so do these facts of the machine's processes
        moving = {"cfg.kern.memlock", "cfg.time.one_steer", "cfg.mem.free", "cfg.mem.fragment", "node.procs", "node.command", "fe.loss", "cfg.gpu.idle"}
        # a verdict that changes meanwhile is one of the two
        other = {check: (before.get(check), *both) for check, both in self.played().items() if both[1] != before.get(check) and check not in moving}
        self.assertEqual(other, {})
        names = {os.uname().nodename}
        for path in ("/etc/machine-id", "/etc/hostname"):
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    names.add(file.read().strip())
        for net in os.listdir("/sys/class/net"):  # other tests' interfaces come and go
            with contextlib.suppress(FileNotFoundError), open(f"/sys/class/net/{net}/address", encoding="utf-8") as file:
                names.add(file.read().strip())
        NEEDLES.extend(name for name in names if len(name) > 3 and name not in ("localhost", "00:00:00:00:00:00"))
        self.assertEqual(self.left(), [])

    def test_a_folder_that_is_there_is_left_alone(self):
        machine.build(self.root, machine.files("roce", 1))
        os.mkdir(self.kept)
        with open(self.kept + "/mine", "w", encoding="utf-8") as file:
            file.write("x")
        done = self.capture("--root", self.root)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("kept", done.stderr)
        self.assertEqual(os.listdir(self.kept), ["mine"])

    def test_trees_that_would_lead_out(self):
        """A machine with links that form a loop, lead up, or lead out: the capture stays in its folder."""
        machine.build(self.root, machine.files("roce", 1))
        outside = os.path.join(self.folder, "outside")
        os.mkdir(outside)
        os.unlink(self.root + "/sys/class/net/eth1/mtu")
        os.symlink("../../../../../../../../outside/mtu", self.root + "/sys/class/net/eth1/mtu")
        os.unlink(self.root + "/sys/class/infiniband/mlx5_1/device")
        os.symlink(outside, self.root + "/sys/class/infiniband/mlx5_1/device")
        os.symlink("loop", self.root + "/sys/class/net/loop")
        self.assertEqual(self.capture("--root", self.root).returncode, 0)
        self.assertEqual(os.listdir(outside), [])
        self.assertEqual(self.played(self.root), {})


unittest.main()
