"""The package's front door: every public name is there, lazy ones included, and says what it is."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

import tessera as ts


def test_every_name_is_there() -> None:
    assert len(set(ts.__all__)) == len(ts.__all__)
    for name in ts.__all__:
        assert getattr(ts, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(ts, "nothing")  # noqa: B009  (the type checker knows that there is none)


def test_functions_and_classes_are_documented() -> None:
    undocumented = [name for name in ts.__all__ if callable(getattr(ts, name)) and not getattr(ts, name).__doc__]
    assert undocumented == []


def test_array_api_names() -> None:
    assert ts.float32 is ts.f32
    assert ts.float64 is ts.f64
    assert ts.bfloat16 is ts.bf16
    assert ts.bool is ts.bool_
    for bits in (8, 16, 32, 64):
        assert getattr(ts, f"int{bits}") is getattr(ts, f"i{bits}")
        assert getattr(ts, f"uint{bits}") is getattr(ts, f"u{bits}")


def test_the_version_is_the_distribution_s() -> None:
    assert ts.__version__ == version("tessera-lang")


def test_lazy_names_load_when_used() -> None:
    code = (
        "import sys, tessera as ts\n"
        "assert 'optree' not in sys.modules\n"
        "assert ts.tree_leaves([1]) == [1] and 'optree' in sys.modules\n"
        "from tessera import knobs, tree_map\n"
        "assert ts.knobs is knobs\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_eager_tensors_do_not_need_loads_when_used() -> None:
    code = (
        "import sys, tessera as ts\n"
        "late = {f'tessera.{name}' for name in ('ir.common.intervals', 'shapes.environment', 'shapes.signature')}\n"
        "assert (ts.ones(3) + 1).tolist() == [2.0, 2.0, 2.0]\n"
        "assert not late & set(sys.modules), late & set(sys.modules)\n"
        "from tessera.ir.common import elementwise\n"
        "from tessera.shapes import Signature, ShapeEnvironment\n"
        "assert callable(elementwise.TABLE['add'].interval)\n"
        "assert late <= set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_names_of_shapes_are_there() -> None:
    from tessera import shapes

    for name in shapes.__all__:
        assert getattr(shapes, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(shapes, "nothing")  # noqa: B009  (the type checker knows that there is none)
