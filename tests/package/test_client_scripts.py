# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The scripts of tests/clients, on small packages made here."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import textwrap

from helpers import LIMIT, ROOT, child_environment

CLIENTS = ROOT / "tests" / "clients"


def install(folder: pathlib.Path, name: str, files: dict[str, str]) -> None:
    """Write the files of a distribution and its metadata into a folder."""
    for file, text in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def finished(*arguments: str, folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Run Python, which imports from a folder too; return the finished process."""
    return subprocess.run(
        [sys.executable, *arguments],
        env=child_environment(str(folder), str(CLIENTS)),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


# client_imports.py


def test_names_that_a_client_imports_and_the_alias_lacks_are_listed(tmp_path):
    install(
        tmp_path,
        "client",
        {
            "client/__init__.py": """
                import cuda.core._dlpack
                from cuda.core import Device, Nothing
                from cuda.core.utils import StridedMemoryView
            """,
            "client/later.py": """
                from cuda import core
                def call():
                    try:
                        from cuda.core._utils.cuda_utils import CUDAError
                    except ImportError:
                        from cuda.core.experimental._utils.cuda_utils import CUDAError
                    import cuda.core._missing
            """,
            "client/template.py": "not Python",
        },
    )
    alias = ("-m", "cuda_core_cffi.as_cuda_core")
    done = finished(*alias, str(CLIENTS / "client_imports.py"), "--list", "client", folder=tmp_path)
    assert done.stdout.splitlines() == [
        "client 1.0: 8 names, 2 missing",
        "    missing: cuda.core Nothing (client/__init__.py)",
        "    missing: cuda.core._missing  (client/later.py)",
        "    cuda.core._dlpack ",
        "    cuda.core._missing ",
        "    cuda.core._utils.cuda_utils CUDAError",
        "    cuda.core.experimental._utils.cuda_utils CUDAError",
    ], done.stderr
    assert done.returncode == 1


def test_a_client_whose_imports_are_all_there_passes(tmp_path):
    install(tmp_path, "client", {"client.py": "from cuda.core import Device, launch"})
    alias = ("-m", "cuda_core_cffi.as_cuda_core")
    done = finished(*alias, str(CLIENTS / "client_imports.py"), "client", folder=tmp_path)
    assert (done.stdout, done.returncode) == ("client 1.0: 2 names, 0 missing\n", 0), done.stderr


def test_a_client_that_is_not_installed_is_an_error_if_named(tmp_path):
    done = finished(str(CLIENTS / "client_imports.py"), "no-such-client", folder=tmp_path)
    assert (done.stdout, done.returncode) == ("no-such-client: not installed\n", 1), done.stderr


# suites.py

PEER = {"cuda/core/__init__.py": "__version__ = 'another'\nclass Device: pass\n"}
"""Stands in the place of cuda-core, so that outcomes differ."""


def suites(folder: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the suites that are found in a folder, on the simulated driver."""
    return finished(str(CLIENTS / "suites.py"), "--jobs", "1", *arguments, folder=folder)


def test_outcomes_of_a_suite_are_compared(tmp_path):
    files = {
        "client/test_one.py": """
            import cuda.core, pytest
            def test_both(): pass
            def test_neither(): raise ValueError("wrong")
            def test_skipped(): pytest.skip("not today")
            def test_there_alone(): assert cuda.core.__version__ == "another"
            def test_here_alone(): assert cuda.core.__version__ != "another"
        """,
        "client/test_ends.py": """
            import cuda.core, os
            def test_ends():
                if cuda.core.__version__ != "another":
                    os._exit(3)
            def test_after(): pass
        """,
    }
    install(tmp_path, "client", {**PEER, **files})
    done = suites(tmp_path, "--tests", f"mine={tmp_path / 'client'}", "--json", str(tmp_path / "outcomes.json"), "mine")
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert [line.partition(": ")[0] for line in lines[:4]] == [
        "WORSE mine test_ends.py::test_after",
        "WORSE mine test_ends.py::test_ends",
        "other mine test_one.py::test_here_alone",
        "WORSE mine test_one.py::test_there_alone",
    ], done.stdout + done.stderr
    assert lines[0].endswith("not run here, passed with cuda-core")
    assert "failed here, passed with cuda-core: exit status 3" in lines[1]
    assert lines[-1].split() == ["mine", "2/3/1", "4/2/1", "4"]
    ours, theirs = json.loads((tmp_path / "outcomes.json").read_text())["mine"]
    assert ours["test_one.py::test_neither"] == theirs["test_one.py::test_neither"] == ["failed", "ValueError: wrong"]


def test_a_suite_without_a_difference_passes(tmp_path):
    install(
        tmp_path, "client", {**PEER, "client/test_one.py": "def test_both(): pass\ndef test_fails(): assert False\n"}
    )
    done = suites(tmp_path, "--tests", f"mine={tmp_path / 'client'}", "mine")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].split() == ["mine", "1/1/0", "1/1/0", "0"]


def test_tests_of_numba_cuda_run_on_numba_cuda_mlir(tmp_path):
    mlir = {
        "__init__.py": "int32 = 'of mlir'\n",
        "types.py": "",
        "cuda/__init__.py": "def stream(): return 'of mlir'\n",
        "testing/__init__.py": "import unittest\nclass NumbaCUDATestCase(unittest.TestCase): pass\n",
        "numba_cuda/__init__.py": "",
        "numba_cuda/testing.py": "def skip_on_arm(reason): return lambda test: test\n",
        "numba_cuda/core/__init__.py": "",
        "numba_cuda/core/config.py": "",
    }
    files = {f"numba_cuda_mlir/{name}": text for name, text in mlir.items()}
    tests = "numba_cuda/numba/cuda/tests"
    files |= dict.fromkeys(("numba_cuda/__init__.py", f"{tests}/__init__.py", f"{tests}/cudapy/__init__.py"), "")
    files[f"{tests}/cudapy/usecases.py"] = "from numba.cuda.core.config import ENABLE_CUDASIM\n"
    files[f"{tests}/cudapy/test_one.py"] = """
        import unittest
        from numba import cuda as numba_cuda, int32
        from numba.cuda.testing import CUDATestCase, skip_on_arm, skip_on_cudasim, skip_unless_cudasim
        from numba.cuda.tests.cudapy.usecases import ENABLE_CUDASIM
        import cuda.core
        class TestOne(CUDATestCase):
            @skip_on_cudasim("no")
            @skip_on_arm("no")
            def test_runs(self):
                self.assertEqual((numba_cuda.stream(), int32, ENABLE_CUDASIM), ("of mlir", "of mlir", False))
            @skip_unless_cudasim("no")
            def test_skipped(self): raise AssertionError
            def test_there_alone(self): self.assertEqual(cuda.core.__version__, "another")
    """
    install(tmp_path, "client", {**PEER, **files})
    done = suites(tmp_path, "numba-cuda-mlir")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("WORSE numba-cuda-mlir cudapy.test_one.TestOne.test_there_alone: failed here"), (
        done.stderr
    )
    assert lines[-1].split() == ["numba-cuda-mlir", "1/1/1", "2/0/1", "1"]


def test_examples_in_docstrings_are_a_suite(tmp_path):
    text = '''
        """Examples.

        >>> import cuda.core
        >>> np.arange(3)
        array([0, 1, 2])
        """
        import cuda.core

        def version():
            """Return the version.

            >>> version()
            'another'
            """
            return cuda.core.__version__
    '''
    install(tmp_path, "client", {**PEER, "nvmath/__init__.py": "", "nvmath/examples.py": text, "nvmath/other.py": ""})
    done = suites(tmp_path, "nvmath-python")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("WORSE nvmath-python nvmath.examples.version: failed here"), done.stdout + done.stderr
    assert lines[-1].split() == ["nvmath-python", "1/1/0", "2/0/0", "1"]


def test_a_suite_that_is_not_there_is_an_error(tmp_path):
    install(tmp_path, "client", {**PEER, "client/test_one.py": "def test_both(): pass\n"})
    done = suites(tmp_path, "--tests", f"mine={tmp_path / 'client'}", "yours")
    assert done.returncode == 2
    assert "SUITE must be one of " in done.stderr
    assert "not yours" in done.stderr


# api_differences.py


def api_differences(folder: pathlib.Path, theirs: str, ours: str) -> list[str]:
    """Return the lines that a comparison of two packages prints, which has to end with the right status."""
    install(folder, "both", {"theirs/__init__.py": theirs, "ours/__init__.py": ours, "theirs/more.py": "new = 1\n"})
    done = finished(str(CLIENTS / "api_differences.py"), "--theirs", "theirs", "--ours", "ours", folder=folder)
    lines = done.stdout.splitlines()
    assert done.returncode == (len(lines) > 1), done.stderr
    return lines


def test_names_parameters_and_enumerators_that_only_the_other_package_has(tmp_path):
    theirs = """
        import enum
        from dataclasses import dataclass
        class Missing:
            def method(self): pass
        class Mode(enum.StrEnum):
            SAME = "same"
            OTHER = "other"
            NEW = "new"
        @dataclass
        class Options:
            width: int = 1
            depth: int = 1
        class Device:
            @property
            def name(self): return ""
            @property
            def uuid(self): return ""
            def allocate(self, size, *, stream=None): pass
            def copy(self, source, target, *, batched=False): pass
            def fill(self, value, width=1): pass
            @staticmethod
            def count(kind): pass
            def private(self): pass
        def launch(stream, config, kernel): pass
        def later(a, b): pass
        _hidden = 1
    """
    ours = """
        import enum
        from dataclasses import dataclass
        class Mode(enum.StrEnum):
            SAME = "same"
            OTHER = "another"
            OURS = "ours"
        @dataclass
        class Options:
            width: int = 1
        class Device:
            name = None
            def allocate(self, size, stream): pass
            def copy(self, target, source, **options): pass
            def fill(self, value, width=1, *, ours=None): pass
            @staticmethod
            def count(kind=None): pass
            def private(self): pass
        def launch(stream, config, kernel, *, ours): pass
        def later(b, *, a): pass
    """
    *found, total = api_differences(tmp_path, theirs, ours)
    assert found == [
        "Device.allocate: parameter 'stream' is required",
        "Device.copy: parameters in the order target, source, not source, target, batched",
        "Device.uuid: missing",
        "Missing: missing",
        "Mode.NEW: missing",
        "Mode.OTHER: 'another', not 'other'",
        "Options(): no parameter 'depth'",
        "later: parameters in the order b, a, not a, b",
        "launch: parameter 'ours' is required",
        "more.new: missing",
    ]
    assert total.endswith(" public names of theirs: 10 differences")


def test_two_packages_with_the_same_api_do_not_differ(tmp_path):
    assert api_differences(tmp_path, "def f(a, b=1): pass\n", "def f(a, b=2, c=3): pass\nmore = 1\n")[-1:] == [
        "2 public names of theirs: 1 differences"  # the module
    ]
