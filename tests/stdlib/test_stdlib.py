"""The standard library: every kernel that ships is there, under the names of the specification, too."""

from __future__ import annotations

import ast
import re

import pytest

import tessera as ts
from module_graph import SOURCES, module_of, text_of
from tessera import stdlib
from tessera.tile import Kernel


def kernels_in(text: str) -> list[str]:
    """Functions that `@kernel` or one of its variants decorates."""
    decorated = re.compile(r"kernel\b(?!_)")
    return [
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and any(decorated.match(ast.unparse(one)) for one in node.decorator_list)
    ]


def test_kernels_that_ship_are_in_the_standard_library() -> None:
    found = {
        (module_of(path), name) for path in SOURCES if "kernel" in text_of(path) for name in kernels_in(text_of(path))
    }
    # What operators on rows are made of lies with them, below the library.
    operators = "tessera.lang.operators.row_kernels"
    found = {(module, name) for module, name in found if module != operators}
    assert {module for module, _ in found if not module.startswith("tessera.stdlib.")} == set()
    offered = {name for name in stdlib.__all__ if isinstance(getattr(stdlib, name), Kernel)}
    assert {name for module, name in found if module != "tessera.stdlib.decoding"} <= offered
    assert kernels_in("@kernel\ndef f(): ...\n@kernel.schedule(s)\ndef g(): ...\n@kernel_text('a')\ndef h(): ...") == [
        "f",
        "g",
    ]


@pytest.mark.parametrize(
    ("specified", "name"),
    [
        ("flash_attention_2", "attention"),
        ("efficient_layernorm", "layernorm"),
        ("stable_softmax", "softmax"),
        ("rotary_embedding", "rope"),
    ],
)
def test_names_of_the_specification(specified: str, name: str) -> None:
    kernel = getattr(stdlib, specified)
    assert kernel is getattr(stdlib, name)
    assert kernel.with_schedule(ts.Schedule(block=(64, 64))).__name__ == name


def test_the_kernel_of_tiers_is_that_of_the_standard_library() -> None:
    from tessera.metatracing.attention import flash_attention

    assert flash_attention is stdlib.flash_attention
