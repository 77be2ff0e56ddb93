"""What an agent's own process needs of the ledger stays small."""

from __future__ import annotations

import subprocess
import sys

PROBE = """
import sys
import council_tui.ledger.envelope, council_tui.ledger.keys, council_tui.ledger.signer
heavy = {"sqlite3", "asyncio", "aiosqlite", "pydantic", "multiprocessing", "council_tui.board"}
print(*sorted(heavy & sys.modules.keys()))
"""


def test_signing_needs_neither_the_database_nor_a_loop():
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
