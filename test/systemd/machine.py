"""machine.py: hosts with their own systemd on this machine: a minimal Debian 12 in new name spaces, with the build in it.

`tools/install-deps test` makes the root once, in build/deps/. Each machine runs on a copy in memory and leaves nothing behind.
"""
import contextlib
import os
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DEPS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "deps")


def debian_root():
    """The path of the root that `tools/install-deps test` made; None: there is none."""
    path = os.path.join(DEPS, "root-bookworm")
    return path if os.path.exists(os.path.join(path, "sbin", "init")) else None


class Groups:
    """systemd's own hierarchy of cgroups, mounted here: it is the same one at any place."""

    def __init__(self):
        self.mount = tempfile.mkdtemp(prefix="foliot-units-groups-")
        subprocess.run(["mount", "-t", "cgroup", "-o", "none,name=systemd", "systemd", self.mount], check=True)

    def enter(self, name):
        """For a process that is about to start: it sees its own group as the root of all groups."""
        group = os.path.join(self.mount, name)
        os.makedirs(group, exist_ok=True)
        with open(os.path.join(group, "cgroup.procs"), "w", encoding="utf-8") as file:
            file.write("0")

    def remove(self, name):
        end = time.monotonic() + 60  # a killed process leaves its group a moment later
        while os.path.exists(os.path.join(self.mount, name)) and time.monotonic() < end:
            for folder, _, _ in os.walk(os.path.join(self.mount, name), topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:
                    time.sleep(0.05)

    def close(self):
        subprocess.run(["umount", "-l", self.mount], check=False)
        os.rmdir(self.mount)


class Machine:
    """One host. `run` runs a command as its administrator, root."""

    def __init__(self, name, root, build, groups):
        self.name, self.groups, self.group = name, groups, f"foliot-units-{os.getpid()}-{name}"
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child",
             os.path.join(HERE, "boot"), root, build],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, preexec_fn=lambda: groups.enter(self.group))
        self.pid = None

    def wait_up(self, seconds=300):
        end, booted = time.monotonic() + seconds, False
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(OSError):  # it has ended: the next check finds that
                with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="utf-8") as file:
                    children = file.read().split()
                booted = bool(children) and os.readlink(f"/proc/{children[0]}/exe").endswith("/systemd")
            if booted:
                self.pid = children[0]
                if self.run("systemctl", "is-system-running", "--wait", check=False).stdout.strip() in ("running", "degraded"):
                    subprocess.run(["nsenter", "--uts", "-t", self.pid, "hostname", self.name], check=True)
                    return
            time.sleep(0.05)
        self.log.seek(0)
        raise RuntimeError(f"machine {self.name} isn't up: {self.log.read()}")

    def run(self, *command, check=True, environment=None, user=None):
        own = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", **(environment or {})}
        who = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"] if user else []
        done = subprocess.run(["nsenter", "--all", "-t", self.pid, "--wd=/", *who, *command], env=own, capture_output=True,
                              text=True, check=False, stdin=subprocess.DEVNULL, timeout=300)
        if check and done.returncode != 0:
            raise AssertionError(f"{self.name}: {' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def read(self, path):
        with open(f"/proc/{self.pid}/root{path}", encoding="utf-8") as file:
            return file.read()

    def write(self, path, text, mode=0o644):
        place = f"/proc/{self.pid}/root{path}"
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(place, mode)

    def unit(self, name, what):
        return self.run("systemctl", "show", "--value", "-p", what, name).stdout.strip()

    def journal(self, unit):
        return self.run("journalctl", "--no-pager", "-o", "cat", "-u", unit).stdout

    def close(self):
        if self.process.poll() is None:
            self.process.kill()  # unshare's child, process 1, is killed with it, and then all others
        self.process.wait()
        self.groups.remove(self.group)
        self.log.close()


def cable(one, other, nic, addresses):
    """A cable between two machines, with its ends' addresses."""
    subprocess.run(["ip", "link", "add", nic, "netns", one.pid, "type", "veth", "peer", "name", nic, "netns", other.pid],
                   check=True)
    for machine, address in zip((one, other), addresses):
        machine.run("ip", "link", "set", "lo", "up")
        machine.run("ip", "address", "add", address, "dev", nic)
        machine.run("ip", "link", "set", nic, "up")
