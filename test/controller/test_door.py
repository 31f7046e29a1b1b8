#!/usr/bin/env python3
"""The API's door: its Unix socket and the users who may connect to it, ambiguous requests, and the headers of every answer.
usage: test_door.py CONTROLLER AGENT FOLIOT"""
import http.client
import json
import os
import re
import socket
import ssl
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
        """Status and body over the Unix socket, as that user."""
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
        last, *_, first = self.get("/api/v1/audit")["items"]
        self.assertEqual((last["who"], last["source"]), ("local root", "local"))
        self.assertEqual((first["who"], first["source"]), ("command line", "local"))
        self.request("POST", "/api/v1/tokens", {"name": "w", "role": "viewer"})
        self.assertEqual(self.get("/api/v1/audit")["items"][0]["source"], "127.0.0.1")
        self.assertEqual(self.curl("/api/v1/tokens", token=viewer)[0], 403)  # a client with a token has the token's role
        self.assertEqual(self.curl("/api/v1/status", token="fla_wrong")[0], 401)
        self.assertEqual(self.curl("/api/v1/status", user=65534)[0], 0)  # may not connect
        os.chmod(self.socket, 0o666)  # as if it were a member of its group
        self.assertEqual(self.curl("/api/v1/status", user=65534)[0], 401)
        self.assertEqual(self.curl("/api/v1/status", user=65534, token=viewer)[0], 200)
        # foliot finds it by FOLIOT_API, and root needs no token
        env = {k: v for k, v in os.environ.items() if not k.startswith("FOLIOT")} | {"FOLIOT_API": f"unix:{self.socket}"}
        done = subprocess.run([self.FOLIOT, "config", "--token-file", self.path("none")], capture_output=True, text=True, check=False, env=env)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        # a killed controller's socket is no obstacle; a controller that listens isn't disturbed
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

    def test_a_wrong_filter_is_refused(self):
        self.start()
        tried = 0
        for path, methods in self.spec.spec["paths"].items():
            for parameter in methods.get("get", {}).get("parameters", []):
                parameter = self.spec.resolve(parameter)
                schema = self.spec.resolve(parameter.get("schema", {}))
                values = schema.get("enum") or (["true", "false"] if schema.get("type") == "boolean" else None)
                if parameter.get("in") == "query" and values:
                    where = re.sub(r"\{[^}]*\}", "1", path)
                    for wrong in "", "nonsense", values[0] + "x", "|", values[0] + "|" + values[-1]:
                        status, _, body = self.request("GET", f"{where}?{parameter['name']}={wrong}")
                        self.assertEqual(status, 400, f"{path}?{parameter['name']}={wrong}: {body}")
                    tried += 1
        self.assertGreaterEqual(tried, 21)
        self.join(0, leaf="l1")
        for path, status in (("nics?leaf=l1", 200), ("links?leaf=", 200), ("links?leaf=l2", 404), ("audit/runs/1/results?check=nothing", 404)):
            self.assertEqual(self.request("GET", f"/api/v1/{path}")[0], status, path)
        for path, name, values in (("hosts", "health", ("ok", "bad")), ("events", "kind", ("job", "controller")), ("incidents", "open", ("true", "false"))):
            for value in values:
                self.assertEqual(self.request("GET", f"/api/v1/{path}?{name}={value}")[0], 200)
        self.assertIn("health: expected one of unknown|ok|warn|bad", self.request("GET", "/api/v1/hosts?health=good")[2]["error"]["message"])

    def test_a_misspelled_parameter_is_refused(self):
        """It would have no effect as a filter: all hosts would seem stale."""
        self.start()
        tried = 0
        for path, methods in self.spec.spec["paths"].items():
            operation, where = methods.get("get", {}), re.sub(r"\{[^}]*\}", "1", path)
            if operation.get("security") == [] or not operation or path == "/metrics":  # a monitoring system may add its own
                continue
            names = [p["name"] for p in map(self.spec.resolve, operation.get("parameters", [])) if p["in"] == "query"]
            for query in "nonsense=1", "x", "|=1", "%ff%0a=1", *(f"{name}x=1" for name in names), *(f"{name}=1&{name}=1" for name in names), *names:
                status, _, body = self.request("GET", f"{where}?{query}")
                self.assertEqual((status, body["error"]["code"]), (400, "bad-argument"), f"{where}?{query}: {body}")
                tried += 1
            for name in names if not path.endswith("/stream") else []:  # a stream has no end
                self.assertNotIn("each once", str(self.request("GET", f"{where}?{name}=1")[2]))
            if names:
                self.assertRegex(body["error"]["message"], rf"expected one of ([a-z_]+\|)*{names[0]}\b")
        self.assertGreater(tried, 150)
        self.assertEqual(self.request("GET", "/healthz?x=1", token=None)[0], 200)
        self.assertEqual(self.request("DELETE", "/api/v1/silences/1?x=1")[0], 400)

    def test_a_misspelled_field_is_refused(self):
        """A token with a misspelled scope would see the whole fleet. A misspelled dry run would be a real one."""
        self.start()
        tried, tokens = 0, self.get("/api/v1/tokens")["items"]
        for path, methods in self.spec.spec["paths"].items():
            if "post" not in methods:
                continue
            where = re.sub(r"\{[^}]*\}", "1", path)
            schema = self.spec.resolve(methods["post"].get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {}))
            fields = {name: self.spec.resolve(kind) for name, kind in schema.get("properties", {}).items()}
            flags = [name for name, kind in fields.items() if kind.get("type") == "boolean" or kind.get("const") is True]
            for body in {"nonsense": 1}, {"": 1}, {"|": 1}, *({f"{name}s": 1} for name in fields), \
                    {**{name: True if name in flags else 1 for name in fields}, "last": 1}:
                status, _, answer = self.request("POST", where, body)
                self.assertEqual((status, answer["error"]["code"]), (400, "bad-body"), f"{path} {body}: {answer}")
                self.assertTrue(answer["error"]["message"].startswith(f"{list(body)[-1]}: expected "), f"{path} {body}: {answer}")
                tried += 1
            for name in flags:
                self.assertEqual(self.request("POST", where, {name: "true"})[2]["error"]["message"], f"{name}: expected true or false")
                tried += 1
        self.assertGreater(tried, 70)
        self.assertEqual([t["name"] for t in self.get("/api/v1/tokens")["items"]], [t["name"] for t in tokens])
        self.assertEqual(self.get("/api/v1/silences")["items"], [])

    def test_its_place_beside_the_store(self):
        self.start()
        self.socket = self.path("data", "api.sock")
        self.assertEqual(self.curl("/api/v1/status")[0], 200)

    # ---- requests ----

    def say(self, text, port=7639, wrap=None):
        """Sends these bytes. Returns everything that comes back until the connection ends or is quiet."""
        sock = fleet.connect(self.space("c"), "127.0.0.1", port)
        sock = wrap(sock) if wrap else sock
        sock.settimeout(fleet.IO_S)
        sock.sendall(text)
        answer = b""
        while True:
            part = sock.recv(65536)
            answer += part
            if not part:
                sock.close()
                return answer.decode()

    def test_what_could_be_read_in_two_ways_is_refused(self):
        """Each is followed by another request: that must not be answered, neither as a second request nor as a body."""
        self.start()
        good = f"Host: x\r\nAuthorization: Bearer {self.admin}\r\n"
        second = f"GET /api/v1/tokens HTTP/1.1\r\n{good}Connection: close\r\n\r\n"
        get, post = "GET /api/v1/status HTTP/1.1\r\n", "POST /api/v1/silences HTTP/1.1\r\n"
        for what, text, status in (
                ("two lengths", f"{post}{good}Content-Length: 0\r\nContent-Length: {len(second)}\r\n\r\n", 400),
                ("two equal lengths", f"{get}{good}Content-Length: 0\r\nContent-Length: 0\r\n\r\n", 400),
                ("a list of lengths", f"{post}{good}Content-Length: 0, 0\r\n\r\n", 400),
                ("a signed length", f"{post}{good}Content-Length: +0\r\n\r\n", 400),
                ("a space before the colon", f"{post}{good}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),
                ("chunks", f"{post}{good}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
                ("a length and chunks", f"{post}{good}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
                ("no Host", f"{get}Authorization: Bearer {self.admin}\r\n\r\n", 400),
                ("two Hosts", f"{get}{good}Host: y\r\n\r\n", 400),
                ("a bare LF after the request line", f"GET /api/v1/status HTTP/1.1\n{good}\r\n", 400),
                ("a bare LF between headers", f"{get}X: y\n{good}\r\n", 400),
                ("a bare LF after the last header", f"{get}{good}X: y\n\r\n", 400),
                ("a bare LF as the last line", f"{get}{good}\n", 400),
                ("bare LFs throughout", f"{get}{good}\r\n".replace("\r\n", "\n"), 400),
                ("a bare CR in a value", f"{get}{good}X: y\rz\r\n\r\n", 400),
                ("a folded header", f"{get}{good}X: y\r\n z\r\n\r\n", 400),
                ("a header without a name", f"{get}{good}: y\r\n\r\n", 400),
                ("a name with a bracket", f"{get}{good}X(y): z\r\n\r\n", 400)):
            with self.subTest(what):
                answer = self.say((text + second).encode())
                self.assertEqual(set(re.findall(r"HTTP/1\.1 (\d+) ", answer)), {str(status)}, answer)
        for text in (f"{get}{good}", f"{get}{good}X:\r\nY:  a b\r\n", f"GET /api/v1/hosts?limit=1&q=%20a HTTP/1.1\r\n{good}",
                     f"GET /api/v1/status HTTP/1.0\r\nAuthorization: Bearer {self.admin}\r\n"):
            answer = self.say((text + "Connection: close\r\n\r\n").encode())
            self.assertRegex(answer, r"^HTTP/1\.[01] 200 ", text)

    # ---- answers ----

    def test_what_every_answer_carries(self):
        self.start()
        status, headers, _ = self.request("PUT", "/api/v1/silences")
        self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD, POST"))
        status, headers, _ = self.request("POST", "/", {})
        self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"))
        status, headers, _ = self.request("DELETE", "/api/v1/openapi.yaml")
        self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"))
        status, headers, body = self.request("HEAD", "/api/v1/status")
        self.assertEqual((status, headers["Content-Type"], body), (200, "application/json", b""))
        status, headers, body = self.request("GET", "/healthz", token=None)
        self.assertEqual((status, body), (200, {"status": "ok"}))
        self.assertNotIn("Strict-Transport-Security", headers)  # plain
        status, headers, body = self.request("GET", "/api/v1/openapi.yaml", token=None)
        with open(fleet.openapi.FILE, "rb") as file:
            self.assertEqual((status, headers["Content-Type"], body), (200, "application/yaml", file.read()))
        codes = self.at_once(f"GET /api/v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer fla_{'x' * 43}\r\n\r\n", 300)
        self.assertEqual({status for status, _ in codes}, {401, 429})
        for status, head in codes:
            self.assertEqual("\r\nRetry-After: " in head, status == 429)

    def test_compression(self):
        self.start()
        path = "/api/v1/alert-rules"
        plain = json.dumps(self.get(path))
        for accept, encoding in (("gzip", "gzip"), ("gzip, zstd", "zstd"), ("zstd;q=0, gzip", "gzip"), ("gzip;q=0", None),
                                 ("br", None), ("*", None)):
            status, headers, body = self.request("GET", path, headers={"Accept-Encoding": accept})
            self.assertEqual((status, headers.get("Content-Encoding"), headers["Vary"]), (200, encoding, "Accept-Encoding"), accept)
            self.assertEqual(json.dumps(body), plain)
            if encoding is not None:
                self.assertLess(int(headers["Content-Length"]), len(plain) / 3)
            # unchanged, in any encoding
            again = self.request("GET", path, headers={"If-None-Match": headers["ETag"], "Accept-Encoding": accept})
            self.assertEqual(again[0], 304)
        status, headers, _ = self.request("GET", "/healthz", headers={"Accept-Encoding": "gzip"})
        self.assertNotIn("Content-Encoding", headers)  # not worth it

    def test_over_tls(self):
        self.init()
        self.write("controller.yaml", self.read(self.path("controller.yaml")).replace("127.0.0.1:7639", "0.0.0.0:7639"))
        self.controller()
        context = ssl.create_default_context(cafile=self.path("data", "api-authority.pem"))
        sock = context.wrap_socket(fleet.connect(self.space("c"), "127.0.0.1", 7639), server_hostname="localhost")
        connection = http.client.HTTPSConnection("localhost", 7639)
        connection.sock = sock
        connection.request("GET", "/healthz", headers={"Host": "controller.example"})
        answer = connection.getresponse()
        self.assertEqual((answer.status, json.loads(answer.read())), (200, {"status": "ok"}))
        self.assertRegex(answer.getheader("Strict-Transport-Security"), r"^max-age=\d{6,}$")
        connection.close()


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    unittest.main(verbosity=2)
