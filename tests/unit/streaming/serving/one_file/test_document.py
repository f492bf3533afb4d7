"""The file as a parser of HTML sees it: one script, its policy, and strangers' names as data."""

import base64
import hashlib

import pytest

from streaming.serving.one_file.document import document, embedded
from tests.unit.streaming.serving.one_file.made_captures import Document, a_capture

HOSTILE = [
    "</script><script>window.broken=1</script>",
    "</SCRIPT\n><img src=x onerror='window.broken=1'>",
    "<!--<script>",
    "line\u2028and\u2029paragraph",
    '"quotes" \\ and \x00 \r\n',
    "pay\u202etnem",
]


def hashed(text: str) -> str:
    """The source that a policy allows."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_policy_allows_this_script_and_these_styles_alone() -> None:
    """By their hashes; nothing is loaded, sent or framed, from anywhere."""
    found = Document(document(a_capture("g")))
    scripts = [text for tag, told, text in found.texts if tag == "script" and told["type"] == "module"]
    styles = [text for tag, _, text in found.texts if tag == "style"]
    assert len(scripts) == 1
    assert len(styles) == 4
    assert found.policy == {
        "default-src": ["'none'"],
        "script-src": [hashed(scripts[0])],
        "style-src": [hashed(one) for one in styles],
        "img-src": ["data:", "blob:"],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
    }


def test_the_policy_stands_before_all_that_it_is_for() -> None:
    """A policy in the head holds from there on."""
    names = [name for name, _ in Document(document(a_capture("g"))).elements]
    assert names.index("meta") < names.index("link") < names.index("style") < names.index("script")
    assert [told for name, told in Document(document(a_capture("g"))).elements if name == "meta"][
        1
    ].keys() == {
        "http-equiv",
        "content",
    }


def test_nothing_of_the_file_lies_elsewhere() -> None:
    """No address in any attribute but the sign in the tab, which is data; no handler, no style in markup."""
    found = Document(document(a_capture("g")))
    for name, told in found.elements:
        assert not {
            one for one in told if one in ("src", "srcset", "style", "action") or one.startswith("on")
        }, name
        assert told.get("href", "data:").startswith("data:")
    assert all(
        "url(" not in text.replace("url(#hatch)", "") and "@import" not in text
        for tag, _, text in found.texts
        if tag == "style"
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_a_strangers_name_is_data_and_comes_back_as_it_was(name: str) -> None:
    """As group, and as the name of a captured file; no parser leaves the block of JSON."""
    content = document(a_capture(name, source=name))
    plain = Document(document(a_capture("g")))
    found = Document(content)
    assert [one for one, _ in found.elements] == [one for one, _ in plain.elements]
    assert (found.captured["groups"][0]["group"], found.captured["source"]) == (name, name)
    assert found.policy == plain.policy


def test_embedded_json_has_no_character_that_ends_a_script_or_a_line() -> None:
    """Whatever reads it: HTML or JavaScript."""
    assert embedded("<\u2028\u2029&") == '"\\u003c\\u2028\\u2029&"'


def test_the_same_answers_give_the_same_file() -> None:
    """So that two files can be compared."""
    assert document(a_capture("a", "b")) == document(a_capture("a", "b"))
