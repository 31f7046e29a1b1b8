#!/usr/bin/env python3
"""`foliot selftest clock --nics`: the ends of a veth pair, in network namespaces of their own, try each other's stamps.
usage: test_selftest.py FOLIOT"""
import json
import os
import socket
import subprocess
import sys
import time
import unittest

FOLIOT = os.path.abspath(sys.argv.pop(1))
SECONDS = "3"
SO_TIMESTAMPING, RX_SOFTWARE, SOFTWARE = 37, 1 << 3, 1 << 4


class Selftest(unittest.TestCase):
    def stamps_begin(self):
        """Waits until the kernel stamps received packets. It begins some time after the first socket has asked for stamps, and
        goes on while one does."""
        asks = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(asks.close)
        asks.bind(("127.0.0.1", 0))
        asks.settimeout(60)
        asks.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, RX_SOFTWARE | SOFTWARE)
        for _ in range(30000):
            asks.sendto(b"x", asks.getsockname())
            if asks.recvmsg(1, 512)[1]:
                return
            time.sleep(0.002)
        self.fail("the kernel stamps nothing")

    def setUp(self):
        self.stamps_begin()
        # processes that hold two namespaces: they live until their input ends
        self.holders = [subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; read x"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
        for holder in self.holders:
            self.addCleanup(holder.communicate)
            holder.stdout.readline()
        for words in (["ip", "link", "add", "left", "type", "veth", "peer", "name", "right", "netns", str(self.holders[1].pid)],
                      ["ip", "address", "add", "10.9.9.1/30", "dev", "left"], ["ip", "link", "set", "left", "up"], ["ip", "link", "set", "lo", "up"],
                      ["ip", "link", "add", "bare", "type", "veth", "peer", "name", "beyond"]):
            self.inside(0, *words)
        for words in ["ip", "address", "add", "10.9.9.2/30", "dev", "right"], ["ip", "link", "set", "right", "up"]:
            self.inside(1, *words)

    def start(self, side, *words):
        return subprocess.Popen(["nsenter", "-t", str(self.holders[side].pid), "-n", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def inside(self, side, *words):
        process = self.start(side, *words)
        out, error = process.communicate()
        self.assertEqual(process.returncode, 0, (words, out, error))
        return out

    def test_two_hosts_try_each_other(self):
        # long enough that both run at one time, although one begins some seconds later
        other = self.start(1, FOLIOT, "selftest", "clock", "--nics", "right", "--peer", "10.9.9.1", "--seconds", "45", "--json")
        out = self.inside(0, FOLIOT, "selftest", "clock", "--nics", "left,lo", "--peer", "10.9.9.2", "--seconds", "15", "--json")
        theirs = json.loads(other.communicate()[0])["nics"][0]
        answer = json.loads(out)
        self.assertEqual((answer["kind"], answer["peer"]), ("selftest-nics", "10.9.9.2"))
        left = answer["nics"][0]
        self.assertEqual((left["name"], left["verdict"], left["promises_hardware"], left["clock_index"]), ("left", "software", False, -1))
        self.assertGreaterEqual(left["sent"]["packets"], 20)
        self.assertEqual(left["sent"]["stamped"], left["sent"]["packets"])
        self.assertGreater(left["sent"]["stamp_after_ns_p50"], 0)
        self.assertEqual((left["clock"]["reads"], left["clock"]["way"], left["clock"]["rate_ppm"]), (0, "", None))
        self.assertGreater(theirs["received"]["packets"], 10)
        self.assertEqual(theirs["received"]["stamped"], theirs["received"]["packets"])

    def test_a_table_for_people(self):
        table = self.inside(0, FOLIOT, "selftest", "clock", "--nics", "left", "--seconds", SECONDS)
        for word in "stamps", "software", "sent: stamped", "received: stamped", "clock: bracket", "--peer ADDRESS":
            self.assertIn(word, table)

    def test_nics_that_cannot_be_tried_are_told(self):
        process = self.start(0, FOLIOT, "selftest", "clock", "--nics", "bare", "--seconds", "1")
        out, _ = process.communicate()
        self.assertEqual(process.returncode, 1)
        self.assertIn("bare: not tested: expected an address of this NIC", out)
        for words in ["--nics", "none"], ["--nics", ""], ["--nics", "lo", "--seconds", "0"], ["--nics", "lo", "more"], ["--nics", "lo", "--lab", "x"]:
            process = self.start(0, FOLIOT, "selftest", "clock", *words)
            self.assertEqual(process.communicate()[0], "", words)
            self.assertEqual(process.returncode, 2, words)


if os.geteuid() != 0:
    print("needs root for network namespaces")
    sys.exit(77)
unittest.main()
