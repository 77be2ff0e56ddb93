"""The filter of system calls: judged as the kernel judges it, and then tried on real programs."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import socket
import struct
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council_tui.containers import seccomp
from council_tui.containers.sandbox import probe
from council_tui.containers.seccomp import ALLOW, FAMILIES, IO_URING, KILL, MACHINES, NO_FAMILY, NOT_THERE, Machine

EVERY = list(MACHINES.values())
WORD = st.integers(0, 2**32 - 1)
BLUETOOTH = 31
"""AF_BLUETOOTH, which not every Python names."""
WHY = probe(shutil.which("bwrap")) or ("" if seccomp.rules() else "no filter is known for this processor")
filtered = pytest.mark.skipif(bool(WHY), reason=WHY or "filtered")


def judge(machine: Machine, architecture: int, number: int, first: int = 0) -> int:
    """What the filter answers, as an interpreter of classic BPF finds it."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, first, *[0] * 5)
    steps = list(struct.iter_unpack("<HBBI", seccomp.assemble(machine)))
    at = accumulator = 0
    while True:
        code, then, otherwise, value = steps[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif code == 0x06:
            return value
        else:
            at += then if (accumulator == value if code == 0x15 else accumulator >= value) else otherwise


@pytest.mark.parametrize("machine", EVERY)
@given(family=WORD, above=WORD)
def test_sockets_are_made_of_the_families_that_end_at_a_namespace_and_of_no_other(machine, family, above):
    for number in (machine.socket, machine.socketpair):
        answer = judge(machine, machine.architecture, number, above << 32 | family)
        assert answer == (ALLOW if family in FAMILIES else NO_FAMILY)


@pytest.mark.parametrize("machine", EVERY)
@given(number=WORD)
def test_every_other_call_passes_but_io_uring_and_the_second_table(machine, number):
    if number in (machine.socket, machine.socketpair):
        return
    closed = number in IO_URING or (machine.x32 and number >= seccomp.FOREIGN_BIT)
    assert judge(machine, machine.architecture, number) == (NOT_THERE if closed else ALLOW)


@pytest.mark.parametrize("machine", EVERY)
@given(architecture=WORD, number=WORD)
def test_a_call_of_another_architecture_ends_the_program(machine, architecture, number):
    if architecture != machine.architecture:
        assert judge(machine, architecture, number) == KILL


def test_the_families_are_the_four_and_af_vsock_is_none_of_them():
    for machine in EVERY:
        for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
            assert judge(machine, machine.architecture, machine.socket, family) == ALLOW
        for family in (socket.AF_VSOCK, socket.AF_PACKET, socket.AF_ALG, BLUETOOTH):
            assert judge(machine, machine.architecture, machine.socket, family) == NO_FAMILY


def test_a_machine_whose_numbers_are_not_known_has_no_filter(monkeypatch: pytest.MonkeyPatch):
    unknown = ("riscv64", sys.maxsize), ("x86_64", 2**31 - 1)
    for name, size in unknown:
        seccomp.rules.cache_clear()
        monkeypatch.setattr(platform, "machine", lambda name=name: name)
        monkeypatch.setattr(sys, "maxsize", size)
        assert seccomp.rules() == b""
    monkeypatch.undo()
    seccomp.rules.cache_clear()


def run(*argv: str, filter_it: bool = True) -> subprocess.CompletedProcess[bytes]:
    """A program in a namespace with the filter, as a contract that forbids the network has it."""
    ours, theirs = os.pipe()
    os.write(theirs, seccomp.rules())
    os.close(theirs)
    box = ["bwrap", "--bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-net", "--unshare-pid"]
    box += ["--seccomp", str(ours)] if filter_it else []
    try:
        return subprocess.run([*box, *argv], capture_output=True, pass_fds=(ours,), timeout=30, check=False)
    finally:
        os.close(ours)


def python(code: str, **how: bool) -> subprocess.CompletedProcess[bytes]:
    """The same for a few lines of Python."""
    return run(sys.executable, "-I", "-S", "-c", code, **how)


CALLS = """
import ctypes, errno, socket
libc = ctypes.CDLL(None, use_errno=True)
def said(number, *arguments):
    return errno.errorcode.get(ctypes.get_errno(), "0") if libc.syscall(number, *arguments) < 0 else "made"
for family in (socket.AF_VSOCK, socket.AF_PACKET, socket.AF_ALG):
    try:
        socket.socket(family, socket.SOCK_DGRAM if family == socket.AF_PACKET else socket.SOCK_SEQPACKET)
    except OSError as error:
        print(errno.errorcode[error.errno])
print(said(425, 1, ctypes.create_string_buffer(256)), said(426, 0, 0, 0, 0, 0, 0), said(427, 0, 0, 0, 0))
"""


@filtered
def test_af_vsock_and_io_uring_are_not_there_for_a_real_program():
    done = python(CALLS)
    assert done.stdout.split() == [b"EAFNOSUPPORT"] * 3 + [b"ENOSYS"] * 3


FOREIGN = """
import ctypes, mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("b814000000cd80c3"))  # getpid by the table of 32-bit programs
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
print("it passed")
"""


@filtered
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the other tables are those of x86_64")
def test_the_other_tables_of_calls_are_no_way_around_it():
    done = python("import ctypes; print(ctypes.CDLL(None, use_errno=True).syscall(0x40000000 + 39))")
    assert done.stdout == b"-1\n"
    done = python(FOREIGN)
    # A kernel without that table ends it by itself.
    assert done.returncode - 128 in (signal.SIGSYS, signal.SIGSEGV)
    assert done.stdout == b""


ORDINARY = """
import asyncio, multiprocessing, os, pty, select, selectors, signal, socket, subprocess, tempfile, threading
assert subprocess.run(["sh", "-c", "echo a | tr a b"], capture_output=True).stdout == b"b\\n"
done = []
threads = [threading.Thread(target=done.append, args=(n,)) for n in range(8)]
[t.start() for t in threads], [t.join() for t in threads]
assert len(done) == 8
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(abs, [-1, -2]) == [1, 2]
async def talk():
    server = await asyncio.start_server(lambda r, w: (w.write(b"hi"), w.close()), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    assert await reader.read() == b"hi"
    child = await asyncio.create_subprocess_exec("true")
    assert await child.wait() == 0
asyncio.run(talk())
a, b = socket.socketpair()
poll = select.epoll()
poll.register(b, select.EPOLLIN)
a.send(b"x")
assert poll.poll(5) == [(b.fileno(), select.EPOLLIN)]
master, slave = pty.openpty()
assert socket.if_nameindex() == [(1, "lo")]
print("all of it")
"""


@filtered
def test_ordinary_programs_do_not_notice_it(tmp_path):
    assert python(ORDINARY).stdout == b"all of it\n"
    script = "git init -q . && git -c user.name=a -c user.email=b commit -q --allow-empty -m c && git log --format=%s"
    assert run("sh", "-c", f"cd {tmp_path} && {script}").stdout == b"c\n"
    bash = 'coproc cat; echo hi >&"${COPROC[1]}"; read -u "${COPROC[0]}" x; diff <(echo "$x") <(echo hi) && echo same'
    if shutil.which("bash"):
        assert run("bash", "-c", bash).stdout == b"same\n"


@filtered
@pytest.mark.skipif(not shutil.which("node"), reason="there is no node on this machine")
def test_a_program_on_libuv_does_not_notice_it_either():
    code = (
        "const fs = require('fs/promises'), {exec} = require('child_process');"
        "fs.readFile('/proc/version').then(() => exec('echo', (error) => console.log(error || 'fine')))"
    )
    assert run("node", "-e", code).stdout == b"fine\n"


@filtered
def test_without_the_filter_the_namespace_leaves_io_uring_or_vsock_open():
    done = python(CALLS, filter_it=False)
    if done.stdout.count(b"ENOSYS") + done.stdout.count(b"EPERM") >= 2 and done.stdout.count(b"EAFNOSUPPORT") == 3:
        pytest.skip("this kernel was built without either")
    assert done.stdout != python(CALLS).stdout
