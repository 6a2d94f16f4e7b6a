"""Keys are split among program instances, heads that share keys are rows of one tile, and results stay the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from graph_programs import BOUNDS, Builder, Value, attended, build, check, kinds, normal
from hypothesis import given, settings
from hypothesis import strategies as st
from test_online_regions import FORMS, TYPES, WIDTH, arguments, loops
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tessera import bf16, f32, i32, i64
from tessera.dtypes.types import DType
from tessera.interpreters.levels.graph import run_function
from tessera.ir import text
from tessera.ir.common.schedule_attributes import Config, ConfigAttr
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import GraphTensorType
from tessera.ir.schedule import dialect as schedule
from tessera.targets.choose_blocks import stages_for
from tessera.transforms.core.stages import Stage
from tessera.transforms.fusion.fold_groups import FoldGroups
from tessera.transforms.pipeline import Compiled, compile_module, default_stages


@dataclass(frozen=True)
class GiveConfig(ModulePass):
    """Gives online regions a config."""

    name = "give-config"
    config: Config

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for region in op.walk():
            if isinstance(region, schedule.RegionOp) and region.kind.data == "online":
                region.properties["config"] = ConfigAttr(self.config)


def stages(split: int | None, block: tuple[int, int] = (16, 16)) -> Mapping[str, Stage]:
    found: dict[str, Stage] = {}
    for name, stage in default_stages().items():
        if name == "graph-to-schedule":
            found[FoldGroups.name] = Stage(FoldGroups(64), "graph")
        if name == "schedule-to-tile":
            found[GiveConfig.name] = Stage(GiveConfig(Config(block=block, split=split)), "schedule")
        found[name] = stage
    return found


def launches(made: Compiled) -> list[str]:
    return [line.split("grid <")[1].split(">")[0] for line in made.levels["tile"].splitlines() if "launch @" in line]


@pytest.mark.quick
@pytest.mark.parametrize("form", FORMS)
def test_parts_are_combined(form: str) -> None:
    types: Sequence[Sequence[Any]] = TYPES
    arrays = arguments(f32)
    if form == "heads_last":
        types = [["B", "S", 3, WIDTH], ["B", "T", 3, WIDTH], ["B", "T", 3, WIDTH]]
        arrays = [np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for x in arrays]
    module = build(FORMS[form], *((shape, f32) for shape in types))
    made = compile_module(module, stages=stages(3))
    assert len(launches(made)) == 2 + (form == "scaled_before")
    check(module, arrays, made)


def shared(causal: bool = False) -> Callable[..., Value]:
    """Attention of heads in groups."""

    def make(g: Builder, q: Value, k: Value, v: Value) -> Value:
        (batch, heads, _, width), (_, groups, keys, _) = q.shape, k.shape
        wide = (batch, groups, heads // groups, keys, width)
        k, v = (
            x.reshape(batch, groups, 1, keys, width).broadcast(wide).reshape(batch, heads, keys, width) for x in (k, v)
        )
        return attended(g, q, k, v, causal=causal)

    return make


@pytest.mark.parametrize(("heads", "groups", "rows"), [(8, 2, 1), (8, 8, 1), (6, 1, 1), (8, 2, 3), (4, 1, 16)])
@pytest.mark.parametrize("split", [None, 1, 4])
def test_heads_that_share_keys_are_rows(heads: int, groups: int, rows: int, split: int | None) -> None:
    types = [["B", heads, rows, WIDTH], *[["B", groups, "T", WIDTH]] * 2]
    module = build(shared(causal=rows > 1), *((shape, f32) for shape in types))
    made = compile_module(module, stages=stages(split, (64, 16)))
    matrices = "B" if groups == 1 else f'"{groups}*B"'
    assert kinds(made) == ["online"]
    assert launches(made)[0] == f"[1, {matrices}{', 4' if split == 4 else ''}]"
    for batch, keys in ((1, 1), (2, 33), (1, 200)):
        sizes = (heads, rows), (groups, keys), (groups, keys)
        check(module, [normal((batch, *one, WIDTH), f32, seed) for seed, one in enumerate(sizes)], made)


@pytest.mark.parametrize("dtype", [i32, i64], ids=str)
@pytest.mark.parametrize("split", [None, 4])
def test_lengths_from_memory_end_loops(dtype: DType, split: int | None) -> None:
    """Where lengths mask keys they are numbers of the kernel, by which targets shorten its loop."""

    def make(g: Builder, q: Value, k: Value, v: Value, lengths: Value) -> Value:
        x = (q @ k.T).cast(f32) * WIDTH**-0.5
        counted = g.add(graph.IotaOp(3, GraphTensorType.of(x.shape, i64)))
        x = g.where(counted.ew("lt", lengths.cast(i64).reshape(*lengths.shape, 1, 1, 1)), x, -np.inf)
        top = x.reduce("max")
        weights = (x - g.where(top.ew("eq", -np.inf), g.full(0, top.shape, f32), top)).ew("exp")
        total = weights.reduce("sum")
        return (weights / g.where(total.ew("eq", 0.0), g.full(1, total.shape, f32), total)).cast(q.dtype) @ v

    types = [(["B", 4, 1, WIDTH], f32), *[(["B", 4, "T", WIDTH], f32)] * 2, (["B"], dtype)]
    module = build(make, *types)
    made = compile_module(module, stages=stages(split))
    assert made.levels["tile"].count("tile.item") == 1
    arrays = [normal((5, 4, size, WIDTH), f32, size) for size in (1, 90, 90)]
    check(module, [*arrays, np.array([0, 1, 16, 40, 90], dtype.storage)], made)


def test_a_part_without_keys_weighs_nothing() -> None:
    """Five keys are one block: all other parts are empty."""
    module = build(shared(), *(((1, count, size, WIDTH), f32) for count, size in ((4, 1), (1, 5), (1, 5))))
    made = compile_module(module, stages={**stages(7), FoldGroups.name: Stage(FoldGroups(0), "graph")})
    check(module, [normal((1, count, size, WIDTH), f32, count) for count, size in ((4, 1), (1, 5), (1, 5))], made)


def test_results_do_not_depend_on_the_run() -> None:
    module = build(shared(), *((("B", count, size, WIDTH), bf16) for count, size in ((4, 1), (1, "T"), (1, "T"))))
    made = compile_module(module, stages=stages(4))
    arrays = [normal((2, count, size, WIDTH), bf16, count) for count, size in ((4, 1), (1, 90), (1, 90))]
    first, second = (run_function(made.module, "main", arrays)[0] for _ in range(2))
    assert first.tobytes() == second.tobytes()
    check(module, arrays, made, BOUNDS["bf16"] * 2)


def test_the_model_splits_where_instances_are_few() -> None:
    """A row of heads of one query: keys are split so that all multiprocessors have work; many matrices are not."""

    def region(batch: Any, keys: Any) -> Config:
        types = [(batch, 32, 1, 128), *[(batch, 8, keys, 128)] * 2]
        made = compile_module(build(shared(), *((one, bf16) for one in types)), stages=stages_for("cuda", "sm_90a"))
        module = text.read(made.levels["schedule"])
        (found,) = [op for op in module.walk() if isinstance(op, schedule.RegionOp)]
        return found.config.data

    assert region(1, 4096).split == 16
    assert region(8, 32768).split == 2
    assert region(64, 4096).split is None
    # Few keys of a row are held at once by an instance of its own, unless rows are many.
    assert region(1, 256).block == (1, 256)
    assert region(64, 256).block == (64, 128)
    assert region("B", "T").split == 16


# By chance: layouts, groups, masks, guards, and what is made of rows.


def _check(case: Any, split: int, block: tuple[int, int]) -> None:
    make, types, arrays = case
    module = build(make, *types)
    check(module, arrays, compile_module(module, stages=stages(split, block)))


BLOCKS = st.sampled_from(((16, 16), (64, 8), (64, 64)))


@settings(max_examples=6, deadline=None)
@given(loops(), st.integers(1, 9), BLOCKS)
def test_split_loops_by_chance(case: Any, split: int, block: tuple[int, int]) -> None:
    _check(case, split, block)


@pytest.mark.acceptance
@settings(max_examples=600, deadline=None)
@given(loops(), st.integers(1, 9), BLOCKS)
def test_many_split_loops_by_chance(case: Any, split: int, block: tuple[int, int]) -> None:
    _check(case, split, block)
