"""The functions that no instruction computes: on vectors in f32, and by the mathematics library, lane by lane, in f64.

docs/numerics.md has the largest errors that were measured, and the tests measure them again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tessera.errors import CompileError
from tessera.targets.llvm import exponentials, logarithms, trigonometry
from tessera.targets.llvm.floats import Floats, Sixteen, fits_sixteens, in_sixteens, lane_by_lane
from tessera.targets.llvm.text import Function, Value, element_of, suffix_of

Recipe = Callable[..., Value]


def rsqrt(k: Floats, x: Value) -> Value:
    """1/√x."""
    if not isinstance(k, Sixteen):
        return k.div(1.0, k.sqrt(x))
    near = k.nearly_inverse_root(x)
    error = k.fma(k.neg(k.mul(x, near)), near, 1.0)
    # 0 and infinity have their exact results already, and NaN for an error: any positive number leaves them alone.
    error = k.select(k.compare("olt", error, 2.0**-10), error, 2.0**-10)
    return k.fma(k.mul(near, 0.5), error, near)


F32: Mapping[str, Recipe] = MappingProxyType(
    {
        "exp": exponentials.exp,
        "exp2": exponentials.exp2,
        "expm1": exponentials.expm1,
        "tanh": exponentials.tanh,
        "sigmoid": exponentials.sigmoid,
        "erf": exponentials.erf,
        "log": logarithms.log,
        "log2": logarithms.log2,
        "log1p": logarithms.log1p,
        "pow": logarithms.power,
        "sin": trigonometry.sin,
        "cos": trigonometry.cos,
        "tan": trigonometry.tan,
        "atan2": trigonometry.atan2,
        "rsqrt": rsqrt,
    }
)


def _sigmoid(k: Floats, x: Value) -> Value:
    decay = _library(k, "exp", k.neg(k.absolute(x)))
    return k.div(k.select(k.compare("oge", x, 0.0), 1.0, decay), k.add(decay, 1.0))


def _library(k: Floats, name: str, *operands: Value) -> Value:
    def scalar(g: Function, *arguments: Value) -> Value:
        return g.call(name, "double", arguments)

    return lane_by_lane(k.f, name, operands, scalar)


def _from_library(name: str) -> Recipe:
    def recipe(k: Floats, *operands: Value) -> Value:
        return _library(k, name, *operands)

    return recipe


F64: Mapping[str, Recipe] = MappingProxyType(
    {name: _from_library(name) for name in F32} | {"sigmoid": _sigmoid, "rsqrt": rsqrt}
)


def compute(f: Function, name: str, operands: Sequence[Value], level: str) -> Value:
    """A function of the tables above on values of type `float` or `double`, or vectors of them."""
    type_ = operands[0].type
    table = {"float": F32, "double": F64}.get(element_of(type_), {})
    if name not in table:
        raise CompileError(f"{name} is not computed on {type_}", hint=f"on floats there are {', '.join(F32)}")
    recipe = table[name]

    def write(g: Function, given: Sequence[Value]) -> Value:
        if table is F32 and fits_sixteens(type_, level):
            return in_sixteens(g, given, lambda *pieces: recipe(Sixteen(g, level), *pieces))
        return recipe(Floats(g, type_, level), *given)

    if not f.module.short:
        return write(f, operands)
    called = f"{name}.{suffix_of(type_)}"
    if called not in f.module:
        g = f.module.function(called, [(operand.type, f"x{at}") for at, operand in enumerate(operands)], returns=type_)
        g.give(write(g, g.arguments))
    return f.op(type_, f"call {type_} @{called}({', '.join(map(str, operands))})")
