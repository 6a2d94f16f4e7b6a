"""Checks a dataclass's fields (`check_fields`): types by annotation, and ranges as the class lists them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from tessera.errors import TesseraError

# By what annotations say. A truth value is no number, however Python sees it.
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "bool": ((bool,), "is True or False"),
    "int": ((int,), "is a number of things, expected a whole one"),
    "float": ((int, float), "is a number"),
    "str": ((str,), "is a text"),
}


def _is_positive(value: float) -> bool:
    return value > 0


def _is_not_negative(value: float) -> bool:
    return value >= 0


def _is_part(value: float) -> bool:
    return 0 < value < 1


_RANGES = (
    ("must be positive", _is_positive),
    ("must not be negative", _is_not_negative),
    ("is a part, between 0 and 1", _is_part),
)


def check_fields(
    given: Any,
    *,
    positive: Iterable[str] = (),
    not_negative: Iterable[str] = (),
    parts: Iterable[str] = (),
    error: type[TesseraError] = TesseraError,
) -> None:
    """Raises an error for a field of another kind than its annotation, or out of its range. None is in no range.

    `parts` are between 0 and 1, both excluded. NaN is nowhere in a range.
    """
    owner = type(given).__name__
    for one in fields(given):
        value, named = getattr(given, one.name), str(one.type)
        if value is None and named.endswith("| None"):
            continue
        kinds, said = _KINDS.get(named.removesuffix(" | None"), ((), ""))
        if kinds and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
            raise error(f"{owner}.{one.name} {said}, got {value!r}")
        if isinstance(value, float) and math.isnan(value):
            raise error(f"{owner}.{one.name} is a number, got nan")
    for names, (said, holds) in zip((positive, not_negative, parts), _RANGES, strict=True):
        for name in names:
            value = getattr(given, name)
            if value is not None and not holds(value):
                raise error(f"{owner}.{name} {said}, got {value!r}")
