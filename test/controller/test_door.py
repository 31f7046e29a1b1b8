#!/usr/bin/env python3
"""The API's door: its Unix socket and who may come in by it. usage: test_door.py CONTROLLER AGENT FOLIOT"""
import json
import os
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleet  # noqa: E402

fleet.Fleet.FOLIOT = os.path.abspath(sys.argv.pop(3))
fleet.Fleet.AGENT = os.path.abspath(sys.argv.pop(2))
fleet.Fleet.CONTROLLER = os.path.abspath(sys.argv.pop(1))


class TestDoor(fleet.Fleet):
    HOSTS = 1

    # ---- the Unix socket ----

    def curl(self, path, *more, token=None, user=0):
        """Status and body by the Unix socket, as that user."""
        headers = ["-H", f"Authorization: Bearer {token}"] if token else []
        done = subprocess.run(["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", "curl", "-s", "-m", str(fleet.IO_S),
                               "--unix-socket", self.socket, "-w", "\n%{http_code}", *headers, *more, f"http://localhost{path}"],
                              capture_output=True, text=True, check=False)
        body, _, status = done.stdout.rpartition("\n")
        return int(status), body

    def test_the_unix_socket(self):
        os.chmod(self.folder, 0o755)
        self.socket = self.path("api.sock")
        c = self.start(extra=f"api_socket: {self.socket}\n")
        self.assertEqual(os.stat(self.socket).st_mode & 0o777, 0o660)
        status, body = self.curl("/api/v1/status")  # root needs no token
        self.assertEqual((status, json.loads(body)["hosts"]), (200, 0))
        status, body = self.curl("/api/v1/tokens", "-d", '{"name": "v", "role": "viewer"}')
        self.assertEqual(status, 200)
        viewer = json.loads(body)["token"]
        self.assertEqual(self.get("/api/v1/audit")["items"][0]["who"], "local root")
        self.assertEqual(self.curl("/api/v1/tokens", token=viewer)[0], 403)  # who shows a token has its role
        self.assertEqual(self.curl("/api/v1/status", token="fla_wrong")[0], 401)
        self.assertEqual(self.curl("/api/v1/status", user=65534)[0], 0)  # may not connect
        os.chmod(self.socket, 0o666)  # as for a member of its group
        self.assertEqual(self.curl("/api/v1/status", user=65534)[0], 401)
        self.assertEqual(self.curl("/api/v1/status", user=65534, token=viewer)[0], 200)
        # what a killed one left is no hindrance; one that listens is left alone
        c.stop(9)
        self.assertTrue(os.path.exists(self.socket))
        again = self.controller()
        self.assertEqual(self.curl("/api/v1/status")[0], 200)
        self.assertEqual(again.stop(), 0)
        self.assertFalse(os.path.exists(self.socket))
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(self.socket)
            other.listen()
            last = self.controller()
            last.wait_log("api_socket .*: Address already in use: the API is at api_listen alone")
            self.assertEqual(self.get("/api/v1/status")["hosts"], 0)

    def test_its_place_beside_the_store(self):
        self.start()
        self.socket = self.path("data", "api.sock")
        self.assertEqual(self.curl("/api/v1/status")[0], 200)


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)
