#!/usr/bin/env python3
"""make install puts everything in its place, make uninstall removes all of it. usage: test_install.py BUILD"""
import os
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
build = sys.argv[1]


def check_library(destdir, installed):
    """A program finds the library by pkg-config's own path. Only if `make build` configured the folder."""
    place = os.path.join(destdir, os.path.dirname(next(path for path in installed if path.endswith("foliot-clock.pc"))))
    source = os.path.join(destdir, "now.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write('#include <foliot/clock.h>\nint main(void) { struct foliot_time now; return (int)foliot_now(&now); }\n')
    flags = subprocess.check_output(["pkg-config", "--cflags", "--libs", "foliot-clock"], text=True,
                                    env={**os.environ, "PKG_CONFIG_PATH": place, "PKG_CONFIG_SYSROOT_DIR": destdir})
    subprocess.run(["cc", source, "-o", source + ".out", *flags.split()], check=True)
    os.unlink(source)
    os.unlink(source + ".out")
    multiarch = subprocess.run(["cc", "-print-multiarch"], capture_output=True, text=True, check=False).stdout.strip()
    searched = subprocess.run(["pkg-config", "--variable", "pc_path", "pkg-config"], capture_output=True, text=True,
                              check=False).stdout.strip().split(":")
    if multiarch:
        assert "/" + os.path.relpath(place, destdir) in searched, f"pkg-config doesn't look in {place}: {searched}"


with tempfile.TemporaryDirectory(prefix="foliot-install-") as destdir:
    def front(verb):
        subprocess.run([os.path.join(TOP, "tools", "install"), build, verb, "/usr/local"], check=True, cwd=TOP,
                       env={**os.environ, "DESTDIR": destdir})
        return sorted(os.path.relpath(os.path.join(folder, name), destdir)
                      for folder, _, files in os.walk(destdir) for name in files)
    installed = front("install")
    print("\n".join(installed))
    link = next(path for path in installed if path.endswith("librccl-net-foliot.so"))
    assert os.readlink(os.path.join(destdir, link)) == "libnccl-net-foliot.so"
    for name in ("bin/foliot", "libnccl-net-foliot.so", "share/man/man7/foliot-nccl.7", "share/man/man1/foliot.1", "share/bash-completion/completions/foliot", "share/foliot/alerts.yaml", "share/foliot/roce-vm/run", "share/foliot/roce-vm/machine"):
        assert any(path.endswith(name) for path in installed), name
    check_library(destdir, installed)
    left = front("uninstall")
    assert left == [], left
    assert os.listdir(destdir) == [], os.listdir(destdir)
