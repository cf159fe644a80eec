"""Processor time of this process and of its children, which every budget counts: it does not depend on what else runs."""

from __future__ import annotations

import os
import time
from contextlib import suppress

#: A budget of s seconds ends work that uses no processor, because it sleeps or waits, after WAITING*s + PAUSE seconds on the wall.
#: 20: beside ten other processes of one core each, the work still gets its whole budget before. PAUSE: for budgets below 1 s.
WAITING, PAUSE = 20.0, 5.0


def processor_seconds(running: bool = False) -> float:
    """CPU seconds that this process and its finished children have used; with `running` those of living children, too.

    Living children are counted where the system shows them (/proc); elsewhere they count when they end.

    >>> before = processor_seconds()
    >>> sum(k*k for k in range(10**5)) > 0 and processor_seconds() >= before
    True
    """
    children = os.times()  # of a resolution of 10 ms; that of this process has one of nanoseconds
    return time.process_time() + children.children_user + children.children_system + (_of_living_children() if running else 0.0)


def _of_living_children() -> float:
    total, found = 0.0, [os.getpid()]
    ticks = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
    while found:
        parent = found.pop()
        with suppress(OSError, ValueError):
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children", encoding="ascii") as listed:
                    children = [int(pid) for pid in listed.read().split()]
                for child in children:
                    total += _of_process(child)/ticks
                    found.append(child)
    return total


def _of_process(pid: int) -> int:
    """Ticks that a process and its finished children have used; 0 where it has just ended."""
    with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as listed:
        fields = listed.read().rpartition(")")[2].split()
        return sum(int(n) for n in fields[11:15])  # utime, stime, cutime, cstime of proc(5)
    return 0
