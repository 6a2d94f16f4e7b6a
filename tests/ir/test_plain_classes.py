"""Classes of the IR: asked in C, and abstract all the same."""

from __future__ import annotations

import subprocess
import sys
from abc import ABC, abstractmethod
from pathlib import Path

import pytest
import xdsl
from xdsl.dialects import arith, builtin, scf
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.irdl import IRDLOperation

from tessera.ir.common import xdsl_versions
from tessera.ir.common.plain_classes import PlainMeta
from tessera.ir.graph import dialect as graph
from tessera.ir.pipe import copies as pipe
from tessera.ir.tile import dialect as tile

CLASSES = [
    *(Attribute, Block, Operation, Region, SSAValue, BlockArgument, OpResult, IRDLOperation),
    *(arith.AddiOp, scf.ForOp, builtin.ModuleOp, builtin.IntegerAttr, builtin.TensorType, builtin.Float32Type),
    *(tile.LoadOp, tile.FuncOp, graph.FuncOp, pipe.RingOp),
]


@pytest.mark.parametrize("one", CLASSES, ids=lambda one: one.__name__)
def test_only_the_class_is_asked(one: type) -> None:
    assert type(one) is PlainMeta


def test_answers_are_those_of_the_family() -> None:
    op = builtin.ModuleOp([])
    assert isinstance(op, builtin.ModuleOp)
    assert isinstance(op, Operation)
    assert isinstance(op, arith.AddiOp | IRDLOperation)
    assert not isinstance(op, arith.AddiOp)
    assert not isinstance(op, Attribute)
    assert issubclass(tile.LoadOp, Operation)
    assert not issubclass(Operation, tile.LoadOp)


def test_abstract_methods_must_be_given() -> None:
    class Asked(ABC, metaclass=PlainMeta):
        @abstractmethod
        def answer(self) -> int: ...

    with pytest.raises(TypeError, match="abstract"):
        Asked()  # pyright: ignore[reportAbstractUsage]


def test_other_abstract_classes_are_left_alone() -> None:
    assert type(ABC) is not PlainMeta
    assert type(type("Own", (ABC,), {})) is not PlainMeta


UNKNOWN = """
from abc import ABCMeta
import xdsl
xdsl.__version__ = "0.0.1"
import numpy as np
import tessera as ts
from tessera import kernel, tile
from tessera.ir import text
from tessera.ir.common import checking
from tessera.ir.tile import dialect
from xdsl.dialects import arith, builtin
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

@kernel
def double(x):
    return tile.load(x) + tile.load(x)

assert np.array_equal(double(ts.ones((5, 7))).numpy(), np.full((5, 7), 2))
assert {type(one) for one in (Operation, Attribute, dialect.LoadOp, arith.AddiOp)} == {ABCMeta}
assert isinstance(builtin.ModuleOp([]), Operation) and not isinstance(builtin.ModuleOp([]), arith.AddiOp)
number = arith.ConstantOp(builtin.IntegerAttr(1, builtin.i32))
wrong = arith.AddiOp.build(operands=[number, number], result_types=[builtin.f32])
assert list(checking.operands_of(wrong)) == [number.result, number.result]
for op in (number, wrong):
    try:
        checking.check(op)
        print("good", op.name)
    except VerifyException:
        print("bad", op.name)
assert not checking._GOOD
"""


def test_classes_of_an_unknown_xdsl_are_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Kernels compile as before, and every op is checked by xDSL."""
    program = tmp_path / "unknown.py"
    program.write_text(UNKNOWN)
    found = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert (found.stdout, found.stderr) == ("good arith.constant\nbad arith.addi\n", "")
    assert xdsl_versions.is_known()
    monkeypatch.setattr(xdsl, "__version__", "0.0.1")
    assert not xdsl_versions.is_known()
