"""Code that is written for calls: its parameters take all that theirs do, and arguments come out as they were given."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from tessera.runtime.program.written_calls import MISSING, as_given, mark_for, parameters_text, written


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
    mark = mark_for(signature)
    assert not any(name.startswith(mark) for name in signature.parameters)
    given = [one.name for one in signature.parameters.values() if one.kind is not one.KEYWORD_ONLY]
    named = [one.name for one in signature.parameters.values() if one.kind is one.KEYWORD_ONLY]
    others = ", ".join(f"{one!r}: {one}" for one in named)
    result = f"{mark}otherwise(({', '.join(given)},), {mark}extra, {{{others}}}, {mark}more)"
    text = f"def {mark}call({parameters_text(signature, mark)}):\n    return {result}\n"

    def otherwise(values: tuple[Any, ...], extra: tuple[Any, ...], others: dict[str, Any], more: dict[str, Any]) -> Any:
        args, kwargs = as_given(given, values, extra, others)
        return args, kwargs | more

    call = written("name", text, signature, mark, {"otherwise": otherwise}, __name__)
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
