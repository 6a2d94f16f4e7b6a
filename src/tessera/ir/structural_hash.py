"""The identity of IR: a hash of structure that ignores names and locations and is equal in every process."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping

from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.printer import Printer

from tessera.ir.text import VERSIONS


def structural_hash(op: Operation, versions: Mapping[str, int] = VERSIONS) -> str:
    """Hexadecimal SHA-256 over ops, values by number, sorted attributes, and dialect versions."""
    return _Hasher(versions).hash(op)


class _SortingPrinter(Printer):
    """Dictionaries are equal whatever their order; so must their texts be."""

    def print_attr_dict(self, attr_dict: Mapping[str, Attribute]) -> None:
        super().print_attr_dict(dict(sorted(attr_dict.items(), key=lambda entry: entry[0])))


class _Hasher:
    def __init__(self, versions: Mapping[str, int]) -> None:
        self._digest = hashlib.sha256(repr(sorted(versions.items())).encode())
        self._numbers: dict[SSAValue | Block, int] = {}
        # Types recur on almost every value: print each attribute once.
        self._texts: dict[Attribute, str] = {}

    def hash(self, op: Operation) -> str:
        self._operation(op)
        return self._digest.hexdigest()

    def _put(self, *parts: str | int) -> None:
        # Lengths in front keep neighbouring parts apart whatever they contain.
        for part in parts:
            text = str(part).encode()
            self._digest.update(b"%d:" % len(text) + text)

    def _number(self, value: SSAValue | Block) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def _attribute(self, attribute: Attribute) -> str:
        text = self._texts.get(attribute)
        if text is None:
            stream = io.StringIO()
            _SortingPrinter(stream).print_attribute(attribute)
            text = self._texts[attribute] = stream.getvalue()
        return text

    def _operation(self, op: Operation) -> None:
        self._put("op", op.name, len(op.operands), *(self._number(operand) for operand in op.operands))
        for table in (op.properties, op.attributes):
            self._put(len(table))
            for name in sorted(table):
                self._put(name, self._attribute(table[name]))
        self._put(len(op.results))
        for result in op.results:
            self._put(self._number(result), self._attribute(result.type))
        self._put(len(op.successors), *(self._number(block) for block in op.successors))
        self._put(len(op.regions))
        for region in op.regions:
            self._put("region", len(region.blocks))
            for block in region.blocks:
                self._number(block)
            for block in region.blocks:
                self._put("block", len(block.args))
                for argument in block.args:
                    self._put(self._number(argument), self._attribute(argument.type))
                for inner in block.ops:
                    self._operation(inner)
