"""The names of the specification's document on TesseraBench: each has a Python name and a test, or a reason why not."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from name_tables import absences_of, found

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("specified_names.tsv")
ROWS = [tuple(line.split("\t")) for line in TABLE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
NAMED = [row for row in ROWS if row[1] != "-"]


def _member(owner: Any, name: str) -> Any:
    """Attributes of instances are looked up on one that is made without arguments."""
    if hasattr(owner, name):
        return getattr(owner, name)
    if name in getattr(owner, "__dataclass_fields__", {}):
        return name
    return getattr(owner(), name)


@cache
def sources_of(file: str) -> dict[str, str]:
    """The functions of a test file with their texts: decorators, and what of the file they name, included."""
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    tree, texts = ast.parse("\n".join(lines)), dict[str, str]()

    def text_of(node: ast.stmt, first: int) -> str:
        return "\n".join(lines[first - 1 : node.end_lineno])

    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            texts[node.name] = text_of(node, min([node.lineno, *(one.lineno for one in node.decorator_list)]))
        elif isinstance(node, ast.Assign):
            texts |= {one.id: text_of(node, node.lineno) for one in node.targets if isinstance(one, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            texts[node.target.id] = text_of(node, node.lineno)
    found: dict[str, str] = {}
    for name, own in texts.items():
        named = set(re.findall(r"\w+", own))
        found[name] = "\n".join([own, *(text for other, text in texts.items() if other in named and other != name)])
    return found


def test_the_table_has_every_kind_of_name() -> None:
    assert len(ROWS) > 250
    assert all(len(row) == 3 for row in ROWS)
    assert len({row[0] for row in ROWS}) == len(ROWS)
    classes = {row[0] for row in ROWS if re.fullmatch(r"[A-Z]\w+", row[0])}
    assert {
        "TesseraBenchCore",
        "MeasurementEngine",
        "AnalysisEngine",
        "IRInspector",
        "FlashAttentionBenchmark",
    } <= classes


@pytest.mark.parametrize(("specified", "python", "test"), NAMED, ids=[row[0] for row in NAMED])
def test_a_name_exists_and_a_test_uses_it(specified: str, python: str, test: str) -> None:
    name, _, key = python.partition("[")
    found(name, _member)
    file, _, function = test.partition("::")
    texts = sources_of(file)
    assert function in texts, f"{file} has no {function}"
    word = key.rstrip("]") or python.rsplit(".", 1)[-1]
    assert re.search(rf"\b{re.escape(word)}\b", texts[function]), f"{test} does not mention {word}"
    assert word not in absences_of(file)[function], f"{test} only says that {word} is not there"


@pytest.mark.parametrize("row", [row for row in ROWS if row[1] == "-"], ids=lambda row: row[0])
def test_what_is_left_out_has_a_reason(row: tuple[str, ...]) -> None:
    assert len(row[2].split()) >= 5
