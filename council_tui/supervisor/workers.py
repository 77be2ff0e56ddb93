"""Threads that exist before they are needed: where the process table is full no other can be started.

Whatever is done in a thread (`asyncio.to_thread`) is done by these: looking for what lives, clearing what it
left, closing files. All of that has to go on just when nothing can be started any more.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from council_tui.domain.errors import CouncilError

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")
COUNT = 8
"""As many things may be done at the same time; whatever else there is waits for its turn."""


NO_THREAD = "this machine cannot start another thread; end something, or raise the limit on processes, then start again"


def no_thread(error: Exception) -> bool:
    """Whether it says that no thread could be started (`threading` has no class of its own for that)."""
    return isinstance(error, RuntimeError) and "new thread" in str(error)


def hire() -> None:
    """Give the running loop an executor all of whose threads run already. Raises `CouncilError` where none can."""
    pool = ThreadPoolExecutor(COUNT, "worker")
    # Each waits for the others, so each takes a thread of its own.
    together = threading.Barrier(COUNT)
    try:
        for _ in range(COUNT):
            pool.submit(together.wait)
    except RuntimeError:
        together.abort()
        pool.shutdown(wait=False)
        raise CouncilError(NO_THREAD) from None
    # One that was there before ends once it has nothing to do.
    asyncio.get_running_loop().set_default_executor(pool)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Like asyncio.run, also where no thread can be started: its last step wants one in which to wait for these."""
    runner = asyncio.Runner()
    try:
        return runner.run(main)
    finally:
        with suppress(RuntimeError):
            runner.close()
