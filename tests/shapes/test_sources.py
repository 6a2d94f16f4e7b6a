"""Lines of source: what `inspect` gives, for all kinds of functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest

from tessera.shapes.sources import source_lines


def plain(x: int) -> int:
    return x


@lru_cache
@lru_cache(maxsize=3)
def decorated(x: int, y: int = 2) -> int:
    # A comment, and a string over several lines.
    text = """
of several lines
"""
    return x + y + len(text)


def outer() -> Callable[..., int]:
    def inner(x: int) -> int:
        return x

    return inner


class Holder:
    @staticmethod
    def method(x: int) -> int:
        return x


FUNCTIONS: list[Any] = [plain, decorated, outer, outer(), Holder.method]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__qualname__)
def test_lines_are_those_of_inspect(function: Any) -> None:
    code = inspect.unwrap(function).__code__
    assert source_lines(code) == inspect.getsourcelines(code)


def test_code_without_a_file_has_none() -> None:
    scope: dict[str, Any] = {}
    exec(compile("def nowhere(): ...", "<nowhere>", "exec"), scope)
    with pytest.raises(OSError, match="source"):
        source_lines(scope["nowhere"].__code__)
