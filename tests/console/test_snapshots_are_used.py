"""A picture that no test compares is a picture that may lie."""

from __future__ import annotations

from .conftest import SNAPSHOTS
from .test_screens import SCREENS


def test_every_picture_belongs_to_a_test() -> None:
    found = {str(path.relative_to(SNAPSHOTS)) for path in SNAPSHOTS.rglob("*") if path.is_file()}
    assert found == {f"console/test_screens/test_screen-{name}.svg" for name in SCREENS}


def test_no_picture_points_at_a_server() -> None:
    assert not [path for path in SNAPSHOTS.rglob("*.svg") if "@font-face" in path.read_text(encoding="utf-8")]
