# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Pickles that cuda-core made, read where this package stands for it, and pickles that are made there.

``tests/clients/cuda_core_pickles.py`` made the file with cuda-core 1.2.2, and lets that read pickles of this package.
"""

from __future__ import annotations

import base64
import json
import pathlib
import pickletools
import textwrap

import pytest
from helpers import output_of

SCRIPT = pathlib.Path(__file__).parents[1] / "clients" / "cuda_core_pickles.py"
FILE = SCRIPT.with_suffix(".json")
INSTALL = "from cuda_core_cffi import install_as_cuda_core; install_as_cuda_core()\n"
RUN = INSTALL + "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')\n"
CODE = (
    b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n",
    "ptx",
    "code",
    {"first": b"k"},
)

PTX_OF_CODE = "c.ObjectCode.from_ptx(PTX, name='code', symbol_mapping={'first': b'k'})"
SHOWN = {
    "c.Device(0).compute_capability": "ComputeCapability ComputeCapability(major=",
    "c.Device(0)": "Device <Device 0",
    "c.Host()": "Host Host()",
    "c.Host(1)": "Host Host(numa_id=1)",
    "c.Host.numa_current()": "Host Host.numa_current()",
    PTX_OF_CODE: repr(CODE),
    "cuda_utils.CUDAError('CUDA_ERROR_INVALID_VALUE: text')": "CUDAError CUDAError('CUDA_ERROR_INVALID_VALUE: text')",
    "cuda_utils.NVRTCError('text')": "NVRTCError NVRTCError('text')",
    "c.DeviceMemoryResourceOptions(max_size=4096)": "DeviceMemoryResourceOptions "
    "DeviceMemoryResourceOptions(ipc_enabled=False, max_size=4096)",
    "c.EventOptions(timing_enabled=True)": "EventOptions "
    "EventOptions(timing_enabled=True, blocking_sync=False, ipc_enabled=False)",
    "c.StreamOptions(nonblocking=False, priority=-1)": "StreamOptions StreamOptions(nonblocking=False, priority=-1)",
    "c.WorkqueueResourceOptions(concurrency_limit=4)": "WorkqueueResourceOptions "
    "WorkqueueResourceOptions(sharing_scope=None, concurrency_limit=4)",
    "c.ProgramOptions(arch='sm_90', define_macro=[('A', '1')])": "ProgramOptions "
    "ProgramOptions(name='default_program', arch='sm_90', define_macro=[('A', '1')])",
    "next(iter(typing.SourceCodeType))": "SourceCodeType <SourceCodeType.CXX: 'c++'>",
}


@pytest.fixture(scope="module")
def read() -> dict[str, str]:
    """Return what each pickle of cuda-core is read as, by expression and protocol."""
    lines = output_of(RUN, str(SCRIPT), "read", str(FILE)).splitlines()
    return dict(line.split("\t") for line in lines)


def test_every_pickle_is_read(read):
    made = json.loads(FILE.read_text())
    assert set(read) == {f"{expression} {protocol}" for expression, pickles in made.items() for protocol in pickles}
    assert len(read) > 150


@pytest.mark.parametrize("expression", SHOWN)
def test_what_is_read_is_what_was_written(read, expression):
    for protocol in (2, 4):
        assert read[f"{expression} {protocol}"].startswith(SHOWN[expression])


def test_options_that_were_read_are_used_as_others():
    code = """
        import base64, copy, json, pickle, sys
        from cuda.core import Device, Linker, LinkerOptions, Program, ProgramOptions
        from cuda.core.utils import make_program_cache_key
        made = json.load(open(sys.argv[1]))
        read = {name: pickle.loads(base64.b64decode(pickles["4"])) for name, pickles in made.items() if "(" in name}
        options = read["c.ProgramOptions(arch='sm_90', define_macro=[('A', '1')])"]
        assert options == ProgramOptions(arch="sm_90", define_macro=[("A", "1")])
        assert options.as_bytes("NVRTC", "ptx") == [b"-arch=sm_90", b"--define-macro=A=1"]
        options = read["c.LinkerOptions(arch='sm_90', link_time_optimization=True)"]
        assert options == LinkerOptions(arch="sm_90", link_time_optimization=True)
        assert options.as_bytes() == [b"-arch=sm_90", b"-lto"]
        assert vars(copy.copy(options)) == vars(options)
        assert vars(options).keys() == vars(LinkerOptions()).keys()
        for item in read.values():
            again = pickle.loads(pickle.dumps(item))
            assert again == item or type(item).__name__ in ("ObjectCode", "CUDAError", "NVRTCError"), item
        device = Device(0)
        device.set_current()
        device.create_stream(options=read["c.StreamOptions(nonblocking=False, priority=-1)"]).close()
    """
    assert output_of(INSTALL + textwrap.dedent(code), str(FILE)) == ""


def test_options_of_another_version_are_refused():
    code = """
        import pickle
        from cuda.core import StreamOptions
        from cuda.core._stream import __pyx_unpickle_StreamOptions as restore
        assert restore(StreamOptions, 0, (False, -1)) == StreamOptions(nonblocking=False, priority=-1)
        try:
            restore(StreamOptions, 0, (False, -1, 5))
        except pickle.UnpicklingError as error:
            print(error)
    """
    assert output_of(INSTALL + textwrap.dedent(code)) == (
        "StreamOptions has 2 fields, the pickle has 3: another version of cuda-core made it"
    )


def test_only_classes_of_options_have_restorers():
    code = """
        import cuda.core._stream
        for name in ("__pyx_unpickle_Stream", "__pyx_unpickle_Nothing"):
            try:
                getattr(cuda.core._stream, name)
            except AttributeError as error:
                print(error)
    """
    assert output_of(INSTALL + textwrap.dedent(code)).count("has no attribute") == 2


def test_code_from_a_file_brings_its_content(tmp_path):
    (tmp_path / "k.ptx").write_bytes(CODE[0])
    code = """
        import os, pickle, sys
        from cuda.core import Device, ObjectCode
        pickled = pickle.dumps(ObjectCode.from_ptx(sys.argv[1], symbol_mapping={"first": "k"}))
        os.remove(sys.argv[1])
        Device(0).set_current()
        read = pickle.loads(pickled)
        read.get_kernel("first").close()
        print(read.code == sys.argv[1])
    """
    assert output_of(INSTALL + textwrap.dedent(code), str(tmp_path / "k.ptx")) == "True"


def test_pickles_made_here_name_what_cuda_core_has():
    """cuda-core reads them: data classes such as the options are the exception."""
    theirs = json.loads(FILE.read_text())
    ours = json.loads(output_of(RUN, str(SCRIPT), "make"))
    known = {name for pickles in theirs.values() for name in names_in(pickles)}
    known |= {"cuda.core Device", "cuda.core Host", "cuda.core ObjectCode"}
    for expression in SHOWN:
        if "Options" not in expression:
            assert {name for name in names_in(ours[expression]) if name.startswith("cuda")} <= known
    code = [names_in({"4": made[PTX_OF_CODE]["4"]}) for made in (ours, theirs)]
    assert code[0] == code[1] == {"cuda.core._module ObjectCode._reduce_helper"}


def names_in(pickles: dict[str, str]) -> set[str]:
    """Return the globals that pickles name, as module and name."""
    found = set()
    for text in pickles.values():
        strings: list[str] = []
        for operation, argument, _ in pickletools.genops(base64.b64decode(text)):
            if operation.name == "GLOBAL":
                found.add(argument)
            elif operation.name == "STACK_GLOBAL":
                found.add(" ".join(strings[-2:]))
            elif isinstance(argument, str):
                strings.append(argument)
    return found
