"""Programs against the reference interpreter: sizes, strides, types, constants, views, numbers, threads, errors."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from program_cases import CHAIN, KERNELS, check, check_close, drawn, expected, program_of, tensor

import tessera as ts
from tessera import DType, bf16, bool_, f16, f32, f64, i8, i32, i64, knobs, u8, u32
from tessera.errors import DeviceError, DtypeError, ShapeError
from tessera.programs import arenas


@pytest.mark.parametrize("sizes", [(1, 1), (5, 64), (33, 7), (130, 129)], ids=str)
def test_several_kernels_give_what_the_interpreter_gives(sizes: tuple[int, int], device: str) -> None:
    rows, columns = sizes
    program = check(CHAIN, [drawn(sizes), drawn(sizes, seed=1), drawn((columns,), seed=2)], device)
    assert len(program.kernels) == 6
    assert len(program.host.kernels) == 5
    assert program.memory is not None
    assert program.memory.peak >= 2 * rows * columns * 4  # one of two may lie in the result


def test_one_program_serves_all_sizes(device: str) -> None:
    program = program_of(CHAIN, device)
    for rows, columns in ((3, 5), (17, 33), (2, 128)):
        values = [drawn((rows, columns)), drawn((rows, columns), seed=1), drawn((columns,), seed=2)]
        given = [value.to(device) for value in values]
        check_close(program.bind(given)(*given), expected(CHAIN, values))
    # Code depends on sizes only where rows of a GPU's arrays do not lie well.
    assert program.codes.compiled <= (1 if device == "cpu" else 2) * len(program.host.kernels)


@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize("columns", [0, 4])
def test_arrays_without_elements(rows: int, columns: int, device: str) -> None:
    check(CHAIN, [drawn((rows, columns)), drawn((rows, columns)), drawn((columns,))], device)


def test_numbers_are_given_by_the_call(device: str) -> None:
    kind = tensor("N")
    source = f"""{KERNELS}
    graph.func @main(%a: {kind}, %n: f32) -> ({kind}) {{
      %s = graph.call_kernel @shift(%a, %n) : ({kind}, f32) -> {kind}
      %t = graph.call_kernel @shift(%s, %n) : ({kind}, f32) -> {kind}
      graph.return %t : {kind}
    }}"""
    program = program_of(source, device)
    values = drawn((100,))
    given = values.to(device)
    bound = program.bind([given, 1.0])
    for number in (0.5, -3.0, 7):
        check_close(bound(given, number), expected(source, [values, float(number)]))
    with pytest.raises(DtypeError, match="argument 1 of @main: expected a number of f32, got True"):
        program.bind([given, True])


def test_arguments_of_any_strides(device: str) -> None:
    whole = drawn((40, 60))
    for a, b in (
        (whole[2:30:3, 1:40:2], whole[30:20:-1, :20]),
        (whole.T[:10, :20], whole[5:15, 5:25]),
        (ts.asarray(np.arange(20, dtype=np.float32)).broadcast_to(10, 20), whole[:10, 40:20:-1]),
    ):
        source = f"""
        graph.func @main(%a: {tensor("B, S")}, %b: {tensor("B, S")}) -> ({tensor("B, S")}) {{
          %s = graph.ew<sub> %a, %b : {tensor("B, S")}, {tensor("B, S")} -> {tensor("B, S")}
          graph.return %s : {tensor("B, S")}
        }}"""
        views = [a[:10, :20], b[:10, :20]]
        given = views
        if device != "cpu":  # copies would be contiguous: the same views of what was brought over
            far, other = whole.to(device), ts.asarray(np.arange(20, dtype=np.float32)).to(device)
            given = [_moved(view, whole, far, other) for view in views]
        program = program_of(source, device)
        check_close(program.bind(given)(*given), expected(source, views))


def _moved(view: ts.Tensor, whole: ts.Tensor, far: ts.Tensor, other: ts.Tensor) -> ts.Tensor:
    """The view of an array on a device that corresponds to one on the host."""
    if view.strides[0] == 0:
        return other.broadcast_to(10, 20)
    return far.as_strided(view.shape, view.strides, (view.pointer - whole.pointer) // 4)


@pytest.mark.parametrize("dtype", [f64, f16, bf16, i8, i32, i64, u8, u32], ids=str)
def test_element_types(dtype: DType, device: str) -> None:
    name = {"i8": "i8", "u8": "ui8", "u32": "ui32"}.get(dtype.name, dtype.name)
    kind = tensor("N, 9", name)
    source = f"""
    graph.func @main(%a: {kind}, %b: {kind}) -> ({kind}, {tensor("N, 9", "i1")}) {{
      %s = graph.ew<add> %a, %b : {kind}, {kind} -> {kind}
      %p = graph.ew<mul> %s, %b : {kind}, {kind} -> {kind}
      %c = graph.ew<lt> %a, %b : {kind}, {kind} -> {tensor("N, 9", "i1")}
      graph.return %p, %c : {kind}, {tensor("N, 9", "i1")}
    }}"""
    check(source, [drawn((11, 9), dtype), drawn((11, 9), dtype, seed=1)], device)


def test_constants_fill_and_are_listed(device: str) -> None:
    kind = tensor("3")
    source = f"""
    graph.func @main(%a: {kind}) -> ({kind}, {kind}) {{
      %c = graph.constant {kind} = [1.0, -2.5, 4.0]
      %s = graph.ew<mul> %a, %c : {kind}, {kind} -> {kind}
      %d = graph.constant {kind} = [0.5]
      graph.return %s, %d : {kind}, {kind}
    }}"""
    check(source, [drawn((3,))], device)


def test_arguments_and_values_may_be_returned_as_they_are(device: str) -> None:
    kind = tensor("N")
    source = f"""
    graph.func @main(%a: {kind}, %b: {kind}) -> ({kind}, {kind}, {kind}, {kind}) {{
      %s = graph.ew<add> %a, %b : {kind}, {kind} -> {kind}
      graph.return %a, %s, %s, %b : {kind}, {kind}, {kind}, {kind}
    }}"""
    program = program_of(source, device)
    given = [drawn((20,)).to(device), drawn((40,), seed=1).to(device)[::2]]
    results = program.bind(given)(*given)
    check_close(results, expected(source, given))
    pointers = [one.pointer for one in (*results, *given)]
    assert len(set(pointers)) == len(pointers)  # each has memory of its own


def test_calls_are_inlined_and_equal_kernels_are_one(device: str) -> None:
    kind = tensor("M, N")
    source = f"""{KERNELS}
    graph.func @step(%x: {kind}) -> ({kind}) {{
      %h = graph.call_kernel @halve(%x) : ({kind}) -> {kind}
      %y = graph.ew<sub> %x, %h : {kind}, {kind} -> {kind}
      graph.return %y : {kind}
    }}
    graph.func @main(%a: {kind}) -> ({kind}) {{
      %b = graph.call @step(%a) : ({kind}) -> {kind}
      %c = graph.call @step(%b) : ({kind}) -> {kind}
      graph.return %c : {kind}
    }}"""
    program = check(source, [drawn((50, 3))], device)
    assert len(program.host.launches) == 4
    assert len(program.host.kernels) == 2


def test_metas_of_results_are_known(device: str) -> None:
    program = program_of(CHAIN, device)
    values = [drawn((4, 6)).to(device), drawn((4, 6)).to(device), drawn((6,)).to(device)]
    first, second = program.bind(values)(*values)
    assert (first.shape, first.strides, first.dtype, first.device.kind) == ((4, 6), (6, 1), f32, device)
    assert first.meta is ts.zeros((4, 6), device=device).meta
    assert second.shape == (6,)


def test_threads_share_a_bound_program(device: str) -> None:
    program = program_of(CHAIN, device)
    values = [[drawn((70, 90), seed=seed), drawn((70, 90), seed=9), drawn((90,), seed=2)] for seed in range(3)]
    wanted = [expected(CHAIN, one) for one in values]
    given = [[value.to(device) for value in one] for one in values]
    bound = program.bind(given[0])
    failures: list[BaseException] = []

    def work(index: int) -> None:
        try:
            for _ in range(20):
                check_close(bound(*given[index]), wanted[index])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_mistakes_are_told(device: str) -> None:
    program = program_of(CHAIN, device)
    a, b, c = drawn((4, 6)).to(device), drawn((4, 6)).to(device), drawn((6,)).to(device)
    with pytest.raises(ShapeError, match="takes 3 arguments, got 2"):
        program.bind([a, b])
    with pytest.raises(ShapeError, match="argument 2 of @main: expected rank 1, got 2"):
        program.bind([a, b, a])
    with pytest.raises(ShapeError):
        program.bind([a, b, c[:5]])
    with pytest.raises(DtypeError, match="argument 0 of @main: expected f32, got f64"):
        program.bind([ts.ones((4, 6), f64, device=device), b, c])
    with pytest.raises(DtypeError, match="argument 1 of @main: expected a tensor, got ndarray"):
        program.bind([a, np.ones((4, 6)), c])


@pytest.mark.gpu
def test_programs_stay_on_their_device() -> None:
    program = program_of(CHAIN, "cpu")
    far = [drawn((4, 6)).cuda(), drawn((4, 6)).cuda(), drawn((6,)).cuda()]
    with pytest.raises(DeviceError, match="compiled for cpu"):
        program.bind(far)


@pytest.mark.parametrize("knob", [knobs.interpret, knobs.backend], ids=lambda knob: knob.name)
def test_the_interpreter_runs_programs_if_asked(knob: Any) -> None:
    with knob.using(True if knob is knobs.interpret else "interpreter"):
        program = program_of(CHAIN)
    values = [drawn((4, 6)), drawn((4, 6), seed=1), drawn((6,), seed=2)]
    results = program.bind(values)(*values)
    check_close(results, expected(CHAIN, values))
    assert program.settings is None
    assert program.levels.graph_ir.text
    with pytest.raises(ShapeError):
        program.bind([values[0], values[1], values[2][:5]])


def test_levels_have_texts_and_hashes() -> None:
    levels = program_of(CHAIN).levels
    assert "graph.ew<sub>" in levels.graph_ir.text
    assert "schedule.region" in levels.schedule_ir.text
    assert "tile.func" in levels.tile_ir.text
    assert "schedule.launch" in levels.tile_ir.text
    assert len({levels.graph_ir.hash, levels.schedule_ir.hash, levels.tile_ir.hash}) == 3
    assert levels.graph_ir.hash == program_of(CHAIN).levels.graph_ir.hash
    assert "define" in levels.target_ir.text
    assert "main_0" in levels.asm.text


def test_arenas_are_put_back_and_grow() -> None:
    arenas.trim()
    program = program_of(CHAIN)
    for rows in (10, 40, 20):
        values = [drawn((rows, 50)), drawn((rows, 50), seed=1), drawn((50,), seed=2)]
        program.bind(values)(*values)
    assert len(arenas.FREE) == 1
    assert arenas.held() >= 40 * 50 * 4
    arenas.trim()
    assert arenas.held() == 0


def test_flags_are_compared_as_bools(device: str) -> None:
    kind = tensor("N", "i1")
    source = f"""
    graph.func @main(%a: {kind}, %b: {kind}) -> ({kind}) {{
      %s = graph.ew<and> %a, %b : {kind}, {kind} -> {kind}
      %n = graph.ew<not> %s : {kind} -> {kind}
      graph.return %n : {kind}
    }}"""
    check(source, [drawn((100,), bool_), drawn((100,), bool_, seed=1)], device)


def test_constants_live_as_long_as_the_call(device: str) -> None:
    kind = tensor("3")
    source = f"""
    graph.func @main() -> ({kind}, {kind}) {{
      %c = graph.constant {kind} = [1.0, -2.5, 4.0]
      %d = graph.constant {kind} = [0.5]
      graph.return %c, %d : {kind}, {kind}
    }}"""
    run = program_of(source, device).bind([]).run
    arenas.trim()
    first, second = run()
    assert (first.device.kind, first.cpu().tolist()) == (device, [1.0, -2.5, 4.0])
    assert second.cpu().tolist() == [0.5] * 3


def test_scaled_elements_are_not_plain_ones() -> None:
    values = [drawn((4, 6)), drawn((4, 6)), drawn((6,))]
    scaled = values[0].to(f32 @ ts.loss_scale(1024.0))
    with pytest.raises(DtypeError, match="argument 0 of @main: expected f32, got f32 @ loss_scale"):
        program_of(CHAIN).bind([scaled, *values[1:]])
