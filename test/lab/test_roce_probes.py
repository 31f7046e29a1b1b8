#!/usr/bin/env python3
"""lab/roce-vm/probes without a machine: the judge's truth, and delays inside and outside of it. usage: test_roce_probes.py PROBES"""
import importlib.machinery
import importlib.util
import os
import sys
import tempfile

LOADER = importlib.machinery.SourceFileLoader("roce_probes", sys.argv[1])
sys.dont_write_bytecode = True
PROBES = importlib.util.module_from_spec(importlib.util.spec_from_loader("roce_probes", LOADER))
LOADER.exec_module(PROBES)

TRACE = """# tracer: nop
          agent-812     [001] d.s1.    12.000100: ud_begin: (rxe_cq_post+0x0/0x1a0 [rdma_rxe]) cq=0xffff8881 op=0
          agent-812     [001] d.s1.    12.000110: ud_end: (send_data_in+0x12/0x30 [rdma_rxe] <- rxe_cq_post)
     ksoftirqd/0-13     [000] ..s1.    12.000120: ud_begin: (rxe_cq_post+0x0/0x1a0 [rdma_rxe]) cq=0xffff8882 op=128
          agent-812     [001] d.s1.    12.000125: ud_begin: (rxe_cq_post+0x0/0x1a0 [rdma_rxe]) cq=0xffff8881 op=128
     ksoftirqd/0-13     [000] ..s1.    12.000130: ud_end: (rxe_responder+0x12/0x30 [rdma_rxe] <- rxe_cq_post)
          agent-812     [001] d.s1.    12.000150: ud_end: (rxe_responder+0x12/0x30 [rdma_rxe] <- rxe_cq_post)
     ksoftirqd/0-13     [000] ..s1.    12.000170: ud_begin: (rxe_cq_post+0x0/0x1a0 [rdma_rxe]) cq=0xffff8882 op=128
     ksoftirqd/0-13     [000] ..s1.    12.000180: ud_end: (rxe_responder+0x12/0x30 [rdma_rxe] <- rxe_cq_post)
"""


class Seen:
    """What the taps saw: a herald and a question to h1, and an answer to h0."""
    left = {(7, 0): 12_000_050_000, (7, 1): 12_000_090_000, (7, 2): 12_000_095_000}
    came = {"h0r0": [(12_000_105_000, 7, 2)], "h1r0": [(12_000_060_000, 7, 0), (12_000_100_000, 7, 1)]}
    error_ns = 500


def check(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: expected {expected}, found {found}")


with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "trace"), "w", encoding="utf-8") as file:
        file.write(TRACE)
    PROBES.TRACING = folder
    done = PROBES.trace_end()
H0, H1, LATER = "0xffff8881", "0xffff8882", 13_000_000_000
check("completions of receives, by queue", done, {H1: [12_000_131_000, 12_000_181_000], H0: [12_000_151_000]})
truth = PROBES.truths(Seen, done, LATER)
check("the question's truth", truth[7, 1], (9_500, 91_500))
check("the answer's truth", truth[7, 2], (9_500, 56_500))
early = {H1: [12_000_055_000, 12_000_181_000], H0: done[H0]}
check("a packet that completed before it came", PROBES.truths(Seen, early, LATER), None)
check("a packet without a completion", PROBES.truths(Seen, {H1: done[H1][:1], H0: done[H0]}, LATER), None)
check("packets after the end are left out", sorted(PROBES.truths(Seen, done, 12_000_101_000)), [(7, 0), (7, 1)])
check("a delay within the truth", PROBES.is_outside(50_000, 1_000, truth[7, 1]), False)
check("a span that touches it", PROBES.is_outside(5_000, 4_500, truth[7, 1]), False)
check("a span that ends before it", PROBES.is_outside(5_000, 4_499, truth[7, 1]), True)
check("a span that begins after it", PROBES.is_outside(100_000, 8_499, truth[7, 1]), True)
