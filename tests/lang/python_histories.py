"""Random histories of a Python program around jitted functions, kernels and tiers, beside the same in plain Python.

A history has two modules, written for it: `other`, with values and helpers, and one with functions that read these in
all the ways Python has. Then things change, and functions are called; each call is compared with the plain function.
"""

from __future__ import annotations

import importlib
import importlib.util
import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import tessera as ts
from tessera.metatracing import MetaTracingRuntime

OTHER = """
SCALE = {0}
VALUES = [{1}, {2}]
TABLE = {{"a": {0}, "b": {1}}}
from types import SimpleNamespace
space = SimpleNamespace(k={2}, inner=SimpleNamespace(deep={0}))
def act(x):
    return x * {1} + SCALE
def number(k={2}):
    return k + SCALE
class Layer:
    gain = {0}
    def __init__(self, k):
        self.k = k
    def __call__(self, x):
        return self.forward(x)
    def forward(self, x):
        return x * self.k + self.gain * SCALE
    @property
    def half(self):
        return self.k * {2}
    @staticmethod
    def plain(x):
        return x + SCALE
    @classmethod
    def of_class(cls, x):
        return x * cls.gain
class Child(Layer):
    pass
"""

MAIN = """
import functools
import contextvars
import dataclasses
import enum
import operator
import numpy as np
import tessera as ts
from tessera import tile
import {other} as other
from {other} import act as old_act

G = {0}
sum = {1}
PAIR = ({0}, ({1},))
items = [{0}, [{1}, {2}]]
table = {{"x": {1}, "y": {{"z": {2}}}}}
members = {{{0}, {1}}}
array = np.array([{0}, {1}], np.float32)
weights = ts.array([float(k) for k in ({2}, {0}, {1})])
variable = contextvars.ContextVar("variable", default={1})
layer = other.Layer({1})
child = other.Child({2})
method = layer.forward
half = functools.partial(lambda k, x: x * k + G, {2})
functions = [lambda x: x * G, lambda x: x + sum]
named = {{"f": lambda x: x - other.SCALE}}
getter = operator.attrgetter("space.k")
class Slotted:
    __slots__ = ("k", "__weakref__")
    def __init__(self, k):
        self.k = k
slotted = Slotted({0})
@dataclasses.dataclass
class Config:
    k: float = {1}
    more: list = dataclasses.field(default_factory=lambda: [{2}])
config = Config()
class Mode(enum.IntEnum):
    ONE = 1
    TWO = 2
mode = Mode.ONE
def decorated(f):
    @functools.wraps(f)
    def wrapper(*args):
        return f(*args) + G
    return wrapper
@decorated
def wrapped(x):
    return x * sum
@functools.lru_cache
def cached():
    return G
def made(start):
    held = start
    def read(x):
        return x * held + default()
    def write(value):
        nonlocal held
        held = value
    return read, write
def default(k={2}, *, j={0}):
    return k + j
read, write = made({1})
def with_attribute(x):
    return x * with_attribute.k
with_attribute.k = {2}
def sign(k):
    return 1.0 if np.signbit(float(k)) else 2.0
def kind(k):
    if isinstance(k, tuple):
        return 1.0 + kind(k[0])
    return 2.0 if isinstance(k, bool) else 3.0 if isinstance(k, float) else 4.0

def direct(x):
    return {body}

def nested(x):
    y = inner(x) + {1}
    return y * {simple}

def inner(x):
    return {nested}

def simple(x):
    return {simple_body}

def static(x, *, k):
    return x * kind(k) + (0.0 if isinstance(k, tuple) else sign(k)) + other.SCALE
"""

VALUES = (-2.0, -1.0, 0.0, -0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 1, 2)
STATICS: tuple[Any, ...] = (0.0, -0.0, 1, 1.0, True, (1,), (1.0,), (True,), ((1,),), ((1.0,),), 2)

# What a kernel may read: no list, dictionary or array by its own name.
SIMPLE = (
    "x * G",
    "x + sum",
    "x * PAIR[0] + PAIR[1][0]",
    "other.act(x)",
    "x * other.SCALE",
    "x * other.VALUES[1]",
    'x + other.TABLE["a"]',
    "x * other.space.inner.deep",
    "x * other.number()",
    "x + other.Layer.gain",
    "layer(x)",
    "child.forward(x)",
    "method(x)",
    "x * child.half",
    "other.Layer.plain(x)",
    "other.Child.of_class(x)",
    "x * slotted.k",
    "x * int(mode)",
    "half(x)",
    "wrapped(x)",
    "read(x)",
    "x * default()",
    "with_attribute(x)",
    "old_act(x)",
)
EVERYTHING = (
    *SIMPLE,
    "x * items[0] + items[1][1]",
    'x * table["y"]["z"] + table["x"]',
    "x * float(len(members))",
    "x + float(array[1])",
    "x * float(array.sum())",
    "x + weights",
    "x * float(weights.numpy()[0])",
    "x * variable.get()",
    "functions[0](x) + functions[1](x)",
    'named["f"](x)',
    "x + getter(other)",
    "x * config.k + config.more[0]",
    "x * cached()",
    'x * getattr(other, "SCALE")',
    'x + globals()["G"]',
    "x + [k * G for k in items[1]][0]",
)


class History:
    """One program, and what happens to it."""

    def __init__(self, seed: int, folder: Path, runtime: MetaTracingRuntime | None = None) -> None:
        self.draw = random.Random(seed)
        self.name = f"history_{seed}_{random.getrandbits(32):x}"
        self.folder = folder
        self.log: list[str] = []
        self.other = self._load("other", OTHER.format(*self._values(3)))
        one, two = self.draw.sample(EVERYTHING, 2), self.draw.sample(EVERYTHING, 2)
        few = self.draw.sample(SIMPLE, 2)
        text = MAIN.format(
            *self._values(3),
            other=f"{self.name}_other",
            body=" + ".join(one),
            nested=" - ".join(two),
            simple=self.draw.choice(("G", "other.SCALE", "layer.k", "config.k")),
            simple_body=" + ".join(few),
        )
        self.log.append(f"direct: {one}, inner: {two}, simple: {few}")
        self.main = self._load("main", text)
        tiers = "off" if runtime is None else runtime
        self.plain: dict[str, Callable[..., Any]] = {
            name: getattr(self.main, name) for name in ("direct", "nested", "simple", "static")
        }
        self.plain |= {"in_kernel": self.main.simple, "static_kernel": self.main.static}
        self.tried: dict[str, Any] = {
            "direct": ts.jit(self.main.direct, tiers=tiers),
            "nested": ts.jit(self.main.nested),
            "simple": ts.jit(self.main.simple),
            "static": ts.jit(self.main.static, tiers=tiers),
        }
        # A function that is called inside of another is jitted itself, half of the time.
        if self.draw.random() < 0.5:
            vars(self.main)["inner"] = ts.jit(self.main.inner)
        self.tried |= _kernels(self.folder, self.name)

    def close(self) -> None:
        for part in ("other", "main", "kernels"):
            sys.modules.pop(f"{self.name}_{part}", None)

    def run(self, steps: int) -> int:
        """Calls and changes, in any order; the number of calls, each of which gave what Python gives."""
        calls = 0
        for name in self.draw.sample(sorted(self.tried), 3) + ["" for _ in range(steps)]:
            if not name and self.draw.random() < 0.5:
                self.change(self.draw.choice(CHANGES))
                continue
            self.compare(name or self.draw.choice(sorted(self.tried)))
            calls += 1
        for name in sorted(self.tried):
            self.compare(name)
        return calls + len(self.tried)

    def compare(self, name: str) -> None:
        x = np.array([1.0, -2.0, 0.5], np.float32)
        if self.draw.random() < 0.2:
            x = np.stack([x, x + 1])
        given = {"k": self.draw.choice(STATICS)} if name.startswith("static") else {}
        self.log.append(f"{name}({given}), {x.ndim} axes")
        expected = np.asarray(self.plain[name](_Array(x), **given).array)
        found = np.asarray(self.tried[name](ts.array(x), **given))
        same = np.array_equal(np.signbit(found), np.signbit(expected)) and np.allclose(found, expected, rtol=1e-5)
        assert same, "\n".join([*self.log, f"expected {expected}, found {found}"])

    def change(self, text: str) -> None:
        def value() -> Any:
            found = self.value()
            self.log.append(f"  {found!r}")
            return found

        self.log.append(text)
        names = {"main": self.main, "other": self.other, "V": value, "reload": self.rewrite_other, "np": np, "ts": ts}
        exec(text, names)

    def value(self) -> Any:
        return self.draw.choice(VALUES)

    def _values(self, count: int) -> list[str]:
        return [repr(self.value()) for _ in range(count)]

    def _load(self, part: str, text: str) -> ModuleType:
        return _loaded(self.folder, f"{self.name}_{part}", text)

    def rewrite_other(self) -> None:
        path = self.folder / f"{self.name}_other.py"
        path.write_text(OTHER.format(*self._values(3)) + f"# {self.draw.random()}\n")
        importlib.reload(self.other)


class _Array:
    """A NumPy array that meets tensors and numbers as float32, as arrays of ours do."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array, np.float32)

    def _with(self, other: Any, function: Callable[[Any, Any], Any]) -> _Array:
        other = other.array if isinstance(other, _Array) else np.asarray(other, np.float32)
        return _Array(function(self.array, other))

    def __add__(self, other: Any) -> _Array:
        return self._with(other, np.add)

    def __sub__(self, other: Any) -> _Array:
        return self._with(other, np.subtract)

    def __mul__(self, other: Any) -> _Array:
        return self._with(other, np.multiply)


def _loaded(folder: Path, name: str, text: str) -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(text)
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


def _kernels(folder: Path, name: str) -> dict[str, Any]:
    text = f"""
from tessera import kernel, tile
import {name}_main as main
@kernel
def in_kernel(x):
    return main.simple(tile.load(x))
@kernel
def static_kernel(x, *, k):
    return main.static(tile.load(x), k=k)
"""
    made = _loaded(folder, f"{name}_kernels", text)
    return {"in_kernel": made.in_kernel, "static_kernel": made.static_kernel}


# What may happen; V() is a value
CHANGES = (
    "main.G = V()",
    "main.G = V()",
    "main.sum = V()",
    "main.PAIR = (V(), (V(),))",
    "other.SCALE = V()",
    "other.SCALE = V()",
    "reload()",
    "reload()",
    "main.items[0] = V()",
    "main.items[1][1] = V()",
    "main.items[1] = [V(), V()]",
    "main.table['y']['z'] = V()",
    "main.table.update(x=V(), new=V())",
    "main.members.add(V())",
    "main.members.clear()",
    "other.VALUES.reverse()",
    "other.VALUES[1] = V()",
    "other.TABLE.update(a=V())",
    "main.array[0] = V()",
    "main.array[1] = V()",
    "main.array = np.array([V(), V()], np.float32)",
    "main.weights[...] = ts.array([float(V()) for _ in range(3)])",
    "main.weights = ts.array([float(V()) for _ in range(3)])",
    "main.layer.k = V()",
    "main.child.k = V()",
    "main.layer.gain = V()",
    "main.slotted.k = V()",
    "main.config.k = V()",
    "main.config.more.insert(0, V())",
    "other.space.k = V()",
    "other.space.inner.deep = V()",
    "main.layer = other.Layer(V())",
    "main.child = other.Child(V())",
    "main.mode = main.Mode.TWO",
    "main.mode = main.Mode.ONE",
    "main.with_attribute.k = V()",
    "other.Layer.gain = V()",
    "other.Child.gain = V()",
    "type(main.child).forward = lambda self, x, k=V(): x * self.k - k",
    "type(main.layer).forward = lambda self, x, k=V(): x * k",
    "other.Layer.half = property(lambda self, k=V(): self.k + k)",
    "other.Layer.plain = staticmethod(lambda x, k=V(): x * k)",
    "main.write(V())",
    "main.default.__defaults__ = (V(),)",
    "main.default.__kwdefaults__['j'] = V()",
    "other.number.__defaults__ = (V(),)",
    "other.act = lambda x, k=V(): x * k",
    "main.old_act.__code__ = (lambda x: x + SCALE).__code__",
    "main.functions[0] = lambda x, k=V(): x + k",
    "main.functions.reverse()",
    "main.named['f'] = lambda x, k=V(): x * k",
    "main.half = main.functools.partial(main.half.func, V())",
    "main.cached.cache_clear()",
    "main.variable.set(V())",
    "main.sum = np.float32(V())",
    "main.layer.__class__ = other.Child",
)
