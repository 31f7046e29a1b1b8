"""machine.py: builds the tree of a machine of test/audit/machines, so that programs can read it in place of /."""
import contextlib
import ctypes
import os
import re
import shutil
import struct

MACHINES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "machines")
OPENSM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "opensm")


def pci_config(text):
    """4,096 bytes with a PCI Express capability, and ACS if it is set: PCI Express Base Specification, 7.5.3 and 7.7.7."""
    vendor, device = (int(word, 16) for word in re.match(r"pci:(\w+):(\w+)", text).groups())
    values = dict(re.findall(r"(\w+)=(\w+)", text))
    size = {128 << i: i for i in range(6)}
    control = size[int(values["mps"])] << 5 | size[int(values["mrrs"])] << 12 | int(values["relaxed"]) << 4
    config = bytearray(4096)
    struct.pack_into("<HH", config, 0, vendor, device)
    config[0x34] = 0x60
    struct.pack_into("<BBHIH", config, 0x60, 0x10, 0, 2, 0, control)
    struct.pack_into("<HHHH", config, 0x100, 0x000D, 1, 0x1F, int(values["acs"], 16))
    return bytes(config)


def attribute(kind, payload):
    """struct nlattr, its payload, and padding to four bytes: include/uapi/linux/netlink.h."""
    return struct.pack("<HH", 4 + len(payload), kind) + payload + bytes(-len(payload) % 4)


def netlink_attributes(text):
    """"nl:4=u32:50 5={2=u64:100} 7=hex:00ff": attributes by number; a nest has braces."""
    form = {"u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q"}
    out, at = b"", 0
    while at < len(text):
        if text[at] == " ":
            at += 1
            continue
        number, _, rest = text[at:].partition("=")
        at += len(number) + 1
        if rest[0] == "{":
            depth, end = 1, 1
            while depth:
                depth += (rest[end] == "{") - (rest[end] == "}")
                end += 1
            payload = netlink_attributes(rest[1:end - 1])
            at += end
        else:
            word = rest.split(" ", 1)[0]
            kind, value = word.split(":", 1)
            payload = bytes.fromhex(value) if kind == "hex" else struct.pack(form[kind], int(value))
            at += len(word)
        out += attribute(int(number), payload)
    return out


def module_page(text):
    """128 bytes of a module's memory, in ETHTOOL_A_MODULE_EEPROM_DATA: "module:PLACE=TEXT;PLACE=xHEX", places from the page's beginning."""
    page = bytearray(128)
    for part in text.split(";"):
        place, value = part.split("=", 1)
        data = bytes.fromhex(value[1:]) if value.startswith("x") else value.encode()
        page[int(place):int(place) + len(data)] = data
    return attribute(7, bytes(page))


def dcb(text):
    """"dcb:pfc=3 classes=0,1,2,3,4,5,6,7 shares=…": DCB_ATTR_IEEE as mlx5's dcbnl answers, with DSCP 24 to 31 as priority 3."""
    words = dict(word.split("=", 1) for word in text.split())
    listed = {key: bytes(int(n) for n in words[key].split(",")) for key in ("classes", "shares")}
    pfc = struct.pack("<BBBxHxx", 8, sum(1 << int(p) for p in words["pfc"].split(",") if p), 0, 0) + bytes(128)
    ets = bytes([0, 8, 0]) + listed["shares"] + bytes(8) + bytes([2] * 8) + listed["classes"] + bytes(24)
    low, high = (int(n) for n in words.get("dscp", "24-31").split("-"))
    apps = b"".join(attribute(1, struct.pack("<BBH", 5, int(words.get("priority", "3")), code)) for code in range(low, high + 1))
    return attribute(1, b"eth0\0") + attribute(13, attribute(1, ets) + attribute(2, pfc) + attribute(3, apps))


def ipmi(text):
    """"ipmi:chassis=00/00 log=00 PSU1=08/6f/01": replies of a BMC (IPMI 2.0: 28.2, 31.2, 35.14, 43.1). A sensor is its type, what its states mean
    (table 42-2), and the states that are set."""
    words = dict(word.split("=", 1) for word in text.split())
    power, misc = words.pop("chassis").split("/")
    lines = [f"000001 - = 00{int(power, 16) | 1:02x}00{misc}", f"0a0040 - = 0051{'0c00':s}f00f{'00' * 8}{words.pop('log')}"]
    for number, (name, sensor) in enumerate(words.items()):
        kind, reading, states = sensor.split("/")
        body = bytes([0x20, 0, 0x30 + number, 0x0A, number + 1, 0x7F, 0x68, int(kind, 16), int(reading, 16)]) + bytes(33) + bytes([0xC0 | len(name)]) + name.encode()
        record = struct.pack("<HBBB", number, 0x51, 1, len(body)) + body
        following = number + 1 if number + 1 < len(words) else 0xFFFF
        lines += [f"0a0023 0000{struct.pack('<H', number).hex()}00ff = 00{struct.pack('<H', following).hex()}{record.hex()}",
                  f"04002d {0x30 + number:02x} = 0000c0{states}00"]
    return ("\n".join(lines) + "\n").encode()


def expand(lines, names):
    """Expands @each blocks, which may be nested; then $names, the longest first."""
    out, i = [], 0
    while i < len(lines):
        line = lines[i]
        if line.startswith("@each"):
            depth, end = 1, i + 1
            while depth:
                depth += (lines[end].startswith("@each")) - (lines[end] == "@end")
                end += 1
            columns = {word.split(":", 1)[0]: word.split(":", 1)[1].split(",") for word in line.split()[1:]}
            for k in range(len(next(iter(columns.values())))):
                out += expand(lines[i + 1:end - 1], {**names, **{name: values[k] for name, values in columns.items()}})
            i = end
            continue
        for name in sorted(names, key=len, reverse=True):
            line = line.replace("$" + name, names[name])
        out.append(line)
        i += 1
    return out


FOUR = "@each n:0,1,2,3 root:17,39,97,b7 nic:19,3b,99,b9 gpu:1b,3d,9b,bb node:0,0,1,1 cpu:0,1,2,3"
SIXTEEN = "@each " + " ".join(f"{name}:" + ",".join(value(n) for n in range(16)) for name, value in (
    ("n", str), ("root", lambda n: f"{n + 1:x}0"), ("nic", lambda n: f"{n + 1:x}2"), ("gpu", lambda n: f"{n + 1:x}4"), ("node", lambda n: str(n // 8)),
    ("cpu", lambda n: str(n // 4)))).replace("100", "f8").replace("102", "fa").replace("104", "fc")


def files(kind, number, large=False):
    """{path: bytes, or the target of a link as text} of the machine with this number. large: with 16 NICs and 16 GPUs, not 4."""
    with open(os.path.join(MACHINES, kind + ".txt"), encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]
    lines = [SIXTEEN if large and line == FOUR else line for line in lines]
    tree = {}
    for line in expand(lines, {"host": f"{kind}{number}", "hh": f"{number:02x}", "h": str(number)}):
        word, _, rest = line.partition(" ")
        if word == "@like":
            tree = files(rest, number)
            continue
        if word == "@without":
            tree = {path: value for path, value in tree.items() if not re.match(rest, path)}
            continue
        if " -> " in line and "\t" not in line:
            path, target = line.split(" -> ")
            tree[path] = target
            continue
        path, text = line.split("\t", 1)
        tree[path] = content(text)
    return tree


def content(text):
    if text.startswith("pci:"):
        return pci_config(text)
    if text.startswith("opensm:"):
        with open(os.path.join(OPENSM, text[7:]), "rb") as file:
            return file.read()
    if text.startswith("ipmi:"):
        return ipmi(text[5:])
    for word, make in (("nl:", netlink_attributes), ("module:", module_page), ("dcb:", dcb)):
        if text.startswith(word):
            return make(text[len(word):]).hex().encode() + b"\n"
    text = text.replace("\\n", "\n").replace("\\0", "\0").replace("RoCE_v", "RoCE v")
    return (text if text.endswith(("\n", "\0")) else text + "\n").encode()


def put(root, path, value):
    whole = root + path
    os.makedirs(os.path.dirname(whole), exist_ok=True)
    if isinstance(value, str):
        os.symlink(value, whole)
    else:
        with open(whole, "wb") as file:
            file.write(value)


def remove(root, path):
    whole = root + path
    if os.path.islink(whole) or os.path.isfile(whole):
        os.unlink(whole)
    elif os.path.isdir(whole):
        shutil.rmtree(whole)


def build(root, tree):
    shutil.rmtree(root, ignore_errors=True)
    for path, value in tree.items():
        put(root, path, value)


@contextlib.contextmanager
def dead_mount(place):
    """A FUSE file system without a server: a program that reads it hangs. Needs root and /dev/fuse."""
    libc = ctypes.CDLL(None, use_errno=True)
    os.makedirs(place)
    fd = os.open("/dev/fuse", os.O_RDWR)
    if libc.mount(b"dead", place.encode(), b"fuse", 0, f"fd={fd},rootmode=40000,user_id=0,group_id=0".encode()) != 0:
        os.close(fd)
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    try:
        yield
    finally:
        os.close(fd)
        libc.umount2(place.encode(), 2)
