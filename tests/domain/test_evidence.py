"""What counts as a result."""

import json
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council_tui.domain.evidence import MAX_FINDINGS, check_result, schema_problem
from domain.samples import envelope

GOOD = {
    "status": "DONE",
    "findings": [{"severity": "HIGH", "description": "tools.py differs at line 147"}],
    "evidence": ["diff -u a/tools.py b/tools.py: tools.py differs at line 147"],
    "recommendation": "rsync",
}
LOOSE = envelope(output_schema={"type": "object"})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


def problems(value, contract=None):
    return check_result(value, contract or envelope()).problems


def test_a_good_result_is_reported_as_it_is():
    result = check_result(GOOD | {"extra": 1}, envelope())
    assert result.problems == ()
    assert result.as_json() == GOOD | {"extra": 1}


@pytest.mark.parametrize("status", ["BLOCKED", "ERROR"])
def test_a_childs_own_blocked_or_error_needs_no_evidence(status):
    result = check_result({"status": status, "findings": [{"a": "bare"}], "evidence": []}, envelope())
    assert (result.status, result.problems) == (status, ())


@pytest.mark.parametrize("value", [None, [], "DONE", 1])
def test_what_is_no_object_is_an_error(value):
    result = check_result(value, envelope())
    assert result.status == "ERROR"
    assert result.problems


@pytest.mark.parametrize("key", ["status", "findings", "evidence"])
def test_a_missing_field_breaks_the_schema(key):
    assert key in problems({k: v for k, v in GOOD.items() if k != key})[0]


@pytest.mark.parametrize("status", ["FINE", None, 1, ["DONE"]])
def test_a_status_is_one_of_three(status):
    assert "status must be DONE, BLOCKED or ERROR" in problems(GOOD | {"status": status}, LOOSE)


@pytest.mark.parametrize(
    ("finding", "evidence"),
    [
        ({"description": "seen in /etc/passwd"}, ["/etc/passwd"]),
        ({"description": "seen", "evidence_refs": [0]}, ["a look at it"]),
        ({"description": "seen", "evidence_refs": ["https://example.org"]}, []),
        ({"description": "anything at all"}, ["one item for one finding"]),
    ],
)
def test_a_finding_is_backed_by_reference_mention_or_position(finding, evidence):
    assert problems({"status": "DONE", "findings": [finding], "evidence": evidence}) == ()


@pytest.mark.parametrize(
    ("findings", "evidence"),
    [
        ([{"a": "bare finding"}], []),
        ([{"a": "bare finding"}], [""]),
        ([{"a": "bare finding"}], ["  "]),
        ([{"a": "bare finding", "evidence_refs": [""]}], []),
        ([{"a": "bare finding", "evidence_refs": {}}], []),
        ([{"a": "one finding"}, {"a": "two findings"}], ["e"]),
    ],
)
def test_a_finding_with_nothing_to_show_is_told(findings, evidence):
    assert "has no evidence" in problems({"status": "DONE", "findings": findings, "evidence": evidence})[0]


def test_evidence_is_not_asked_for_where_the_contract_does_not():
    contract = envelope(evidence_required=False)
    assert problems({"status": "DONE", "findings": [{"a": "b"}], "evidence": []}, contract) == ()


@pytest.mark.parametrize(("key", "value"), [("findings", ["text"]), ("findings", "x"), ("evidence", [1])])
def test_nothing_is_dropped_in_silence_where_the_schema_is_loose(key, value):
    assert key in problems(GOOD | {key: value}, LOOSE)[0]


def test_too_many_findings_are_told():
    many = [{"evidence_refs": ["x"]}] * (MAX_FINDINGS + 1)
    result = check_result({"status": "DONE", "findings": many, "evidence": []}, envelope())
    assert len(result.findings) == MAX_FINDINGS
    assert result.problems


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800"])
def test_what_json_cannot_carry_is_an_error(value):
    result = check_result(GOOD | {"extra": value}, envelope())
    assert result.status == "ERROR"
    assert result.extra == {}


@given(st.dictionaries(st.sampled_from(["status", "findings", "evidence", "recommendation", "x"]), JSON))
def test_no_returned_object_raises_and_every_result_is_json(value):
    for contract in (envelope(), LOOSE):
        json.dumps(check_result(value, contract).as_json(), allow_nan=False).encode()


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objec"},
        {"type": "object", "properties": 5},
        {"type": "object", "properties": {"a": {"pattern": "("}}},
    ],
)
def test_a_schema_that_is_none_is_refused(schema):
    assert schema_problem(schema)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "object", "$ref": "https://example.org/schema.json"}, "points out of the schema"),
        ({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}, "points out of the schema"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}, "points at nothing"),
        ({"type": "object", "$ref": "#"}, "refers to itself without an end"),
    ],
)
def test_a_schema_never_reaches_out_and_never_raises(schema, why, monkeypatch):
    def no_network(*_: object, **__: object) -> None:
        raise AssertionError("a schema must not reach out")

    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    monkeypatch.setattr("urllib.request.urlopen", no_network)
    assert why in (schema_problem(schema) or "")
    assert problems(GOOD | {"a": 1}, envelope(output_schema=schema)) == (
        "result: the output schema cannot be applied to it",
    )


def test_a_schema_may_refer_to_itself_with_an_end():
    schema = {
        "type": "object",
        "properties": {"below": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"type": "object", "properties": {"below": {"$ref": "#/$defs/node"}}}},
    }
    assert schema_problem(schema) is None
    value = GOOD | {"below": {"below": {"below": 1}}}
    assert "below.below.below" in problems(value, envelope(output_schema=schema))[0]
