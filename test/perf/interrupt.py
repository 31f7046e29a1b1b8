"""interrupt(PROCESS): what a terminal does at Ctrl-C to a command and the ranks that it started.

They stay in the test's own process group, so they end with the test if it exceeds its limit.
"""
import os
import signal


def interrupt(process, number=signal.SIGINT):
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as children:
        ranks = [int(word) for word in children.read().split()]
    for pid in (*ranks, process.pid):
        try:
            os.kill(pid, number)
        except ProcessLookupError:  # it has ended
            pass
