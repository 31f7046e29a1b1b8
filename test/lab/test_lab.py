#!/usr/bin/env python3
"""test_lab.py FOLIOT-LAB: the lab as its user sees it: it comes up, its faults work, and it leaves nothing behind. Needs root and
network namespaces. Without them it prints so and is skipped (exit 77)."""
import glob
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import ours
from ours import HERE, NAME, PROGRAM, events, folder, free_port, lab, spaces, until

PORTS = 48


class Echo:
    """A UDP echo on a host. Counts how many of PORTS source ports get an answer from it."""

    def __init__(self, host, address, name=NAME):
        self.name, self.address = name, address
        self.server = subprocess.Popen([PROGRAM, '--name', name, 'exec', host, '--', sys.executable,
                                        HERE + '/echo.py', 'serve', address])
        assert until(lambda: self.count('host5' if host == 'host0' else 'host0', 'any', 1, first=0.25) == 1)

    def count(self, host, source, ports=PORTS, first=60.0, more=60.0):
        out = lab('exec', host, '--', sys.executable, HERE + '/echo.py', 'ask', source, self.address,
                  str(ports), str(first), str(more), name=self.name).stdout
        return int(out)

    def none(self, host, source, ports):
        """True if no answer comes for half a second."""
        return self.count(host, source, ports, first=0.5) == 0

    def stop(self):
        self.server.kill()
        self.server.wait()


class WithoutALab(unittest.TestCase):
    def test_there_is_none(self):
        for command in (('status',), ('fault', 'list'), ('exec', 'list')):
            done = lab(*command, good=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn('no lab', done.stderr)
        self.assertIn('there was no lab', lab('down').stdout)

    def test_bad_words(self):
        self.assertEqual(lab('up', name='no/slash', good=False).returncode, 2)
        self.assertEqual(lab('fly', good=False).returncode, 2)
        with open('/tmp/%s.yaml' % NAME, 'w') as f:
            f.write('fabric:\n  hosts: 8\n  spoons: 4\n')
        done = lab('up', f.name, good=False)
        os.unlink(f.name)
        self.assertEqual(done.returncode, 1)
        self.assertIn(':3:', done.stderr)
        self.assertFalse(os.path.exists(folder()))

    def test_agents_that_cannot_start_leave_nothing(self):
        done = lab('up', '--agent', '/bin/false', good=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn('agent', done.stderr)
        self.assertEqual(spaces(), [])
        self.assertFalse(os.path.exists(folder()))

    def test_agents_that_end_soon_prove_nothing(self):
        with tempfile.TemporaryDirectory() as place:
            with open(place + '/agent', 'w') as f:
                f.write('#!/bin/sh\nsleep 1\n')
            os.chmod(place + '/agent', 0o755)
            with open(place + '/idle.yaml', 'w') as f:
                f.write('name: idle\nwhy: a fleet without agents\nworld: lab\nduration: 3s\nfabric: {hosts: 2, nics_per_host: 1, leaves: 1, spines: 1}\n'
                        'bounds:\n  - {what: false.any, equals: 0}\n')
            done = lab('run', '--agent', place + '/agent', place + '/idle.yaml', good=False)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("host1's agent never answered", done.stderr)


class ALab(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        lab('up', '--no-agents')
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cls.seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        cls.echo = Echo('host5', '10.5.1.2')

    @classmethod
    def tearDownClass(cls):
        cls.echo.stop()
        lab('down')
        assert spaces() == [] and not os.path.exists(folder())

    def tearDown(self):
        lab('fault', 'undo', 'all')

    def ask(self):
        return self.echo.count('host0', '10.0.1.2')

    def some_ask(self):
        """Counts answers while some paths are dead: after the first answer it doesn't wait long for the others."""
        return self.echo.count('host0', '10.0.1.2', more=0.5)

    def test_up(self):
        self.assertLess(self.seconds, 20)  # processor time, on any machine: a benchmark measures the speed
        self.assertEqual(len(spaces()), 14)
        self.assertIn('8 hosts x 2 NICs', lab('status').stdout)
        self.assertEqual(lab('up', good=False).returncode, 1)
        self.assertEqual(self.ask(), PORTS)

    def test_exec(self):
        out = lab('exec', 'host3', '--', 'sh', '-c', 'ls /sys/class/net; echo $FOLIOT_RUNTIME_DIR; '
                  'echo $FOLIOT_LAB_OSCILLATOR').stdout.split()
        self.assertEqual(out, ['lo', 'nic0', 'nic1', folder() + '/host3', folder() + '/oscillators:host3'])
        self.assertEqual(lab('exec', '3', '--', 'false', good=False).returncode, 1)
        self.assertEqual(lab('exec', 'host8', '--', 'true', good=False).returncode, 2)

    def test_paths(self):
        """A NIC's packets leave by that NIC and spread over all spines. The hops have the spines' names."""
        hops = json.loads(lab('exec', 'host0', '--', sys.executable, HERE + '/echo.py', 'hops', '10.0.1.2',
                              '10.5.1.2', '96').stdout)  # 32 miss a spine once in 2,500 times
        with open(folder() + '/routers') as f:
            names = dict(line.split() for line in f if not line.startswith('#'))
        seen = {tuple(names[a] for a in hop) for hop in hops}
        self.assertEqual(seen, {('leaf0', 'spine%d' % s, 'leaf1') for s in range(4)})

    def test_black_hole(self):
        lab('fault', 'blackhole', 'leaf0/spine2')
        self.assertTrue(0 < self.some_ask() < PORTS)
        lab('fault', 'undo', 'all')
        self.assertEqual(self.ask(), PORTS)
        lab('fault', 'blackhole', 'edge', '0.1>5.1')
        self.assertTrue(self.echo.none('host0', '10.0.1.2', 4))
        self.assertEqual(self.echo.count('host0', '10.0.0.2', 4), 4)
        lab('fault', 'undo', 'all')
        lab('fault', 'blackhole', 'edge', '0.1>5.1', '--for', '300ms')  # a packet of `ask` may be slower than that
        self.assertTrue(until(lambda: lab('fault', 'list').stdout == ''))
        self.assertEqual(self.ask(), PORTS)

    def test_loss(self):
        lab('fault', 'loss', 'host0/nic1', '--loss', '50%')
        self.assertTrue(0 < self.some_ask() < PORTS)

    def test_class_of_packets(self):
        """The lab's filters can't see a packet's class. So a fault of one class alone is refused, and isn't applied to all
        packets."""
        for words in (('blackhole', 'leaf0/spine2'), ('loss', 'host0/nic1', '--loss', '50%'), ('brownout', 'host0/nic1', '--rate_mbps', '20')):
            refused = lab('fault', *words, '--class', 'clock', good=False)
            self.assertEqual(refused.returncode, 1)
            self.assertIn('class', refused.stderr)
        self.assertEqual(lab('fault', 'list').stdout, '')
        self.assertEqual(self.ask(), PORTS)

    def test_trunk(self):
        lab('fault', 'trunk', 'leaf1/spine2', '--reroute', '1h')
        self.assertTrue(0 < self.some_ask() < PORTS)
        lab('fault', 'undo', 'all')
        self.assertEqual(self.ask(), PORTS)
        rerouted = lambda: sum(e['event'] == 'rerouted' for e in events())  # noqa: E731
        before = rerouted()  # events of earlier faults of this lab don't count
        lab('fault', 'trunk', 'leaf1/spine2', '--reroute', '1ms')
        self.assertTrue(until(lambda: rerouted() > before))
        self.assertEqual(self.ask(), PORTS)

    def test_all_spines_down_and_back(self):
        for s in range(4):
            lab('fault', 'spine', 'spine%d' % s, '--reroute', '0')
        self.assertTrue(self.echo.none('host0', '10.0.1.2', 4))
        lab('fault', 'undo', 'all')
        self.assertEqual(self.ask(), PORTS)

    def test_carrier_held_by_two(self):
        carrier = '/sys/class/net/nic1/carrier'
        lab('fault', 'carrier', 'host0/nic1', 'down')
        lab('fault', 'carrier', 'host0/nic1', 'down')
        first = lab('fault', 'list').stdout.split()[0]
        lab('fault', 'undo', first)
        self.assertEqual(lab('exec', 'host0', '--', 'cat', carrier).stdout.strip(), '0')
        lab('fault', 'undo', 'all')
        self.assertEqual(lab('exec', 'host0', '--', 'cat', carrier).stdout.strip(), '1')

    def test_flaps_are_all_there(self):
        count = '/sys/class/net/nic0/carrier_down_count'
        before = int(lab('exec', 'host1', '--', 'cat', count).stdout)
        lab('fault', 'flap', 'host1/nic0', '--down', '10ms', '--up', '10ms', '--count', '50')
        self.assertTrue(until(lambda: lab('fault', 'list').stdout == ''))
        self.assertEqual(int(lab('exec', 'host1', '--', 'cat', count).stdout), before + 50)

    def test_brownout(self):
        def rate():
            return subprocess.run(['tc', '-n', 'foliot-%s-leaf0' % NAME, 'class', 'show', 'dev', 'h2n0'],
                                  capture_output=True, text=True).stdout
        lab('fault', 'brownout', 'host2/nic0', '--rate_mbps', '20')
        self.assertIn('20Mbit', rate())
        lab('fault', 'undo', 'all')
        self.assertEqual(rate().count('ceil 200Mbit'), 3)
        lab('fault', 'brownout', 'host2/nic0', '--rate_mbps', '20', '--class', 'job')
        slow = [line.split()[2] for line in rate().splitlines() if 'ceil 20Mbit' in line]
        self.assertEqual((slow, rate().count('ceil 200Mbit')), (['1:20'], 2))
        lab('fault', 'undo', 'all')
        self.assertEqual(rate().count('ceil 200Mbit'), 3)

    def test_delay(self):
        lab('fault', 'delay', 'trunk 0-1', '--direction', 'up', '--delay', '0')
        self.assertEqual(self.ask(), PORTS)
        lab('fault', 'delay', 'trunk 0-1', '--direction', 'up', '--delay', '1ms')
        lab('fault', 'delay', 'trunk 0-1', '--direction', 'up', '--delay', '2s')
        slow = []

        def both():  # the echo may pause for longer than the delay
            slow[:] = json.loads(lab('exec', 'host0', '--', sys.executable, HERE + '/echo.py', 'times', '10.0.1.2',
                                     '10.5.1.2', str(PORTS)).stdout)
            return any(t > 2 for t in slow) and any(t < 2 for t in slow)
        self.assertTrue(until(both), slow)
        lab('fault', 'undo', 'all')
        self.assertEqual(self.ask(), PORTS)

    def test_delay_of_what_a_host_sends(self):
        """The delay is on the switch's side of the host's own link, towards the switch."""
        lab('fault', 'delay', 'host0/nic1', '--direction', 'up', '--delay', '10ms')
        times = json.loads(lab('exec', 'host0', '--', sys.executable, HERE + '/echo.py', 'times', '10.0.1.2',
                               '10.5.1.2', '8').stdout)
        self.assertEqual(len(times), 8, times)
        self.assertGreater(min(times), 0.01)

    def test_helper_killed(self):
        """The fault's own process is gone: undo uses the files on the disk."""
        lab('fault', 'blackhole', 'host0/nic1')
        leaf = os.stat('/run/netns/foliot-%s-leaf0' % NAME)
        for p in glob.glob('/proc/[0-9]*'):
            try:
                if os.stat(p + '/ns/net').st_ino == leaf.st_ino:
                    os.kill(int(p[6:]), signal.SIGKILL)
            except OSError:
                pass
        self.assertTrue(self.echo.none('host0', '10.0.1.2', 2))
        lab('fault', 'undo', 'all')
        self.assertEqual(self.ask(), PORTS)

    def test_faults_that_cannot_be(self):
        done = lab('fault', 'liar', 'host3', '--lie', 'random', '--size', '1ms', good=False)
        self.assertIn('simulator', done.stderr)
        self.assertEqual(lab('fault', 'trunk', 'trunk 0-9', good=False).returncode, 2)
        self.assertEqual(lab('fault', 'undo', '9999', good=False).returncode, 1)


class TwoLabs(unittest.TestCase):
    def test_side_by_side(self):
        other = NAME + '-b'
        try:
            lab('up', '--no-agents')
            with open('/tmp/%s.yaml' % NAME, 'w') as f:
                f.write('fabric: {hosts: 4, nics_per_host: 2, leaves: 2, spines: 2, wiring: rail, ip: both}\n')
            lab('up', f.name, '--no-agents', name=other)
            os.unlink(f.name)
            for address, source in (('10.1.1.2', '10.0.1.2'), ('fd00:1:1::2', 'fd00:0:1::2')):
                echo = Echo('host1', address, name=other)
                self.assertEqual(echo.count('host0', source), PORTS)
                # Rail 1 is on another leaf than rail 0, so these packets pass the spines.
                self.assertEqual(echo.count('host0', source.replace('.1.2', '.0.2').replace(':1::', '::')), PORTS)
                echo.stop()
            lab('down', name=other)
            self.assertEqual(spaces(other), [])
            self.assertEqual(len(spaces()), 14)
        finally:
            lab('down', name=other)
            lab('down')


class Killed(unittest.TestCase):
    def test_up_killed_halfway(self):
        """`down` restores the machine, at whatever moment `up` was killed."""
        for delay in (0.005, 0.02, 0.04):
            up = subprocess.Popen([PROGRAM, '--name', NAME, 'up', '--no-agents'], stderr=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, start_new_session=True)
            time.sleep(delay)
            os.killpg(up.pid, signal.SIGKILL)
            up.wait()
            lab('down')
            self.assertEqual(spaces(), [])
            self.assertFalse(os.path.exists(folder()))

    def test_down_ends_what_runs_there(self):
        lab('up', '--no-agents')
        sleep = subprocess.Popen([PROGRAM, '--name', NAME, 'exec', 'host0', '--', 'sleep', '6000'])
        lab('fault', 'flap', 'host0/nic0', '--down', '10ms', '--count', '1000')
        lab('fault', 'delay', 'host1/nic0', '--delay', '1ms')
        lab('down')
        self.assertEqual(sleep.wait(60), -signal.SIGKILL)
        self.assertEqual(spaces(), [])


class Fleet(unittest.TestCase):
    """With agents: one timeline, and a cut link is named. The agents find the oscillators through exec's environment."""

    def agent(self, host, request):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(60)
            s.connect('%s/%s/agent.sock' % (folder(), host))
            s.sendall((json.dumps(request) + '\n').encode())
            return json.loads(s.makefile().readline())

    def status(self, host='host0'):
        try:
            return self.agent(host, {'get': 'status', 'version': 1})
        except (OSError, ValueError):  # ValueError: the agent was killed before it answered
            return {'clock_status': 'ABSENT'}

    def judged(self):
        """The result of `eval` for a second in which it could judge. Hosts that pause are out of step for a moment."""
        found = json.loads(lab('eval', '--seconds', '1', '--json', good=False).stdout)
        return found['hard']['judged'] > 0 and found

    def test_fleet(self):
        with open('/tmp/%s.yaml' % NAME, 'w') as f:
            f.write('fabric: {hosts: 4, nics_per_host: 2, leaves: 2, spines: 2}\n')
        try:
            for wrong in ('host0/nic0', 'host0/nic0,host4/nic0', 'host0/nic0,host1/nic0,', 'host0/nic0;host1/nic0', ','.join(['host0/nic0'] * 9)):
                self.assertIn('--exchange', lab('up', f.name, '--exchange', wrong, good=False).stderr)
            lab('up', f.name, '--exchange', 'host0/nic0,host3/nic1,host1/nic0')
            with open(folder() + '/host2/agent.yaml') as config:
                leaves = dict(re.findall(r'host: (host\d, nic: nic\d), rail: \d, leaf: (leaf\d)', config.read()))
            self.assertEqual(leaves, {'host%d, nic: nic%d' % (h, n): 'leaf%d' % {(0, 0): 1, (3, 1): 0}.get((h, n), h // 2) for h in range(4) for n in range(2)})
            self.assertTrue(until(lambda: all(self.status('host%d' % h)['clock_status'] == 'SYNCED'
                                              for h in range(4)), 120), self.status())
            found = until(self.judged)
            self.assertTrue(found, 'nothing could be judged')
            self.assertEqual(found['hard']['broken'], 0, found['hard'])
            lab('fault', 'carrier', 'host1/nic1', 'down')
            self.assertTrue(until(lambda: any(x['finding'].startswith('link-')
                                              for x in self.status('host1').get('findings', []))))
            lab('fault', 'agent-kill', 'host2')
            self.assertTrue(until(lambda: self.status('host2')['clock_status'] == 'ABSENT'))
            self.assertIn('not running', lab('status').stdout)
            lab('fault', 'undo', 'all')
            self.assertTrue(until(lambda: self.status('host2')['clock_status'] != 'ABSENT'))
        finally:
            os.unlink(f.name)
            lab('down')
        self.assertEqual(spaces(), [])


class WithController(ours.Controlled):
    """A lab that brings a controller up."""

    def test_controller(self):
        with socket.socket() as taken:
            port = free_port()
            taken.bind(('127.0.0.1', int(port)))
            taken.listen()
            refused = lab('up', '--controller=' + port, good=False)
            self.assertEqual((refused.returncode, spaces()), (1, []))
            self.assertIn('expected port %s of 127.0.0.1 to be free' % port, refused.stderr)
        with open('/tmp/%s.yaml' % NAME, 'w') as f:
            f.write('fabric: {hosts: 4, nics_per_host: 2, leaves: 2, spines: 2, wiring: rail}\n')
        try:
            self.assertIn('127.0.0.1:' + port, lab('up', f.name, '--controller=' + port).stdout)
            self.assertTrue(until(lambda: self.healthy() == 4, 180), self.ask('api/v1/hosts'))
            nics = {(nic['host'], nic['name']): nic['leaf'] for nic in self.ask('api/v1/nics')['items']}
            self.assertEqual(nics, {('host%d' % h, 'nic%d' % n): 'leaf%d' % n for h in range(4) for n in range(2)})
            self.assertEqual(lab('status').returncode, 0)
        finally:
            os.unlink(f.name)
            lab('down')
        self.assertEqual(spaces(), [])

    def test_the_page_about_alerts(self):
        """The commands of docs/alerts.md bring an alert to a webhook, and touch no controller but the lab's."""
        with open(os.path.join(HERE, '..', '..', 'docs', 'alerts.md')) as page:
            recipe = page.read().split('```\n')[1]
        self.assertNotIn('/etc/', recipe)
        port = free_port()
        for text, ours in (('foliot lab ', 'foliot lab --name %s ' % NAME), ('foliot-lab-mgmt', 'foliot-%s-mgmt' % NAME),
                           ('/run/foliot-lab/lab/', folder() + '/'), ('--controller', '--controller=' + port), ('hook.py &', 'hook.py > told &'),
                           # a person waits for some seconds, a test for the event
                           ('sleep 10 ', "until foliot status --lab %s --host host3 --json | grep -q 'clock_status.*SYNCED'; do sleep 0.2; done " % NAME),
                           ('sleep 5; ', 'until grep "event.:.opened" told | grep -q "cause.:.host3/nic0"; do sleep 0.2; done; cat told; ')):
            self.assertIn(text, recipe)
            recipe = recipe.replace(text, ours)
        programs = os.path.join(os.path.dirname(os.path.dirname(PROGRAM)), 'src', 'app')
        with tempfile.TemporaryDirectory() as place:
            try:
                done = subprocess.run(['bash', '-e'], input=recipe, text=True, capture_output=True, timeout=900, cwd=place,
                                      env={**os.environ, 'PATH': programs + ':' + os.environ['PATH']})
            finally:
                lab('down')
        notices = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{')]
        self.assertIn(('opened', 'warning', 'host3/nic0'), [(n['event'], n['severity'], n['cause']) for n in notices],
                      done.stdout + done.stderr)


if __name__ == '__main__':
    ours.main()
