"""Code that is written for calls: its parameters take all that theirs do, and arguments come out as they were given."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tessera.tile.call_code import MISSING, CallCode, as_given


def plain(x: Any, y: Any = 2) -> None: ...


def positional(x: Any, /, y: Any = 2, *, z: Any = 3) -> None: ...


def marked(_x: Any, _y: Any = 2, *, z: Any) -> None: ...


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1,), {}),
    ((1, 5), {}),
    ((1,), {"y": 5}),
    ((), {"y": 5}),
    ((), {}),
    ((1, 5), {"z": 4}),
    ((1, 5, 6), {"other": 4}),
]


@pytest.mark.parametrize("function", [plain, positional, marked])
def test_arguments_come_out_as_they_were_given(function: Callable[..., None]) -> None:
    signature = inspect.signature(function)
    code = CallCode("name", signature, __name__)
    assert not any(name.startswith(code.mark) for name in signature.parameters)
    given = [one.name for one in signature.parameters.values() if one.kind is not one.KEYWORD_ONLY]
    call = code.made("pass", lambda *parts: as_given(given, *parts))
    assert call.__name__ == "name"
    for args, kwargs in CALLS:
        found_args, found_kwargs = call(*args, **kwargs)
        assert MISSING not in (*found_args, *found_kwargs.values())
        try:
            expected: Any = signature.bind(*args, **kwargs)
        except TypeError:
            with pytest.raises(TypeError):
                signature.bind(*found_args, **found_kwargs)
            continue
        expected.apply_defaults()
        found = signature.bind(*found_args, **found_kwargs)
        found.apply_defaults()
        assert found.arguments == expected.arguments


def test_keys_are_compared_one_by_one_then_looked_up() -> None:
    """By identity; what all keys have in common is compared once, before what differs."""
    common, one, other, third = object(), object(), object(), object()
    known = {(common, third): "third"}
    for keys in ([], [(common, one)], [(common, one), (common, other)], [(common, one), (third, one)]):
        code = CallCode("name", inspect.signature(plain), __name__, known=known, found=[*range(len(keys))])
        mark = code.mark
        choice = code.choice(keys, ["x", "y"], f"{mark}which = {mark}found[{{}}]", f"{mark}which = {mark}known[x, y]")
        body = code.attempt(f"{choice}\n{mark}good = True", f"return {mark}which")
        call = code.made(body, lambda *_: "otherwise")
        assert [call(*key) for key in keys] == list(range(len(keys)))
        assert call(common, third) == "third"
        assert call(third, third) == "otherwise"
        assert call([], third) == "otherwise"  # no key has it


def test_errors_of_an_entry_are_its_own() -> None:
    code = CallCode("name", inspect.signature(plain), __name__)
    body = code.attempt(f"{code.mark}good = x.is_good", "return y[0]")
    call = code.made(body, lambda *_: "otherwise")
    assert call(1, [5]) == "otherwise"
    good = SimpleNamespace(is_good=True)
    assert call(good, [5]) == 5
    with pytest.raises(IndexError):
        call(good, [])
