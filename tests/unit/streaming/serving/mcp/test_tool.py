"""What a model is told of a tool, and what a tool takes."""

from typing import Annotated, Any, Literal

import msgspec
import pytest

from streaming.serving.mcp.tool import Told, Tool, ToolError, answer_of, schema_of


class Part(msgspec.Struct):
    """A part."""

    length: int
    """In metres."""


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    """What is asked."""

    name: str
    """Of what,
    exactly."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=9)] = 5
    kind: Literal["a", "b"] = "a"


class Answer(msgspec.Struct):
    """What is answered."""

    parts: list[Part]
    title: str = ""


def _echo(asked: Asked) -> Told:
    return Told(Answer(parts=[Part(asked.limit)], title=asked.name))


ECHO = Tool("echo", "Echo", "Says it again.", Asked, Answer, _echo)


def test_a_schema_is_one_piece_with_the_meaning_of_each_field() -> None:
    """As it stands below the field in its class; a field may be called title."""
    assert schema_of(Answer) == {
        "type": "object",
        "description": "What is answered.",
        "properties": {
            "parts": {
                "type": "array",
                "items": {
                    "type": "object",
                    "description": "A part.",
                    "properties": {"length": {"type": "integer", "description": "In metres."}},
                    "required": ["length"],
                },
            },
            "title": {"type": "string", "default": ""},
        },
        "required": ["parts"],
    }
    asked = schema_of(Asked)
    assert asked["properties"]["name"]["description"] == "Of what, exactly."
    assert asked["additionalProperties"] is False


def test_a_type_without_source_has_a_schema_all_the_same() -> None:
    """An installation may hold no sources."""
    made = msgspec.defstruct("Made", [("size", int)])
    assert schema_of(made)["properties"] == {"size": {"type": "integer"}}


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        pytest.param({"name": "x"}, Answer([Part(5)], "x"), id="defaults"),
        pytest.param({"name": "x", "limit": None, "kind": ""}, Answer([Part(5)], "x"), id="null-and-empty"),
        pytest.param({"name": "x", "limit": "7"}, Answer([Part(7)], "x"), id="text"),
        pytest.param({"name": "x", "limit": 7.0}, Answer([Part(7)], "x"), id="whole-float"),
    ],
)
def test_arguments_are_taken_as_models_send_them(given: dict[str, Any], answer: Answer) -> None:
    """Null or an empty text for nothing, numbers as text."""
    assert answer_of(ECHO, given) == Told(answer)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(None, id="none"),
        pytest.param({"name": 5}, id="kind"),
        pytest.param({"name": "x", "limit": 0}, id="too-small"),
        pytest.param({"name": "x", "limit": 10**400}, id="huge"),
        pytest.param({"name": "x", "limit": float("nan")}, id="nan"),
        pytest.param({"name": "x", "limit": float("inf")}, id="infinite"),
        pytest.param({"name": "x", "limit": 1.5}, id="fraction"),
        pytest.param({"name": "x", "limit": True}, id="bool"),
        pytest.param({"name": "x", "kind": "c"}, id="not-offered"),
        pytest.param({"name": "x", "nmae": "y"}, id="unknown"),
        pytest.param({"name": ["x"]}, id="list"),
        pytest.param({"name": "x", "\ud800": 1}, id="half-a-character"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(given: dict[str, Any] | None) -> None:
    """An assistant can read why, and ask again."""
    with pytest.raises(ToolError, match="echo does not take these arguments: "):
        answer_of(ECHO, given)
