"""Uniform and normal numbers by keys, and the words of random bits that all draws are made of.

A key is a u64 without axes. Element i of what is drawn depends on the key and on i alone: Philox 4x32-10, as for
`ts.rand(..., seed=key)`. Use each key once: `split` makes more of one. Without a key, numbers come from the stream of
the running program, in the order of the program: that is an effect, and `seed` says where the stream begins.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

from tessera.dtypes.philox import KEY_STEPS, MULTIPLIERS, ROUNDS, Stream, uniform_digits
from tessera.dtypes.types import DType, f32, f64, i64, u64
from tessera.errors import DtypeError, ShapeError, TesseraError
from tessera.lang.jit import Jitted
from tessera.lang.operator import operator
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import elementwise
from tessera.lang.tracing.sizes import plain
from tessera.lang.tracing.values import Array, Traced, current_or_none, shown
from tessera.runtime.tensor.creation import asarray
from tessera.runtime.tensor.interface import DTypeLike
from tessera.runtime.tensor.random import float_type, integer_type
from tessera.shapes.expr import Size, dim, format_shape, size

_LOW = 0xFFFFFFFF


def key(seed: int | None = None) -> Any:
    """A key from a seed; without one, from the operating system."""
    number = int.from_bytes(os.urandom(8), "little") if seed is None else int(seed)
    if not 0 <= number < 1 << 64:
        raise TesseraError(f"a seed is a 64-bit number, got {number}", hint="use a seed from 0 to 2**64 - 1")
    if current_or_none() is not None:
        return primitives.constant(number, (), u64)
    import numpy as np

    return asarray(np.array(number, np.uint64))


@operator
def split(key: Array, count: int = 2) -> Traced:
    """`count` new keys of one, along the first axis."""
    made = checked_key(key, "split")
    return joined_words(*words_of(made, (count,), Stream.SPLIT, per_element=2))


@operator
def fold_in(key: Array, number: Array) -> Traced:
    """A new key of a key and an integer, such as the number of a step."""
    made, which = checked_key(key, "fold_in"), primitives.lift(number)
    if not which.dtype.is_integer or which.sizes:
        raise DtypeError(
            f"fold_in: an integer without axes was expected, got {format_shape(which.sizes)} of {which.dtype}",
            story=which.history.lines(),
            hint="fold in one number at a time",
        )
    counter = primitives.cast(which, u64)
    return joined_words(*_outputs(made, counter, Stream.FOLD)[:2])


def uniform(
    key: Array | None, shape: Sequence[Size] = (), dtype: DTypeLike = f32, low: float = 0.0, high: float = 1.0
) -> Any:
    """Numbers from `low` to `high`, which is left out: equally likely multiples of a power of two, stretched."""
    target = float_type(dtype, "uniform")
    drawn = _from_stream("uniform", shape, target) if key is None else _uniform(key, tuple(shape), target)
    return drawn if (low, high) == (0.0, 1.0) else drawn * (high - low) + low


def normal(key: Array | None, shape: Sequence[Size] = (), dtype: DTypeLike = f32) -> Any:
    """Standard normal numbers, made in f64 and rounded to f32, then to `dtype`."""
    target = float_type(dtype, "normal")
    return _from_stream("normal", shape, target) if key is None else _normal(key, tuple(shape), target)


def randint(key: Array, shape: Sequence[Size], low: int, high: int, dtype: DTypeLike = i64) -> Any:
    """Integers from `low` to `high` - 1, each from 64 random bits."""
    return _randint(key, tuple(shape), low, high, integer_type(dtype, low, high, "uniform"))


@operator
def _uniform(key: Array, shape: tuple[Any, ...], dtype: DType) -> Traced:
    digits = uniform_digits(dtype)
    (word,) = words_of(checked_key(key, "uniform"), shape, Stream.BITS)
    number = primitives.cast(elementwise("shr", word, 32 - digits), f32)
    return primitives.cast(elementwise("mul", number, 2.0**-digits), dtype)


@operator
def _normal(key: Array, shape: tuple[Any, ...], dtype: DType) -> Traced:
    made = checked_key(key, "normal")
    index = _positions(shape)
    # Box–Muller: elements 2p and 2p + 1 are the cosine and the sine of one pair of words.
    words = _outputs(made, elementwise("shr", index, 2), Stream.NORMAL)
    later = elementwise("eq", elementwise("and", elementwise("shr", index, 1), 1), 1)
    first = primitives.cast(elementwise("select", later, words[2], words[0]), f64)
    second = primitives.cast(elementwise("select", later, words[3], words[1]), f64)
    # (word + 1)·2⁻³² lies in (0, 1], where the logarithm is finite.
    logarithm = primitives.ew("log", elementwise("mul", elementwise("add", first, 1.0), 2.0**-32))
    radius = primitives.ew("sqrt", elementwise("mul", logarithm, -2.0))
    angle = elementwise("mul", second, 2.0 * math.pi * 2.0**-32)
    odd = elementwise("eq", elementwise("and", index, 1), 1)
    wave = elementwise("select", odd, primitives.ew("sin", angle), primitives.ew("cos", angle))
    rounded = primitives.cast(elementwise("mul", radius, wave), f32)
    return primitives.reshape(primitives.cast(rounded, dtype), shape)


@operator
def _randint(key: Array, shape: tuple[Any, ...], low: int, high: int, dtype: DType) -> Traced:
    upper, lower = words_of(checked_key(key, "randint"), shape, Stream.BITS, per_element=2)
    span = high - low
    if span == 1 << 64:
        distance = joined_words(upper, lower)
    else:
        # floor(w · span / 2⁶⁴) for the 64-bit number w, by halves.
        span_upper, span_lower = span >> 32, span & _LOW
        middle = elementwise(
            "add", elementwise("mul", upper, span_lower), elementwise("shr", elementwise("mul", lower, span_lower), 32)
        )
        other = elementwise("add", elementwise("mul", lower, span_upper), elementwise("and", middle, _LOW))
        distance = elementwise(
            "add",
            elementwise("mul", upper, span_upper),
            elementwise("add", elementwise("shr", middle, 32), elementwise("shr", other, 32)),
        )
    # Adding in 64 bits wraps around, so that an unsigned distance from a negative `low` gives the right sum.
    return primitives.cast(elementwise("add", distance, low % 2**64), dtype)


def _from_stream(distribution: str, shape: Sequence[Size], dtype: DType) -> Any:
    if current_or_none() is not None:
        return primitives.random(distribution, shape, dtype)
    return _draw(distribution, tuple(shape), dtype)


_draw = Jitted(
    primitives.random, static_argnames=("distribution", "shape", "dtype"), number_parameters=(), name="random"
)


def checked_key(given: Array | None, where: str) -> Traced:
    """A key as a value of the trace; an error where it is none."""
    if given is None:
        raise DtypeError(f"{where} needs a key", hint="give ts.random.key(seed), and another one for each use")
    made = primitives.lift(given)
    if made.dtype.base is not u64 or made.sizes:
        raise (ShapeError if made.dtype.base is u64 else DtypeError)(
            f"{where}: a key is a u64 without axes, got {format_shape(made.sizes)} of {made.dtype}",
            shapes=shown(made),
            story=made.history.lines(),
            hint="make one with ts.random.key(seed); of several, take one: keys[0]",
        )
    return made


def _positions(shape: Sequence[Any]) -> Traced:
    """The number of each element, in row order, flat."""
    count = dim(1)
    for one in shape:
        count = count * plain(one)
    return primitives.iota((size(count),), 0, u64)


def words_of(key: Traced, shape: Sequence[Any], stream: Stream, *, per_element: int = 1) -> list[Traced]:
    """For each element its words of the stream, 32 bits each in a u64; one or two."""
    index = _positions(shape)
    bits = 2 if per_element == 1 else 1
    words = _outputs(key, elementwise("shr", index, bits), stream)
    within = elementwise("and", index, (1 << bits) - 1)
    chosen: list[Traced] = []
    for number in range(per_element):
        candidates = words[number::per_element]
        found = candidates[-1]
        for which, candidate in enumerate(candidates[:-1]):
            found = elementwise("select", elementwise("eq", within, which), candidate, found)
        chosen.append(primitives.reshape(found, shape))
    return chosen


def _outputs(key: Traced, block: Traced, stream: Stream) -> list[Traced]:
    """The four words of each block of Philox: its number is the counter, and `stream` a word of it."""
    # Everything in one shape, each constant once: a draw is some hundred ops already.
    low, half, first_step, second_step, left_factor, right_factor = (
        primitives.constant(number, block.sizes, u64) for number in (_LOW, 32, *KEY_STEPS, *MULTIPLIERS)
    )
    ew, wide = primitives.ew, primitives.broadcast_to(key, block.sizes)
    k0, k1 = ew("and", wide, low), ew("shr", wide, half)
    c0, c1 = ew("and", block, low), ew("shr", block, half)
    c2, c3 = (primitives.constant(number, block.sizes, u64) for number in (int(stream), 0))
    for iteration in range(ROUNDS):
        if iteration:
            k0, k1 = ew("and", ew("add", k0, first_step), low), ew("and", ew("add", k1, second_step), low)
        left, right = ew("mul", c0, left_factor), ew("mul", c2, right_factor)
        c0, c1, c2, c3 = (
            ew("xor", ew("xor", ew("shr", right, half), c1), k0),
            ew("and", right, low),
            ew("xor", ew("xor", ew("shr", left, half), c3), k1),
            ew("and", left, low),
        )
    return [c0, c1, c2, c3]


def joined_words(upper: Traced, lower: Traced) -> Traced:
    """Two words of 32 bits as one of 64."""
    return elementwise("or", elementwise("shl", upper, 32), lower)
