"""Runs nv programs for tests on the PTX machine, with numbers to try them on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from ptx_machine import Launch, Machine
from ptx_rules import Array

from tessera.dtypes import types as dt
from tessera.dtypes.types import DType
from tessera.targets.cuda.compile import CompiledPtx

ELEMENTS = {dt.u8: "ui8", dt.u32: "ui32", dt.f8e4m3: "f8E4M3FN", dt.f8e5m2: "f8E5M2"}


def spelled(dtype: DType) -> str:
    return ELEMENTS.get(dtype, dtype.name)


def run(program: CompiledPtx, arrays: Sequence[Any], blocks: int = 1) -> list[Machine]:
    launch = Launch()
    for given in arrays:
        if isinstance(given, np.ndarray):
            launch.view(cast("Array", given))
        else:
            launch.number(given)
    launch.words += [blocks, 1]
    return launch.run(program.ptx, program.threads, program.shared, program.block.size, range(blocks))


def no_conflicts(machines: Sequence[Machine], *kinds: str) -> None:
    for found in machines:
        for kind in kinds:
            assert found.conflicts[kind].taken == found.conflicts[kind].least, (kind, found.conflicts)


def numbers(seed: int, shape: tuple[int, ...], dtype: DType) -> Array:
    random = np.random.default_rng(seed)
    if dtype.is_float:
        return random.standard_normal(shape).astype(np.float32).astype(dtype.storage)
    return random.integers(int(dtype.min_value), int(dtype.max_value), shape, endpoint=True).astype(dtype.storage)
