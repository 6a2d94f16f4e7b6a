"""Signatures: annotations read from functions, arguments and results checked against them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import pytest

from tessera.dtypes.types import DType, accum, bf16, f16, f32
from tessera.errors import DtypeError, ShapeError
from tessera.shapes.annotations import TensorType
from tessera.shapes.expr import dim
from tessera.shapes.signature import Signature

HEADER = "from tessera.dtypes.types import *\nfrom tessera.shapes import KTile, Tile\n"


class Define(Protocol):
    def __call__(self, source: str, header: str = HEADER) -> dict[str, Any]: ...


@pytest.fixture
def define(tmp_path: Path) -> Define:
    """Runs source from a file of its own, as a user's module; type checkers do not read these annotations."""

    def run(source: str, header: str = HEADER) -> dict[str, Any]:
        file = tmp_path / "model.py"
        file.write_text(header + dedent(source))
        names: dict[str, Any] = {}
        exec(compile(file.read_text(), str(file), "exec", dont_inherit=True), names)
        return names

    return run


def value(*shape: int, dtype: DType = bf16) -> SimpleNamespace:
    """A stand-in for a tensor: a shape and a dtype."""
    return SimpleNamespace(shape=shape, dtype=dtype)


ATTEND = """
    def attend(
        q: KTile["B", "S", 64, bf16 @ accum(f32)],
        v: KTile["B", "S", 64, bf16],
        mask: KTile["S", "S"] | None = None,
        scale: float = 1.0,
    ) -> KTile["B", "S", 64, bf16]: ...
    """


@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_arguments_bind_symbols(define: Define, tmp_path: Path, future: str) -> None:
    signature = Signature.of(define(ATTEND, future + HEADER)["attend"])
    assert list(signature.parameters) == ["q", "v", "mask"]
    environment = signature.bind({"q": value(2, 128, 64), "v": value(2, 128, 64), "mask": None, "scale": 2.0})
    assert environment.sizes == {"B": 2, "S": 128}
    location = f"{tmp_path / 'model.py'}:{6 if future else 5}:8"
    assert environment.story("S") == (f"S was bound to 128 by argument 'q', axis 1 ({location})",)
    signature.check_result(value(2, 128, 64), environment)
    with pytest.raises(ShapeError, match="result, axis 1: expected S = 128, got 100"):
        signature.check_result(value(2, 100, 64), environment)


def test_a_mismatch_names_everything_involved(define: Define, tmp_path: Path) -> None:
    signature = Signature.of(define(ATTEND)["attend"])
    with pytest.raises(ShapeError) as caught:
        signature.bind({"q": value(2, 128, 64), "v": value(2, 64, 64)})
    error = caught.value
    assert error.message == "argument 'v', axis 1: expected S = 128, got 64"
    assert error.shapes == (
        'q: KTile["B", "S", 64, bf16 @ accum(f32)] given [2, 128, 64]',
        'v: KTile["B", "S", 64, bf16] given [2, 64, 64]',
    )
    assert error.story == (f"S was bound to 128 by argument 'q', axis 1 ({tmp_path / 'model.py'}:5:8)",)
    assert error.span is not None
    assert error.span.file == __file__


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"q": value(2, 128, 32)}, "argument 'q', axis 2: expected 64, got 32"),
        ({"q": value(2, 128)}, "argument 'q': expected 3 axes, got 2"),
        ({"q": 3.0}, 'argument \'q\': expected KTile["B", "S", 64, bf16 @ accum(f32)], got float'),
        ({"mask": value(4, 5)}, "argument 'mask', axis 1: expected S = 4, got 5"),
    ],
)
def test_shape_mismatches(define: Define, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ShapeError) as caught:
        Signature.of(define(ATTEND)["attend"]).bind(arguments)
    assert caught.value.message == message
    assert caught.value.hint


def test_formats_are_compared_without_policies(define: Define) -> None:
    signature = Signature.of(define(ATTEND)["attend"])
    signature.bind({"q": value(2, 128, 64, dtype=bf16), "v": value(2, 128, 64, dtype=bf16 @ accum(f32))})
    with pytest.raises(DtypeError, match="argument 'v': expected bf16, got f16"):
        signature.bind({"v": value(2, 128, 64, dtype=f16)})
    with pytest.raises(DtypeError, match="argument 'v': cannot read the dtype 'strange'"):
        signature.bind({"v": SimpleNamespace(shape=(2, 128, 64), dtype="strange")})


def test_numpy_arrays_are_checked_by_their_storage(define: Define) -> None:
    signature = Signature.of(define('def f(x: KTile["B", f32]): ...')["f"])
    assert signature.bind({"x": np.zeros(3, np.float32)}).sizes == {"B": 3}
    with pytest.raises(DtypeError, match="expected f32, got float64"):
        signature.bind({"x": np.zeros(3)})


def test_products_and_expressions(define: Define) -> None:
    signature = Signature.of(define('def f(x: KTile["B*H", "S//64"], y: KTile["B", "S"], z: KTile["H + 1"]): ...')["f"])
    environment = signature.bind({"x": value(32, 2), "y": value(4, 130), "z": value(9)})
    assert environment.sizes == {"B": 4, "H": 8, "S": 130}
    with pytest.raises(ShapeError) as caught:
        signature.bind({"x": value(30, 2), "y": value(4, 130)})
    assert caught.value.message == "argument 'x', axis 0: expected B*H = 4*H, got 30: 30 is not divisible by 4"
    assert [line.split(":")[0] for line in caught.value.shapes] == ["x", "y"]


def test_leading_axes_and_bare_tiles(define: Define) -> None:
    signature = Signature.of(define('def f(x: KTile[..., "D"], t: Tile, k: KTile) -> Tile: ...')["f"])
    assert signature.bind({"x": value(2, 3, 4), "t": value(7), "k": value(1, 1)}).sizes == {"D": 4}
    assert signature.bind({"x": value(4)}).sizes == {"D": 4}
    with pytest.raises(ShapeError, match="expected at least 1 axes, got 0"):
        signature.bind({"x": value()})
    with pytest.raises(ShapeError, match=r"argument 't': expected Tile\[\.\.\.\], got int"):
        signature.bind({"t": 3})


def test_containers_and_stars(define: Define) -> None:
    source = 'def f(*xs: KTile["B"], pair: tuple[KTile["B"], int], **ys: KTile["B"]) -> tuple[KTile["B"], int]: ...'
    signature = Signature.of(define(source)["f"])
    arguments = {"xs": (value(2), value(2)), "pair": (value(2), 1), "ys": {"y": value(2)}}
    environment = signature.bind(arguments)
    signature.check_result((value(2), 5), environment)
    for wrong, message in {
        "xs": "argument 'xs', item 1, axis 0: expected B = 2, got 3",
        "ys": "argument 'ys', entry 'y', axis 0: expected B = 2, got 3",
    }.items():
        changed: object = (value(2), value(3)) if wrong == "xs" else {"y": value(3)}
        with pytest.raises(ShapeError) as caught:
            signature.bind({**arguments, wrong: changed})
        assert caught.value.message == message
    with pytest.raises(ShapeError, match="result: expected 2 values, got 1"):
        signature.check_result((value(2),), environment)


def test_text_annotations_see_globals_and_the_closure(define: Define) -> None:
    names = define(
        """
        def outer(width):
            def inner(x: 'KTile["B", width, f32]', y: "'KTile[\\"B\\"]'"):
                return width
            return inner
        """
    )
    signature = Signature.of(names["outer"](8))
    assert signature.parameters["x"] == TensorType((dim("B"), 8), f32, "ktile")
    assert signature.bind({"x": value(2, 8, dtype=f32), "y": value(2)}).sizes == {"B": 2}


def test_unreadable_text_is_explained_or_left_out(define: Define, tmp_path: Path) -> None:
    names = define(
        """
        class Model:
            def forward(self, x: 'KTile["B", missing]', y: "Only[Checkers]"): ...
            def fine(self, y: "Only[Checkers]", n: "int"): ...
            def typo(self, y: 'KTile["B +"]'): ...
        """
    )
    with pytest.raises(ShapeError) as caught:
        Signature.of(names["Model"].forward)
    message = "argument 'x' of Model.forward: cannot read the annotation KTile[\"B\", missing]: "
    assert caught.value.message == message + "name 'missing' is not defined"
    assert str(caught.value.span) == f"{tmp_path / 'model.py'}:5:26"
    assert Signature.of(names["Model"]().fine).parameters == {}
    with pytest.raises(ShapeError, match="cannot read a size") as caught:
        Signature.of(names["Model"].typo)
    assert str(caught.value.span) == f"{tmp_path / 'model.py'}:7:23"


def test_functions_without_source_or_annotations() -> None:
    names: dict[str, Any] = {}
    exec(HEADER + 'def f(x: KTile["B"], y: KTile["B"]): ...', names)
    with pytest.raises(ShapeError) as caught:
        Signature.of(names["f"]).bind({"x": value(2), "y": value(3)})
    assert caught.value.story == ("B was bound to 2 by argument 'x', axis 0",)
    assert Signature.of(len).parameters == {}
