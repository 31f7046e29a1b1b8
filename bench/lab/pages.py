"""pages.py: the last state of a job's pages (src/wire/job_page.h): each lane's in-band delays."""
import glob
import math
import os
import struct
import threading

HEADER = 8 + 240
LANE = struct.Struct("<Q IIHBBBBHHHI 16s16s16s16s48s II QQQQ 8I 6I")
NAMES = ("sequence", "generation", "set", "lane", "sending", "state", "reason", "standby", "own_port", "peer_port", "reserved", "epoch",
         "own_address", "peer_address", "own_nic", "peer_nic", "peer_host", "peer_pid", "failovers", "chunks", "bytes", "resent", "rate_bps",
         "owd", "floor", "mean", "max", "bound", "queued", "consumed", "since_ms", "p50", "p99", "queued_p50", "queued_p99",
         "consumed_p50", "consumed_p99")
NONE = 0xffffffff


class Pages(threading.Thread):
    """Reads the pages twice a second, because they disappear with their job."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder = os.path.join(folder, "pages")
        os.mkdir(self.folder)
        self.last, self.over = {}, threading.Event()

    def run(self):
        while not self.over.wait(0.5):
            for name in glob.glob(os.path.join(self.folder, "job-*.page")):
                try:
                    with open(name, "rb") as page:
                        data = page.read()
                except OSError:
                    continue
                if len(data) > HEADER:
                    self.last[name] = data

    def stop(self):
        self.over.set()
        self.join()

    def lanes(self):
        """Receiving lanes that have carried data, of all processes: one dictionary each; pid: its process."""
        found = []
        for data in self.last.values():
            pid, _, count = struct.unpack_from("<III", data, 8 + 12)
            for i in range(min(count, (len(data) - HEADER) // LANE.size)):
                lane = dict(zip(NAMES, LANE.unpack_from(data, HEADER + i * LANE.size)), pid=pid)
                if lane["generation"] and not lane["sending"] and lane["chunks"] and lane["p50"] != NONE:
                    found.append(lane)
        return found

    def delay_ms(self, p):
        """The delay of all lanes together that a share p of the chunks doesn't exceed. Each lane's quantiles are points of its
        distribution, with straight lines on a logarithmic scale between them. Lanes count by their chunks."""
        lanes = [(lane["chunks"], [math.log(max(1, lane[key])) for key in ("floor", "p50", "p99", "max")]) for lane in self.lanes()]
        total = sum(weight for weight, _ in lanes)
        if not total:
            return None
        low, high = 0.0, 24.0
        while high - low > 1e-4:
            middle = (low + high) / 2
            if sum(weight * share_below(points, middle) for weight, points in lanes) < p * total:
                low = middle
            else:
                high = middle
        return math.exp(high) / 1e6


def share_below(points, value):
    shares = (0.0, 0.5, 0.99, 1.0)
    for i in range(1, len(points)):
        if value < points[i]:
            before = max(points[i - 1], points[0])
            return shares[i] if points[i] <= before else \
                shares[i - 1] + (shares[i] - shares[i - 1]) * max(0.0, value - before) / (points[i] - before)
    return 1.0
