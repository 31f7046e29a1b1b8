#!/usr/bin/env python3
"""test_now.py FOLIOT-LAB NOW EXAMPLE: a program with libfoliot-clock runs on two hosts of a lab, and gets each host's fleet time.
The two agree within their bounds, although the hosts' clocks are hours and many ppm apart. Without agents the answer is that
there is no time. Needs root; skipped (exit 77) without."""
import bisect
import os
import subprocess
import sys
import time
import unittest

LAB, NOW, EXAMPLE = (os.path.abspath(path) for path in sys.argv[1:4])
NAME = 'now-%d' % os.getpid()
UNKNOWN, SYNCED = 0, 1
COUNT = 100
FILE = """fabric:
  hosts: 4
"""


def lab(*arguments):
    return subprocess.run([LAB, '--name', NAME, *arguments], capture_output=True, text=True, timeout=180, check=True)


def start(host, *command):
    return subprocess.Popen([LAB, '--name', NAME, 'exec', host, '--', *command], stdout=subprocess.PIPE, text=True)


def readings(process):
    return [[int(word) for word in line.split()] for line in process.communicate(timeout=180)[0].splitlines()]


def up(*options):
    path = '/tmp/%s.yaml' % NAME
    with open(path, 'w', encoding='utf-8') as file:
        file.write(FILE)
    try:
        lab('up', *options, path)
    finally:
        os.unlink(path)


class Now(unittest.TestCase):
    def tearDown(self):
        lab('down')

    def synced(self, host):
        until = time.monotonic() + 120
        while time.monotonic() < until:
            if readings(start(host, NOW, '1'))[0][0] == SYNCED:
                return
            time.sleep(0.2)
        self.fail('%s was not synchronised within 120 s' % host)

    def test_two_hosts_agree_within_their_bounds(self):
        up()
        for host in ('host0', 'host3'):
            self.synced(host)
        until = time.monotonic() + 300
        # the host may be out of step for a moment
        while 'synced' not in (said := start('host0', EXAMPLE).communicate(timeout=60)[0]):
            self.assertLess(time.monotonic(), until, said)
        until = time.monotonic() + 300
        while self.judged(*(start(host, NOW, str(COUNT)) for host in ('host0', 'host3'))) <= COUNT // 2:
            # On a slow machine one program may begin after the other one has ended, or a host is out of step for a moment.
            self.assertLess(time.monotonic(), until, 'never both at one time and in step')
        print('foliot_now() through the emulated oscillator: ' + start('host0', NOW, '0').communicate(timeout=60)[0])

    def judged(self, a, b):
        """Compares each answer of a with an answer that b got within a second of it: the bounds must agree. Returns how many were
        compared."""
        a, b = readings(a), readings(b)
        self.assertEqual((len(a), len(b)), (COUNT, COUNT))
        for one in (a, b):
            known = [reading for reading in one if reading[0] != UNKNOWN]  # an unknown reading has the estimate 0
            for last, this in zip(known, known[1:]):
                self.assertGreaterEqual(this[5], last[5], 'time went back')
        middles = [(before + after) // 2 for _, before, after, _, _, _ in b]
        judged = 0
        for status, before, after, earliest, latest, _ in a:
            i = bisect.bisect(middles, (before + after) // 2)
            i = min(max(i, 0), COUNT - 1)
            # Each answer was given at some moment between before and after. In the time between the two answers both clocks ran
            # at most 200 ppm apart from the machine's.
            apart = (b[i][1] + b[i][2] - before - after) // 2
            slack = (after - before + b[i][2] - b[i][1]) // 2 + abs(apart) // 5000 + 2
            if status != SYNCED or b[i][0] != SYNCED or abs(apart) >= 10**9:
                continue
            self.assertLessEqual(earliest + apart, b[i][4] + slack)
            self.assertGreaterEqual(latest + apart, b[i][3] - slack)
            judged += 1
        return judged

    def test_without_agents_there_is_no_time(self):
        up('--no-agents')
        self.assertEqual({reading[0] for reading in readings(start('host0', NOW, '3'))}, {UNKNOWN})
        self.assertIn('not synchronised', start('host1', EXAMPLE).communicate(timeout=60)[0])


if __name__ == '__main__':
    del sys.argv[1:]
    if os.geteuid() != 0 or subprocess.run(['unshare', '-n', 'true'], capture_output=True, check=False).returncode != 0:
        print('skipped: a lab needs root and network namespaces')
        sys.exit(77)
    unittest.main()
