#!/usr/bin/env python3
"""test_bare_root.py BARE PLUGIN: the plugin in a root that has only the loader, libc, libpthread, libdl and libm. There is no
/proc, /sys, /dev, /run or /tmp. It runs in name spaces of its own, as an unknown user.

With FOLIOT_BARE_LIBC=FOLDER the libraries are taken from there: another distribution's libc6, unpacked (dpkg -x). Else they are
this machine's.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

BARE, PLUGIN = sys.argv[1:3]
LIBC = os.environ.get("FOLIOT_BARE_LIBC")


def needed(program):
    """This machine's paths of the loader, libc, libpthread, libdl and libm."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(/\S+/(?:ld-linux\S*|libc\.so\.6|libpthread\.so\.0|libdl\.so\.2|libm\.so\.6))", listed)


def find(name):
    found = [path for path in glob.glob(os.path.join(LIBC, "**", name), recursive=True) if os.path.exists(path)]
    if not found:
        sys.exit(f"{LIBC} has no {name}")
    return os.path.realpath(found[0])


def main():
    own = needed(BARE) + needed(PLUGIN)
    loader = next((path for path in own if "/ld-linux" in path), None)
    if loader is None or "asan" in subprocess.run(["ldd", BARE], capture_output=True, text=True, check=False).stdout:
        print("skipped: built with sanitizers")
        return 77
    with tempfile.TemporaryDirectory(prefix="foliot-bare-") as root:
        for path in {loader, *(p for p in own if "/lib" in p and "/ld-linux" not in p)}:
            place = root + (path if path == loader else "/lib/" + os.path.basename(path))
            os.makedirs(os.path.dirname(place), exist_ok=True)
            shutil.copy(find(os.path.basename(path)) if LIBC else os.path.realpath(path), place)
        os.makedirs(root + "/lib", exist_ok=True)
        shutil.copy(BARE, root + "/bare")
        shutil.copy(PLUGIN, root + "/plugin.so")
        spaces = ["unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--ipc", "--uts"]
        inside = f"ip link set lo up && exec chroot {root} {loader} --library-path /lib /bare /plugin.so"
        if subprocess.run([*spaces, "sh", "-c", "ip link set lo up"], capture_output=True, check=False).returncode != 0:
            if os.geteuid() != 0:
                print("skipped: neither root nor user name spaces")
                return 77
            spaces = ["unshare", "--net", "--pid", "--fork", "--ipc", "--uts"]
            if subprocess.run([*spaces, "sh", "-c", "ip link set lo up"], capture_output=True, check=False).returncode != 0:
                print("skipped: no name spaces")
                return 77
        done = subprocess.run([*spaces, "sh", "-c", inside], capture_output=True, text=True, env={"PATH": os.environ["PATH"]}, timeout=100,
                              check=False)
    print(done.stdout.strip(), done.stderr.strip())
    return 0 if done.returncode == 0 and done.stdout.startswith("ok lo ") else 1


sys.exit(main())
