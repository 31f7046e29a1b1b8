#!/usr/bin/env python3
"""Runs every command of foliot with an agent and a controller whose strings all contain escape sequences, newlines, C1 codes
and bidi marks. None of it reaches the terminal. And no command asks for something that the API lacks. usage: test_foreign.py
FOLIOT"""
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unicodedata
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(TOP, "test", "controller")]
import openapi  # noqa: E402
from fake_agent import NOW_FLEET, FakeAgent  # noqa: E402

FOLIOT = os.path.abspath(sys.argv.pop(1))
POISON = "\x1b[2J\x1b]0;x\x07\r\nFORGED\tz\x7f\x85\x9b31m\u202eabc\u2066\u2028\u200b\ufeff\U000e0041é→"
# Words that renderers branch by. One of two rounds keeps them, so that every branch is reached.
WORDS = {"kind", "state", "status", "result", "role", "direction", "event", "verdict", "phase", "severity", "freshness", "health", "answer",
         "clock_status", "guard", "word", "mode", "unit", "measure", "difference", "what"}


def spoil(tree, keep, key=None):
    if isinstance(tree, dict):
        return {k: spoil(v, keep, k) for k, v in tree.items()} | ({} if "kind" in tree else {"x" + POISON: POISON})
    if isinstance(tree, list):
        return [spoil(v, keep, key) for v in tree]
    if isinstance(tree, str) and not (key == "kind" or (keep and key in WORDS)):
        return tree + POISON
    return tree


class Spec(openapi.Validator):
    """Values that the specification of the API allows."""

    def value(self, schema, turn, key=""):
        schema = self.resolve(schema)
        if "allOf" in schema:
            return {k: v for part in schema["allOf"] for k, v in self.value(part, turn, key).items()}
        for word in ("oneOf", "anyOf"):
            if word in schema:
                return self.value(schema[word][turn % len(schema[word])], turn, key)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            some = [x for x in schema["enum"] if x not in (None, "running")]
            return some[turn % len(some)]
        kinds = schema.get("type", "object")
        kind = kinds if isinstance(kinds, str) else next(k for k in kinds if k != "null")
        if kind == "object":
            return {k: self.value(v, turn, k) for k, v in schema.get("properties", {}).items()} | (
                {} if not isinstance(schema.get("additionalProperties"), dict) else {"some": self.value(schema["additionalProperties"], turn)})
        if kind == "array":
            return [self.value(schema.get("items", {"type": "string"}), turn + i, key) for i in range(2)]
        return {"string": f"{key}{turn}", "boolean": turn % 2 == 0, "number": 1.5, "null": None,
                "integer": NOW_FLEET if key.endswith("_ns") else turn + 1}[kind]

    def operation(self, method, path):
        for pattern, methods in self.spec["paths"].items():
            if re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", pattern), path) and method.lower() in methods:
                return methods[method.lower()]
        return None

    def unknown_names(self, method, path, query, body):
        """Parameters and fields that the controller would refuse."""
        operation = self.operation(method, path) or {}
        schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        known = {p["name"] for p in map(self.resolve, operation.get("parameters", []))} | set(self.resolve(schema).get("properties", {}))
        return (set(re.findall(r"([^&=]+)=", query)) | set(json.loads(body or "{}"))) - known

    def answer_to(self, method, path, turn):
        operation = self.operation(method, path)
        if operation is None:
            return None
        content = operation["responses"]["200"].get("content", {})
        if "application/json" not in content:
            return {}
        answer = self.value(content["application/json"]["schema"], turn)
        if "next" in answer:
            answer["next"] = None
        return answer


class Controller(http.server.BaseHTTPRequestHandler):
    spec, turn, keep, refuse, seen, strange = Spec(), 0, True, None, set(), set()

    def respond(self):
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.strange.update((self.command, path, name) for name in self.spec.unknown_names(self.command, path, query, body))
        answer = self.spec.answer_to(self.command, path, self.turn)
        self.seen.add((self.command, path))
        status = 200 if self.refuse is None and answer is not None else self.refuse or 404
        if status != 200:
            answer = {"error": {"code": "no" + POISON, "message": "refused" + POISON}}
        body = json.dumps(spoil(answer, self.keep)).encode()
        if self.refuse == 299:
            body = ("no JSON " + POISON).encode() + b"\x9b31m"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = do_PUT = respond

    def log_message(self, *arguments):
        pass


AGENT_COMMANDS = [["status"], ["clock"], ["mesh"], ["mesh", "--paths"], ["links"], ["findings"], ["findings", "--watch"], ["links", "--watch"],
                  ["jobs"], ["jobs", "4711"], ["doctor"], ["selftest", "clock"], ["record", "-o", "r"], ["jobs", "4711", "--save", "saved"],
                  ["jobs", "compare", "saved", "saved"], ["support-bundle", "-o", "b"], ["perf", "--help"], ["keygen", "--help"]]
API_COMMANDS = [["alerts"], ["alerts", "list", "--all"], ["alerts", "ack", "1"], ["alerts", "silence", "--host", "h1"], ["alerts", "silences"],
                ["alerts", "unsilence", "1"], ["alerts", "test", "link-down"], ["changes"], ["changes", "--all"],
                ["host", "list"], ["host", "check", "h1"], ["host", "remove", "h1"], ["host", "token"], ["host", "rotate"], ["token"], ["token", "make", "viewer", "x"], ["token", "join"], ["token", "revoke", "1"],
                ["host", "rotate", "authority"], ["config", "show"], ["config", "diff", "file"], ["config", "apply", "file"],
                ["config", "history"], ["config", "rollback"], ["config", "observe", "on"], ["levels"], ["topology"],
                ["topology", "declare", "file"], ["topology", "history"], ["findings"], ["jobs"], ["jobs", "4711"],
                ["jobs", "compare", "4711", "4712"], ["mesh", "--full"]]
LOCAL_COMMANDS = {"audit", "help", "lab", "sim"}  # these ask no server; test/audit tests `audit`


class Foreign(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="foliot-foreign-")
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Controller)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        Controller.turn, Controller.keep, Controller.refuse = 0, True, None
        with open(os.path.join(self.folder.name, "file"), "w", encoding="utf-8") as file:
            file.write("version: 1\n")

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()
        self.folder.cleanup()

    def foliot(self, *words, **environment):
        done = subprocess.run([FOLIOT, *words], capture_output=True, cwd=self.folder.name, timeout=120, check=False, stdin=subprocess.DEVNULL,
                              env={**{k: v for k, v in os.environ.items() if not k.startswith("FOLIOT")}, "LANG": "C.UTF-8", **environment})
        return done.returncode, done.stdout, done.stderr

    def clean(self, words, output):
        """The output has no control character, and no line that a string began."""
        text = output.decode()  # strict: all bytes are UTF-8
        bad = {c for c in text if c != "\n" and (unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs"))}
        self.assertEqual(bad, set(), f"foliot {' '.join(words)}: {text[:3000]!r}")
        self.assertNotRegex(text, r"(?m)^FORGED", " ".join(words))

    def asked(self, commands, environment, shown):
        for words in commands:
            for extra in [], ["--json"]:
                if extra and (words[-1] == "--help" or words[0] in ("record", "support-bundle", "keygen") or "--save" in words):
                    continue
                code, out, err = self.foliot(*words, *extra, **environment)
                self.assertIn(code, (0, 1, 2, 3), f"{words}: {err}")
                self.clean(words + extra, out)
                self.clean(words + extra, err)
                if shown is not None and b"FORGED" in out + err:
                    shown.add(words[0])
                if extra and out.strip() and b"FORGED" in out:  # output for programs stays unchanged
                    self.assertIn("FORGED\tz\x7f\x85\x9b31m\u202e", "".join(strings(json.loads(out.splitlines()[0]))), words)

    def test_an_agent(self):
        shown = set()
        for turn, keep in enumerate((True, False)):
            with self.subTest(keep=keep):
                run = os.path.join(self.folder.name, f"run{turn}")
                agent = FakeAgent(run, well=False, slow=True, change=lambda a, keep=keep: spoil(a, keep))
                for name in "r", "b", "saved":
                    if os.path.exists(os.path.join(self.folder.name, name)):
                        os.unlink(os.path.join(self.folder.name, name))
                self.asked(AGENT_COMMANDS, {"FOLIOT_RUNTIME_DIR": run}, shown)
                agent.shutdown()
                agent.server_close()
        # the string was in the output
        self.assertLessEqual({"status", "clock", "mesh", "links", "findings", "jobs", "doctor", "selftest"}, shown)

    def test_an_agent_that_refuses(self):
        run = os.path.join(self.folder.name, "run")
        refusal = {"version": 1, "kind": "error", "error": "x" + POISON, "message": "refused" + POISON}
        agent = FakeAgent(run, change=lambda a: refusal)
        self.asked(AGENT_COMMANDS, {"FOLIOT_RUNTIME_DIR": run}, None)
        agent.shutdown()
        agent.server_close()

    def api(self):
        return {"FOLIOT_API": f"http://127.0.0.1:{self.server.server_port}", "FOLIOT_TOKEN": "fla_test"}

    def test_a_controller(self):
        shown = set()
        for Controller.turn in range(3):
            for Controller.keep in (True, False):
                with self.subTest(turn=Controller.turn, keep=Controller.keep):
                    self.asked(API_COMMANDS, self.api(), shown)
        self.assertLessEqual({words[0] for words in API_COMMANDS}, shown)
        self.assertEqual(Controller.strange, set())

    def test_a_controller_that_refuses(self):
        for Controller.refuse in (400, 401, 404, 500, 299):
            with self.subTest(status=Controller.refuse):
                self.asked(API_COMMANDS, self.api(), None)

    def test_a_recording_of_somebody(self):
        """A finding's sentence in a replay has only numbers from the file. The file's name may have any characters."""
        name = "r" + POISON
        for content in None, b"", POISON.encode() * 50, b"foliot recording" + bytes(range(256)) * 20:
            if content is not None:
                with open(os.path.join(self.folder.name, name), "wb") as file:
                    file.write(content)
            for words in ["sim", "replay", name], ["sim", "replay", "--trust", "--quiet", name]:
                code, out, err = self.foliot(*words)
                self.assertEqual((code, out), (2, b""), err)
                self.assertIn(b"FORGED", err)
                self.clean(words, err)

    def test_no_command_is_forgotten(self):
        listing = self.foliot("help")[1].decode()
        names = set(re.findall(r"^  ([a-z][a-z-]+)  ", listing, re.M))
        self.assertEqual(names - LOCAL_COMMANDS, {words[0] for words in AGENT_COMMANDS + API_COMMANDS})


def strings(tree):
    if isinstance(tree, dict):
        return [s for k, v in tree.items() for s in [k, *strings(v)]]
    if isinstance(tree, list):
        return [s for v in tree for s in strings(v)]
    return [tree] if isinstance(tree, str) else []


if __name__ == "__main__":
    unittest.main(verbosity=2)
