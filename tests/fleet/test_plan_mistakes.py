"""Wrong plans: every mistake, where it is, and nothing else."""

import pytest

from fleet.plans import FIRST_CHILD_LINE, GOOD, HEAD, mistakes, only, wrong_children


@pytest.mark.parametrize(
    ("change", "field", "says"),
    [
        (("council: 1", "council: 2"), "council", "expected council: 1"),
        (("council: 1", "council: true"), "council", "expected council: 1"),
        (("council: 1", "council: '1'"), "council", "expected council: 1"),
        (("council: 1\n", ""), "council", "is missing; expected council: 1"),
        (("name: small", "name: Big Name"), "name", "lower-case letters, digits and dashes"),
        (
            ("name: small", "name: small\ndescription: 5"),
            "description",
            "expected text, not 5; put it in quotes",
        ),
        (("name: small", "name: small\nchilds: []"), "childs", "did you mean 'children'?"),
        (("name: small", "name: small\nroundtables: []"), "roundtables", "this version runs no roundtables"),
        (("name: small", "name: small\ncouncils: 1"), "councils", "this version runs no councils"),
        (("name: small", "name: small\ntopics: 1"), "topics", "this version runs no topics"),
        (("name: small", "name: small\nhosts: 1"), "hosts", "this version runs no hosts"),
        (("name: small", "name: small\npolicy: 1"), "policy", "this version runs no policy"),
        (("name: small", "name: small\nlimits: 5"), "limits", "expected a mapping of keys and values, not 5"),
        (("name: small", "name: small\nlimits: {concurency: 5}"), "limits.concurency", "mean 'concurrency'?"),
        (
            ("name: small", "name: small\nlimits: {concurrency: 0}"),
            "limits.concurrency",
            "greater than or equal",
        ),
        (("name: small", "name: small\nlimits: {concurrency: .inf}"), "limits.concurrency", "a whole number"),
        (("name: small", "name: small\nlimits: {concurrency: 1.5}"), "limits.concurrency", "a whole number"),
        (("name: small", "name: small\nlimits: {microsharks: yes}"), "limits.microsharks", "not true"),
        (("name: small", "name: small\nbudget: {usd: 5}"), "budget.usd", "needs metered models"),
        (("name: small", "name: small\nbudget: {minutes: .nan}"), "budget.minutes", "number"),
        (("name: small", "name: small\nbudget: {minutes: 0}"), "budget.minutes", "greater than 0"),
        (("name: small", "name: small\nbudget: 30"), "budget", "expected a mapping"),
        (("defaults:", "defaults:\n  retires: 1"), "defaults.retires", "did you mean 'retries'?"),
        (("defaults:", "defaults:\n  retries: 99"), "defaults.retries", "less than or equal to 10"),
        (
            ("defaults:", "defaults:\n  container: codex"),
            "defaults.container",
            "this version runs: command, drill",
        ),
        (
            ("defaults:", "defaults:\n  enforcement: maybe"),
            "defaults.enforcement",
            "'required' or 'declared-only'",
        ),
        (
            ("defaults:", "defaults:\n  lifecycle_policy: {grace_seconds: 100}"),
            "defaults.lifecycle_policy.grace_seconds",
            "less than or equal to 60",
        ),
        (
            ("defaults:", "defaults:\n  lifecycle_policy: {child_timeout_seconds: 5}"),
            "defaults.lifecycle_policy",
            "must be below child_timeout_seconds",
        ),
        (
            ("defaults:", "defaults:\n  inheritance: {mbti_type: ENTP-X}"),
            "defaults.inheritance.mbti_type",
            "'ENTP-X' is not a type",
        ),
        (
            ("defaults:", "defaults:\n  memory_slice: {shared_memory_path: /x}"),
            "defaults.memory_slice.shared_memory_path",
            "cannot be shared",
        ),
        (
            ("AUTONOMOUS", "SOMETIMES"),
            "defaults.envelope.autonomy_band",
            "'AUTONOMOUS', 'PROPOSE_ONLY' or 'NEVER'",
        ),
        (("AUTONOMOUS", "yes"), "defaults.envelope.autonomy_band", "not true"),
        (
            ("rollback_plan: No changes", "rollback_plan: a; b"),
            "defaults.envelope.rollback_plan",
            "one command",
        ),
        (("tools_scope: [exec]", "tools_scope: []"), "defaults.envelope.tools_scope", "at least one tool"),
        (
            ("tools_scope: [exec]", "tools_scope: [exec], derived: [x]"),
            "defaults.envelope.derived",
            "unknown key",
        ),
    ],
)
def test_a_mistake_above_the_children_is_told_once_with_its_line(change, field, says):
    text = HEAD.replace(*change) + GOOD + GOOD.replace("id: a", "id: b")
    line, where, message = only(text)
    assert where == field
    assert says in message
    key = field.rpartition(".")[2]
    assert key in text.splitlines()[line - 1] or line == 1


@pytest.mark.parametrize(
    ("child", "field", "says"),
    [
        ("{parent: zeroclaw, run: x}", "id", "is missing"),
        ("{id: Bad Id, parent: zeroclaw, run: x}", "id", "lower-case letters"),
        ("{id: 7, parent: zeroclaw, run: x}", "id", "expected text, not 7; put it in quotes"),
        ("{id: zeroclaw, parent: zeroclaw, run: x}", "id", "is the name of an office"),
        ("{id: a, run: x}", "parent", "is missing; expected openfang, openclaw, zeroclaw"),
        ("{id: a, parent: 5, run: x}", "parent", "5 is no name"),
        ("{id: a, parent: zeroclow, run: x}", "parent", "did you mean 'zeroclaw'?"),
        ("{id: a, parent: hermes, run: x}", "parent", "neither an office nor a child"),
        ("{id: a, parent: a, run: x}", "parent", "its own parent"),
        ("{id: a, parent: zeroclaw}", "run", "is missing; expected the command"),
        ("{id: a, parent: zeroclaw, run: []}", "run", "names no program"),
        ("{id: a, parent: zeroclaw, run: ''}", "run", "names no program"),
        ("{id: a, parent: zeroclaw, run: [sleep, 600]}", "run[1]", "put it in quotes"),
        ('{id: a, parent: zeroclaw, run: "echo \'x"}', "run", "no closing quotation"),
        ("{id: a, parent: zeroclaw, run: {a: b}}", "run", "expected a list of texts"),
        ('{id: a, parent: zeroclaw, run: ["a\\0b"]}', "run[0]", "no program can be given"),
        ("{id: a, parent: zeroclaw, run: [" + "x" * 100_001 + "]}", "run[0]", "put it into a file"),
        ("{ok, fault: bad-mbti}", "fault", "is for a drill only"),
        ("{ok, container: claude-code}", "container", "runs: command, drill"),
        ("{ok, container: comand}", "container", "did you mean 'command'?"),
        ("{ok, container: [x]}", "container", "runs: command, drill"),
        ("{ok, title: 5}", "title", "expected text, not 5"),
        ("{ok, title: ''}", "title", "a few words"),
        ("{ok, priority: 200}", "priority", "less than or equal to 100"),
        ("{ok, priority: high}", "priority", "a whole number"),
        ("{ok, labels: quick}", "labels", "a list of short texts"),
        ("{ok, labels: [1]}", "labels[0]", "put it in quotes"),
        ("{ok, retries: -1}", "retries", "greater than or equal to 0"),
        ("{ok, workdir: 5}", "workdir", "put it in quotes"),
        ("{ok, titel: x}", "titel", "did you mean 'title'?"),
        (
            "{ok, lifecycle_policy: {}}",
            "lifecycle_policy",
            "under spawn_context",
        ),
        ("{ok, tools_scope: []}", "tools_scope", "under envelope"),
        ("{ok, after: b}", "after", "expected a list of ids"),
        ("{ok, after: [b]}", "after[0]", "is no child of this plan"),
        ("{ok, after: [a]}", "after[0]", "cannot wait for itself"),
        ("{ok, after: [5]}", "after[0]", "put it in quotes"),
        ("{ok, envelope: 5}", "envelope", "expected a mapping"),
        (
            "{ok, envelope: {tool_scope: [x]}}",
            "envelope.tool_scope",
            "'tools_scope'?",
        ),
        (
            "{ok, envelope: {task_name: A B}}",
            "envelope.task_name",
            "run-unit-tests",
        ),
        (
            "{ok, envelope: {risk_tier: BIG}}",
            "envelope.risk_tier",
            "'LOW', 'MEDIUM'",
        ),
        (
            "{ok, envelope: {output_schema: {type: object, required: 5}}}",
            "envelope.output_schema",
            "is no JSON Schema",
        ),
        (
            "{ok, envelope: {output_schema: {type: object, $ref: 'http://x/y'}}}",
            "envelope.output_schema",
            "points out of the schema",
        ),
        (
            "{ok, envelope: {output_schema: [a]}}",
            "envelope.output_schema",
            "Schema of",
        ),
        ("{ok, spawn_context: [a]}", "spawn_context", "expected a mapping"),
        (
            "{ok, spawn_context: {memory_slise: 1}}",
            "spawn_context.memory_slise",
            "'memory_slice'?",
        ),
        (
            "{ok, spawn_context: {parent_id: 'openclaw:x'}}",
            "spawn_context.parent_id",
            "does not agree with parent",
        ),
        (
            "{ok, spawn_context: {parent_id: 'zeroclaw:x', parent_type: openfang}}",
            "spawn_context",
            "does not match parent_id",
        ),
        (
            "{ok, spawn_context: {spawn_ts: yesterday}}",
            "spawn_context.spawn_ts",
            "2026-05-11T13:20:00Z",
        ),
        (
            "{ok, spawn_context: {enforcement: no}}",
            "spawn_context.enforcement",
            "declared-only",
        ),
        (
            "{ok, spawn_context: {memory_slice: {memory_limit_mb: '4'}}}",
            "spawn_context.memory_slice.memory_limit_mb",
            'a whole number, not "4"',
        ),
        (
            "{ok, spawn_context: {memory_slice: {shared_memory_path: here}}}",
            "spawn_context.memory_slice.shared_memory_path",
            "absolute path",
        ),
        (
            "{ok, spawn_context: {spawn_context: {inheritance: {mbti_type: NOPE}}}}",
            "spawn_context.spawn_context.inheritance.mbti_type",
            "is not a type like ENTP",
        ),
        (
            "{ok, spawn_context: {inheritance: {core_capabilities: [x], forbidden_capabilities: [x]}}}",
            "spawn_context.inheritance.core_capabilities",
            "core and forbidden at once",
        ),
        (
            "{ok, spawn_context: {inheritance: {core_capabilities: [Foo]}}}",
            "spawn_context.inheritance.core_capabilities[0]",
            "a lower-case word, like terminal",
        ),
        (
            "{ok, spawn_context: {kanban_handoff: {child_task_claim: mine}}}",
            "spawn_context.kanban_handoff.child_task_claim",
            "only the child makes its claim",
        ),
        (
            "{ok, spawn_context: {lifecycle_policy: {child_timeout_seconds: 5}}}",
            "spawn_context.lifecycle_policy",
            "must be below child_timeout_seconds",
        ),
        (
            "{ok, spawn_context: {lifecycle_policy: {child_timeout: 5}}}",
            "spawn_context.lifecycle_policy.child_timeout",
            "did you mean 'child_timeout_seconds'?",
        ),
        (
            "{ok, spawn_context: {resource_limits: {memory_mb: 2}}}",
            "spawn_context.resource_limits.memory_mb",
            "a number greater than or equal to 4",
        ),
        (
            "{ok, spawn_context: {resource_limits: {cpu: 2}}}",
            "spawn_context.resource_limits.cpu",
            "did you mean 'cpus'?",
        ),
        (
            "{ok, resource_limits: {cpus: 2}}",
            "resource_limits",
            "belongs under spawn_context",
        ),
        (
            "{id: a, parent: zeroclaw, container: drill, fault: bad-mbti, run: x, envelope: &d "
            "{task_description: x, output_schema: {type: object}}}",
            "run",
            "a drill runs nothing",
        ),
        (
            "{id: a, parent: zeroclaw, container: drill, envelope: "
            "{task_description: x, output_schema: {type: object}}}",
            "fault",
            "is missing; expected one of never-claims",
        ),
        (
            "{id: a, parent: zeroclaw, container: drill, fault: bad-mbit, envelope: "
            "{task_description: x, output_schema: {type: object}}}",
            "fault",
            "did you mean 'bad-mbti'?",
        ),
        (
            "{id: a, parent: zeroclaw, container: drill, fault: bad-mbti, envelope: {task_description: x}}",
            "envelope.output_schema",
            "is missing; expected a JSON Schema",
        ),
        ("text", "", "expected a mapping of a child's keys"),
        ("", "", "expected a mapping of a child's keys, not null"),
    ],
)
def test_a_mistake_in_a_child_is_told_once_with_its_field(child, field, says):
    ((where, message),) = wrong_children(f"- {child}\n".replace("{ok,", "{id: a, parent: zeroclaw, run: x,"))
    assert where == ("children[0]" + ("." + field if field else ""))
    assert says in message


@pytest.mark.parametrize("missing", ["time_budget_minutes", "autonomy_band", "tools_scope", "rollback_plan"])
def test_what_cannot_be_derived_has_to_be_written(missing):
    fields = {
        "time_budget_minutes": "5",
        "autonomy_band": "NEVER",
        "tools_scope": "[exec]",
        "rollback_plan": "No changes",
    }
    written = ", ".join(f"{key}: {value}" for key, value in fields.items() if key != missing)
    found = wrong_children(
        f"- {{id: a, parent: zeroclaw, run: x, envelope: {{{written}}}}}\n",
        "council: 1\nname: x\nchildren:\n",
    )
    assert [field for field, _ in found] == [f"children[0].envelope.{missing}"]
    assert "is missing; expected" in found[0][1]


def test_children_that_lack_the_same_are_told_together_at_the_first_of_them():
    text = (
        "council: 1\nname: x\nchildren:\n"
        "- {id: a, parent: zeroclaw, run: x}\n"
        "- {id: b, parent: zeroclaw, run: x, envelope: {tools_scope: [exec], autonomy_band: NEVER}}\n"
        "- {id: c, parent: zeroclaw, run: x}\n"
        "- {parent: zeroclaw, run: x}\n"
    )
    found = {mistake.field: mistake for mistake in mistakes(text)}
    assert set(found) == {"children[0].envelope", "children[1].envelope", "children[3].id"}
    first = found["children[0].envelope"]
    assert first.line == 4
    for word in ("lacks time_budget_minutes (minutes, like 10)", "autonomy_band", "tools_scope", "rollback_plan"):
        assert word in first.message
    assert "the same for children: c, children[3]; write them once in defaults.envelope" in first.message
    second = found["children[1].envelope"].message
    assert "tools_scope" not in second
    assert second.endswith("; write them here or in defaults.envelope")


def test_many_children_that_lack_one_field_are_one_short_mistake():
    head = HEAD.replace("tools_scope: [exec], ", "")
    ((field, message),) = wrong_children(
        "".join(f"- {{id: c{n}, parent: zeroclaw, run: x}}\n" for n in range(40)), head
    )
    assert field == "children[0].envelope.tools_scope"
    assert "is missing; expected a list with at least one tool" in message
    assert "the same for children: c1, c2" in message
    assert "c20 and 19 more; write it once in defaults.envelope" in message


@pytest.mark.parametrize(
    ("children", "expected"),
    [
        (
            "- {id: a, Z}\n- {id: a, Z}\n",
            [("children[1].id", "is taken by the child in line 7")],
        ),
        (
            "- {id: a, Z}\n- {id: b, parent: a}\n- {id: c, parent: b}\n",
            [("children[2].parent", "microsharks spawn nothing")],
        ),
        (
            "- {id: a, Z}\n- {id: b, parent: a, after: [a]}\n",
            [("children[1].after[0]", "only for microsharks of its own parent")],
        ),
        (
            "- {id: a, Z, after: [b]}\n- {id: b, parent: a}\n",
            [("children[0].after[0]", "is a microshark")],
        ),
        (
            "- {id: a, Z}\n- {id: b, Z, after: [a, a]}\n",
            [("children[1].after[1]", "is named twice")],
        ),
        (
            "- {id: unit-tests, Z}\n- {id: b, Z, after: [unit-test]}\n",
            [("children[1].after[0]", "did you mean 'unit-tests'?")],
        ),
        (
            "- {id: a, Z, after: [c]}\n- {id: b, parent: openclaw, after: [a]}\n"
            "- {id: c, parent: openclaw, after: [b]}\n- {id: d, parent: openclaw, after: [c]}\n",
            [("children[0].after", "in a circle: a > c > b > a")],
        ),
        (
            "- {id: a, Z, spawn_context: {SLICE /s/a}}}\n"
            "- {id: b, Z, spawn_context: {SLICE /s/a/b}}}\n"
            "- {id: c, Z, spawn_context: {SLICE /s}}}\n"
            "- {id: d, Z, spawn_context: {SLICE /t}}}\n",
            [
                ("children[1].spawn_context.memory_slice.shared_memory_path", "is the slice of"),
                ("children[2].spawn_context.memory_slice.shared_memory_path", "is the slice of"),
            ],
        ),
        (
            "- {id: a, Z, spawn_context: {inheritance: "
            "{core_capabilities: [file], forbidden_capabilities: [network]}}}\n"
            "- {id: b, parent: a, spawn_context: {inheritance: {core_capabilities: [file, exec]}}}\n"
            "- {id: c, parent: a, spawn_context: {inheritance: {forbidden_capabilities: []}}}\n"
            "- {id: d, parent: a, spawn_context: {inheritance: {core_capabilities: [file]}}}\n",
            [
                (
                    "children[1].spawn_context.inheritance.core_capabilities",
                    "exec is not the parent's to give",
                ),
                (
                    "children[2].spawn_context.inheritance.forbidden_capabilities",
                    "network is forbidden to the parent",
                ),
            ],
        ),
        (
            "- {id: a, Z, spawn_context: {LIMITS {processes: 8, ceiling: hard}}}\n"
            "- {id: b, parent: a, spawn_context: {LIMITS {processes: 9}}}\n"
            "- {id: c, parent: a, spawn_context: {LIMITS {ceiling: any, cpus: 1}}}\n"
            "- {id: d, parent: a, spawn_context: {LIMITS {processes: 4}}}\n",
            [
                ("children[1].spawn_context.resource_limits.processes", "9 is more than its parent's 8"),
                ("children[2].spawn_context.resource_limits.ceiling", "must stay so"),
            ],
        ),
        (
            "- {id: a, Z}\n- {id: b, parent: a, spawn_context: {lifecycle_policy: {run_ttl_seconds: 301}}}\n",
            [("children[1].spawn_context.lifecycle_policy.run_ttl_seconds", "at most 300 seconds")],
        ),
    ],
)
def test_a_mistake_between_children_is_told_once(children, expected):
    text = children.replace("Z", "parent: zeroclaw").replace("SLICE ", "memory_slice: {shared_memory_path: ")
    text = text.replace("LIMITS", "resource_limits:")
    found = wrong_children(text.replace("- {", "- {run: x, "))
    assert [field for field, _ in found] == [field for field, _ in expected]
    for (_, message), (_, says) in zip(found, expected, strict=True):
        assert says in message


def test_lines_point_at_the_children():
    found = mistakes(HEAD + GOOD + "  - id: b\n    parent: zeroclaw\n    run: x\n    after: [nobody]\n")
    assert [m.line for m in found] == [FIRST_CHILD_LINE + 4]
