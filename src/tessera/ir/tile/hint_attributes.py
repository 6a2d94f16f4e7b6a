"""Hints as an attribute of ops of the tile level."""

from __future__ import annotations

from xdsl.ir import Data, Operation
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from tessera.ir.tile.hints import NO_HINTS, WORDS, Hints

HINTS = "tile.hints"
"""The name under which ops have it."""


@irdl_attr_definition
class HintsAttr(Data[Hints]):
    """Hints: `#tile.hints<memory = smem, prefetch = 2>`."""

    name = "tile.hints"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Hints:
        with parser.in_angle_brackets():
            found = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: _parse_hint(parser))
        return Hints(**dict(found))  # pyright: ignore[reportArgumentType]  # each was parsed as what it is

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(", ".join(f"{name} = {value}" for name, value in self.data.said()))


def _parse_hint(parser: AttrParser) -> tuple[str, str | int]:
    name = parser.parse_identifier(" for a hint")
    if name not in Hints._fields:
        parser.raise_error(f"hints are {', '.join(Hints._fields)}, not {name}")
    parser.parse_punctuation("=")
    if name not in WORDS:
        number = parser.parse_integer(allow_boolean=False, allow_negative=False)
        if number < 1:
            parser.raise_error(f"{name} is a number from 1 on, not {number}")
        return name, number
    word = parser.parse_identifier(" for a hint's value")
    if word not in WORDS[name]:
        parser.raise_error(f"{name} is {' or '.join(WORDS[name])}, not {word}")
    return name, word


def hints_of(op: Operation) -> Hints:
    """What is asked of an op."""
    found = op.attributes.get(HINTS)
    return found.data if isinstance(found, HintsAttr) else NO_HINTS


def give_hints(op: Operation, hints: Hints) -> None:
    """Asks of an op what it is not asked already."""
    known = hints_of(op)
    made = Hints._make(mine if mine is not None else other for mine, other in zip(known, hints, strict=True))
    if made != known:
        op.attributes[HINTS] = HintsAttr(made)
