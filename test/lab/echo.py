#!/usr/bin/env python3
"""A UDP echo for the lab's tests: serve ADDRESS | ask SOURCE ADDRESS PORTS [WAIT] | times … | hops …
Each asks from PORTS source ports, all at once: every path gets some."""
import json
import select
import socket
import sys
import time


def family(address):
    return socket.AF_INET6 if ':' in address else socket.AF_INET


def serve(address):
    s = socket.socket(family(address), socket.SOCK_DGRAM)
    s.bind((address, 9000))
    while True:
        data, peer = s.recvfrom(2000)
        s.sendto(data, peer)


def ask(source, address, ports, wait_s=2.0):
    """Seconds until each answer that came within wait_s; ends with the last one. A slow answer isn't a lost one."""
    waiting, times = {}, []
    for i in range(ports):
        s = socket.socket(family(address), socket.SOCK_DGRAM)
        if source != 'any':
            s.bind((source, 0))
        began = time.monotonic()
        try:
            s.sendto(b'x' * 100, (address, 9000))
        except OSError:
            continue
        waiting[s] = began
    end = time.monotonic() + wait_s
    while waiting and time.monotonic() < end:
        for s in select.select(list(waiting), [], [], 0.02)[0]:
            began = waiting.pop(s)
            try:
                s.recv(2000)
                times.append(time.monotonic() - began)
            except OSError:
                pass
    return times


def hops(source, address, ports):
    """What each of the first three routers answers with, for each source port."""
    found = []
    for _ in range(ports):
        path = []
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((source, 0))
        s.setsockopt(socket.IPPROTO_IP, 11, 1)  # IP_RECVERR
        for ttl in (1, 2, 3):
            s.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ttl)
            s.sendto(b'x', (address, 9001))
            select.select([s], [], [], 0.5)
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
