#!/usr/bin/env python3
"""tools/gpu_facts.py, with a fake NVML and a fake nvidia-smi that have the same four GPUs.
usage: test_gpu_facts.py FOLIOT-INSPECT"""
import os
import stat
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(TOP, "tools")]
import gpu_facts  # noqa: E402
import machine  # noqa: E402

INSPECT = os.path.abspath(sys.argv.pop(1))
SMI = """#!/bin/sh
[ "$2" = --format=csv,noheader,nounits ] || exit 3
case $1 in
%s
*) echo "Field ${1##*,} is not a valid field to query."; exit 2 ;;
esac
for bus in %s; do echo "00000000:$bus:00.0, $text"; done
"""
WELL = {"driver_version": "550.54.15", "name": "NVIDIA H100 80GB HBM3", "vbios_version": "96.00.74.00.01", "ecc.mode.current": "Enabled",
        "ecc.errors.uncorrected.volatile.total": "0", "remapped_rows.pending": "No", "remapped_rows.failure": "0", "enforced.power.limit": "700.00",
        "clocks.max.sm": "1980", "clocks_throttle_reasons.active": "0x0000000000000000", "persistence_mode": "Enabled", "mig.mode.current": "Disabled",
        "compute_mode": "Default"}


class TestGpuFacts(unittest.TestCase):
    def compare(self, says, mood="", gpus="1B 3D 9B BB"):
        with tempfile.TemporaryDirectory() as folder:
            machine.build(os.path.join(folder, "root"), machine.files("roce", 1))
            smi = os.path.join(folder, "nvidia-smi")
            with open(smi, "w", encoding="utf-8") as file:
                file.write(SMI % ("\n".join(f"--query-{'remapped-rows=gpu_bus_id' if 'rows' in field else 'gpu=pci.bus_id'},{field}) text='{text}' ;;"
                                            for field, text in says.items()), gpus))
            os.chmod(smi, os.stat(smi).st_mode | stat.S_IXUSR)
            os.environ["FAKE_NVML"] = mood
            return gpu_facts.compare([INSPECT, "--root", os.path.join(folder, "root"), "--gpu-library", os.environ["FAKE_NVML_LIBRARY"], "--deadline", "60000"], smi)

    def test_the_same(self):
        self.assertEqual(self.compare(WELL), (4 * 14, {}, []))

    def test_what_differs_is_named(self):
        for field, text, fact, pair in (("name", "NVIDIA H200", "gpu.model", ("NVIDIA H100 80GB HBM3", "NVIDIA H200")),
                                        ("mig.mode.current", "Enabled", "gpu.mig", ("0", "1")), ("mig.mode.current", "[N/A]", "gpu.mig", ("0", "absent")),
                                        ("enforced.power.limit", "650.00", "gpu.power", ("700000", "650000"))):
            count, differ, untold = self.compare(WELL | {field: text})
            self.assertEqual((count, {fact for fact, _ in differ}, set(differ.values()), len(differ), untold), (56, {fact}, {pair}, 4, []))

    def test_a_gpu_more_or_less(self):
        count, differ, _ = self.compare(WELL, gpus="1B 3D 9B")
        self.assertEqual((count, differ), (3 * 13 + 4, {("gpu.library", "0000:bb:00.0"): (True, False)}))

    def test_what_the_library_does_not_tell(self):
        _, differ, _ = self.compare(WELL, "error 15 nvmlDeviceGetRemappedRows")
        self.assertEqual({fact: pair for (fact, _), pair in differ.items()}, {"gpu.remap_pending": ("unreadable", "0"), "gpu.remap_failed": ("unreadable", "0")})

    def test_a_field_that_an_older_one_lacks(self):
        older = {k: v for k, v in WELL.items() if k != "mig.mode.current"}
        self.assertEqual(self.compare(older), (4 * 13, {}, ["gpu.mig"]))


unittest.main(verbosity=2)
