"""The user guide docs/shapes.md: every Python block runs, every shown error is the one raised."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tessera.errors import TesseraError

GUIDE = Path(__file__).parents[2] / "docs" / "shapes.md"


def test_the_guide_is_true(tmp_path: Path) -> None:
    blocks: list[tuple[str, str]] = re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    failures = 0
    for number, (language, source) in enumerate(blocks):
        if language != "python":
            continue
        file = tmp_path / str(number) / "example.py"
        file.parent.mkdir()
        file.write_text(source)
        code = compile(source, str(file), "exec", dont_inherit=True)
        following, shown = blocks[number + 1] if number + 1 < len(blocks) else ("", "")
        if following != "text":
            exec(code, names)
            continue
        with pytest.raises(TesseraError) as caught:
            exec(code, names)
        said = f"{type(caught.value).__name__}: {caught.value}\n"
        assert said.replace(f"{file.parent}/", "") == shown
        failures += 1
    assert failures == 4
