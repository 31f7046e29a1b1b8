#!/usr/bin/env python3
"""lab/roce-vm/audit without a machine: is a fault named? Is a fleet well? usage: test_roce_audit.py AUDIT"""
import importlib.machinery
import importlib.util
import sys

LOADER = importlib.machinery.SourceFileLoader("roce_audit", sys.argv[1])
sys.dont_write_bytecode = True
AUDIT = importlib.util.module_from_spec(importlib.util.spec_from_loader("roce_audit", LOADER))
LOADER.exec_module(AUDIT)


def check(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: expected {expected}, found {found}")


def results(*more):
    """Results of a well fleet. `more` replaces some, or adds to them."""
    hosts = {check: AUDIT.AGENTS if check in AUDIT.CONNECTED else range(AUDIT.HOSTS) for check in AUDIT.WATCHED}
    well = {(check, f"h{i}"): "pass" for check, those in hosts.items() for i in those}
    well.update({("cfg.mem.swap", "h0"): "fail"})
    well.update(dict(more))
    return [{"check": check, "host": host, "status": status} for (check, host), status in well.items() if status]


def fault(*more):
    return AUDIT.names(results(), results(*more), ("be.conn.mtu", "be.conn.paths"), "h3")


check("a fleet without a fault", AUDIT.is_well(results()), True)
check("a check is unknown", AUDIT.is_well(results((("be.conn.mtu", "h2"), "unknown"))), False)
check("a check has no result for a host", AUDIT.is_well(results((("be.roce.mtu", "h4"), None))), False)
check("a warning", AUDIT.is_well(results((("be.link.active", "h1"), "warn"))), False)
check("a check that fails without the fault", fault(), False)
check("the check of this fault", fault((("be.conn.mtu", "h3"), "fail")), True)
check("either of two", fault((("be.conn.paths", "h3"), "fail"), (("be.conn.matrix", "h3"), "fail")), True)
check("another check of that host alone", fault((("be.conn.matrix", "h3"), "fail")), False)
check("another host", fault((("be.conn.mtu", "h2"), "fail")), False)
check("another host, too", fault((("be.conn.mtu", "h3"), "fail"), (("be.conn.mtu", "h2"), "fail")), False)
check("another host has a warning", fault((("be.conn.mtu", "h3"), "fail"), (("be.conn.mtu", "h2"), "warn")), True)
