"""What the runner does with a body: starts it in the contract's tier, watches it, and judges what it left."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from council_tui.containers.command import Launch, judge, launch, not_started
from council_tui.containers.sandbox import NETWORK, WRITE, Sandbox, wrap
from council_tui.domain.evidence import Result
from council_tui.runner import guard
from council_tui.runner.beats import BodyBeats
from council_tui.runner.body import Body
from council_tui.runner.log import OutputLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from council_tui.runner.beats import BeatSender
    from council_tui.runner.family import Family
    from council_tui.runner.spec import Grant, RunnerSpec

SLICE_POLL_SECONDS = 0.1
SLICE_POLL_QUIET_SECONDS = 0.4
"""Between two looks at a slice in which nothing changes; half a second is all that a breach may last."""
BYTES_A_FILE = 4096
"""A slice may hold one file for each of these: an empty file costs the machine something too."""

DRILL = ("sleep", "600")
"""What a drill runs that is about the body."""

Judged = tuple[Result, str | None]


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
        self.body: Body | None = None
        self.breached = False

    async def work(self) -> Judged | None:
        """From start to result; None when the body overfilled its slice and is being reaped for it."""
        order = self._grant.order
        if order.container == "drill" and order.fault != "dies":
            return Result("DONE", (), ("the drill was let through the handshake",)), None
        plan = self._plan()
        body = self.body = Body(OutputLog(Path(self._spec.log_dir)))
        listening = BodyBeats(self._spec.body_socket, self._body_spoke)
        try:
            body.start(plan, self._box(plan))
        except (OSError, ValueError) as error:
            self.body = None
            return not_started(plan, error), None
        else:
            return await self._watch(body)
        finally:
            listening.close()

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

    def _box(self, plan: Launch) -> Callable[[int], Launch] | None:
        """How to wrap the body, or None in portable mode."""
        if not self._grant.bwrap:
            return None
        forbidden = self._grant.context.inheritance.forbidden_capabilities
        box = Sandbox(
            program=self._grant.bwrap,
            hidden=self._grant.home,
            data=self._data,
            limit=self._memory.limit_bytes,
            notify=self._spec.body_socket,
            network=NETWORK not in forbidden,
            write=WRITE not in forbidden,
        )
        return lambda status_fd: wrap(plan, box, status_fd)

    async def _watch(self, body: Body) -> Judged | None:
        grant = self._grant
        process = guard.read_process(body.pid)
        self._tell("started", {"pid": body.pid, "start_time": process.start_time if process else 0})
        if grant.order.fault == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        for order in grant.microsharks:
            await self._ask("card", order=order.model_dump(mode="json"))
            self._family.expect(order.id)
        poll = asyncio.get_running_loop().create_task(self._poll_slice(body))
        try:
            await asyncio.wait({body.exited})
            left = body.leftovers()
            await body.end_tree(grant.context.lifecycle_policy.grace_seconds)
            await self._family.all_settled()
        finally:
            poll.cancel()
        if self.breached or self._over_ceiling(body):
            return None
        result, violation = judge(grant.order.run, grant.order.envelope, body.outcome())
        if left:
            many = "process was" if left == 1 else "processes were"
            note = f"{left} {many} left behind by the program and ended"
            result = replace(result, evidence=(*result.evidence, note))
        return self._family.add_to(result), violation

    def _body_spoke(self, fields: dict[str, str]) -> None:
        """What the body says over sd_notify: a beat of its own, or a line of status."""
        if fields.get("STATUS"):
            self._tell("status", {"text": fields["STATUS"][:500]})
        if "WATCHDOG" in fields and self._grant.context.lifecycle_policy.beat_source == "body":
            self._beats.beat()

    async def _poll_slice(self, body: Body) -> None:
        """Hold the ceiling as well as this machine can: look often, and stop the tree the moment it is passed."""
        pause, known = SLICE_POLL_SECONDS, 0
        while True:
            await asyncio.sleep(pause)
            if self._over_ceiling(body):
                return
            used = self._beats.slice_used
            pause = min(pause * 2, SLICE_POLL_QUIET_SECONDS) if used == known else SLICE_POLL_SECONDS
            known = used

    def _usage(self, body: Body) -> guard.Usage:
        """What the slice holds; the body's own tmpfs is seen through its namespace."""
        if body.inside is not None:
            return guard.tmpfs_usage(f"/proc/{body.inside}/root{self._data}")
        return guard.slice_usage(self._data, self._memory.limit_bytes)

    def _over_ceiling(self, body: Body) -> bool:
        """One look at the slice; past its ceiling the tree is stopped and the supervisor told."""
        limit = self._memory.limit_bytes
        usage = self._usage(body)
        self._beats.slice_used = usage.used
        most = limit // BYTES_A_FILE
        if usage.used > limit:
            reason = f"the slice holds {usage.used} bytes, its ceiling is {limit}"
        elif usage.files > most:
            reason = f"the slice holds {usage.files} files, one for each {BYTES_A_FILE} bytes of it is {most}"
        elif usage.hidden:
            reason = f"a part of the slice cannot be looked into: {usage.hidden}"
        else:
            return False
        self.breached = True
        body.freeze()
        self._tell("breach", {"used": usage.used, "limit": limit, "reason": reason})
        return True
