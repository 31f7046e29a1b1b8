#!/usr/bin/env python3
"""test_library.py LIBRARY: it must load in other people's images: the libraries and symbols that it needs, and the symbols that
it exports."""
import ctypes
import re
import subprocess
import sys

LIBRARY = sys.argv[1]
NEWEST = (2, 25)  # the newest of glibc's symbol versions: Ubuntu 20.04 has 2.31, RHEL 8 and manylinux_2_28 have 2.28
NEEDED = re.compile(r"^(libc\.so\.6|libpthread\.so\.0|libm\.so\.6|ld-linux.*\.so\.\d)$")
MAKE_MERGED = 152  # in the tables of v9 to v12
PROXY_OPERATION, PROXY_STEP = 8, 16
SHOWN = re.compile(r"^(ncclNetPlugin_v([6-9]|1[0-2])|ncclProfiler_v[4-6])$")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def profiler(library, version):
    """NCCL 2.27 starts the steps of an operation only if the operation got a handle."""
    table = ctypes.addressof(ctypes.c_char.in_dll(library, f"ncclProfiler_v{version}"))
    start_event = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_char_p)(
        ctypes.c_void_p.from_address(table + 16).value)
    stop_event = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(ctypes.c_void_p.from_address(table + 24).value)
    record = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(ctypes.c_void_p.from_address(table + 32).value)
    handles = []
    for kind in (PROXY_OPERATION, PROXY_STEP):
        handle = ctypes.c_void_p()
        if start_event(None, ctypes.byref(handle), bytes([kind]) + bytes(111)) != 0 or not handle.value:
            return [f"profiler v{version}: no handle for an event of type {kind}"]
        handles.append(handle.value)
    bad = [f"profiler v{version}: {handle:#x}" for handle in handles if record(handle, 9, None) != 0 or stop_event(handle) != 0]
    return bad


def main():
    bad = []
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", LIBRARY)):
        if not NEEDED.match(name) and "san" not in name:
            bad.append(f"needs {name}: a foreign image may not have it")
    table = run("objdump", "-T", LIBRARY)
    for version in set(re.findall(r"GLIBC_([0-9.]+)", table)):
        if tuple(int(part) for part in version.split(".")[:2]) > NEWEST:
            bad.append(f"uses a symbol of GLIBC_{version}: src/plugin/glibc.c gives such their old name")
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
    # a set of lanes begins at one NIC: NCCL must not merge several NICs into one, of which only the first would be used
    for version in range(9, 13):
        if ctypes.c_void_p.from_address(ctypes.addressof(ctypes.c_char.in_dll(library, f"ncclNetPlugin_v{version}")) + MAKE_MERGED).value:
            bad.append(f"v{version} offers merged NICs")
    for version in range(4, 7):
        bad += profiler(library, version)
    for text in bad:
        print(text)
    return 1 if bad else 0


sys.exit(main())
