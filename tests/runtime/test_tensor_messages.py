"""Whole error messages for common mistakes with tensors, compared with the texts in golden/."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tessera.errors import TesseraError

GOLDEN = Path(__file__).parent / "golden"

HEADER = """\
import numpy as np
import tessera as ts
"""

MISTAKES = {
    "broadcast_mismatch": """
        x, y = ts.ones((2, 3)), ts.ones((4, 3))
        z = x * 2 + y
        """,
    "reshape_count": """
        ts.zeros((4, 6)).reshape(5, -1)
        """,
    "reshape_without_a_view": """
        ts.zeros((4, 6)).T.reshape(24, copy=False)
        """,
    "axis_out_of_range": """
        ts.zeros((4, 6)).permute(0, 2)
        """,
    "index_out_of_range": """
        x = ts.zeros((4, 6))
        row = x[0] + x[4]
        """,
    "float_scalar_with_integers": """
        counts = ts.asarray([1, 2, 3])
        mean = counts * 0.5
        """,
    "scalar_out_of_range": """
        ts.zeros(3, ts.u8) + 256
        """,
    "bf16_and_i32": """
        ts.ones(3, ts.bf16) + ts.ones(3, ts.i32)
        """,
    "read_only_write": """
        weights = np.ones(3, np.float32)
        weights.flags.writeable = False
        ts.asarray(weights)[0] = 2.0
        """,
    "lossy_store": """
        x = ts.zeros(3, ts.bf16)
        x[0] = ts.asarray(1 / 3)
        """,
    "cuda_without_backend": """
        x = ts.randn((2, 2), seed=0).cuda()
        """,
    "strides_beyond_the_storage": """
        ts.zeros(8).as_strided((3, 4), (4, 1))
        """,
    "copy_forbidden": """
        ts.asarray(np.zeros(3), ts.bf16, copy=False)
        """,
    "ragged_lists": """
        ts.asarray([[1, 2], [3]])
        """,
    "ambiguous_truth": """
        if ts.asarray([1.0, 2.0]) > 0:
            pass
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
