"""What a network namespace leaves open is closed by a filter of system calls (seccomp(2), BPF).

Sockets of a virtual machine to its host (AF_VSOCK) and other families know no network namespace, and io_uring
makes sockets without the system call that a filter could look at. The filter is data for bubblewrap's
`--seccomp`; it is assembled here, for the two processors on which its numbers were looked up.
"""

from __future__ import annotations

import errno
import functools
import os
import platform
import socket
import struct
import sys
from dataclasses import dataclass

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
"""BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_JMP|JGE|K and BPF_RET|K (linux/bpf_common.h)."""
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
"""Offsets in struct seccomp_data; of an argument the lower half, on little-endian machines."""

KILL, ALLOW, _ERROR = 0x80000000, 0x7FFF0000, 0x00050000
NOT_THERE, NO_FAMILY = _ERROR | errno.ENOSYS, _ERROR | errno.EAFNOSUPPORT
"""What a kernel answers that was built without it: programs have a second way for that."""

FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
"""All of these end at the border of a network namespace, or at a path that can be covered."""
IO_URING = (425, 426, 427)
"""setup, enter, register; the same numbers everywhere."""
FOREIGN_BIT = 0x40000000
"""Set in the numbers of x32, a second table of the same calls."""


@dataclass(frozen=True)
class Machine:
    """The numbers of one processor (linux/audit.h, asm/unistd.h)."""

    architecture: int
    socket: int
    socketpair: int
    x32: bool = False


MACHINES = {
    "x86_64": Machine(0xC000003E, 41, 53, x32=True),
    "aarch64": Machine(0xC00000B7, 198, 199),
}


@dataclass(frozen=True)
class Step:
    """One instruction; the jumps name a later label, empty for the next instruction."""

    code: int
    value: int
    then: str = ""
    otherwise: str = ""
    label: str = ""


def _steps(machine: Machine) -> list[Step]:
    steps = [
        Step(_LOAD, _ARCHITECTURE),
        # A program of another architecture has other numbers, so nothing here would hold for it.
        Step(_EQUAL, machine.architecture, otherwise="kill"),
        Step(_LOAD, _NUMBER),
    ]
    if machine.x32:
        steps.append(Step(_AT_LEAST, FOREIGN_BIT, then="not there"))
    steps += [Step(_EQUAL, number, then="not there") for number in IO_URING]
    steps += [
        Step(_EQUAL, machine.socket, then="family"),
        Step(_EQUAL, machine.socketpair, then="family", otherwise="allow"),
        Step(_LOAD, _FIRST_ARGUMENT, label="family"),
        *(Step(_EQUAL, family, then="allow") for family in FAMILIES),
        Step(_RETURN, NO_FAMILY),
        Step(_RETURN, NOT_THERE, label="not there"),
        Step(_RETURN, KILL, label="kill"),
        Step(_RETURN, ALLOW, label="allow"),
    ]
    return steps


def assemble(machine: Machine) -> bytes:
    """The filter as an array of struct sock_filter."""
    steps = _steps(machine)
    places = {step.label: index for index, step in enumerate(steps) if step.label}

    def distance(label: str, index: int) -> int:
        return places[label] - index - 1 if label else 0

    return b"".join(
        struct.pack("<HBBI", step.code, distance(step.then, index), distance(step.otherwise, index), step.value)
        for index, step in enumerate(steps)
    )


@functools.cache
def rules() -> bytes:
    """The filter for this machine; empty where there is none for it."""
    machine = MACHINES.get(platform.machine())
    # A 32-bit system on a 64-bit kernel would be killed by it as foreign.
    if machine is None or sys.maxsize < 2**32 or not os.path.exists("/proc/sys/kernel/seccomp/actions_avail"):
        return b""
    return assemble(machine)
