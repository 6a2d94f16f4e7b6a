"""Functions of f64 that need no mathematics library: their errors, their special values, and their code on GPUs."""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import nv_cases
import ptx_checks
import pytest
from emitted_runs import run
from gpu_options import gpu
from hypothesis import example, given, settings
from hypothesis import strategies as st
from llvm_loops import HERE, Array, Body, Loops, padded, words
from test_llvm_mathematics import EXACT as NARROW_EXACT

from tessera.dtypes.types import f64
from tessera.ir.common import elementwise as table
from tessera.ir.common.elementwise import TABLE
from tessera.targets import text
from tessera.targets.cuda.compile import compile_lowered
from tessera.targets.llvm.elements import fuses
from tessera.targets.llvm.f64_functions import F64
from tessera.targets.llvm.floats import Floats
from tessera.targets.llvm.text import Function, Value

NAMES = list(F64)
WAYS = [("avx2", 0), ("avx2", 4), ("avx512", 8), ("neon", 0), ("neon", 2), ("neon", 4)]
RUNS = [(level, lanes) for level, lanes in WAYS if level in HERE]


@cache
def bounds() -> dict[str, float]:
    """The table of the document: the largest error of each function, in units in the last place."""
    page = (Path(__file__).parents[3] / "docs" / "numerics.md").read_text(encoding="utf-8")
    return {name: float(error) for name, error in re.findall(r"^\| (\w+) \| ([\d.]+) \|$", page, re.MULTILINE)}


def body_of(name: str, level: str) -> Body:
    def body(f: Function, operands: list[Value]) -> Value:
        return F64[name](Floats(f, operands[0].type, level), *operands)

    return body


@cache
def functions(level: str, lanes: int) -> Loops:
    loops = Loops(level)
    for name in NAMES:
        loops.add(name, [f64] * TABLE[name].arity, f64, lanes, body_of(name, level))
    return loops


def computed(name: str, *operands: Array) -> Array:
    """By scalars, which the other ways have to agree with."""
    size = operands[0].size
    return functions(RUNS[0][0], 0).run(name, *map(padded, operands))[:size]


# What is true: numbers of 64 bits, as the library of long double has them, which is right to about 2^-10 of a unit here

Long = np.longdouble


@np.errstate(all="ignore")
def true(name: str, *operands: Array) -> Array:
    wide = [operand.astype(Long) for operand in operands]
    known: Any = {"erf": _erf, "sigmoid": _sigmoid, "pow": np.power, "atan2": np.arctan2}
    return np.asarray(known[name](*wide) if name in known else getattr(np, name)(*wide))


def _sigmoid(x: Array) -> Array:
    decay = np.exp(-np.abs(x))
    return np.where(x >= 0, Long(1), decay) / (1 + decay)


def _erf(x: Array) -> Array:
    """2/√π · e^(−x²) · Σ (2x²)^n · x / (1 · 3 · 5 · …): all terms have one sign."""
    size = np.minimum(np.abs(x), Long(6.5))
    term, total = size, size
    for odd in range(3, 460, 2):
        term = term * (2 * size * size) / odd
        total = total + term
    root = np.sqrt(Long(math.pi) + Long(1.2246467991473532e-16))
    return np.copysign(np.minimum(2 / root * np.exp(-size * size) * total, 1), x)


@np.errstate(all="ignore")
def errors(got: Array, wanted: Array) -> Array:
    """Distances in units in the last place of the true result; beyond the largest number these go on as they were."""
    unit = np.ldexp(Long(1), np.clip(np.frexp(wanted)[1] - 1, -1022, 1023) - 52)
    wide = np.where(np.isinf(got) & np.isfinite(wanted), np.copysign(Long(2) ** 1024, got), got.astype(Long))
    distance = np.abs(wide - wanted) / unit
    distance[(got == wanted.astype(np.float64)) & np.isinf(got)] = 0.0
    distance[(wanted == 0) & (np.signbit(got) != np.signbit(wanted))] = np.inf
    distance[np.isnan(got) != np.isnan(wanted)] = np.inf
    distance[np.isnan(got) & np.isnan(wanted)] = 0.0
    return distance.astype(np.float64)


def check(name: str, *operands: Array) -> None:
    got, wanted = computed(name, *operands), true(name, *operands)
    found = errors(got, wanted)
    worst = int(np.argmax(found))
    given_ = [float(operand[worst]) for operand in operands]
    assert found[worst] <= bounds()[name], f"{name}{given_} gives {got[worst]}, not {wanted[worst]}"


def test_true_results_are_longer() -> None:
    """The tests rest on these."""
    assert np.finfo(Long).nmant >= 63
    assert float(true("exp", np.array([1.0]))[0] - Long(math.e)) == pytest.approx(1.4456468917292502e-16, rel=1e-3)
    x = np.linspace(-6, 6, 1001)
    with np.errstate(all="ignore"):
        assert np.abs(true("erf", x).astype(np.float64) - table.apply("erf", [x], [f64])).max() <= 2.0**-52


def test_errors_are_noticed() -> None:
    """The tests rest on this as well."""
    wanted = np.array([1.0, 1.0, 0.0, -0.0, np.inf, np.nan, 1.7e308, 5e-324, 1.0, np.nan], Long)
    got = np.array([1.0, 1 + 2.0**-52, -0.0, -0.0, np.inf, np.nan, np.inf, 0.0, np.nan, 1.0])
    assert errors(got, wanted)[[0, 1, 2, 3, 4, 5, 7, 8, 9]].tolist() == [0, 1, np.inf, 0, 0, 0, 1, np.inf, np.inf]
    assert errors(got, wanted)[6] > 2.0**40


# Errors

_POSITIVE = np.array(
    [
        *(0.0, 1.0, 0.5, 2.0, 3.0, 4.0, 10.0, 5e-324, 3e-310, 2.0**-1022, 1e-300, 1e-17, 2.0**-54, 1e-8, 2.0**-30),
        *(1 - 2.0**-53, 1 + 2.0**-52, 0.3465, 0.3466, math.sqrt(0.5), math.sqrt(2), 1.4142135623730954, 22.0, 40.0),
        *(
            708.4,
            709.782712893384,
            709.7827128933841,
            745.13,
            745.14,
            746.0,
            1022.0,
            1023.9999999999999,
            1024.0,
            1074.0,
        ),
        *(1074.5, 1075.0, 1076.0, 5.9, 5.95, 6.0, 20.0, math.pi / 4, math.pi / 2, math.pi, 2.0**30, 2.0**30 - 1e-6),
        *(2.0**52 + 1, 2.0**53 - 1, 2.0**53, 2.0**54, 1e10, 1e22, 1e300, 1.7976931348623157e308, np.inf, np.nan),
    ]
)
SPECIAL = np.concatenate([_POSITIVE, -_POSITIVE])


def inputs(count: int, seed: int) -> Array:
    """Bits of any kind, magnitudes where things happen, numbers around 1, subnormal ones and multiples of π/2."""
    random = np.random.default_rng(seed)
    bits = random.integers(0, 1 << 64, count, dtype=np.uint64).view(np.float64)
    scales = (1e-5, 0.1, 0.5, 1.0, 6.0, 20.0, 110.0, 750.0, 1100.0, 1e5, 1e9, 1e15)
    ranges = [random.uniform(-scale, scale, count) for scale in scales]
    around = 1 + random.uniform(-1, 1, count) * 10.0 ** random.uniform(-17, 0, count)
    tiny = random.integers(0, 1 << 52, count, dtype=np.uint64).view(np.float64)
    quarters = math.pi / 2 * random.integers(-1 << 31, 1 << 31, count)
    return np.concatenate([SPECIAL, bits, *ranges, around, tiny, quarters])


@np.errstate(divide="ignore")
def pairs(count: int, seed: int) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    grids = np.meshgrid(SPECIAL, SPECIAL)
    base, exponent = np.exp(random.uniform(-30, 30, count)), random.uniform(-30, 30, count)
    signed, whole = random.uniform(-3, 3, count), np.round(random.uniform(-700, 700, count))
    near = 1 + random.uniform(-1, 1, count) * 10.0 ** random.uniform(-12, -0.5, count)
    # Powers near both ends of the range.
    ends = random.uniform(600, 745, count) / np.log(near) * random.choice([-1, 1], count)
    any_bits = random.integers(0, 1 << 64, (2, count), dtype=np.uint64).view(np.float64)
    tiny = random.integers(0, 1 << 52, count, dtype=np.uint64).view(np.float64)
    both = [grids, (base, exponent), (signed, whole), (near, ends), any_bits, random.uniform(-5, 5, (2, count))]
    both.append((tiny, random.uniform(-1, 1, count)))
    first, second = (np.concatenate([np.ravel(pair[at]) for pair in both]) for at in (0, 1))
    return first, second


def test_the_document_has_every_function() -> None:
    assert set(bounds()) == set(NAMES)
    assert max(bounds().values()) < 2


@pytest.mark.parametrize("name", NAMES)
def test_errors_are_within_what_the_document_says(name: str) -> None:
    check(name, *((inputs(4000, 0),) if TABLE[name].arity == 1 else pairs(10000, 0)))


@pytest.mark.acceptance
@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("name", NAMES)
def test_errors_of_many_operands(name: str, seed: int) -> None:
    check(name, *((inputs(100_000, seed),) if TABLE[name].arity == 1 else pairs(400_000, seed)))


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_next_to_multiples_of_a_quarter_period(name: str) -> None:
    """Of all numbers these leave the least behind: 2^-60 of a quarter or so, which has to be right as well."""
    nearest = [math.ldexp(mantissa, exponent) for mantissa, exponent in _nearest_quarters()]
    assert len(nearest) > 900
    check(name, np.array([*nearest, *(-x for x in nearest), math.ldexp(6381956970095103, 797)]))


def _nearest_quarters() -> list[tuple[int, int]]:
    """For each exponent the mantissa whose angle is nearest to a multiple of π/2, by continued fractions."""
    found: list[tuple[int, int]] = []
    half_pi, bits = _half_pi(2200), 2200
    for exponent in range(-52, 971):
        # Mantissas for which m · 2^exponent / (π/2) is nearly whole.
        above, below = (1 << (exponent + 52)) << bits, half_pi << 52
        last, here = 1, 0
        best = 0
        while below and here < 1 << 53:
            best = here
            times, rest = divmod(above, below)
            above, below = below, rest
            last, here = here, times * here + last
        if best >= 1 << 40:
            found.append((best, exponent))
    return found


def _half_pi(bits: int) -> int:
    """π/2 · 2^bits, by Machin's formula."""

    def inverse_tangent(of: int) -> int:
        term = total = (1 << (bits + 32)) // of
        divisor, sign = 3, -1
        while term:
            term //= of * of
            total += sign * (term // divisor)
            divisor, sign = divisor + 2, -sign
        return total

    return (8 * inverse_tangent(5) - 2 * inverse_tangent(239)) >> 32


# The reference: NumPy, whose own errors come on top


def agrees(name: str, *operands: Array) -> None:
    got, wanted = computed(name, *operands), table.apply(name, list(operands), [f64] * len(operands))
    found = errors(got, wanted.astype(Long))
    worst = int(np.argmax(found))
    assert found[worst] <= bounds()[name] + 4, (name, [operand[worst] for operand in operands], got[worst])


def test_special_values_are_those_of_numpy() -> None:
    grid = [np.ravel(part) for part in np.meshgrid(SPECIAL, SPECIAL)]
    for name in NAMES:
        agrees(name, *([SPECIAL] if TABLE[name].arity == 1 else grid))


@settings(max_examples=60)
@given(st.lists(st.tuples(st.floats(), st.floats()), min_size=1, max_size=64))
@example([(-0.0, -3.0), (-math.inf, 0.5), (-8.0, 1 / 3), (0.0, -0.0), (-1.0, math.inf), (-2.0, 2.0**53 - 1)])
def test_numbers_of_any_kind(given_: list[tuple[float, float]]) -> None:
    first, second = np.array(given_).T
    for name in NAMES:
        agrees(name, *[first, second][: TABLE[name].arity])


MORE_EXACT: dict[str, list[tuple[float, ...]]] = {
    "exp": [(710.0, math.inf), (-746.0, 0.0), (5e-324, 1.0)],
    "exp2": [(-1074.0, 5e-324), (1023.0, 2.0**1023), (1024.0, math.inf), (-1075.0, 0.0), (-1022.5, 2.0**-1022.5)],
    "expm1": [(5e-324, 5e-324), (-1.5e-323, -1.5e-323), (1e-17, 1e-17), (-50.0, -1.0), (710.0, math.inf)],
    "tanh": [(5e-324, 5e-324), (-1.5e-323, -1.5e-323), (30.0, 1.0)],
    "sigmoid": [(-800.0, 0.0), (5e-324, 0.5)],
    "erf": [(6.0, 1.0), (-7.0, -1.0)],
    "log": [(math.inf, math.inf), (-5e-324, math.nan)],
    "log2": [(5e-324, -1074.0), (2.0**-1022, -1022.0), (2.0**1023, 1023.0), (2.0**-300, -300.0)],
    "log1p": [(5e-324, 5e-324), (-1e-310, -1e-310), (1e-17, 1e-17)],
    "sin": [(5e-324, 5e-324), (-1e-310, -1e-310), (-math.inf, math.nan)],
    "tan": [(5e-324, 5e-324), (-1e-310, -1e-310), (-math.inf, math.nan)],
    "pow": [
        *((2.0, -1074.0, 5e-324), (2.0, 1023.0, 2.0**1023), (2.0, 1024.0, math.inf), (-2.0, -1075.0, -0.0)),
        *((-1.0, 2.0**53 - 1, -1.0), (-1.0, 2.0**53, 1.0), (-1.0, 2.0**52 + 1, -1.0), (-2.0, 1e300, math.inf)),
        *((5e-324, 0.5, 2.0**-537), (4.0, 0.5, 2.0), (3.0, 2.0, 9.0), (10.0, 15.0, 1e15), (-0.0, 0.5, 0.0)),
    ],
    "atan2": [(5e-324, 1.0, 5e-324), (5e-324, -5e-324, 3 * math.pi / 4), (-1e308, math.inf, -0.0)],
}


@pytest.mark.parametrize("name", NAMES)
def test_special_values_are_exact(name: str) -> None:
    """Those of f32 that are the same in f64, which numbers too large for f32 are not, and more."""
    skipped = {(89.0, math.inf), (-104.0, 0.0), (128.0, math.inf), (-150.0, 0.0), (10.0, 39.0, math.inf)}
    skipped |= {(-10.0, 39.0, -math.inf), (-30.0, -1.0), (20.0, 1.0), (5.0, 1.0)}
    rows = [row for row in NARROW_EXACT[name] if row not in skipped] + MORE_EXACT.get(name, [])
    *operands, wanted = np.array(rows).T
    got = computed(name, *operands)
    nan = np.isnan(wanted)
    assert np.isnan(got[nan]).all()
    assert words(got[~nan]).tolist() == words(wanted[~nan]).tolist(), (got, wanted)


def test_nan_stays_nan() -> None:
    nan = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF], np.uint64)
    for name in NAMES:
        if name != "pow":
            assert np.isnan(computed(name, *[nan.view(np.float64)] * TABLE[name].arity)).all(), name


# Vectors


@pytest.mark.parametrize(("level", "lanes"), RUNS[1:])
def test_vectors_have_the_bits_of_scalars(level: str, lanes: int) -> None:
    """Among them vectors with a large angle in some lanes, and without."""
    random = np.random.default_rng(3)
    x = padded(np.concatenate([random.permutation(inputs(200, 5)), random.uniform(-9, 9, 1000)]))
    y = random.permutation(x)
    for name in NAMES:
        operands = [x, y][: TABLE[name].arity]
        one, other = computed(name, *operands), functions(level, lanes).run(name, *operands)
        assert ((words(one) == words(other)) | (np.isnan(one) & np.isnan(other))).all(), name


def test_no_library_is_called() -> None:
    assert RUNS, "no level of this host fuses products"
    for level, lanes in RUNS:
        assert fuses(level)
        module = functions(level, lanes).module.text()
        declared = set(re.findall(r"^declare .*@([\w.]+)\(", module, re.MULTILINE))
        assert "llvm.fma" in {".".join(name.split(".")[:2]) for name in declared}
        assert [name for name in declared if not name.startswith("llvm.")] == []


# GPUs


def gpu_case(name: str, *operands: Array) -> nv_cases.Case:
    return nv_cases.elementwise(name, [f64] * TABLE[name].arity, f64, operands, width=1)


@pytest.mark.quick
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", NAMES)
def test_code_for_gpus_assembles_without_calls(name: str, arch: str) -> None:
    made = compile_lowered(text.read(gpu_case(name, *[np.ones(128)] * TABLE[name].arity).text), "k", gpu(arch))
    assert ".extern .func" not in made.ptx
    assert ptx_checks.count(made.ptx, "call") == 0
    # Nothing that was written as two roundings may become one.
    assert {each for each in ptx_checks.instructions(made.ptx) if re.fullmatch(r"(add|sub|mul)\.f64", each)} == set()
    assert ptx_checks.count(made.ptx, "fma.rn.f64") > 10
    ptx_checks.check_clean(made.ptx, arch)


@pytest.mark.parametrize("name", NAMES)
def test_code_for_gpus_gives_the_same_bits(name: str) -> None:
    """On the machine for tests."""
    random = np.random.default_rng(9)
    x = np.concatenate([random.choice(SPECIAL, 64), random.uniform(-6, 6, 32), 10.0 ** random.uniform(-300, 300, 32)])
    operands = [x, random.permutation(x)][: TABLE[name].arity]
    case = gpu_case(name, *operands)
    mine = case.copies()
    run(text.read(case.text), "k", mine)
    one, other = mine[-1], computed(name, *operands)
    assert ((words(one) == words(other)) | (np.isnan(one) & np.isnan(other))).all(), (one, other)
