"""How plots are drawn: one calm style, colours that the page names, and SVG that can stand in it."""

from __future__ import annotations

import html
import io
import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tessera.bench.results.definitions import BenchError

INK, MUTED, GRID = "#010101", "#020202", "#030303"
"""Stand-ins. In the SVG they become `var(--ink)` and so on, so that the page can be light or dark."""
SERIES = 8
"""How many colours for implementations there are; then they repeat, with other markers."""
STAGES = 10
MARKERS = "osD^vPX*"
ACROSS = 58
"""Letters that fit side by side below an axis."""
WIDTH = 5.2
"""Inches. Plots are drawn small, so that their text is readable on a phone and only grows elsewhere."""

_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.labelsize": 9.5,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": GRID,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "xtick.minor.visible": False,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
}


def color(index: int) -> str:
    return f"#0401{index % SERIES:02x}"


def stage_color(index: int) -> str:
    return f"#0402{index % STAGES:02x}"


def marker(index: int) -> str:
    return MARKERS[(index + index // SERIES) % len(MARKERS)]


def variable(stand_in: str) -> str:
    """The name of a colour in the page."""
    if stand_in in _NAMES:
        return _NAMES[stand_in]
    kind, index = stand_in[3:5], int(stand_in[5:], 16)
    return f"var(--{'series' if kind == '01' else 'stage'}-{index})"


_NAMES = {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--grid)"}
_STAND_IN = re.compile(r"#(?:010101|020202|030303|0401[0-9a-f]{2}|0402[0-9a-f]{2})\b")


class Drawing:
    """A figure in the making. `mark` ties what is drawn to an implementation and says what it shows."""

    def __init__(self, name: str, label: str) -> None:
        self.name = name
        self._label = label
        self._titles: list[tuple[int, str]] = []

    def mark(self, artists: Iterable[Any], series: int, title: str = "") -> None:
        """Everything drawn for the series of that number; the title is shown where the mouse rests."""
        for artist in artists:
            artist.set_gid(f"mark:{len(self._titles)}")
            self._titles.append((series, title))

    def svg(self, paint: Callable[[Any], None], height: float) -> str:
        """The figure that `paint` fills, as an SVG element. Equal figures give equal text."""
        try:
            import matplotlib as mpl
            from matplotlib.figure import Figure
        except ImportError as error:
            raise BenchError(
                f"the page needs matplotlib, which cannot be imported: {error}",
                hint="install it with `pip install 'tessera-lang[bench]'`",
            ) from None
        text = io.StringIO()
        library: Any = mpl
        with warnings.catch_warnings(), library.rc_context({**_STYLE, "svg.hashsalt": f"tessera {self.name}"}):
            # The browser has the letters that the font of the measurements lacks.
            warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
            figure: Any = Figure(figsize=(WIDTH, height), layout="constrained")
            paint(figure)
            figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
        return self._inlined(text.getvalue())

    def _inlined(self, text: str) -> str:
        text = text[text.index("<svg") :]
        text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        text = _STAND_IN.sub(lambda found: variable(found.group()), text)
        text = re.sub(r'<g id="mark:(\d+)">', self._marked, text)
        text = text.replace('<g id="halo">', '<g class="halo">')
        # Names of parts are unique in a figure, and have to be in the page.
        text = re.sub(r'\bid="([^"]+)"', rf'id="{self.name}-\1"', text)
        text = re.sub(r'href="#([^"]+)"', rf'href="#{self.name}-\1"', text)
        text = re.sub(r"url\(#([^)]+)\)", rf"url(#{self.name}-\1)", text)
        size = re.search(r'viewBox="([^"]+)"', text)
        view = size.group(1) if size else ""
        opening = f'<svg class="plot" viewBox="{view}" role="img" aria-label="{html.escape(self._label)}">'
        return re.sub(r"<svg\b[^>]*>", lambda _: opening, text, count=1)

    def _marked(self, found: re.Match[str]) -> str:
        series, title = self._titles[int(found.group(1))]
        shown = f"<title>{html.escape(title)}</title>" if title else ""
        return f'<g class="mark" data-series="{series}">{shown}'


def log_axis(axis: Any, label: Callable[[float], str], low: float, high: float) -> None:
    """A logarithmic axis with plain numbers: decades, or 1, 2 and 5, or even steps, as its extent asks for."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    ratio = high / low
    axis.set_major_locator(
        MaxNLocator(5) if ratio < 4 else LogLocator(subs=(1.0,) if ratio > 300 else (1.0, 2.0, 5.0), numticks=12)
    )
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(_formatter(label)))


def _formatter(label: Callable[[float], str]) -> Callable[[float, int | None], str]:
    return lambda value, _: label(value)


def plain_axis(axis: Any, label: Callable[[float], str], *, whole: bool = False) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(6, integer=whole))
    axis.set_major_formatter(FuncFormatter(_formatter(label)))


def named_ticks(axis: Any, names: Mapping[float, str], *, log: bool = False, across: int = ACROSS) -> None:
    """Ticks at these values and no others, as many as fit: `across` letters side by side."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    kept: dict[float, str] = {}
    where = {at: math.log(at) if log else at for at in names}
    extent = max(where.values(), default=0.0) - min(where.values(), default=0.0)
    for at, name in names.items():
        letters = max(len(line) for line in (*name.split("\n"), ""))
        gap = (letters + 1.5) / across * extent
        if all(abs(where[at] - where[other]) >= gap for other in kept):
            kept[at] = name
    axis.set_major_locator(FixedLocator(list(kept)))
    axis.set_major_formatter(FixedFormatter(list(kept.values())))
    axis.set_minor_locator(NullLocator())


def caption(axes: Any, text: str, at: tuple[float, float], offset: tuple[float, float], **style: Any) -> None:
    """A short text at a point, readable over what is drawn there."""
    note = axes.annotate(text, at, xytext=offset, textcoords="offset points", fontsize=8, color=INK, zorder=6, **style)
    note.set_gid("halo")
