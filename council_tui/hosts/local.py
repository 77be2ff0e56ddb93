"""This machine as a host: the supervisor's end of the nursery."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from council_tui import __version__
from council_tui.domain.errors import CouncilError
from council_tui.hosts.descriptors import as_given
from council_tui.runner import guard

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from council_tui.runner.spec import RunnerSpec

PACKET = 64 * 1024
LOOK_SECONDS = 0.05
LEAVING_LOOK_SECONDS = 0.01
PING_SECONDS = 1.0
"""Between two looks at the nursery."""
WAKE_SECONDS = 2.0
"""Of silence, after which the nursery is told to go on: somebody may have stopped it."""
DEAF_SECONDS = 10.0
"""Of silence, after which it is ended; whoever waits for it would wait for ever."""
FIRST_SECONDS = 60.0
"""The same before its first word: it imports, on a machine that may be busy."""
KILLED_SECONDS = 5.0
"""That a nursery which was killed has to be gone; what the kernel does not end then is left behind."""
NO_PROCESS = "this machine cannot start another process"
LISTING_SECONDS = 5.0
"""That a nursery has to tell a new supervisor of its runners."""


class HostFailed(CouncilError):
    """The host could not start a runner."""


@dataclass(frozen=True)
class Started:
    """A runner that exists."""

    pid: int
    start_time: int
    """Clock ticks after boot: with the pid and the boot id, its identity."""


@dataclass(frozen=True)
class Ward:
    """A runner that a nursery holds for whoever comes next."""

    run: str
    start_time: int
    status: int | None = None
    """Raw wait status, if it has ended."""
    clean: bool = False
    """Whether nothing that it guarded is left."""


class LocalHost:
    """Starts runners through a nursery and hears of their ends. `door`: where a later supervisor finds it."""

    def __init__(self, errors: Path, door: Path) -> None:
        self._errors = errors
        self._door = door
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._nursery: guard.Process | None = None
        self._waiting: dict[int, asyncio.Future[Started]] = {}
        self._next_id = 0
        self._sending = asyncio.Lock()
        self._early: dict[int, list[dict[str, Any]]] = {}
        """News of runners by pid, as long as whoever asked for them has not been told that they exist."""
        self._living: dict[int, int] = {}
        """Start time of every runner by its pid."""
        self._watch: asyncio.Task[None] | None = None
        self._vigil: asyncio.Task[None] | None = None
        self._heard_at = 0.0
        """When the nursery last said anything, on the loop's clock."""
        self._answered = False
        self.on_exit: Callable[[int, int | None], None] = lambda pid, status: None
        """Called with (pid, raw wait status) when a runner has ended; None when nobody could wait for it."""
        self.on_clean: Callable[[int], None] = lambda pid: None
        """Called when nothing that the runner guarded is left."""
        self.on_gone: Callable[[], None] = lambda: None
        """Called when the nursery itself is gone."""

    @property
    def pid(self) -> int | None:
        """The nursery's pid."""
        return self._nursery.pid if self._nursery else None

    def start(self) -> None:
        """Exec the nursery; it is ready when it answers the first fork. Raises OSError, and `HostFailed`."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                self._process = self._exec(theirs.fileno())
            self._nursery = guard.read_process(self._process.pid)
        except BaseException:
            # Nobody at the other end: one that was started all the same leaves.
            ours.close()
            raise
        self._use(ours)
        self.listen()

    def _exec(self, fd: int) -> subprocess.Popen[bytes]:
        # Appends: a nursery of an earlier supervisor may still be writing. A FIFO in its place is waited for by nobody.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(self._errors, flags, 0o600), "wb") as errors:
            argv = [sys.executable, "-m", "council_tui.hosts.nursery", str(fd), str(self._door)]
            try:
                return subprocess.Popen(
                    # What it starts is to have the limit that we were given.
                    as_given(argv),
                    stdin=subprocess.DEVNULL,
                    stdout=errors,
                    stderr=errors,
                    pass_fds=(fd,),
                    start_new_session=True,
                    cwd="/",
                )
            except OSError as error:
                raise HostFailed(f"{NO_PROCESS}: {error.strerror}; end something, then start again") from None

    async def adopt(self, nursery: guard.Process) -> dict[int, Ward] | None:
        """Take over the nursery of a supervisor that is gone; its runners by pid, also those whose end is news.

        None when it does not answer, belongs to someone, or is of another version: then it is as it was.
        Nothing is told of the runners before `listen`.
        """
        # One that somebody stopped would not answer.
        guard.send(nursery, signal.SIGCONT)
        try:
            connected, wards = await asyncio.to_thread(_ask_for_runners, self._door, nursery.pid)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        self._nursery, self._answered = nursery, True
        self._living = {pid: ward.start_time for pid, ward in wards.items() if ward.status is None}
        self._use(connected)
        return wards

    def _use(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self._socket = connected

    def listen(self) -> None:
        """Hear what the nursery tells from now on."""
        if self._socket is not None and self._nursery is not None:
            loop = asyncio.get_running_loop()
            loop.add_reader(self._socket, self._read)
            self._vigil = loop.create_task(self._keep_awake(self._nursery))

    async def spawn(self, spec: RunnerSpec) -> Started:
        """Start a runner. Raises `HostFailed`."""
        if self._socket is None:
            raise HostFailed("the nursery is not running")
        loop = asyncio.get_running_loop()
        self._next_id += 1
        ident = self._next_id
        future: asyncio.Future[Started] = loop.create_future()
        self._waiting[ident] = future
        packet = json.dumps({"fork": asdict(spec), "id": ident}).encode()
        waits: set[asyncio.Future[Any]] = {future}
        sending = None
        if self._sending.locked() or not self._sent(packet):
            sending = loop.create_task(self._send(packet))
            waits.add(sending)
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if sending is not None and sending.done() and (error := sending.exception()) and not future.done():
                raise HostFailed(f"the nursery does not answer: {error}")
            started = await future
        finally:
            if sending is not None:
                # A nursery that is gone takes no more, and whoever waits for it to do so would wait for ever.
                sending.cancel()
            self._waiting.pop(ident, None)
        loop.call_soon(self._tell, started.pid)
        return started

    def kill(self, pid: int) -> None:
        """SIGKILL to a runner, by the nursery that is its parent: where /proc hides it from us nobody else can."""
        self._sent(json.dumps({"kill": pid}).encode())

    def _sent(self, packet: bytes) -> bool:
        """Send what the socket takes at once."""
        try:
            return self._socket is not None and self._socket.send(packet) == len(packet)
        except OSError:
            return False

    async def _send(self, packet: bytes) -> None:
        # One after another: a loop waits for a socket to take more on behalf of one sender only.
        async with self._sending:
            if self._socket is not None:
                await asyncio.get_running_loop().sock_sendall(self._socket, packet)

    async def _keep_awake(self, nursery: guard.Process) -> None:
        """A nursery that somebody stopped is woken; one that stays deaf is ended, which is noticed."""
        loop = asyncio.get_running_loop()
        last = self._heard_at = loop.time()
        while self._socket is not None:
            # When the queue is full it has enough to answer.
            self._sent(b'{"ping": 1}')
            await asyncio.sleep(PING_SECONDS)
            now = loop.time()
            # Time in which we ourselves stood still is no silence of others.
            self._heard_at += max(0.0, now - last - 2 * PING_SECONDS)
            last = now
            if now - self._heard_at > (DEAF_SECONDS if self._answered else FIRST_SECONDS):
                guard.send(nursery, signal.SIGKILL)
                self._lost()
            elif now - self._heard_at > WAKE_SECONDS:
                guard.send(nursery, signal.SIGCONT)

    def _tell(self, pid: int) -> None:
        for message in self._early.pop(pid, ()):
            self._take(message)

    def _read(self) -> None:
        while self._socket is not None:
            try:
                packet = self._socket.recv(PACKET)
            except BlockingIOError:
                return
            except OSError:
                packet = b""
            if not packet:
                self._lost()
                return
            self._heard_at, self._answered = asyncio.get_running_loop().time(), True
            self._take(json.loads(packet))

    def _take(self, message: dict[str, Any]) -> None:
        pid = message.get("exit", message.get("clean"))
        if "pong" in message:
            return
        if pid in self._early:
            self._early[pid].append(message)
        elif "exit" in message:
            self._living.pop(message["exit"], None)
            self.on_exit(message["exit"], message["status"])
        elif "clean" in message:
            self.on_clean(message["clean"])
        elif (future := self._waiting.pop(message["id"], None)) is not None and not future.done():
            if "error" in message:
                future.set_exception(HostFailed(f"{NO_PROCESS}: {message['error']}"))
            else:
                self._early[message["pid"]] = []
                self._living[message["pid"]] = message["start_time"]
                future.set_result(Started(message["pid"], message["start_time"]))

    def _lost(self) -> None:
        if self._socket is None:
            return
        self._drop()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(HostFailed("the nursery has ended"))
        self._waiting.clear()
        self._watch = asyncio.get_running_loop().create_task(self._look_after())
        self.on_gone()

    async def _look_after(self) -> None:
        """Without a nursery nobody waits for its runners: look at each until it is gone."""
        while self._living:
            for pid, start_time in list(self._living.items()):
                if _is_gone(pid, start_time):
                    del self._living[pid]
                    self.on_exit(pid, None)
                    self.on_clean(pid)
            await asyncio.sleep(LOOK_SECONDS)

    def _drop(self) -> None:
        if self._socket is not None:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._socket)
            # Someone may be waiting to send; the descriptor's next owner must not be taken for this one.
            loop.remove_writer(self._socket)
            self._socket.close()
            self._socket = None

    def release(self) -> None:
        """Let the nursery go and everything it holds live on, for the next supervisor."""
        self._let_go()
        if self._process is not None and self._process.poll() is None:
            # Its end is not ours to wait for any more.
            self._process.returncode = 0

    def _let_go(self) -> None:
        self._drop()
        for task in (self._watch, self._vigil):
            if task is not None:
                task.cancel()

    async def close(self, patience: float = 5.0) -> None:
        """Let the nursery go, and wait: it leaves once its last runner has."""
        self._let_go()
        if self._nursery is None:
            return
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        # One that was stopped could not see that it is not needed any more.
        guard.send(self._nursery, signal.SIGCONT)
        while not self._has_left(self._nursery):
            if loop.time() > deadline + KILLED_SECONDS:
                return
            if loop.time() > deadline:
                guard.send(self._nursery, signal.SIGKILL)
            await asyncio.sleep(LEAVING_LOOK_SECONDS)

    def _has_left(self, nursery: guard.Process) -> bool:
        if self._process is not None:
            return self._process.poll() is not None
        return _is_gone(nursery.pid, nursery.start_time)


def _is_gone(pid: int, start_time: int) -> bool:
    """Whether this process has ended; where nothing can be looked at just now it has not."""
    try:
        return guard.running(pid, start_time) is None
    except OSError:
        return False


def _ask_for_runners(door: Path, nursery: int) -> tuple[socket.socket, dict[int, Ward]]:
    """Connect to this nursery and hear what it has. Raises OSError, or ValueError for one that is not ours."""
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connected.settimeout(LISTING_SECONDS)
        connected.connect(str(door))
        if guard.peer_of(connected)[0] != nursery:
            raise ValueError("another process listens there")
        wards: dict[int, Ward] = {}
        while "listed" not in (said := json.loads(connected.recv(PACKET))):
            facts = {key: said[key] for key in ("run", "start_time", "status", "clean")}
            wards[int(said["runner"])] = Ward(**facts)
        if said["listed"] != __version__:
            raise ValueError("its runners speak another version's language")
    except BaseException:
        connected.close()
        raise
    return connected, wards
