"""Plans that are hardly YAML, hardly a file, or meant to hurt: mistakes, and never anything else."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council_tui.domain.errors import PlanInvalid
from council_tui.fleet.plan import MAX_BYTES, load_plan, parse_plan
from fleet.plans import GOOD, HEAD, mistakes, only, wrong_children


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", None, "is empty"),
        ("# only a comment\n", None, "is empty"),
        ("council: 1\nname: [x\n", 3, "is not valid YAML"),
        ("council: 1\n\tname: x\n", 2, "is not valid YAML"),
        ("council: *nothing\n", 1, "is not valid YAML"),
        ("council: 1\n---\ncouncil: 1\n", 3, "more than one document"),
        ("a: \x07\n", 1, "a character that YAML does not allow"),
        ("just text", 1, "expected a mapping of a plan's keys"),
        ("- a\n- b\n", 1, "expected a mapping of a plan's keys"),
        ("a: &a [*a]\n", 1, "an alias holds itself"),
        ("a: &a {<<: *a}\n", 1, "merges itself"),
        ("a: " + "[" * 100_000, 1, "nest"),
        ("a: " + "{a: " * 41 + "1" + "}" * 41, 1, "nested deeper than 40 levels"),
    ],
)
def test_a_file_that_cannot_be_checked_is_one_mistake(text, line, says):
    where, field, message = only(text)
    assert (where, field) == (line, "plan")
    assert says in message


def test_a_billion_laughs_are_refused():
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
    )
    assert "holds more than 100000 values" in only(bomb)[2]
    merged = (
        "m0: &m0 {"
        + ", ".join(f"k{n}: 1" for n in range(300))
        + "}\n"
        + "".join(f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 10)}]}}\n" for n in range(1, 10))
    )
    assert "holds more than" in only(merged)[2]


@pytest.mark.parametrize(
    ("text", "field", "says"),
    [
        ("description: !!python/object/apply:os.system [id]\n", "description", "is not allowed"),
        ("description: !!binary aGk=\n", "description", "is not allowed"),
        ("1: x\n", "plan", "a key that is no text"),
        ("? [a]\n: x\n", "plan", "a key that is no text"),
        ("<<: 5\n", "plan", "'<<' takes a mapping"),
        ("name: small\n", "name", "is written twice; the first is in line 2"),
        ("limits: {concurrency: " + "9" * 5000 + "}\n", "limits.concurrency", "put it in quotes"),
    ],
)
def test_what_yaml_can_say_and_a_plan_may_not_is_told(text, field, says):
    assert any(m.field == field and says in m.message for m in mistakes(HEAD + GOOD + text))


@pytest.mark.parametrize("children", ["", "  []\n", "  5\n", "  {a: b}\n"])
def test_a_plan_has_at_least_one_child(children):
    _, field, message = only(HEAD + children)
    assert field == "children"
    assert "at least one" in message


def test_hostile_text_is_shown_and_not_obeyed():
    found = mistakes(HEAD.replace("name: small", 'name: small\n"\\e[31m": 1') + GOOD)
    assert "\x1b" not in "".join(m.field + m.message for m in found)
    assert "␛" in found[0].field


def test_a_missing_file_names_the_shipped_plans(tmp_path):
    with pytest.raises(PlanInvalid) as invalid:
        load_plan(str(tmp_path / "none.yaml"))
    (mistake,) = invalid.value.mistakes
    assert "no such file" in mistake.message
    assert "handshake-drill" in mistake.message
    with pytest.raises(PlanInvalid) as invalid:
        load_plan("handshake-dril")
    assert "did you mean 'handshake-drill'?" in invalid.value.mistakes[0].message


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (b"council: 1\nname: \xff\n", 2, "is not UTF-8"),
        (b"# " + b"x" * MAX_BYTES, None, "is larger than"),
        (b"", None, "is empty"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_mistake(tmp_path, content, line, says):
    path = tmp_path / "plan.yaml"
    path.write_bytes(content)
    with pytest.raises(PlanInvalid) as invalid:
        load_plan(path)
    (mistake,) = invalid.value.mistakes
    assert mistake.line == line
    assert says in mistake.message


@pytest.mark.parametrize("name", ["", ".", "/proc/self/mem", "a\0b", "x" * 5000, "/dev/zero"])
def test_a_path_that_is_no_plan_is_one_mistake(name):
    with pytest.raises(PlanInvalid) as invalid:
        load_plan(name)
    assert len(invalid.value.mistakes) == 1


def test_a_plan_may_come_through_a_pipe():
    read, write = os.pipe()
    os.write(write, (HEAD + GOOD).encode())
    os.close(write)
    try:
        assert load_plan(f"/dev/fd/{read}").name == "small"
    finally:
        os.close(read)


PIECES = st.sampled_from(
    [
        "council: 1\n",
        "name: x\n",
        "children:\n",
        "  - id: a\n",
        "    parent: zeroclaw\n",
        "    run: [x]\n",
        "    envelope: {",
        "}",
        "[",
        "]",
        "&a ",
        "*a",
        "<<: ",
        "!!str ",
        "'",
        '"',
        "\t",
        "? ",
        "null\n",
        "- ",
        "\n",
    ]
)


@given(st.lists(PIECES, max_size=25).map("".join) | st.text(max_size=80))
def test_no_text_raises_anything_but_a_list_of_mistakes(text):
    try:
        parse_plan(text, "fuzz")
    except PlanInvalid as error:
        told = error.mistakes
    else:
        return
    assert told
    assert len({(m.field, m.message) for m in told}) == len(told)


YAML = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 500) | st.floats() | st.sampled_from(["a", "zeroclaw", "drill", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "parent", "mbti_type", "memory_limit_mb", "type"]), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = [
    "id",
    "title",
    "parent",
    "container",
    "run",
    "fault",
    "after",
    "priority",
    "labels",
    "retries",
    "workdir",
]


@given(st.dictionaries(st.sampled_from([*KEYS, "spawn_context", "envelope"]), YAML))
def test_any_shape_of_a_child_is_read_or_refused(child):
    text = json.dumps(child).replace("NaN", ".nan").replace("Infinity", ".inf")
    assert isinstance(wrong_children(f"- {text}\n"), list)


def test_every_mistake_is_told_at_once_in_the_order_of_the_file():
    found = mistakes(
        """\
council: 2
name: small
limits: {concurrency: 0}
defaults:
  envelope: {time_budget_minutes: 5, autonomy_band: AUTONOMOUS, tools_scope: [exec], \
   rollback_plan: No changes}
  lifecycle_policy: {grace_seconds: -1}
children:
  - id: a
    parent: zeroclow
    run: x
  - id: b
    id: b
    parent: zeroclaw
    container: gemini
    envelope:
      rollback_plan: rm a; rm b
      output_schema: {type: array}
    spawn_context:
      lifecycle_policy:
        child_timeout_seconds: 3
        run_ttl_seconds: -4
      memory_slice:
        shared_memory_path: x
        memory_limit_mb: 0
"""
    )
    assert [(m.line, m.field) for m in found] == [
        (1, "council"),
        (3, "limits.concurrency"),
        (6, "defaults.lifecycle_policy.grace_seconds"),
        (9, "children[0].parent"),
        (12, "children[1].id"),
        (14, "children[1].container"),
        (16, "children[1].envelope.rollback_plan"),
        (17, "children[1].envelope.output_schema"),
        (19, "children[1].spawn_context.lifecycle_policy"),
        (21, "children[1].spawn_context.lifecycle_policy.run_ttl_seconds"),
        (23, "children[1].spawn_context.memory_slice.shared_memory_path"),
        (24, "children[1].spawn_context.memory_slice.memory_limit_mb"),
    ]
    assert "'zeroclaw'" in found[3].message
