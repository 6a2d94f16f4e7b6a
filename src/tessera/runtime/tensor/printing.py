"""How tensors are shown: the values at the edges, shape, dtype with policy, and device; in notebooks as a table."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import numpy as np

from tessera.runtime.tensor.interface import TensorInterface

_EDGE = 3
_SHOWN = 60
_ROWS, _COLUMNS = 8, 12  # of a table; longer axes show their ends


def show(tensor: TensorInterface) -> str:
    """`Tensor([1., 2.], shape=(2,), dtype=f32, device=cpu)`; long axes keep three values at each end."""
    prefix = "Tensor("
    rest = f"shape={tensor.shape}, dtype={tensor.dtype}, device={tensor.device})"
    text = _values(tensor, prefix)
    glue = ",\n" + " " * len(prefix) if "\n" in text else ", "
    return f"{prefix}{text}{glue}{rest}"


def _values(tensor: TensorInterface, prefix: str) -> str:
    shorten = tensor.size > _SHOWN
    return np.array2string(
        (_edges(tensor.cpu(), _EDGE) if shorten else tensor).values(),
        precision=4,
        threshold=0 if shorten else _SHOWN,
        edgeitems=_EDGE,
        separator=", ",
        prefix=prefix,
    )


def _edges(tensor: TensorInterface, edge: int) -> TensorInterface:
    """One value more than is shown of each long axis, so that the values between are neither copied nor cast."""
    for axis, count in enumerate(tensor.shape):
        if count > 2 * edge + 1:
            ends = [*range(edge + 1), *range(count - edge, count)]
            tensor = tensor[(slice(None),) * axis + (ends,)]
    return tensor


def show_as_html(tensor: TensorInterface) -> str:
    """The same in HTML: vectors and matrices as a table, other tensors as text."""
    size = f"{tensor.nbytes:,} bytes" if tensor.nbytes != 1 else "1 byte"
    head = f"<b>Tensor</b> {escape(str(tensor.shape))} {escape(str(tensor.dtype))} on {tensor.device}, {size}"
    if tensor.ndim not in (1, 2) or not tensor.size:
        return f"<div>{head}<pre>{escape(_values(tensor, ''))}</pre></div>"
    rows, columns = tensor.shape if tensor.ndim == 2 else (1, *tensor.shape)
    cut = tensor.cpu()
    for axis, most in enumerate((_ROWS, _COLUMNS)[-tensor.ndim :]):
        if tensor.shape[axis] > most:
            ends = [*range(most // 2), *range(tensor.shape[axis] - most // 2, tensor.shape[axis])]
            cut = cut[(slice(None),) * axis + (ends,)]
    values = cut.values()
    lines = [_cells(row, columns > _COLUMNS) for row in (values if tensor.ndim == 2 else [values])]
    if rows > _ROWS:
        lines.insert(_ROWS // 2, "<td>⋮</td>" * lines[0].count("<td"))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<div>{head}<table>{body}</table></div>"


def _cells(row: Iterable[object], is_cut: bool) -> str:
    cells = [f"<td>{format(one, '.4g') if isinstance(one, np.floating) else one}</td>" for one in row]
    if is_cut:
        cells.insert(_COLUMNS // 2, "<td>…</td>")
    return "".join(cells)
