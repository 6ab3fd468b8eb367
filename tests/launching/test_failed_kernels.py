# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that fail on the simulated driver: the exception describes the access and its place."""

from __future__ import annotations

import re

import pytest
from helpers import output_of

pytestmark = pytest.mark.simulator_only("drivers do not say which access of a kernel failed")

RUN = """
    import sys
    from cuda_core_cffi import CUDAError, Device, LaunchConfig, ObjectCode, Program, ProgramOptions, launch
    device = Device()
    device.set_current()
    stream = device.create_stream()
    buffer = device.allocate(1024, stream=stream)

    def run(kernel, *arguments, block=128):
        launch(stream, LaunchConfig(grid=4, block=block), kernel, *arguments)
        stream.sync()

    def compiled(source, **options):
        return Program(source, "c++", ProgramOptions(**options)).compile("ptx").get_kernel("k")

    def from_ptx(body):
        text = ".version 8.0\\n.target sm_90\\n.address_size 64\\n" + body
        return ObjectCode.from_ptx(text.encode()).get_kernel("k")
"""
OVERRUN = """
    # line 3 of the source has the access
    SOURCE = '''extern "C" __global__ void k(int *p) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      p[i] = 1;
    }'''
"""


def messages(code: str, **environment: str) -> tuple[str, str]:
    """Return the message and the driver's log of the CUDAError that code raises in a new process."""
    script = RUN + code + "\n    print(error, error.driver_log, sep=chr(10))"
    message, log = output_of(script, **environment).splitlines()
    return message, log


def caught(statement: str) -> str:
    return f"""
    try:
        {statement}
    except CUDAError as caught:
        error = caught
"""


@pytest.mark.usefixtures("nvrtc")
def test_the_exception_has_the_place_of_an_access_out_of_bounds() -> None:
    message, log = messages(OVERRUN + caught("run(compiled(SOURCE, lineinfo=True), buffer)"))
    assert re.search(
        r"kernel k: write of 4 bytes at global address (0x\w+), .*block \(2, 0, 0\), thread \(\d+, 0, 0\).*:3; PTX "
        r"line \d+: 'st\.global\.\w+ .*'.* is \d+ bytes? after the nearest allocation; "
        r"the allocation \[0x\w+, 1024 bytes\]",
        message,
    )
    assert log in message
    assert "kernel k" in log
    assert "compute-sanitizer" not in message
    assert "lineinfo" not in message


@pytest.mark.usefixtures("nvrtc")
def test_without_line_information_the_exception_says_how_to_get_it() -> None:
    message, _ = messages(OVERRUN + caught("run(compiled(SOURCE), buffer)"))
    assert re.search(
        r"PTX line \d+: 'st\.global\.\w+ .*'; compile with lineinfo=True for the line of your source", message
    )


@pytest.mark.usefixtures("nvrtc")
def test_a_line_that_was_inlined_comes_with_the_line_that_called_it() -> None:
    source = """
    SOURCE = '''__device__ void store(int *p) {
      *p = 1;
    }
    extern "C" __global__ void k(int *p) {
      store(p + 1000);
    }'''
    """
    message, _ = messages(source + caught("run(compiled(SOURCE, lineinfo=True), buffer)"))
    assert re.search(r":2, inlined at \S+:5; PTX line", message)


STORE = """
.visible .entry k(.param .u64 p) {
.reg .b64 %rd<2>;
ld.param.u64 %rd1, [p];
st.global.u32 [%rd1], 7;
ret;
}
"""


def test_the_exception_says_by_how_much_an_access_missed() -> None:
    code = f"STORE = {STORE!r}"
    ahead, _ = messages("    " + code + caught("run(from_ptx(STORE), int(buffer.handle) - 8)"))
    assert "the address is 8 bytes before the nearest allocation; the allocation [0x" in ahead
    behind, _ = messages("    " + code + caught("run(from_ptx(STORE), int(buffer.handle) + 1024)"))
    assert "the address is 1 byte after the nearest allocation; the allocation [0x" in behind
    null, _ = messages("    " + code + caught("run(from_ptx(STORE), 16)"))
    assert "the address is next to the null pointer" in null


def test_every_call_that_fails_afterwards_says_why() -> None:
    first = f"    STORE = {STORE!r}" + caught("run(from_ptx(STORE), 16)")
    message, _ = messages(first + caught("device.sync()"))
    assert message.startswith("cuCtxSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS (700)")
    assert "kernel k: write of 4 bytes" in message


def test_a_line_number_of_another_function_is_not_taken() -> None:
    text = '.func other()\n{\n.loc 1 99 0\nret;\n}\n.file 1 "other.cu"\n' + STORE
    message, _ = messages(f"    TEXT = {text!r}" + caught("run(from_ptx(TEXT), 16)"))
    assert "other.cu" not in message
    assert "PTX line" in message


def test_an_unknown_instruction_is_named() -> None:
    text = ".visible .entry k() {\n.reg .b32 %r<2>;\nldu.global.u32 %r1, [0];\nret;\n}\n"
    text = text.replace("ldu.global.u32 %r1, [0]", "vadd4.u32.u32.u32 %r1, %r1, %r1, %r1")
    message, _ = messages(f"    TEXT = {text!r}" + caught("run(from_ptx(TEXT))"))
    assert "kernel k: the simulator does not know this instruction" in message
    assert "'vadd4.u32.u32.u32 %r1, %r1, %r1, %r1'" in message


def test_a_kernel_in_a_graph_is_named_as_well() -> None:
    code = f"""
    from cuda_core_cffi.graph import GraphDefinition
    STORE = {STORE!r}
    graph = GraphDefinition()
    graph.launch(LaunchConfig(grid=1, block=1), from_ptx(STORE), 16)
    graph.instantiate().launch(stream)
    """
    message, _ = messages(code + caught("stream.sync()"))
    assert "kernel k: write of 4 bytes at global address 0x10" in message


def test_a_driver_without_a_log_names_where_the_report_is() -> None:
    code = f"    STORE = {STORE!r}" + caught("run(from_ptx(STORE), 16)")
    message, log = messages(code, CUDA_SIM_DRIVER_VERSION="12080")
    assert log == "None"
    assert "simulator.reports()" in message
