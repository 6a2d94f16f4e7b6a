"""Annotations of tensors and tiles: what they hold, how they print, and what they refuse."""

from __future__ import annotations

import pickle

import pytest

from tessera.dtypes.types import accum, bf16, f32
from tessera.errors import DtypeError, ShapeError, TesseraError
from tessera.shapes.annotations import KTile, TensorType, Tile, annotation
from tessera.shapes.expr import dim, parse_dim


def test_sizes_and_dtype() -> None:
    written = annotation("tensor", ("B", "S + S", 64, dim("D"), bf16 @ accum(f32)))
    assert written == TensorType((dim("B"), parse_dim("2*S"), 64, dim("D")), bf16 @ accum(f32))
    assert str(written) == 'Tensor["B", "2*S", 64, "D", bf16 @ accum(f32)]'
    assert hash(written) == hash(annotation("tensor", ["B", "2*S", 64, "D", bf16 @ accum(f32)]))
    assert pickle.loads(pickle.dumps(written)) == written


def test_one_item_needs_no_tuple() -> None:
    assert annotation("tensor", "S") == annotation("tensor", ("S",))
    assert annotation("tensor", f32) == TensorType((), f32)
    assert str(annotation("tensor", ())) == "Tensor[()]"


def test_leading_axes_may_be_open() -> None:
    written = annotation("tensor", (..., "S", f32))
    assert written == TensorType((dim("S"),), f32, any_leading=True)
    assert str(written) == 'Tensor[..., "S", f32]'


def test_none_may_be_allowed() -> None:
    written = annotation("tensor", "S") | None
    assert written == None | annotation("tensor", "S")
    assert written.optional
    assert str(written) == 'Tensor["S"] | None'
    with pytest.raises(TypeError):
        _ = annotation("tensor", "S") | 3


def test_the_form_follows_the_class() -> None:
    assert Tile.__class_getitem__(("M", 64, f32)) == TensorType((dim("M"), 64), f32, "tile")
    assert str(KTile.__class_getitem__(("B*H", "S", "D_h", bf16))) == 'KTile["B*H", "S", "D_h", bf16]'


@pytest.mark.parametrize(
    ("items", "kind", "message"),
    [
        (("B", bf16, 3), DtypeError, 'Tensor["B", bf16, 3]: the dtype bf16 is not the last item'),
        (("B", bf16, f32), DtypeError, 'Tensor["B", bf16, f32]: the dtype bf16 is not the last item'),
        (("B", "bf16"), DtypeError, 'Tensor["B", "bf16"]: \'bf16\' is the name of a dtype, not of a size'),
        (("B", accum(f32)), DtypeError, 'Tensor["B", accum(f32)]: the policy accum(f32) has no dtype'),
        (("B", ..., 3), ShapeError, 'Tensor["B", ..., 3]: ... is only allowed as the first item'),
        (("B", 2.5), ShapeError, 'Tensor["B", 2.5]: expected a size or a dtype, got 2.5 of type float'),
        ((True,), ShapeError, "Tensor[True]: expected a size or a dtype, got True of type bool"),
        (("B", -3), ShapeError, 'Tensor["B", -3]: the size -3 is negative'),
    ],
)
def test_refused_items(items: tuple[object, ...], kind: type[TesseraError], message: str) -> None:
    with pytest.raises(kind) as caught:
        annotation("tensor", items)
    assert caught.value.message == message
    assert caught.value.hint
