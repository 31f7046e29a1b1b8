#!/usr/bin/env python3
"""lane_copy_mutants.py SOURCE BUILD: are the worlds with queue pairs sharp? Breaks one rule of lanes over queue pairs at a time
in a copy of its file, links the test of the job worlds with it, and expects the test of these worlds to fail.

If only one world in hundreds shows a rule, the world that showed it last is tried first (WORLD). If that no longer shows it, all
worlds are played, and the line names the one that does."""
import glob
import os
import subprocess
import sys
import tempfile

# The worlds that judge a group of mutants, the quickest first: if one notices a mutant, the others aren't needed.
PAIRS = ["test_queue_pairs_of_many", "test_queue_pairs_full", "test_queue_pairs"]
WORLDS = "1500"  # if a lane is reported before it is silent, only one world of 1,200 goes wrong
DENSE = "test_direct_lanes_dense"
DIRECT, POSTS, GAPS, PLACES = ["test_direct_lanes", DENSE], ["test_fenced_sets"], ["test_gaps"], ["test_places_told"]
SOUND = PLACES[0]  # the quickest test, of unbroken code: that the copy links and passes. The rest is for job_world
WORLD = {  # of DENSE, that showed it last
    "nobody waits until a queue pair is silent": "547",
    "the last word on a lane is said before it is silent": "218",
    "a queue pair is called silent once it is reset": "547",
    "a receive is given up, and lanes write on": "209",
    "a chunk leaves a dead TCP lane unconfirmed": "206",
}
# The rules that keep late bytes out of completed receives. Worlds whose lanes write find each of them.
FENCES = [
    ("nobody waits until a queue pair is silent", "transport/lane_copy.c", "if (!may_be_written(qp)) {\n        return true;", "if (true) {\n        return true;"),
    ("the last word on a lane is said before it is silent", "transport/lane_act.c", "        stream->kind->silence(set, stream);\n",
     "        stream->kind->silence(set, stream);\n        halves_lane_down(set->sender, set->ledger, lane, stream->epoch);\n"),
    ("a queue pair is called silent once it is reset", "transport/lane_copy.c", "qp->marked = qp->marked || (qp->flushed > 0 && qp->posted == 0);", "qp->marked = qp->silence_at.ns > 0;"),
    ("a receive is given up, and lanes write on", "transport/comm.c", "    fence_receives(comm);\n", ""),
    ("a chunk leaves a dead TCP lane unconfirmed", "transport/lane_act.c", "    scheduler_lane_down(&set->scheduler, lane);\n", """    scheduler_lane_down(&set->scheduler, lane);
    if (set->sender != NULL && set->fenced) {
        struct sender_lane_info info;
        sender_lane_info(set->sender, lane, &info);
        (void)!sender_on_fenced(set->sender, lane, info.epoch + 1, info.epoch, info.taken);
    }
"""),
    ("what is slow goes by a second lane, too", "core/failover/sender_lane.c", "!s->lanes[lane].open || s->config.fenced) {", "!s->lanes[lane].open) {"),
]
POST = [
    ("nobody is told where a message goes", "transport/post.c", "if (!stream_control(stream, bytes, sizeof(bytes))) {", "if (false) {"),
    ("a place that got lost isn't told again", "transport/post.c", "again || comm->posts_told < placed ? placed : comm->posts_told", "comm->posts_told < placed ? placed : comm->posts_told"),
]
# What a lane leaves behind, and what else moves with it.
GAP = [
    ("the end of a lane that is no more is told for ever", "transport/lane_set.c", "        lane_set_heard_fences(set, report);\n", ""),
]
PLACE = [
    ("a place isn't told along with what goes by every lane", "transport/in.c", "lane >= 0 ? lane : lane_set_any_lane(set);", "lane;"),
]
MUTANTS = [
    # the broken rule, file, old text, new text
    ("a cell is given back twice", "transport/lane_copy.c", "    qp->freed++;", "    qp->freed += 2;"),
    ("more is sent than the peer has cells", "transport/lane_copy.c", "&& credit(qp) > spare", "&& spare < 2"),
    ("a cell is filled that is on its way", "transport/lane_copy.c", "qp->sent - qp->completed < qp->count && ", ""),
    ("a cell is posted before it is read", "transport/lane_copy.c", "    qp->ready[(qp->ready_first", "    give_back(set, qp, done->cell);\n    qp->ready[(qp->ready_first"),
    ("a cell without bytes of the stream is kept", "transport/lane_copy.c", "        give_back(set, qp, done->cell);\n        return;\n    }\n    if (qp->ended", "        return;\n    }\n    if (qp->ended"),
    ("a flushed cell is read", "transport/lane_copy.c", "if (done->status == IO_QP_OK ||", "if (done->status <= IO_QP_FLUSHED ||"),
    ("SWITCH comes in the middle of a chunk", "transport/lane_offer.c", "stream->held = !stream_idle(stream);", "stream->held = false;"),
    ("bytes behind SWITCH still go over the connection", "transport/lane_offer.c", "stream->bytes_out + LANE_QP_SIZE;", "stream->bytes_out + 2 * LANE_QP_SIZE;"),
    ("a queue pair that wasn't used is left open", "transport/lane_offer.c", "    rdma->close(rdma, qp->qp, false);\n", "    (void)rdma;\n"),
    ("a queue pair is left open with its lane", "transport/lane_copy.c", "    rdma->close(rdma, qp->qp, orderly);\n", "    (void)rdma;\n"),
]


def judged(binary, test, **environment):
    """The exit status of that test, and its output."""
    try:
        run = subprocess.run([binary, test], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, env={**os.environ, **environment})
    except subprocess.TimeoutExpired:
        return 1, "hangs"
    return run.returncode, next((line.strip() for line in run.stdout.splitlines() if "seed" in line or "!=" in line or "sum" in line), run.returncode)


def main():
    source, build = sys.argv[1:3]
    flags = ["-std=gnu17", "-D_GNU_SOURCE", "-O2", "-w", "-I" + os.path.join(source, "src")]
    libraries = [os.path.join(build, name) for name in ("sim/libfoliot-sim-job.a", "src/transport/libfoliot-transport.a")]
    others = sorted(glob.glob(os.path.join(build, "src/*/lib*.a")) + glob.glob(os.path.join(build, "src/core/*/lib*.a")))
    wraps = ["-Wl,--wrap=" + name for name in ("ledger_target", "ledger_end", "sender_on_lane_down", "ledger_next_report")]
    alive = []
    with tempfile.TemporaryDirectory() as folder:
        compiler = [os.environ.get("CC", "cc"), *flags, "-I" + source]
        copy, worlds, binary = (os.path.join(folder, name) for name in ("mutant.c", "worlds.o", "test"))
        subprocess.run([*compiler, "-c", os.path.join(source, "test/unit/test_job_world.c"), "-o", worlds], check=True)
        groups = [([SOUND], [("nothing", "transport/lane_copy.c", "", "")]), (DIRECT, FENCES), (POSTS, POST), (PAIRS, MUTANTS), (GAPS, GAP), (PLACES, PLACE)]
        for tests, (what, name, old, new) in [(tests, one) for tests, mutants in groups for one in mutants]:
            text = open(os.path.join(source, "src", name), encoding="utf-8").read()
            if old not in text:
                print(f"{what}: {name} no longer has the text to change: update this script")
                alive.append(what)
            open(copy, "w", encoding="utf-8").write(text.replace(old, new, 1))
            subprocess.run([*compiler, worlds, copy, *wraps,
                            "-Wl,--start-group", *libraries, *others, "-Wl,--end-group", "-lcmocka", "-lsodium", "-lm", "-ldl", "-lpthread",
                            "-o", binary], check=True)
            status, said = judged(binary, DENSE, FOLIOT_WORLD=WORLD[what]) if what in WORLD else (0, None)
            for test in [] if status else tests:
                status, said = judged(binary, test, FOLIOT_WORLDS=WORLDS)
                if status:
                    said = f"{said} (world {WORLD[what]} doesn't show it any more: note this one in WORLD)" if what in WORLD else said
                    break
            print(f"{'caught' if status else 'passes':7} {what}: {said}", flush=True)
            if (status == 0) != (what == "nothing"):
                alive.append(what)
    if alive:
        print("not as it should be: " + ", ".join(alive))
        return 1
    return 0


sys.exit(main())
