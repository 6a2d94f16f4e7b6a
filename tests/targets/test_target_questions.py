"""What targets and devices answer, so that no code has to ask for their names."""

from __future__ import annotations

import pytest

from tessera.compiler.target import is_target, target_named
from tessera.device_names import is_accelerator, is_host
from tessera.errors import DeviceError, ResourceError
from tessera.runtime.device.device import CPU, Device
from tessera.targets.cpu import features
from tessera.targets.cuda.target import architecture_of


def test_names_are_told_apart() -> None:
    assert is_host("cpu")
    assert not is_host("cpu:0")
    assert not is_host("cuda")
    assert is_accelerator("cuda")
    assert is_accelerator("cuda:3")
    assert not is_accelerator("fpga")
    assert is_target("cuda")
    assert not is_target("fpga")


def test_devices_say_what_they_are() -> None:
    assert CPU.is_host
    assert not CPU.is_accelerator
    gpu, other = Device("cuda", 1), Device("fpga")
    assert gpu.is_accelerator
    assert gpu.has_programs
    assert not gpu.is_host
    assert not (other.is_host)
    assert not (other.is_accelerator)
    assert not other.has_programs


def test_processors_answer_at_once() -> None:
    cpu = target_named("cpu")
    assert cpu.unavailable() is None
    assert cpu.compiles_quickly
    assert not (cpu.is_asynchronous)
    assert not (cpu.has_graphs)
    assert not (cpu.has_warps)
    assert not cpu.keeps_row_alignment
    assert [cpu.plain_level(one) for one in ("base", "avx2", "avx512", "amx", "neon")] == [
        *("base", "avx2", "avx2", "avx2", "neon")
    ]
    assert [cpu.timing_model(one) for one in ("avx512", "neon")] == [None, "cpu-aarch64"]
    assert cpu.identity(features.level(), True) == cpu.identity(features.level(), False)
    assert not cpu.models_blocks(features.level())
    assert not cpu.is_over_budget(ResourceError("too large"))


def test_a_strange_processor_has_no_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "machine", lambda: "riscv64")
    reason = target_named("cpu").unavailable()
    assert reason is not None
    assert reason.endswith("riscv64")


def test_gpus_answer_without_one() -> None:
    cuda = target_named("cuda")
    assert cuda.is_asynchronous
    assert cuda.has_graphs
    assert cuda.has_warps
    assert cuda.keeps_row_alignment
    assert [cuda.plain_level(one) for one in ("sm_80", "sm_90a")] == ["sm_80", "sm_90"]
    assert [cuda.timing_model(one) for one in ("sm_90", "sm_90a")] == [None, "h200"]
    assert [cuda.models_blocks(one) for one in ("sm_90", "sm_90a")] == [False, True]
    assert cuda.identity("sm_90a", True) != cuda.identity("sm_90a", False)
    assert not cuda.is_over_budget(ResourceError("too large"))


def test_architectures_follow_from_compute_capabilities() -> None:
    found = [architecture_of(one) for one in ((8, 0), (8, 6), (8, 9), (9, 0), (10, 0))]
    assert found == ["sm_80", "sm_80", "sm_89", "sm_90a", "sm_90"]
    with pytest.raises(DeviceError, match=r"8\.0 or newer, this one has 7\.5"):
        architecture_of((7, 5))


def test_a_level_has_the_extras_of_those_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "host_flags", lambda: frozenset({"avx512_fp16", "amx_int8", "bf16", "fma"}))
    assert features.extras("avx2") == set()
    assert features.extras("avx512") == {"avx512_fp16"}
    assert features.extras("amx") == {"avx512_fp16", "amx_int8"}
    assert features.extras("neon") == {"bf16"}
    assert [features.vector_registers(one) for one in features.LEVELS] == [16, 16, 32, 32, 32]
