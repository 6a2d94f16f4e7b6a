"""Products: of matrices, of vectors, over chosen axes; sums are carried as the element type's policy says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tessera.dtypes.promotion import as_dtype, promote
from tessera.dtypes.types import DType
from tessera.errors import ShapeError
from tessera.lang.operator import operator
from tessera.lang.operators.operands import axes_of, expanded, moved_last, narrow, one_axis, refusal, tensors
from tessera.lang.tracing import primitives
from tessera.lang.tracing.arithmetic import broadcast_all, elementwise, tensor
from tessera.lang.tracing.values import Array, Traced, shown
from tessera.runtime.tensor.interface import DTypeLike
from tessera.shapes.expr import Size, element_count


def matmul_operands(name: str, x1: Any, x2: Any, dtype: DTypeLike | None) -> tuple[Traced, Traced, DType]:
    """Two operands of one format, and the type of their matmul; policies are joined and need no cast."""
    a, b = tensor(x1), tensor(x2)
    if a.dtype.base is not b.dtype.base:
        a, b = tensors(name, a, b)
    if not (a.dtype.is_float or a.dtype.is_integer):
        raise refusal(name, "numbers", [a, b], "cast them to i32 first")
    return a, b, promote(a.dtype, b.dtype) if dtype is None else as_dtype(dtype)


def rounded_matmul(a: Traced, b: Traced, to: DType) -> Traced:
    """The matmul, rounded once into `to`; a change of kind is a cast after it."""
    if to.kind is a.dtype.kind:
        return primitives.matmul(a, b, to=to)
    return primitives.cast(primitives.matmul(a, b), to)


@operator
def matmul(x1: Array, x2: Array, /, *, dtype: DTypeLike | None = None) -> Traced:
    """x1 @ x2: the matrix product over the last axis of x1 and the second to last of x2; leading axes broadcast.

    A vector is a matrix of one row or column, which the result lacks. Sums are carried in the accumulator of the
    element type and rounded once into `dtype`, the operands' own unless another is named: of bf16 and of 8-bit floats,
    in f32.

        ts.matmul(x, w)              # x @ w
        ts.matmul(q8, k8, dtype=ts.f32)
    """
    a, b, to = matmul_operands("matmul", x1, x2, dtype)
    if not (a.ndim and b.ndim):
        raise ShapeError("matmul: a number has no axis to sum over", shapes=shown(a, b), hint="multiply instead")
    left = expanded(a, [0]) if a.ndim == 1 else a
    right = expanded(b, [1]) if b.ndim == 1 else b
    found = rounded_matmul(left, right, to)
    sizes = list(found.sizes)
    if b.ndim == 1:
        del sizes[-1]
    if a.ndim == 1:
        del sizes[-1 if b.ndim == 1 else -2]
    return primitives.reshape(found, sizes)


@operator
def linear(x: Array, weight: Array, bias: Array | None = None, /, *, dtype: DTypeLike | None = None) -> Traced:
    """x @ weight + bias; weight is [inputs, outputs], bias [outputs]."""
    found = matmul(x, weight, dtype=dtype)
    return found if bias is None else elementwise("add", found, bias)


@operator
def vecdot(x1: Array, x2: Array, /, axis: int = -1) -> Traced:
    """The dot product of vectors along `axis`, counted from the last; the other axes broadcast."""
    a, b, to = matmul_operands("vecdot", x1, x2, None)
    if not (a.ndim and b.ndim):
        raise ShapeError("vecdot: a number has no axis to sum over", shapes=shown(a, b), hint="multiply instead")
    if axis >= 0 or axis < -min(a.ndim, b.ndim):
        raise ShapeError(
            f"vecdot: axis {axis} is not one that both have, counted from the last",
            shapes=shown(a, b),
            hint=f"use an axis from {-min(a.ndim, b.ndim)} to -1",
        )
    left, right = (primitives.transpose(x, moved_last(x.ndim, one_axis(x, axis, "vecdot"))) for x in (a, b))
    found = rounded_matmul(expanded(left, [left.ndim - 1]), expanded(right, [right.ndim]), to)
    return primitives.reshape(found, found.sizes[:-2])


@operator
def tensordot(x1: Array, x2: Array, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Traced:
    """The sum of products over the last `axes` of x1 and the first of x2, or over pairs of axes."""
    a, b, to = matmul_operands("tensordot", x1, x2, None)
    if isinstance(axes, int):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise ShapeError(
                f"tensordot: {axes} axes to sum over", shapes=shown(a, b), hint="no more than each operand has"
            )
        summed = (tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes)))
    else:
        summed = axes_of(a, tuple(axes[0]), "tensordot"), axes_of(b, tuple(axes[1]), "tensordot")
    if len(summed[0]) != len(summed[1]):
        raise ShapeError("tensordot: axes come in pairs", shapes=shown(a, b), hint="name as many of x1 as of x2")
    free = [[at for at in range(x.ndim) if at not in gone] for x, gone in zip((a, b), summed, strict=True)]
    left = primitives.transpose(a, [*free[0], *summed[0]])
    right = primitives.transpose(b, [*summed[1], *free[1]])
    inner = [a.sizes[at] for at in summed[0]]
    outer = [[x.sizes[at] for at in kept] for x, kept in zip((a, b), free, strict=True)]
    rows, columns, depth = (element_count(sizes) for sizes in (outer[0], outer[1], inner))
    found = rounded_matmul(primitives.reshape(left, (rows, depth)), primitives.reshape(right, (depth, columns)), to)
    return primitives.reshape(found, [*outer[0], *outer[1]])


@operator
def outer(x1: Array, x2: Array, /) -> Traced:
    """The outer product of two vectors: x1[i] · x2[j]."""
    a, b = tensors("outer", x1, x2)
    return elementwise("mul", primitives.reshape(a, (-1, 1)), primitives.reshape(b, (1, -1)))


@operator
def einsum(formula: str, /, *operands: Array) -> Traced:
    """Sums of products by labels of axes: `einsum("bij,bjk->bik", x, y)`.

    Labels are single letters; those that the result lacks are summed over.
    """
    given = [tensor(x) for x in operands]
    common = tensors("einsum", *given) if len({x.dtype.base for x in given}) > 1 else given
    inputs, output = _parsed(formula, common)
    terms = [_diagonal(x, labels) for x, labels in zip(common, inputs, strict=True)]
    while len(terms) > 1:
        (a, la), (b, lb), *rest = terms
        wanted = {*output, *(label for _, labels in rest for label in labels)}
        terms = [_contracted(a, la, b, lb, wanted), *rest]
    ((found, labels),) = terms
    found, labels = _summed(found, labels, set(output))
    return narrow(primitives.transpose(found, [labels.index(label) for label in output]), common[0].dtype)


def _parsed(formula: str, operands: Sequence[Traced]) -> tuple[list[str], str]:
    given, arrow, output = formula.replace(" ", "").partition("->")
    inputs = given.split(",")
    if not arrow:
        labels = "".join(inputs)
        output = "".join(sorted(label for label in set(labels) if labels.count(label) == 1))
    fits = len(inputs) == len(operands) and all(len(x) == y.ndim for x, y in zip(inputs, operands, strict=True))
    letters = all(label.isalpha() for label in "".join(inputs) + output)
    if not fits or not letters or len(set(output)) != len(output) or not set(output) <= set("".join(inputs)):
        raise ShapeError(
            f"einsum: {formula!r} does not describe these operands",
            shapes=shown(*operands),
            hint="give each operand one letter per axis, and the result letters that occur, each once",
        )
    sizes: dict[str, Size] = {}
    for labels, x in zip(inputs, operands, strict=True):
        for label, size in zip(labels, x.sizes, strict=True):
            if sizes.setdefault(label, size) != size:
                raise ShapeError(
                    f"einsum: {label} is {sizes[label]} in one operand and {size} in another",
                    shapes=shown(*operands),
                    hint="one letter is one size",
                )
    return inputs, output


def _diagonal(x: Traced, labels: str) -> tuple[Traced, str]:
    """A label that an operand has twice means its diagonal."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            same = elementwise("eq", primitives.iota(x.sizes, first), primitives.iota(x.sizes, second))
            x = primitives.reduce("sum", elementwise("select", same, x, False), [second])
            labels = labels[:second] + labels[second + 1 :]
    return x, labels


def _summed(x: Traced, labels: str, wanted: set[str]) -> tuple[Traced, str]:
    gone = [at for at, label in enumerate(labels) if label not in wanted]
    return primitives.reduce("sum", x, gone), "".join(label for label in labels if label in wanted)


def _contracted(a: Traced, la: str, b: Traced, lb: str, wanted: set[str]) -> tuple[Traced, str]:
    """Two operands as one matmul with leading axes."""
    a, la = _summed(a, la, wanted | set(lb))
    b, lb = _summed(b, lb, wanted | set(la))
    both = [label for label in la if label in lb]
    batch = [label for label in both if label in wanted]
    inner = [label for label in both if label not in wanted]
    rows = [label for label in la if label not in lb]
    columns = [label for label in lb if label not in la]
    if not inner:
        wide_a = _laid(a, la, [*batch, *rows], len(columns), at_end=True)
        wide_b = _laid(b, lb, [*batch, *columns], len(rows), at=len(batch))
        return primitives.ew("mul", *broadcast_all([wide_a, wide_b], "einsum")), "".join([*batch, *rows, *columns])
    size_of = dict(zip(la + lb, [*a.sizes, *b.sizes], strict=False)) | dict(zip(lb, b.sizes, strict=True))
    sizes = {
        kind: [size_of[label] for label in names]
        for kind, names in (("batch", batch), ("rows", rows), ("inner", inner), ("columns", columns))
    }
    left = primitives.transpose(a, [la.index(label) for label in (*batch, *rows, *inner)])
    right = primitives.transpose(b, [lb.index(label) for label in (*batch, *inner, *columns)])
    left = primitives.reshape(left, (*sizes["batch"], element_count(sizes["rows"]), element_count(sizes["inner"])))
    right = primitives.reshape(right, (*sizes["batch"], element_count(sizes["inner"]), element_count(sizes["columns"])))
    found = rounded_matmul(left, right, promote(a.dtype, b.dtype))
    return (
        primitives.reshape(found, (*sizes["batch"], *sizes["rows"], *sizes["columns"])),
        "".join([*batch, *rows, *columns]),
    )


def _laid(x: Traced, labels: str, order: Sequence[str], extra: int, *, at: int = 0, at_end: bool = False) -> Traced:
    """Axes in an order, with `extra` ones of size 1 inserted."""
    laid = primitives.transpose(x, [labels.index(label) for label in order])
    axis = laid.ndim if at_end else at
    return expanded(laid, range(axis, axis + extra)) if extra else laid
