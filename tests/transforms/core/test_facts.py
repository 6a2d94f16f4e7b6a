"""Facts: spelling, contradictions, and deciding them from the metadata of arguments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tessera as ts
from tessera.errors import GuardError
from tessera.transforms.core.facts import Fact, FactKind, Facts, Recorder, fact, holds, observe, parse_fact

_SPELLED = {
    "arg0.dtype = f32": Fact(FactKind.DTYPE, "arg0.dtype", "f32"),
    "arg0.rank = 2": Fact(FactKind.RANK, "arg0.rank", 2),
    "arg0.size[1] = 128": Fact(FactKind.SIZE, "arg0.size[1]", 128),
    "arg0.stride[0] = -64": Fact(FactKind.STRIDE, "arg0.stride[0]", -64),
    "arg0.size[1] % 16 = 0": Fact(FactKind.DIVISIBLE, "arg0.size[1]", 16),
    "arg0.pointer % 64 = 0": Fact(FactKind.DIVISIBLE, "arg0.pointer", 64),
    "arg0.size[1] = arg2.size[0]": Fact(FactKind.EQUAL, "arg0.size[1]", "arg2.size[0]"),
    "arg0 disjoint arg1": Fact(FactKind.DISJOINT, "arg0", "arg1"),
    "arg3 = 0.125": Fact(FactKind.VALUE, "arg3", 0.125),
    "arg3 = -7": Fact(FactKind.VALUE, "arg3", -7),
    "arg3 = true": Fact(FactKind.VALUE, "arg3", True),
    "arg4 is 7#3": Fact(FactKind.IDENTITY, "arg4", "7#3"),
}


@pytest.mark.parametrize("text", _SPELLED)
def test_a_fact_reads_and_prints_as_its_guard(text: str) -> None:
    found = parse_fact(text)
    assert found == _SPELLED[text]
    assert type(found.value) is type(_SPELLED[text].value)
    assert str(found) == text


def test_every_kind_has_a_spelling() -> None:
    assert {atom.kind for atom in _SPELLED.values()} == set(FactKind)


@pytest.mark.parametrize("text", ["", "arg0", "arg0.size = 3", "arg0.size[x] = 3", "arg0.size[0] = -3", "arg0 % 2 = 0"])
def test_what_is_not_a_fact_is_refused(text: str) -> None:
    with pytest.raises(GuardError, match="cannot read the fact"):
        parse_fact(text)


def test_relations_have_one_normal_form() -> None:
    assert parse_fact("arg1 disjoint arg0") == parse_fact("arg0 disjoint arg1")
    assert parse_fact("arg2.size[0] = arg0.size[1]") == parse_fact("arg0.size[1] = arg2.size[0]")


def test_contradicting_facts_are_refused() -> None:
    with pytest.raises(GuardError, match=r"contradicting facts about arg0\.size\[0\]"):
        Facts.parse("arg0.size[0] = 3", "arg0.size[0] = 4")
    assert len(Facts.parse("arg0.size[0] % 3 = 0", "arg0.size[0] % 4 = 0")) == 2


def test_more_facts_is_set_inclusion() -> None:
    few, many = Facts.parse("arg0.rank = 2"), Facts.parse("arg0.rank = 2", "arg0.size[0] = 4")
    assert few <= many
    assert not many <= few
    assert many.without(parse_fact("arg0.size[0] = 4")) == few
    assert hash(Facts.parse("arg0.rank = 2")) == hash(few)


def test_the_recorder_remembers_what_was_asked_and_held() -> None:
    recorder = Recorder(Facts.parse("arg0.size[0] = 4", "arg0.rank = 1"))
    assert recorder.ask(parse_fact("arg0.size[0] = 4"))
    assert not recorder.ask(parse_fact("arg0.size[0] = 5"))
    assert not recorder.ask(None)
    assert recorder.guards == Facts.parse("arg0.size[0] = 4")


def test_facts_are_decided_from_metadata() -> None:
    a = ts.zeros((4, 6))
    b = a[:, ::2]
    arguments = {"arg0": a, "arg1": b, "arg2": ts.zeros((6,)), "arg3": 0.5, "arg4": True, "arg5": 1}
    true = [
        "arg0.dtype = f32",
        "arg0.rank = 2",
        "arg0.size[1] = 6",
        "arg1.stride[1] = 2",
        "arg0.size[1] % 3 = 0",
        "arg0.pointer % 64 = 0",
        "arg0.size[1] = arg2.size[0]",
        "arg0 disjoint arg2",
        "arg3 = 0.5",
        "arg4 = true",
        "arg5 = 1",
        f"arg0 is {id(a)}#0",
    ]
    false = [
        "arg0.dtype = f64",
        "arg0.rank = 1",
        "arg1.size[1] = 6",
        "arg1.stride[1] = 1",
        "arg0.size[1] % 4 = 0",
        "arg0.size[0] = arg2.size[0]",
        "arg0 disjoint arg1",
        "arg3 = 0.25",
        "arg4 = 1",
        "arg5 = true",
        "arg0 is 0#0",
    ]
    assert [text for text in true if not holds(parse_fact(text), arguments)] == []
    assert [text for text in false if holds(parse_fact(text), arguments)] == []


@given(
    st.lists(st.lists(st.integers(0, 5), min_size=0, max_size=3), min_size=1, max_size=3), st.floats(allow_nan=False)
)
def test_what_is_observed_holds(shapes: list[list[int]], number: float) -> None:
    arguments: dict[str, object] = {f"arg{i}": ts.zeros(tuple(shape)) for i, shape in enumerate(shapes)}
    arguments["arg9"] = number
    found = observe(arguments)
    assert all(holds(atom, arguments) for atom in found)
    assert fact(FactKind.VALUE, "arg9", number) in found
