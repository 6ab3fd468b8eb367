# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Programs in PTX, assembled by the driver, where there is no nvJitLink."""

from __future__ import annotations

import io

import numpy as np
import pytest
from helpers import in_thread, linked_by_the_driver, output_of

from cuda_core_cffi import (
    CUDAError,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    LinkerError,
    Program,
    ProgramOptions,
    ffi,
    launch,
)
from cuda_core_cffi._core.libraries import NVJITLINK_LIBRARY
from cuda_core_cffi.typing import CompilerBackendType
from cuda_core_cffi.utils import InMemoryProgramCache, make_program_cache_key

TWICE = """
.version 8.0
.target sm_52
.address_size 64
.visible .entry twice(.param .u64 x)
{
    .reg .b64 %at<2>;
    .reg .f32 %value<3>;
    ld.param.u64 %at1, [x];
    ld.global.f32 %value1, [%at1];
    add.f32 %value2, %value1, %value1;
    st.global.f32 [%at1], %value2;
    ret;
}
"""


@pytest.fixture(autouse=True)
def by_the_driver(device):
    """Assemble with the driver."""
    with linked_by_the_driver():
        yield


def test_the_kernel_runs(stream):
    with (
        Program(TWICE, "ptx", ProgramOptions(name="twice.ptx")) as program,
        program.compile("cubin") as code,
        LegacyPinnedMemoryResource().allocate(4) as buffer,
    ):
        array = np.asarray(buffer).view(np.float32)
        array[:] = 1.5
        launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("twice"), buffer)
        stream.sync()
        assert array.tolist() == [3.0]
        assert (code.code_type, code.name) == ("cubin", "twice.ptx")


def test_the_backend_is_the_driver():
    program = Program(TWICE, "ptx")
    assert program.backend is CompilerBackendType.DRIVER
    assert repr(program) == "<Program backend='driver'>"
    assert ffi.typeof(program.cdata) is ffi.typeof("CUlinkState")
    assert program.handle != 0


def test_a_program_is_assembled_again():
    program = Program(TWICE, "ptx")
    assert program.compile("cubin").code
    assert program.compile("cubin").code


def test_an_error_has_the_log():
    logs = io.StringIO()
    with pytest.raises(LinkerError, match=r"'twice\.ptx', 'ptx'") as caught:
        Program(TWICE.replace("}", ""), "ptx", ProgramOptions(name="twice.ptx")).compile("cubin", logs=logs)
    assert logs.getvalue()
    assert logs.getvalue().rstrip() in str(caught.value)


def test_an_option_that_only_nvjitlink_has_is_refused():
    with pytest.raises(ValueError, match="the driver's linker has no option ptxas_options"):
        Program(TWICE, "ptx", ProgramOptions(ptxas_options="-v"))


def test_without_a_context_nothing_can_be_assembled():
    def make() -> None:
        with pytest.raises(CUDAError, match=r"set_current\(\)"):
            Program(TWICE, "ptx", ProgramOptions(arch="sm_90"))

    in_thread(make)


def test_times_go_to_logs():
    logs = io.StringIO()
    Program(TWICE, "ptx", ProgramOptions(time="-")).compile("cubin", logs=logs)
    assert "time" in logs.getvalue()


def test_code_is_assembled_once(monkeypatch):
    cache = InMemoryProgramCache()
    code = Program(TWICE, "ptx").compile("cubin", cache=cache).code
    monkeypatch.setattr("cuda_core_cffi._compile.ptx.PTX.compile", None)  # whoever assembles now fails
    assert Program(TWICE, "ptx").compile("cubin", cache=cache).code == code


def test_the_architecture_of_the_device_is_in_the_key(monkeypatch):
    keys = set()
    for arch in ("sm_80", "sm_90"):
        monkeypatch.setattr("cuda_core_cffi._compile.ptx.current_architecture", lambda arch=arch: arch)
        keys.add(make_program_cache_key(code=TWICE, code_type="ptx", options=ProgramOptions(), target_type="cubin"))
    assert len(keys) == 2


def test_whoever_makes_the_program_is_warned(device):
    code = f"""
        import warnings
        from cuda_core_cffi import Device, Program
        Device(0).set_current()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            program = Program({TWICE!r}, "ptx")
        print([(item.category.__name__, item.filename) for item in caught], program.backend)
        print(str(caught[0].message))
        assert program.compile("cubin").code
    """
    output = output_of(code, **{NVJITLINK_LIBRARY.variable: "/no/such/file"})
    assert output.startswith("[('RuntimeWarning', '<string>')] driver\nthe driver links, because nvJitLink cannot: ")
    assert "/no/such/file" in output
