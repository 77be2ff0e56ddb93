"""The references: what the same work costs with nothing of ours around it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_AT_ONCE = 8
"""Processes that are being started at one moment; more of them only queue in the kernel."""


def commits(folder: Path, rows: Sequence[bytes], *, synchronous: Literal["NORMAL", "FULL"], batch: int = 1) -> float:
    """Seconds to insert these rows into a bare SQLite file (WAL), `batch` rows a transaction, one after another."""
    path = folder / f"floor-{synchronous}-{batch}-{len(rows)}.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute(f"PRAGMA synchronous={synchronous}")
        db.execute("CREATE TABLE floor (id INTEGER PRIMARY KEY, raw BLOB NOT NULL)")
        began = time.perf_counter()
        for start in range(0, len(rows), batch):
            db.execute("BEGIN IMMEDIATE")
            db.executemany("INSERT INTO floor (raw) VALUES (?)", [(raw,) for raw in rows[start : start + batch]])
            db.execute("COMMIT")
        seconds = time.perf_counter() - began
    for leftover in folder.glob(f"{path.name}*"):
        leftover.unlink()
    return seconds


async def processes(count: int, argv: Sequence[str]) -> float:
    """Seconds until so many bare processes live, started through asyncio; then they are ended."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def start() -> asyncio.subprocess.Process:
        async with gate:
            quiet = asyncio.subprocess.DEVNULL
            return await asyncio.create_subprocess_exec(*argv, stdin=quiet, stdout=quiet, stderr=quiet)

    began = time.perf_counter()
    started = await asyncio.gather(*(start() for _ in range(count)))
    seconds = time.perf_counter() - began
    for process in started:
        process.kill()
    await asyncio.gather(*(process.wait() for process in started))
    return seconds


def rows_like(sizes: Sequence[int]) -> list[bytes]:
    """Rows of these sizes, in bytes, that no page cache or compression makes cheaper."""
    return [os.urandom(size) for size in sizes]
