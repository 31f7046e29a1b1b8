#!/usr/bin/env python3
"""test_debian.py BARE PLUGIN FOLDER: the plugin loads, connects and carries a message in roots of Debian 11, 12 and 13, each with its own glibc.

tools/install-deps test makes the roots in FOLDER (mmdebstrap, from a Debian mirror). Without one, or without root, the test is skipped.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

BARE, PLUGIN, FOLDER = sys.argv[1:4]
SUITES = {"bullseye": "2.31", "bookworm": "2.36", "trixie": "2.41"}  # Debian 11, 12, 13, and their glibc


def main():
    bad, missing = 0, []
    if os.geteuid() != 0:
        print("skipped: expected root, for chroot and name spaces")
        return 77
    if "asan" in subprocess.run(["ldd", BARE], capture_output=True, text=True, check=False).stdout:
        print("skipped: built with sanitizers")
        return 77
    with tempfile.TemporaryDirectory(prefix="foliot-debian-") as place:
        shutil.copy(BARE, place + "/bare")
        shutil.copy(PLUGIN, place + "/plugin.so")
        for suite, glibc in SUITES.items():
            root = os.path.join(FOLDER, "libc-" + suite)
            if not os.path.isdir(root + "/tmp"):
                missing.append(suite)
                continue
            inside = f"ip link set lo up && mount --bind {place} {root}/tmp && exec chroot {root} /tmp/bare /tmp/plugin.so"
            done = subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "--ipc", "--uts", "sh", "-c", inside], capture_output=True, text=True,
                                  env={"PATH": os.environ["PATH"]}, timeout=100, check=False)
            print(f"{suite}: {done.stdout.strip()} {done.stderr.strip()}")
            bad += done.returncode != 0 or not re.match(rf"ok lo glibc {re.escape(glibc)}\b", done.stdout)
    if missing and not bad:
        print(f"skipped: no root of {', '.join(missing)} in {FOLDER}: tools/install-deps test makes them where a Debian mirror is reached")
        return 77
    return 1 if bad else 0


sys.exit(main())
