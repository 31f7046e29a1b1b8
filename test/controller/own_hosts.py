"""Hosts that a test plays in an audit: they report the facts that the test gives them."""
import fleet
import wire

RUNS = "/api/v1/audit/runs"


class OwnHosts(fleet.Fleet):
    def init(self, **options):
        super().init(**({"report": "20s", "beat": "20s"} | options))

    def say(self, number, extra=b"", features=2, host="h0", fleet_ns=0, covers=0):
        body = wire.batch([(number, wire.report(extra=extra, covers=covers))], oldest=number, sealed=wire.squeeze) + wire.number(17, features)
        status, answer = self.post("/agent/v1/report", body + (wire.number(6, fleet_ns) if fleet_ns else b""), **self.identity(host))
        self.assertEqual(status, 200, answer)
        return wire.fields(wire.unsqueeze(answer) if answer[:4] == b"\x28\xb5\x2f\xfd" else answer)

    @staticmethod
    def sheet(run, number, *parts, refused=""):
        body = wire.fixed64(1, run) + wire.number(2, number) + (wire.data(3, refused) if refused else b"")
        for name, content, digest in parts:
            body += wire.data(5, wire.data(1, name) + (wire.data(2, digest) if digest else b"") + wire.data(3, content))
        return wire.data(13, body)

    def begin(self):
        return int(self.request("POST", RUNS, {})[2]["run"])

    def done(self, run):
        self.wait(lambda: self.get(f"{RUNS}/{run}")["state"] == "done", 10, lambda: str(self.get(f"{RUNS}/{run}")))
        return self.get(f"{RUNS}/{run}")

    @staticmethod
    def result_of(plan, step, rate):
        """The result of a step of a plan of tests."""
        return wire.data(15, wire.fixed64(1, plan) + wire.number(2, step) + wire.number(3, 1) + wire.number(5, rate) + wire.number(6, 5) + wire.number(9, 20))

    @staticmethod
    def row(plan, nic, sent, heard, delay, refused=""):
        return wire.data(14, wire.fixed64(1, plan) + wire.number(2, nic) + (wire.data(3, refused) if refused else b"") +
                         wire.data(4, sent) + wire.data(5, heard) + wire.data(6, delay) + wire.number(7, 100))
