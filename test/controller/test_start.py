#!/usr/bin/env python3
"""test_start.py FOLIOT-CONTROLLER FOLIOT-AGENT FOLIOT: when a controller refuses to start, and the reasons that it gives."""
import contextlib
import os
import re
import shutil
import socket
import sqlite3
import sys
import time
import unittest

import fleet
import wire

HANDED = """
import os, socket, sys
listening = socket.create_server((sys.argv[1], 7639), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
os.dup2(listening.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="api")
os.execv(sys.argv[2], sys.argv[2:])
"""


class Start(fleet.Fleet):
    HOSTS = 2

    def started(self, *command):
        return fleet.Process(self, "handed", self.space("c"), *command)

    def refused(self, folder):
        """Exit status and log of a controller that should serve the data of that folder."""
        self.write("controller.yaml", f"data_dir: {self.path(folder)}\nlisten: 10.90.0.1:7638\napi_listen: 127.0.0.1:7639\n")
        done = self.command(check=False)
        return done.returncode, done.stderr

    def test_a_copy_of_the_data_does_not_start(self):
        c = self.start(uses=10)
        self.join(0)
        # copied from a running one, with its log
        shutil.copytree(self.path("data"), self.path("copy"), ignore=shutil.ignore_patterns("*.sock"))
        self.assertEqual(c.stop(), 0)
        code, text = self.refused("copy")
        self.assertEqual(code, 78, text)
        self.assertRegex(text, r"copy/store.db is a copy: .* has had since 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} UTC, found another one on host")
        self.assertIn("foliot-controller takeover", text)
        for command in (("token", "join"), ("token", "api", "viewer")):  # nor does it make tokens
            self.assertIn("is a copy", self.command(*command, check=False).stderr)
        os.rename(self.path("data"), self.path("moved"))  # the same file under another name is not a copy
        self.write("controller.yaml", f"data_dir: {self.path('moved')}\nlisten: 10.90.0.1:7638\napi_listen: 127.0.0.1:7639\n")
        self.assertEqual(self.controller().stop(), 0)
        # an operator who knows that the other one is gone states so, and agents follow
        self.write("controller.yaml", f"data_dir: {self.path('copy')}\nlisten: 10.90.0.1:7638\napi_listen: 127.0.0.1:7639\n"
                   "report: 1s\nbeat: 300ms\n")
        self.assertIn("is the fleet's store from now on", self.command("takeover").stdout)
        self.controller()
        self.join(1)
        self.assertEqual([n["nic"] for n in self.get("/api/v1/nics")["items"]], [0, 1, 2, 3])

    def beside(self, folder, port):
        """A second controller on the data of that folder, at ports of its own."""
        self.write(f"{folder}.yaml", f"data_dir: {self.path(folder)}\nlisten: 10.90.0.1:{port}\napi_listen: 127.0.0.1:{port + 1}\n"
                   "report: 1s\nbeat: 300ms\n")
        return fleet.Process(self, folder, self.space("c"), self.CONTROLLER, "--config", self.path(f"{folder}.yaml"))

    def goes_to(self, port):
        """An agent that has the controller at that port."""
        text = self.read(self.path("h0.yaml"))
        self.write("h0.yaml", re.sub(r"(?m)^controller:.*$", f"controller: 10.90.0.1:{port}", text))
        return self.agent(0)

    def connected(self):
        """True if h0 has got an answer from its controller."""
        return os.path.exists(self.path("run-h0", "agent.sock")) and self.ask("h0")["controller"]["connected"]

    def copied(self):
        """Two copies of one store, each of which considers itself the fleet's: as after a virtual machine was cloned. Earlier
        starts had clocks two hours ahead, and so are the numbers of both."""
        c = self.start()
        self.join(0)
        self.assertEqual(c.stop(), 0)
        shutil.copytree(self.path("data"), self.path("copy"))
        self.command("takeover")
        self.write("copy.yaml", f"data_dir: {self.path('copy')}\n")
        fleet.run(self.CONTROLLER, "--config", self.path("copy.yaml"), "takeover")
        for folder, later_s in (("data", 0), ("copy", 60)):
            ahead = "%x 0 0\n" % (time.time_ns() // 10**6 + (7200 + later_s) * 1000)
            with contextlib.closing(sqlite3.connect(self.path(folder, "store.db"))) as store, store:
                store.execute("UPDATE setting SET value = ? WHERE name = 'instance'", (ahead.encode(),))

    def test_of_two_copies_that_serve_the_older_stops(self):
        self.copied()
        older = self.beside("data", 7638)
        older.wait_log("agents on port")
        newer = self.beside("copy", 7648)
        newer.wait_log("agents on port")
        agent = self.goes_to(7638)
        begun = time.time_ns()  # less than ten seconds beside it: it may have been ending; answers resolve ten seconds
        self.wait(lambda: ((self.host("h0") or {}).get("heard_utc_ns") or 0) > begun + 21 * 10**9, 60, older.log)
        self.wait(self.connected, 10, older.log)
        agent.stop()
        agent = self.goes_to(7648)  # the newer one goes on, and reports that there is another
        newer.wait_log("host h0 spoke with another controller of this fleet")
        newer.wait_log("two-controllers|other controllers that serve this fleet")
        agent.stop()
        agent = self.goes_to(7638)
        older.wait_log("stopping: host h0 has spoken with a newer controller of this fleet")
        self.assertEqual(older.process.wait(fleet.IO_S), 78)
        agent.wait_log("a newer controller of this fleet serves|Connection refused|Could not connect|[Ff]ailed to connect")
        agent.stop()
        again = self.beside("data", 7638)  # nor after a restart
        self.assertEqual(again.process.wait(fleet.IO_S), 78)
        self.assertIn("is an older copy", again.log())
        fleet.run(self.CONTROLLER, "--config", self.path("data.yaml"), "takeover")  # the operator decides
        last = self.beside("data", 7638)
        last.wait_log("agents on port")
        agent = self.goes_to(7638)
        self.wait(self.connected, 10, last.log)
        agent.stop()
        agent = self.goes_to(7648)
        newer.wait_log("stopping: host h0 has spoken with a newer controller")
        self.assertEqual(newer.process.wait(fleet.IO_S), 78)
        self.assertEqual(last.stop(), 0)

    def test_no_host_can_make_up_a_newer_controller(self):
        c = self.start()
        self.join(0)
        token = wire.fields(self.post("/agent/v1/report", wire.batch(), **self.identity("h0"))[1])[12][0]
        self.assertEqual(len(token), 32)
        later = bytes(8 * [0x7f]) + token[8:]
        for made_up in (later, token[:31], token + b"x", bytes(32)):
            body = wire.batch() + wire.data(21, made_up) + wire.number(22, 1)
            self.assertEqual(self.post("/agent/v1/report", body, **self.identity("h0"))[0], 200)
        self.assertEqual(c.stop(), 0)
        self.assertNotIn("another controller", c.log())
        c = self.controller()  # its own earlier start is no other controller
        body = wire.batch() + wire.data(21, token) + wire.number(22, 1)
        self.assertEqual(self.post("/agent/v1/report", body, **self.identity("h0"))[0], 200)
        self.assertEqual(c.stop(), 0)
        self.assertNotIn("another controller", c.log())

    def test_no_host_can_make_a_restored_controller_find_another(self):
        """A host keeps an answer of a start that the backup doesn't have, and claims that it just came."""
        c = self.start()
        self.join(0)
        self.assertEqual(c.stop(), 0)
        shutil.copytree(self.path("data"), self.path("backup"))
        c = self.controller()
        token = wire.fields(self.post("/agent/v1/report", wire.batch(), **self.identity("h0"))[1])[12][0]
        self.assertEqual(c.stop(), 0)
        shutil.rmtree(self.path("data"))
        os.rename(self.path("backup"), self.path("data"))
        self.command("takeover")
        c = self.controller()
        time.sleep(13)  # longer than a controller takes to end
        for _ in range(2):
            body = wire.batch() + wire.data(21, token) + wire.number(22, 1)
            self.assertEqual(self.post("/agent/v1/report", body, **self.identity("h0"))[0], 200)
        self.assertEqual(c.stop(), 0)
        self.assertNotIn("another controller", c.log())

    def test_a_machine_id_of_this_boot_alone_is_not_compared(self):
        """systemd mounts a temporary one over /etc/machine-id if it can't be kept: the next boot has another."""
        self.assertEqual(self.start().stop(), 0)
        self.write("machine-id", "0123456789abcdef0123456789abcdef\n")
        c = self.started("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/machine-id && exec "$@"', self.path("machine-id"),
                         self.CONTROLLER, "--config", self.path("controller.yaml"))
        c.wait_log("agents on port")
        self.assertEqual(c.stop(), 0)

    def kept_as(self, change):
        """Changes the place in the store; returns the earlier one."""
        store = sqlite3.connect(self.path("data/store.db"))
        was = bytes(store.execute("SELECT value FROM setting WHERE name = 'place'").fetchone()[0]).decode().split()
        store.execute("UPDATE setting SET value = ? WHERE name = 'place'", (" ".join(change(list(was))).encode(),))
        store.commit()
        store.close()
        return was

    def test_inode_numbers_that_a_remount_changes(self):
        self.assertEqual(self.start().stop(), 0)
        inode, born, machine = self.kept_as(lambda p: [str(int(p[0]) + 1)] + p[1:])[:3]
        if machine == "-" or born == "0":
            self.assertEqual(self.refused("data")[0], 78)  # nothing else shows that it is the same
            return
        self.assertEqual(self.controller().stop(), 0)
        self.kept_as(lambda p: [p[0], str(int(born) + 1)] + p[2:])
        self.assertEqual(self.refused("data")[0], 78)
        self.kept_as(lambda p: [p[0], born, "0" * 32] + p[3:])
        self.assertEqual(self.refused("data")[0], 78)

    def test_a_file_that_is_no_socket_stays(self):
        self.init()
        self.write("data/api.sock", "precious")
        c = self.controller()
        c.wait_log("api.sock: expected a socket or nothing there, found another file")
        self.assertEqual(c.stop(), 0)
        self.assertEqual(self.read(self.path("data/api.sock")), "precious")

    def test_a_restored_backup_starts(self):
        c = self.start()
        self.command("backup", self.path("backup.db"))
        self.assertEqual(c.stop(), 0)
        self.command("restore", self.path("backup.db"))
        self.assertEqual(self.controller().stop(), 0)

    def test_a_handed_socket_is_plain_on_the_loopback_address_only(self):
        self.init()
        program = [sys.executable, "-c", HANDED]
        for address, plain in (("127.0.0.1", True), ("10.90.0.1", False), ("0.0.0.0", False), ("::", False), ("::1", True)):
            with self.subTest(address):
                c = self.started(*program, address, self.CONTROLLER, "--config", self.path("controller.yaml"))
                c.wait_log("API on " + ("http port" if plain else "https port"))
                client = fleet.connect(self.space("c"), {"0.0.0.0": "10.90.0.1", "::": "::1"}.get(address, address), 7639)
                client.settimeout(fleet.IO_S)
                client.sendall(b"GET /api/v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + self.admin.encode() + b"\r\n\r\n")
                try:
                    answer = client.recv(100)
                except OSError:
                    answer = b""
                client.close()
                self.assertEqual(answer.startswith(b"HTTP/1.1 200"), plain, answer)
                self.assertEqual(c.stop(), 0)

    def test_the_step_that_fails_is_named(self):
        self.init()
        for name in ("server.key", "fleet.key"):
            os.rename(self.path("data/" + name), self.path("kept"))
            self.assertIn(f"data/{name}: expected a file of this controller's authority, found: No such file or directory. Restore it",
                          self.command(check=False).stderr)
            os.rename(self.path("kept"), self.path("data/" + name))
        if os.path.exists(self.path("data/server.pem")):
            os.unlink(self.path("data/server.pem"))
        os.mkdir(self.path("data/server.pem"))
        self.assertIn("data/server.pem can't be made by authority.key and server.key: Is a directory", self.command(check=False).stderr)
        os.rmdir(self.path("data/server.pem"))
        self.assertIn("the token 'admin' can't be made: a token has that name",
                      self.command("token", "api", "admin", "admin", check=False).stderr)
        taken = self.listen("10.90.0.1", 7638)
        text = self.command(check=False).stderr
        self.assertIn("cannot start: the agents' port: Address already in use", text)
        taken.close()
        self.write("controller.yaml", self.read(self.path("controller.yaml")).replace("10.90.0.1:7638", "10.90.0.9:7638"))
        self.assertIn("cannot start: the agents' port: Cannot assign requested address", self.command(check=False).stderr)
        self.write("controller.yaml", self.read(self.path("controller.yaml")).replace("10.90.0.9:7638", "10.90.0.1:7638"))
        c = self.controller()
        self.join(0)
        agent = self.agent(0, runtime=self.path("run-" + 60 * "x"))
        agent.wait_log("cannot start: agent.sock: File name too long")
        os.mkdir(self.path("data/authority.next.pem"))  # nor requests of the API
        status, _, answer = self.request("POST", "/api/v1/rotation", {"what": "authority"})
        self.assertEqual((status, answer["error"]["message"]),
                         (503, "the rotation of the authority fails: writing authority.next.pem: Is a directory"))
        os.rmdir(self.path("data/authority.next.pem"))
        self.assertEqual(agent.process.wait(fleet.IO_S), 1)
        c.stop()
        self.assertRegex(self.command("restore", self.path("none.db"), check=False).stderr, "none.db: the backup can't be opened: ")
        self.write("none.db", "not a store")
        self.assertRegex(self.command("restore", self.path("none.db"), check=False).stderr, "none.db: the backup (can't be opened|is damaged): ")

    def test_a_recording_is_asked_for(self):
        self.init(extra="record_mib: 0\n")
        process = self.controller()
        refused = self.command("record", self.path("out"), check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("set record_mib in the configuration", refused.stderr)
        self.assertEqual(process.stop(), 0)
        self.write("controller.yaml", self.read(self.path("controller.yaml")).replace("record_mib: 0", "record_mib: 8"))
        process = self.controller()
        self.wait(lambda: self.command("record", self.path("out"), check=False).returncode == 0, 5, "no recording")
        again = self.command("record", self.path("out"), check=False)
        self.assertEqual(again.returncode, 1)
        self.assertIn("is there already", again.stderr)
        with open(self.path("out"), "r+b") as file:
            file.truncate(os.path.getsize(self.path("out")) - 1)
        cut = fleet.run(self.FOLIOT, "sim", "replay", self.path("out"), check=False)
        self.assertEqual(cut.returncode, 2, cut.stdout + cut.stderr)
        self.assertIn("cut short", cut.stderr)

    def test_log_lines_have_fields(self):
        """A line of the journal can be found by its host, NIC or incident, and by the address of the request."""
        os.makedirs(self.path("journal"))
        journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        journal.bind(self.path("journal/socket"))
        journal.settimeout(fleet.IO_S)
        here = ("unshare", "--mount", "sh", "-c", 'mkdir -p /run/systemd/journal && mount --bind "$0" /run/systemd/journal && exec "$@"',
                self.path("journal"))
        self.init()

        def start(name, space, *program):
            return fleet.Process(self, name, self.space(space), *here, *program, environment={"JOURNAL_STREAM": "1:1"})

        def line(text):
            while True:
                entry = dict(f.split("=", 1) for f in journal.recv(65536).decode().strip().split("\n"))
                if re.search(text, entry["MESSAGE"]):
                    return entry
        c = start("controller", "c", self.CONTROLLER, "--config", self.path("controller.yaml"))
        c.wait_log("(?m)^<6>.*agents on port")  # no field: the stream has it, which assigns a unit's last lines to the unit
        stranger = wire.number(1, 1) + wire.data(2, 32 * "A") + wire.data(3, "h0") + wire.data(4, "x")
        self.assertEqual(self.post("/agent/v1/join", stranger)[0], 403)
        self.assertEqual(line("a join from .* is refused")["FOLIOT_SOURCE"], "10.90.0.10")
        self.join(0)
        self.assertNotIn("FOLIOT_WHO", line("host h0 .* by token"))
        bad = wire.batch() + wire.data(19, "no room") + wire.number(20, 7)
        self.assertEqual(self.post("/agent/v1/report", bad, **self.identity("h0"))[0], 200)
        entry = line("refuses version 7 of the list of members")
        self.assertEqual((entry["FOLIOT_HOST"], entry["FOLIOT_SOURCE"]), ("h0", "10.90.0.10"))
        entry = line("incident 1 opened")  # the line is about a host; the request that caused it may be another's
        self.assertEqual((entry["FOLIOT_HOST"], entry["FOLIOT_INCIDENT"], entry["FOLIOT_SEVERITY"]), ("h0", "1", "warning"))
        self.assertNotIn("FOLIOT_SOURCE", entry)
        self.assertEqual(self.request("DELETE", "/api/v1/hosts/h0")[0], 200)
        entry = line("host h0 is removed")
        self.assertEqual((entry["FOLIOT_WHO"], entry["FOLIOT_SOURCE"]), ("admin", "127.0.0.1"))
        self.assertEqual(c.stop(), 0)
        agent = start("h0", "h0", "env", f"FOLIOT_RUNTIME_DIR={self.path('run-h0')}", self.AGENT, "--config", self.path("h0.yaml"))
        entry = line("controller 10.90.0.1:7638: ")
        self.assertEqual((entry["FOLIOT_HOST"], entry["SYSLOG_IDENTIFIER"]), ("h0", "foliot-agent"))
        agent.stop()
        journal.close()


if __name__ == "__main__":
    if not fleet.may_make_namespaces():
        print("skipped: needs root and network namespaces")
        sys.exit(77)
    fleet.Fleet.CONTROLLER, fleet.Fleet.AGENT, fleet.Fleet.FOLIOT = sys.argv[1:4]
    del sys.argv[1:4]
    unittest.main(verbosity=2)
