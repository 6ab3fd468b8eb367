# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The scripts of tests/clients, on small packages made here."""

from __future__ import annotations

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
        env=child_environment(str(folder)),
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
