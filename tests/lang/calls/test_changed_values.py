"""Values that change after a function was traced: each call sees them as Python does, or it was said that it does not.

Every case is a change by one line of a program; before and after it, a jitted function gives what the plain one gives.
"""

from __future__ import annotations

import contextvars
import dataclasses
import enum
import functools
import importlib
import operator
import os
import sys
import threading
import types
from collections import ChainMap, OrderedDict, UserDict, UserList, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tessera as ts
from tessera import jit, kernel, knobs, tile
from tessera.metatracing import MetaTracingRuntime
from tessera.tile.identity.dependencies import Dependencies
from tessera.tile.identity.dependency_check import DependencyCheck
from tessera.tile.identity.static_keys import are_same, exact

X = ts.ones((3,))

LAYERS = """
SCALE = 2.0
def act(x):
    return x * SCALE
def getattr_of(name):
    return 4.0
"""

PROGRAM = """
import collections, contextvars, dataclasses, enum, functools, operator, os, sys, threading, types, weakref
import numpy as np
import tessera as ts
import layers
from layers import act

SCALE = 2.0
max = 5.0
class Base:
    k = 3.0
    def forward(self, x): return x * SCALE * self.k
    def __call__(self, x): return self.forward(x)
    def __getattr__(self, name): return SCALE
    @property
    def half(self): return SCALE / 2
    @staticmethod
    def plain(x): return x * SCALE
    @classmethod
    def of_class(cls, x): return x * cls.k
    @functools.cached_property
    def kept(self): return SCALE
class Model(Base):
    pass
class Meta(type):
    @property
    def k(cls): return SCALE
class Made(metaclass=Meta):
    pass
class Slotted:
    __slots__ = ("k",)
class Pair(collections.namedtuple("Pair", "a b")):
    def both(self): return self.a + SCALE
model, made, slotted, pair = Model(), Made(), Slotted(), Pair(1.0, 2.0)
model.list, slotted.k = [1.0, [2.0]], 2.0
model.w = 3.0
ATTRIBUTES = vars(model)
items, table, members = [1.0, [2.0]], {"a": {"b": 1.0}, "c": 2.0}, {1.0, 2.0}
ring = collections.deque([1.0, 2.0])
ordered = collections.OrderedDict(a=1.0, b=2.0)
users = collections.UserDict(a=1.0)
chained = collections.ChainMap({}, {"a": 1.0})
variable = contextvars.ContextVar("variable", default=1.0)
local = threading.local(); local.k = 1.0
array, big, flags = np.ones(2, np.float32), np.ones(1 << 10, np.float32), np.array([True])
hidden, nothing = np.ma.array(np.ones(2, np.float32)), np.ma.masked
weights = ts.full((3,), 2.0)
bound, half = model.forward, functools.partial(lambda k, x, *, j: x * k * j * SCALE, 1.0, j=2.0)
functions, named = [lambda x: x * SCALE], {"f": lambda x: x + SCALE}
reference = weakref.ref(model)
getter = operator.attrgetter("SCALE")
space = types.SimpleNamespace(k=1.0, inner=types.SimpleNamespace(k=2.0))
nodes = [types.SimpleNamespace(k=1.0) for _ in range(12_000)]
def defaults(k=1.0, *, j=2.0): return k + j
def decorated(f):
    @functools.wraps(f)
    def wrapper(*args): return f(*args) * SCALE
    return wrapper
@decorated
def wrapped(x): return x
@functools.lru_cache
def cached(): return SCALE
def counter():
    held = 1.0
    def read(): return held
    def write(value):
        nonlocal held
        held = value
    return read, write
read, write = counter()
@functools.singledispatch
def kind(x): return x * 2.0
@ts.jit
def inner(x): return x * SCALE
inner_kernel_scale = 2.0
def with_attribute(): return with_attribute.k
with_attribute.k = 1.0
lazy = None
def lazily():
    global lazy
    if lazy is None:
        lazy = types.SimpleNamespace(k=SCALE)
    return lazy.k
"""

CASES: dict[str, tuple[str, str]] = {
    "module attribute": ("x * layers.SCALE", "layers.SCALE = 5.0"),
    "function of a module": ("layers.act(x)", "layers.SCALE = 5.0"),
    "function of a module replaced": ("layers.act(x)", "layers.act = lambda x: x * 7.0"),
    "attribute by name": ('x * getattr(layers, "SCALE")', "layers.SCALE = 5.0"),
    "attribute by a name that is made": ('x * getattr(layers, "SC" + "ALE")', "layers.SCALE = 5.0"),
    "attribute by a getter": ("x * getter(layers)", "layers.SCALE = 5.0"),
    "imported inside": ("x * __import__('layers').SCALE", "layers.SCALE = 5.0"),
    "module in the table": ("importing(x)", "sys.modules['layers'] = types.SimpleNamespace(SCALE=9.0)"),
    "name of a builtin": ("x * max", "max = 7.0"),
    "a builtin that is hidden": ("x * abs(-2.0)", "abs = lambda k: 9.0"),
    "name that is made": ('x * globals()["SCALE"]', "SCALE = 3.0"),
    "class attribute": ("x * Base.k", "Base.k = 5.0"),
    "class attribute by an object": ("x * model.k", "Base.k = 5.0"),
    "attribute hides that of the class": ("x * model.k", "model.k = 5.0"),
    "dictionary of an object": ("x * ATTRIBUTES['w']", "model.w = 5.0"),
    "dictionary of an object, grown": ("x * len(ATTRIBUTES)", "model.more = 5.0"),
    "method overridden": ("model(x)", "Model.forward = lambda self, x: x * 9.0"),
    "method of the base": ("model(x)", "Base.forward = lambda self, x: x * 9.0"),
    "method of the object": ("model(x)", "model.forward = lambda x: x * 9.0"),
    "class of the object": ("x * type(model).__name__.__len__()", "model.__class__ = Base"),
    "global of a method": ("model(x)", "SCALE = 3.0"),
    "global of a property": ("x * model.half", "SCALE = 3.0"),
    "property replaced": ("x * model.half", "Base.half = property(lambda self: 9.0)"),
    "attribute that is asked for": ("x * model.anything", "SCALE = 3.0"),
    "static method": ("Model.plain(x)", "SCALE = 3.0"),
    "class method": ("Model.of_class(x)", "Model.k = 8.0"),
    "metaclass": ("x * Made.k", "SCALE = 3.0"),
    "bound method": ("bound(x)", "SCALE = 3.0"),
    "slot": ("x * slotted.k", "slotted.k = 3.0"),
    "named tuple": ("x * pair.both()", "SCALE = 3.0"),
    "object in an object": ("x * space.inner.k", "space.inner.k = 3.0"),
    "list in an object": ("x * model.list[1][0]", "model.list[1][0] = 3.0"),
    "object among many": ("x * nodes[0].k + nodes[11_999].k", "nodes[11_999].k = 3.0"),
    "list": ("x * items[1][0]", "items[1].insert(0, 5.0)"),
    "dictionary": ('x * table["a"]["b"]', 'table["a"]["b"] = 5.0'),
    "order of a dictionary": (
        "x * list(table)[1].__len__() * (2 if list(table)[0] == 'a' else 3)",
        "table['a'] = table.pop('a')",
    ),
    "set": ("x * sum(members)", "members.add(5.0)"),
    "deque": ("x * ring[0]", "ring.rotate()"),
    "ordered dictionary": ("x * list(ordered.values())[0]", "ordered.move_to_end('a')"),
    "user dictionary": ("x * users['a']", "users['a'] = 5.0"),
    "chained dictionaries": ("x * chained['a']", "chained['a'] = 5.0"),
    "environment": ("x * float(os.environ['TESSERA_TEST_SCALE'])", "os.environ['TESSERA_TEST_SCALE'] = '5'"),
    "environment by a function": (
        "x * float(os.getenv('TESSERA_TEST_SCALE'))",
        "os.environ['TESSERA_TEST_SCALE'] = '6'",
    ),
    "context variable": ("x * variable.get()", "variable.set(5.0)"),
    "local of a thread": ("x * local.k", "local.k = 5.0"),
    "reference": ("x * reference().k", "reference().k = 5.0"),
    "array written": ("x * float(array[0])", "array[0] = 5.0"),
    "array in an expression": ("x * (array * 2)[0]", "array[...] = 5.0"),
    "larger array": ("x * float(big.sum())", "big[7] = 5.0"),
    "mask of an array": ("x * float(hidden.sum())", "hidden.mask = [True, False]"),
    "number beside what is masked": ("x * (SCALE if nothing is np.ma.masked else 9.0)", "SCALE = 5.0"),
    "array of flags": ("x * (2.0 if flags[0] else 3.0)", "flags[0] = False"),
    "tensor read by Python": ("x * float(weights.numpy()[0])", "weights[...] = ts.full((3,), 5.0)"),
    "element of a tensor": ("x * weights.tolist()[1]", "weights[...] = ts.full((3,), 5.0)"),
    "tensor replaced": ("x * weights", "weights = ts.full((3,), 5.0)"),
    "function in a list": ("functions[0](x)", "SCALE = 3.0"),
    "function in a dictionary": ('named["f"](x)', "SCALE = 3.0"),
    "partial": ("half(x)", "SCALE = 3.0"),
    "keywords of a partial": ("half(x)", "half.keywords['j'] = 5.0"),
    "decorator": ("wrapped(x)", "SCALE = 3.0"),
    "function that keeps results": ("x * cached()", "SCALE = 3.0; cached.cache_clear()"),
    "defaults": ("x * defaults()", "defaults.__defaults__ = (5.0,)"),
    "defaults of keywords": ("x * defaults()", "defaults.__kwdefaults__['j'] = 5.0"),
    "code": ("act(x)", "act.__code__ = (lambda x: x * 9.0).__code__"),
    "attribute of a function": ("x * with_attribute()", "with_attribute.k = 5.0"),
    "cell": ("x * read()", "write(5.0)"),
    "function by class": ("kind(x)", "kind.register(object, lambda x: x * 9.0)"),
    "jitted function inside": ("inner(x)", "SCALE = 3.0"),
    "comprehension": ("x * [SCALE * k for k in items[:1]][0]", "SCALE = 3.0"),
    "generator": ("x * next(SCALE * k for k in items[:1])", "SCALE = 3.0"),
    "lambda inside": ("(lambda y: y * SCALE)(x)", "SCALE = 3.0"),
    "made when it is needed": ("x * lazily()", "lazy.k = 9.0"),
    "replaced after it was made": ("x * lazily()", "lazy = types.SimpleNamespace(k=8.0)"),
    "equal and of another sign": ("(x * 0.0 + 1.0) / (SCALE * 0.0)", "SCALE = -2.0"),
}


@pytest.fixture(name="program")
def _program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], types.ModuleType]:
    """What loads the program with a function `f` of one expression."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("TESSERA_TEST_SCALE", "2")
    (tmp_path / "layers.py").write_text(LAYERS)

    def load(expression: str) -> types.ModuleType:
        sys.modules.pop("layers", None)
        sys.modules.pop("changing_program", None)
        importing = "def importing(x):\n    import layers\n    return x * layers.SCALE\n"
        text = f"{PROGRAM}{importing}def f(x):\n    return {expression}\n"
        (tmp_path / "changing_program.py").write_text(text)
        importlib.invalidate_caches()
        return importlib.import_module("changing_program")

    return load


def value(found: Any) -> list[float]:
    return np.asarray(found).tolist()


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("name", CASES)
def test_changes_are_seen(name: str, program: Callable[[str], types.ModuleType], monkeypatch: Any) -> None:
    expression, change = CASES[name]
    main = program(expression)
    jitted, plain = jit(main.f), main.f
    context = contextvars.copy_context()
    modules = dict(sys.modules)

    def run() -> None:
        assert value(jitted(X)) == value(plain(X))
        assert value(jitted(X)) == value(plain(X))
        exec(change, main.__dict__)
        expected = value(plain(X))
        assert value(jitted(X)) == expected
        assert value(jitted(X)) == expected

    try:
        context.run(run)
    finally:
        sys.modules.update(layers=modules["layers"])


@pytest.mark.usefixtures("interpreted")
def test_what_has_not_changed_is_not_traced_again(program: Callable[[str], types.ModuleType]) -> None:
    main = program("layers.act(x) * model.k * items[1][0] * defaults() * table['c'] + float(array[0])")
    jitted = jit(main.f)
    jitted(X)
    exec("unused = 1; model.k; items[1][0] = float('2.0'); layers.SCALE = float('2.0'); array[0] = 1.0", main.__dict__)
    jitted(X)
    jitted(X)
    assert jitted.explain().compilations == 1


@pytest.mark.usefixtures("interpreted")
def test_counting_traces_is_no_reason_for_one() -> None:
    seen: list[int] = []
    counts = {"traces": 0}

    @jit
    def f(x: Any) -> Any:
        seen.append(x.ndim)
        counts["traces"] += 1
        return x * 2.0

    for _ in range(3):
        f(X)
        f(ts.ones((2, 3)))
    assert seen == [1, 2]
    assert counts == {"traces": 2}


@pytest.mark.usefixtures("interpreted")
def test_what_cannot_be_looked_at_is_said() -> None:
    import random
    import time

    generator = np.random.default_rng(0)
    large = np.ones(1 << 16)

    @jit
    def f(x: Any) -> Any:
        return x * (random.random() + time.time() * 0 + generator.random() + large[0])

    f(X)
    told = str(f.explain())
    for word in ("random", "time", "generator", "large"):
        assert f"changes inside of {word}" in told, told


@pytest.mark.usefixtures("interpreted")
def test_a_reloaded_module_is_seen(program: Callable[[str], types.ModuleType], tmp_path: Path) -> None:
    main = program("layers.act(x) * layers.SCALE")
    jitted = jit(main.f)
    assert value(jitted(X)) == [4.0] * 3
    (tmp_path / "layers.py").write_text("SCALE = 7.0\ndef act(x):\n    return x * 700.0\n")
    importlib.reload(main.layers)
    assert value(jitted(X)) == [4900.0] * 3


class Scales:
    k = 2.0

    @staticmethod
    def applied(x: Any) -> Any:
        return x * Scales.k


class Settings:
    def __init__(self) -> None:
        self.k = 2.0


HELD = Settings()


def by_attribute(x: Any) -> Any:
    return x * HELD.k


@kernel
def by_class(x: Any) -> Any:
    return Scales.applied(tile.load(x))


@kernel
def by_object(x: Any) -> Any:
    return tile.load(x) * HELD.k


def recursive(x: Any, times: int) -> Any:
    return x if times == 0 else recursive(x * HELD.k, times - 1)


@kernel
def by_itself(x: Any) -> Any:
    return recursive(tile.load(x), 2)


@jit
def around(x: Any) -> Any:
    return by_object(x)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_kernels_see_changes(monkeypatch: pytest.MonkeyPatch, is_compiled: bool) -> None:
    runtime = MetaTracingRuntime()
    try:
        tiers = jit(by_attribute, tiers=runtime)
        with knobs.interpret.using(not is_compiled):
            for k in (2.0, 3.0, 3.0, -0.0):
                monkeypatch.setattr(Scales, "k", k)
                monkeypatch.setattr(HELD, "k", k)
                for call in (by_class, by_object, around, tiers):
                    found = np.asarray(call(X))
                    assert np.array_equal(found, X.numpy() * np.float32(k))
                    assert np.array_equal(np.signbit(found), np.signbit(X.numpy() * np.float32(k)))
            if not is_compiled:
                assert value(by_itself(X)) == [0.0] * 3
    finally:
        runtime.close()


class Color(enum.IntEnum):
    ONE = 1


class Point(NamedTuple):
    x: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: Any


class Text(str):
    __slots__ = ()


DIFFERENT: list[list[Any]] = [
    [0.0, -0.0],
    [1, 1.0, True, Color.ONE, np.int64(1), np.float64(1.0), np.True_],
    [(1,), (1.0,), (True,), Point(1), Point(1.0)],
    [((0.0,),), ((-0.0,),)],
    [complex(0.0, 0.0), complex(-0.0, 0.0), complex(0.0, -0.0)],
    [Frozen(1), Frozen(1.0), Frozen(True), Frozen(0.0), Frozen(-0.0)],
    [Frozen((0.0,)), Frozen((-0.0,))],
    ["a", Text("a"), b"a"],
    [frozenset({1}), frozenset({1.0}), frozenset({True})],
    [range(0, 3, 2), range(0, 4, 2)],
    [float("nan"), 1.0],
    [np.float32(0.0), np.float32(-0.0), np.float64(0.0)],
]


class Numbered:
    """Which of the values an object is."""

    def __init__(self) -> None:
        self.numbers = {id(one): index for index, one in enumerate([one for values in DIFFERENT for one in values])}

    def of(self, one: Any) -> float:
        return float(self.numbers[id(one)])


NUMBERED = Numbered()


@jit(static_argnames="k")
def numbered(x: Any, *, k: Any) -> Any:
    return x * NUMBERED.of(k)


@kernel
def numbered_in_kernel(x: Any, *, k: Any) -> Any:
    return tile.load(x) * NUMBERED.of(k)


@pytest.mark.usefixtures("interpreted")
def test_values_that_mean_different_things_have_programs_of_their_own() -> None:
    for values in DIFFERENT:
        for call in (numbered, numbered_in_kernel):
            for _ in range(2):
                for one in values:
                    assert value(call(X, k=one)) == [NUMBERED.of(one)] * 3
        assert len({exact(one) for one in values}) == len(values)
        assert not any(are_same(values[0], one) for one in values[1:])
    assert numbered.explain().compilations == len(NUMBERED.numbers)
    assert exact(float("nan")) == exact(float("nan"))
    assert exact(Frozen((1.0, "a"))) == exact(Frozen((1.0, "a")))


CAPTURED: Any = 0.0


def shown(k: Any) -> float:
    """What a value is, as a number."""
    number = k
    while number.__class__ is tuple:
        number = number[0]
    return {bool: 1.0, int: 2.0, float: 3.0}[type(number)] * (-1.0 if np.signbit(float(number)) else 1.0)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("before", "after"), [(0.0, -0.0), ((1,), (1.0,)), (True, 1), (2, 2.0), ((0.0,), (-0.0,))])
def test_captured_values_that_mean_different_things(monkeypatch: Any, before: Any, after: Any) -> None:
    @kernel
    def g(x: Any) -> Any:
        return tile.load(x) * shown(CAPTURED)

    @jit
    def f(x: Any) -> Any:
        return x * shown(CAPTURED)

    for k in (before, after, before):
        monkeypatch.setattr(sys.modules[__name__], "CAPTURED", k)
        assert value(f(X)) == value(g(X)) == [shown(k)] * 3


@kernel
def chosen(x: Any, a: bool) -> Any:
    return tile.where(a, tile.load(x), tile.load(x) * 5.0)


@kernel
def counted(x: Any, a: bool) -> Any:
    return tile.load(x) * (a + 1)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_flags_are_what_python_takes_them_for(is_compiled: bool) -> None:
    with knobs.interpret.using(not is_compiled):
        for a in (True, 2, 4, -1, 0.5, float("nan"), np.True_, False, 0, 0.0, -0.0, np.False_):
            for _ in range(2):
                assert value(chosen(X, a)) == [1.0 if a else 5.0] * 3
        for a in (True, False, np.True_, 3):
            assert value(counted(X, a)) == [float(int(a) + 1)] * 3


def test_a_look_costs_little_and_large_graphs_are_looked_at_whole() -> None:
    nodes = [Settings() for _ in range(300)]

    def f(x: Any) -> Any:
        return x * nodes[0].k

    found = Dependencies((f,))
    watch = DependencyCheck(found.held(), found.chains)
    assert watch.check()
    for index in (0, 150, 299):
        nodes[index].k = 3.0
        assert not watch.check()
        assert watch.changed() is not None
        nodes[index].k = 2.0
        assert watch.check()
    nodes.pop()
    assert not watch.check()


def test_many_kinds_are_known() -> None:
    held: Any = (
        UserList([1.0]),
        UserDict(a=1.0),
        ChainMap({}),
        OrderedDict(a=1),
        deque([1]),
        threading.local(),
        os.environ,
    )
    getter, part = operator.attrgetter("a.b"), functools.partial(max, 1)

    def f(x: Any) -> Any:
        return x, held, getter, part

    assert Dependencies((f,)).unwatched == {}


def test_code_of_installed_packages_is_not_followed_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What users read of them is seen, what only their own code reads is not; a package sees its own."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    source = (
        "import tessera as ts\nSCALE = INNER = 2.0\ndef act(x):\n    return x * INNER\nown = ts.jit(lambda x: act(x))\n"
    )
    (folder / "installed_layers.py").write_text(source)
    monkeypatch.syspath_prepend(str(folder))  # pyright: ignore[reportUnknownMemberType]  (of pytest)
    layers: Any = importlib.import_module("installed_layers")

    @ts.jit
    def mine(x: Any) -> Any:
        return layers.act(x) + layers.SCALE

    x = ts.ones((2,))
    assert mine(x).tolist() == [4.0, 4.0]
    assert layers.own(x).tolist() == [2.0, 2.0]
    assert "changes inside of layers.act are not seen: code of the installed package" in str(mine.explain())
    layers.SCALE = 3.0
    assert mine(x).tolist() == [5.0, 5.0]
    layers.INNER = 4.0
    assert layers.own(x).tolist() == [4.0, 4.0]
    monkeypatch.setattr(layers, "act", lambda x: x * 10.0)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert mine(x).tolist() == [13.0, 13.0]


def test_classes_whose_module_is_no_name_are_looked_at_all_the_same() -> None:
    class Strange(type):
        __module__ = property(lambda self: 7)  # pyright: ignore[reportAssignmentType, reportIncompatibleVariableOverride]

    class Scale(metaclass=Strange):
        factor = 2.0

    @ts.jit
    def scaled(x: Any) -> Any:
        return x * Scale.factor

    assert scaled(ts.ones((2,))).tolist() == [2.0, 2.0]
