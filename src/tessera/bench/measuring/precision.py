"""Precisions by their names: how inputs are stored, and how far a result may be from the truth."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from tessera.bench.results.definitions import BenchError
from tessera.dtypes.promotion import as_dtype
from tessera.dtypes.types import DType

# Relative error in norm against float64.
BOUNDS = {"f64": 1e-14, "f32": 2e-6, "f16": 5e-4, "bf16": 4e-3, "f8e4m3": 6e-2, "f8e5m2": 6e-2}
_SPELLINGS = {
    "fp64": "f64",
    "fp32": "f32",
    "fp16": "f16",
    "bfloat16": "bf16",
    "fp8": "f8e4m3",
    "fp8_e4m3": "f8e4m3",
    "fp8_e5m2": "f8e5m2",
}
_POLICY = re.compile(r"(?P<storage>\w+)(?:@accum\((?P<accum>\w+)\))?")


@dataclass(frozen=True)
class Precision:
    """A policy such as `bf16@accum(fp32)` as a benchmark uses it: its storage and its error bound."""

    name: str
    dtype: DType
    bound: float

    @property
    def storage(self) -> np.dtype[Any]:
        return np.dtype(self.dtype.storage)


def precision(policy: str) -> Precision:
    """Reads a policy, in our spelling or the specification's. Sums are always in f32 or wider: no other is offered."""
    found = _POLICY.fullmatch(policy.replace(" ", "").lower())
    storage = None if found is None else _SPELLINGS.get(found["storage"], found["storage"])
    if found is None or storage not in BOUNDS:
        raise BenchError(
            f"unknown precision {policy!r}", hint=f"one of {', '.join(BOUNDS)}, with or without @accum(f32)"
        )
    accumulated = _SPELLINGS.get(found["accum"] or "f32", found["accum"] or "f32")
    if accumulated not in ("f32", "f64"):
        raise BenchError(
            f"{policy!r} asks for sums in {accumulated}", hint="kernels sum in f32 or wider; write @accum(f32)"
        )
    return Precision(storage, as_dtype(storage), BOUNDS[storage])
