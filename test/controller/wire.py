"""wire.py: proto/foliot.proto written by hand, so that the tests don't trust the code that they test."""
import ctypes
import struct


def varint(value):
    out = b""
    while value > 0x7f:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value & (1 << 64) - 1)


def fixed64(field, value):
    return varint(field << 3 | 1) + struct.pack("<Q", value)


def data(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def packed(field, values, signed=False):
    return data(field, b"".join(varint((v << 1) ^ (v >> 63) if signed else v) for v in values))


def zstd(body):
    """A frame of one raw block."""
    assert 256 <= len(body) < 65536 + 256 or len(body) < 256
    head = bytes([0x20, len(body)]) if len(body) < 256 else bytes([0x60]) + struct.pack("<H", len(body) - 256)
    return b"\x28\xb5\x2f\xfd" + head + struct.pack("<I", len(body) << 3 | 1)[:3] + body


def squeeze(body):
    """zstd at its best."""
    lib = ctypes.CDLL("libzstd.so.1")
    lib.ZSTD_compress.restype = lib.ZSTD_compressBound.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(lib.ZSTD_compressBound(ctypes.c_size_t(len(body))))
    size = lib.ZSTD_compress(out, ctypes.c_size_t(len(out)), body, ctypes.c_size_t(len(body)), 3)
    return out.raw[:size]


def unsqueeze(body, most=1 << 20):
    out = ctypes.create_string_buffer(most)
    lib = ctypes.CDLL("libzstd.so.1")
    lib.ZSTD_decompress.restype = ctypes.c_size_t
    size = lib.ZSTD_decompress(out, ctypes.c_size_t(most), body, ctypes.c_size_t(len(body)))
    assert size <= most
    return out.raw[:size]


def bomb(size):
    """A frame that unpacks to `size` zeros, of runs of 128 KiB."""
    blocks, run = b"", 128 << 10
    for at in range(0, size, run):
        last = at + run >= size
        blocks += struct.pack("<I", run << 3 | 1 << 1 | last)[:3] + b"\0"
    return b"\x28\xb5\x2f\xfd" + bytes([0x80, 0x58]) + struct.pack("<I", size) + blocks


def link_event(nic, word, text, at=1000):
    return number(1, 2) + number(2, at << 1) + data(5, word) + number(6, nic) + data(7, text)


def job_flow(peer, lane, p50=0, sending=False, state="active", reason=""):
    return data(1, peer) + number(2, 9) + data(3, "nic0") + data(4, "nic1") + number(5, lane) + number(6, sending) + data(7, state) + \
        data(8, reason) + number(9, 10**9) + number(10, p50) + number(11, 2 * p50) + number(12, p50 // 2) + number(13, 700) + number(14, 800)


def job_process(job, rank, ranks, state=1, user=1000, rate=10**10, stalled=0, flows=(), pid=50, failovers=0, sent=10**12, age=0):
    return data(1, job) + number(2, rank + 1) + number(3, ranks) + number(4, pid + rank) + number(5, user) + number(6, state) + \
        number(7, 4) + number(8, 1) + number(9, 1) + number(10, 8) + number(11, 7) + number(12, sent) + number(14, rate) + \
        number(17, failovers) + number(20, stalled) + number(21, age) + number(22, 4000) + b"".join(data(23, f) for f in flows)


def job_event(word, job, rank, ranks, text, lane=None, reason="", user=1000, stalled=0, at=1000):
    body = data(1, job) + number(2, rank + 1) + number(3, ranks) + number(4, 50 + rank) + number(5, user) + number(12, 1) + number(13, stalled)
    if lane is not None:
        body += number(6, lane + 1) + data(7, reason) + data(8, "nic0") + data(9, "h1") + number(10, 9) + data(11, "nic1")
    return number(1, 5) + number(2, at << 1) + data(5, word) + data(7, text) + data(8, body)


def report(events=(), at=1000, covers=0, ports=(), extra=b""):
    body = fixed64(1, 1) + number(2, at)
    if covers:
        body += number(4, covers)
    return body + b"".join([data(6, port) for port in ports] + [data(9, event) for event in events]) + extra


def batch(reports=(), stream=77, oldest=1, protocol=1, now=2000, sealed=None):
    """reports: (number, report) pairs."""
    body = number(1, protocol) + fixed64(2, stream) + number(3, oldest) + fixed64(4, 1) + number(5, now) + data(10, "test")
    return body + b"".join(data(11, number(1, n) + data(2, (zstd if sealed is None else sealed)(content))) for n, content in reports)


def fields(body):
    """{field: [values]} of a message's top level."""
    out, at = {}, 0

    def read():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = body[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value
    while at < len(body):
        tag = read()
        if tag & 7 == 0:
            value = read()
        elif tag & 7 == 1:
            value, at = struct.unpack_from("<Q", body, at)[0], at + 8
        elif tag & 7 == 5:
            value, at = struct.unpack_from("<I", body, at)[0], at + 4
        else:
            size = read()
            value, at = body[at:at + size], at + size
        out.setdefault(tag >> 3, []).append(value)
    return out
