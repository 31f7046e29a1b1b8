"""bound.py: computes the job traffic that the links of a lab can carry, from the fabric's file alone.

A job needs the same rate between each pair of ranks that communicate. No choice of NICs, lanes and paths moves more over a cut
than its links carry. So the rate is at most capacity divided by demand, of the tightest cut: each host's NICs out and in, and
all links from one leaf up and down. With two leaves, and all NICs of a host on one leaf, there are no other cuts, so the bound
can be reached. A TCP segment of 1,448 bytes takes 1,514 bytes on a link.
"""
import yaml

PAYLOAD = 1448 / 1514


def pairs(operation, hosts):
    """Ordered pairs of hosts that communicate."""
    if operation == "alltoall":
        return [(a, b) for a in hosts for b in hosts if a != b]
    return [(a, hosts[(i + 1) % len(hosts)]) for i, a in enumerate(hosts)]  # a ring


class Fabric:
    """A fabric file's links, Mbit/s. slow: {"nic 1.0": Mbit/s, "trunk 0-1": Mbit/s}."""

    def __init__(self, file, slow=None):
        with open(file, encoding="utf-8") as text:
            f = yaml.safe_load(text)["fabric"]
        self.hosts, self.leaves, self.link_mbps = f["hosts"], f["leaves"], f["link_mbps"]
        slow = slow or {}
        self.nics = {h: sum(slow.get(f"nic {h}.{k}", f["link_mbps"]) for k in range(f["nics_per_host"])) for h in range(f["hosts"])}
        self.trunks = {leaf: sum(slow.get(f"trunk {leaf}-{s}", f["trunk_mbps"]) for s in range(f["spines"])) for leaf in range(f["leaves"])}
        if self.leaves != 2 or f.get("rails"):
            raise ValueError("the bound is known for two leaves")

    def leaf(self, host):
        return host * self.leaves // self.hosts

    def bound(self, flows):
        """Mbit/s of payload that each flow, a pair of hosts, can have; and the tightest cut."""
        cuts = []
        for h in self.nics:
            cuts.append((f"host {h} out", self.nics[h], sum(a == h for a, _ in flows)))
            cuts.append((f"host {h} in", self.nics[h], sum(b == h for _, b in flows)))
        for leaf in self.trunks:
            cuts.append((f"leaf {leaf} up", self.trunks[leaf], sum(self.leaf(a) == leaf != self.leaf(b) for a, b in flows)))
            cuts.append((f"leaf {leaf} down", self.trunks[leaf], sum(self.leaf(b) == leaf != self.leaf(a) for a, b in flows)))
        return min((capacity / demand * PAYLOAD, cut) for cut, capacity, demand in cuts if demand)
