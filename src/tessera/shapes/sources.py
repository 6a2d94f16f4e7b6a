"""The lines of source that code was compiled from."""

from __future__ import annotations

import inspect
import linecache
from types import CodeType


def source_lines(code: CodeType) -> tuple[list[str], int]:
    """The lines of a definition, decorators first, and the number of the first; an OSError where there are none.

    `inspect` gives the same, but looks for the module among all that are loaded, and resolves the paths of those that
    it has not seen: tens of milliseconds, just behind loading a compiler. Only where the file is not on the disk, the
    module is needed: its loader may have the source.
    """
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)
    if not 0 < code.co_firstlineno <= len(lines):
        return inspect.getsourcelines(code)
    return inspect.getblock(lines[code.co_firstlineno - 1 :]), code.co_firstlineno
