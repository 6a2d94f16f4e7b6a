"""Attributes of the schedule dialect: the decisions about one kernel."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

SWIZZLES = ("none", "xor")


@dataclass(frozen=True, slots=True)
class Config:
    """How a kernel is cut up; None leaves a choice to the compiler. `d` is how wide the rows are that fit.

    `split` is among how many program instances each sum is split, over keys or over the depth of a matmul: parts, which
    a second kernel combines.
    """

    block: tuple[int, ...] | None = None
    warps: int | None = None
    stages: int | None = None
    vector: int | None = None
    swizzle: str | None = None
    d: int | None = None
    split: int | None = None

    def problem(self) -> str | None:
        """Why this cannot be a schedule of any kernel, or None."""
        if self.block is not None and any(size < 1 for size in self.block):
            return f"block {list(self.block)}: sizes are positive"
        for name in ("warps", "stages", "vector", "d", "split"):
            value = getattr(self, name)
            if value is not None and value < 1:
                return f"{name} {value}: expected a positive number"
        if self.swizzle is not None and self.swizzle not in SWIZZLES:
            return f"swizzle {self.swizzle}: expected {' or '.join(SWIZZLES)}"
        return None


_FIELDS = tuple(field.name for field in fields(Config))


@irdl_attr_definition
class ConfigAttr(Data[Config]):
    """`<block = [128, 128], warps = 8, stages = 3, vector = 8, swizzle = "xor">`."""

    name = "schedule.config"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Config:
        found: dict[str, Any] = {}

        def parse_entry() -> None:
            name = parser.parse_keyword_in(_FIELDS)
            if name in found:
                parser.raise_error(f"{name} is given twice")
            parser.parse_punctuation("=")
            if name == "block":
                found[name] = tuple(
                    parser.parse_comma_separated_list(
                        parser.Delimiter.SQUARE, lambda: parser.parse_integer(allow_boolean=False)
                    )
                )
            elif name == "swizzle":
                found[name] = parser.parse_str_literal()
            else:
                found[name] = parser.parse_integer(allow_boolean=False)

        parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_entry)
        config = Config(**found)
        if problem := config.problem():
            parser.raise_error(problem)
        return config

    def print_parameter(self, printer: Printer) -> None:
        def text(value: object) -> str:
            return f'"{value}"' if isinstance(value, str) else str(list(value) if isinstance(value, tuple) else value)  # pyright: ignore[reportUnknownArgumentType]  # a block is a tuple of ints

        given = [(name, value) for name in _FIELDS if (value := getattr(self.data, name)) is not None]
        with printer.in_angle_brackets():
            printer.print_list(given, lambda entry: printer.print_string(f"{entry[0]} = {text(entry[1])}"))
