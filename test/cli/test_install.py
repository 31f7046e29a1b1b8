#!/usr/bin/env python3
"""make install puts everything where it belongs, make uninstall takes all of it out. usage: test_install.py BUILD"""
import os
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
build = sys.argv[1]
with tempfile.TemporaryDirectory(prefix="foliot-install-") as destdir:
    def front(verb):
        subprocess.run([os.path.join(TOP, "tools", "install"), build, verb, "/usr/local"], check=True, cwd=TOP,
                       env={**os.environ, "DESTDIR": destdir})
        return sorted(os.path.relpath(os.path.join(folder, name), destdir)
                      for folder, _, files in os.walk(destdir) for name in files)
    installed = front("install")
    print("\n".join(installed))
    for name in ("bin/foliot", "share/man/man1/foliot.1", "share/bash-completion/completions/foliot"):
        assert any(path.endswith(name) for path in installed), name
    left = front("uninstall")
    assert left == [], left
    assert os.listdir(destdir) == [], os.listdir(destdir)
