#!/usr/bin/env python3
"""lane_mutants.py SOURCE BUILD: is the lane world sharp? Breaks one rule of exactly-once delivery at a time in a copy of ledger
or sender, builds the property test with it, and expects it to fail. A mutant that survives is a rule that no test checks (or that
doesn't matter).

Each is tried first with the seed that showed it last (SEED). If that no longer shows it, all seeds are played, and the line names
the one that does."""
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading

LOOK = "    if ((m != NULL && m->seen && is_set(m, &x->chunk)) || (s != NULL && s->state == SLOT_FULL)) {"
COUNT = "index < m->chunks && m->left > 0 && !bit_get(&m->bits, index))) {"

HELD = "    if (s->config.fenced) {\n        x->held = true;"

MUTANTS = [
    # the broken rule; then for each edit: file, old text, new text
    ("a chunk counts twice", "ledger_chunk.c", LOOK, "    if (m == NULL && s != NULL && s->state == SLOT_FULL) {",
     "ledger_chunk.c", "} else if (is_set(m, chunk)) {", "} else if (m->size == UINT32_MAX) {",
     "ledger.c", COUNT, "index < m->chunks && m->left > 0)) {"),
    ("bytes go on under a set bit", "ledger_chunk.c",
     LOOK, "    if (m == NULL && s != NULL && s->state == SLOT_FULL) {"),
    ("no second look at a half-read chunk", "ledger_chunk.c", "    look_again(l, lane);\n    struct in_lane *x = &l->lanes[lane];\n    *ret_target",
     "    struct in_lane *x = &l->lanes[lane];\n    *ret_target"),
    ("two lanes write one chunk", "ledger_chunk.c", "m->staged || l->config.fenced || claimed(l, chunk)", "m->staged || l->config.fenced"),
    ("an unverified chunk counts", "ledger_chunk.c", "} else if (!crc_fits) {", "} else if (!crc_fits && x->got == UINT32_MAX) {"),
    ("a chunk is reported as taken by its header", "ledger_chunk.c", "    x->chunk = *chunk;\n    x->got = 0;\n",
     "    x->chunk = *chunk;\n    x->got = 0;\n    x->taken++;\n    ledger_report_chunk(l, now, lane, 1);\n"),
    ("an old epoch is accepted", "ledger.c", "epoch <= x->epoch || epoch < x->barred", "epoch < x->epoch"),
    ("a bounce slot is placed before it is consumed", "sender_chunk.c", "if (!(s->slots_used >> i & 1)) {", "if (s->slots_used != UINT32_MAX) {"),
    ("a message comes early in two", "sender_chunk.c", "length == m->size && slot_free", "slot_free",
     "sender_chunk.c", "size <= s->hold           ? large + s->large", "size > 0 ? large + s->large"),
    ("a lane leaves in the slot what it read there", "ledger.c", ".wanted = x->got > 0,", ".wanted = false,"),
    ("a lane loses its place when its chunk is posted", "ledger.c", "    x->place = READING_BUFFER;\n", ""),
    ("a dead lane keeps its chunks", "sender_lane.c", "        if (!elsewhere(s, x, e)) {\n            sender_return(s, e);\n        }\n    }\n    *x->load = (struct lane_load){0};",
     "        if (elsewhere(s, x, e)) {\n            sender_return(s, e);\n        }\n    }\n    *x->load = (struct lane_load){0};"),
    ("queue pairs: resent without the fence", "sender_lane.c", HELD, "    if (s->config.fenced && x->load->chunks == UINT32_MAX) {\n        x->held = true;"),
    ("mixed lanes: some move without the fence", "sender_lane.c", HELD, "    if (s->config.fenced && x->epoch % 2 == 0) {\n        x->held = true;"),
    ("a count before the marker is taken for the last word", "sender_lane.c", "    if (lane->fenced_below != 0) {\n        *ret_acked = (struct sender_acked){.sent = now};\n        return sender_on_fenced(s, lane->lane, lane->fenced_below,",
     "    if (lane->fenced_below != 0 || lane->state == LANE_DOWN) {\n        *ret_acked = (struct sender_acked){.sent = now};\n        return sender_on_fenced(s, lane->lane, lane->epoch + 1,"),
    ("the last word on a lane is told once", "ledger_report.c", "        x->fence_at = mono_add(now, x->fence_gap);", "        x->fence_at = MONO_NEVER;"),
    ("a greeting doesn't bring the fence along", "sender_lane.c", "    return fenced(s, x, x->epoch == epoch ? taken : x->taken);",
     "    return x->held ? 0 : fenced(s, x, x->epoch == epoch ? taken : x->taken);"),
    ("an epoch that was never opened keeps its chunks", "sender_lane.c", "x->epoch >= below || x->epoch < epoch", "x->epoch >= below || x->epoch != epoch"),
    ("a late PROOF opens what was fenced", "ledger.c", "epoch <= x->epoch || epoch < x->barred", "epoch <= x->epoch"),
    ("a doubled chunk where NICs write", "sender_lane.c", "!s->lanes[lane].open || s->config.fenced) {\n        return 0;", "!s->lanes[lane].open) {\n        return 0;"),
    ("a half-read chunk where NICs write", "ledger_chunk.c", "m->staged || l->config.fenced || claimed(l, chunk)", "m->staged || claimed(l, chunk)"),
    ("a half-read slot where NICs write", "ledger_chunk.c", "        if (l->config.fenced) {\n            x->place", "        if (l->config.slots == UINT32_MAX) {\n            x->place"),
    ("done one chunk early", "ledger.c", "    if (m->left == 0) {\n        for", "    if (m->left <= 1) {\n        for"),
    ("messages match in order of arrival", "sender_chunk.c", "p->matched || (c->group_max > 1 && p->post.tag != m->tag)", "p->matched"),
    ("an aborted comm's slots are free before the receiver closed it", "sender.c", "m->eager && c->peer_closed", "m->eager"),
    ("a report is counted in the wrong direction", "halves.c", "type == LANE_OPEN ? HALF_LEDGER", "type == LANE_OPEN || type == LANE_STATE ? HALF_LEDGER"),
    ("an epoch is used again by one direction", "sender_lane.c", "    if (epoch <= x->epoch) {\n        return -ESTALE;", "    if (epoch < x->epoch) {\n        return -ESTALE;"),
    ("a lane goes on in one direction", "halves.c", "    if (s != NULL) {\n        sender_on_lane_down(s, lane, epoch);\n    }\n    if (l", "    if (l"),
    ("a CLOSE of the wrong direction", "halves.c", "return sending ? LANE_CLOSE_SENDER : 0;", "return sending ? 0 : LANE_CLOSE_SENDER;"),
    ("a closed comm's number opens again", "ledger.c", "    if (ledger_comm_was(l, number)) {", "    if (ledger_comm_find(l, number) != NULL) {"),
]


SEED = {  # the seed that showed it last, for bugs that only later worlds show
    "two lanes write one chunk": "1387",
    "queue pairs: resent without the fence": "1",
    "mixed lanes: some move without the fence": "1",
    "a count before the marker is taken for the last word": "11",
    "the last word on a lane is told once": "10",
    "a greeting doesn't bring the fence along": "1",
    "an epoch that was never opened keeps its chunks": "1",
    "a late PROOF opens what was fenced": "1",
    "a doubled chunk where NICs write": "1",
    "a half-read chunk where NICs write": "1",
    "a half-read slot where NICs write": "1",
    "messages match in order of arrival": "1",
    "a report is counted in the wrong direction": "1",
    "a CLOSE of the wrong direction": "1",
}


def compiled(compiler, flags, path, folder):
    """Compiles a file and returns its object. The same text is compiled once (headers are the tree's own, because no mutant
    changes them)."""
    with open(path, "rb") as file:
        made = os.path.join(folder, hashlib.sha256(file.read()).hexdigest() + ".o")
    if not os.path.exists(made):
        subprocess.run([compiler, *flags, "-c", path, "-o", made], check=True)
    return made


def played(binary, patience_s, *arguments):
    """Exit status and the first line about a seed: one broken promise is enough, and the other worlds aren't played."""
    process = subprocess.Popen([binary, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    patience = threading.Timer(patience_s, process.kill)
    patience.start()
    said = next((line.strip() for line in process.stdout if "seed" in line), None)
    if said is not None:
        process.kill()
    process.stdout.close()
    status = process.wait()
    hangs = said is None and not patience.is_alive()
    patience.cancel()
    return status, "seed ?: hangs" if hangs else said


def main():
    source, compiler = sys.argv[1], os.environ.get("CC", "cc")
    base = [os.path.join(source, name) for name in
            ("test/unit/failover/test_lanes.c", "test/unit/failover/lane_world.c", "test/unit/failover/lane_world_app.c",
             "test/unit/failover/lane_world_lanes.c", "src/wire/lane.c", "src/wire/crc32c.c",
             "src/base/prng.c", "src/base/bug.c")]
    flags = ["-std=gnu17", "-D_GNU_SOURCE", "-O1", "-w", "-I" + os.path.join(source, "src"),
             "-I" + os.path.join(source, "test/unit/failover")]
    alive = []
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "failover")
        for what, *edits in [("nothing",)] + MUTANTS:
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(os.path.join(source, "src/core/failover"), copy)
            for name, old, new in zip(edits[0::3], edits[1::3], edits[2::3]):
                path = os.path.join(copy, name)
                text = open(path, encoding="utf-8").read()
                if old not in text:
                    print(f"{what}: {name} no longer has the text to change: update this script")
                    alive.append(what)
                open(path, "w", encoding="utf-8").write(text.replace(old, new, 1))
            files = base + [os.path.join(copy, part) for part in sorted(os.listdir(copy))
                            if part.startswith(("ledger", "sender", "halves")) and part.endswith(".c")]
            binary = os.path.join(folder, "test")
            subprocess.run([compiler, *(compiled(compiler, flags, path, folder) for path in files), "-lcmocka", "-lm", "-o", binary],
                           check=True)
            # A good one ends by itself, later on a busy machine.
            status, said = played(binary, 20, "1", SEED[what]) if what in SEED else (0, None)
            if status == 0:
                status, said = played(binary, 240, "1") if what == "nothing" else played(binary, 60, "10")
                said = f"{said} (seed {SEED[what]} doesn't show it any more: note this one in SEED)" if what in SEED else said
            print(f"{'caught' if status else 'passes':7} {what}: {said or status}", flush=True)
            if (status == 0) != (what == "nothing"):
                alive.append(what)
    if alive:
        print("not as it should be: " + ", ".join(alive))
        return 1
    return 0


sys.exit(main())
