"""Compiled kernels on the disk: what the next process finds, what it must not find, and fingerprints of functions."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import types
from collections.abc import Callable
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tessera as ts
from tessera import Schedule, bf16, f32, kernel, knobs, stdlib, tile
from tessera.runtime.cache import build
from tessera.runtime.cache.store import Store, key_of
from tessera.targets.cpu import features
from tessera.tile.identity.fingerprint import identity_of

HELPERS = """
FACTOR = {factor}
def scaled(x):
    return x * FACTOR
"""
WITHIN = """
def scaled(x):
    return x * {factor}
"""

SCRIPT = """
import json, sys, time
import numpy as np
import tessera as ts
import helpers
from tessera import f32, kernel, tile

@kernel
def normalized(x, weight, *, eps: float = 1e-6, modes: frozenset = frozenset({"one", "two", "three"})):
    T = tile.context()
    rows = tile.load(x).to(f32)
    scale = tile.rsqrt(tile.sum(rows * rows) / T.d + eps)
    assert "one" in {"one", "two", "three"}
    return helpers.scaled(rows * scale[:, None]) * tile.load(weight, at=(0,), shape=(T.d,))

rows, width = map(int, sys.argv[1:])
x = ts.asarray(np.random.default_rng(0).standard_normal((rows, width)).astype(np.float32))
weight = ts.ones(width)
began = time.process_time()
result = normalized(x, weight)
seconds = time.process_time() - began
compiler = sorted({name.split(".")[0] for name in sys.modules} & {"xdsl", "llvmlite"})
print(json.dumps({"result": result.numpy().tobytes().hex(), "compiler": compiler, "seconds": seconds}))
"""


class Processes:
    """Fresh interpreters that run the script, with one cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store(folder / "cache" / "compiled", 100_000_000)
        self.written = 0
        self.write()

    def write(self, factor: float = 2.0, script: str = SCRIPT, helpers: str = HELPERS) -> None:
        # Python takes bytecode of a file as long and as old for its own, and tells ages by whole seconds.
        self.written += 1
        self.write_helpers(helpers.format(factor=factor), 1_000_000_000 + self.written)
        (self.folder / "script.py").write_text(script)

    def write_helpers(self, text: str, when: float) -> None:
        (self.folder / "helpers.py").write_text(text)
        os.utime(self.folder / "helpers.py", (when, when))

    @property
    def bytecode(self) -> Path:
        """Where processes keep it, as it is kept for installed packages; for all tests together."""
        return Path(os.environ["TESSERA_CACHE_DIR"]) / "bytecode"

    def run(self, rows: int = 37, width: int = 12, **environment: str) -> dict[str, Any]:
        given = {name: value for name, value in os.environ.items() if not name.startswith(("TESSERA_", "PYTHON"))}
        given |= {"TESSERA_CACHE_DIR": str(self.folder / "cache"), "OPENBLAS_NUM_THREADS": "1"}
        given |= {"PYTHONPYCACHEPREFIX": str(self.bytecode)} | environment
        command = [sys.executable, str(self.folder / "script.py"), str(rows), str(width)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=given).stdout)


COMPILER = ["llvmlite", "xdsl"]


def floats_of(said: dict[str, Any]) -> Any:
    return np.frombuffer(bytes.fromhex(said["result"]), np.float32)


@pytest.fixture(name="processes")
def _processes(tmp_path: Path) -> Processes:
    return Processes(tmp_path)


@pytest.fixture(name="later", scope="module")
def _later(tmp_path_factory: pytest.TempPathFactory) -> tuple[Processes, dict[str, Any]]:
    """Processes that follow a first one, whatever has happened to its entries, and what that one said."""
    processes = Processes(tmp_path_factory.mktemp("processes"))
    return processes, processes.run()


def test_the_next_process_needs_no_compiler(later: tuple[Processes, dict[str, Any]]) -> None:
    processes, first = later
    assert first["compiler"] == COMPILER
    second = processes.run(PYTHONHASHSEED="5")
    assert second["compiler"] == []
    assert second["result"] == first["result"]
    # The number of rows is no guard, so the program serves any; the width is one.
    assert processes.run(rows=5)["compiler"] == []
    other = processes.run(width=13)
    assert other["compiler"] == COMPILER
    assert processes.run(width=13) == {**other, "compiler": [], "seconds": pytest.approx(0, abs=1)}
    assert processes.run()["compiler"] == []
    # Other instructions and less optimisation are other programs.
    least = features.up_to(features.host_level())[0]
    assert processes.run(TESSERA_CPU_LEVEL=least)["compiler"] == ([] if least == features.host_level() else COMPILER)
    assert processes.run(TESSERA_OPTIMIZATION="0")["compiler"] == COMPILER
    assert processes.run()["compiler"] == []


def test_what_has_changed_is_not_found(processes: Processes) -> None:
    first = processes.run()
    processes.write(factor=3.0)
    changed = processes.run()
    assert changed["compiler"] == COMPILER
    assert np.allclose(floats_of(changed), floats_of(first) * 1.5)
    processes.write(script=SCRIPT.replace("1e-6", "1.0"))
    assert processes.run()["compiler"] == COMPILER
    processes.write(script=SCRIPT.replace("rows * rows", "rows * rows + 0.0"))
    assert processes.run()["compiler"] == COMPILER


@pytest.mark.acceptance
def test_programs_of_a_text_that_python_overlooks_are_not_kept(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit as long as what was there, in the same second: the bytecode is the old one, and it is what runs."""
    monkeypatch.setattr(sys, "pycache_prefix", str(processes.bytecode))
    processes.write_helpers(WITHIN.format(factor=2.0), 1_100_000_000.25)
    assert processes.run()["compiler"] == COMPILER
    bytecode = Path(cache_from_source(str(processes.folder / "helpers.py")))
    os.utime(bytecode, (1_100_000_000.5, 1_100_000_000.5))
    processes.write_helpers(WITHIN.format(factor=3.0), 1_100_000_000.75)
    overlooked = processes.run(width=13)
    processes.write(helpers=WITHIN)
    first = processes.run(width=13)
    assert first["compiler"] == COMPILER
    assert np.allclose(floats_of(overlooked), floats_of(first))
    assert processes.run(width=13)["compiler"] == []


@pytest.mark.parametrize(
    ("what", "payload"),
    [
        ("programs", b'{"paths": 1}'),
        pytest.param("asked", b'{"paths": 1}', marks=pytest.mark.acceptance),
        ("all", b"\xff" * 100),
        pytest.param("torn", b"", marks=pytest.mark.acceptance),
    ],
)
def test_entries_that_cannot_be_read_are_made_again(
    later: tuple[Processes, dict[str, Any]], what: str, payload: bytes
) -> None:
    processes, first = later
    for entry in processes.store.entries():
        path = processes.store.root / entry.name
        is_program = entry.size > 2000
        if what == "torn":
            path.write_bytes(path.read_bytes()[:-1])
        elif what == "all" or is_program is (what == "programs"):
            processes.store.put(entry.name, payload)
    assert processes.run() == {"result": first["result"], "compiler": COMPILER, "seconds": pytest.approx(0, abs=60)}
    assert processes.run()["compiler"] == []


def test_loading_is_quick(later: tuple[Processes, dict[str, Any]]) -> None:
    processes, _ = later
    assert min(processes.run()["seconds"] for _ in range(3)) < 0.1


@pytest.mark.acceptance
def test_loading_takes_a_fortieth_of_the_compile_that_it_saves(processes: Processes) -> None:
    """Processor time of both, on one machine: what a system call costs differs twofold between machines."""
    # Each is a program of its own; bytecode is there after the first.
    compiles = [processes.run(width=width)["seconds"] for width in range(13, 23)]
    assert any(processes.run(width=13)["seconds"] < min(compiles) / 40 for _ in range(200))


def test_objects_that_mean_nothing_elsewhere_are_not_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Mode:
        factor = 3.0

    mode = Mode()

    @kernel
    def moded(x: Any, *, mode: Any):
        return tile.load(x) * mode.factor

    with knobs.cache_dir.using(tmp_path), knobs.logs.using("cache"):
        assert moded(ts.ones(3), mode=mode).tolist() == [3.0] * 3
        assert moded(ts.ones(3), mode=mode).tolist() == [3.0] * 3
    assert len([record for record in caplog.records if "a kernel is not kept" in record.getMessage()]) == 1


def test_an_edited_package_keeps_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    build.build.cache_clear()
    monkeypatch.setattr(build, "_LOADED_NS", 1 << 62)
    assert build.build() is not None
    assert build.is_unedited([__file__])
    monkeypatch.setattr(build, "_LOADED_NS", 0)
    build.build.cache_clear()
    assert build.build() is None
    assert not build.is_unedited([__file__])
    assert build.is_unedited(["<stdin>"])

    @kernel
    def plain(x: Any):
        return tile.load(x) + 1

    with knobs.cache_dir.using(tmp_path):
        assert plain(ts.ones(3)).tolist() == [2.0] * 3
    assert list(tmp_path.rglob("*")) == []
    monkeypatch.undo()
    build.build.cache_clear()


def test_a_file_that_was_edited_and_loaded_again_is_as_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "edited.py"

    def loaded(text: str) -> Any:
        file.write_text(text)
        names: dict[str, Any] = {"__name__": "edited"}
        exec(compile(text, str(file), "exec", dont_inherit=True), names)
        return names["f"]

    first = loaded("def f(x):\n    return x + 1\n")
    before = identity_of(first)
    assert before is not None
    second = loaded("def f(x):\n    return x + 2\n")
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1_000_000))
    assert identity_of(first) is None  # what runs is no longer there
    assert identity_of(second) not in (None, before)
    file.write_text("def f(x:\n")
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 2_000_000))
    assert identity_of(second) is None


def made(text: str, **scope: Any) -> Any:
    """The function `f` of a module that some text is."""
    names: dict[str, Any] = {"__name__": "somewhere", **scope}
    exec(compile(text, "somewhere.py", "exec"), names)
    return names["f"]


def told(value: Any) -> str:
    identity = identity_of(value)
    assert identity is not None
    return key_of(identity)


SAME = "def f(x, y=1):\n    return g(x) + [a * C for a in (1, 2)][0]\n"


def test_functions_that_are_the_same_have_one_fingerprint() -> None:
    def scope() -> dict[str, Any]:
        return {"C": 3, "g": made("def f(x):\n    return x\n")}

    assert told(made(SAME, **scope())) == told(made(SAME, **scope()))


@pytest.mark.parametrize(
    "other",
    [
        made(SAME, C=4, g=made("def f(x):\n    return x\n")),
        made(SAME, C=3.0, g=made("def f(x):\n    return x\n")),
        made(SAME, C=3, g=made("def f(x):\n    return -x\n")),
        made(SAME, C=3, g=made("def f(x, y=2):\n    return x\n")),
        made(SAME, C=3, g=made("def f(x, *, y=2):\n    return x\n")),
        made(SAME.replace("y=1", "y=2"), C=3, g=made("def f(x):\n    return x\n")),
        made(SAME.replace("(1, 2)", "(1, 3)"), C=3, g=made("def f(x):\n    return x\n")),
        made("\n" + SAME, C=3, g=made("def f(x):\n    return x\n")),
        made(SAME, C=3, g=functools.partial(made("def f(x):\n    return x\n"))),
    ],
)
def test_functions_that_differ_have_others(other: Any) -> None:
    assert told(other) != told(made(SAME, C=3, g=made("def f(x):\n    return x\n")))


def test_closures_modules_and_cycles() -> None:
    def closed(value: Any) -> Callable[[], Any]:
        return lambda: value

    assert told(closed(1)) == told(closed(1))
    assert told(closed(1)) != told(closed(2))
    assert told(closed(0.0)) != told(closed(-0.0))
    text = "def f(x):\n    return m.inner.used(x)\n"

    def with_modules(used: int, unused: int) -> Any:
        inner, outer = types.ModuleType("inner"), types.ModuleType("outer")
        vars(inner).update(used=used, unused=unused)
        vars(outer).update(inner=inner)
        return made(text, m=outer)

    assert told(with_modules(1, 1)) == told(with_modules(1, 2))
    assert told(with_modules(1, 1)) != told(with_modules(2, 1))
    ring = made("def f(x):\n    return h(x)\ndef h(x):\n    return f(x)\n")
    assert told(ring) == told(made("def f(x):\n    return h(x)\ndef h(x):\n    return f(x)\n"))


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.sampled_from([f32, bf16]),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.acceptance
@given(PLAIN, PLAIN)
def test_values_have_the_fingerprint_of_what_they_are(a: Any, b: Any) -> None:
    assert told(a) == told(a)
    if repr(a) != repr(b) and not isinstance(a, frozenset | tuple):
        assert told(a) != told(b)
    assert told((a, b)) != told((a, (b,)))


@pytest.mark.parametrize("value", [object(), [1], {"a": 1}, np.ones(2), type("Mine", (), {"__module__": "mine"})])
def test_what_may_change_has_none(value: Any) -> None:
    check_nothing_is_told(value)


def of_a_library(maker: str) -> Any:
    """A function that a maker in a library gives: its name is that of all others."""
    function = made(f"def f():\n    def inner(x):\n        return x + {maker}\n    return inner\n")()
    function.__module__ = "numpy"
    return function


@pytest.mark.parametrize("value", [of_a_library("1"), np.frompyfunc(lambda x: x, 1, 1)])
def test_functions_of_libraries_under_no_name_of_their_own_have_none(value: Any) -> None:
    check_nothing_is_told(value)


def test_kernels_of_a_library_are_identified_by_their_module() -> None:
    assert told(stdlib.gemm.function) != told(stdlib.softmax.function)
    assert identity_of(kernel(stdlib.gemm.function).function) == identity_of(stdlib.gemm.function)


def test_the_functions_of_the_language_have_one_each() -> None:
    names = [name for name in dir(tile) if isinstance(getattr(tile, name), types.FunctionType)]
    assert len({told(getattr(tile, name)) for name in names}) == len({getattr(tile, name) for name in names}) > 40


def test_a_kernel_of_another_function_of_the_language_is_another(tmp_path: Path) -> None:
    @kernel
    def applied(x: Any, *, fn: Callable[[Any], Any]):
        return fn(tile.load(x))

    x = np.linspace(0.1, 0.9, 64, dtype=np.float32).reshape(8, 8)
    with knobs.cache_dir.using(tmp_path), knobs.backend.using("cpu"):
        for fn, meant in ((tile.exp, np.exp), (tile.tanh, np.tanh), (tile.sqrt, np.sqrt)):
            np.testing.assert_allclose(applied(x, fn=fn).numpy(), meant(x), rtol=1e-6)


def check_nothing_is_told(value: Any) -> None:
    assert identity_of(value) is None
    assert identity_of((1, value)) is None


@pytest.mark.parametrize(
    "value",
    [np.float32(1), f32, bf16 @ ts.accum(f32), Schedule(block=(8,)), float, np.float32, abs, np.exp, 1j, ..., slice(1)],
)
def test_what_is_the_same_everywhere_has_one(value: Any) -> None:
    assert identity_of(value) is not None
