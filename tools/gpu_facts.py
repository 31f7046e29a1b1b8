"""gpu_facts.py: facts of NVIDIA's GPUs as foliot-inspect reads them, compared with nvidia-smi's own query: for tools/gpu-check.

A fact is equal if both have the same value, or if for both the GPU doesn't have it. Values that change meanwhile (errors, reasons
for a lower clock) are read three times. Not compared, because no query has it: gpu.runtime, gpu.nvlinks, gpu.replays, gpu.fabric.
"""
import json
import subprocess

ON = {"Disabled": "0", "Enabled": "1"}.get
ROWS, GPUS = "--query-remapped-rows=gpu_bus_id,", "--query-gpu=pci.bus_id,"
# The query, its fields (a driver has the first or the other one), and the conversion to the fact's value.
QUERIES = {
    "gpu.driver": (GPUS, ["driver_version"], str),
    "gpu.model": (GPUS, ["name"], str),
    "gpu.vbios": (GPUS, ["vbios_version"], str),
    "gpu.ecc": (GPUS, ["ecc.mode.current"], ON),
    "gpu.ue": (GPUS, ["ecc.errors.uncorrected.volatile.total"], str),
    "gpu.remap_pending": (ROWS, ["remapped_rows.pending"], lambda text: {"No": "0", "Yes": "1"}.get(text, text)),
    "gpu.remap_failed": (ROWS, ["remapped_rows.failure"], lambda text: {"No": "0", "Yes": "1"}.get(text, text)),
    "gpu.power": (GPUS, ["enforced.power.limit"], lambda text: str(round(float(text) * 1000))),
    "gpu.clock": (GPUS, ["clocks.max.sm"], str),
    "gpu.throttle": (GPUS, ["clocks_event_reasons.active", "clocks_throttle_reasons.active"], lambda text: hex(int(text, 16))),
    "gpu.persistence": (GPUS, ["persistence_mode"], ON),
    "gpu.mig": (GPUS, ["mig.mode.current"], ON),
    "gpu.compute": (GPUS, ["compute_mode"], {"Default": "0", "Exclusive_Thread": "1", "Prohibited": "2", "Exclusive_Process": "3"}.get),
}


def address(text):
    """00000000:1B:00.0 in the form of sysfs."""
    domain, rest = text.split(":", 1)
    return f"{int(domain, 16):04x}:{rest.lower()}"


def ask(smi, fact):
    """{address: value as the fact has it, or "absent"}; None: this nvidia-smi has no such field."""
    option, fields, form = QUERIES[fact]
    for field in fields:
        done = subprocess.run([smi, option + field, "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=120, check=False)
        if done.returncode == 0 and "not a valid field" not in done.stdout:
            rows = [[cell.strip() for cell in line.split(",", 1)] for line in done.stdout.splitlines() if "," in line]
            return {address(gpu): "absent" if text.strip("[]") in ("N/A", "Not Supported") else form(text) for gpu, text in rows}
    return None


def read(inspect):
    """{(fact, subject): value or state}"""
    done = subprocess.run(inspect, capture_output=True, text=True, timeout=120, check=True)
    return {(f["fact"], f["subject"]): f.get("state", f["value"]) for f in json.loads(done.stdout)["facts"] if f["fact"].startswith("gpu.")}


def once(inspect, smi):
    """{(fact, GPU): (ours, theirs)}, and the facts that this nvidia-smi has no field for."""
    ours, pairs, untold = read(inspect), {}, []
    for fact in QUERIES:
        theirs = ask(smi, fact)
        if theirs is None:
            untold.append(fact)
            continue
        for gpu, value in theirs.items():
            pairs[fact, gpu] = ours.get((fact, "" if fact == "gpu.driver" else gpu)), value
    gpus = {gpu for _, gpu in pairs}
    for gpu in gpus | {subject for fact, subject in ours if fact == "gpu.library"}:
        pairs["gpu.library", gpu] = ("gpu.library", gpu) in ours, gpu in gpus
    return pairs, untold


def compare(inspect, smi="nvidia-smi"):
    """Returns the number of compared facts, those that differ each time (as `once` has them), and those without a field."""
    pairs, untold = once(inspect, smi)
    differ = {at: pair for at, pair in pairs.items() if pair[0] != pair[1]}
    for _ in range(2):
        if differ:
            again, _ = once(inspect, smi)
            differ = {at: again[at] for at in differ if at in again and again[at][0] != again[at][1]}
    return len(pairs), differ, untold
