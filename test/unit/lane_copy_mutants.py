#!/usr/bin/env python3
"""lane_copy_mutants.py SOURCE BUILD: are the worlds with queue pairs sharp? Breaks one rule of lanes over queue pairs at a time in a
copy of its file, links the test of the job worlds with it, and expects a test of its queue pairs to fail."""
import glob
import os
import subprocess
import sys
import tempfile

MUTANTS = [
    # what is broken, file, old text, new text
    ("a cell is given back twice", "lane_copy.c", "    qp->freed++;", "    qp->freed += 2;"),
    ("more is sent than the peer has cells", "lane_copy.c", "&& credit(qp) > spare", "&& spare < 2"),
    ("a cell is filled that is on its way", "lane_copy.c", "qp->sent - qp->completed < qp->count", "qp->sent - qp->completed <= qp->count"),
    ("a cell is posted before it is read", "lane_copy.c", "    qp->ready[(qp->ready_first", "    give_back(set, qp, done->cell);\n    qp->ready[(qp->ready_first"),
    ("a cell without bytes of the stream is kept", "lane_copy.c", "        give_back(set, qp, done->cell);\n        return;\n    }\n    if (qp->ended", "        return;\n    }\n    if (qp->ended"),
    ("a flushed cell is read", "lane_copy.c", "if (done[i].status != IO_QP_OK) {", "if (done[i].status > IO_QP_FLUSHED) {"),
    ("SWITCH comes in the middle of a chunk", "lane_offer.c", "stream->held = !stream_idle(stream);", "stream->held = false;"),
    ("bytes behind SWITCH still go over the connection", "lane_offer.c", "stream->bytes_out + LANE_QP_SIZE;", "stream->bytes_out + 2 * LANE_QP_SIZE;"),
    ("a queue pair that wasn't used is left open", "lane_offer.c", "    rdma->close(rdma, qp->qp, false);\n", "    (void)rdma;\n"),
    ("a queue pair is left open with its lane", "lane_copy.c", "    rdma->close(rdma, qp->qp, orderly);\n", "    (void)rdma;\n"),
]


def main():
    source, build = sys.argv[1:3]
    flags = ["-std=gnu17", "-D_GNU_SOURCE", "-O2", "-w", "-I" + os.path.join(source, "src")]
    libraries = [os.path.join(build, name) for name in ("sim/libfoliot-sim-job.a", "src/transport/libfoliot-transport.a")]
    others = sorted(glob.glob(os.path.join(build, "src/*/lib*.a")) + glob.glob(os.path.join(build, "src/core/*/lib*.a")))
    wraps = ["-Wl,--wrap=" + name for name in ("ledger_target", "ledger_end", "sender_on_lane_down")]
    alive = []
    with tempfile.TemporaryDirectory() as folder:
        copy, binary = os.path.join(folder, "mutant.c"), os.path.join(folder, "test")
        for what, name, old, new in [("nothing", "lane_copy.c", "", "")] + MUTANTS:
            text = open(os.path.join(source, "src/transport", name), encoding="utf-8").read()
            if old not in text:
                print(f"{what}: {name} no longer has the text to change: update this script")
                alive.append(what)
            open(copy, "w", encoding="utf-8").write(text.replace(old, new, 1))
            subprocess.run([os.environ.get("CC", "cc"), *flags, "-I" + source, os.path.join(source, "test/unit/test_job_world.c"), copy, *wraps,
                            "-Wl,--start-group", *libraries, *others, "-Wl,--end-group", "-lcmocka", "-lsodium", "-lm", "-ldl", "-lpthread",
                            "-o", binary], check=True)
            try:
                run = subprocess.run([binary, "test_queue_pairs*"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
                said = next((line.strip() for line in run.stdout.splitlines() if "seed" in line or "!=" in line or "sum" in line), run.returncode)
                status = run.returncode
            except subprocess.TimeoutExpired:
                status, said = 1, "hangs"
            print(f"{'caught' if status else 'passes':7} {what}: {said}", flush=True)
            if (status == 0) != (what == "nothing"):
                alive.append(what)
    if alive:
        print("not as it should be: " + ", ".join(alive))
        return 1
    return 0


sys.exit(main())
