"""Tests what people look at: the page in a real browser, the plots in it, Markdown, comparisons, and the workflow."""

from __future__ import annotations

import contextlib
import io
import random
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import made_up
import pytest
import yaml
from rich.console import Console

from browser import INSTALL, Browser
from tessera.bench.reporting import markdown, plots, tables, wording
from tessera.bench.reporting.history import History
from tessera.bench.reporting.page import page, write_page
from tessera.bench.reporting.workflow import ci_workflow
from tessera.bench.results.comparison import Change, Comparison, Verdict
from tessera.bench.results.definitions import BenchError
from tessera.bench.results.results import BenchmarkError, BenchmarkResult, BenchmarkSuiteResult
from tessera.cli.bench import bench

SECTIONS = ("latency", "speed", "roofline", "compile", "samples", "history")
ODD = "a<b>&\"'$x$ {{ 7 * 7 }} </script><img src=x onerror=console.error(1)>\0 文字"


def comparison() -> Comparison:
    def change(key: str, verdict: Verdict, percent: float | None) -> Change:
        interval = None if percent is None else (percent - 1, percent + 1)
        return Change("latency_ms", 1.0, 1.1, percent, interval, verdict, 0.001, 0.9, (40, 40), f"why|{key}", key)

    return Comparison(
        changes=(
            change("row same", Verdict.SAME, 0.1),
            change("row faster", Verdict.IMPROVEMENT, -8.0),
            change("row slower", Verdict.REGRESSION, 9.5),
            change("row unclear", Verdict.UNDECIDED, None),
        ),
        missing=("row gone",),
        new=("row new",),
        notes=("environment: cores 2 before, 4 now",),
    )


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as running:
        yield running


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with everything that a page can have."""
    folder = tmp_path_factory.mktemp("page")
    with History(folder / "runs.db") as history:
        for seed in range(5):
            history.add(made_up.suite(seed=seed, speed=1 + seed / 20), f"{seed}abcdef123")
        write_page(made_up.suite(seed=4), folder / "full.html", history=history, comparison=comparison())
    return folder / "full.html"


def is_quiet(browser: Browser, path: Path) -> None:
    """Nothing was said to the console, and nothing but the file was asked for."""
    assert browser.messages == []
    # An icon that is empty data is no request to anywhere.
    assert [address for address in browser.requests if address != "data:,"] == [path.resolve().as_uri()]


# Plots are there, with something to see in each.

LOOK = """[...document.querySelectorAll("svg.plot")].map(plot => {
    const box = plot.getBoundingClientRect();
    const seen = element => {
        const style = getComputedStyle(element), part = element.getBoundingClientRect();
        const paint = [style.fill, style.stroke].some(color => color !== "none" && color !== "rgba(0, 0, 0, 0)");
        const shown = style.visibility === "visible" && style.display !== "none";
        return shown && paint && (part.width > 0 || part.height > 0);
    };
    const marks = [...plot.querySelectorAll(".mark path, .mark use")].filter(mark => !mark.closest("defs"));
    return {
        label: plot.getAttribute("aria-label"),
        section: plot.closest("section").id,
        width: box.width, height: box.height,
        marks: marks.filter(seen).length,
        colors: [...new Set(marks.flatMap(mark => {
            const style = getComputedStyle(mark);
            return [style.fill, style.stroke].filter(color => color !== "none");
        }))],
        texts: [...plot.querySelectorAll("text")].map(text => {
            const part = text.getBoundingClientRect(), style = getComputedStyle(text);
            return {
                text: text.textContent, fill: style.fill, size: part.height,
                box: [part.left - box.left, part.top - box.top, part.right - box.left, part.bottom - box.top],
            };
        }),
    };
})"""


def overlaps(texts: list[dict[str, Any]], slack: float = 1.0) -> list[tuple[str, str]]:
    """Pairs of texts that cover each other by more than a pixel."""
    found: list[tuple[str, str]] = []
    for number, one in enumerate(texts):
        for other in texts[number + 1 :]:
            (a, b, c, d), (e, f, g, h) = one["box"], other["box"]
            if min(c, g) - max(a, e) > slack and min(d, h) - max(b, f) > slack * 3:
                found.append((one["text"], other["text"]))
    return found


@pytest.mark.quick
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("dark", [False, True])
def test_every_plot_is_seen(browser: Browser, full: Path, width: int, dark: bool) -> None:
    browser.open(full, width, dark=dark)
    seen = browser.evaluate(LOOK)
    assert {plot["section"] for plot in seen} == set(SECTIONS)
    assert len({plot["label"] for plot in seen}) == len(seen)
    for plot in seen:
        assert plot["width"] > 100, plot["label"]
        assert plot["height"] > 100, plot["label"]
        assert plot["marks"] >= 3, plot["label"]
        assert len(plot["texts"]) >= 4, plot["label"]
        assert overlaps(plot["texts"]) == [], plot["label"]
        for text in plot["texts"]:
            assert text["size"] > 6, text
            assert text["box"][0] > -2, text
            assert text["box"][2] < plot["width"] + 2, text
        if plot["section"] != "compile":
            assert len(plot["colors"]) >= 3, plot["label"]
    # No part of the page is wider than the window.
    assert browser.evaluate("document.documentElement.scrollWidth") == width
    is_quiet(browser, full)


def test_axes_say_what_they_show(browser: Browser, full: Path) -> None:
    browser.open(full)
    words = {plot["label"]: [text["text"] for text in plot["texts"]] for plot in browser.evaluate(LOOK)}
    assert {"256", "512", "1024", "length", "latency", "10 ms"} <= set(words["latency by size: flash_attention, f32"])
    assert {"f32 180 GFLOP/s", "bf16 700 GFLOP/s", "21.4 GB/s"} <= set(words["roofline: flash_attention"])
    assert {"length=256 f32", "ms"} <= set(words["compile time by stage"])
    assert {"1×", "speedup"} <= set(words["Speedup: flash_attention, f32"])
    assert {"GFLOP/s", "length"} <= set(words["Rate: flash_attention, bf16"])
    samples = words["samples in order: flash_attention, batch=1 heads=8 length=256 f32"]
    assert {"sample", "% of the row's median"} <= set(samples)
    assert "0abcdef" in words["history: flash_attention, batch=1 heads=8 length=256 f32"]


# Light and dark


def luminance(color: str) -> float:
    parts = [int(float(part)) / 255 for part in re.findall(r"[\d.]+", color)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_texts_and_lines_stand_out_from_the_ground(browser: Browser, full: Path, dark: bool) -> None:
    browser.open(full, dark=dark)
    ground = browser.evaluate('getComputedStyle(document.querySelector("figure")).backgroundColor')
    assert (luminance(ground) < 0.05) == dark
    for plot in browser.evaluate(LOOK):
        for text in plot["texts"]:
            assert contrast(text["fill"], ground) >= 4.5, (plot["label"], text)
        for color in plot["colors"]:
            if plot["section"] != "compile":
                assert contrast(color, ground) >= 3, (plot["label"], color)
    words = browser.evaluate(
        """[...document.querySelectorAll("h1, h2, h3, td, th, li, dt, dd, figcaption, small, .figure")].map(element => {
            let ground = element;
            while (getComputedStyle(ground).backgroundColor === "rgba(0, 0, 0, 0)") ground = ground.parentElement;
            return [element.textContent, getComputedStyle(element).color, getComputedStyle(ground).backgroundColor];
        })"""
    )
    assert len(words) > 100
    for text, color, behind in words:
        assert contrast(color, behind) >= 4.5, text


# What can be pressed


def column(browser: Browser, number: int) -> list[str]:
    return browser.evaluate(
        f"""[...document.querySelectorAll("table.sortable tbody tr")].map(
            row => row.cells[{number}]?.dataset.value ?? row.cells[{number}]?.textContent.trim() ?? "")"""
    )


def test_the_table_sorts_by_the_heading_that_is_pressed(browser: Browser, full: Path) -> None:
    browser.open(full)
    heading = "table.sortable th:nth-child(3)"
    assert browser.evaluate(f"document.querySelector('{heading}').textContent") == "latency"
    before = column(browser, 2)
    browser.click(f"{heading} button")
    assert browser.evaluate(f"document.querySelector('{heading}').ariaSort") == "ascending"
    rising = column(browser, 2)
    assert rising != before
    assert sorted(rising) == sorted(before)
    figures = [float(value) for value in rising[:-2]]
    assert figures == sorted(figures)
    # Rows without figures stay last.
    assert [value.split(":")[0] for value in rising[-2:]] == ["failed", "skipped"]
    browser.click(f"{heading} button")
    assert browser.evaluate(f"document.querySelector('{heading}').ariaSort") == "descending"
    falling = column(browser, 2)
    assert falling[:-2] == rising[:-2][::-1]
    assert [value.split(":")[0] for value in falling[-2:]] == ["failed", "skipped"]
    browser.click("table.sortable th:nth-child(1) button")
    lengths = [int(text.split("length=")[1].split()[0].rstrip("bf")) for text in map(_spaced, column(browser, 0))]
    assert [number for number, _ in pairwise(lengths)] == sorted(lengths)[:-1]
    is_quiet(browser, full)


def _spaced(text: str) -> str:
    """The size and the precision below it, apart."""
    return re.sub(r"(length=\d+?)(f32|bf16)$", r"\1 \2", text)


def test_the_filter_keeps_the_rows_that_have_all_words(browser: Browser, full: Path) -> None:
    browser.open(full)
    browser.evaluate(
        """(() => { const input = document.querySelector(".filter input");
        input.value = "TORCH bf16"; input.dispatchEvent(new Event("input")); })()"""
    )
    assert browser.evaluate('document.querySelector(".filter output").textContent') == "3 of 25 rows"
    shown = browser.evaluate(
        """[...document.querySelectorAll("table.sortable tbody tr")].filter(row => row.offsetHeight)
            .map(row => row.cells[1].textContent.trim())"""
    )
    assert shown == ["torch_sdpa"] * 3


def test_the_legend_highlights_an_implementation(browser: Browser, full: Path) -> None:
    browser.open(full)
    faded = """(() => { const marks = [...document.querySelectorAll("#latency .mark")];
        const of = series => marks.filter(mark => mark.dataset.series === series)
            .map(mark => Number(getComputedStyle(mark).opacity));
        return [Math.min(...of("0")), Math.max(...of("1"))]; })()"""
    browser.evaluate(
        'document.head.insertAdjacentHTML("beforeend", "<style>* { transition: none !important }</style>")'
    )
    assert browser.evaluate(faded) == [1, 1]
    browser.click('.legend button[data-series="0"]')
    own, others = browser.evaluate(faded)
    assert own == 1
    assert others < 0.3
    assert browser.evaluate("document.querySelector('.legend [aria-pressed=true]').textContent").strip() == "tessera"
    browser.click('.legend button[data-series="0"]')
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    assert browser.evaluate(faded) == [1, 1]


# Suites of every size, and names of every kind


def suites() -> dict[str, BenchmarkSuiteResult]:
    odd = BenchmarkSuiteResult(suite_start_time=made_up.START, environment={ODD: ODD, "processor": ODD})
    for number in (1, 2):
        row = made_up.result(256 * number, "f32", "tessera", random.Random(1))
        row.benchmark_name, row.implementation, row.stages_ms = ODD, ODD, {ODD: 3.0}
        row.problem_size = {ODD: number, "kind": ODD}
        row.warnings, row.unavailable = [ODD], {ODD: ODD}
        odd.add(row)
    odd.add(BenchmarkError(ODD, ODD, None, 1.0, ODD, {ODD: ODD}, ODD, ODD))
    bare = BenchmarkSuiteResult(suite_start_time=0.0, interrupted=True)
    bare.add(BenchmarkResult("b", {}, latency_ms=0.0))
    bare.add(BenchmarkResult("b", {"n": 0}, latency_ms=float("nan"), samples_ms=[0.0, 0.0], speedup=float("inf")))
    bare.add(BenchmarkResult("b", {"n": 1}, latency_ms=1.0, samples_ms=[1.0, float("inf")], flops=1.0, bytes_moved=1.0))
    several = made_up.suite((256,), ("f32",))
    several.add(BenchmarkResult("matmul", {"m": 64, "n": 64}, latency_ms=2.0, threads=1, errors=["wrong"]))
    several.add(BenchmarkResult("matmul", {"m": 64, "n": 96}, latency_ms=3.0, threads=1))
    several.add(BenchmarkResult("matmul", {"m": 96, "n": 96}, latency_ms=4.0, threads=2))
    mixed = BenchmarkSuiteResult(suite_start_time=made_up.START)
    for number in range(1, 8):
        size = {"batch_size": number, "num_heads": 8, "seq_len": 128 * number, "causal": number % 2 == 0}
        row = made_up.result(128 * number, "f32", "tessera", random.Random(number))
        row.problem_size = size
        mixed.add(row)
    return {
        "sizes of several numbers": mixed,
        "empty": BenchmarkSuiteResult(suite_start_time=made_up.START),
        "one row": made_up.suite((256,), ("f32",), ("tessera",), trouble=False),
        "only failures": made_up.suite((256,), ("f32",), ()),
        "200 rows": made_up.suite(tuple(32 * number for number in range(1, 26))),
        "odd names": odd,
        "bare figures": bare,
        "several benchmarks": several,
    }


@pytest.mark.quick(2, name=[name for name in suites() if name != "200 rows"])
@pytest.mark.parametrize("name", list(suites()))
def test_suites_of_every_kind_make_a_page(browser: Browser, name: str, tmp_path: Path) -> None:
    suite = suites()[name]
    path = tmp_path / "page.html"
    write_page(suite, path)
    for width in (1280, 400):
        browser.open(path, width)
        is_quiet(browser, path)
        assert browser.evaluate("document.documentElement.scrollWidth") == width
        assert browser.evaluate('document.querySelectorAll("table.sortable tbody tr").length') == len(suite.results)
        for plot in browser.evaluate(LOOK):
            assert plot["width"] > 100, plot["label"]
            assert plot["height"] > 100, plot["label"]
            assert plot["marks"] >= 1, plot["label"]
            assert overlaps(plot["texts"]) == [], plot["label"]
    missing = browser.evaluate('document.querySelectorAll(".sections .missing").length')
    drawn = browser.evaluate('document.querySelectorAll(".sections section:has(svg.plot)").length')
    assert missing + drawn == len(SECTIONS)
    assert drawn == {"empty": 0, "only failures": 0, "bare figures": 3, "several benchmarks": 5}.get(name, 5)


@pytest.mark.acceptance
def test_cases_whose_names_do_not_fit_are_numbered_and_listed() -> None:
    (plot,) = plots.sections(suites()["sizes of several numbers"])[0].plots
    assert plot.caption.startswith(
        "1: batch_size=1 seq_len=128 causal=False; 2: batch_size=2 seq_len=256 causal=True; "
    )
    (plot,) = plots.sections(suites()["one row"])[0].plots
    assert plot.caption == ""


def test_names_are_text_and_nothing_else(browser: Browser, tmp_path: Path) -> None:
    write_page(suites()["odd names"], tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    shown = ODD.replace("\0", "\ufffd")
    assert browser.evaluate("document.querySelector('h1').textContent") == shown
    assert shown in browser.evaluate("document.querySelector('#compile svg').textContent + document.body.textContent")


def test_equal_results_give_equal_pages() -> None:
    assert page(made_up.suite((256,), ("f32",))) == page(made_up.suite((256,), ("f32",)))


def test_a_page_has_no_address_to_load_from(full: Path) -> None:
    text = full.read_text()
    addresses = re.findall(r"""(?:src|href)\s*=\s*["']?([^"'\s>]+)|url\(([^)]+)\)""", text)
    assert addresses
    assert all((one or other).startswith(("#", "data:")) for one, other in addresses)
    assert "@import" not in text


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("jinja2", "matplotlib"):
        with monkeypatch.context() as patched:
            patched.setitem(sys.modules, module, None)
            with pytest.raises(BenchError, match=f"the page needs {module}") as raised:
                page(made_up.suite((256,), ("f32",)))
            assert "tessera-lang[bench]" in str(raised.value.hint)


def test_heavy_libraries_are_not_imported_before_they_are_needed() -> None:
    modules = ", ".join(f"tessera.bench.reporting.{name}" for name in ("exchange", "tables", "page", "markdown"))
    probe = f"import sys, {modules}; print([n for n in ('matplotlib', 'jinja2', 'scipy', 'torch') if n in sys.modules])"
    found = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_missing_browser_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(AssertionError, match="apt-get install") as raised:
        Browser()
    assert str(raised.value) == INSTALL


def test_the_browser_hears_what_goes_wrong_on_a_page(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "wrong.html"
    path.write_text(
        """<!doctype html><link rel="icon" href="data:,"><img src="missing.png">
        <script>console.warn("careful"); null.length</script>"""
    )
    browser.open(path)
    heard = "\n".join(browser.messages)
    assert "warning: careful" in heard
    assert "exception: " in heard
    assert any(address.endswith("missing.png") for address in browser.requests)
    with pytest.raises(AssertionError):
        is_quiet(browser, path)


def living(group: int) -> list[str]:
    """The processes of a group that run; those that only wait to be noticed do not."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = path.read_text().rpartition(")")
            state, _, of_group = rest.split()[:3]
            if int(of_group) == group and state not in "ZX":
                found.append(name)
    return found


def test_the_browser_ends_with_its_statement() -> None:
    running = Browser()
    with contextlib.suppress(ZeroDivisionError), running:
        assert len(living(running.process.pid)) > 1
        assert Path(running.profile).is_dir()
        raise ZeroDivisionError
    assert running.process.returncode is not None
    assert not Path(running.profile).exists()
    deadline = time.monotonic() + 60
    while living(running.process.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert living(running.process.pid) == []


def test_texts_that_cover_each_other_are_found() -> None:
    texts = [
        {"text": "a", "box": [0, 0, 20, 10]},
        {"text": "b", "box": [15, 2, 40, 12]},
        {"text": "c", "box": [42, 0, 50, 9]},
    ]
    assert overlaps(texts) == [("a", "b")]


def test_sections_without_plots_say_why() -> None:
    for section in plots.sections(BenchmarkSuiteResult()):
        assert section.plots == []
        assert section.missing


# Markdown and comparisons


def cells(text: str) -> list[list[str]]:
    """The tables of a Markdown text as GitHub reads them: split at pipes that are not escaped."""
    lines = [line for line in text.split("\n") if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_markdown_has_the_environment_and_a_table_per_case() -> None:
    text = markdown.suite_markdown(made_up.suite())
    assert "| processor | Intel(R) Xeon(R) Processor @ 2.60GHz |" in text
    assert "| memory | 23.5 GiB |" in text
    assert "| measured ceilings | memory 21.40 GB/s, f32 180.0 GFLOP/s, bf16 700.0 GFLOP/s |" in text
    assert text.count("| implementation | latency, ") == 6
    assert "- inductor failed: crash: expected rc 0, got signal 11" in text
    assert "- triton skipped: triton is not installed" in text
    assert "- note: energy_joules: unavailable (no RAPL domain at /sys/class/powercap)" in text


def test_markdown_tables_hold_together_whatever_the_names(tmp_path: Path) -> None:
    suite = BenchmarkSuiteResult(environment={"a|b": "c|d\n| e |"})
    suite.add(BenchmarkResult("x|y", {"n|": "1|2"}, implementation="i|j\\|*<b>", latency_ms=1.0))
    markdown.write_markdown(suite, tmp_path / "run.md")
    text = (tmp_path / "run.md").read_text()
    assert {len(line) for line in cells(text)} == {2, 3}
    assert cells(text)[-1][0] == r"i\|j\\\|\*&lt;b>"
    assert markdown.suite_markdown(BenchmarkSuiteResult()).startswith("# Benchmark results\n\n0 measured")


def test_comparisons_begin_with_what_asks_for_attention() -> None:
    rows = [wording.change_cells(one) for one in wording.ordered_changes(comparison())]
    assert [row[0] for row in rows] == ["row slower", "row unclear", "row faster", "row same"]
    assert rows[0] == (
        "row slower",
        "latency_ms",
        "1.000",
        "1.100",
        "+9.5 %",
        "+8.5 … +10.5 %",
        "regression",
        "why|row slower",
    )
    console = Console(file=io.StringIO(), width=80, no_color=True)
    tables.print_comparison(comparison(), console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert text.index("row slower") < text.index("row unclear") < text.index("row faster") < text.index("row same")
    for part in (
        "latency_ms: why|row slower",
        "latency_ms                 1.000     1.100   +9.5 %   +8.5 … +10.5 % regression",
        "missing in the current run: row gone",
        "not in the baseline: row new",
        "environment: cores 2 before, 4 now",
        "1 regression, 1 undecided, 1 improvement, 1 same",
    ):
        assert part in text
    tables.print_comparison(Comparison((), (), (), ()), console)
    assert console.file.getvalue().endswith("nothing to compare\n")


def test_the_page_shows_the_verdicts(browser: Browser, full: Path) -> None:
    browser.open(full)
    rows = browser.evaluate(
        """[...document.querySelectorAll("#comparison tbody tr")].map(
            row => [row.cells[0].firstChild.textContent, row.cells[6].textContent,
                row.checkVisibility({contentVisibilityAuto: true})])"""
    )
    assert rows == [
        ["row slower", "regression", True],
        ["row unclear", "undecided", True],
        ["row faster", "improvement", True],
        # What stayed the same is folded away.
        ["row same", "same", False],
    ]


# The workflow


def steps() -> list[dict[str, Any]]:
    workflow = yaml.safe_load(ci_workflow())
    # YAML 1.1 reads the key `on` as true.
    assert workflow[True] == {"pull_request": {"branches": ["main"]}, "push": {"branches": ["main"]}}
    assert set(workflow["jobs"]) == {"check", "baseline"}
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_every_command_of_the_workflow_is_one_of_ours() -> None:
    lines = [line for step in steps() for line in step.get("run", "").split("\n") if line.startswith("tessera ")]
    used = {line.split()[2] for line in lines}
    assert {"run", "check", "history"} <= used
    for line in lines:
        words = shlex.split(line)
        assert words[:2] == ["tessera", "bench"]
        command = bench.commands[words[2]]
        known = {name for option in command.params if isinstance(option, click.Option) for name in option.opts}
        assert {word for word in words if word.startswith("--")} <= known, line
    assert {"compare", "workflow"} <= set(bench.commands)


def test_the_workflow_checks_changes_keeps_the_baseline_and_uploads_the_page() -> None:
    jobs = yaml.safe_load(ci_workflow())["jobs"]
    assert "--baseline baseline/results.json" in str(jobs["check"])
    assert "pull_request" in jobs["check"]["if"]
    saved = [step for step in jobs["baseline"]["steps"] if str(step.get("uses")).startswith("actions/cache/save@")]
    restored = [step for step in jobs["check"]["steps"] if str(step.get("uses")).startswith("actions/cache/restore@")]
    assert saved[0]["with"]["path"] == restored[0]["with"]["path"]
    assert saved[0]["with"]["key"].startswith(restored[0]["with"]["restore-keys"])
    for job in jobs.values():
        uploads = [step for step in job["steps"] if str(step.get("uses")).startswith("actions/upload-artifact@")]
        assert "results.html" in uploads[0]["with"]["path"]
        assert uploads[0]["if"] == "always()"
