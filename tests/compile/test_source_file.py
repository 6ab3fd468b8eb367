# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The temporary file with the source of a program that has debugging information and no name."""

from __future__ import annotations

import io
import os
import pathlib
import re
import stat
import tempfile

import pytest
from helpers import collect, output_of
from injection import Lines

from cuda_core_cffi import NVRTCError, Program, ProgramOptions, UnavailableError
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY
from cuda_core_cffi.utils import InMemoryProgramCache, make_program_cache_key

SOURCE = 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }\n'
WITH_HEADER = '#include "beside.h"\nextern "C" __global__ void k(int *x) { *x = FACTOR; }\n'
ASKED = [{"debug": True}, {"lineinfo": True}, {"lineinfo": True, "name": None}, {"debug": True, "name": ""}]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Have temporary files written to a folder of the test, which is empty before and after."""
    try:
        NVRTC_LIBRARY.load()
    except UnavailableError as error:
        pytest.skip(str(error))
    found = tmp_path / "temporary files"
    found.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(found))
    yield found
    collect()
    assert list(found.iterdir()) == []


def program(source: str = SOURCE, **options: object) -> Program:
    return Program(source, "c++", ProgramOptions(arch="sm_90", **options))


def files_in(ptx: bytes) -> list[str]:
    """Return the files that PTX names in its line numbers."""
    return re.findall(r'^\s*\.file\s+\d+ "(.*)"$', ptx.decode(), re.MULTILINE)


@pytest.mark.parametrize("options", ASKED)
def test_the_source_is_in_the_file_that_the_code_names(folder, options):
    with program(**options) as made:
        code = made.compile("ptx")
        (path,) = folder.iterdir()
        assert path.suffix == ".cu"
        assert path.read_text() == SOURCE
        assert code.name == str(path)
        assert files_in(code.code) == [str(path)]


@pytest.mark.parametrize("options", [{}, {"debug": False}, {"debug": True, "name": "twice.cu"}])
def test_no_file_is_written_without_debugging_information_or_with_a_name(folder, options):
    with program(**options) as made:
        assert list(folder.iterdir()) == []
        assert made.compile("ptx").name == options.get("name", "default_program")


def test_a_cubin_has_the_lines_of_the_source(folder):
    with program("\n\n" + SOURCE, lineinfo=True) as made:
        (path,) = folder.iterdir()
        assert path.name.encode() in made.compile("cubin").code
        assert re.search(rb"\.loc\s+1 3 ", made.compile("ptx").code)


def test_only_this_user_may_read_the_file(folder):
    before = os.umask(0)
    try:
        made = program(debug=True)
    finally:
        os.umask(before)
    (path,) = folder.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.stat().st_uid == os.geteuid()
    made.close()


def test_every_program_has_a_file_of_its_own_which_all_its_compilations_name(folder):
    with program(debug=True) as one, program(debug=True) as other:
        assert len(list(folder.iterdir())) == 2
        names = [made.compile(target).name for made in (one, other) for target in ("ptx", "cubin")]
        assert names[0] == names[1] != names[2] == names[3]


def test_closing_the_program_removes_the_file(folder):
    made = program(debug=True)
    code = made.compile("ptx")
    made.close()
    assert list(folder.iterdir()) == []
    made.close()
    assert files_in(code.code)


def test_a_program_that_is_collected_removes_the_file(folder):
    made = program(debug=True)
    assert len(list(folder.iterdir())) == 1
    del made
    collect()
    assert list(folder.iterdir()) == []


def test_a_program_that_fails_leaves_no_file(folder, monkeypatch):
    def fail(*arguments: object) -> None:
        assert len(list(folder.iterdir())) == 1
        raise NVRTCError("planted")

    monkeypatch.setattr("cuda_core_cffi._compile.nvrtc.NVRTC.create", fail)
    with pytest.raises(NVRTCError, match="planted") as caught:
        program(debug=True)
    assert list(folder.iterdir()) == []  # although the traceback has the program
    assert caught.tb is not None


def test_an_exception_at_any_line_leaves_no_file(folder):
    def make_and_close(world: object) -> None:
        program(debug=True).close()

    everything = Lines(0)
    everything.run(make_and_close, None)
    for point in range(1, everything.count + 1):
        lines = Lines(point)
        lines.run(make_and_close, None)
        if list(folder.iterdir()):
            collect()
        assert list(folder.iterdir()) == [], lines.place


def test_the_file_is_removed_when_the_interpreter_ends(folder):
    found = output_of(
        """
        import pathlib, sys, tempfile
        from cuda_core_cffi import Program
        tempfile.tempdir = sys.argv[1]
        program = Program("__global__ void k() {}", "c++", {"arch": "sm_90", "debug": True})
        sys.cycle = [program]
        sys.cycle.append(sys.cycle)
        print(*pathlib.Path(sys.argv[1]).iterdir())
        """,
        str(folder),
    )
    assert found.endswith(".cu")
    assert not pathlib.Path(found).exists()


def test_a_child_of_fork_leaves_the_file_to_its_parent(folder):
    found = output_of(
        """
        import os, pathlib, sys, tempfile, warnings
        from cuda_core_cffi import Program
        tempfile.tempdir = sys.argv[1]
        program = Program("__global__ void k() {}", "c++", {"arch": "sm_90", "debug": True})
        warnings.simplefilter("ignore")  # fork() in a process with threads
        child = os.fork()
        if child == 0:
            program.close()
            sys.exit()  # which runs what is registered for the end
        os.waitpid(child, 0)
        print(len(list(pathlib.Path(sys.argv[1]).iterdir())))
        """,
        str(folder),
    )
    assert found == "1"


def test_a_file_that_is_gone_is_no_failure(folder):
    made = program(debug=True)
    for path in folder.iterdir():
        path.unlink()
    made.close()


def test_messages_name_the_file_and_its_lines(folder):
    logs = io.StringIO()
    with program("\n__global__ void k() { y = 1; }", lineinfo=True) as made:
        (path,) = folder.iterdir()
        with pytest.raises(NVRTCError, match="undefined") as caught:
            made.compile("ptx", logs=logs)
    assert f'{path}(2): error: identifier "y" is undefined' in str(caught.value)
    assert str(path) in logs.getvalue()


@pytest.mark.parametrize("place", ["temporary", "working"])
def test_headers_are_searched_in_the_working_directory_alone(folder, tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    header = (folder if place == "temporary" else tmp_path) / "beside.h"
    header.write_text("#define FACTOR 3\n")
    with program(WITH_HEADER, debug=True) as made:
        if place == "working":
            assert b".entry k(" in made.compile("ptx").code
        else:
            with pytest.raises(NVRTCError, match=r"beside\.h"):
                made.compile("ptx")
    header.unlink()


def test_where_no_file_can_be_written_the_program_is_compiled_with_a_warning(folder, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "absent"))
    with pytest.warns(RuntimeWarning, match="could not be written for debuggers") as told:
        made = program(debug=True)
    assert told[0].filename == __file__
    assert made.compile("ptx").name == "default_program"
    made.close()


@pytest.mark.parametrize("character", ['"', "\\", "\n"])
def test_a_folder_whose_name_is_not_quoted_has_no_file(folder, tmp_path, monkeypatch, character):
    other = tmp_path / f"a{character}b"
    other.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(other))
    with pytest.warns(RuntimeWarning, match="no quotes, backslashes or newlines"):
        made = program(debug=True)
    assert made.compile("cubin").name == "default_program"
    assert list(other.iterdir()) == []
    made.close()


def test_a_file_that_is_not_written_whole_is_removed(folder, monkeypatch):
    monkeypatch.setattr("cuda_core_cffi._compile.source_file._open_privately", open_full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        made = program(debug=True)
    assert made.compile("ptx").name == "default_program"
    assert list(folder.iterdir()) == []
    made.close()


def open_full(path: str, flags: int) -> int:
    """Make the file, and return a descriptor to which nothing can be written."""
    os.close(os.open(path, flags, 0o600))
    return os.open("/dev/full", os.O_WRONLY)


def test_precompiled_headers_are_made_without_a_file(folder, tmp_path):
    with program(debug=True, pch=True, pch_dir=str(tmp_path), no_source_include=True) as made:
        assert list(folder.iterdir()) == []
        assert made.compile("ptx").name == "default_program"


# Caches


def test_the_key_of_a_program_with_a_file_is_always_the_same(folder):
    keys = set()
    for _ in range(2):
        with program(debug=True):
            keys.add(make_program_cache_key(code=SOURCE, code_type="c++", options=options(), target_type="ptx"))
    assert len(keys) == 1


def options() -> ProgramOptions:
    return ProgramOptions(arch="sm_90", debug=True)


def test_code_in_a_cache_names_no_file(folder):
    with InMemoryProgramCache() as cache:
        with program(debug=True) as made:
            first = made.compile("ptx", cache=cache)
            assert made.compile("ptx").name.startswith(str(folder))
        with program(debug=True) as made:
            second = made.compile("ptx", cache=cache)
    assert first.code == second.code
    assert {first.name, second.name} == {"default_program"}
    assert all("temporary" not in path for path in files_in(first.code))
