"""Kernels as machine code of every level of both families of processors, seen as text: no host of them is needed."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from cpu_runs import to_cpu

from tessera import Schedule, kernel, tile
from tessera.device_names import CPU_FAMILIES
from tessera.targets.cpu import features
from tessera.targets.cpu.compile import machine_for, options_for
from tessera.targets.cpu.emit.rules import emit
from tessera.targets.cpu.lower.tile_to_cpu import TileToCpu
from tessera.targets.llvm.machine import assembly

PROCESSORS = {
    "base": ("x86-64", ""),
    "avx2": ("x86-64-v3", ""),
    "avx512": ("x86-64-v4", ""),
    "amx": ("x86-64-v4", "+amx-tile,+amx-bf16,+avx512bf16,+avx512fp16"),
    "neon": ("generic", "+lse"),
}
PRODUCTS = {
    "base": r"mulps.*%xmm",
    "avx2": r"vfmadd\w+ps.*%ymm",
    "avx512": r"vfmadd\w+ps.*%zmm",
    "amx": r"tdpbf16ps",
    "neon": r"fmla\tv\d+\.4s",
}
SPILLS = {"x86_64": r"%[xyz]mm\d+, -?\d*\(%rsp\)", "aarch64": r"st[rp]\tq\d+.*\[sp"}


@kernel
def product(a: Any, b: Any, c: Any):
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    left = tile.load(a, at=(row, 0), shape=(here.m, here.k))
    right = tile.load(b, at=(0, col), shape=(here.k, here.n))
    tile.store(c, tile.dot(left, right), at=(row, col))


@kernel
def below_the_top(x: Any):
    rows = tile.load(x) * 0.1
    return rows - tile.max(rows, keepdims=True)


@kernel
def scaled_sum(x: Any, y: Any):
    return tile.load(x) * 0.1 + tile.load(y)


def family_of(level: str) -> str:
    return next(family for family, levels in CPU_FAMILIES.items() if level in levels)


def text_of(run: Any, level: str, *arguments: Any) -> str:
    """The assembly of a kernel, for a host of the level's family."""
    instance = run.lower(*arguments)
    module = instance.module.clone()
    to_cpu(module, TileToCpu(level))
    emitted = emit(module, instance.name, machine_for(options_for(level))).text
    processor, extras = PROCESSORS[level]
    triple = f'target triple = "{family_of(level)}-unknown-linux-gnu"\n'
    return assembly(triple + emitted, cpu=processor, features=extras)


@pytest.mark.parametrize("level", features.LEVELS)
def test_products_use_what_the_level_has(level: str) -> None:
    dtype = ml_dtypes.bfloat16 if level == "amx" else np.float32
    a, c = np.zeros((64, 64), dtype), np.zeros((64, 64), np.float32)
    found = text_of(product.with_schedule(Schedule(block=(64, 64, 64)))[1, 1], level, a, a, c)
    assert re.search(PRODUCTS[level], found)
    # Subnormal numbers are taken as zeros meanwhile.
    mode = r"msr\tFPCR" if family_of(level) == "aarch64" else r"v?ldmxcsr"
    assert len(re.findall(mode, found)) == 2


@pytest.mark.parametrize("level", ["avx512", "neon"])
def test_thirty_two_registers_hold_a_product(level: str) -> None:
    a = np.zeros((64, 64), np.float32)
    found = text_of(product.with_schedule(Schedule(block=(60, 64, 64)))[2, 1], level, a, a, a)
    body = max(re.split(r"^\.LBB\d+_\d+:.*$", found, flags=re.MULTILINE), key=lambda part: len(re.findall("fm", part)))
    assert len(re.findall(r"vfmadd|fmla", body)) >= 4 * 6 * 4
    assert not re.search(SPILLS[family_of(level)], body)


@pytest.mark.parametrize("level", ["avx2", "avx512", "neon"])
def test_sums_take_only_products_that_may_contract(level: str) -> None:
    fused = re.compile(r"vfn?m(add|sub)\w*ps|fml[as]\tv|fn?m(add|sub)\ts")
    x = np.zeros((64, 64), np.float32)
    assert not fused.search(text_of(below_the_top, level, x))
    assert fused.search(text_of(scaled_sum, level, x, x))
