"""Every function of the Array API 2023.12 is there with its signature, or in the list of what is left out."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tessera as ts
from tessera import ops
from tessera.lang.operator_registry import OPERATORS
from tessera.lang.operators.methods import METHODS, PROPERTIES

HERE = Path(__file__).parent
TABLE: dict[str, dict[str, Any]] = json.loads((HERE / "array_api_2023_12.json").read_text())
PAGE = (HERE.parents[2] / "docs" / "operators.md").read_text()
LEFT_OUT = {
    name
    for row in PAGE.split("## What is left out")[1].splitlines()
    if row.startswith("| `")
    for name in re.findall(r"`(\w+)`", row.split("|")[1])
}
KINDS = {
    "positional": (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD),
    "either": (inspect.Parameter.POSITIONAL_OR_KEYWORD,),
    "keyword": (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD),
    "several": (inspect.Parameter.VAR_POSITIONAL,),
}


def functions() -> Iterator[tuple[str, str, Any]]:
    for group, members in TABLE.items():
        for name, said in members.items():
            yield group, name, said


def implementation(group: str, name: str) -> Any:
    if group == "array":
        return inspect.getattr_static(ts.Tensor, name, None) or METHODS.get(name) or PROPERTIES.get(name)
    if group == "namespace info":
        return getattr(ops.__array_namespace_info__(), name, None)
    return getattr(ops, name, None) if name != "newaxis" else "None"


@pytest.mark.parametrize(("group", "name"), [(group, name) for group, name, _ in functions()])
def test_every_name_is_there_or_left_out_with_a_reason(group: str, name: str) -> None:
    found = implementation(group, name)
    assert (found is None) == (name in LEFT_OUT and not (group == "array" and name == "__setitem__"))


SIGNATURES: list[tuple[str, str, Any]] = [one for one in functions() if isinstance(one[2], list)]


@pytest.mark.parametrize(("group", "name", "said"), SIGNATURES)
def test_signatures_are_the_standard_s(group: str, name: str, said: list[list[str]]) -> None:
    found = implementation(group, name)
    if found is None:
        return
    parameters = list(inspect.signature(found).parameters.values())
    if group == "array":
        parameters = parameters[1:]
    positional = [one for one in said if one[1] in ("positional", "either", "several")]
    for (own, kind, *default), given in zip(positional, parameters, strict=False):
        assert given.kind in KINDS[kind], own
        assert kind != "either" or given.name == own
        _same_default(given, default)
    assert len(parameters) >= len(said)
    by_name = {one.name: one for one in parameters}
    for own, kind, *default in said:
        if kind == "keyword":
            assert by_name[own].kind in KINDS[kind]
            _same_default(by_name[own], default)
    known = {one[0] for one in said} | {one.name for one in parameters[: len(positional)]}
    extra = [one for one in parameters if one.name not in known]
    assert all(one.default is not inspect.Parameter.empty for one in extra)


def _same_default(given: inspect.Parameter, default: list[str]) -> None:
    if default:
        assert given.default == eval(default[0]), given.name  # the table's own literals
    else:
        assert given.default is inspect.Parameter.empty or given.name in ("axis", "device", "kind"), given.name


def test_what_is_left_out_is_in_the_standard() -> None:
    every = {name for _, name, _ in functions()}
    assert every >= LEFT_OUT
    assert len(LEFT_OUT) > 20


def test_the_namespace_says_what_it_is() -> None:
    x = ts.zeros((2, 3))
    assert x.__array_namespace__() is ops
    assert x.__array_namespace__(api_version="2023.12") is ops
    assert ts.__array_api_version__ == ops.__array_api_version__ == "2023.12"
    with pytest.raises(ts.TesseraError, match=r"revision 1999\.01"):
        x.__array_namespace__(api_version="1999.01")
    info = ops.__array_namespace_info__()
    assert info.default_dtypes() == {"real floating": ts.f32, "integral": ts.i64, "indexing": ts.i64}
    assert info.dtypes(kind="signed integer").keys() == {"int8", "int16", "int32", "int64"}
    assert set(info.dtypes(kind=("bool", "unsigned integer"))) == {"bool", "uint8", "uint16", "uint32", "uint64"}
    assert info.default_device() in info.devices()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True}
    assert ops.pi == pytest.approx(3.141592653589793)
    assert ops.newaxis is None


def test_operators_beyond_the_standard_are_told_apart() -> None:
    written = set(re.findall(r"`(\w+)`", PAGE.split("## Deep learning")[1].split("## Indexing")[0]))
    standard = {name for _, name, _ in functions()}
    assert {name for name in OPERATORS if name not in standard} <= written
