"""Types of tensors and tiles as written in annotations: `Tensor["B", "S", 64, bf16 @ accum(f32)]`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import Literal, NoReturn, TypeAlias, cast

from tessera.dtypes.types import BY_NAME, DType, Policy
from tessera.errors import DtypeError, ShapeError
from tessera.shapes.expr import Dim, Shape, size

Form: TypeAlias = Literal["tensor", "tile", "ktile"]
Item: TypeAlias = int | str | Dim | DType | EllipsisType

FORM_NAMES: dict[Form, str] = {"tensor": "Tensor", "tile": "Tile", "ktile": "KTile"}


@dataclass(frozen=True, slots=True)
class TensorType:
    """The sizes and the element type an annotation asks for.

    `any_leading` allows any axes before `dims` (written `...`); no dtype allows every dtype; `optional` allows
    None instead of the tensor (written `| None`). `out` says that the function fills it (written `Out[...]`).
    """

    dims: Shape
    dtype: DType | None = None
    form: Form = "tensor"
    any_leading: bool = False
    optional: bool = False
    out: bool = False

    def __str__(self) -> str:
        items = ["..."] if self.any_leading else []
        items += [str(item) if isinstance(item, int) else f'"{item}"' for item in self.dims]
        items += [] if self.dtype is None else [str(self.dtype)]
        written = f"{FORM_NAMES[self.form]}[{', '.join(items) or '()'}]"
        return f"{f'Out[{written}]' if self.out else written}{' | None' if self.optional else ''}"

    __repr__ = __str__

    def __or__(self, other: object) -> TensorType:
        return replace(self, optional=True) if other is None else NotImplemented

    __ror__ = __or__


def annotation(form: Form, items: object) -> TensorType:
    """The type for `Tensor[items]`: sizes, then optionally a dtype; `...` in front for any leading axes."""
    given = cast(Sequence[object], items if isinstance(items, tuple | list) else (items,))
    sizes, dtype = list(given), None
    if sizes and isinstance(sizes[-1], DType):
        dtype = cast(DType, sizes.pop())
    any_leading = bool(sizes) and sizes[0] is Ellipsis
    dims = [_size(form, given, item) for item in (sizes[1:] if any_leading else sizes)]
    return TensorType(tuple(dims), dtype, form, any_leading)


def _size(form: Form, given: Sequence[object], item: object) -> int | Dim:
    if isinstance(item, bool) or not isinstance(item, int | str | Dim):
        _refuse(form, given, item)
    if isinstance(item, str) and item in BY_NAME:
        raise DtypeError(
            f"{_written(form, given)}: {item!r} is the name of a dtype, not of a size",
            hint=f"write the dtype without quotes: {FORM_NAMES[form]}[..., {item}]",
        )
    value = size(item)
    if isinstance(value, int) and value < 0:
        raise ShapeError(f"{_written(form, given)}: the size {value} is negative", hint="sizes are at least 0")
    return value


def _refuse(form: Form, given: Sequence[object], item: object) -> NoReturn:
    written = _written(form, given)
    if isinstance(item, DType):
        raise DtypeError(f"{written}: the dtype {item} is not the last item", hint="write sizes first, one dtype last")
    if isinstance(item, Policy):
        raise DtypeError(f"{written}: the policy {item} has no dtype", hint=f"attach it with @, such as bf16 @ {item}")
    if item is Ellipsis:
        raise ShapeError(f"{written}: ... is only allowed as the first item", hint="it stands for any leading axes")
    raise ShapeError(
        f"{written}: expected a size or a dtype, got {item!r} of type {type(item).__name__}",
        hint="sizes are integers, names in quotes or expressions such as 'B*H'; a dtype such as bf16 comes last",
    )


def _written(form: Form, given: Sequence[object]) -> str:
    items = ", ".join(
        "..." if item is Ellipsis else f'"{item}"' if isinstance(item, str) else str(item) for item in given
    )
    return f"{FORM_NAMES[form]}[{items}]"


class Tile:
    """A block of values inside a kernel; `Tile` alone takes any, `Tile["M", "D", f32]` names sizes and dtype."""

    __slots__ = ()

    def __class_getitem__(cls, items: object) -> TensorType:
        return annotation("tile", items)


class KTile:
    """A kernel's tensor operand, addressed tile by tile: `KTile["B*H", "S", "D_h", bf16 @ accum(f32)]`."""

    def __class_getitem__(cls, items: object) -> TensorType:
        return annotation("ktile", items)


class Out:
    """An array that a kernel fills: `Out[KTile["N", f32]]`, or `Out` alone for any. It holds nothing before."""

    def __class_getitem__(cls, inner: object) -> TensorType:
        # `KTile` alone takes any array, as `KTile[...]` does.
        subscript = getattr(inner, "__class_getitem__", None) if isinstance(inner, type) else None
        found = inner if subscript is None else subscript(...)
        if not isinstance(found, TensorType):
            raise ShapeError(
                f"Out takes the type of an array, got {inner!r}",
                hint='write Out[KTile["N", f32]], Out[Tensor["N", f32]], or Out alone for any array',
            )
        if found.form == "tile":
            raise ShapeError(
                f"Out takes the type of an array, got {found}: a tile is a value",
                hint=f"write Out[{replace(found, form='ktile')}], and store tiles to it",
            )
        return replace(found, out=True)
