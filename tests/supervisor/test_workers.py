"""Threads are hired while there are some; afterwards nothing that ends a fleet needs another one."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager

import pytest

from council_tui.board.home import Home
from council_tui.domain.errors import CouncilError
from council_tui.domain.events import EventKind as K
from council_tui.supervisor import workers
from council_tui.supervisor.supervisor import Supervisor
from supervisor.stage import Stage, child, plan_of, until


def refuse(self):
    raise RuntimeError("can't start new thread")


@pytest.fixture
def no_thread(monkeypatch):
    """A machine on which no thread can be started, for a `with`."""

    @contextmanager
    def meanwhile():
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            yield

    return meanwhile


async def test_all_of_them_are_there_before_the_first_is_needed(no_thread):
    workers.hire()
    together = threading.Barrier(workers.COUNT)
    with no_thread():
        async with asyncio.timeout(20):
            names = await asyncio.gather(*(asyncio.to_thread(_met, together) for _ in range(workers.COUNT)))
    assert len(set(names)) == workers.COUNT


def _met(together):
    together.wait()
    return threading.current_thread().name


async def test_a_machine_that_gives_too_few_is_refused_in_one_sentence_and_none_stays(monkeypatch):
    start, left = threading.Thread.start, [workers.COUNT - 1]

    def some(self):
        if not left[0]:
            refuse(self)
        left[0] -= 1
        start(self)

    before = threading.active_count()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", some)
        with pytest.raises(CouncilError, match="cannot start another thread; end something"):
            workers.hire()
    await until(lambda: threading.active_count() <= before)


@pytest.mark.parametrize("more", range(3))
async def test_a_start_that_finds_too_few_threads_for_its_files_says_the_same(home, monkeypatch, more):
    start, left = threading.Thread.start, [workers.COUNT + more]

    def some(self):
        left[0] -= 1
        (start if left[0] >= 0 else refuse)(self)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", some)
        with pytest.raises(CouncilError, match="cannot start another thread; end something"):
            await Supervisor(Home(home)).open()
    second = Supervisor(Home(home))
    await second.open()
    await second.close()


def test_a_loop_whose_last_step_finds_no_thread_still_gives_its_result(monkeypatch):
    async def main():
        workers.hire()
        await asyncio.to_thread(int)
        return 7

    started, start = [], threading.Thread.start

    def some(self):
        if len(started) >= workers.COUNT:
            refuse(self)
        started.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", some)
    assert workers.run(main()) == 7


async def test_a_machine_without_another_thread_still_reaps_and_closes(home, no_thread):
    names = [f"n{n}" for n in range(12)]
    async with Stage(home, plan_of(*(child(name, "sleep 600") for name in names))) as stage:
        for name in names:
            await stage.wait(K.BODY_STARTED, f":{name}.")
        with no_thread():
            async with asyncio.timeout(20):
                await stage.fleet.drain("enough")
                end = await stage.fleet.finish()
                await stage.sup.close()
        assert not stage.sup.failed.done()
    assert (end.audit["descendants"], end.audit["slices"], end.ledger["verdict"]) == ([], [], "VALID")
