"""bench_rows.py: the state of a row of `make bench`, for tools/run-bench and tools/bench-table.

A must without a value is missed. A row that is older than its code is stale: it counts neither as met nor as missed.
"""
import functools
import re
import subprocess

CORE = ["src/base", "src/stats", "src/wire", "src/core/clock", "src/core/page", "src/core/node", "src/core/mesh", "src/core/finding", "src/core/link"]
AGENT = CORE + ["src/platform", "src/service/agent"]
SIM = CORE + ["sim", ":!sim/job_*", ":!sim/clock_*", ":!sim/swarm*"]
CLOCKS = ["src/base", "src/stats", "src/core/clock", "sim/clock_baseline.c", "sim/clock_judge.c", "sim/clock_lie.c", "sim/clock_world.c", "bench/clock_sim.c"]
JOB = ["src/core/failover", "src/core/traffic", "src/transport", "src/plugin"]
CONTROLLER = ["src/service/controller", "src/platform/store", "src/platform/http", "src/core/fleet", "proto"]
BRAIN = ["src/core/brain", "src/core/fleet", "src/core/alert", "src/core/finding", "sim/fleet_world.c", "sim/incident_world.c"]
LOCATE = ["src/base", "src/stats", "src/core/fleet/locate*", "bench/locate_world.c", "bench/truth_locate.c"]
# The beginning of a row's id, and the code of such rows. The longest match counts.
PATHS = {
    "alert.": ["src/core/alert", "src/service/alert"],
    "audit.": ["src/core/audit", "src/service/audit", "src/service/inspect", "test/audit", "bench/audit.py", "bench/lab/audit_harm.py", "bench/audit_trials.c", "bench/audit_fleets.c", "bench/audit_matrix.c", "bench/audit_search.c", "bench/audit_outlier.c"],
    "audit.gpu.": ["src/core/audit/fact*", "src/service/inspect", "src/platform/gpu", "tools/gpu-check", "tools/gpu_facts.py"],
    "audit.sim.tally": ["src/core/audit", "src/core/mesh/peers.c", "bench/audit_tally.c"],
    "audit.lab.tally": ["src/core/audit", "src/service/controller/audit", "src/service/agent/matrix.c", "src/service/inspect/agent.c", "bench/lab/audit_tally.py"],
    "audit.lab.matrix": ["src/core/audit/matrix*", "src/service/controller/audit", "src/service/agent/matrix.c", "bench/lab/audit_matrix.py"],
    "audit.lab.nccl": ["src/core/audit/perf*", "src/core/audit/ways*", "src/core/audit/search*", "src/core/audit/outlier*", "src/core/audit/rules_tests.c",
                       "src/service/controller/audit", "src/service/agent/perf.c", "src/app/perf", "bench/audit_tests.py"],
    "api.now": ["src/clocklib", "src/wire/clock_page.c", "src/wire/clock_page.h", "bench/api_now.c"],
    "brain.sim.": BRAIN, "brain.replay": BRAIN + ["src/service/record"], "locate.healthy": BRAIN,
    "brain.clocks": ["src/core", "src/service/controller"], "brain.parsers": ["src/core", "src/service/controller", "src/service/alert", "tools/tidy"],
    "locate.": LOCATE, "gray.": LOCATE, "outage.": LOCATE, "locate.agents": SIM, "locate.per_fault": SIM, "gray.s.agents": SIM, "truth.": SIM,
    "delay.": SIM, "size.": SIM, "class.": SIM, "brownout.": SIM,
    "clock.": CLOCKS, "liar.": CLOCKS,
    "clock.lab.": AGENT, "clock.restart.lab": AGENT, "clock.step.lab": AGENT, "clock.vs.chrony": AGENT,
    "clock.fabrics.": SIM, "clock.saturated.": SIM, "clock.noclass.": SIM, "clock.rate.": SIM, "clock.wander.": SIM, "clock.partition.": SIM,
    "clock.sim.fabric.": SIM, "clock.step.sim": SIM, "clock.freq.sim": SIM, "clock.suspend.": SIM, "clock.night.": SIM, "clock.start.restart": SIM,
    "clock.leaf.": ["src/core/clock", "src/base"],
    "contention.": JOB, "failover.": JOB, "job.": JOB, "perf.": JOB, "sim.job.": JOB + ["sim/job_*"],
    "controller.": CONTROLLER, "members.": CONTROLLER + ["src/service/agent", "src/core/mesh", "src/core/node", "bench/members.c"], "store.": ["src/platform/store"],
    "page.": ["web", "src/service/controller/api"], "audit.reader": ["web", "src/app/foliot_audit*", "README.md", "docs/audit.md"],
    "roce.": JOB + ["src/platform/rdma", "lab/roce-vm"], "roce.ud.": ["src/platform/rdma", "src/core/mesh", "lab/roce-vm"],
    "cost.agent": AGENT, "cost.scale.": SIM, "clock.cost.": SIM, "false.": SIM, "links.": SIM, "mesh.": SIM, "owd.": SIM, "scenario.": SIM,
    "false.lab": AGENT, "harm.": AGENT,
    "swarm.": SIM + ["sim/swarm.c", "sim/swarm_draw.c", "sim/invariant.c", "sim/invariant_reach.c"], "swarm.lab": AGENT + ["sim/swarm_draw.c", "lab"],
    "swarm.mutants": SIM + ["bench/swarm_mutants.py"], "swarm.strangers": SIM + ["test/swarm/strangers.py"],
}


def about(name):
    """The code of a row. Without it the row is never stale."""
    fitting = [prefix for prefix in PATHS if name.startswith(prefix)]
    return PATHS[max(fitting, key=len)] if fitting else []


def held(row, goal):
    """True if the value reaches that goal."""
    value, better = row["value"], row.get("better") or "lower"
    return value <= goal if better == "lower" else value >= goal if better == "higher" else value == goal


def missed(row):
    """True for a must that isn't reached, or that has no value."""
    must = row.get("must")
    return must is not None and (row.get("value") is None or not held(row, must))


def git_at(top, *words):
    return subprocess.run(["git", *words], cwd=top, capture_output=True, text=True, errors="replace", check=False)


# A string, a character, or a comment, which is left out.
WORDS_OF_C = re.compile(r"""'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*""", re.DOTALL)


@functools.lru_cache(maxsize=None)
def code_of(top, blob):
    """A C file's code, without comments and layout."""
    text = git_at(top, "cat-file", "blob", blob).stdout
    return hash("".join(WORDS_OF_C.sub(lambda found: " " if found[0].startswith("/") else found[0], text).split()))


@functools.lru_cache(maxsize=None)
def changed(top, commit, *paths):
    """True if that code was different then, or if the commit isn't here. A comment is no code. None: it isn't known."""
    def git(*words):
        return git_at(top, *words)

    # :100644 100644 BLOB BLOB M	PATH
    found = git("diff", "--raw", "--no-abbrev", "--no-renames", commit, "HEAD", "--", *paths)
    if found.returncode == 0:
        for line in found.stdout.splitlines():
            fields, path = line.split("\t", 1)
            _, _, old, new, kind = fields.split()
            if kind != "M" or not path.endswith((".c", ".h")) or code_of(top, old) != code_of(top, new):
                return True
        return False
    return True if git("rev-parse", "--is-shallow-repository").stdout.strip() == "false" else None


def stale(row, top):
    """True if its code has changed since the measurement."""
    commit, paths = (row.get("commit") or "").split("-dirty")[0], about(str(row.get("id", "")))
    return bool(commit and paths) and changed(top, commit, *paths) is True


def verdict(row, top, strong=str):
    """In words; `strong` marks what must not be overlooked."""
    words = []
    for name in ("must", "aim"):
        goal = row.get(name)
        if goal is not None and (name == "must" or row.get("value") is not None):
            good = row.get("value") is not None and held(row, goal)
            words.append(f"{name} met" if good else strong("must missed") if name == "must" else "aim missed")
    if row.get("value") is None:
        words.append(row.get("note") or "not measured")
    text = ", ".join(words)
    return f"{strong('stale')}{': then ' + text if text else ''}" if stale(row, top) else text
