"""ptxas: where it is found, what is read from its words, what it refuses; and the checks that other tests rest on."""

from __future__ import annotations

from pathlib import Path

import ptx_checks
import pytest

from tessera.errors import CompileError, ResourceError
from tessera.targets.cuda.ptx import assembler, tools
from tessera.targets.cuda.ptx.assembler import Usage, assemble
from tessera.targets.cuda.ptx.tools import find_ptxas, find_tool
from tessera.targets.llvm import machine

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"

TWICE = """target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define ptx_kernel void @twice(ptr byval([64 x i8]) align 64 "nvvm.grid_constant" %params) {
  %generic = load ptr, ptr %params
  %x = addrspacecast ptr %generic to ptr addrspace(1)
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %at = getelementptr float, ptr addrspace(1) %x, i32 %thread
  %value = load float, ptr addrspace(1) %at
  %double = fadd float %value, %value
  store float %double, ptr addrspace(1) %at
  ret void
}
"""

# Sums are read while the product is under way: ptxas puts a wait in, and says so.
EARLY = """.visible .entry early(.param .align 64 .b8 params[64]) .maxntid 128
{
  .reg .f32 f<4>;
  .reg .b64 d<3>;
  .shared .align 128 .b8 tile[4096];
  mov.f32 f0, 0f00000000; mov.f32 f1, 0f00000000; mov.f32 f2, 0f00000000; mov.f32 f3, 0f00000000;
  ld.param.u64 d0, [params];
  ld.param.u64 d1, [params+8];
  ld.param.u64 d2, [params+16];
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f0, f1, f2, f3}, d0, d1, 1, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
  add.f32 f0, f0, f1;
  wgmma.wait_group.sync.aligned 0;
  st.global.f32 [d2], f0;
  bar.sync 1, 128;
  ret;
}
"""


def twice() -> str:
    return machine.assembly(TWICE, cpu="sm_90a", features="+ptx80")


def crowded(values: int = 80) -> str:
    """More values at once than there are registers."""
    loads = "\n".join(f"ld.volatile.global.f32 f{i}, [d+{4 * i}];" for i in range(values))
    stores = "\n".join(f"st.volatile.global.f32 [d+{4 * i}], f{values - 1 - i};" for i in range(values))
    return (
        f"{HEAD}.visible .entry crowded(.param .align 64 .b8 params[64]) .maxntid 128 .maxnreg 32\n"
        f"{{ .reg .f32 f<{values}>; .reg .b64 d;\nld.param.u64 d, [params];\n{loads}\nbar.sync 0;\n{stores}\nret; }}\n"
    )


def test_a_kernel_assembles_and_its_needs_are_known() -> None:
    found = assemble(twice(), "sm_90a")
    assert found.cubin.startswith(b"\x7fELF")
    assert list(found.kernels) == ["twice"]
    usage = found.kernels["twice"]
    assert 4 <= usage.registers <= 16
    assert usage == Usage(registers=usage.registers, constants=usage.constants)
    assert found.warnings == ()


def test_two_kernels_are_told_apart() -> None:
    found = assemble(f"{twice()}\n{EARLY}", "sm_90a")
    assert set(found.kernels) == {"twice", "early"}
    assert found.kernels["early"].shared == 4096
    assert found.kernels["early"].barriers == 2
    assert found.kernels["twice"].shared == found.kernels["twice"].barriers == 0
    assert found.kernels["early"].registers > found.kernels["twice"].registers


def test_spills_are_counted() -> None:
    usage = assemble(crowded(), "sm_90a").kernels["crowded"]
    assert usage.registers == 32
    assert usage.spill_stores > 0
    assert usage.spill_loads > 0
    assert usage.stack >= usage.spill_stores


def test_warnings_about_matrix_instructions_are_known_by_number() -> None:
    (remark,) = assemble(HEAD + EARLY, "sm_90a").warnings
    assert remark.code == "C7517"
    assert remark.slows
    assert "early" in remark.text
    assert (HEAD + EARLY).splitlines()[(remark.line or 0) - 1].startswith("  add.f32")


@pytest.mark.parametrize("code", ["C7510", "C7512", "C7514", "C7517", "C7518", "C7602"])
def test_all_numbers_of_that_kind_count(code: str) -> None:
    said = f"ptxas info    : ({code}) Potential Performance Loss: wgmma.mma_async instructions are serialized in 'f'\n"
    (remark,) = assembler.remarks_of(said)
    assert (remark.code, remark.slows, remark.line) == (code, True, None)


def test_other_warnings_are_kept_and_do_not_count() -> None:
    said = "ptxas info    : 0 bytes gmem\nptxas warning : Unresolved 'x'\nptxas /a b.ptx, line 7; warning : odd\n"
    first, second = assembler.remarks_of(said)
    assert (first.code, first.slows, first.line) == ("", False, None)
    assert (second.text, second.line) == ("odd", 7)


def test_functions_that_a_kernel_calls_are_counted_with_it() -> None:
    said = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers, 16 bytes cumulative stack size, 448 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Function properties for helper
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
"""
    assert assembler.usage_of(said) == {"k": Usage(24, 4, 4, 16, 0, 1, 456)}


def test_what_ptxas_refuses_is_shown_with_its_line() -> None:
    wrong = twice().replace("add.rn.f32", "addd.rn.f32")
    with pytest.raises(CompileError, match=r"ptxas refuses line \d+ of the code for sm_90a: Not a name of any known"):
        assemble(wrong, "sm_90a")
    with pytest.raises(CompileError) as caught:
        assemble(wrong, "sm_90a")
    (marked,) = [line for line in caught.value.story if line.startswith(">")]
    assert "addd.rn.f32" in marked
    assert f"line {wrong.split(chr(10)).index(marked[7:]) + 1} " in caught.value.message


@pytest.mark.parametrize(
    ("ptx", "arch", "words"),
    [
        ("words", "sm_90a", "Missing .version"),
        (HEAD + EARLY, "sm_90", "cannot be compiled for architecture 'sm_90'"),
        (HEAD + EARLY, "sm_9", "Value 'sm_9' is not defined"),
    ],
)
def test_other_refusals_have_ptxas_words(ptx: str, arch: str, words: str) -> None:
    with pytest.raises(CompileError, match=words):
        assemble(ptx, arch)


def test_a_ptxas_that_ends_without_a_word_is_an_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembler, "find_ptxas", lambda: Path("/bin/false"))
    with pytest.raises(CompileError, match="ptxas ended with 1 for sm_90a: it said nothing"):
        assemble(twice(), "sm_90a")


def test_ptxas_is_looked_for_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    on_path, home = tmp_path / "path", tmp_path / "home"
    for folder in (on_path, home / "bin"):
        folder.mkdir(parents=True)
        (folder / "ptxas").write_text("#!/bin/sh\n")
        (folder / "ptxas").chmod(0o755)
    monkeypatch.setenv("PATH", str(on_path))
    monkeypatch.setenv("CUDA_HOME", str(home))
    assert find_ptxas() == on_path / "ptxas"
    monkeypatch.setenv("PATH", "")
    assert find_ptxas() == home / "bin/ptxas"
    (home / "bin/ptxas").chmod(0o644)
    wheel = find_ptxas()
    assert wheel is not None, "the extra `test` has nvidia-cuda-nvcc"
    assert wheel.as_posix().endswith("nvidia/cu13/bin/ptxas")


def nothing(_: str) -> None:
    """No module has that name."""


def test_without_ptxas_assembling_fails_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setattr(tools, "find_spec", nothing)
    assert find_ptxas() is None
    with pytest.raises(ResourceError, match="there is no ptxas") as caught:
        assemble(twice(), "sm_90a")
    assert "nvidia-cuda-nvcc" in (caught.value.hint or "")


def test_check_clean_passes_what_is_clean_and_stops_what_is_not() -> None:
    assert ptx_checks.check_clean(twice(), "sm_90a").kernels["twice"].registers
    with pytest.raises(AssertionError, match=r"crowded: \d+ bytes of spill stores"):
        ptx_checks.check_clean(crowded(), "sm_90a")
    with pytest.raises(AssertionError, match="C7517"):
        ptx_checks.check_clean(HEAD + EARLY, "sm_90a")


def test_registers_may_be_off_by_a_little() -> None:
    for estimate in (88, 100, 117):
        ptx_checks.check_registers(Usage(registers=101), estimate)
    for estimate in (87, 120):
        with pytest.raises(AssertionError, match="101 registers"):
            ptx_checks.check_registers(Usage(registers=101), estimate)


def test_instructions_are_counted_by_name() -> None:
    found = ptx_checks.instructions(twice())
    assert found["ld.global.b32"] == found["st.global.b32"] == found["add.rn.f32"] == found["ret"] == 1
    assert sum(found.values()) == 9
    both = ptx_checks.instructions(f"{twice()}\n{EARLY}")
    assert both["ret"] == 2
    assert both["mov.f32"] == 4


def test_instructions_are_found_wherever_they_stand() -> None:
    text = """
.visible .func  (.param .b32 func_retval0) helper()
{ ret; }
.extern .func  (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0
)
;
.global .align 4 .b8 table[4] = {1, 2, 3, 4};
.entry k() .maxntid 128
{
	// mul.f32 in a comment;
	.loc	1 7 3
	.pragma "nounroll; add.f32";
$L__BB0_1:                              // =>This Inner Loop Header
	@%p1 bra 	$L__BB0_1;
	@!%p2 bra.uni 	$L__BB0_2;
	// begin inline asm
	{ .reg .pred p; setp.eq.b32 p, %r1, 0;
	@p cp.async.bulk.tensor.2d.shared::cluster.global [%r1], [%rd1, {%r2, %r3}], [%r4]; }
	// end inline asm
	{ // callseq 0, 0
	call.uni (retval0), helper, ();
	} // callseq 0
LABEL: mbarrier.try_wait.parity.shared::cta.b64 p, [%r1], %r2;
	ret;
}
	.section	.debug_abbrev
	{
.b8 1                                   // Abbreviation Code
	}
"""
    assert ptx_checks.instructions(text) == {
        "ret": 2,
        "bra": 1,
        "bra.uni": 1,
        "setp.eq.b32": 1,
        "cp.async.bulk.tensor.2d.shared::cluster.global": 1,
        "call.uni": 1,
        "mbarrier.try_wait.parity.shared::cta.b64": 1,
    }
    assert ptx_checks.count(text, "cp.async.bulk.tensor") == 1
    assert ptx_checks.count(text, "bra") == 2
    assert ptx_checks.count(text, "mbarrier.try_wait.parity.shared") == 1
    assert ptx_checks.count(text, "cp.async.bul") == 0


def test_machine_instructions_are_read_from_the_listing() -> None:
    listing = """
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 BRA `(.L_x_1) ;
        /*0020*/             @!UP1 UIADD3 UR4, UR4, 0x1, URZ ;
        /*0030*/                   HGMMA.64x256x16.F32.BF16 R24, gdesc[UR4], R24, gsb0 ;
        /*0040*/                   HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8], R24 ;
.L_x_1:
"""
    assert ptx_checks.machine_instructions_of(listing) == {
        "LDC": 1,
        "BRA": 1,
        "UIADD3": 1,
        "HGMMA.64x256x16.F32.BF16": 2,
    }


def test_machine_instructions_come_from_nvdisasm_where_there_is_one() -> None:
    found = ptx_checks.machine_instructions(assemble(twice(), "sm_90a").cubin)
    assert (found is None) == (find_tool("nvdisasm") is None)
    assert found is None or found["EXIT"] >= 1
