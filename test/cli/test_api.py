#!/usr/bin/env python3
"""foliot and the controller's API: which server gets the token, exit statuses, names that match nothing. usage: test_api.py
FOLIOT"""
import http.server
import json
import os
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import unittest

FOLIOT = os.path.abspath(sys.argv.pop(1))
NOBODY = 65534
PAGES = {"/api/v1/hosts": [{"name": "h1"}, {"name": "h2"}], "/api/v1/nics": [{"host": "h1", "name": "ib0", "leaf": "leaf3"}],
         "/api/v1/alert-rules": [{"name": "link-down"}], "/api/v1/incidents": [{"cause": "trunk leaf3 - spine1"}]}


class Controller(http.server.BaseHTTPRequestHandler):
    status, seen, incidents = 200, [], []

    def respond(self):
        path = self.path.partition("?")[0]
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.seen.append((path, self.headers.get("Authorization")))
        status, answer = self.status, {"items": PAGES.get(path, []), "next": None}
        if path == "/api/v1/incidents" and "open=true" in self.path:
            answer["items"] = self.incidents
        if path == "/api/v1/silences":
            answer = {"id": 1, "until_utc_ns": 10**18}
        if path == "/api/v1/hosts/h9":
            status = 404
        if status != 200:
            answer = {"error": {"code": "x", "message": "refused"}}
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = respond

    def address_string(self):
        return "local"

    def log_message(self, *arguments):
        pass


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


# Another user's program in the controller's place: it keeps everything that it receives.
STRANGER = """
import socket, sys
kind, at, heard = sys.argv[1:]
server = socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET)
server.bind(at if kind == "unix" else ("127.0.0.1", 0))
server.listen()
print(server.getsockname()[1] if kind != "unix" else 0, flush=True)
while True:
    connection, _ = server.accept()
    connection.settimeout(60)
    try:
        words = connection.recv(4096)
    except OSError:
        words = b""
    with open(heard, "ab") as file:
        file.write(words)
    connection.close()
"""


class Api(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="foliot-api-")
        os.chmod(self.folder.name, 0o777)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Controller)
        self.server.daemon_threads = True
        self.serve(self.server)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        Controller.status, Controller.seen, Controller.incidents = 200, [], []

    def serve(self, server):
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def foliot(self, *words, status=0, api=None, token="fla_secret"):
        env = {k: v for k, v in os.environ.items() if not k.startswith("FOLIOT")}
        env |= {"FOLIOT_API": api or self.url} | ({"FOLIOT_TOKEN": token} if token else {})
        done = subprocess.run([FOLIOT, *words], capture_output=True, text=True, timeout=120, check=False, env=env)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    # ---- exit statuses ----

    def test_exit_status(self):
        self.foliot("alerts")
        Controller.incidents = [{"incident": 1, "severity": "page", "state": "open", "since_utc_ns": None, "alerts": 1, "acknowledged_by": None,
                                 "cause": "h1", "silenced": False, "text": "h1: gone"}]
        self.foliot("alerts", status=1)  # found
        self.foliot("alerts", "--json")
        for http_status, status in ((400, 2), (404, 2), (409, 1), (401, 3), (403, 3), (429, 3), (500, 3), (503, 3)):
            Controller.status = http_status
            for words in ("alerts",), ("changes",), ("host", "list"), ("config",), ("levels",), ("topology",), ("findings",), ("jobs",):
                with self.subTest(status=http_status, command=words[0]):
                    self.assertIn("refused", self.foliot(*words, status=status))
        self.server.shutdown()
        self.server.server_close()
        self.foliot("alerts", status=3)
        self.foliot("alerts", "--fly", status=2)

    # ---- which server gets the token ----

    def test_the_unix_socket(self):
        server = UnixServer(self.path("api.sock"), Controller)
        self.serve(server)
        api = "unix:" + self.path("api.sock")
        self.assertIn("h1", self.foliot("host", "list", api=api))
        self.assertEqual(set(Controller.seen), {("/api/v1/hosts", "Bearer fla_secret")})
        Controller.seen.clear()
        self.foliot("host", "list", "--token-file", self.path("none"), api=api, token=None)  # root needs none
        self.assertEqual(set(Controller.seen), {("/api/v1/hosts", None)})
        self.assertIn("Is the controller running?", self.foliot("host", "list", api="unix:" + self.path("nothing"), status=3))
        self.assertIn("expected https://HOST[:PORT] for another machine, unix:/PATH", self.foliot("host", "list", api="unix:", status=2))

    @unittest.skipIf(os.geteuid() != 0 or not shutil.which("setpriv"), "needs another user")
    def test_a_stranger_gets_no_token(self):
        for kind in "unix", "tcp":
            with self.subTest(kind=kind):
                heard = self.path(f"heard-{kind}")
                stranger = subprocess.Popen(["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", shutil.which("python3"),
                                             "-c", STRANGER, kind, self.path("s.sock"), heard], stdout=subprocess.PIPE, text=True)
                port = stranger.stdout.readline().strip()
                api = "unix:" + self.path("s.sock") if kind == "unix" else f"http://127.0.0.1:{port}"
                self.assertIn(f"found one of user {NOBODY}", self.foliot("alerts", api=api, status=3))
                self.assertIn(f"found one of user {NOBODY}", self.foliot("alerts", "--controller", api, status=3))
                # it listens, and would have kept the words
                with socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET) as probe:
                    probe.connect(self.path("s.sock") if kind == "unix" else ("127.0.0.1", int(port)))
                    probe.sendall(b"probe")
                    end = time.monotonic() + 120
                    while not (os.path.exists(heard) and os.path.getsize(heard) >= 5) and time.monotonic() < end:
                        time.sleep(0.02)
                with open(heard, "rb") as file:
                    self.assertEqual(file.read(), b"probe")
                stranger.kill()
                stranger.wait()
                stranger.stdout.close()

    def test_no_token_in_the_clear_to_another_machine(self):
        for api in ("http://controller.example:7639", "http://10.0.0.1", "http://127.0.0.1.example:80", "http://127.0.0.1@evil.example/",
                    "http://localhost.example", "ftp://127.0.0.1", "controller", "http://[::1].example:7639"):
            with self.subTest(api=api):
                self.assertIn("a token isn't sent there", self.foliot("alerts", api=api, status=2))
        self.foliot("alerts", api=self.url.replace("127.0.0.1", "localhost"))
        self.assertEqual(self.foliot("alerts", api=self.url + "/"), self.foliot("alerts"))

    # ---- names that match nothing ----

    def test_a_silence_that_matches_nothing_is_warned_about(self):
        for option, good, bad in (("--host", "h?", "x*"), ("--rule", "link-*", "link_down"), ("--element", "h1/ib0", "h1/ib7"),
                                  ("--element", "leaf3", "leaf4"), ("--element", "trunk*", "spine1")):
            with self.subTest(pattern=bad):
                self.assertNotIn("warning", self.foliot("alerts", "silence", option, good))
                self.assertIn(f"warning: no {option[2:]} fits '{bad}' now", self.foliot("alerts", "silence", option, bad))

    def test_a_host_that_is_not_there(self):
        self.foliot("changes", "--host", "h1")
        for name in "h9", "h1&kind=host", "":
            self.assertIn("expected a host of the fleet", self.foliot("changes", "--host", name, status=2))


if __name__ == "__main__":
    unittest.main(verbosity=2)
