"""Jitted methods: they go with their object; and jitted functions and kernels that are copied and pickled."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import Schedule, TesseraError, jit, kernel, tile, verify
from tessera.lang.calls.methods import alive
from tessera.metatracing.clients.shipping import pack, unpack

pytestmark = pytest.mark.usefixtures("interpreted")
X = ts.randn((2, 4), seed=0)


def is_scaled(found: Any, factor: float) -> bool:
    return np.array_equal(np.asarray(found), X.numpy() * np.float32(factor))


def core_of(method: Any) -> Any:
    """The jitted function of a method, which type checkers take for a jitted function itself."""
    return method._jitted


class Scaler:
    """Unhashable, and equal to all others."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scaler)

    __hash__ = None  # pyright: ignore[reportAssignmentType]  (what Python does, said aloud)

    @jit
    def scale(self, x: Any) -> Any:
        return x * self.factor

    @jit(static_argnums=(0, 2), donate_argnums=-2)
    def power(self, x: Any, times: int) -> Any:
        for _ in range(times):
            x = x * self.factor
        return x


class Slotted:
    """Without weak references."""

    __slots__ = ("factor",)

    def __init__(self, factor: float) -> None:
        self.factor = factor

    @jit
    def scale(self, x: Any) -> Any:
        return x * self.factor


@jit
def doubled(x: Any) -> Any:
    return x * 2.0


@kernel
def twice(x: Any, y: Any) -> None:
    tile.store(y, tile.load(x) * 2.0)


sure = verify.numerics(bounded=[-100, 100])(twice)


def plain(x: Any) -> Any:
    return x * 2.0


def local_function() -> Any:
    def local(x: Any) -> Any:
        return x * 2.0

    return local


def test_objects_go_with_all_that_was_compiled_for_them() -> None:
    scaler = Scaler(2.0)
    assert is_scaled(scaler.scale(X), 2)
    held = weakref.ref(scaler), weakref.ref(core_of(scaler.scale))
    assert core_of(scaler.scale) is core_of(scaler.scale)
    del scaler
    gc.collect()
    assert [one() for one in held] == [None, None]


def test_no_object_is_taken_for_another() -> None:
    for count in range(20):  # each may lie where the one before lay
        assert is_scaled(Scaler(float(count)).scale(X), count)
    kept = [Scaler(float(count)) for count in range(3)]
    for _ in range(2):
        assert all(is_scaled(one.scale(X), one.factor) for one in kept)
    assert len({id(core_of(one.scale)) for one in kept}) == 3
    assert kept[0].scale.explain().compilations == 1
    assert kept[0].scale == kept[0].scale != kept[1].scale


def test_a_method_keeps_its_object_and_the_options_of_its_function() -> None:
    method = Scaler(4.0).power
    gc.collect()
    assert is_scaled(method(X.copy(), 2), 16)
    given = X.copy()
    method(given, 1)
    with pytest.raises(TesseraError, match="donated"):
        given.numpy()
    core = core_of(method)
    del method
    with pytest.raises(TesseraError, match="is gone"):
        alive(core._function)


def test_objects_without_weak_references_have_methods() -> None:
    kept = [Slotted(float(count)) for count in range(12)]
    for one in [*kept, *kept[:2]]:
        assert is_scaled(one.scale(X), one.factor)
    assert kept[0].scale == kept[0].scale


def test_what_a_captured_method_sees_is_watched() -> None:
    scaler = Scaler(2.0)
    scale, power = scaler.scale, scaler.power

    @jit
    def outer(x: Any) -> Any:
        return scale(power(x, 1))

    assert is_scaled(outer(X), 4)
    scaler.factor = 4.0
    assert is_scaled(outer(X), 16)


def test_copies_of_functions_are_the_functions() -> None:
    local = jit(local_function())
    doubled(X)
    for one in (doubled, local, twice, twice[4], sure):
        assert copy.copy(one) is one
        assert copy.deepcopy(one) is one


def test_models_are_copied_with_their_methods() -> None:
    model: Any = Scaler(2.0)
    model.act, model.step, model.other = doubled, model.scale, jit(model.scale.__wrapped__)
    assert is_scaled(model.step(X), 2)
    made: Any
    for made in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        made.factor = 5.0
        assert made.act is doubled
        assert [is_scaled(found, 5) for found in (made.scale(X), made.step(X), made.other(X))] == [True] * 3
    shallow = copy.copy(model)
    shallow.factor = 7.0
    assert is_scaled(shallow.scale(X), 7)
    assert is_scaled(model.scale(X), 2)


def test_what_has_a_name_is_pickled_by_it() -> None:
    for one in (doubled, twice):
        assert pickle.loads(pickle.dumps(one)) is one
    made = pickle.loads(pickle.dumps(jit(plain, fast_math=True)))
    assert (made.function, made.fast_math) == (plain, True)
    assert is_scaled(made(X), 2)
    form = pickle.loads(pickle.dumps(twice.with_schedule(Schedule(block=(8, 8)))[1, 1]))
    assert (form.function, form.schedule.block, form.given_grid) == (twice.function, (8, 8), (1, 1))
    again = pickle.loads(pickle.dumps(sure))
    assert isinstance(again, verify.Verified)
    assert again.promises == sure.promises
    with pytest.raises((pickle.PicklingError, AttributeError), match="local"):
        pickle.dumps(jit(local_function()))


def test_kernels_of_users_are_sent_by_value() -> None:
    made = unpack(pack(twice))
    assert made is not twice
    y = ts.empty((2, 4))
    made(X, y)
    assert is_scaled(y, 2)
