"""Tests the counts of the four levels: against IR counted by hand, and instructions against another disassembler."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ptx_checks import count

import tessera as ts
from tessera import bf16, jit, kernel, tile
from tessera.bench.compiler.inspector import IRInspector
from tessera.bench.results.definitions import BenchError
from tessera.compile import TargetIR, TileIR, to_graph_ir, to_schedule_ir, to_target_ir, to_tile_ir
from tessera.targets.cpu import features, instructions
from tessera.targets.cpu.compile import EFFORTS
from tessera.targets.cuda.code_counts import occupancy_of
from tessera.targets.cuda.ptx.assembler import assemble
from tessera.targets.llvm import machine

X = np.random.default_rng(0).standard_normal((100, 64), np.float32)
Q = ts.randn((2, 128, 64), bf16, seed=0)


@kernel
def softmax(x: Any):
    loaded = tile.load(x)
    weights = tile.exp(loaded - tile.max(loaded, axis=1)[:, None])
    return weights / tile.sum(weights, axis=1)[:, None]


@kernel
def scores(q: Any, k: Any):
    """Sums of products over blocks of keys, the keys transposed."""
    here = tile.context()
    queries, acc = tile.load(q), tile.zeros((here.m, here.n))
    for block in tile.range_n(k.shape, here.n):
        acc = tile.dot(queries, tile.load(k, block).T, acc)
    return tile.cast(tile.max(acc, axis=1), q.dtype)


@cache
def target() -> TargetIR:
    return to_target_ir(_tiles(softmax, X))


def _tiles(made: Any, *args: Any, **options: Any) -> TileIR:
    return to_tile_ir(to_schedule_ir(to_graph_ir(made, args, options=options)))


@cache
def attention() -> dict[str, Any]:
    return IRInspector().inspect(scores, Q, Q)


def test_all_levels_have_the_specified_keys_and_go_into_json() -> None:
    found = attention()
    json.dumps(found)
    expected = {
        "graph_ir": "node_count operation_types memory_footprint_estimate autodiff_complexity collective_operations",
        "schedule_ir": "loop_structure tiling_configuration fusion_opportunities memory_layout_optimizations"
        " parallelization_strategy",
        "tile_ir": "shared_memory_usage register_pressure tensor_core_utilization async_copy_patterns"
        " synchronization_overhead",
        "target_ir": "instruction_count instruction_mix occupancy_estimate memory_access_patterns"
        " optimization_passes_applied",
    }
    assert set(found) == set(expected)
    for level, keys in expected.items():
        assert set(keys.split()) <= found[level].keys(), level


def test_the_graph() -> None:
    found = attention()["graph_ir"]
    assert found["node_count"] == 1
    assert found["operation_types"] == {"graph.call_kernel": 1}
    # q and k of 2·128·64 elements, and the maxima of 2·128 rows, all of 2 bytes.
    assert found["memory_footprint_estimate"] == 2 * (2 * 2 * 128 * 64 + 2 * 128)
    assert found["collective_operations"] == 0
    assert found["autodiff_complexity"] is None
    assert "no automatic differentiation" in found["unavailable"]["autodiff_complexity"]
    assert found["kernel_operation_types"]["tile.dot"] == 1


def test_a_graph_of_other_ops_as_text() -> None:
    text = """
    graph.func @main(%a: !graph.tensor<[4, 8], f32>, %b: !graph.tensor<[8, N], f32>) -> (!graph.tensor<[4, N], f32>) {
      %0 = graph.ew<neg> %a : !graph.tensor<[4, 8], f32> -> !graph.tensor<[4, 8], f32>
      %1 = graph.matmul %0, %b : !graph.tensor<[4, 8], f32>, !graph.tensor<[8, N], f32> -> !graph.tensor<[4, N], f32>
      graph.return %1 : !graph.tensor<[4, N], f32>
    }"""
    found = IRInspector().inspect_graph_ir(text)
    assert found["operation_types"] == {"graph.ew": 1, "graph.matmul": 1}
    assert found["memory_footprint_estimate"] is None
    assert "sizes" in found["unavailable"]["memory_footprint_estimate"]
    known = IRInspector().inspect_graph_ir(text.replace("N]", "16]"))
    assert known["memory_footprint_estimate"] == 4 * (2 * 4 * 8 + 8 * 16 + 4 * 16)


def test_the_schedule() -> None:
    found = attention()["schedule_ir"]
    (loop,) = found["loop_structure"]["scores"]
    assert (loop["from"], loop["to"], loop["step"], loop["carried"], loop["loops"]) == (0, None, 64, 1, [])
    assert found["tiling_configuration"] == {"scores": {"block": (64, 64)}}
    (launch,) = found["parallelization_strategy"]
    assert launch["extents"] == [2, 2]
    assert launch["programs"] == 4
    assert found["memory_layout_optimizations"]["transposed_loads"] == 1
    assert found["fusion_opportunities"] == {"regions": 0, "launches": 1, "launches_that_feed_only_another": 0}


def test_a_schedule_as_text_leaves_the_grid_open() -> None:
    lowered = to_schedule_ir(to_graph_ir(scores, (Q, Q)))
    found = IRInspector().inspect_schedule_ir(lowered.text)
    assert found["parallelization_strategy"][0]["programs"] is None
    assert found["unavailable"]
    assert found["loop_structure"] == attention()["schedule_ir"]["loop_structure"]


def test_the_tiles() -> None:
    found = attention()["tile_ir"]
    assert found["tensor_core_utilization"]["tile_dots"] == 1
    is_amx = features.level() == "amx"
    assert (found["tensor_core_utilization"]["matrix_instructions"] > 0) == is_amx
    assert (found["tensor_core_utilization"]["matrix_ops"] > 0) == is_amx
    assert (found["register_pressure"]["tile_registers"] > 0) == is_amx
    assert found["register_pressure"]["vector_registers"] <= found["register_pressure"]["vector_registers_there_are"]
    assert found["async_copy_patterns"]["loads"] == 2
    # A processor has none of these, and the reasons say so.
    for name in ("shared_memory_usage.shared_bytes", "async_copy_patterns.async_copies"):
        figure, _, part = name.partition(".")
        assert found[figure][part] is None
        assert "a processor has no" in found["unavailable"][name]
    assert found["synchronization_overhead"]["barriers"] is None
    # The queue of work, at least.
    assert found["synchronization_overhead"]["locked_instructions"] >= 1


def test_the_workspace_is_what_the_machine_code_asks_for() -> None:
    """Without panels, the function that the emitter writes returns just this number."""
    found = IRInspector().inspect_tile_ir(_tiles(softmax, X), target())
    assert found["shared_memory_usage"]["panels"] == []
    body = instructions.functions_of(target().assembly)["softmax.workspace"]
    # A constant is moved into the result; on AArch64 from the second operand, and from a register where it is 0.
    moved = [one.operands[1 if one.arm else 0] for one in body if one.name.startswith("mov")]
    constants = [int(operand[1:], 0) for operand in moved if operand[0] in "$#"]
    returned = constants[-1] if constants else 0
    assert found["shared_memory_usage"]["workspace_bytes"] == returned


def test_tiles_without_machine_code_say_what_is_missing() -> None:
    found = IRInspector().inspect_tile_ir(_tiles(scores, Q, Q).text)
    assert found["register_pressure"] is None
    for name in ("shared_memory_usage", "register_pressure"):
        assert found[name] is None
        assert "target IR" in found["unavailable"][name]
    assert found["tensor_core_utilization"]["tile_dots"] == 1


def test_the_target() -> None:
    found = IRInspector().inspect_target_ir(target())
    assert found["instruction_count"] == sum(found["instruction_mix"].values()) == found["functions"]["softmax"]
    assert found["optimization_passes_applied"] == list(target().stages_ms)
    assert {"graph-to-schedule", "tile-to-cpu", "emit"} <= set(found["optimization_passes_applied"])
    assert found["occupancy_estimate"] is None
    assert found["unavailable"]["occupancy_estimate"]
    assert found["instruction_mix"].get("other", 0) < 0.02 * found["instruction_count"]
    as_text = IRInspector().inspect_target_ir(target().assembly)
    assert as_text["instruction_mix"] == found["instruction_mix"]


@jit
def layers(x: Any, w: Any) -> Any:
    hidden = ts.relu(x @ w)
    return hidden / ts.sum(hidden, axis=1, keepdims=True)


W = ts.randn((256, 256), bf16, seed=1)


@cache
def on_hopper() -> dict[str, Any]:
    return IRInspector().inspect(layers, W, W, options={"level": "sm_90a"})


def test_a_gpu_kernel_is_counted_by_its_ptx() -> None:
    ir = to_target_ir(_tiles(scores, Q, Q, level="sm_80"))
    found = IRInspector().inspect_target_ir(ir)
    ptx = ir.assembly
    assert found["instruction_count"] == sum(found["instruction_mix"].values())
    assert found["instruction_mix"]["matrix"] == count(ptx, "mma.sync") > 0
    accesses = found["memory_access_patterns"]
    for space in ("global", "shared"):
        assert accesses.get(f"{space}_loads", 0) == count(ptx, f"ld.{space}")
        assert accesses.get(f"{space}_stores", 0) == count(ptx, f"st.{space}")
    assert accesses["matrix_loads"] == count(ptx, "ldmatrix")
    assert accesses["async_copies"] == count(ptx, "cp.async") - sum(
        count(ptx, f"cp.async.{name}") for name in ("commit_group", "wait_group", "wait_all")
    )
    assert found["registers"] == {"per_thread": assemble(ptx, "sm_80").kernels["scores"].registers, "source": "ptxas"}
    assert 0 < found["occupancy_estimate"]["occupancy_percent"] <= 100
    assert found["unavailable"] == {}


def test_tiles_of_a_gpu_have_shared_memory_copies_and_barriers() -> None:
    tiles = _tiles(scores, Q, Q, level="sm_80")
    made = to_target_ir(tiles)
    found = IRInspector().inspect_tile_ir(tiles, made)
    (part,) = made.parts
    launch = part.made.finish().plan.device
    assert launch is not None
    assert found["shared_memory_usage"]["shared_bytes"] >= launch.shared > 0
    assert found["async_copy_patterns"]["async_copies"] > 0
    assert found["async_copy_patterns"]["copy_waits"] > 0
    assert found["synchronization_overhead"]["barriers"] == count(made.assembly, "bar.sync") + count(
        made.assembly, "barrier.sync"
    )
    assert found["register_pressure"]["spill_stores"] == 0
    assert abs(found["register_pressure"]["estimate"] / found["register_pressure"]["per_thread"] - 1) < 0.5
    assert found["unavailable"] == {}


def test_a_jitted_function_is_counted_by_kernel_and_in_all() -> None:
    found = on_hopper()
    json.dumps(found)
    kernels = found["target_ir"]["kernels"]
    assert len(kernels) == 2
    assert all(one["launches"] == 1 for one in kernels.values())
    counts = [one["instruction_count"] for one in kernels.values()]
    assert found["target_ir"]["instruction_count"] == sum(counts)
    assert all(counts)
    assert found["target_ir"]["instruction_mix"]["matrix"] == sum(
        one["tensor_core_utilization"]["matrix_instructions"] for one in kernels.values()
    )
    # Registers of two kernels cannot be added.
    of_each = {"registers": "target_ir", "occupancy_estimate": "target_ir", "register_pressure": "tile_ir"}
    for name, level in of_each.items():
        assert found[level][name] is None
        assert "each kernel has its own" in found[level]["unavailable"][name]
    bulk = [one["async_copy_patterns"]["bulk_copies"] for one in kernels.values()]
    assert found["tile_ir"]["async_copy_patterns"]["bulk_copies"] == sum(bulk) > 0


def test_regions_of_a_jitted_function_have_blocks_before_they_have_grids() -> None:
    found = on_hopper()["schedule_ir"]
    regions = found["tiling_configuration"]
    assert next(iter(regions.values()))["kind"] == "matmul"
    assert "block" in next(iter(regions.values()))
    assert "tile level" in found["unavailable"]["parallelization_strategy.regions"]
    assert on_hopper()["graph_ir"]["memory_footprint_estimate"] > 2 * W.nbytes


def test_ptx_as_text_says_what_it_does_not_tell() -> None:
    ir = to_target_ir(_tiles(scores, Q, Q, level="sm_80"))
    whole, found = IRInspector().inspect_target_ir(ir), IRInspector().inspect_target_ir(ir.assembly)
    assert found["instruction_mix"] == whole["instruction_mix"]
    assert found["registers"] == whole["registers"]
    assert found["occupancy_estimate"] is None
    assert "the launch is not in the text" in found["unavailable"]["occupancy_estimate"]
    assert found["kernels"]["scores"]["register_pressure"]["estimate"] is None


def test_without_ptxas_registers_are_those_of_the_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tessera.targets.cuda.code_counts.find_ptxas", lambda: None)
    ir = to_target_ir(_tiles(scores, Q, Q, level="sm_80"))
    found = IRInspector().inspect_target_ir(ir)
    assert found["registers"]["source"] == "estimate"
    pressure = found["kernels"]["scores"]["register_pressure"]
    assert pressure["spill_stores"] is None
    assert "no ptxas" in found["kernels"]["scores"]["unavailable"]["register_pressure.spill_stores"]
    as_text = IRInspector().inspect_target_ir(ir.assembly)
    assert as_text["registers"] is None
    assert "no ptxas" in as_text["unavailable"]["registers"]
    assert as_text["instruction_count"] == found["instruction_count"]


def test_a_text_of_no_target_is_refused() -> None:
    with pytest.raises(BenchError, match="expected assembly of one of the targets"):
        IRInspector().inspect_target_ir("x = 1")


@pytest.mark.parametrize(
    ("registers", "threads", "shared", "blocks", "limit"),
    [
        (32, 128, 0, 16, "registers"),
        (16, 64, 0, 32, "threads"),
        (16, 32, 0, 32, "blocks"),
        (168, 384, 200 << 10, 1, "registers"),
        (64, 128, 100 << 10, 2, "shared memory"),
        (255, 128, 0, 2, "registers"),
    ],
)
def test_occupancy_is_what_the_scarcest_resource_allows(
    registers: int, threads: int, shared: int, blocks: int, limit: str
) -> None:
    found = occupancy_of("sm_90a", registers, threads, shared)
    assert found["blocks_per_multiprocessor"] == blocks
    assert found["limited_by"] == limit
    assert found["occupancy_percent"] == 100 * blocks * threads / 2048


@pytest.mark.skipif(shutil.which("objdump") is None, reason="compares with objdump, which is not installed")
@pytest.mark.parametrize("made", [softmax, scores])
def test_another_disassembler_sees_the_same_instructions(made: Any, tmp_path: Path) -> None:
    """The assembly is another output than the machine code that runs; here that is disassembled."""
    ir = to_target_ir(_tiles(made, *((X,) if made is softmax else (Q, Q))))
    processor, extras = features.target(ir.chosen.level)
    code = machine.compile_text(ir.text, cpu=processor, features=extras, opt=EFFORTS[ir.chosen.optimization].codegen)
    path = tmp_path / "kernel.o"
    path.write_bytes(code)
    shown = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", str(path)], capture_output=True, text=True, check=True
    ).stdout
    _, _, rest = shown.partition(f"<{ir.name}>:")
    lines = re.findall(r"^\s+[0-9a-f]+:\t(\S+)", rest.partition("\n\n")[0], re.MULTILINE)
    # Padding between blocks is in the code only.
    ours = instructions.functions_of(ir.assembly)[ir.name]
    padding = ("nop",) if ours[0].arm else ("nop", "data16", "cs", "xchg", "int3")
    theirs = [name for name in lines if not name.startswith(padding)]
    assert len(ours) == len(theirs)
    for pattern in (r"vfn?m(add|sub)|fml[as]", r"tdp", r"tileload", r"j|b\.|cbn?z"):
        assert sum(bool(re.match(pattern, one.name)) for one in ours) == sum(
            bool(re.match(pattern, name)) for name in theirs
        ), pattern


ASSEMBLY = """
	.text
	.globl	work
work:
	pushq	%rbp
	movq	%rsp, %rbp
	vmovups	(%rdi), %zmm0
	vmovups	%zmm31, -64(%rbp)
	vmovups	64(%rsp), %zmm1
	vfmadd231ps	(%rsi,%rax,4){1to16}, %zmm0, %zmm2
	vfmadd213ps	.LCPI0_0(%rip), %zmm0, %zmm2
	vmovdqu16	(%rdx), %zmm3 {%k1} {z}
	vmovups	%zmm3, (%rdx) {%k2}
	vgatherqps	(%rdx,%zmm4,4), %ymm5 {%k1}
	vmovntps	%zmm3, (%rdx)
	vbroadcastss	4(%rdi), %zmm6
	movq	%rax, 8(%rsp)
	addq	%rax, (%rdi)
	cmpq	%rax, (%rdi)
	lock		xaddq	%rax, (%r8)
	leaq	8(%rdi), %r9
	prefetcht0	(%rdi)
	tileloadd	(%rsi,%rax), %tmm0
	tdpbf16ps	%tmm2, %tmm1, %tmm0
	vaddss	(%rdi), %xmm7, %xmm7
	jne	.LBB0_1
.LBB0_1:
	retq
.Lfunc_end0:
	.size	work, .Lfunc_end0-work
	.section	.rodata,"a",@progbits
table:
	.long	1
"""


ARM_ASSEMBLY = """
	.text
	.globl	work
work:                                   // @work
	stp	x29, x30, [sp, #-32]!           // 16-byte Folded Spill
	mov	x29, sp
	ldr	q0, [x0]
	str	q31, [sp, #16]
	ldp	q1, q2, [x1, #32]
	ld1r	{ v3.4s }, [x2]
	fmla	v4.4s, v0.4s, v3.s[0]
	fmla	v5.4s, v1.4s, v3.4s
	adrp	x8, .LCPI0_0
	ldr	q6, [x8, :lo12:.LCPI0_0]
	ld1	{ v7.4s, v8.4s }, [x3]
	zip1	v9.4s, v7.4s, v8.4s
	fcmgt	v10.4s, v9.4s, v6.4s
	add	v11.4s, v10.4s, v9.4s
	sdot	v12.4s, v7.16b, v8.16b
	fmadd	s13, s14, s15, s16
	ldr	s17, [x4, x5, lsl #2]
	ldadd	x9, x10, [x6]
	prfm	pldl1keep, [x0, #256]
	stnp	q0, q1, [x7]
	cmp	x9, #3
	csel	x11, x9, x10, lt
	b.ne	.LBB0_1
.LBB0_1:
	ldp	x29, x30, [sp], #32
	bl	sinf
	ret
.Lfunc_end0:
	.size	work, .Lfunc_end0-work
	.section	.rodata.cst16,"aM",@progbits,16
"""


def test_assembly_of_aarch64_is_read_line_by_line() -> None:
    body = instructions.functions_of(ARM_ASSEMBLY)["work"]
    assert len(body) == 26
    assert instructions.mix(body) == {
        "vector_move": 7,
        "scalar_move": 4,
        "vector_fma": 2,
        "vector_shuffle": 1,
        "vector_compare": 1,
        "vector_integer": 1,
        "vector_dot": 1,
        "scalar_fma": 1,
        "scalar_float": 1,
        "atomic": 1,
        "prefetch": 1,
        "compare": 1,
        "conditional": 1,
        "branch": 1,
        "call": 1,
        "return": 1,
    }
    assert instructions.memory_accesses(body) == {
        "vector_loads": 3,
        "stack_scalar_stores": 1,
        "stack_vector_stores": 1,
        "broadcast_loads": 1,
        "constant_loads": 1,
        "scalar_loads": 2,
        "scalar_stores": 1,
        "prefetches": 1,
        "nontemporal_vector_stores": 1,
        "stack_scalar_loads": 1,
    }
    found = instructions.registers(body)
    assert (found["vector_registers"], found["vector_bits"], found["tile_registers"]) == (19, 128, 0)


def test_assembly_is_read_line_by_line() -> None:
    functions = instructions.functions_of(ASSEMBLY)
    assert set(functions) == {"work"}
    body = functions["work"]
    assert len(body) == 23
    assert instructions.mix(body) == {
        "vector_move": 6,
        "scalar_move": 4,
        "vector_fma": 2,
        "amx": 2,
        "gather_scatter": 1,
        "vector_shuffle": 1,
        "scalar_integer": 1,
        "compare": 1,
        "atomic": 1,
        "prefetch": 1,
        "scalar_float": 1,
        "branch": 1,
        "return": 1,
    }
    assert instructions.memory_accesses(body) == {
        "vector_loads": 1,
        "stack_vector_stores": 1,
        "stack_vector_loads": 1,
        "broadcast_loads": 2,
        "constant_loads": 1,
        "masked_vector_loads": 1,
        "masked_vector_stores": 1,
        "gather_loads": 1,
        "nontemporal_vector_stores": 1,
        "stack_scalar_stores": 1,
        "scalar_loads": 4,
        "scalar_stores": 2,
        "prefetches": 1,
        "tile_loads": 1,
    }
    assert instructions.registers(body) == {
        "vector_registers": 9,
        "vector_bits": 512,
        "tile_registers": 3,
        "mask_registers": 2,
        "general_registers": 7,
    }
