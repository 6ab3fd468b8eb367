# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmarks: what they plan, keep, compute, print and draw. How long anything takes is no test."""

from __future__ import annotations

import importlib.util
import itertools
import json
import pathlib
import subprocess
import sys
import zipfile
from unittest import mock

import pytest
from helpers import output_of, run_python

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks"
# not through the search path, on which the source tree would hide the installed package
SPEC = importlib.util.spec_from_file_location(
    "benchmarks", FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)]
)
assert SPEC is not None
sys.modules["benchmarks"] = importlib.util.module_from_spec(SPEC)

from benchmarks import chart, clib, instructions, libraries, objects, rows, size, timing, workbench  # noqa: E402
from benchmarks.process import run_worker  # noqa: E402
from benchmarks.results import Results, title  # noqa: E402
from benchmarks.run import IMPLEMENTATIONS, has, main, plan, processes  # noqa: E402
from benchmarks.table import render  # noqa: E402
from benchmarks.timing import PROFILES, spread  # noqa: E402

MACHINE = {"cpu": "a processor", "cores": 2, "gpu": "a GPU", "driver": "1.0", "system": "Linux"}
ABOUT = {"python": "CPython 3", "versions": {"a": "1"}, "cuda": 13000, "device": "a GPU", "engine": "a timer"}


def task(row: str, size: int | None = None, *parts: str) -> dict[str, object]:
    return {"row": row, "parts": parts or (row,), "size": size}


@pytest.fixture
def results(tmp_path):
    made = Results(tmp_path / "results.json")
    made.begin("quick", MACHINE)
    return made


@pytest.fixture
def measured(results):
    """Results of two rows, an import, sizes and threads."""
    for name, scale in (("c", 1), ("ours", 2), ("peer", 4), ("pypy", 1)):
        results.describe(name, ABOUT)
        results.add(name, task("event record"), {"event record": [90.0 * scale, 100.0 * scale, 110.0 * scale]})
        for count in (2, 16, 1):
            figures = {rows.THREADS[0].name: [3000.0 * count / scale]}
            results.add(name, task(rows.THREADS[0].name, count, rows.THREADS[0].name), figures)
    results.add("ours", task("Device(0)"), {"Device(0)": [25.0]})
    results.add("peer", task("Device(0)"), {"Device(0)": [100.0]})
    results.add("ours", task("import"), {"import": [6e7], "resident memory after import": [2e7]})
    return results


class TestPlan:
    def test_every_row_has_one_name(self):
        names = [row.name for row in rows.ROWS]
        assert len(names) == len(set(names))

    def test_everything_is_planned_once(self):
        found = [(one["row"], one["size"]) for one in plan("", False, False)]
        assert len(found) == len(set(found))
        wanted = {item.name for item in (*rows.ROWS, *rows.GROWTH, rows.FRESH, rows.PACKED)}
        assert {name for name, _ in found} == wanted

    def test_growth_goes_as_far_as_the_documentation_says(self):
        found = plan("", False, False)
        largest = {name: max(one["size"] for one in found if one["row"] == name) for name in
                   (rows.LIVE.name, rows.GRAPHS.name, rows.THREADS[0].name)}  # fmt: skip
        assert list(largest.values()) == [1_000_000, 100_000, 16]

    def test_rows_that_load_other_libraries_come_last(self):
        names = [one["row"] for one in plan("", False, False)]
        foreign = {row.name for row in rows.ROWS if row.foreign}
        assert set(names[-len(foreign) :]) == foreign

    def test_a_part_of_something_is_found_by_its_name(self):
        assert [one["row"] for one in plan("^wheel size$", False, False)] == [rows.PACKED.name]

    def test_instructions_are_those_of_calls_not_of_growth(self):
        assert all(one["size"] is None for one in plan("", True, True))

    def test_instructions_need_the_simulated_driver(self):
        with pytest.raises(ValueError, match="--simulator"):
            plan("", False, True)

    def test_a_pattern_without_rows_is_told(self, tmp_path):
        with pytest.raises(SystemExit, match="matches no row"):
            main(["--only", "no such row", "--output", str(tmp_path / "x.json")])

    @pytest.mark.parametrize("rounds", ["0", "-1", "many"])
    def test_a_number_of_rounds_that_is_none_is_told(self, tmp_path, rounds, capsys):
        with pytest.raises(SystemExit):
            main(["--rounds", rounds, "--output", str(tmp_path / "x.json")])
        assert "--rounds" in capsys.readouterr().err

    def test_a_row_is_measured_in_as_many_rounds_as_asked_for(self, tmp_path):
        output = tmp_path / "x.json"
        command = ["--simulator", "--quick", "--rounds", "3", "--only", "^event record$", "--implementations", "ours"]
        assert main([*command, "--output", str(output)]) == 0
        data = json.loads(output.read_text())
        assert data["profile"] == "quick, 3 rounds"
        assert [len(values) for values in data["rows"]["event record"]["ours"]] == [3, 3, 3]

    def test_no_other_round_begins_after_the_time_is_over_and_the_next_command_goes_on(
        self, tmp_path, monkeypatch, capsys
    ):
        output = tmp_path / "x.json"
        command = ["--simulator", "--quick", "--only", "^event record$", "--implementations", "ours"]
        for limit, rounds in ((0, 1), (3600, 2)):
            monkeypatch.setitem(PROFILES, "quick", PROFILES["quick"]._replace(limit=limit))
            assert main([*command, "--output", str(output)]) == 0
            assert len(json.loads(output.read_text())["rows"]["event record"]["ours"]) == rounds
            assert ("no time for more rounds" in capsys.readouterr().err) == (limit == 0)

    def test_an_implementation_that_does_not_exist_is_told(self, tmp_path):
        with pytest.raises(SystemExit, match="no 'rust' among ours, peer"):
            main(["--simulator", "--implementations", "ours,rust", "--output", str(tmp_path / "x.json")])

    @pytest.mark.parametrize(
        ("implementation", "there", "missing"),
        [
            ("c", "event record", "Device(0)"),
            ("peer", "event record", "prepared launch, 4 arguments"),
            ("peer", "threads: launch, 4 arguments", "threads: batch of 100 launches"),
            ("cupy", "launch, 512 arguments", "StridedMemoryView of a NumPy array"),
            ("torch", "live buffers", "graph nodes"),
            ("c", "import", "size"),
        ],
    )
    def test_nobody_is_asked_for_what_it_does_not_have(self, implementation, there, missing):
        assert has(implementation, task(there))
        assert not has(implementation, task(missing))

    def test_this_package_has_everything(self):
        assert all(has(name, one) for one in plan("", False, False) for name in ("ours", "pypy", "threaded"))


class TestStatements:
    def test_every_row_runs_here(self, tmp_path):
        """Once, on the driver that the tests run on, in a process that gives everything back by ending."""
        run = """
            import pathlib, sys
            sys.path.append(sys.argv[1])
            import cuda_core_cffi
            from benchmarks.growth import measure_growth
            from benchmarks.rows import GROWTH, ROWS
            from benchmarks.workbench import Workbench
            bench = Workbench(cuda_core_cffi, pathlib.Path(sys.argv[2]))
            done = 0
            for row in ROWS:
                if not row.foreign:
                    bench.loop(row)(1)
                    bench.drain()
                    done += 1
            for series in GROWTH:
                figures = measure_growth(bench, series, series.sizes[1], 0.001)
                assert all(value > 0 for values in figures.values() for value in values), figures
                assert set(figures) <= set(series.parts), figures
            print(done)
        """
        done = int(output_of(run, str(ROOT), str(tmp_path)))
        assert done == len([row for row in rows.ROWS if not row.foreign])

    @pytest.mark.parametrize("name", [row.name for row in rows.ROWS if row.foreign])
    def test_every_row_of_another_library_runs_where_that_is(self, name, tmp_path):
        run = """
            import pathlib, sys
            sys.path.append(sys.argv[1])
            import cuda_core_cffi
            from benchmarks.rows import find_row
            from benchmarks.workbench import Absent, Workbench
            bench = Workbench(cuda_core_cffi, pathlib.Path(sys.argv[2]))
            try:
                bench.loop(find_row(sys.argv[3]))(1)
            except Absent as absent:
                print(f"absent: {absent}")
            else:
                bench.drain()
                print("done")
        """
        done = run_python(run, str(ROOT), str(tmp_path), name)
        if done.stdout.startswith("absent: "):
            pytest.skip(done.stdout.strip())
        assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr  # others may print warnings there

    def test_rows_of_other_libraries_have_processes_of_their_own(self):
        tasks = [task(row.name) for row in rows.ROWS]
        first, *others = processes(tasks)
        assert [one["row"] for one in first] == [row.name for row in rows.ROWS if not row.foreign]
        assert [[row.name] for row in rows.ROWS if row.foreign] == [[one["row"] for one in group] for group in others]
        assert processes(tasks[:1]) == [tasks[:1]]
        assert processes([]) == []

    @pytest.mark.parametrize("name", ["cupy", "torch", "pynvml"])
    def test_other_libraries_have_the_names_in_their_statements(self, name, tmp_path, monkeypatch):
        table, bench = {
            "cupy": (libraries.CUPY, libraries.CuPyBench),
            "torch": (libraries.TORCH, libraries.TorchBench),
            "pynvml": (libraries.PYNVML, libraries.PynvmlBench),
        }[name]
        (tmp_path / "kernels.cubin").write_bytes(b"")
        for module in (workbench, libraries):
            monkeypatch.setattr(module, "foreign_module", mock.MagicMock())
        monkeypatch.setenv("CUDA_CORE_CFFI_DRIVER", "system")
        made = bench(mock.MagicMock(), tmp_path)
        assert set(table) <= {row.name for row in rows.ROWS}
        for row in rows.ROWS:
            if row.name in table:
                assert made.loop(row)(1) >= 0
        if name == "pynvml":  # has no buffers
            return
        live = [None]
        made.fill_live(live)
        assert live != [None]
        made.empty_live(live)
        assert live == [None]

    def test_the_c_loop_has_the_functions_of_the_rows(self):
        source = (FOLDER / "limits.c").read_text()
        missing = [row.c for row in rows.ROWS if row.c and f"ROW({row.c}," not in source]
        assert missing == []
        assert {rows.find_row(series.row).c for series in rows.THREADS} == set(clib.WORK)

    def test_the_c_loop_compiles(self, tmp_path):
        compiler, header = clib.find_compiler(), clib.find_header()
        if not (compiler and header):
            pytest.skip("no C compiler, or no cuda.h")
        clib.build_limits(compiler, header, tmp_path)
        assert clib.load_limits(tmp_path).limits_failed() == 0


class TestResults:
    def test_what_is_there_is_not_measured_again(self, results, tmp_path):
        one = task("fill 1 KiB")
        assert results.wants("ours", one, 1)
        results.add("ours", one, {"fill 1 KiB": [1.0]})
        again = Results(tmp_path / "results.json")
        again.begin("quick", MACHINE)
        assert (again.wants("ours", one, 1), again.wants("ours", one, 2), again.wants("peer", one, 1)) == (0, 1, 1)

    def test_something_with_parts_is_there_when_one_part_is(self, results):
        """The others are what the implementation does not have."""
        one = task("graph nodes", 10, "graph nodes: define", "graph nodes: launch")
        results.add("cupy", one, {"graph nodes: launch": [1.0]})
        assert not results.wants("cupy", one, 1)
        assert results.wants("cupy", {**one, "size": 100}, 1)
        assert results.data["growth"] == {"graph nodes: launch": {"10": {"cupy": [[1.0]]}}}

    @pytest.mark.parametrize("kind", ["fail", "leave_out"])
    def test_what_went_wrong_is_tried_again_by_the_next_command_only(self, results, kind, tmp_path):
        one = task("fill 1 KiB")
        getattr(results, kind)("ours", one, "why")
        assert not results.wants("ours", one, 1)
        again = Results(tmp_path / "results.json")
        again.begin("quick", MACHINE)
        assert again.wants("ours", one, 1)

    @pytest.mark.parametrize("change", [{"profile": "full"}, {"machine": {**MACHINE, "gpu": "another"}}])
    def test_results_of_something_else_are_refused(self, results, change, tmp_path):
        results.save()
        begun = {"profile": "quick", "machine": MACHINE} | change
        with pytest.raises(ValueError, match=r"has another (profile|machine), .*--fresh"):
            Results(tmp_path / "results.json").begin(**begun)

    def test_another_version_is_refused(self, results):
        results.describe("ours", ABOUT)
        with pytest.raises(ValueError, match="results of another ours"):
            results.describe("ours", {**ABOUT, "versions": {"a": "2"}})

    @pytest.mark.parametrize("content", ["[]", '{"format": 1}'])
    def test_a_file_of_another_kind_is_refused(self, tmp_path, content):
        (tmp_path / "x.json").write_text(content)
        with pytest.raises(ValueError, match="no results file"):
            Results(tmp_path / "x.json")

    def test_the_file_says_what_was_measured(self, measured, tmp_path):
        data = json.loads((tmp_path / "results.json").read_text())
        assert (data["machine"], data["profile"], data["implementations"]["peer"]) == (MACHINE, "quick", ABOUT)
        assert data["date"].endswith("+00:00")

    def test_a_size_is_in_the_name_of_a_task(self):
        assert (title(task("live buffers", 1000)), title(task("import"))) == ("live buffers, 1,000", "import")


class TestBackToBack:
    @pytest.mark.parametrize(
        ("nanoseconds", "launches", "calls"), [(1000, 1, 5000), (100_000, 1, 500), (2000, 100, 50), (1, 10_000, 1)]
    )
    def test_many_calls_and_one_synchronisation_are_timed_and_the_best_counts(
        self, monkeypatch, nanoseconds, launches, calls
    ):
        made, drains = [], []

        def loop(count):
            made.append(count)
            return count * nanoseconds * len(made) / 1e9

        def drain():
            drains.append(len(made))

        clock = itertools.cycle([10.0, 10.0 + calls * 1e-9])  # a nanosecond for each call
        monkeypatch.setattr(timing, "perf_counter", clock.__next__)
        found = timing.measure_back_to_back(loop, drain, launches)
        assert made == [max(max(5000 // launches, 1) // 10, 1), *[calls] * 7]
        assert drains == [drained for turn in range(8) for drained in (turn, turn + 1)]
        assert found == [2 * nanoseconds + 1]  # the second run is the best of those that count


class TestTable:
    def test_a_line_has_the_medians_the_ratios_and_the_largest_spread(self, measured):
        found = next(line for line in render(measured.data).splitlines() if line.startswith("event record"))
        figures = ["100", "200", "2.00", "400", "0.50", "100", "1.00", "10.0%"]
        assert found.removeprefix("event record").split() == figures

    def test_columns_that_nobody_has_are_left_out(self, measured):
        head = next(line for line in render(measured.data).splitlines() if line.startswith("nanoseconds per call"))
        assert head.split()[4:] == ["c", "ours", "ours/c", "peer", "ours/peer", "pypy", "pypy/c", "spread"]

    def test_what_is_not_there_is_a_dash(self, measured):
        found = next(line for line in render(measured.data).splitlines() if line.startswith("Device(0)"))
        assert found.split() == ["Device(0)", "-", "25.0", "-", "100", "0.25", "-", "-", "-"]

    def test_the_geometric_mean_is_of_rows_that_both_have(self, measured):
        measured.add("ours", task("set_current"), {"set_current": [5.0]})
        assert "geometric mean of ours/peer over 2 rows: 0.354" in render(measured.data)

    def test_the_second_form_of_a_row_has_its_own_section_and_mean(self, measured):
        for name, figure in (("c", 50.0), ("ours", 60.0), ("peer", 120.0)):
            measured.add(name, task("event record"), {"event record, back to back": [figure, figure]})
        lines = render(measured.data).splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("nanoseconds per call, back to back"))
        assert lines[start + 1].split() == ["event", "record", "50.0", "60.0", "1.20", "120", "0.50", "-", "-", "0.0%"]
        assert "geometric mean of ours/peer over 1 rows, back to back: 0.500 (below 1: ours is better)" in lines
        assert any("over 2 rows: 0.354" in line for line in lines)

    def test_threads_are_in_order(self, measured):
        lines = [line.split()[4:7] for line in render(measured.data).splitlines() if line.startswith("threads: ")]
        assert lines == [["x1", "3.0", "1.5"], ["x2", "6.0", "3.0"], ["x16", "48.0", "24.0"]]

    def test_imports_are_milliseconds_and_memory_megabytes(self, measured):
        text = render(measured.data)
        assert "\nmilliseconds " in text
        assert "\nmegabytes " in text
        figures = {line.split("  ")[0]: line.split()[-7] for line in text.splitlines() if line.startswith(("im", "re"))}
        assert figures == {"import": "60.0", "resident memory after import": "20.0"}

    def test_counts_are_called_instructions(self, measured):
        measured.data["profile"] = "quick, instructions"
        text = render(measured.data)
        assert "instructions per call" in text
        assert "million instructions" in text
        assert "nanoseconds per call" not in text

    def test_what_failed_and_what_was_not_there_is_told(self, measured):
        measured.fail("peer", task("fill 1 KiB"), "it broke\nhere")
        measured.leave_out("ours", task("DLPack to NumPy"), "no module numpy")
        text = render(measured.data)
        assert "failed in peer: fill 1 KiB (it broke)" in text
        assert "left out in ours: DLPack to NumPy (no module numpy)" in text

    def test_nothing_is_a_table_too(self, results):
        assert "a processor" in render(results.data)

    def test_values_that_are_all_nothing_have_no_spread(self):
        assert spread([0.0, 0.0]) == 0


class TestChart:
    def test_bars_are_the_medians_of_the_rows(self, measured):
        assert chart.bars(measured.data) == [
            ("event record", {"c": 100.0, "ours": 200.0, "peer": 400.0, "pypy": 100.0}),
            ("Device(0)", {"ours": 25.0, "peer": 100.0}),
        ]

    def test_curves_go_up_with_the_threads(self, measured):
        ((row, lines),) = chart.curves(measured.data)
        assert row == "launch, 4 arguments"
        assert lines["ours"] == [(1, 1.5), (2, 3.0), (16, 24.0)]

    def test_every_implementation_has_a_name_a_colour_and_a_marker(self):
        assert set(chart.COLOURS) == set(chart.NAMES) == set(chart.MARKERS) == set(IMPLEMENTATIONS)

    @pytest.mark.parametrize("page", ["#ffffff", "#0d1117"])
    def test_colours_stand_out_from_light_and_dark_pages(self, page):
        """As the web's accessibility guidelines ask of graphics: three to one."""
        contrasts = {colour: contrast(colour, page) for colour in {chart.INK, *chart.COLOURS.values()}}
        assert min(contrasts.values()) >= 3, contrasts

    def test_the_chart_is_one_small_picture(self, measured, tmp_path):
        pytest.importorskip("matplotlib")
        assert main(["chart", str(tmp_path / "results.json"), str(tmp_path / "x.svg")]) == 0
        text = (tmp_path / "x.svg").read_text()
        assert ("event record" in text, "<svg" in text, len(text) < 200_000) == (True, True, True)
        main(["chart", str(tmp_path / "results.json"), str(tmp_path / "y.svg")])
        assert (tmp_path / "y.svg").read_text() == text

    def test_without_matplotlib_it_says_what_to_install(self, measured, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        with pytest.raises(SystemExit, match="pip install matplotlib"):
            main(["chart", str(tmp_path / "results.json"), str(tmp_path / "x.svg")])

    def test_live_objects_are_measured_in_processes_of_their_own(self, capsys, monkeypatch):
        monkeypatch.setattr(objects, "KINDS", ("event", "kernel"))
        assert main(["objects", "--simulator"]) == 0
        _, event, kernel = capsys.readouterr().out.splitlines()
        name, driver, ours = event.split()
        assert (name, 0 < int(driver) < 1000, 0 < int(ours) < 1000) == ("event", True, True)
        name, driver, ours = kernel.split()  # without a part of the driver; pages of the interpreter count
        assert (name, abs(int(driver)) < 50, 50 < int(ours) < 1000) == ("kernel", True, True)

    def test_two_packages_take_turns_in_one_process(self, capsys):
        assert main(["turns", "--peer", "cuda_core_cffi", "--only", "event query|^launch, 1 ", "--turns", "3"]) == 0
        lines = capsys.readouterr().out.splitlines()
        forms = [entry for entry in lines if entry.startswith("nanoseconds per call")]
        rows = [entry.split()[-4:] for entry in lines if entry.startswith(("event query", "launch, 1 argument"))]
        assert (len(forms), len(rows)) == (2, 4)
        for ours, peer, ratio, _ in rows:
            assert float(ours) > 0
            assert float(peer) > 0
            assert float(ratio) == pytest.approx(float(ours) / float(peer), rel=0.1)
        assert [entry.split()[5] for entry in lines[-2:]] == ["2", "2"]

    def test_growth_is_measured_in_turns(self, capsys):
        command = ["turns", "--peer", "cuda_core_cffi", "--growth", "10", "--turns", "2"]
        assert main([*command, "--only", "close|define|memory"]) == 0
        unit, *rows = capsys.readouterr().out.splitlines()
        assert unit.split()[-4:] == ["ours", "peer", "ours/peer", "spread"]
        names = ["live buffers: close x1", "live buffers: close x10", "graph nodes: define x10"]
        assert [" ".join(entry.split()[:4]) for entry in rows] == names
        for entry in rows:
            ours, peer, ratio, _ = entry.split()[-4:]
            assert float(ours) > 0
            assert float(ratio) == pytest.approx(float(ours) / float(peer), rel=0.1)

    @pytest.mark.parametrize(("size", "only"), [("10", "live buffers: memory"), ("9", "graph nodes"), ("0", "")])
    def test_turns_of_no_growth_are_refused(self, size, only):
        with pytest.raises(SystemExit, match=f"'{only}' matches no growth up to {size} that is measured in turns"):
            main(["turns", "--growth", size, "--only", only])

    def test_no_turns_are_refused(self, capsys):
        with pytest.raises(SystemExit):
            main(["turns", "--turns", "0"])
        assert "--turns must be at least 1, not 0" in capsys.readouterr().err

    def test_turns_of_no_row_are_refused(self):
        with pytest.raises(SystemExit, match="matches no row that both have"):
            main(["turns", "--only", "prepared launch"])

    def test_an_empty_file_is_not_drawn(self, results):
        pytest.importorskip("matplotlib")
        with pytest.raises(ValueError, match="no row to draw"):
            chart.draw(results.data, pathlib.Path("nowhere"))


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, from 1 to 21."""
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    """Return how light a colour is, from 0 to 1."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


class TestInstructions:
    def test_what_is_around_the_loop_drops_out(self, monkeypatch):
        counter = object.__new__(instructions.Counter)
        monkeypatch.setattr(counter, "_run", lambda loop, drain, calls: 12345 + 7 * calls)
        assert set(counter.count(float, print, 1)) == set(counter.count(float, print, 100)) == {7.0}

    def test_the_count_is_read_and_its_files_are_removed(self, tmp_path):
        for name in ("counts.2-01", "counts.2-02", "counts.1-01"):
            (tmp_path / name).write_text("events: Ir\nsummary: 1234\n\nfn=(1)\n")
        assert instructions.read_count(tmp_path / "counts.2-01") == 1234
        assert [path.name for path in tmp_path.iterdir()] == ["counts.1-01"]

    def test_a_file_without_a_count_is_told(self, tmp_path):
        (tmp_path / "counts.1-01").write_text("")
        with pytest.raises(RuntimeError, match="no summary"):
            instructions.read_count(tmp_path / "counts.1-01")

    def test_without_valgrind_it_says_what_to_install(self, monkeypatch, tmp_path):
        monkeypatch.setenv("PATH", "")
        with pytest.raises(SystemExit, match="needs valgrind"):
            main(["--simulator", "--instructions", "--output", str(tmp_path / "x.json")])

    def test_without_its_header_or_a_compiler_it_says_so(self, monkeypatch, tmp_path):
        with pytest.raises(ValueError, match="needs a C compiler"):
            instructions.build_marks(None, tmp_path)
        with pytest.raises(ValueError, match=r"valgrind/callgrind\.h"):
            instructions.build_marks("false", tmp_path)


class TestSize:
    @pytest.fixture
    def package(self, tmp_path, monkeypatch):
        """An installed package of one module, and what pip compiled."""
        (tmp_path / "mine.py").write_text("value = 1\n" * 1000)
        cache, information = tmp_path / "__pycache__", tmp_path / "mine-1.0.dist-info"
        for folder in (cache, information):
            folder.mkdir()
        (cache / "mine.pyc").write_bytes(b"0" * 1000)
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
        record = ["mine.py", "__pycache__/mine.pyc", "mine-1.0.dist-info/METADATA", "mine-1.0.dist-info/RECORD"]
        (information / "RECORD").write_text("".join(f"{name},,\n" for name in record))
        monkeypatch.syspath_prepend(str(tmp_path))
        return tmp_path

    def test_a_wheel_is_what_was_installed_compressed(self, package):
        names = ("mine.py", "mine-1.0.dist-info/METADATA", "mine-1.0.dist-info/RECORD")
        with zipfile.ZipFile(package / "wheel", "w", zipfile.ZIP_DEFLATED) as wheel:
            for name in names:
                wheel.write(package / name, name)
        assert size.measure_size("mine", str(package / "mine.py")) == {
            "installed size": [float(sum((package / name).stat().st_size for name in names))],
            "wheel size": [float((package / "wheel").stat().st_size)],
        }

    def test_what_is_huge_is_not_compressed(self, package, monkeypatch):
        monkeypatch.setattr(size, "LARGEST", 10)
        assert set(size.measure_size("mine", None)) == {"installed size"}

    def test_a_source_tree_has_no_size(self, package):
        with pytest.raises(workbench.Absent, match="is not installed"):
            size.measure_size("not-mine", None)
        with pytest.raises(workbench.Absent, match="not that of the installed mine"):
            size.measure_size("mine", __file__)


class TestCommand:
    def test_a_process_that_does_not_start_fails_its_tasks(self, results, tmp_path):
        tasks = [task("fill 1 KiB"), task("event sync")]
        run_worker("ours", "false", {}, tasks, PROFILES["quick"], tmp_path, results)
        assert list(results.data["errors"]["ours"]) == ["fill 1 KiB", "event sync"]

    def test_it_measures_prints_keeps_and_goes_on(self, tmp_path):
        output = tmp_path / "results.json"
        command = [sys.executable, str(FOLDER / "__main__.py"), "--simulator", "--quick", "--output", str(output)]
        command += ["--implementations", "ours", "--only"]
        first = subprocess.run([*command, "^event query$"], capture_output=True, text=True, check=False)
        assert first.returncode == 0, first.stderr
        assert "\nevent query " in first.stdout
        assert "SIMULATED" in first.stdout
        kept = json.loads(output.read_text())["rows"]["event query"]["ours"]
        assert [len(values) for values in kept] == [PROFILES["quick"].values] * PROFILES["quick"].rounds
        second = subprocess.run([*command, "^event (query|sync)$"], capture_output=True, text=True, check=False)
        assert "ours, 1 rows" in second.stderr
        data = json.loads(output.read_text())
        assert data["rows"]["event query"]["ours"] == kept
        names = {"event query", "event sync"}
        assert set(data["rows"]) == names | set(map(rows.back_to_back, names))
        assert [len(values) for values in data["rows"]["event sync, back to back"]["ours"]] == [1, 1]
        assert "\nnanoseconds per call, back to back " in second.stdout
        assert data["errors"] == {}
