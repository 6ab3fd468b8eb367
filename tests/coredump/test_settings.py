# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Core dumps. They are turned on, and settings of the process changed, in processes of their own."""

from __future__ import annotations

import pathlib

import pytest
from helpers import output_of, run_python

from cuda_core_cffi import CUDAError
from cuda_core_cffi.coredump import CoreDumpSettings
from cuda_core_cffi.typing import CoreDumpPartType

SET = """
import glob, os, sys
from cuda_core_cffi import CUDAError, Device, LaunchConfig, ObjectCode, launch
from cuda_core_cffi.coredump import CoreDumpSettings
settings = CoreDumpSettings()
"""
FAIL = """
PTX = b".version 7.0\\n.target sm_60\\n.address_size 64\\n.visible .entry trapped() { trap; }\\n"
device = Device()
device.set_current()
stream = device.create_stream()
kernel = ObjectCode.from_ptx(PTX).get_kernel("trapped")
def fail():
    launch(stream, LaunchConfig(grid=1, block=1), kernel)
    try:
        stream.sync()
    except CUDAError as error:
        print(error.name)
def written(folder):
    return [(os.path.basename(path), open(path, "rb").read(4)) for path in glob.glob(f"{folder}/*")]
"""
QUICKLY = "os._exit(0)  # a context that failed is not cleaned up\n"


@pytest.fixture
def of_context(device):
    """Return the settings of a context, of which all but on_exception are put back afterwards."""
    settings = CoreDumpSettings(device.context)
    before = settings.file, settings.omitted, settings.aborts
    yield settings
    settings.file, settings.omitted, settings.aborts = before


def test_a_context_begins_with_nothing_turned_on(of_context):
    assert not of_context.on_exception
    assert of_context.omitted == frozenset()
    assert of_context.aborts
    assert of_context.context is not None
    assert repr(of_context).startswith("<CoreDumpSettings of <Context")


def test_the_file_of_a_context_is_read_as_it_was_set(of_context, tmp_path):
    of_context.file = tmp_path / "core"
    assert of_context.file == str(tmp_path / "core")
    of_context.file = b"/tmp/\xff"
    assert of_context.file == "/tmp/\udcff"
    of_context.file = ""
    assert of_context.file == ""


def test_core_dumps_of_a_context_are_turned_on_and_off():
    code = """
Device().set_current()
own = CoreDumpSettings(Device().context)
for on in (True, False):
    own.on_exception = on
    print(own.on_exception, settings.on_exception)
"""
    assert output_of(SET + code).splitlines() == ["True False", "False False"]


@pytest.mark.parametrize("part", CoreDumpPartType)
def test_parts_are_left_out_one_by_one(of_context, part):
    of_context.aborts = False
    of_context.omitted = {part}
    assert of_context.omitted == {part}
    assert not of_context.aborts
    of_context.aborts = True
    assert of_context.omitted == {part}


def test_all_parts_are_left_out_by_their_strings(of_context):
    of_context.omitted = [str(part) for part in CoreDumpPartType]
    assert of_context.omitted == set(CoreDumpPartType)
    of_context.omitted = ()
    assert of_context.omitted == frozenset()


def test_settings_of_a_context_are_of_this_context_only(device, of_context):
    of_context.file = "/tmp/elsewhere"
    assert CoreDumpSettings().file != "/tmp/elsewhere"
    assert CoreDumpSettings(device.context).file == "/tmp/elsewhere"


@pytest.mark.parametrize("name", ["on_request", "pipe"])
def test_only_the_process_has_a_pipe(of_context, name):
    with pytest.raises(AttributeError, match="only the process has"):
        getattr(of_context, name)
    with pytest.raises(AttributeError, match="only the process has"):
        setattr(of_context, name, getattr(CoreDumpSettings(), name))


@pytest.mark.parametrize(
    ("name", "value", "error", "text"),
    [
        ("on_exception", 1, TypeError, "on_exception must be a bool, not int"),
        ("aborts", None, TypeError, "aborts must be a bool"),
        ("file", 1, TypeError, "file must be a path, not int"),
        ("file", "a\0b", ValueError, "NUL"),
        ("file", "x" * 1024, ValueError, "at most 1023 bytes, not 1024"),
        ("omitted", "code", TypeError, "iterable of parts, not str"),
        ("omitted", 1, TypeError, "iterable of parts, not int"),
        ("omitted", ["registers"], ValueError, "a part must be one of 'code', "),
    ],
)
def test_what_no_setting_can_be_is_refused(of_context, name, value, error, text):
    before = of_context.file, of_context.omitted
    with pytest.raises(error, match=text):
        setattr(of_context, name, value)
    assert (of_context.file, of_context.omitted) == before


def test_paths_may_have_1023_bytes(of_context):
    of_context.file = "x" * 1023
    assert of_context.file == "x" * 1023


def test_the_context_must_be_one_that_is_open(device):
    with pytest.raises(TypeError, match="context must be a Context or None, not Device"):
        CoreDumpSettings(device)
    context = device.context
    context.close()
    with pytest.raises(RuntimeError, match="Context is closed"):
        CoreDumpSettings(context).on_exception  # noqa: B018
    with pytest.raises(RuntimeError, match="Context is closed"):
        CoreDumpSettings(context).on_exception = True


# --- The process ----------------------------------------------------------------------------------------------


def test_settings_of_the_process_are_where_contexts_begin():
    code = """
settings.file = "/tmp/core.%p.%h"
settings.omitted = ["code", "local_memory"]
settings.on_exception = True
settings.aborts = False
print(settings.file.startswith(f"/tmp/core.{os.getpid()}."), "%" in settings.file)
Device().set_current()
own = CoreDumpSettings(Device().context)
print(own.on_exception, own.aborts, own.file == settings.file, own.omitted == settings.omitted)
settings.on_exception = False
print(own.on_exception, settings.on_exception, repr(settings))
"""
    assert output_of(SET + code).splitlines() == [
        "True False",
        "True False True True",
        "True False <CoreDumpSettings of the process>",
    ]


@pytest.mark.simulator_only("only the simulated driver fails on request")
def test_a_driver_that_refuses_is_told():
    from cuda_core_cffi import simulator

    for call, use in (
        ("cuCoredumpGetAttributeGlobal", lambda settings: settings.file),
        ("cuCoredumpSetAttributeGlobal", lambda settings: setattr(settings, "on_exception", False)),
    ):
        with simulator.fail(call, "CUDA_ERROR_NOT_PERMITTED"), pytest.raises(CUDAError, match=call):
            use(CoreDumpSettings())


@pytest.mark.simulator_only("only there the version of the driver can be chosen")
def test_older_drivers_have_no_core_dumps():
    code = """
for use in (lambda: settings.file, lambda: setattr(settings, "file", "")):
    try:
        use()
    except CUDAError as error:
        print(type(error).__name__, "12.1" in str(error))
"""
    assert output_of(SET + code, CUDA_SIM_DRIVER_VERSION="12000").splitlines() == ["UnavailableError True"] * 2


def test_a_kernel_that_fails_leaves_a_file(tmp_path):
    code = """
settings.file = sys.argv[1] + "/core.%p"
settings.omitted = ["code", "global_memory", "shared_memory", "local_memory", "constant_memory"]
settings.aborts = False
settings.on_exception = True
"""
    end = "fail()\nprint(written(sys.argv[1]) == [(f'core.{os.getpid()}', b'\\x7fELF')], flush=True)\n"
    done = run_python(SET + code + FAIL + end + QUICKLY, str(tmp_path))
    assert done.stdout.splitlines()[-2:] == ["CUDA_ERROR_LAUNCH_FAILED", "True"], done.stderr


def test_the_process_is_aborted_after_a_core_dump(tmp_path):
    code = 'settings.file = sys.argv[1] + "/core"\nsettings.on_exception = True\n'
    done = run_python(SET + code + FAIL + "fail()\n" + QUICKLY, str(tmp_path))
    assert done.returncode < 0
    assert [path.name for path in pathlib.Path(tmp_path).iterdir()] == ["core"]


def test_without_being_asked_nothing_is_written(tmp_path):
    code = 'settings.file = sys.argv[1] + "/core"\n'
    done = run_python(SET + code + FAIL + "fail()\nprint(written(sys.argv[1]), flush=True)\n" + QUICKLY, str(tmp_path))
    assert done.stdout.splitlines() == ["CUDA_ERROR_LAUNCH_FAILED", "[]"], done.stderr
