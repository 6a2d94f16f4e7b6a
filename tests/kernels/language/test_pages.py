"""Tiles that are loaded from pages, through a table that says where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paged_kernels import attended, attention, gathered, sequences
from ptx_checks import check_clean

import tessera as ts
from tessera import kernel, knobs, tile
from tessera.bench.cuda.kernel_texts import text_for
from tessera.errors import DtypeError, ShapeError, TesseraError


@settings(max_examples=25)
@given(
    st.integers(0, 99),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.sampled_from([4, 8, 16]),
    st.lists(st.integers(0, 40), min_size=1, max_size=4),
    st.sampled_from(["interpreter", "cpu"]),
)
def test_blocks_are_the_rows_of_their_pages(seed: int, page: int, n: int, lengths: list[int], backend: str) -> None:
    pages, table, expected = sequences(seed, page, lengths)
    out = np.full((len(lengths), 2, 48, 5), 9, np.float32)
    with knobs.backend.using(backend), knobs.checks.using("bounds"):
        gathered[len(lengths), 2](pages, table, np.array(lengths), out, n=n, d=5)
    for b, rows in enumerate(expected):
        end = -(-lengths[b] // n) * n
        assert np.array_equal(out[b, :, : lengths[b]], rows)
        assert (out[b, :, lengths[b] : end] == 0).all()
        assert (out[b, :, end:] == 9).all()


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("page", [4, 16, 32])
def test_attention_over_several_pages_at_a_time(page: int, backend: str) -> None:
    lengths = [37, 1, 16, 64]
    pages, table, keys = sequences(1, page, lengths, d=16)
    values, same, kept = sequences(1, page, lengths, d=16)
    assert np.array_equal(table, same)
    q = np.random.default_rng(0).standard_normal((4, 2, 8, 16)).astype(np.float32)
    out = np.zeros_like(q)
    with knobs.backend.using(backend):
        attended[4, 2](q, pages, values, table, np.array(lengths), out, g=8, n=16, d=16)
    np.testing.assert_allclose(out, attention(q, keys, kept), rtol=1e-4, atol=1e-5)


@pytest.mark.quick(1)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_blocks_of_pages_on_gpus(arch: str) -> None:
    pages, table, _ = sequences(1, 8, [37, 1], d=16)
    q, lengths = np.zeros((2, 2, 16, 16), np.float32), np.array([37, 1])
    arrays = [ts.asarray(one) for one in (q, pages, pages, table, lengths, q)]
    check_clean(text_for(attended[2, 2], *arrays, g=16, n=16, d=16, arch=arch), arch)


@kernel
def misused(pages: Any, table: Any, out: Any, *, of: str, row: Any, view: str, at: Any, first: Any, shape: Any):
    source: Any = {"table": table, "pages": pages, "number": 3}[of]
    place = tile.page(source, *row)
    whole = pages if view == "all" else pages[0, 0]
    tile.store(
        out, tile.load(whole, at=(*(place if one == "page" else one for one in at), first, 0), shape=shape), at=(0, 0)
    )


RIGHT: dict[str, Any] = {"of": "table", "row": (0, 0), "view": "all", "at": ("page", 0), "first": 0, "shape": (8, 5)}
MISUSES: list[tuple[dict[str, Any], type[TesseraError], str]] = [
    ({"of": "pages", "row": (0, 0, 0, 0)}, DtypeError, "has no numbers of pages: they are integers"),
    ({"of": "number"}, DtypeError, "tile.page works on an array argument, got 3"),
    ({"row": (0,)}, ShapeError, "at 1 places"),
    ({"row": (0, 0, 0)}, ShapeError, "at 3 places"),
    ({"row": (0, 1.5)}, TesseraError, "1.5"),
    ({"first": 2}, ShapeError, "rows of pages begin at 2"),
    ({"shape": (6, 5)}, ShapeError, "a block of 6 rows is no whole number of pages of 4 rows"),
    ({"shape": (1, 1, 8, 5)}, ShapeError, "at 4 places, 1 of which are pages"),
    ({"at": ("page",)}, ShapeError, "at 3 places"),
    ({"at": ("page", "page")}, ShapeError, "2 of which are pages"),
    ({"at": ("page", 0, 0)}, ShapeError, "at 5 places"),
    ({"at": (), "view": "part", "first": "page"}, TesseraError, "page"),
]


@pytest.mark.parametrize(("said", "kind", "message"), MISUSES)
def test_what_no_pages_are(said: dict[str, Any], kind: type[TesseraError], message: str) -> None:
    pages, table, _ = sequences(0, 4, [8])
    out = np.zeros((8, 5), np.float32)
    misused[1](pages, table, out, **RIGHT)
    with pytest.raises(kind, match=message) as found:
        misused[1](pages, table, out, **RIGHT | said)
    assert found.value.span is not None
    assert found.value.span.file == __file__
    assert found.value.hint


@kernel
def stored(pages: Any, table: Any):
    tile.store(pages, tile.zeros((1, 1, 4, 5)), at=(tile.page(table, 0, 0), 0, 0, 0))


def test_pages_are_for_loads() -> None:
    pages, table, _ = sequences(0, 4, [8])
    with pytest.raises(TesseraError, match="pages of table") as found:
        stored[1](pages, table)
    assert "one page at a time" in (found.value.hint or "")
