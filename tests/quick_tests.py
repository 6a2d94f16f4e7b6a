"""Of a test with many parameters the quick run takes a few combinations; the others are left to `make acceptance`.

    @pytest.mark.quick
    @pytest.mark.parametrize("level", LEVELS)
    @pytest.mark.parametrize("dtype", [f32, bf16, f16])

takes as many as show every level and every type, and `quick(dtype=[f32, bf16])` does so for these two types. `quick(4)`
takes 4 of them, from first to last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest


def leave_to_acceptance(items: Iterable[pytest.Item]) -> None:
    """Marks what the quick run leaves out as `acceptance`."""
    found: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("quick") is not None:
            found[item.nodeid.partition("[")[0]].append(item)
    for name, tests in found.items():
        for test in left_out(name, tests):
            test.add_marker(pytest.mark.acceptance)


def left_out(name: str, tests: Sequence[pytest.Function]) -> list[pytest.Function]:
    """Those that show no value that the tests before them, or better ones, do not show as well."""
    mark = tests[0].get_closest_marker("quick")
    assert mark is not None
    wanted: Mapping[str, Sequence[Any]] = mark.kwargs
    for parameter, values in wanted.items():
        known = values_of(tests[0], parameter)
        if missing := [value for value in values if not any(one is value or one == value for one in known)]:
            raise pytest.UsageError(f"{name}: quick({parameter}=…) names {missing[0]!r}, which is none of its values")
    open_ = [test for test in tests if "acceptance" not in test.keywords and is_among(test, wanted)]
    left = [test for test in tests if test not in open_]
    shown: set[tuple[Any, ...]] = set()
    while open_:
        best = max(open_, key=lambda test: len(values_in(test) - shown))
        if values_in(best) <= shown:
            break
        shown |= values_in(best)
        open_.remove(best)
    taken = [test for test in tests if test not in left and test not in open_]
    most = min([len(taken), *mark.args])
    few = [taken[index * len(taken) // most] for index in range(most)]
    return left + open_ + [test for test in taken if test not in few]


def values_in(test: pytest.Function) -> set[tuple[Any, ...]]:
    """What a test shows: the values of each of its lists. They are the same objects in all tests."""
    given = dict(test.callspec.params)
    lists = [names_of(mark) for mark in test.iter_markers("parametrize")]
    shown = {(*names, *(id(given.pop(name)) for name in names)) for names in lists}
    return shown | {(name, id(value)) for name, value in given.items()}


def names_of(mark: pytest.Mark) -> list[str]:
    """The parameters of one list."""
    names: str | Sequence[str] = mark.args[0]
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


def is_among(test: pytest.Function, wanted: Mapping[str, Sequence[Any]]) -> bool:
    """Whether a test's parameters have values that are wanted."""
    given = test.callspec.params
    return all(any(given[name] is one or given[name] == one for one in values) for name, values in wanted.items())


def values_of(test: pytest.Function, parameter: str) -> list[Any]:
    """All values that a test is given for a parameter."""
    found: list[Any] = []
    for mark in test.iter_markers("parametrize"):
        listed = names_of(mark)
        if parameter in listed:
            for given in mark.args[1]:
                values: Any = given.values if isinstance(given, type(pytest.param())) else given
                alone = len(listed) == 1 and values is given
                found.append(values if alone else values[listed.index(parameter)])
    return found
