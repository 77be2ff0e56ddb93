"""The ledger: signing, appending under FULL, auditing with one process and with all cores, proofs, and memory.

References: bare inserts under the same durability, and the bare rate at which Ed25519 signatures verify.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from council_tui.bench import floors
from council_tui.bench.council import folder
from council_tui.bench.figures import milliseconds, rate, ratio
from council_tui.ledger import store
from council_tui.ledger.envelope import open_strict, pae
from council_tui.ledger.keys import Key, verify_all
from council_tui.ledger.log import Ledger
from council_tui.ledger.merkle import inclusion_proof, verify_inclusion
from council_tui.ledger.signer import Signer
from council_tui.ledger.verify import verify_log

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

AT = 1_800_000_000
CONTRACT = "c" * 64
IN_FLIGHT = 100
_ALONE = 1000
"""Entries appended one by one; further ones only repeat the figure."""
_RAW = 3000
_PROOFS = 500
_WORK = {
    "status": "DONE",
    "summary": "two tests pass",
    "findings": 2,
    "artifacts": ["result.json", "output.log"],
    "contract": CONTRACT,
    "run": "r_bench",
    "enforcement": "portable; soft slice",
}


def _grant(child: str, public: bytes, depth: int) -> dict[str, Any]:
    return {
        "child": child,
        "public_key": public.hex(),
        "depth": depth,
        "capabilities": [],
        "forbidden": [],
        "not_before": AT,
        "not_after": AT + 10**6,
        "contract": CONTRACT,
        "card": "t_bench",
    }


class Voices:
    """A root, an office and one child that reports as often as it is asked to."""

    def __init__(self, origin: str, root: Key) -> None:
        self._hermes = Signer("hermes:bench", root, origin)
        self._office_key, self._child_key = Key.generate(), Key.generate()
        self.office = Signer("zeroclaw:office.bench", self._office_key, origin)
        self.child = Signer("child:reporter.bench", self._child_key, origin)

    def family(self) -> list[bytes]:
        """The four entries that give the child its voice."""
        accepted = {"contract": CONTRACT}
        return [
            self._hermes.sign("delegation", AT, (), _grant(self.office.agent, self._office_key.public, 2)),
            self.office.sign("acceptance", AT, (), accepted),
            self.office.sign("delegation", AT, (), _grant(self.child.agent, self._child_key.public, 1)),
            self.child.sign("acceptance", AT, (), accepted),
        ]

    def report(self) -> bytes:
        """One more signed report."""
        digest = os.urandom(32).hex()
        return self.child.sign("ascension", AT, [("t_bench", digest), ("output.log", digest)], _WORK)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Build a log of the asked size and take it apart again."""
    with folder() as root:
        return asyncio.run(_measure(root, options.entries, options.memory))


async def _measure(root: Path, entries: int, sizes: Sequence[int]) -> dict[str, Any]:
    path, root_key, log_key = root / "ledger.db", Key.generate(), Key.generate()
    ledger = await Ledger.open(path, log_key, root_key.public)
    voices = Voices(ledger.origin, root_key)
    try:
        for raw in voices.family():
            await ledger.append(raw)
        began = time.perf_counter()
        reports = [voices.report() for _ in range(entries)]
        signing = time.perf_counter() - began
        alone = min(_ALONE, entries // 2)
        one_by_one = await _append(ledger, reports[:alone], 1)
        many = await _append(ledger, reports[alone:], IN_FLIGHT)
        size = ledger.size
    finally:
        await ledger.close()
    floor = [floors.commits(root, reports[:alone], synchronous="FULL", batch=batch) for batch in (1, IN_FLIGHT)]
    return {
        "entries": size,
        "entry_bytes": len(reports[0]),
        "sign_and_seal_per_second": rate(entries, signing),
        "append_one_by_one_per_second": rate(alone, one_by_one),
        "append_100_in_flight_per_second": rate(entries - alone, many),
        "floor_commits_of_1_per_second": rate(alone, floor[0]),
        "floor_commits_of_100_per_second": rate(alone, floor[1]),
        "ratio_one_by_one": ratio(rate(alone, one_by_one), rate(alone, floor[0])),
        "ratio_100_in_flight": ratio(rate(entries - alone, many), rate(alone, floor[1])),
        "audit": _audit(path, root_key.public, reports),
        "proof": _proof(path, size),
        "memory": await _memory(root, sizes),
    }


async def _append(ledger: Ledger, raws: Sequence[bytes], in_flight: int) -> float:
    """Seconds to append these, so many of them under way at once."""
    began = time.perf_counter()
    for start in range(0, len(raws), in_flight):
        await asyncio.gather(*(ledger.append(raw) for raw in raws[start : start + in_flight]))
    return time.perf_counter() - began


def _raw_rate(reports: Sequence[bytes]) -> float:
    """Signatures a second that one core verifies, with nothing else done to the entries."""
    opened = [open_strict(raw) for raw in reports[:_RAW]]
    key = Key.generate()
    items = [(key.public, pae(one.body), key.sign(pae(one.body))) for one in opened]
    began = time.perf_counter()
    verify_all(items)
    return rate(len(items), time.perf_counter() - began)


def _audit(path: Path, root_public: bytes, reports: Sequence[bytes]) -> dict[str, Any]:
    """Entries a second by process count, beside the bare rate times the cores that were used."""
    cores = len(os.sched_getaffinity(0))
    before = _raw_rate(reports)
    rates: dict[int, float] = {}
    for count in sorted({1, cores}):
        began = time.perf_counter()
        report = verify_log(path, root_public=root_public, processes=count)
        rates[count] = rate(report.checked, time.perf_counter() - began)
    raw = (before + _raw_rate(reports)) / 2
    return {
        "verdict": str(report.verdict),
        "raw_verify_per_second_per_core": round(raw, 1),
        "runs": [
            {"processes": count, "entries_per_second": found, "ratio_to_raw": ratio(found, raw * count)}
            for count, found in rates.items()
        ],
    }


def _proof(path: Path, size: int) -> dict[str, Any]:
    spent: list[float] = []
    with store.snapshot(path) as db:
        head = store.open_head(db, None)
        for number in range(min(_PROOFS, size)):
            index = number * 7919 % size
            began = time.perf_counter()
            proof = inclusion_proof(index, head.size, lambda level, at: store.node(db, level, at))
            good = verify_inclusion(store.node(db, 0, index), index, head.size, proof, head.root)
            spent.append(time.perf_counter() - began)
    return {"hashes": len(proof), "holds": good, "prove_and_check_ms": milliseconds(spent)}


async def _memory(root: Path, sizes: Sequence[int]) -> dict[str, Any]:
    """Peak memory of an audit at two sizes; each is a process of its own, so that no earlier peak shows."""
    peaks: dict[str, float] = {}
    for size in sorted(sizes):
        path, root_key = root / f"ledger-{size}.db", Key.generate()
        ledger = await Ledger.open(path, Key.generate(), root_key.public)
        voices = Voices(ledger.origin, root_key)
        try:
            await _append(ledger, [*voices.family(), *(voices.report() for _ in range(size))], 500)
        finally:
            await ledger.close()
        peaks[str(size)] = await asyncio.to_thread(_peak, path, root_key.public)
    low, high = min(peaks.values()), max(peaks.values())
    return {"peak_rss_mb": peaks, "growth_mb": round(high - low, 1), "ratio": ratio(high, low)}


def _peak(path: Path, root_public: bytes) -> float:
    done = subprocess.run(
        [sys.executable, "-m", "council_tui.bench.ledger", str(path), root_public.hex()],
        capture_output=True,
        check=True,
    )
    return float(json.loads(done.stdout)["peak_mb"])


def _audit_alone(path: str, root_public: str) -> None:
    """In a process of its own: audit, and print the peak of resident memory (proc_pid_status(5), VmHWM)."""
    from pathlib import Path

    verify_log(Path(path), root_public=bytes.fromhex(root_public))
    with open("/proc/self/status", encoding="ascii") as file:
        peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))
    print(json.dumps({"peak_mb": round(peak / 1024, 1)}))


if __name__ == "__main__":
    _audit_alone(*sys.argv[1:])
