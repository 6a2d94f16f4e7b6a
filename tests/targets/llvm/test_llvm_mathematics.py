"""Functions that no instruction computes: their largest errors, their special values, and what they are made of."""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from llvm_loops import HERE, WIDTH, Array, Body, Loops, difference, elements, padded, words

from tessera.dtypes.types import f32, f64
from tessera.ir.common.elementwise import TABLE
from tessera.targets.cpu import features
from tessera.targets.llvm import mathematics
from tessera.targets.llvm.elements import is_arm, reaches
from tessera.targets.llvm.machine import assembly
from tessera.targets.llvm.text import Function, Value

# Each way of computing: the level and the number of lanes that lead to it.
WAYS = {
    "avx512": [("avx512", 16), ("amx", 32)],
    "avx2": [("avx2", 8), ("avx512", 4), ("neon", 4), ("neon", 0)],
    "base": [("base", 4), ("base", 0)],
}
RUNS = [(way, level, lanes) for way, places in WAYS.items() for level, lanes in places if level in HERE]
NAMES = list(mathematics.F32)
ONE, TWO = ([name for name in NAMES if TABLE[name].arity == arity] for arity in (1, 2))


@cache
def bounds() -> dict[str, dict[str, float]]:
    """The table of the document: for each function the largest error of each way, in units in the last place."""
    page = (Path(__file__).parents[3] / "docs" / "numerics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", page, re.MULTILINE)
    return {name: dict(zip(WAYS, map(float, errors), strict=True)) for name, *errors in rows if name in NAMES}


def body_of(name: str, level: str) -> Body:
    def body(f: Function, operands: list[Value]) -> Value:
        return mathematics.compute(f, name, operands, level)

    return body


@cache
def functions(level: str, lanes: int) -> Loops:
    loops = Loops(level)
    for name in NAMES:
        loops.add(name, [f32] * TABLE[name].arity, f32, lanes, body_of(name, level))
    return loops


@np.errstate(all="ignore")
def exact(name: str, *operands: Array) -> Array:
    """The result in f64, which stands for the true one."""
    return np.asarray(TABLE[name].numpy(*operands), np.float64)


@np.errstate(all="ignore")
def errors(got: Array, true: Array) -> Array:
    """Distances in units in the last place of the true result; beyond the largest number these go on as they were."""
    unit = np.ldexp(1.0, np.maximum(np.frexp(true)[1] - 1, -126) - 23)
    rounded = true.astype(np.float32)
    wide = np.where(np.isinf(got) & np.isfinite(true), np.copysign(np.float64(2.0**128), got), got.astype(np.float64))
    distance = np.abs(wide - true) / unit
    distance[(got == rounded) & np.isinf(got)] = 0.0
    distance[(true == 0) & (np.signbit(got) != np.signbit(true))] = np.inf
    distance[np.isnan(got) != np.isnan(true)] = np.inf
    distance[np.isnan(got) & np.isnan(true)] = 0.0
    return distance


_POSITIVE = np.array(
    [
        *(0.0, 1.0, 0.5, 2.0, 3.0, 4.0, 10.0, 1e-45, 2.0**-126, 1e-30, 1e-5, 0.99999994, 1.0000001, 2.0**24),
        *(88.72283, 88.72284, 87.3, 103.97, 103.98, 104.0, 127.99999, 128.0, 126.0, 149.0, 149.5, 150.0, 151.0),
        *(3.95, 9.02, np.pi / 4, np.pi / 2, np.pi, 131071.99, 131072.0, 1e10, 1e30, 3.4028235e38, np.inf, np.nan),
    ],
    np.float32,
)
SPECIAL = np.concatenate([_POSITIVE, -_POSITIVE])


def inputs(count: int, seed: int) -> Array:
    """Bits of any kind, magnitudes where things happen, numbers around 1 and multiples of π/2."""
    random = np.random.default_rng(seed)
    bits = random.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32)
    ranges = [random.uniform(-scale, scale, count).astype(np.float32) for scale in (0.1, 1.0, 4.5, 20.0, 110.0, 1000.0)]
    around = 1 + random.uniform(-1, 1, count) * 10.0 ** random.uniform(-7, 0, count)
    quarters = np.pi / 2 * random.integers(-80000, 80000, count)
    return padded(np.concatenate([SPECIAL, bits, *ranges, around.astype(np.float32), quarters.astype(np.float32)]))


def pairs(count: int, seed: int) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    grids = np.meshgrid(SPECIAL, SPECIAL)
    base, exponent = np.exp(random.uniform(-30, 30, count)), random.uniform(-3, 3, count)
    signed, whole = random.uniform(-3, 3, count), np.round(random.uniform(-40, 40, count))
    near, large = 1 + random.uniform(-1e-3, 1e-3, count), random.uniform(-1e5, 1e5, count)
    any_bits = random.integers(0, 1 << 32, (2, count), dtype=np.uint32).view(np.float32)
    both = [grids, (base, exponent), (signed, whole), (near, large), any_bits, random.uniform(-5, 5, (2, count))]
    first, second = (np.concatenate([np.ravel(pair[at]).astype(np.float32) for pair in both]) for at in (0, 1))
    return padded(first), padded(second)


def test_the_document_has_every_function() -> None:
    assert set(bounds()) == set(NAMES)
    asked = {name: 1.5 if name in ("exp", "exp2", "log", "log2", "rsqrt") else 4.0 for name in NAMES}
    assert [name for name in NAMES if max(bounds()[name].values()) > asked[name]] == []


@pytest.mark.parametrize("name", NAMES)
def test_errors_are_within_what_the_document_says(name: str) -> None:
    measure(name, 3000 if name == "erf" else 10000)


@pytest.mark.acceptance
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", NAMES)
def test_errors_of_many_operands(name: str, seed: int) -> None:
    measure(name, 1 << (17 if name == "erf" else 20), seed)


def measure(name: str, count: int, seed: int = 0) -> None:
    operands = (inputs(count, seed),) if name in ONE else pairs(count, seed)
    true = exact(name, *operands)
    for way, level, lanes in RUNS:
        got = functions(level, lanes).run(name, *operands)
        found = errors(got, true)
        worst = int(np.argmax(found))
        given = [operand[worst] for operand in operands]
        assert found[worst] <= bounds()[name][way], (
            f"{way}, {lanes} lanes: {given} gives {got[worst]}, not {true[worst]}"
        )


def test_errors_are_noticed() -> None:
    """The tests above rest on `errors`."""
    true = np.array([1.0, 1.0, 0.0, -0.0, np.inf, np.nan, 3.4e38, 1e-45, 0.99999994])
    got = np.array([1.0, 1.0000002, -0.0, -0.0, np.inf, np.nan, np.inf, 0.0, 1.0], np.float32)
    found = errors(got, true)
    assert found[[0, 3, 4, 5]].tolist() == [0, 0, 0, 0]
    assert found[2] == np.inf
    assert found[1] == pytest.approx(2, abs=0.01)
    assert found[6] == pytest.approx((2.0**128 - 3.4e38) / 2.0**104)
    assert found[7] == pytest.approx(1e-45 / 2.0**-149)
    assert found[8] == pytest.approx(1.0, abs=0.01)
    assert errors(np.array([np.nan], np.float32), np.array([1.0])) == np.inf


# Exact results

EXACT: dict[str, list[tuple[float, ...]]] = {
    "exp": [(0.0, 1.0), (-0.0, 1.0), (math.inf, math.inf), (-math.inf, 0.0), (89.0, math.inf), (-104.0, 0.0)],
    "exp2": [(0.0, 1.0), (-149.0, 2.0**-149), (127.0, 2.0**127), (128.0, math.inf), (-150.0, 0.0), (-3.0, 0.125)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (1e-30, 1e-30), (-math.inf, -1.0), (math.inf, math.inf), (-30.0, -1.0)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (20.0, 1.0), (-math.inf, -1.0), (1e-30, 1e-30), (math.inf, 1.0)],
    "sigmoid": [(0.0, 0.5), (math.inf, 1.0), (-math.inf, 0.0), (40.0, 1.0)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (math.inf, 1.0), (-math.inf, -1.0), (5.0, 1.0)],
    "log": [(1.0, 0.0), (0.0, -math.inf), (-0.0, -math.inf), (math.inf, math.inf), (-1.0, math.nan)],
    "log2": [(1.0, 0.0), (2.0**-149, -149.0), (2.0**127, 127.0), (8.0, 3.0), (0.0, -math.inf), (-1.0, math.nan)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -math.inf), (-2.0, math.nan), (math.inf, math.inf), (1e-30, 1e-30)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (math.inf, math.nan), (1e-30, 1e-30)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (-math.inf, math.nan)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (math.inf, math.nan), (1e-30, 1e-30)],
    "rsqrt": [(0.0, math.inf), (-0.0, -math.inf), (math.inf, 0.0), (-1.0, math.nan), (1.0, 1.0)],
    "pow": [
        *((2.0, 10.0, 1024.0), (-2.0, 3.0, -8.0), (-2.0, 0.5, math.nan), (math.nan, 0.0, 1.0), (1.0, math.nan, 1.0)),
        *((-1.0, math.inf, 1.0), (-0.0, -1.0, -math.inf), (-0.0, 3.0, -0.0), (0.0, -0.5, math.inf)),
        *((-math.inf, 3.0, -math.inf), (-math.inf, 0.5, math.inf), (-math.inf, -3.0, -0.0), (0.5, math.inf, 0.0)),
        *((2.0, -149.0, 2.0**-149), (10.0, 39.0, math.inf), (-10.0, 39.0, -math.inf), (math.nan, 1.0, math.nan)),
    ],
    "atan2": [
        *((0.0, 1.0, 0.0), (-0.0, 1.0, -0.0), (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0), (math.nan, 1.0, math.nan)),
        *((0.0, -1.0, math.pi), (-0.0, -0.0, -math.pi), (1.0, math.inf, 0.0)),
        *((1.0, 0.0, math.pi / 2), (math.inf, math.inf, math.pi / 4)),
        *((math.inf, -math.inf, 3 * math.pi / 4), (-1.0, -0.0, -math.pi / 2)),
    ],
}


@pytest.mark.parametrize(("way", "level", "lanes"), RUNS)
@pytest.mark.parametrize("name", NAMES)
def test_special_values_are_exact(name: str, way: str, level: str, lanes: int) -> None:
    columns = np.array(EXACT[name], np.float32).T
    *operands, wanted = (padded(column) for column in columns)
    got = functions(level, lanes).run(name, *operands)
    nan = np.isnan(wanted)
    assert np.isnan(got[nan]).all()
    assert difference(got[~nan], wanted[~nan], *(operand[~nan] for operand in operands)) == "", way


@pytest.mark.parametrize(("way", "level", "lanes"), RUNS)
def test_nan_stays_nan(way: str, level: str, lanes: int) -> None:
    nan = padded(words(elements(f32))[np.isnan(elements(f32))]).view(np.float32)
    assert nan.size > 30
    for name in NAMES:
        if name != "pow":
            assert np.isnan(functions(level, lanes).run(name, *[nan] * TABLE[name].arity)).all(), (name, way)


# Large angles take another way, for all lanes at once.


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=WIDTH, max_size=WIDTH))
@example([1.0] * (WIDTH - 1) + [1e30])
@example([1e30] + [0.5] * (WIDTH - 1))
def test_large_angles_among_small_ones(angles: list[float]) -> None:
    x = np.array(angles, np.float32)
    for name in ("sin", "cos", "tan"):
        true = exact(name, x)
        for way, level, lanes in RUNS:
            assert errors(functions(level, lanes).run(name, x), true).max() <= bounds()[name][way], (name, level, lanes)


# f64


@pytest.mark.parametrize("level", HERE)
def test_f64_is_left_to_the_library(level: str) -> None:
    loops = Loops(level)
    for name in NAMES:
        loops.add(f"{name}_f64", [f64] * TABLE[name].arity, f64, 8, body_of(name, level))
    random = np.random.default_rng(2)
    special = SPECIAL.astype(np.float64)
    x = padded(np.concatenate([special, random.uniform(-30, 30, 500), random.uniform(0, 2, 500)]))
    y = padded(random.permutation(x))
    with np.errstate(all="ignore"):
        for name in NAMES:
            operands = [x, y][: TABLE[name].arity]
            got, wanted = loops.run(f"{name}_f64", *operands), exact(name, *operands)
            near = np.abs(got - wanted) <= 4 * np.spacing(np.abs(wanted))
            assert (near | (got == wanted) | (np.isnan(got) & np.isnan(wanted))).all(), name


# What they are made of


def test_only_large_angles_call_a_library() -> None:
    """In f32; the names of intrinsics begin with llvm."""
    for level in HERE:
        text = functions(level, 16 if reaches(level, "avx512") else 8).module.text()
        called = set(re.findall(r"^declare .*@([\w.]+)\(", text, re.MULTILINE))
        assert {name for name in called if not name.startswith("llvm.")} == {"sinf", "cosf", "tanf"}


def instructions(name: str, level: str) -> list[str]:
    """The vector instructions of a function on sixteen lanes, without moves and clearing."""
    loops = Loops(level)
    loops.add(name, [f32] * TABLE[name].arity, f32, 16, body_of(name, level))
    cpu, flags = features.target(level)
    lines = assembly(loops.module.text(), cpu=cpu, features=flags).splitlines()
    start = max(at for at, line in enumerate(lines) if line.startswith(".LBB") and at < _last_jump(lines))
    if is_arm(level):
        written = [line.split() for line in lines[start : _last_jump(lines)]]
        body = [words[0] for words in written if len(words) > 1 and re.match(r"v\d+\.", words[1])]
        return [opcode for opcode in body if not opcode.startswith(("mov", "dup", "mvni", "fmov"))]
    body = [line.split()[0] for line in lines[start : _last_jump(lines)] if line.startswith("\tv")]
    return [opcode for opcode in body if not opcode.startswith(("vmov", "vbroadcast", "vpxor", "vxorps"))]


def _last_jump(lines: list[str]) -> int:
    return max(at for at, line in enumerate(lines) if line.strip().startswith(("jl", "b.lt")))


LENGTHS = {"exp": 12, "exp2": 9, "rsqrt": 6, "erf": 17, "sigmoid": 19, "tanh": 24}


@pytest.mark.parametrize("level", [level for level in HERE if reaches(level, "avx512")])
@pytest.mark.parametrize("name", LENGTHS)
def test_hot_functions_stay_short(name: str, level: str) -> None:
    """On sixteen lanes: what softmax, normalisation and activations spend their time on."""
    assert len(instructions(name, level)) <= LENGTHS[name], instructions(name, level)


def test_counting_sees_every_instruction() -> None:
    level = HERE[-1]
    assert len(instructions("exp", level)) >= 8
    assert len(instructions("atan2", level)) > len(instructions("exp", level))
