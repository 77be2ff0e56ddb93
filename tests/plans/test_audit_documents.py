"""Links, headings, documentation, licences and dependencies."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from council_tui.plans.audit.licences import identify
from council_tui.plans.audit.manifests import read_manifest, requirement
from council_tui.plans.audit.markdown import parse, slug, without_code
from plans.repository import Checkout

REV = "0" * 40
MIT = "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a\ncopy\n"

PAGE = """# Hello, World!

[good](docs/a.md) [query](docs/a.md?x=1) [folder](docs/) [top](/docs/a.md) [anchor](#hello-world)
[gone](docs/b.md) ![gone](img/logo.png) [case](Docs/A.md) [deep](docs/a.md#nope)
[space](<my file.md>) [encoded](my%20file.md) [paren](a(1).md) [web](https://example.org) <https://example.org>
[ref][here] [undefined][label] [mail](mailto:a@b.c) [tpl]({{ url }}) [issues](../../issues)
`[code](x.md)` and a[0][1]

```md
[fenced](x.md)
```

    [indented](x.md)

<!-- [comment](x.md) -->
[here]: docs/c.md "title"
<img src="missing.gif"> <a href="docs/a.md#set">x</a>
"""


def test_broken_links_images_anchors_and_references_are_found_and_nothing_else(checkout: Checkout):
    checkout.write("README.md", PAGE)
    checkout.write("docs/a.md", 'Title\n=====\n<a id="set"></a>\n')
    checkout.write("my file.md")
    checkout.write("a(1).md")
    checkout.write("src/img/logo.png", b"\x89PNG")
    outcome = checkout.audit("links")
    assert sorted(outcome.titles("MEDIUM", "LOW")) == [
        "Broken anchor: docs/a.md#nope",
        "Broken image: img/logo.png",
        "Broken image: missing.gif",
        "Broken link: Docs/A.md",
        "Broken link: docs/b.md",
        "Broken link: docs/c.md",
        "Undefined reference: [label]",
    ]
    assert "Was docs/a.md meant?" in outcome.one("Docs/A.md")["description"]
    assert "Was src/img/logo.png meant?" in outcome.one("img/logo.png")["description"]
    assert outcome.one("docs/b.md")["line"] == 4
    assert "2 external (not fetched)" in outcome.one("4 Markdown files")["description"]


def test_a_link_to_a_file_that_git_ignores_is_broken_for_everybody_else(checkout: Checkout):
    checkout.write(".gitignore", "private.md\n")
    checkout.write("private.md")
    checkout.write("README.md", "[x](private.md)\n")
    assert checkout.audit("links").one("Broken link: private.md")


def test_a_generated_site_may_link_pages_by_their_address(checkout: Checkout):
    checkout.write("mkdocs.yml")
    checkout.write("docs/guide.md", "# One -- Two\n")
    checkout.write("docs/index.md", "[a](guide/) [b](../guide#one-two) [c](/api/x) [d][index.entry] [e](missing.md)\n")
    outcome = checkout.audit("links")
    assert outcome.titles("MEDIUM", "LOW") == ["Broken link: missing.md"]


def test_markdown_among_test_data_is_not_judged(checkout: Checkout):
    checkout.write("tests/data/a.md", "[x](gone.md)\n")
    assert checkout.audit("links").titles("MEDIUM", "LOW") == []


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("Hello, World!", "hello-world"),
        ("`council --run` and *more*", "council---run-and-more"),
        ("[Link](x.md) & co", "link--co"),
        ("Größe 2.0", "größe-20"),
    ],
)
def test_anchors_are_made_as_hosting_services_make_them(heading: str, anchor: str):
    assert slug(heading) == anchor


def test_repeated_headings_get_numbered_anchors():
    assert parse("# A\n# A\n## A {#own}\n").anchors == {"a", "a-1", "own", "a-2"}


@settings(max_examples=50)
@given(st.text(max_size=2000))
def test_no_text_breaks_the_reader_and_line_numbers_stay_true(text: str):
    parse(text)
    assert len(without_code(text)) == text.count("\n") + 1


def test_docs_reports_what_a_newcomer_misses(checkout: Checkout):
    checkout.write("README.md", "# Thing\n\nIt is a thing.\n")
    checkout.write("CONTRIBUTING.md", "Welcome.\n")
    checkout.commit()
    checkout.git("tag", "v1")
    outcome = checkout.audit("docs")
    assert outcome.one("The README is very short")
    assert outcome.one("No changelog")["severity"] == "LOW"
    assert outcome.one("Guides: CONTRIBUTING.md")


def test_a_missing_readme_is_said(checkout: Checkout):
    checkout.write("a.py")
    assert checkout.audit("docs").one("No README")["severity"] == "MEDIUM"


def test_notes_left_to_do_are_dated_and_those_in_tests_left_out(checkout: Checkout):
    checkout.write("README.md", "Install it, use it. " + "word " * 60)
    checkout.write("a.py", "x = 1\n# TODO: old one\n")
    checkout.write("tests/b.py", "# TODO: not mine\n")
    checkout.write("c.py", 'print("TODO list")\n')
    checkout.commit()
    outcome = checkout.audit("docs")
    finding = outcome.one("1 note left to do (1 TODO)")
    assert (finding["path"], finding["line"], finding["severity"]) == ("a.py", 2, "LOW")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (MIT, "MIT"),
        ("   Apache License\n   Version 2.0, January 2004", "Apache-2.0"),
        ("GNU GENERAL PUBLIC LICENSE\n  Version 3, 29 June 2007", "GPL-3.0"),
        ("GNU AFFERO GENERAL PUBLIC LICENSE\n  Version 3", "AGPL-3.0"),
        ("# Permission to use, copy, modify, and/or distribute this software for any", "ISC"),
        ("All rights reserved.", ""),
    ],
)
def test_licences_are_known_by_their_text(text: str, name: str):
    assert identify(text) == name


def test_licence_and_dependency_facts_of_several_ecosystems(checkout: Checkout):
    checkout.write("LICENSE", MIT)
    checkout.write(
        "pyproject.toml",
        '[project]\nname = "x"\nlicense = "Apache-2.0"\ndependencies = ["a>=1", "b==2.0", "b==2.0", "c"]\n',
    )
    checkout.write("requirements.txt", "flask\nx==1 --hash=sha256:00\ngit+https://example.org/y.git@main#egg=y\n")
    checkout.write("web/package.json", '{"private": true, "dependencies": {"l": "*", "m": "^1.0.0"}}')
    checkout.write("go.mod", "module m\nrequire (\n\texample.org/a v1.0.0\n\texample.org/b v1.0.0 // indirect\n)\n")
    checkout.write("go.sum")
    checkout.write("Cargo.toml", "[package\n")
    outcome = checkout.audit("licences")
    assert outcome.one("pyproject.toml says Apache-2.0, the file MIT")["severity"] == "MEDIUM"
    assert "2 pinned, 1 by range, 1 without" in outcome.one("pyproject.toml: 4 dependencies")["description"]
    assert outcome.one("pyproject.toml: 1 dependency listed twice")
    assert outcome.one("requirements.txt: 1 dependency without any version")
    assert outcome.one("requirements.txt: 1 dependency from a moving branch")["severity"] == "MEDIUM"
    assert outcome.one("web/package.json has no lock file")
    assert outcome.one("Lock file: go.sum")
    assert outcome.one("Cargo.toml cannot be read")


def test_a_project_in_order_gives_facts_only(checkout: Checkout):
    checkout.write("LICENSE", MIT)
    checkout.write("package.json", '{"name": "x", "license": "MIT", "dependencies": {"m": "^1.0.0"}}')
    checkout.write("package-lock.json", "{}")
    assert checkout.audit("licences").titles("HIGH", "MEDIUM", "LOW") == []


def test_readme_and_licence_may_be_links_to_files_of_the_tree(checkout: Checkout):
    checkout.write("docs/README.md", "Install it, use it. " + "word " * 60)
    checkout.write("legal/text", MIT)
    (checkout.root / "README.md").symlink_to("docs/README.md")
    (checkout.root / "LICENSE").symlink_to("legal/text")
    checkout.commit()
    assert checkout.audit("docs").one("README: 64 words")["path"] == "README.md"
    assert checkout.audit("licences").one("Licence: MIT")["path"] == "LICENSE"


def test_a_missing_licence_is_said(checkout: Checkout):
    checkout.write("a.py")
    assert checkout.audit("licences").one("No licence file")["severity"] == "MEDIUM"


def test_requirements_are_read_with_extras_markers_and_addresses():
    found = [
        requirement(t) for t in ("A.b[x]>=1; python_version<'3.12'", "c (==1)", "d @ https://e/f.whl", "-r x", "!")
    ]
    assert [(d.name, d.hold) if d else None for d in found] == [
        ("A.b", "range"),
        ("c", "pinned"),
        ("d", "source"),
        None,
        None,
    ]


def test_lines_made_to_exhaust_a_reader_are_read_in_no_time():
    parse("\n".join(("<a " * 500_000, "`" * 9_000, "[" * 200_000)))
    read_manifest("go.mod", b"require e.x" + b"/" * 100_000)
    read_manifest("requirements.txt", b"a" + b" " * 100_000 + b"!")


def test_cargo_and_poetry_bare_numbers_are_ranges_and_branches_are_moving():
    tables = ['b = "=1.0"', 'c = {git = "https://e/c", branch = "x"}', f'd = {{git = "https://e/d", rev = "{REV}"}}']
    text = "\n".join(["[dependencies]", 'a = "1.0"', *tables])
    found = read_manifest("Cargo.toml", text.encode()).dependencies
    assert [(d.name, d.hold, d.moving) for d in found] == [
        ("a", "range", False),
        ("b", "pinned", False),
        ("c", "source", True),
        ("d", "source", False),
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "version", "git", "rev"]), inner),
    max_leaves=8,
)


@settings(max_examples=100)
@given(st.dictionaries(st.sampled_from(["name", "license", "private", "dependencies", "devDependencies"]), JSON))
def test_no_shape_of_a_manifest_breaks_its_reader(body: dict[str, object]):
    manifest = read_manifest("package.json", json.dumps(body).encode())
    assert all(isinstance(d.moving, bool) and d.key is not None for d in manifest.dependencies)


@settings(max_examples=50)
@given(st.binary(max_size=500))
def test_no_bytes_break_a_manifest_reader(data: bytes):
    for path in ("pyproject.toml", "package.json", "Cargo.toml", "go.mod", "requirements.txt"):
        read_manifest(path, data)
