"""Rows of GPU benchmarks: how they are declared, how a contest goes, and which results are out of date."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pretended_gpu import Array, PretendedGpu, Work

import tessera as ts
from tessera import kernel, tile
from tessera.bench.cuda import declarations, kernel_texts, records, tables
from tessera.bench.cuda.contest import Race
from tessera.bench.cuda.declarations import Contest, Inputs, Row, Yardstick, kernel_text, mean, row
from tessera.bench.results.definitions import BenchError
from tessera.errors import CompileError, EffectError

ROOT = Path(__file__).parents[3]
MEGABYTE = 1e6


@pytest.fixture(autouse=True)
def nothing_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROWS", "MEANS", "KERNELS"):
        monkeypatch.setattr(declarations, name, {})


def no_contest(_: Inputs) -> Contest:
    raise AssertionError("rows are made ready on a GPU only")


def raced(
    ours: Callable[[Array], Array] | None = np.square,
    peer: Callable[[Array], Array] = np.square,
    ms: tuple[float, float] = (0.4, 0.5),
    *,
    rounds: int = 12,
    **settings: Any,
) -> tuple[dict[str, Any], PretendedGpu]:
    """A contest about squares, ours against one peer, or some more."""
    gpu = PretendedGpu()
    more: dict[str, float] = settings.pop("more", {})
    others: dict[str, tuple[float, float]] = settings.pop("others", {})
    x = gpu.normal(8, 4)
    contest = Contest(
        truth=lambda: x**2,
        ours=None if ours is None else Work(gpu, ours, ms[0]),
        peers={"torch": Work(gpu, peer, ms[1]), **{name: Work(gpu, peer, each) for name, each in more.items()}},
        yardsticks={name: Yardstick(Work(gpu, np.cbrt, each), flops) for name, (each, flops) in others.items()},
        ptx=settings.pop("ptx", {}),
        ways=settings.pop("ways", None),
    )
    made = Row("squares", "f32", no_contest, bound=2e-6, **settings)
    return Race(made, contest, gpu, gpu, np.random.default_rng(1)).measure(rounds), gpu


def test_times_are_per_call_and_ratios_of_neighbours() -> None:
    found, _ = raced(moves=480 * MEGABYTE, flops=8e9, bars={"torch": 1.2, "copy": 0.9})
    ours, torch, copy = (found["entrants"][name] for name in ("tessera", "torch", "copy"))
    assert ours["us"] == pytest.approx(400)
    assert torch["us"] == pytest.approx(500)
    assert (ours["calls_per_sample"], torch["calls_per_sample"], copy["calls_per_sample"]) == (3, 2, 9)
    assert ours["gbps"] == pytest.approx(1200)
    assert ours["tflops"] == pytest.approx(20)
    assert copy["gbps"] == pytest.approx(4000)
    assert "tflops" not in copy
    assert len(ours["samples_us"]) == 12
    assert found["ratios"]["torch"]["ratio"] == pytest.approx(1.25)
    assert found["bars"]["torch"] == {"bar": 1.2, "ratio": pytest.approx(1.25), "held": True}
    assert found["bars"]["copy"] == {"bar": 0.9, "ratio": pytest.approx(0.3), "held": False}
    assert found["conditions"] == {"before": {"sm_mhz": 1980}, "after": {"sm_mhz": 1980}}
    assert ours["repeatable"] is True
    json.dumps(found, allow_nan=False)


def test_a_bar_on_the_best_is_on_the_fastest_peer() -> None:
    found, _ = raced(bars={"best": 1.2}, more={"cudnn": 0.44})
    assert found["bars"]["best"] == {"bar": 1.2, "ratio": pytest.approx(1.1), "held": False}
    assert "best" not in found["ratios"]
    found, _ = raced(bars={"best": 1.2})
    assert found["bars"]["best"]["held"]


def test_a_yardstick_is_compared_by_its_rate() -> None:
    # Twice the operations in thrice the time: the rate is 2/3 of ours.
    found, _ = raced(flops=4e9, bars={"plain": 1.2}, others={"plain": (1.2, 8e9)})
    plain = found["entrants"]["plain"]
    assert plain["tflops"] == pytest.approx(8e9 / 1.2e-3 / 1e12)
    assert plain["error"] is None
    assert found["bars"]["plain"] == {"bar": 1.2, "ratio": pytest.approx(1.5), "held": True}
    with pytest.raises(BenchError, match="has yardsticks, but not how many operations"):
        raced(others={"plain": (1.2, 8e9)})


def test_means_of_rows_have_bars() -> None:
    for name in ("a", "b", "c"):
        row(name, "f32")(no_contest)
    mean("both", ["a", "b"], "cudnn", 1.5)
    mean("all", ["a", "b", "c"], "cudnn", 1.5)
    measured = [{"name": name, "ratios": {"cudnn": {"ratio": ratio}}} for name, ratio in (("a", 1.0), ("b", 4.0))]
    (both,) = records.means(measured, declarations.MEANS.values())
    assert both == {"name": "both", "peer": "cudnn", "bar": 1.5, "ratio": pytest.approx(2.0), "held": True}
    # A row that has no ratio cannot be left out of a mean.
    _, all_ = records.means([*measured, {"name": "c", "failure": "no GPU"}], declarations.MEANS.values())
    assert (all_["ratio"], all_["held"]) == (None, False)
    assert tables.missed([], [both, all_]) == ["mean of all: nothing of cudnn, the bar is 1.5"]
    said = tables.markdown({"environment": {}, "rows": [], "means": [both, all_]}, "H200")
    assert "| mean of both | cudnn | 1.5 | 2.000 |  |" in said
    assert "| mean of all | cudnn | 1.5 | nothing | missed |" in said
    with pytest.raises(BenchError, match="'both' is declared already"):
        mean("both", ["a"], "cudnn", 1.0)
    with pytest.raises(BenchError, match="no @row declares the row d"):
        mean("others", ["a", "d"], "cudnn", 1.0)


def test_the_cache_is_written_over_before_every_sample_and_that_time_is_not_counted() -> None:
    found, gpu = raced(rounds=5)
    assert gpu.log.count("flush") == 5 * len(found["entrants"])
    # Ours is two calls of 0.4 ms and one more in each graph: a flush is followed by a whole graph.
    followed = [gpu.log[index + 1 : index + 3] for index, word in enumerate(gpu.log) if word == "flush"]
    assert all(calls == ["call", "call"] for calls in followed)


def test_entrants_run_in_rounds_whose_order_changes() -> None:
    order: list[str] = []

    class Noted(PretendedGpu):
        def capture(self, call: Any, calls: int, *, ours: bool) -> Any:
            made = super().capture(call, calls, ours=ours)
            plain = made.replay

            def replay() -> None:
                order.append("tessera" if ours else "torch")
                plain()

            made.replay = replay  # pyright: ignore[reportAttributeAccessIssue]
            return made

    gpu = Noted()
    x = gpu.normal(4, 4)
    contest = Contest(truth=lambda: x**2, ours=Work(gpu, np.square, 1.0), peers={"torch": Work(gpu, np.square, 1.0)})
    Race(Row("squares", "f32", no_contest, bound=2e-6), contest, gpu, gpu, np.random.default_rng(1)).measure(20)
    timed = order[4:-3]  # after two launches to prepare and two to check; before two to check and one to repeat
    rounds = [tuple(timed[first : first + 2]) for first in range(0, 40, 2)]
    assert set(rounds) == {("tessera", "torch"), ("torch", "tessera")}


def inexact(x: Array) -> Array:
    return x**2 * 1.0001


def unfinished(x: Array) -> Array:
    return np.where(np.arange(4) < 3, x**2, np.nan)


def something_else(x: Array) -> Array:
    return x


@pytest.mark.parametrize("wrong", [inexact, unfinished, something_else])
def test_a_wrong_result_has_no_times(wrong: Callable[[Array], Array]) -> None:
    found, _ = raced(ours=wrong, bars={"torch": 1.0})
    assert "the result is wrong" in found["entrants"]["tessera"]["failure"]
    assert "us" not in found["entrants"]["tessera"]
    assert found["entrants"]["torch"]["us"]
    assert found["bars"]["torch"] == {"bar": 1.0, "ratio": None, "held": False}
    json.dumps(found, allow_nan=False)


def test_a_result_kept_from_numbers_seen_before_is_found_out() -> None:
    kept: list[Array] = []

    def remembered(x: Array) -> Array:
        kept.append(x**2)
        return kept[0]

    found, gpu = raced(ours=remembered)
    assert "refill" in gpu.log
    assert "the result is wrong" in found["entrants"]["tessera"]["failure"]


def test_a_peer_that_is_less_exact_makes_the_bound_wider_but_not_out_of_proportion() -> None:
    found, _ = raced(ours=lambda x: x**2 * (1 + 4.2e-6), peer=lambda x: x**2 * (1 + 4e-6))
    assert found["entrants"]["tessera"]["bound"] == pytest.approx(4.4e-6, rel=1e-3)
    assert "failure" not in found["entrants"]["tessera"]
    found, _ = raced(ours=lambda x: x**2 * (1 + 1e-4), peer=lambda x: x**2 * (1 + 1e-4))
    assert all("failure" in entrant for entrant in found["entrants"].values())


def test_results_that_change_from_launch_to_launch_are_told() -> None:
    random = np.random.default_rng(0)
    found, _ = raced(ours=lambda x: x**2 * (1 + 1e-8 * random.random()))
    assert found["entrants"]["tessera"]["repeatable"] is False


def test_who_raises_is_out_and_the_others_go_on() -> None:
    def raising(_: Array) -> Array:
        raise CompileError("no schedule fits")

    found, _ = raced(ours=raising, bars={"torch": 1.0})
    assert found["entrants"]["tessera"]["failure"] == "no schedule fits"
    assert found["entrants"]["torch"]["us"]
    assert found["ratios"] == {}
    assert not found["bars"]["torch"]["held"]


def test_rows_of_peers_alone_have_no_ratios() -> None:
    found, _ = raced(ours=None)
    assert "ratios" not in found
    assert "bars" not in found


def test_a_contest_must_be_about_what_its_row_declares() -> None:
    with pytest.raises(BenchError, match="declares other kernels than it ran: square"):
        raced(kernels=("square",))
    with pytest.raises(BenchError, match="a bar on inductor, which does not take part"):
        raced(bars={"inductor": 1.0})


def test_declarations_are_checked_when_they_are_read() -> None:
    kernel_text("square")(lambda: "text")
    with pytest.raises(BenchError, match="'square' is declared already"):
        kernel_text("square")
    declare = row("squares", "bf16", moves=1.0, bars={"copy": 0.9}, kernels=["square"])
    assert declare(no_contest) is no_contest
    made = declarations.ROWS["squares"]
    assert (made.kernels, made.bound, made.moves) == (("square",), 4e-3, 1.0)
    with pytest.raises(BenchError, match="'squares' is declared already"):
        row("squares", "f32")
    with pytest.raises(BenchError, match="unknown type 'f31'"):
        row("others", "f31")
    with pytest.raises(BenchError, match="no @kernel_text declares the kernel cube"):
        row("others", "f32", kernels=["cube"])
    with pytest.raises(BenchError, match="not how many bytes"):
        row("others", "f32", bars={"copy": 0.9})


def test_the_rows_that_ship_are_read_without_a_gpu() -> None:
    declarations.load(ROOT / "benchmarks/gpu_rows")
    assert declarations.ROWS
    assert {name for made in declarations.ROWS.values() for name in made.kernels} <= set(declarations.KERNELS)
    assert {name for made in declarations.MEANS.values() for name in made.rows} <= set(declarations.ROWS)


def test_a_folder_without_rows_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="has no files with rows"):
        declarations.load(tmp_path)


def test_rows_say_how_ours_was_compiled_and_what_was_refused() -> None:
    found, _ = raced(ways=lambda: ["compiled: portable", "slower than warp-specialized: a reason"])
    assert found["ways"] == ["compiled: portable", "slower than warp-specialized: a reason"]
    said = tables.markdown({"environment": {}, "rows": [found]}, "H200")
    assert "| squares | compiled: portable; slower than warp-specialized: a reason |" in said

    def refused() -> list[str]:
        raise CompileError("no layout")

    assert raced(ways=refused)[0]["ways"] == ["no layout"]
    assert "ways" not in raced()[0]


def test_texts_are_asked_for_after_the_calls_and_a_refusal_is_none() -> None:
    def refused() -> str:
        raise CompileError("no layout")

    contest = Contest(truth=list, ptx={"a": "A", "b": lambda: "B", "c": refused})
    assert contest.texts() == {"a": "A", "b": "B"}


def test_calls_of_kernels_are_noted_and_kernels_made_meanwhile_still_run() -> None:
    @kernel
    def doubled(x: Any, out: Any, *, width: int):
        i = tile.program_id(0) * width
        tile.store(out, tile.load(x, at=(i,), shape=(width,)) * 2.0, at=(i,))

    def twice(x: Any, out: Any) -> None:
        doubled[4](x, out, width=16)
        doubled[2](x, out, width=32)

    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    calls = kernel_texts.calls_of(twice, x, out)
    assert [static for _, _, static in calls] == [{"width": 16}, {"width": 32}]
    assert not out.any()
    twice(x, out)
    assert (out == 2.0).all()
    given = ts.empty((64,), ts.f32), ts.empty((64,), ts.f32)
    assert kernel_texts.text_of_calls(twice, *given).count(".entry doubled") == 2


def test_calls_that_no_graph_holds_are_queued_behind_a_gpu_at_work() -> None:
    class Queueing(PretendedGpu):
        def capture(self, call: Any, calls: int, *, ours: bool) -> Any:
            assert ours, "peers are queued, because ours is"
            raise EffectError("a program cannot be recorded in a graph")

        def queue(self, call: Any, calls: int) -> Any:
            made = super().capture(call, calls, ours=True)

            def hold() -> None:
                self.log.append("hold")
                self.clock += 7.0

            made.hold = hold
            return made

    gpu = Queueing()
    x = gpu.normal(8, 4)
    contest = Contest(truth=lambda: x**2, ours=Work(gpu, np.square, 1.0), peers={"torch": Work(gpu, np.square, 2.0)})
    row = Row("squares", "f32", no_contest, bound=2e-6)
    found = Race(row, contest, gpu, gpu, np.random.default_rng(1)).measure(5)
    ours = found["entrants"]["tessera"]
    assert ours["queued"] is True
    assert ours["us"] == pytest.approx(1000)  # without the time that the GPU was held
    assert [gpu.log[index - 1] for index, word in enumerate(gpu.log) if word == "hold"] == ["flush"] * 10


def test_runs_are_merged_row_by_row() -> None:
    for name in ("a", "b", "c"):
        kernel_text(f"kernel of {name}")(lambda: "text")
        row(name, "f32", kernels=[f"kernel of {name}"])(no_contest)
    mean("both", ["a", "b"], "torch", 1.5)

    def run(names: str, ratio: float, date: str) -> dict[str, Any]:
        rows = [
            {"name": name, "kernels": [f"kernel of {name}"], "ratios": {"torch": {"ratio": ratio}}} for name in names
        ]
        about = {"gpu": "H200", "date": date, "commit": date * 3}
        return records.record(rows, {f"kernel of {name}": name for name in names}, about, means=[])

    first, second = run("bad", 4.0, "1"), run("ca", 1.0, "2")
    whole = records.merged(first, second, declarations.ROWS, declarations.MEANS.values())
    # In the order of declarations; what is declared no more, such as d, is gone.
    assert [one["name"] for one in whole["rows"]] == ["a", "b", "c"]
    assert [one.get("measured", {}).get("date") for one in whole["rows"]] == [None, "1", None]
    assert whole["means"][0]["ratio"] == pytest.approx(2.0)
    assert sorted(whole["kernels"]) == ["kernel of a", "kernel of b", "kernel of c"]
    assert whole["environment"]["date"] == "2"
    third = records.merged(whole, run("c", 2.0, "3"), declarations.ROWS, declarations.MEANS.values())
    assert [one.get("measured", {}).get("date") for one in third["rows"]] == ["2", "1", None]


def test_rows_of_a_kernel_that_has_changed_are_not_merged() -> None:
    kernel_text("shared")(lambda: "text")
    for name in ("a", "b", "c"):
        row(name, "f32", kernels=["shared"] if name != "c" else [])(no_contest)

    def run(names: str, text: str) -> dict[str, Any]:
        rows = [{"name": name, "kernels": ["shared"] if name != "c" else []} for name in names]
        return records.record(rows, {"shared": text}, {"gpu": "H200"}, means=[])

    same = records.merged(run("abc", "one"), run("a", "one"), declarations.ROWS, [])
    assert [one["name"] for one in same["rows"]] == ["a", "b", "c"]
    other = records.merged(run("abc", "one"), run("a", "another"), declarations.ROWS, [])
    assert [one["name"] for one in other["rows"]] == ["a", "c"]


def test_only_results_of_this_version_are_merged(tmp_path: Path) -> None:
    path = tmp_path / "h200-a.json"
    records.write(path, records.record([], {}, {"gpu": "x"}))
    assert records.read(path)["rows"] == []
    path.write_text('{"version": 0}')
    with pytest.raises(BenchError, match="expected results of version 1"):
        records.read(path)


# Which results are out of date.


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A result with two kernels, one of which has changed, and a result of a CPU."""
    records.write(
        tmp_path / "h200-a.json", records.record([{"name": "r"}], {"same": "A", "changed": "B"}, {"gpu": "x"})
    )
    (tmp_path / "cpu.json").write_text('{"rows": []}')
    return tmp_path


def test_a_planted_stale_result_is_listed(results: Path) -> None:
    found, compared = records.stale(results, {"same": lambda: "A", "changed": lambda: "B, but other"})
    assert compared == 2
    (one,) = found
    assert (one.file, one.kernel) == ("h200-a.json", "changed")
    assert records.hash_of("B")[:12] in one.reason
    assert records.hash_of("B, but other")[:12] in one.reason


def test_kernels_that_are_gone_or_do_not_compile_are_stale_too(results: Path) -> None:
    def refused() -> str:
        raise CompileError("no layout")

    found, _ = records.stale(results, {"changed": refused})
    assert [str(one) for one in found] == [
        "h200-a.json: changed: it no longer compiles: no layout",
        "h200-a.json: same: it is not declared any more",
    ]
    found, _ = records.stale(results, {"same": lambda: "A", "changed": lambda: "B"})
    assert found == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"kernels": {"a"', "cannot be read"),
        ("[1]", "expected an object, got list"),
        ('{"kernels": {"a": "abc"}, "environment": {}}', "must hold the SHA-256"),
        ('{"kernels": ["a"], "environment": {}}', "must hold the SHA-256"),
        (f'{{"kernels": {{"a": "{"0" * 64}"}}}}', "does not say what it was measured on"),
    ],
)
def test_results_that_cannot_be_read_are_refused(results: Path, text: str, message: str) -> None:
    (results / "broken.json").write_text(text)
    with pytest.raises(BenchError, match=message):
        records.stale(results, {})


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / "one.py").write_text(
        '"""Kernels."""\nfrom tessera.bench.cuda.declarations import kernel_text\n'
        'kernel_text("same")(lambda: "A")\nkernel_text("changed")(lambda: "C")\n'
    )
    return folder


def test_the_script_lists_and_does_not_fail(results: Path, rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main = runpy.run_path(str(ROOT / "benchmarks/freshness.py"))["main"]
    assert main(results, rows) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "freshness: 1 of 2 measured kernels have changed since:"
    assert said[1].startswith("  h200-a.json: changed: measured ")


def test_the_script_fails_for_what_it_cannot_read(
    results: Path, rows: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (results / "h200-b.json").write_text("no JSON")
    main = runpy.run_path(str(ROOT / "benchmarks/freshness.py"))["main"]
    assert main(results, rows) == 1
    assert "h200-b.json cannot be read" in capsys.readouterr().err


def test_a_result_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "h200-a.json"
    records.write(path, {"kernels": {}})
    with pytest.raises(ValueError, match="JSON compliant"):
        records.write(path, {"kernels": {}, "figure": float("nan")})
    assert json.loads(path.read_text()) == {"kernels": {}}
