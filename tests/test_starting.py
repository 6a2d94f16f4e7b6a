"""Processes of ours run nothing that lies in the folder where the user stands, and find all that they need."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tessera import subprocesses
from tessera.bench.instruments import hardware
from tessera.targets.cuda.ptx import tools

# All that Python brings, all that we need, and all that we would take if it were there.
LIBRARIES = (
    *("numpy", "ml_dtypes", "xdsl", "llvmlite", "optree", "safetensors", "rich", "click", "scipy", "jinja2"),
    *("torch", "jax", "cuda", "nvidia", "pynvml", "nvtx", "mpi4py", "nccl", "onnx", "immutabledict", "ordered_set"),
    *("typing_extensions", "sitecustomize", "usercustomize", "tessera", "pickle5", "_virtualenv", "pytest"),
)
PLANTED = sorted({*sys.stdlib_module_names, *LIBRARIES} - {"builtins", "sys"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A current folder: every module that is run there leaves a note."""
    made = tmp_path / "downloads"
    made.mkdir()
    for name in PLANTED:
        (made / f"{name}.py").write_text(f"open({str(made / 'ran')!r}, 'a').write({name + ' '!r})\n")
    for name in ("git", "ptxas", "ncu", "mpiexec"):
        program = made / name
        program.write_text(f"#!/bin/sh\necho {name} >> {made / 'ran'}\n")
        program.chmod(0o700)
    return made


def ran(folder: Path) -> str:
    return (folder / "ran").read_text() if (folder / "ran").exists() else ""


def run(script: str, folder: Path, **environment: str) -> str:
    """Runs a script that lies elsewhere in a current folder; gives what it printed."""
    path = folder.parent / "program" / "script.py"
    path.parent.mkdir()
    (path.parent / "beside.py").write_text("from late import HALF\n\ndef half(x):\n    return x * HALF\n")
    (path.parent / "late.py").write_text("HALF = 0.5\n")
    path.write_text(textwrap.dedent(script))
    around = {**os.environ, "TESSERA_CACHE_DIR": str(folder.parent / "cache"), **environment}
    around["PYTHONPATH"] = os.pathsep.join([path for path in sys.path if os.path.isabs(path)])
    done = subprocess.run(
        [sys.executable, "../program/script.py"],
        cwd=folder,
        env=around,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


COMPILES = """
    import sys, time
    import tessera as ts
    from tessera import kernel, tile
    from tessera.metatracing import MetaTracingRuntime
    import beside

    @kernel
    def halved(x):
        return beside.half(tile.load(x))

    if __name__ == "__main__":
        with MetaTracingRuntime() as runtime:
            worker = runtime.compiling
            worker.prepare()
            x, until = ts.ones(5000), time.monotonic() + 60
            while not worker.is_ready and time.monotonic() < until:
                time.sleep(0.02)
            found, tier = runtime.tiered(halved).call_with_tier(x)
            assert (found.numpy() == 0.5).all()
            assert "xdsl.ir" not in sys.modules, "this process has loaded a compiler"
            print("compiled elsewhere")
"""


def test_compiling_runs_nothing_of_the_folder(folder: Path) -> None:
    """The kernel uses a module that lies beside the script: by its name it is found in the other process, too."""
    assert run(COMPILES, folder) == "compiled elsewhere\n"
    assert ran(folder) == ""


MEASURES = """
    import os, time
    from tessera.bench.instruments import hardware
    from tessera.bench.results.definitions import BenchmarkConfig
    from tessera.bench.processes.device_process import Task, Worker
    from tessera.bench.processes.worker import Isolated
    import beside

    if __name__ == "__main__":
        runner = Isolated()
        _, child = runner._started(BenchmarkConfig(threads=1))
        worker = Worker(sorted(os.sched_getaffinity(0))[:1], 1)
        worker.give(Task.of(beside.half, (3,), 60.0))
        while (outcome := worker.poll()) is None:
            time.sleep(0.01)
        worker.close()
        hardware.environment()
        print(child.connection.recv(), outcome.value, outcome.error)
        runner.close()
"""


def test_processes_that_measure_run_nothing_of_the_folder(folder: Path) -> None:
    """Nor are executables taken from there, where PATH has an entry that means the current folder."""
    assert run(MEASURES, folder, PATH=f":.:{os.environ['PATH']}") == "ready 1.5 None\n"
    assert ran(folder) == ""


SPAWNS = """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from tessera import subprocesses
    import beside

    if __name__ == "__main__":
        with subprocesses.spawning(), ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            print(list(pool.map(beside.half, [3])))
"""


def test_spawned_processes_run_nothing_of_the_folder(folder: Path) -> None:
    assert run(SPAWNS, folder) == "[1.5]\n"
    assert ran(folder) == ""


def test_without_such_care_a_planted_module_is_run(folder: Path) -> None:
    """What is tested above is not so by chance."""
    script = """
        import subprocess, sys
        subprocess.run([sys.executable, "-m", "tessera.compile_worker"], stdin=subprocess.DEVNULL, capture_output=True)
    """
    run(script, folder)
    assert ran(folder) != ""


def test_the_path_is_this_processs_without_the_folders_that_were_not_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, chosen, link = tmp_path / "here", tmp_path / "chosen", tmp_path / "link"
    here.mkdir()
    chosen.mkdir()
    link.symlink_to(here)
    (here / "users_own.py").write_text("")
    monkeypatch.chdir(here)
    home = str(Path(subprocesses.__file__).parents[1])
    stdlib = os.path.dirname(os.__file__)
    monkeypatch.setattr(sys, "path", ["", str(chosen), ".", str(here), str(link), 7, Path("nowhere"), stdlib, home])
    assert subprocesses.search_path() == [str(chosen), stdlib, home]
    assert subprocesses.own_folders() == [str(here), str(link)]
    monkeypatch.setattr(sys, "path", ["", str(chosen), stdlib])
    assert subprocesses.search_path() == [str(chosen), stdlib, home], "an installed finder may have found Tessera"
    (chosen / "tessera").mkdir()
    assert subprocesses.search_path() == [home, str(chosen), stdlib], "another Tessera must not be taken for this one"
    assert subprocesses.users_modules() == {}
    __import__("users_own")
    try:
        assert subprocesses.users_modules() == {"users_own": str(here)}
    finally:
        del sys.modules["users_own"]


def test_a_folder_that_tessera_comes_from_is_on_the_path_wherever_one_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `pip install --target .`, and in a checkout."""
    home = str(Path(subprocesses.__file__).parents[1])
    stdlib = os.path.dirname(os.__file__)
    monkeypatch.chdir(home)
    monkeypatch.setattr(sys, "path", ["", stdlib])
    assert subprocesses.search_path() == [stdlib, home]


def test_processes_are_started_from_a_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    monkeypatch.setattr(sys, "path", ["", *subprocesses.search_path()])
    (tmp_path / "gone").rmdir()
    assert subprocesses.own_folders() == []
    said = subprocess.run(
        subprocesses.python("print(7)"), env=subprocesses.environment(), capture_output=True, check=True
    )
    assert said.stdout == b"7\n"


def test_the_environment_has_no_path_that_means_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", ".", "sub", str(tmp_path), os.sep, ""]))
    assert subprocesses.environment(A="b")["PYTHONPATH"] == os.sep
    assert subprocesses.environment(A="b")["A"] == "b"
    monkeypatch.setenv("PYTHONPATH", ":")
    assert "PYTHONPATH" not in subprocesses.environment()


def test_executables_are_not_taken_from_the_current_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", "../downloads"]))
    monkeypatch.setenv("CUDA_HOME", "..")
    (folder.parent / "bin").symlink_to(folder)
    assert [subprocesses.executable(name) for name in ("git", "ptxas", "ncu")] == [None] * 3
    assert tools.find_tool("ncu") is None
    assert "there is no git on the path" in str(hardware.environment())
    monkeypatch.setenv("PATH", str(folder))
    assert subprocesses.executable("git") == str(folder / "git")


def test_paths_of_any_name_are_handed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = tmp_path / os.fsdecode(b"a:b'\"\n\xff")
    odd.mkdir()
    (odd / "found_there.py").write_text("print('found')")
    monkeypatch.setattr(sys, "path", [*sys.path, str(odd)])
    said = subprocess.run(subprocesses.python("import found_there"), capture_output=True, check=True)
    assert said.stdout == b"found\n"
