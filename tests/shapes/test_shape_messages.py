"""Whole error messages for common shape mistakes, compared with the texts in golden/."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tessera.errors import TesseraError

GOLDEN = Path(__file__).parent / "golden"

HEADER = """\
import numpy as np
from tessera.dtypes.types import *
from tessera.errors import caller_span
from tessera.shapes import *
from tessera.shapes import rules
"""

MISTAKES = {
    "broadcast_symbols": """
        rules.broadcast(shape_of(["B", "S", 64]), shape_of(["B", "T", 64]), where="add")
        """,
    "broadcast_sizes_with_history": """
        x = ShapeHistory("argument 'x'", (8, 16), span=caller_span())
        x = x.step("transpose", rules.transpose(x.after, (1, 0)), caller_span())
        rules.broadcast(x.after, (16,), where="add", histories=[x])
        """,
    "matmul_needs_transpose": """
        rules.matmul(shape_of(["B", "S", "D"]), shape_of(["H", "D"]))
        """,
    "reshape_not_divisible": """
        rules.reshape(shape_of(["B", "S"]), (*shape_of(["B"]), 64, -1))
        """,
    "reshape_changes_count": """
        rules.reshape((4, 6), (5, 5))
        """,
    "concatenate_axes": """
        rules.concatenate([shape_of(["B", "S", 64]), shape_of(["B", "T", 32])], axis=1)
        """,
    "slice_not_provable": """
        rules.slice_shape(shape_of(["B", "S"]), [None, 1], [None, None], [None, None])
        """,
    "size_expression": """
        KTile["B", "2*(S + 1", bf16]
        """,
    "dtype_in_quotes": """
        KTile["B", "bf16"]
        """,
    "argument_mismatch": """
        def attend(q: KTile["B", "S", 64, f32], v: KTile["B", "S", 64, f32]): ...

        call = Signature.of(attend)
        call.bind({"q": np.zeros((2, 128, 64), "f4"), "v": np.zeros((2, 64, 64), "f4")})
        """,
    "argument_product": """
        def heads(x: KTile["B*H", "S"], y: KTile["B", "S"]): ...

        Signature.of(heads).bind({"x": np.zeros((30, 7)), "y": np.zeros((4, 7))})
        """,
    "argument_dtype": """
        def f(x: KTile["S", bf16 @ accum(f32)]): ...

        Signature.of(f).bind({"x": np.zeros(3, np.float32)})
        """,
    "divisibility": """
        sizes = ShapeEnvironment()
        sizes.require(DivisibleBy("S", 64), Origin("schedule block=64"))
        sizes.unify("S", "T + 1", Origin("argument 'x', axis 0"))
        sizes.bind("T", 99, Origin("argument 'y', axis 0"))
        """,
}


@pytest.mark.parametrize("name", MISTAKES)
def test_message(name: str, tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(HEADER + dedent(MISTAKES[name]))
    with pytest.raises(TesseraError) as caught:
        exec(compile(file.read_text(), str(file), "exec", dont_inherit=True), {})
    text = f"{type(caught.value).__name__}: {caught.value}\n".replace(f"{tmp_path}/", "")
    assert text == (GOLDEN / f"{name}.txt").read_text()


def test_every_golden_text_is_used() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == set(MISTAKES)
