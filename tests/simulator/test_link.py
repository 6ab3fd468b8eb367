# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

"""The driver's linker: PTX texts that become one image."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import ModuleType

import pytest
from sim_driver import Driver, byref, c_int, c_size_t, c_void_p, run_alone
from sim_kernels import CUBIN, FATBIN, HEADER

CUBIN_INPUT, PTX, FATBINARY, OBJECT, LIBRARY, NVVM = range(6)
WALL_TIME, INFO_LOG, INFO_SIZE, ERROR_LOG, ERROR_SIZE, TARGET_FROM_CONTEXT, TARGET = 2, 3, 4, 5, 6, 8, 9

FUNCTION = """
.func (.param .b32 r) own(.param .b32 a) {
    .reg .b32 x;
    ld.param.b32 x, [a];
    mul.lo.s32 x, x, %d;
    st.param.b32 [r], x;
    ret;
}
.visible .func (.param .b32 r) scale(.param .b32 a) {
    .reg .b32 x;
    ld.param.b32 x, [a];
    { .param .b32 p; .param .b32 q;
      st.param.b32 [p], x; call.uni (q), own, (p); ld.param.b32 x, [q]; }
    st.param.b32 [r], x;
    ret;
}
"""
KERNEL = """
.extern .func (.param .b32 r) scale(.param .b32 a);
.extern .global .align 4 .b32 offsets[];
.func (.param .b32 r) own(.param .b32 a) { st.param.b32 [r], 1000; ret; }
.visible .entry k(.param .u64 out)
{
    .reg .u64 p;
    .reg .b32 x, y;
    ld.param.u64 p, [out];
    ld.global.b32 x, [p];
    { .param .b32 a; .param .b32 b;
      st.param.b32 [a], x; call.uni (b), scale, (a); ld.param.b32 x, [b]; }
    { .param .b32 a; .param .b32 b;
      st.param.b32 [a], x; call.uni (b), own, (a); ld.param.b32 y, [b]; }
    add.s32 x, x, y;
    ld.global.b32 y, [offsets + 4];
    add.s32 x, x, y;
    st.global.b32 [p], x;
    ret;
}
"""
VARIABLE = ".visible .global .align 4 .b32 offsets[2] = {100, 200};\n"


def text(*parts: str) -> bytes:
    return HEADER + "".join(parts).encode() + b"\0"


FUNCTION_TEXT, KERNEL_TEXT, VARIABLE_TEXT = text(FUNCTION % 3), text(KERNEL), text(VARIABLE)


class Link:
    """A link with its logs, through the driver's own functions."""

    def __init__(self, cu: Driver, size: int = 2048) -> None:
        self.cu = cu
        self.error = ctypes.create_string_buffer(size)
        self.info = ctypes.create_string_buffer(size)
        self.options = (c_int * 5)(ERROR_LOG, ERROR_SIZE, INFO_LOG, INFO_SIZE, WALL_TIME)
        self.values = (c_void_p * 5)(ctypes.addressof(self.error), size, ctypes.addressof(self.info), size)
        self.state = c_void_p()
        cu.cuLinkCreate_v2(5, self.options, self.values, byref(self.state))

    def add(self, data: bytes, kind: int = PTX, name: bytes | None = b"input") -> str:
        return self.cu.status("cuLinkAddData_v2", self.state, kind, data, c_size_t(len(data)), name, 0, None, None)

    def complete(self) -> tuple[str, bytes]:
        image, size = c_void_p(), c_size_t()
        status = self.cu.status("cuLinkComplete", self.state, byref(image), byref(size))
        return status, ctypes.string_at(image.value, size.value) if image.value else b""

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        self.cu.cuLinkDestroy(self.state)


def linked(cu: Driver, *texts: bytes) -> bytes:
    with Link(cu) as link:
        for data in texts:
            assert link.add(data) == "SUCCESS", link.error.value
        status, image = link.complete()
        assert status == "SUCCESS", link.error.value
    return image


def result_of(cu: Driver, image: bytes, value: int = 7) -> int:
    """Run the kernel on one number."""
    module = cu.out(c_void_p, "cuModuleLoadData", image)
    function = cu.out(c_void_p, "cuModuleGetFunction", module, b"k")
    memory = cu.alloc(4)
    cu.cuMemsetD32_v2(memory, value, c_size_t(1))
    cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, (c_void_p * 1)(ctypes.addressof(memory)), None)
    result = int.from_bytes(cu.read(memory, 4), "little", signed=True)
    cu.cuMemFree_v2(memory)
    cu.cuModuleUnload(module)
    return result


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_a_kernel_calls_a_function_and_reads_a_variable_of_other_texts(cu: Driver, order: tuple[int, ...]) -> None:
    texts = [FUNCTION_TEXT, KERNEL_TEXT, VARIABLE_TEXT]
    # each text's own function `own` is its own: 7 * 3 in one, 1000 in the other
    assert result_of(cu, linked(cu, *(texts[i] for i in order))) == 7 * 3 + 1000 + 200


def test_a_caller_may_declare_a_result_that_a_function_of_another_text_does_not_have(cu: Driver) -> None:
    head = b".version 7.3\n.target sm_75\n.address_size 64\n"
    stores = b".visible .func f(.param .b64 p) { .reg .b64 a; ld.param.u64 a, [p]; st.u32 [a], 42; ret; }\n"
    calls = b"""
        .extern .func (.param .b32 r) f(.param .b64 p);
        .visible .entry k(.param .u64 p)
        {
            .reg .b64 %rd<2>; .reg .b32 %r<2>;
            ld.param.u64 %rd1, [p];
            { .param .b64 a; .param .b32 r; st.param.b64 [a], %rd1; call.uni (r), f, (a); ld.param.b32 %r1, [r]; }
            ret;
        }
    """
    assert result_of(cu, linked(cu, head + stores, head + calls)) == 42


def test_a_library_is_loaded_from_the_image_too(cu: Driver) -> None:
    image = linked(cu, FUNCTION_TEXT, KERNEL_TEXT, VARIABLE_TEXT)
    library = cu.out(c_void_p, "cuLibraryLoadData", image, None, None, 0, None, None, 0)
    assert cu.out(c_void_p, "cuLibraryGetKernel", library, b"k")
    assert cu.out(c_void_p, "cuLibraryGetGlobal", None, library, b"offsets").value
    cu.cuLibraryUnload(library)


def test_the_image_is_an_elf_file_for_a_gpu(cu: Driver) -> None:
    image = linked(cu, FUNCTION_TEXT)
    assert image[:4] == b"\x7fELF"
    assert int.from_bytes(image[18:20], "little") == 190


def test_an_image_can_be_linked_again(cu: Driver) -> None:
    image = linked(cu, VARIABLE_TEXT, FUNCTION_TEXT)
    with Link(cu) as link:
        assert link.add(image, CUBIN_INPUT) == "SUCCESS"
        assert link.add(KERNEL_TEXT) == "SUCCESS"
        status, whole = link.complete()
    assert status == "SUCCESS"
    assert result_of(cu, whole) == 7 * 3 + 1000 + 200


def test_an_image_that_is_cut_short_is_refused(cu: Driver) -> None:
    image = linked(cu, FUNCTION_TEXT)
    with Link(cu) as link:
        for size in (4, 63, 64, 191, len(image) - 1):
            assert link.add(image[:size], CUBIN_INPUT) in ("INVALID_IMAGE", "NO_BINARY_FOR_GPU")


def test_one_definition_gives_way_if_it_is_weak(cu: Driver) -> None:
    weak = text((FUNCTION % 5).replace(".visible", ".weak"), VARIABLE.replace(".visible", ".weak").replace("200", "1"))
    strong = text(FUNCTION % 3, VARIABLE)
    for texts in ((weak, strong, KERNEL_TEXT), (strong, weak, KERNEL_TEXT)):
        assert result_of(cu, linked(cu, *texts)) == 7 * 3 + 1000 + 200
    assert result_of(cu, linked(cu, weak, weak, KERNEL_TEXT)) == 7 * 5 + 1000 + 1


def test_variables_that_are_a_texts_own_are_kept_apart(cu: Driver) -> None:
    own = ".global .align 4 .b32 secret = %d;\n.visible .global .align 8 .u64 %s = secret;\n"
    read = """
    .extern .global .align 8 .u64 first;
    .extern .global .align 8 .u64 second;
    .visible .entry k(.param .u64 out) {
        .reg .u64 p, a;
        .reg .b32 x, y;
        ld.param.u64 p, [out];
        ld.global.u64 a, [first];
        ld.global.b32 x, [a];
        ld.global.u64 a, [second];
        ld.global.b32 y, [a];
        mad.lo.s32 x, x, 100, y;
        st.global.b32 [p], x;
        ret;
    }"""
    image = linked(cu, text(own % (3, "first")), text(own % (4, "second")), text(read))
    assert result_of(cu, image) == 304


@pytest.mark.parametrize("kind", [CUBIN_INPUT, FATBINARY, OBJECT, LIBRARY, NVVM])
@pytest.mark.parametrize("data", [CUBIN, FATBIN, b"anything"])
def test_only_ptx_is_linked(cu: Driver, kind: int, data: bytes) -> None:
    with Link(cu) as link:
        assert link.add(data, kind) == "NO_BINARY_FOR_GPU"
        assert b"input: the simulated driver links PTX" in link.error.value


def test_broken_ptx_is_refused_when_it_is_added_and_the_log_says_where(cu: Driver) -> None:
    with Link(cu) as link:
        assert link.add(HEADER + b".visible .entry k( { ret; }\0", name=b"broken.ptx") == "INVALID_PTX"
        assert link.error.value.startswith(b"broken.ptx: line 4")
        assert link.values[1] == len(link.error.value)
        assert link.add(b"no PTX at all\0") == "INVALID_PTX"
        assert link.add(b".version 99.0\n.target sm_52\n\0") == "UNSUPPORTED_PTX_VERSION"
        assert link.error.value.count(b"\n") == 3
        assert link.add(FUNCTION_TEXT) == "SUCCESS"
        assert link.complete()[0] == "SUCCESS"


def test_a_text_does_not_define_what_it_declares_as_another_s(cu: Driver) -> None:
    extern = ".extern .func (.param .b32 r) scale(.param .b32 a);\n"
    with Link(cu) as link:
        assert link.add(text(extern, FUNCTION % 3)) == "INVALID_PTX"
        assert b"function 'scale' is declared as .extern in the text that defines it" in link.error.value
        assert link.add(text(FUNCTION % 3, extern)) == "SUCCESS"


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ((KERNEL_TEXT, VARIABLE_TEXT), b"unresolved extern function 'scale'"),
        ((KERNEL_TEXT, FUNCTION_TEXT), b"unresolved extern variable 'offsets'"),
        ((FUNCTION_TEXT, FUNCTION_TEXT), b"function 'scale' is defined twice"),
        ((VARIABLE_TEXT, VARIABLE_TEXT), b"'offsets' is defined twice"),
        ((FUNCTION_TEXT, text(".visible .global .b32 scale;")), b"'scale' is declared twice"),
    ],
)
def test_what_does_not_fit_together_is_an_error_that_names_it(
    cu: Driver, texts: tuple[bytes, ...], said: bytes
) -> None:
    with Link(cu) as link:
        for data in texts:
            assert link.add(data) == "SUCCESS"
        assert link.complete() == ("UNKNOWN", b"")
        assert said in link.error.value


def test_a_log_is_cut_at_the_size_of_its_buffer(cu: Driver) -> None:
    with Link(cu, size=10) as link:
        for _ in range(3):
            assert link.add(b"no PTX", name=b"first") == "INVALID_PTX"
        assert link.error.value == b"first: li"
        assert link.values[1] == 9


def test_the_time_is_counted(cu: Driver) -> None:
    with Link(cu) as link:
        link.add(FUNCTION_TEXT)
        link.complete()
        assert (
            0 < ctypes.c_float.from_address(ctypes.addressof(link.values) + 4 * ctypes.sizeof(c_void_p)).value < 60_000
        )


def test_wrong_arguments_are_refused(cu: Driver) -> None:
    with Link(cu) as link:
        size = c_size_t(len(FUNCTION_TEXT))
        assert cu.status("cuLinkAddData_v2", link.state, PTX, None, size, None, 0, None, None) == "INVALID_VALUE"
        assert cu.status("cuLinkAddData_v2", link.state, 6, FUNCTION_TEXT, size, None, 0, None, None) == "INVALID_VALUE"
        assert link.add(b"") == "INVALID_VALUE"
        assert cu.status("cuLinkComplete", link.state, None, None) == "INVALID_VALUE"
        assert link.complete()[0] == "INVALID_VALUE"  # there is nothing in it
        for option in (WALL_TIME, INFO_LOG, ERROR_LOG, TARGET_FROM_CONTEXT, TARGET, 10_000):
            arguments = (link.state, PTX, FUNCTION_TEXT, size, None, 1, (c_int * 1)(option), (c_void_p * 1)())
            assert cu.status("cuLinkAddData_v2", *arguments) == "INVALID_VALUE"
        assert link.add(FUNCTION_TEXT, name=None) == "SUCCESS"
        assert link.complete()[0] == "SUCCESS"
        assert link.complete()[0] == "SUCCESS"
        assert link.add(VARIABLE_TEXT) == "INVALID_VALUE"
    assert cu.status("cuLinkCreate_v2", 0, None, None, None) == "INVALID_VALUE"
    assert cu.status("cuLinkCreate_v2", 1, None, None, byref(c_void_p())) == "INVALID_VALUE"


def test_a_link_that_is_gone_is_an_invalid_handle(cu: Driver) -> None:
    link = Link(cu)
    cu.cuLinkDestroy(link.state)
    assert cu.status("cuLinkDestroy", link.state) == "INVALID_HANDLE"
    assert link.add(FUNCTION_TEXT) == "INVALID_HANDLE"
    assert link.complete()[0] == "INVALID_HANDLE"


def test_files_are_added(cu: Driver, tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.ptx" for i in range(3)]
    for path, data in zip(paths, (FUNCTION_TEXT, KERNEL_TEXT, VARIABLE_TEXT), strict=True):
        path.write_bytes(data.rstrip(b"\0"))
    with Link(cu) as link:
        for path in paths:
            cu.cuLinkAddFile_v2(link.state, PTX, str(path).encode(), 0, None, None)
        missing = str(tmp_path / "missing").encode()
        assert cu.status("cuLinkAddFile_v2", link.state, PTX, missing, 0, None, None) == "FILE_NOT_FOUND"
        status, image = link.complete()
    assert status == "SUCCESS"
    assert result_of(cu, image) == 7 * 3 + 1000 + 200


def test_a_context_must_be_current(driver: Driver) -> None:
    assert driver.status("cuLinkCreate_v2", 0, None, None, byref(c_void_p())) == "INVALID_CONTEXT"


def test_links_are_counted(cu: Driver, sim: ModuleType) -> None:
    before = sim.live()["links"].number
    with Link(cu) as link:
        link.add(FUNCTION_TEXT)
        assert sim.live()["links"].number == before + 1
    assert sim.live()["links"].number == before


def test_a_link_that_is_never_destroyed_is_reported_at_exit() -> None:
    printed = run_alone(
        """
        cu.start()
        cu.cuLinkCreate_v2(0, None, None, byref(c_void_p()))
        """,
        CUDA_SIM_REPORT="stderr",
    )
    assert "1 links never destroyed" in printed
