"""Repositories for the audit tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plans.repository import Checkout

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """An empty repository on branch main."""
    root = tmp_path / "project"
    root.mkdir()
    made = Checkout(root)
    made.git("init", "-q", "-b", "main")
    return made
