"""Arithmetic on floats in a GPU's registers, one at a time, with the machine's own instructions."""

from __future__ import annotations

from tessera.targets.cuda.ptx.inline import one
from tessera.targets.llvm.floats import Floats, Operand
from tessera.targets.llvm.text import Function, Value


class MachineFloats(Floats):
    """Works on `float` or `double`; products and sums fuse."""

    def __init__(self, f: Function, type_: str = "float") -> None:
        super().__init__(f, type_, "avx2")

    def instruction(self, name: str, *operands: Operand) -> Value:
        """An instruction of the machine with one result."""
        operands_ = ", ".join(f"${index}" for index in range(len(operands) + 1))
        return one(self.f, f"{name} {operands_};", self.type, *map(self.of, operands))
