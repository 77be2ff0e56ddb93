"""What the runner does with a body: starts it in the contract's tier, watches it, and judges what it left."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from council_tui.containers.command import Launch, judge, launch, not_started
from council_tui.containers.sandbox import NETWORK, WRAPPERS, WRITE, Sandbox, with_sockets, wrap
from council_tui.containers.sockets import below, uncover
from council_tui.domain.evidence import Result
from council_tui.runner import guard
from council_tui.runner.beats import BodyBeats, asked_seconds
from council_tui.runner.body import Body
from council_tui.runner.bounds import Bounds
from council_tui.runner.log import OutputLog
from council_tui.runner.progress import Progress
from council_tui.runner.slice import arrivals

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from council_tui.domain.order import Order
    from council_tui.runner.beats import BeatSender
    from council_tui.runner.family import Family
    from council_tui.runner.spec import Grant, RunnerSpec

SLICE_POLL_SECONDS = 0.1
SLICE_POLL_QUIET_SECONDS = 0.4
"""Between two looks at a slice in which nothing changes; half a second is all that a breach may last."""
SLICE_POLL_HELD_SECONDS = 2.0
"""The same where the kernel itself holds the ceiling and a look is for people."""
SLICE_EMPTY_SECONDS = 10.0
"""That an empty slice goes unseen when nothing tells of an arrival."""
BYTES_A_FILE = 4096
"""A slice may hold one file for each of these: an empty file costs the machine something too."""

DRILL = ("sleep", "600")
"""What a drill runs that is about the body."""

Judged = tuple[Result, str | None]


def _tree() -> frozenset[int]:
    """Every process below this runner."""
    return frozenset(process.pid for process in guard.descendants(os.getpid()))


class Keeper:
    """Keeps the body of one agent."""

    def __init__(
        self,
        spec: RunnerSpec,
        grant: Grant,
        family: Family,
        beats: BeatSender,
        ask: Callable[..., Awaitable[Any]],
        tell: Callable[[str, dict[str, Any]], None],
    ) -> None:
        self._spec = spec
        self._grant = grant
        self._family = family
        self._beats = beats
        self._ask = ask
        self._tell = tell
        self._memory = grant.context.memory_slice
        self._data = str(Path(self._memory.shared_memory_path) / "data")
        strong = bool(grant.bwrap)
        self._bounds = Bounds(
            spec.run,
            grant.context.resource_limits,
            grant.groups,
            strong=strong,
            spare=WRAPPERS if strong else 0,
        )
        self._box: Sandbox | None = None
        """What is built around the body; None in portable mode."""
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._stopped_at: float | None = None
        self._stopped = 0.0
        """Seconds in which the body stood still, all before the present stop."""
        self._breach: dict[str, Any] = {}
        self._progress: Progress | None = None
        self._files = 0
        """In the slice, at the last look."""
        self.body: Body | None = None

    def standing(self) -> dict[str, Any]:
        """How things stand, for a supervisor that was not there: seconds, the program, and a breach if any."""
        now = self._loop.time()
        stopped = None if self._stopped_at is None else now - self._stopped_at
        facts = {"active": now - self._began - self._stopped - (stopped or 0.0), "stopped": stopped}
        return {**facts, "body": self._started(self.body), "breach": self._breach or None}

    def freeze(self) -> list[int]:
        """Stop the body's tree where it stands; the pids."""
        if self._stopped_at is None:
            self._stopped_at = self._loop.time()
        return self.body.freeze() if self.body is not None else []

    def thaw(self) -> list[int]:
        """Let a stopped tree go on; the pids."""
        if self._stopped_at is not None:
            self._stopped += self._loop.time() - self._stopped_at
            self._stopped_at = None
        return self.body.resume() if self.body is not None else []

    @staticmethod
    def _started(body: Body | None) -> dict[str, Any] | None:
        process = guard.read_process(body.pid) if body is not None else None
        return {"pid": body.pid, "start_time": process.start_time if process else 0} if body is not None else None

    async def work(self) -> Judged | None:
        """From start to result; None when the body passed a ceiling and is being reaped for it."""
        order = self._grant.order
        if order.container == "drill" and order.fault != "dies":
            return Result("DONE", (), ("the drill was let through the handshake",)), None
        plan = self._plan()
        log = OutputLog(Path(self._spec.log_dir))
        body = self.body = Body(log)
        listening = BodyBeats(self._spec.body_socket, self._body_spoke)
        try:
            self._start(body, plan)
        except (OSError, ValueError) as error:
            self.body = None
            return not_started(plan, error), None
        else:
            self._progress = Progress(self._loop.time, lambda: (log.total, self._beats.slice_used), _tree)
            self._beats.idle = self._progress.idle
            return await self._watch(body)
        finally:
            listening.close()
            uncover(self._box.sockets if self._box is not None else ())

    def _plan(self) -> Launch:
        grant = self._grant
        names = {
            "COUNCIL_RUN": self._spec.run,
            "COUNCIL_AGENT": self._spec.agent,
            "COUNCIL_CARD": grant.card,
            "COUNCIL_PARENT": grant.context.parent_id,
        }
        return launch(
            grant.order.run or DRILL,
            workdir=grant.order.workdir or grant.workdir,
            data=self._data,
            notify=self._spec.body_socket,
            watchdog_seconds=grant.context.lifecycle_policy.parent_heartbeat_interval_seconds,
            names=names,
        )

    def _start(self, body: Body, plan: Launch) -> None:
        """Start the program inside whatever this contract and this machine put around it. Raises OSError."""
        bounds = self._bounds
        bounds.make()
        if not self._grant.bwrap:
            body.start(bounds.around(plan))
            return
        box = self._box = with_sockets(self._sandbox(plan))
        body.start(plan, lambda status_fd: bounds.around(wrap(plan, box, status_fd)))

    def _sandbox(self, plan: Launch) -> Sandbox:
        forbidden = self._grant.context.inheritance.forbidden_capabilities
        # Where the home's path is too long for a socket, they lie elsewhere.
        runtime = str(Path(self._spec.body_socket).parents[1])
        home = self._grant.home
        return Sandbox(
            program=self._grant.bwrap,
            hidden=(home,) if below(runtime, (home,)) else (home, runtime),
            data=self._data,
            limit=self._memory.limit_bytes,
            notify=self._spec.body_socket,
            workdir=plan.cwd,
            network=NETWORK not in forbidden,
            write=WRITE not in forbidden,
        )

    async def _watch(self, body: Body) -> Judged | None:
        grant = self._grant
        self._tell("started", self._started(body) or {})
        if grant.order.fault == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        for order in grant.microsharks:
            await self._ask_for(order)
        poll = asyncio.get_running_loop().create_task(self._poll(body))
        try:
            await asyncio.wait({body.exited})
            # What follows is our own work, or its microsharks'.
            self._beats.idle = None
            left = body.leftovers()
            await body.end_tree(grant.context.lifecycle_policy.grace_seconds)
            await self._family.all_settled()
        finally:
            poll.cancel()
        if self._breach or self._over_ceiling(body):
            return None
        result, violation = judge(grant.order.run, grant.order.envelope, body.outcome())
        result, violation = self._with_notes(result, violation)
        if left:
            many = "process was" if left == 1 else "processes were"
            note = f"{left} {many} left behind by the program and ended"
            result = replace(result, evidence=(*result.evidence, note))
        return self._family.add_to(result), violation

    async def _ask_for(self, order: Order) -> None:
        """One card for one microshark, or one grant for a whole swarm."""
        plain = order.model_dump(mode="json")
        if order.count is None:
            await self._ask("card", order=plain)
            self._family.expect(order.id)
            return
        # Before the answer: the contract of a first member may be asked for sooner.
        self._family.ask_for(order)
        answer = await self._ask("swarm", order=plain)
        self._family.granted(order, int(answer["granted"]), str(answer["reason"]))

    def _with_notes(self, result: Result, violation: str | None) -> Judged:
        """With what the kernel did to hold it to its limits; of what went wrong that is the first cause to look at."""
        notes = self._bounds.notes()
        if violation is not None:
            violation = "; ".join((violation, *notes))
        if result.status == "DONE":
            return replace(result, evidence=(*result.evidence, *notes)), violation
        return replace(result, evidence=(*notes, *result.evidence)), violation

    def _body_spoke(self, fields: dict[str, str]) -> None:
        """What the body says over sd_notify: a beat of its own, or a line of status."""
        if fields.get("STATUS"):
            self._tell("status", {"text": fields["STATUS"][:500]})
        asked = asked_seconds(fields)
        if self._progress is not None:
            self._progress.moved(asked)
        if ("WATCHDOG" in fields or asked) and self._grant.context.lifecycle_policy.beat_source == "body":
            self._beats.beat(extend=asked)

    async def _poll(self, body: Body) -> None:
        """Hold every ceiling as well as this machine can: look often, and stop the tree when one is passed."""
        pause, known = SLICE_POLL_SECONDS, 0
        came = None if self._grant.bwrap or self._bounds.watched else arrivals(self._data)
        quiet = SLICE_POLL_HELD_SECONDS if self._grant.bwrap and not self._bounds.watched else SLICE_POLL_QUIET_SECONDS
        try:
            while True:
                if came is not None and not self._files:
                    await came.wait(SLICE_EMPTY_SECONDS)
                else:
                    await asyncio.sleep(pause)
                if self._over_ceiling(body) or self._over_limits(body):
                    return
                used = self._beats.slice_used
                pause = min(pause * 2, quiet) if used == known else SLICE_POLL_SECONDS
                known = used
        finally:
            if came is not None:
                came.close()

    def _usage(self, body: Body) -> guard.Usage:
        """What the slice holds; the body's own tmpfs is seen through its namespace."""
        if body.inside is None:
            return guard.slice_usage(self._data, self._memory.limit_bytes)
        inside = f"/proc/{body.inside}/root{self._data}"
        try:
            mounted = os.stat(inside).st_dev != os.stat(self._data).st_dev
        except OSError:
            return guard.Usage()
        # The wrapper tells its pid before it mounts anything: until then this is the machine's own disk.
        return guard.tmpfs_usage(inside) if mounted else guard.Usage()

    def _over_ceiling(self, body: Body) -> bool:
        """One look at the slice; past its ceiling the tree is stopped and the supervisor told."""
        limit = self._memory.limit_bytes
        usage = self._usage(body)
        self._beats.slice_used, self._files = usage.used, usage.files
        most = limit // BYTES_A_FILE
        if usage.used > limit:
            reason = f"the slice holds {usage.used} bytes, its ceiling is {limit}"
        elif usage.files > most:
            reason = f"the slice holds {usage.files} files, one for each {BYTES_A_FILE} bytes of it is {most}"
        elif usage.hidden:
            reason = f"a part of the slice cannot be looked into: {usage.hidden}"
        else:
            return False
        self._stop(body, {"of": "slice", "used": usage.used, "limit": limit, "reason": reason})
        return True

    def _over_limits(self, body: Body) -> bool:
        """The same for the limits of its contract that no cgroup holds."""
        try:
            breach = self._bounds.passed(os.getpid(), body.spared)
        except OSError:
            # No room to look proves nothing about it; the next look is near.
            return False
        if breach:
            self._stop(body, breach)
        return bool(breach)

    def _stop(self, body: Body, breach: dict[str, Any]) -> None:
        self._breach = breach
        body.freeze()
        self._tell("breach", breach)
