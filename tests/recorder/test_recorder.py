"""The recorder: what the compiler makes is what was recorded, and a fault in a pass or a constant is seen."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import record
import recorded_parts
from recorded_entries import Recording, code_text, plain, without_locations
from recorded_pins import GPUS, Target, environment, settings_of
from recorded_plants import PLANTS, nothing
from recorded_programs import record_kernel

from tessera import knobs
from tessera.targets.cpu.emit import control as emit_control
from tessera.targets.cuda.lower import legalize

HERE = Path(__file__).parent
# The other family of processors: programs of this one's are loaded by other tests in this process.
ELSEWHERE = Target("cpu", "avx512" if platform.machine() == "aarch64" else "neon")


def softmax_here(folder: Path) -> record.Entries:
    """The entries of a kernel, recorded in this process as if nothing had been compiled before."""
    texts = recorded_parts.test_module("targets/cuda", "test_cuda_kernel_texts")
    kernel, args, static = texts.CASES["softmax"](texts.Arrays(next(one for one in texts.DTYPES if one.name == "bf16")))
    settings_of.cache_clear()
    recording = Recording()
    with knobs.cache_dir.using(folder), knobs.num_threads.using(4):
        record_kernel(recording, "softmax bf16", kernel, args, static, (ELSEWHERE, GPUS[1]))
    return recording.entries


def test_a_kernel_is_what_was_recorded(tmp_path: Path) -> None:
    found = softmax_here(tmp_path)
    assert len(found) == 2
    assert list(record.differences(record.read("library"), found, whole=False)) == []


@pytest.mark.parametrize(
    ("owner", "name", "value", "entry"),
    [
        (legalize, legalize.use_powers_of_two.__name__, nothing, "softmax bf16 @ sm_80: code"),
        (emit_control, "SHARE", 16, f"softmax bf16 @ {ELSEWHERE}: code"),
    ],
    ids=["a pass", "a constant"],
)
def test_a_fault_is_seen(
    owner: Any, name: str, value: Any, entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, value)
    found = softmax_here(tmp_path)
    assert list(record.differences(record.read("library"), found, whole=False)) == [f"{entry} differ"]


def test_differences_are_told_by_key() -> None:
    expected = {"one": {"code": "1", "plan": "2"}, "two": {"code": "3"}}
    found = {"one": {"code": "1", "plan": "9"}, "three": {"code": "3"}}
    assert list(record.differences(expected, found, whole=False)) == ["one: plan differ", "three: new"]
    assert list(record.differences(expected, found, whole=True)) == ["one: plan differ", "three: new", "two: missing"]


def test_what_is_digested_has_no_names_of_the_tree() -> None:
    encoded = {"is": "Launch", "of": [3, ("a.py", 7, 2, 7, 9), "at /some/where/kernel.py:12:5: too far"]}
    assert plain(encoded) == [[3, "<place>", "at <place>: too far"]]
    assert plain({"is": "span", "of": ["a.py", 1, 2, 3, 4]}) == "<place>"
    assert code_text("\t.globl add\nadd:\n\tld [add_param_0];\n\tadd.workspace", "add").count("KERNEL") >= 4
    assert without_locations("no place: 12:30") == "no place: 12:30"


def test_every_part_has_a_quick_sample_and_digests() -> None:
    for name, part in recorded_parts.PARTS.items():
        assert part.quick, name
        assert record.read(name), name


def test_settings_of_the_user_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESSERA_CPU_LEVEL", "base")
    found = environment("elsewhere")
    assert "TESSERA_CPU_LEVEL" not in found
    assert found["TESSERA_CACHE_DIR"] == "elsewhere"


def checked(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "record.py"), "check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.acceptance
def test_everything_is_what_was_recorded() -> None:
    done = checked()
    assert done.returncode == 0, done.stdout + done.stderr


QUICK_PARTS = {
    "a pass of portable GPU code": ("--part", "library", "--only", "sigmoid_attention f16"),
    "a pass over regions": ("--part", "block"),
    "a constant of chosen blocks": ("--part", "gpu_rows", "--only", "16×32×4096×64 bf16 causal"),
}


def test_what_faults_are_planted_in_is_there() -> None:
    assert [name for name, plant in PLANTS.items() if not hasattr(plant.owner, plant.name)] == []


@pytest.mark.acceptance
@pytest.mark.parametrize("plant", PLANTS)
def test_planted_faults_are_seen(plant: str) -> None:
    chosen = QUICK_PARTS.get(plant, ("--part", "library"))
    quick = () if "--only" in chosen else ("--quick",)
    done = checked(*chosen, *quick, "--plant", plant)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r" @ \S.*: code[a-z, ]* differ\n", done.stdout), done.stdout
    assert not done.stderr


@pytest.mark.acceptance
@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_quick_sample_does_not_depend_on_hashes(seed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", seed)
    done = checked("--quick")
    assert done.returncode == 0, done.stdout + done.stderr
