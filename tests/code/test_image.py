# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Code seen from outside: what is cut short or damaged is refused, what is whole tells what it is for."""

from __future__ import annotations

import shutil
import struct
import subprocess

import cuda_core_cffi._cuda
import pytest
from helpers import output_of
from mutations import fatbin_part, make_fatbin

from cuda_core_cffi import Program, UnavailableError
from cuda_core_cffi._code.carried_ptx import without_ptx
from cuda_core_cffi._code.elf import Elf
from cuda_core_cffi._code.image import architectures, contents, is_relocatable, verify
from cuda_core_cffi._compile.nvrtc import supported_archs
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY
from cuda_core_cffi.typing import ObjectCodeFormatType

SOURCE = """
__device__ int counter = 3;
__constant__ float weights[4];
namespace tables { __device__ double deep; }
__device__ __noinline__ int helper(int i) { return i * counter; }
extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2 * weights[helper(1)] + tables::deep; }
template <class T> __global__ void scale(T *x, T by) { x[threadIdx.x] *= by; }
template __global__ void scale<float>(float *, float);
"""
KERNELS = ["_Z5scaleIfEvPT_S0_", "twice"]
VARIABLES = ["_ZN6tables4deepE", "counter", "weights"]
TITLE = "object code 'it'"
PTX, CUBIN, FATBIN, LTOIR, OBJECT, LIBRARY = map(
    ObjectCodeFormatType, ["ptx", "cubin", "fatbin", "ltoir", "object", "library"]
)

# Where the header of an ELF file has what it has.
ABI, FLAGS, SEGMENTS, SECTIONS = 8, 48, 32, 40
SEGMENT_SIZE, SEGMENT_COUNT, SECTION_SIZE, SECTION_COUNT, NAMES = 54, 56, 58, 60, 62


def need_nvrtc():
    """Skip without a compiler."""
    try:
        NVRTC_LIBRARY.version()
    except UnavailableError as error:
        pytest.skip(str(error))


def compile_to(target, **options):
    """Compile the source, or skip without a compiler."""
    need_nvrtc()
    return Program(SOURCE, "c++", {"arch": "sm_90", **options}).compile(target).code


@pytest.fixture(scope="module")
def cubin():
    """Return a cubin, alone."""
    return without_ptx(compile_to("cubin"))


@pytest.fixture(scope="module")
def relocatable():
    """Return a cubin that was made to be linked."""
    return compile_to("cubin", relocatable_device_code=True)


@pytest.fixture(scope="module")
def ptx():
    """Return PTX."""
    return compile_to("ptx")


@pytest.fixture(scope="module")
def fatbin(cubin, ptx):
    """Return a fat binary with a cubin and PTX in it."""
    return make_fatbin(fatbin_part(2, 90, cubin), fatbin_part(1, 90, ptx))


def make_archive(*members: bytes) -> bytes:
    """Return a library as ``ar`` makes it."""
    data = b"!<arch>\n"
    for index, member in enumerate(members):
        data += f"{index}.o/".ljust(48).encode() + str(len(member)).ljust(10).encode() + b"`\n" + member
        data += b"\n" * (len(member) % 2)
    return data


@pytest.fixture(scope="module")
def host_object():
    """Return code for the host's processor."""
    with open(cuda_core_cffi._cuda.__file__, "rb") as file:
        return file.read()


def accepts(data: bytes, code_type: ObjectCodeFormatType) -> bool:
    """Tell whether code passes; when it does not, the message must say whose it is."""
    try:
        verify(data, code_type, TITLE)
    except ValueError as error:
        if str(error).startswith(f"{TITLE} is "):
            return False
        raise
    return True


def patched(data: bytes, offset: int, value: int, size: int) -> bytes:
    """Return code with a number changed."""
    return data[:offset] + value.to_bytes(size, "little") + data[offset + size :]


# What is cut short


@pytest.mark.parametrize("name", ["cubin", "relocatable"])
def test_every_cubin_that_is_cut_short_is_refused(name, request):
    data = request.getfixturevalue(name)
    assert accepts(data, CUBIN)
    assert not [size for size in range(len(data)) if accepts(data[:size], CUBIN)]


def test_every_fatbin_that_is_cut_short_is_refused(fatbin):
    assert accepts(fatbin, FATBIN)
    assert not [size for size in range(len(fatbin)) if accepts(fatbin[:size], FATBIN)]


def test_what_follows_code_does_not_matter(cubin, fatbin):
    assert accepts(cubin + b"more", CUBIN)
    assert accepts(fatbin + b"more", FATBIN)


def test_an_object_that_is_cut_short_is_refused(host_object):
    assert accepts(host_object, OBJECT)
    assert not [size for size in range(0, len(host_object), 997) if accepts(host_object[:size], OBJECT)]


def test_a_library_that_is_cut_short_within_a_member_is_refused(cubin):
    library = make_archive(cubin, b"odd", b"even")
    borders = [8, 8 + 60 + len(cubin), 8 + 60 + len(cubin) + 60 + 3, 8 + 60 + len(cubin) + 60 + 4]
    assert accepts(library, LIBRARY)
    assert [size for size in range(len(library)) if accepts(library[:size], LIBRARY)] == borders


def test_a_cubin_that_is_cut_short_says_what_is_missing(cubin):
    with pytest.raises(ValueError, match=rf"is a damaged cubin: it is cut short: .* but there are {len(cubin) - 1}"):
        verify(cubin[:-1], CUBIN, TITLE)


# What is damaged


@pytest.mark.parametrize(
    ("offset", "size", "value"),
    [
        (4, 1, 1),  # 32 bits
        (5, 1, 2),  # high bytes first
        (SEGMENTS, 8, 2**64 - 1),
        (SEGMENT_SIZE, 2, 8),
        (SEGMENT_COUNT, 2, 2**16 - 1),
        (SECTIONS, 8, 0),
        (SECTIONS, 8, 2**63),
        (SECTION_SIZE, 2, 0),
        (SECTION_COUNT, 2, 2**15),
        (NAMES, 2, 0),
        (NAMES, 2, 2**15),
        (NAMES, 2, 2**16 - 1),
    ],
)
def test_a_cubin_with_a_damaged_header_is_refused(cubin, offset, size, value):
    with pytest.raises(ValueError, match="is a damaged cubin"):
        verify(patched(cubin, offset, value, size), CUBIN, TITLE)


def test_a_cubin_with_a_damaged_section_is_refused(cubin):
    start, count = struct.unpack_from("<Q", cubin, SECTIONS)[0], struct.unpack_from("<H", cubin, SECTION_COUNT)[0]
    for section in range(1, count):
        where = start + 64 * section
        if struct.unpack_from("<I", cubin, where + 4)[0] != 8:  # it takes room in the file
            assert not accepts(patched(cubin, where + 24, len(cubin) + 1, 8), CUBIN)
            assert not accepts(patched(cubin, where + 32, 2**40, 8), CUBIN)
        assert not accepts(patched(cubin, where, 2**31, 4), CUBIN)  # its name


def test_the_first_section_counts_for_nothing(cubin):
    first = struct.unpack_from("<Q", cubin, SECTIONS)[0]
    table = patched(patched(patched(cubin, first + 4, 2, 4), first + 24, len(cubin) - 25, 8), first + 32, 2400, 8)
    assert contents(patched(table, first + 40, 2, 4), CUBIN) == contents(cubin, CUBIN)
    names = patched(patched(patched(cubin, first + 4, 3, 4), first + 24, 2**40, 8), first + 32, 100, 8)
    assert not accepts(patched(names, NAMES, 0, 2), CUBIN)


def test_a_cubin_with_a_damaged_segment_is_refused(cubin):
    start, count = struct.unpack_from("<Q", cubin, SEGMENTS)[0], struct.unpack_from("<H", cubin, SEGMENT_COUNT)[0]
    assert count
    for segment in range(count):
        assert not accepts(patched(cubin, start + 56 * segment + 8, 2**50, 8), CUBIN)


def test_a_segment_needs_room_for_its_description(cubin):
    damaged = patched(patched(cubin, SEGMENT_SIZE, 8, 2), SEGMENT_COUNT, 1, 2)
    with pytest.raises(ValueError, match="its header gives 8 bytes to a segment's description"):
        verify(patched(damaged, SEGMENTS, len(cubin) - 8, 8), CUBIN, TITLE)


def test_a_cubin_of_very_many_sections_counts_them_elsewhere(cubin):
    start, count = struct.unpack_from("<Q", cubin, SECTIONS)[0], struct.unpack_from("<H", cubin, SECTION_COUNT)[0]
    many = patched(patched(cubin, SECTION_COUNT, 0, 2), start + 32, count, 8)
    assert accepts(many, CUBIN)
    assert contents(many, CUBIN) == contents(cubin, CUBIN)
    assert not accepts(patched(many, start + 32, 2**58, 8), CUBIN)


def test_damage_that_leaves_the_sizes_right_ends_in_fewer_symbols(cubin):
    for at in range(64, len(cubin), 7):
        damaged = patched(cubin, at, cubin[at] ^ 0xFF, 1)
        if accepts(damaged, CUBIN):
            contents(damaged, CUBIN)


@pytest.mark.parametrize(
    ("offset", "size", "value"), [(6, 2, 15), (8, 8, 2**63), (16 + 4, 4, 63), (16 + 4, 4, 2**31), (16 + 8, 8, 2**63)]
)
def test_a_fatbin_with_a_damaged_header_is_refused(fatbin, offset, size, value):
    with pytest.raises(ValueError, match="is a damaged fatbin"):
        verify(patched(fatbin, offset, value, size), FATBIN, TITLE)


def test_a_fatbin_without_code_is_refused():
    with pytest.raises(ValueError, match="is a damaged fatbin: there is no code in it"):
        verify(make_fatbin(), FATBIN, TITLE)


def test_a_fatbin_with_a_damaged_cubin_is_refused(cubin):
    damaged = patched(cubin, SECTIONS, 2**40, 8)
    with pytest.raises(ValueError, match="is a damaged fatbin: part 1, a cubin, is damaged: it is cut short"):
        verify(make_fatbin(fatbin_part(2, 90, cubin), fatbin_part(2, 80, damaged)), FATBIN, TITLE)


def test_ptx_ends_at_its_first_nul(ptx):
    assert accepts(ptx + b"\0\0", PTX)
    with pytest.raises(ValueError, match="is damaged PTX: byte 100 is NUL"):
        verify(ptx[:100] + b"\0" + ptx[100:], PTX, TITLE)


@pytest.mark.parametrize("data", [b"!<arch>\nno header", b"!<arch>\n" + b"0".ljust(48) + b"12x".ljust(10) + b"`\n"])
def test_a_library_with_a_damaged_member_is_refused(data):
    with pytest.raises(ValueError, match="is a damaged library of relocatable objects: at byte 8"):
        verify(data, LIBRARY, TITLE)


# What is something else


def test_code_of_another_type_is_named(cubin, ptx, fatbin, host_object):
    given = {PTX: ptx, CUBIN: cubin, FATBIN: fatbin, OBJECT: host_object, LIBRARY: make_archive(cubin)}
    for actual, data in given.items():
        for code_type in ObjectCodeFormatType:
            if code_type is actual or (actual, code_type) == (CUBIN, OBJECT):  # both are ELF, for a GPU
                assert accepts(data, code_type)
            else:
                with pytest.raises(ValueError, match=rf"{TITLE} is .*, not .*: use from_{actual}$"):
                    verify(data, code_type, TITLE)


@pytest.mark.parametrize("code_type", [CUBIN, FATBIN, PTX, OBJECT, LIBRARY])
def test_what_begins_like_nothing_known_is_refused(code_type):
    with pytest.raises(ValueError, match=r"is not .*: it begins with b'noise"):
        verify(b"noise" * 100, code_type, TITLE)


def test_lto_ir_may_begin_with_anything_else():
    assert accepts(compile_to("ltoir"), LTOIR)
    assert accepts(b"BC\xc0\xde", LTOIR)


# What it is for


def test_a_cubin_tells_its_architecture():
    need_nvrtc()
    for arch in supported_archs():
        assert architectures(compile_to("cubin", arch=f"sm_{arch}"), CUBIN) == [f"sm_{arch}"]


def test_a_cubin_of_an_older_compiler_tells_its_architecture(cubin):
    older = patched(patched(cubin, ABI, 7, 1), FLAGS, 0x5A0D5A, 4)  # as NVRTC 12.4 has it for sm_90a
    assert architectures(older, CUBIN) == ["sm_90"]


def test_ptx_tells_its_architecture(ptx):
    assert architectures(ptx, PTX) == ["sm_90"]
    assert architectures(b"// .target sm_10\n.version 8.0\n.target sm_90a, debug\n", PTX) == ["sm_90a"]
    assert architectures(b".version 8.0", PTX) == []


def test_a_fatbin_tells_its_architectures(cubin, ptx):
    parts = [fatbin_part(2, 80, cubin), fatbin_part(2, 90, cubin), fatbin_part(1, 90, ptx), fatbin_part(2, 80, cubin)]
    assert architectures(make_fatbin(*parts), FATBIN) == ["sm_80", "sm_90", "compute_90"]


def test_code_to_be_linked_tells_none(host_object):
    assert architectures(host_object, OBJECT) == []


def test_a_cubin_tells_whether_it_is_relocatable(cubin, relocatable, ptx):
    assert is_relocatable(relocatable, CUBIN)
    assert not is_relocatable(cubin, CUBIN)
    assert not is_relocatable(ptx, PTX)


# What is in it


@pytest.mark.parametrize("name", ["cubin", "fatbin", "ptx"])
def test_code_tells_its_kernels_and_variables(name, request):
    assert contents(request.getfixturevalue(name), ObjectCodeFormatType(name)) == (KERNELS, VARIABLES)


def test_code_to_be_linked_tells_no_symbols(host_object):
    assert contents(host_object, OBJECT) == ([], [])


def test_ptx_has_variables_of_every_form():
    text = b"""
    .version 8.0
    .visible .global .align 4 .u32 plain;
    .global .attribute(.managed) .align 4 .u32 managed = 3;
    .visible .const .align 8 .b8 table[32] = {1, 2};
    .weak .global .v4 .f32 four;
    // .global .u32 comment;
    .visible .entry k() { ld.global.u32 %r1, [plain]; .shared .u32 local; ret; }
    """
    assert contents(text, PTX) == (["k"], ["four", "managed", "plain", "table"])


def test_symbols_of_the_compilers_own_are_left_out(cubin):
    assert not [symbol for symbol in Elf(cubin).symbols() if symbol.name.startswith((".", "__nv"))]


# Forged code, which would take long to read


def forge(text: bytes, names: list[int], tables: int) -> bytes:
    """Return an ELF file with a text of names, and so many symbol tables in one place, of kernels with these names."""
    header = struct.Struct("<4s B B 2x B 7x H H 12x Q Q I 2x H H H H H")
    section = struct.Struct("<I I 16x Q Q I 12x Q")
    table = b"".join(struct.pack("<I B B H 16x", name, 2, 0x10, 1) for name in names)
    place = header.size + len(text)
    sections = [section.pack(0, 0, 0, 0, 0, 0), section.pack(0, 3, header.size, len(text), 0, 0)]
    sections += [section.pack(0, 2, place, len(table), 1, 24)] * tables
    return (
        header.pack(b"\x7fELF", 2, 1, 7, 2, 190, 0, place + len(table), 90, 0, 0, section.size, len(sections), 1)
        + text
        + table
        + b"".join(sections)
    )


def test_a_forged_file_is_one_that_is_read():
    assert [symbol.name for symbol in Elf(forge(b"\0one\0two\0", [1, 5, 2], 1)).symbols()] == ["one", "two", "ne"]


def test_a_table_is_not_read_for_each_section_that_names_it():
    data = forge(b"\0k\0", [1] * 1000, 1000)
    symbols = list(Elf(data).symbols())
    assert {symbol.name for symbol in symbols} == {"k"}
    assert 24 * len(symbols) <= 8 * len(data)


def test_a_text_is_not_read_for_each_symbol_that_names_a_part_of_it():
    data = forge(b"\0" + b"x" * 100_000 + b"\0", list(range(1, 10_000)), 1)
    symbols = list(Elf(data).symbols())
    assert symbols
    assert sum(len(symbol.name) for symbol in symbols) <= 8 * len(data)


@pytest.mark.parametrize(
    ("form", "repeated"),
    [("{}", "\\n"), ("{}", ".visible\\n"), ("{}", ".global a\\n"), (".global {}", "a"), ("{}", "/* "),
     (".entry k({}", "/* ")],
)  # fmt: skip
def test_no_part_of_ptx_is_read_again_for_each_line(form, repeated):
    code = f"""
    from cuda_core_cffi._code.image import architectures, contents
    from cuda_core_cffi._code.mangling import kinds_from_ptx
    from cuda_core_cffi.typing import ObjectCodeFormatType
    PTX = ObjectCodeFormatType.PTX
    text = ".version 8.0\\n" + "{form}".format("{repeated}" * 100_000)
    assert architectures(text.encode(), PTX) == []
    contents(text.encode(), PTX)
    kinds_from_ptx(text, "k")
    print("read")
    """
    assert output_of(code) == "read"


# What the tools of the toolkit write


@pytest.mark.parametrize(
    ("options", "suffix"),
    [
        (["-fatbin", "-gencode", "arch=compute_90,code=[sm_90,compute_90]"], "fatbin"),
        (["-fatbin", "-no-compress", "-gencode", "arch=compute_90,code=[sm_90,compute_90]"], "fatbin"),
        (["-cubin", "-arch=sm_90"], "cubin"),
        (["-c", "-arch=sm_90"], "object"),
        (["-dc", "-arch=sm_90"], "object"),
        (["-lib", "-arch=sm_90"], "library"),
    ],
)
def test_what_nvcc_makes_is_whole_until_it_is_cut_short(options, suffix, tmp_path):
    if shutil.which("nvcc") is None:
        pytest.skip("there is no nvcc")
    source, target, code_type = tmp_path / "k.cu", tmp_path / f"k.{suffix}", ObjectCodeFormatType(suffix)
    source.write_text(SOURCE)
    done = subprocess.run(["nvcc", *options, source, "-o", target], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nvcc does not work here: {done.stderr.strip()}")
    data = target.read_bytes()
    assert accepts(data, code_type)
    assert set(architectures(data, code_type)) <= {"sm_90", "compute_90"}
    if code_type is not LIBRARY:
        assert not [size for size in range(0, len(data), 5) if accepts(data[:size], code_type)]
    if code_type in (CUBIN, FATBIN):
        assert contents(data, code_type) == (KERNELS, VARIABLES)
