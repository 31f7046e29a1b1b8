#!/usr/bin/env python3
"""test_library.py LIBRARY: it must load in foreign images: what it needs, which symbols, and what it shows."""
import ctypes
import re
import subprocess
import sys

LIBRARY = sys.argv[1]
NEWEST = (2, 34)  # of glibc's symbol versions
NEEDED = re.compile(r"^(libc\.so\.6|libm\.so\.6|ld-linux.*\.so\.\d)$")
SHOWN = re.compile(r"^(ncclNetPlugin_v([6-9]|1[0-2])|ncclProfiler_v[4-6])$")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main():
    bad = []
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", LIBRARY)):
        if not NEEDED.match(name) and "san" not in name:
            bad.append(f"needs {name}: a foreign image may not have it")
    table = run("objdump", "-T", LIBRARY)
    for version in set(re.findall(r"GLIBC_([0-9.]+)", table)):
        if tuple(int(part) for part in version.split(".")[:2]) > NEWEST:
            bad.append(f"uses a symbol of GLIBC_{version}")
    shown = {line.split()[-1] for line in table.splitlines()
             if re.match(r"^[0-9a-f]{16} [gw]", line) and "*UND*" not in line}
    bad += [f"shows {name}" for name in sorted(shown) if not SHOWN.match(name)]
    bad += [f"lacks ncclNetPlugin_v{version}" for version in range(6, 13)
            if f"ncclNetPlugin_v{version}" not in shown]
    library = ctypes.CDLL(LIBRARY)
    for version in range(6, 13):
        name = ctypes.c_char_p.in_dll(library, f"ncclNetPlugin_v{version}").value
        if name != b"Foliot":
            bad.append(f"v{version} is called {name}")
    for text in bad:
        print(text)
    return 1 if bad else 0


sys.exit(main())
