"""interrupt(PROCESS): what a terminal does to a command and the ranks that it started, at Ctrl-C.

They stay in the test's own process group: what ends the test at its limit ends them as well.
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
