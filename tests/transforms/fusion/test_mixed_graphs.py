"""Graphs of products and everything else: each pass leaves valid IR, and kernels give what the graph means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from mixed_graphs import Array, MixedGraph
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tessera import knobs
from tessera.dtypes.types import f32
from tessera.interpreters.levels.graph import run_function
from tessera.ir import text
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.effects import PrintOp
from tessera.ir.graph.types import GraphTensorType
from tessera.transforms.fusion.graph_to_schedule import GraphToSchedule
from tessera.transforms.pipeline import Stage, compile_module, default_stages

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def check(module: ModuleOp, given: Sequence[Array], few: int = 0) -> None:
    text.verify(module)
    stages = {**default_stages(), "graph-to-schedule": Stage(GraphToSchedule(few), "schedule")}
    with knobs.verify.using(True):
        compiled = compile_module(module, stages=stages)
    for found, expected in zip(
        run_function(compiled.module, "f", given), run_function(module, "f", given), strict=True
    ):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("few", [0, 16])
@pytest.mark.parametrize("first", [0, 3, 6, 9])
def test_random_graphs(first: int, few: int) -> None:
    for seed in range(first, first + 3):
        program = MixedGraph(seed)
        check(program.module(), program.arguments(), few)


@pytest.mark.acceptance
@pytest.mark.parametrize("first", range(100, 1100, 100))
def test_many_random_graphs(first: int) -> None:
    for seed in range(first, first + 100):
        program = MixedGraph(seed)
        check(program.module(), program.arguments(), 16 * (seed % 2))


# Products whose rows have several axes, and what is between them.


class Layers:
    """Writes a function of x, three matrices, and another x."""

    def __init__(self, lead: Sequence[int]) -> None:
        shapes = [[*lead, 8], [8, 16], [16, 8], [8, 16], [*lead, 8]]
        self.types = [GraphTensorType.of(shape, f32) for shape in shapes]
        self.function = graph.FuncOp("f", self.types, [])
        self.x, self.w1, self.w2, self.w3, self.z = self.function.arguments
        self.lead = list(lead)

    def add(self, op: Operation) -> SSAValue:
        self.function.body.block.add_op(op)
        return op.results[0]

    def product(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.add(graph.MatmulOp(a, b))

    def ew(self, fn: str, *operands: SSAValue) -> SSAValue:
        return self.add(graph.EwOp(fn, list(operands)))

    def last(self, value: SSAValue, width: int) -> SSAValue:
        """The last row of each matrix."""
        stops = [*self.lead, width]
        starts = [*(0 for _ in self.lead[:-1]), self.lead[-1] - 1, 0]
        return self.add(graph.SliceOp(value, starts, stops, [1] * len(stops)))

    def module(self, *results: SSAValue) -> ModuleOp:
        body = self.function.detach_region(self.function.body)
        function = graph.FuncOp("f", self.types, [value.type for value in results], effects=["io"], body=body)
        function.body.block.add_op(graph.ReturnOp(list(results)))
        return ModuleOp([function])

    def arguments(self) -> list[Any]:
        draw = np.random.default_rng(0)
        return [
            draw.standard_normal([size for size in type_.shape if isinstance(size, int)]).astype(np.float32)
            for type_ in self.types
        ]


def cut_between(g: Layers) -> ModuleOp:
    """A slice of the product stands before what is computed of all of it."""
    product = g.product(g.x, g.w1)
    cut = g.last(product, 16)
    return g.module(cut, g.ew("tanh", product))


def cut_twice(g: Layers) -> ModuleOp:
    """What is made of the slice is sliced away from the product's own work, too."""
    product = g.product(g.x, g.w1)
    cut = g.ew("neg", g.last(product, 16))
    active = g.ew("tanh", product)
    other = g.last(active, 16)
    return g.module(g.ew("add", cut, other), g.ew("mul", active, product))


def backward(g: Layers) -> ModuleOp:
    """The second product's work reads what the first one gives, with a third one between them."""
    product = g.product(g.x, g.w1)
    result = g.product(g.ew("tanh", product), g.w2)
    back = g.product(g.z, g.w3)
    return g.module(result, g.ew("mul", back, product))


def backward_in_order(g: Layers) -> ModuleOp:
    """The second product is made of the first: its work cannot be the first one's."""
    product = g.product(g.x, g.w1)
    active = g.ew("tanh", product)
    result = g.product(active, g.w2)
    back = g.product(result, g.w3)
    return g.module(g.ew("mul", back, product), g.ew("add", back, active))


def each_of_the_other(g: Layers) -> ModuleOp:
    """Two products, each with work that reads the other."""
    one, other = g.product(g.x, g.w1), g.product(g.z, g.w3)
    return g.module(g.ew("mul", g.ew("tanh", one), other), g.ew("sub", g.ew("tanh", other), one))


def folded_between(g: Layers) -> ModuleOp:
    """A fold of the product stands before what is computed with it."""
    product = g.product(g.x, g.w1)
    rank = len(g.lead) + 1
    total = g.add(graph.ReduceOp("sum", product, [rank - 1], keepdims=True))
    spread = g.add(graph.BroadcastOp(total, [*g.lead, 16]))
    return g.module(g.ew("sub", g.ew("tanh", product), spread), g.ew("neg", product))


def printed_between(g: Layers) -> ModuleOp:
    """Something with effects reads the product before the rest is computed."""
    product = g.product(g.x, g.w1)
    g.function.body.block.add_op(PrintOp("product", product))
    active = g.ew("tanh", product)
    return g.module(g.product(active, g.w2), active)


def shared_input(g: Layers) -> ModuleOp:
    """What is added to one product is made of a slice of another, and stands between both's work."""
    product, other = g.product(g.x, g.w1), g.product(g.z, g.w3)
    active = g.ew("tanh", product)
    spread = g.add(graph.BroadcastOp(g.last(active, 16), [*g.lead, 16]))
    return g.module(g.ew("add", other, spread), g.ew("mul", active, other), product)


GRAPHS = (
    cut_between,
    cut_twice,
    backward,
    backward_in_order,
    each_of_the_other,
    folded_between,
    printed_between,
    shared_input,
)


@pytest.mark.parametrize("lead", [(6,), (3, 2), (2, 3, 1), (0, 2), (1, 1)], ids=str)
@pytest.mark.parametrize("build", GRAPHS, ids=lambda build: build.__name__)
def test_regions_stand_where_all_they_need_is_there(
    build: Callable[[Layers], ModuleOp], lead: Sequence[int], capsys: pytest.CaptureFixture[str]
) -> None:
    layers = Layers(lead)
    check(build(layers), layers.arguments())
    capsys.readouterr()
