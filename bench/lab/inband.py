#!/usr/bin/env python3
"""inband.py: the in-band delays of a job's messages compared with the truth.

Two jobs do the same at the same time over the same NICs of a lab, with agents and with clocks up to hours apart. One job
stamps with Foliot's fleet time, as any job does. The other stamps with the machine's own clock, which all hosts share. All
paths of the lab are equal, and nothing queues. So between two hosts both jobs measure the same least delay every few seconds,
and their difference is the error. It is compared with the bound that the first job's pages state for that lane, which is the
clock's own bound.
"""
import sys
import time

from job import FABRIC, Job
from world import Lab, Missing, Rows, need_root, quantile, seconds

NAME = "bench-inband"
READ_S = 5  # a page's floor is of the last 5 to 10 s


def floors(job):
    """(receiving rank's address, sending rank's address) -> least delay over the lanes between them, and its bound; ns."""
    found = {}
    for lane in job.pages.lanes():
        key = lane["own_address"], lane["peer_address"]
        if key not in found or lane["floor"] < found[key][0]:
            found[key] = lane["floor"], lane["bound"]
    return found


def inband(rows):
    """least delay of each ordered pair of NICs, by fleet time compared with the machine's clock"""
    shares, errors, bounds = [], [], []
    with Lab(NAME, FABRIC) as lab:
        lab.wait_synced()
        time.sleep(seconds(20))
        last = seconds(60) + 5
        arguments = {"operation": "alltoall", "size": "64K", "message": "4K", "wait_us": 500, "iterations": 1}
        with Job(lab, last, pages=True, **arguments) as fleet, Job(lab, last, true=True, **arguments) as true:
            end = time.monotonic() + last - 3
            time.sleep(2 * READ_S)
            while time.monotonic() < end:
                seen, truth = floors(fleet), floors(true)
                for key in seen.keys() & truth.keys():
                    if seen[key][1] != 0xffffffff:
                        errors.append(abs(seen[key][0] - truth[key][0]))
                        bounds.append(seen[key][1])
                        shares.append(errors[-1] / seen[key][1])
                time.sleep(READ_S)
    if not shares:
        raise Missing("no lane had a delay with a bound")
    command = "bench/lab/inband.py"
    rows.add("job.lab.inband.error_of_bound", quantile(shares, 0.99), "of the bound", 1, None, runs=len(shares), command=command,
             note=f"p99; error p50 {quantile(errors, 0.5) / 1e3:.1f}, p99 {quantile(errors, 0.99) / 1e3:.1f} us; bound p50 "
                  f"{quantile(bounds, 0.5) / 1e3:.1f} us")
    rows.add("job.lab.inband.error_us", quantile(errors, 0.99) / 1e3, "us", runs=len(errors), command=command,
             note="the same: p99 of the error; half of it is the two jobs' own scatter")


if __name__ == "__main__":
    need_root()
    ROWS = Rows("job-inband")
    ROWS.measure([("job.lab.inband.error_of_bound", "of the bound", 1, None), ("job.lab.inband.error_us", "us", None, None)], inband)
    sys.exit(ROWS.finish())
