"""ours.py: shared by the tests of the lab: a lab with a name of this process, and its controller.

PROGRAM is the first argument of the test that imports this. Each test has a lab of its own, so it disturbs no other."""
import glob
import json
import os
import random
import socket
import subprocess
import sys
import time
import unittest
import urllib.request

PROGRAM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else 'foliot-lab'
HERE = os.path.dirname(os.path.abspath(__file__))
NAME = 'test-%d' % os.getpid()


def lab(*arguments, name=NAME, good=True):
    done = subprocess.run([PROGRAM, '--name', name, *arguments], capture_output=True, text=True, timeout=180)
    if good and done.returncode != 0:
        raise AssertionError('%s: exit %d: %s' % (' '.join(arguments), done.returncode, done.stderr))
    return done


def spaces(name=NAME):
    return glob.glob('/run/netns/foliot-%s-*' % name)


def folder(name=NAME):
    return '/run/foliot-lab/' + name


def events(name=NAME):
    with open(folder(name) + '/events') as f:
        return [json.loads(line) for line in f]


def until(true, seconds=60.0):
    end = time.monotonic() + max(seconds, 60.0)
    # the result of true() is kept: a second call might miss a short event
    while not (found := true()) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def free_port():
    """A free port outside the range from which kernels choose: so no other connection takes it before the lab does."""
    for port in random.sample(range(20000, 32768), 100):
        with socket.socket() as free:
            try:
                free.bind(('127.0.0.1', port))
                return str(port)
            except OSError:
                pass
    raise AssertionError('no port is free')


class Controlled(unittest.TestCase):
    """A lab with a controller: all hosts are members, and the controller's address is on this machine."""

    def ask(self, path, body=None):
        with open(folder() + '/dashboard') as address, open(folder() + '/token') as token:
            request = urllib.request.Request(address.read() + path, headers={'Authorization': 'Bearer ' + token.read(), 'Content-Type': 'application/json'},
                                             data=None if body is None else json.dumps(body).encode())
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            return json.load(answer)

    def healthy(self):
        return sum(host['freshness'] == 'live' and host['clock'] is not None and host['clock']['status'] == 'SYNCED'
                   for host in self.ask('api/v1/hosts')['items'])


def main():
    if os.geteuid() != 0:
        print('skipped: a lab needs root')
        sys.exit(77)
    if subprocess.run(['unshare', '-n', 'true'], capture_output=True).returncode != 0:
        print('skipped: no network namespaces here')
        sys.exit(77)
    unittest.main()
