"""Classes of the IR: asked in C, and abstract all the same."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pytest
from xdsl.dialects import arith, builtin, scf
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.irdl import IRDLOperation

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
