"""The README cannot lag behind: its key table, its commands, its picture and its plan are checked here."""

import re
from pathlib import Path

from council_tui.console.keymap import markdown_table
from council_tui.fleet.lacking import SHARED
from council_tui.fleet.plan import parse_plan, shipped_plans

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def between(start: str, end: str) -> str:
    return README.split(start)[1].split(end)[0].strip()


def test_the_key_table_is_the_registrys():
    assert between("<!-- keys -->", "<!-- /keys -->") == markdown_table().strip()


def test_every_picture_is_a_snapshot_that_exists():
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", README)
    assert pictures
    assert all(name.startswith("snapshots/") and (ROOT / name).is_file() for name in pictures)


def test_the_plans_in_the_readme_load():
    written = re.findall(r"<!-- plan -->\n```yaml\n(.*?)```", README, re.DOTALL)
    plans = [parse_plan(text, "README.md") for text in written]
    assert [[order.id for order in plan.orders] for plan in plans] == [["hello"], ["unit-tests", "shard", "lint"]]


def test_the_readme_names_the_envelope_fields_that_have_to_be_written():
    assert all(f"`{name}`" in README for name in SHARED)


def test_every_shipped_plan_is_named():
    assert all(f"`{name}`" in README for name in shipped_plans())
