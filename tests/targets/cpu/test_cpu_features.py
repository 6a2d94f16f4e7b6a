"""Checks what is said of the host: levels from flags, what LLVM is told, and that code of every level here runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from llvmlite import binding
from pool_programs import block

from tessera import knobs
from tessera.device_names import CPU_FAMILIES
from tessera.errors import DeviceError, TesseraError
from tessera.runtime.native import launch
from tessera.targets.cpu import features
from tessera.targets.llvm.image import flatten, load
from tessera.targets.llvm.machine import compile_text

V3 = "cx16 lahf_lm popcnt pni ssse3 sse4_1 sse4_2 avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
V4 = f"{V3} avx512f avx512bw avx512cd avx512dq avx512vl"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """A host with the flags that the test puts in, which permits tiles."""
    flags = {"flags": "", "machine": "x86_64"}
    monkeypatch.setattr(knobs.cpu_level, "text", "")
    monkeypatch.setattr(features, "host_flags", lambda: frozenset(flags["flags"].split()))
    monkeypatch.setattr(features, "machine", lambda: flags["machine"])
    monkeypatch.setattr(features, "_permit_tiles", lambda: "refused" not in flags)
    features.has.cache_clear()
    yield flags
    features.has.cache_clear()


@pytest.mark.parametrize(
    ("flags", "level"),
    [
        ("", "base"),
        ("sse2 ssse3", "base"),
        ("avx avx2 fma", "base"),  # some of v3 only: seen in virtual machines
        (V3, "avx2"),
        (V3.replace("fma", ""), "base"),
        (f"{V3} avx512f", "avx2"),
        (V4, "avx512"),
        (V4.replace("movbe", ""), "base"),
        (f"{V4} amx_tile", "avx512"),
        (f"{V4} amx_tile amx_bf16 amx_int8", "amx"),
        (f"{V3} amx_tile amx_bf16", "avx2"),
    ],
)
def test_a_level_needs_all_its_flags_and_those_below(host: dict[str, str], flags: str, level: str) -> None:
    host["flags"] = flags
    assert features.level() == level
    assert [name for name in features.LEVELS if features.has(name)] == list(
        features.LEVELS[: features.LEVELS.index(level) + 1]
    )


def test_tiles_need_the_systems_permission(host: dict[str, str]) -> None:
    host.update(flags=f"{V4} amx_tile amx_bf16", refused="yes")
    assert features.level() == "avx512"
    with pytest.raises(DeviceError, match="at most avx512, got amx: the system does not permit tiles"):
        features.target("amx")


def test_tiles_are_not_asked_for_where_the_knob_says_less(
    host: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    host["flags"] = f"{V4} amx_tile amx_bf16"
    asked: list[str] = []
    monkeypatch.setattr(features, "_permit_tiles", lambda: asked.append("tiles") or True)
    with knobs.cpu_level.using("avx512"):
        assert features.target(features.level()) == ("x86-64-v4", "")
    assert asked == []
    assert features.level() == "amx"
    assert asked == ["tiles"]


def test_the_knob_lowers_the_level(host: dict[str, str]) -> None:
    host["flags"] = V4
    for level in ("base", "avx2", "avx512", "AVX2"):
        with knobs.cpu_level.using(level):
            assert features.level() == level.lower()


def test_more_than_the_host_has_is_refused(host: dict[str, str]) -> None:
    host["flags"] = V3
    with knobs.cpu_level.using("amx"), pytest.raises(DeviceError) as caught:
        features.level()
    message = "expected a level that this host has, at most avx2, got amx: it lacks amx_bf16, amx_tile, avx512bw, "
    assert caught.value.message == f"{message}avx512cd, avx512dq, avx512f, avx512vl"
    assert caught.value.hint == "set TESSERA_CPU_LEVEL to avx2 or lower, or leave it unset"


def test_levels_that_do_not_exist_are_refused() -> None:
    with pytest.raises(TesseraError, match="expects amx, avx512, avx2 or base, on AArch64 neon, got 'sse9'"):
        knobs.cpu_level.set("sse9")


def test_levels_of_another_family_are_refused(host: dict[str, str]) -> None:
    host.update(machine="aarch64", flags="fp asimd atomics")
    assert (features.level(), features.up_to("neon")) == ("neon", ("neon",))
    with knobs.cpu_level.using("avx2"), pytest.raises(DeviceError) as caught:
        features.level()
    assert caught.value.message == "expected a level of aarch64, which are neon, got avx2"
    assert caught.value.hint == "set TESSERA_CPU_LEVEL to neon or lower, or leave it unset"
    features.has.cache_clear()
    host["machine"] = "riscv64"
    assert not any(map(features.has, features.LEVELS))
    with pytest.raises(DeviceError, match="families x86_64, aarch64, this one is riscv64"):
        features.level()


@pytest.mark.parametrize(
    ("flags", "level", "target"),
    [
        ("", "base", ("x86-64", "")),
        (f"{V4} avx512_bf16", "base", ("x86-64", "")),
        (f"{V4} avx_vnni", "avx2", ("x86-64-v3", "")),
        (V4, "avx512", ("x86-64-v4", "")),
        (f"{V4} avx512_vnni gfni avx512_bf16", "avx512", ("x86-64-v4", "+avx512bf16,+avx512vnni,+gfni")),
        (f"{V4} avx512_fp16 amx_tile amx_bf16", "amx", ("x86-64-v4", "+avx512fp16,+amx-tile,+amx-bf16")),
        ("fp asimd", "neon", ("generic", "")),
        ("fp asimd asimddp atomics sve asimdhp", "neon", ("generic", "+lse,+fullfp16,+dotprod")),
    ],
)
def test_what_llvm_is_told(host: dict[str, str], flags: str, level: str, target: tuple[str, str]) -> None:
    host.update(flags=flags, machine="aarch64" if level == "neon" else "x86_64")
    assert features.target(level) == target


def test_lanes_fill_a_register() -> None:
    assert [features.lanes(level, 32) for level in features.LEVELS] == [4, 8, 16, 16, 4]
    assert [features.lanes("avx512", bits) for bits in (8, 16, 32, 64)] == [64, 32, 16, 8]


def test_llvm_and_the_kernel_agree_about_this_host() -> None:
    seen = binding.get_host_cpu_features()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # has no types
    levels = CPU_FAMILIES[features.family()]
    extras = {flag: name for level in levels for flag, name in features.EXTRAS.get(level, {}).items()}
    assert features.host_flags()
    # Of AArch64, LLVM names but a few.
    told = {flag: name for flag, name in extras.items() if name in seen}  # pyright: ignore[reportUnknownMemberType, reportOperatorIssue]  # has no types
    assert told == extras if features.family() == "x86_64" else "atomics" in told
    for flag, name in told.items():
        assert bool(seen.get(name)) == (flag in features.host_flags()), name  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]  # has no types


def test_a_host_that_does_not_say_is_taken_for_the_least(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise FileNotFoundError

    features.host_flags.cache_clear()
    try:
        with monkeypatch.context() as patched:
            patched.setattr(Path, "open", refuse)
            assert features.host_flags() == frozenset()
    finally:
        features.host_flags.cache_clear()


VECTORS = """
define i64 @kernel(ptr %args, i64 %thread, i64 %threads, ptr %scratch) {{
  %out_at = getelementptr i64, ptr %args, i64 8
  %out = load ptr, ptr %out_at
  %old = load <{lanes} x float>, ptr %out, align 4
  %new = fadd <{lanes} x float> %old, splat (float 1.0)
  store <{lanes} x float> %new, ptr %out, align 4
  ret i64 0
}}
"""
# One tile of 16 rows of 64 bytes is configured, cleared and stored.
TILES = """
declare void @llvm.x86.ldtilecfg(ptr)
declare void @llvm.x86.tilezero(i8)
declare void @llvm.x86.tilestored64(i8, ptr, i64)
declare void @llvm.x86.tilerelease()
@shape = internal global [64 x i8] zeroinitializer, align 64
define i64 @kernel(ptr %args, i64 %thread, i64 %threads, ptr %scratch) {
  %out_at = getelementptr i64, ptr %args, i64 8
  %out = load ptr, ptr %out_at
  store i8 1, ptr @shape
  %columns = getelementptr i8, ptr @shape, i64 16
  store i16 64, ptr %columns
  %rows = getelementptr i8, ptr @shape, i64 48
  store i8 16, ptr %rows
  call void @llvm.x86.ldtilecfg(ptr @shape)
  call void @llvm.x86.tilezero(i8 0)
  call void @llvm.x86.tilestored64(i8 0, ptr %out, i64 64)
  call void @llvm.x86.tilerelease()
  ret i64 0
}
"""


def run(text: str, level: str, out: np.ndarray[tuple[int], np.dtype[np.float32]]) -> None:
    cpu, asked = features.target(level)
    image = load(flatten(compile_text(text, cpu=cpu, features=asked)))
    kernel = launch.make(image.address("kernel"), block(0), [("array", 8)], 0, 2, keep=image)
    for _ in range(50):  # on workers, too
        assert kernel(out) == 0


def test_code_of_every_level_that_the_host_has_runs(capfd: pytest.CaptureFixture[str]) -> None:
    for level in features.up_to(features.host_level()):
        out = np.zeros(300, np.float32)
        lanes = features.lanes(level, 32)
        run(VECTORS.format(lanes=lanes), level, out)
        assert (out[:lanes] >= 50).all()
        assert (out[lanes:] == 0).all()
        if level == "amx":
            out[:] = 7
            run(TILES, level, out)
            assert (out[:256] == 0).all()
            assert (out[256:] == 7).all()
    assert capfd.readouterr().err == ""  # LLVM names features that it does not know
