#!/usr/bin/env python3
"""A UDP echo for the lab's tests: serve ADDRESS | ask SOURCE ADDRESS PORTS [FIRST [MORE]] | times … | hops …
Each asks from PORTS source ports, all at once: every path gets some."""
import json
import select
import socket
import struct
import sys
import time

SO_TIMESTAMPNS = 35


def family(address):
    return socket.AF_INET6 if ':' in address else socket.AF_INET


def serve(address):
    s = socket.socket(family(address), socket.SOCK_DGRAM)
    s.bind((address, 9000))
    while True:
        data, peer = s.recvfrom(2000)
        s.sendto(data, peer)


def ask(source, address, ports, first_s=60.0, more_s=60.0):
    """Seconds until each answer came, by the kernel's stamp. Ends with the last answer. Gives up if none comes within first_s, or
    no further one within more_s. A slow answer isn't a lost one."""
    waiting, times = {}, []
    for i in range(ports):
        s = socket.socket(family(address), socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        if source != 'any':
            s.bind((source, 0))
        began = time.time_ns()
        try:
            s.sendto(b'x' * 100, (address, 9000))
        except OSError:
            continue
        waiting[s] = began
    wait_s = first_s
    while waiting:
        ready = select.select(list(waiting), [], [], wait_s)[0]
        if not ready:
            break
        for s in ready:
            began = waiting.pop(s)
            try:
                ancillary = s.recvmsg(2000, 64)[1]
                sec, nsec = struct.unpack('qq', ancillary[0][2])
                times.append((sec * 10**9 + nsec - began) / 1e9)
                wait_s = more_s
            except OSError:
                pass
    return times


def hops(source, address, ports):
    """The address with which each of the first three routers answers, for each source port."""
    found = []
    for _ in range(ports):
        path = []
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((source, 0))
        s.setsockopt(socket.IPPROTO_IP, 11, 1)  # IP_RECVERR
        for ttl in (1, 2, 3):
            s.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ttl)
            s.sendto(b'x', (address, 9001))
            select.select([s], [], [], 60)
            _, ancillary, _, _ = s.recvmsg(512, 512, socket.MSG_ERRQUEUE)
            path.append(socket.inet_ntoa(ancillary[0][2][20:24]))
        found.append(path)
    return found


if __name__ == '__main__':
    what, arguments = sys.argv[1], sys.argv[2:]
    if what == 'serve':
        serve(*arguments)
    arguments[2] = int(arguments[2])
    if what == 'ask':
        print(len(ask(*arguments[:3], *map(float, arguments[3:]))))
    elif what == 'times':
        print(json.dumps(ask(*arguments)))
    elif what == 'hops':
        print(json.dumps(hops(*arguments)))
