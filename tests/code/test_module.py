# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Object code: making it from what compilers made, loading it, getting kernels from it."""

from __future__ import annotations

import copy
import pickle
import threading
import weakref

import pytest
from helpers import alive, in_thread, output_of
from mutations import fatbin_part, make_fatbin

from cuda_core_cffi import (
    CUDAError,
    Kernel,
    LaunchConfig,
    ObjectCode,
    Program,
    ProgramOptions,
    UnavailableError,
    launch,
)
from cuda_core_cffi._compile.nvrtc import supported_archs
from cuda_core_cffi._core.ffi import ffi
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY
from cuda_core_cffi.typing import ObjectCodeFormatType

SOURCE = """
extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }
extern "C" __global__ void halve(float *x) { x[threadIdx.x] /= 2; }
__global__ void mangled(int *x) { *x = 1; }
template <class T> __global__ void scale(T *x, T by) { x[threadIdx.x] *= by; }
"""
PTX = b".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"
FATBIN_HEADER = b"\x50\xed\x55\xba\x01\x00\x10\x00"
MAKERS = {kind: getattr(ObjectCode, f"from_{kind}") for kind in ObjectCodeFormatType}
LOADABLE = ["cubin", "fatbin", "ptx"]


@pytest.fixture(scope="module")
def nvrtc():
    """Skip without a compiler."""
    try:
        NVRTC_LIBRARY.version()
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def code(nvrtc, device):
    """Return code for the device, not loaded yet."""
    with Program(SOURCE, "c++", {"name": "halves.cu"}).compile("cubin", ["scale<float>"]) as code:
        yield code


@pytest.fixture(scope="module")
def cubin(nvrtc):
    """Return a cubin, for looking at rather than loading."""
    return Program(SOURCE, "c++", ProgramOptions(arch="sm_90")).compile("cubin").code


# Making


def test_object_code_cannot_be_constructed():
    with pytest.raises(RuntimeError, match=r"Program\.compile"):
        ObjectCode(b"", "ptx")


@pytest.mark.parametrize("kind", list(MAKERS))
def test_code_is_given_as_bytes(kind):
    code = MAKERS[kind](b"code", name="a name", symbol_mapping={"a": "b"})
    assert (code.code, code.name, code.code_type, code.symbol_mapping) == (b"code", "a name", kind, {"a": "b"})


@pytest.mark.parametrize("kind", list(MAKERS))
@pytest.mark.parametrize("convert", [str, lambda path: path])
def test_code_is_given_as_a_path(kind, convert, tmp_path):
    path = tmp_path / "code"
    path.write_bytes(b"code")
    assert MAKERS[kind](convert(path)).code == str(path)


@pytest.mark.parametrize("convert", [bytearray, memoryview])
def test_code_in_a_buffer_is_copied(convert):
    data = bytearray(b"code")
    code = ObjectCode.from_ptx(convert(data))
    data[:] = b"XXXX"
    assert code.code == b"code"


def test_a_file_that_changes_later_does_not_matter(tmp_path):
    path = tmp_path / "a.ptx"
    path.write_bytes(PTX)
    code = ObjectCode.from_ptx(path)
    path.unlink()
    assert pickle.loads(pickle.dumps(code)).code_type == "ptx"


@pytest.mark.parametrize("kind", list(MAKERS))
def test_a_file_that_does_not_exist_is_an_error_at_once(kind):
    with pytest.raises(FileNotFoundError, match="/no/such/file"):
        MAKERS[kind]("/no/such/file")


@pytest.mark.parametrize("kind", list(MAKERS))
def test_a_folder_is_no_code(kind, tmp_path):
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        MAKERS[kind](tmp_path)


@pytest.mark.parametrize("kind", list(MAKERS))
def test_an_empty_file_is_refused_and_named(kind, tmp_path):
    path = tmp_path / "empty"
    path.touch()
    with pytest.raises(ValueError, match=f"must not be empty: '{path}' is"):
        MAKERS[kind](path)


def test_code_in_a_str_is_not_taken_for_a_path():
    with pytest.raises(ValueError, match=r"a str is the path of a file.*: give that as bytes: '\.version 8\.0"):
        ObjectCode.from_ptx(PTX.decode())


@pytest.mark.parametrize("kind", ["ptx", "cubin", "fatbin"])
def test_empty_code_is_refused_when_it_is_loaded(kind):
    code = MAKERS[kind](b"")
    assert code.code == b""
    with pytest.raises(ValueError, match="empty"):
        code.get_kernel("kernel")


@pytest.mark.parametrize("kind", list(MAKERS))
def test_an_empty_file_is_refused(kind, tmp_path):
    (tmp_path / "code").touch()
    with pytest.raises(ValueError, match=r"must not be empty: .*code' is"):
        MAKERS[kind](tmp_path / "code")


@pytest.mark.parametrize("kind", list(MAKERS))
@pytest.mark.parametrize("module", [None, 3, ["a"]])
def test_code_of_another_type_is_refused(kind, module):
    with pytest.raises(TypeError, match="as bytes or as a path"):
        MAKERS[kind](module)


def test_no_name_is_an_empty_one():
    assert ObjectCode.from_ptx(PTX, name=None).name == ""


def test_a_name_that_is_no_str_is_refused():
    with pytest.raises(TypeError, match="name must be a str"):
        ObjectCode.from_ptx(PTX, name=b"a")


@pytest.mark.parametrize("mapping", ["ab", [("a", "b")], {"a": 3}, {3: "a"}])
def test_a_symbol_mapping_of_another_type_is_refused(mapping):
    with pytest.raises(TypeError, match=r"symbol_mapping|name of a kernel"):
        ObjectCode.from_ptx(PTX, symbol_mapping=mapping)


def test_the_symbol_mapping_is_a_copy():
    given = {"a": "b"}
    code = ObjectCode.from_ptx(PTX, symbol_mapping=given)
    given["c"] = "d"
    code.symbol_mapping["e"] = "f"
    assert code.symbol_mapping == {"a": "b"}


def test_symbols_may_be_bytes():
    assert ObjectCode.from_ptx(PTX, symbol_mapping={"a": b"_Z1a"}).symbol_mapping == {"a": "_Z1a"}


# The object


def test_the_repr_loads_nothing():
    assert repr(ObjectCode.from_cubin(b"no cubin")) == "<ObjectCode handle=0x0 code_type='cubin'>"


def test_the_repr_of_loaded_code_has_its_handle(code):
    handle = code.handle
    assert repr(code) == f"<ObjectCode handle={handle:#x} code_type='cubin'>"


def test_object_code_is_equal_only_to_itself():
    codes = [ObjectCode.from_ptx(PTX) for _ in range(2)]
    assert codes[0] == codes[0] != codes[1]
    assert len({*codes, codes[0]}) == 2


def test_object_code_can_be_referred_to_weakly():
    code = ObjectCode.from_ptx(PTX)
    assert weakref.ref(code)() is code


@pytest.mark.parametrize("duplicate", [lambda code: pickle.loads(pickle.dumps(code)), copy.copy, copy.deepcopy])
def test_object_code_can_be_pickled_and_copied(duplicate, tmp_path):
    path = tmp_path / "a.ptx"
    path.write_bytes(PTX)
    for code in (ObjectCode.from_ptx(PTX, name="a", symbol_mapping={"b": "c"}), ObjectCode.from_ptx(path)):
        other = duplicate(code)
        assert (other.code, other.name, other.code_type) == (code.code, code.name, code.code_type)
        assert other.symbol_mapping == code.symbol_mapping


def test_loaded_code_can_be_pickled(code):
    assert code.handle
    with_kernel = pickle.loads(pickle.dumps(code))
    assert with_kernel.get_kernel("twice").handle


# Loading


@pytest.mark.parametrize("kind", ["ltoir", "object", "library"])
@pytest.mark.parametrize(
    "use", [lambda code: code.handle, lambda code: code.get_kernel("k"), lambda code: code.get_module()]
)
def test_code_that_must_be_linked_cannot_be_loaded(kind, use):
    with pytest.raises(RuntimeError, match="link it first"):
        use(MAKERS[kind](b"code", name="part"))


@pytest.mark.parametrize("kind", LOADABLE)
def test_code_that_is_nothing_is_refused_before_the_driver_sees_it(kind):
    with pytest.raises(ValueError, match=r"object code 'noise' is not .* it begins with b'noise'"):
        _ = MAKERS[kind](b"noise", name="noise").handle


def test_ptx_given_as_a_cubin_is_refused():
    with pytest.raises(ValueError, match="the object code is PTX, not a cubin: use from_ptx"):
        _ = ObjectCode.from_cubin(PTX).handle


def test_a_cubin_given_as_ptx_is_refused(cubin):
    with pytest.raises(ValueError, match="is a cubin, not PTX: use from_cubin"):
        _ = ObjectCode.from_ptx(cubin).handle


@pytest.mark.parametrize("kept", [4, 63, 64, 0.5, 0.99])
def test_a_cubin_that_is_cut_short_is_refused(cubin, kept):
    cut = cubin[: kept if isinstance(kept, int) else int(len(cubin) * kept)]
    with pytest.raises(ValueError, match="damaged cubin"):
        _ = ObjectCode.from_cubin(cut).handle


@pytest.mark.parametrize(
    "data", [b"\x50\xed\x55\xba", FATBIN_HEADER, FATBIN_HEADER + (99).to_bytes(8, "little") + b"abc"]
)
def test_a_fatbin_that_is_cut_short_is_refused(data):
    with pytest.raises(ValueError, match="damaged fatbin"):
        _ = ObjectCode.from_fatbin(data).handle


def test_ptx_with_nul_in_it_is_refused():
    with pytest.raises(ValueError, match="NUL"):
        _ = ObjectCode.from_ptx(PTX[:30] + b"\0" + PTX[30:]).handle


def test_ptx_may_end_in_nul(device):
    assert ObjectCode.from_ptx(PTX + b"\0").get_kernel("k").handle


def test_ptx_with_an_error_fails_with_the_log_of_the_driver(device):
    code = ObjectCode.from_ptx(PTX.replace(b"ret;", b"mov.u32 %nonsense, 1;\n ret;"), name="bad")
    with pytest.raises(CUDAError, match=r"CUDA_ERROR_INVALID_PTX.*object code 'bad', which is PTX.*\n.*line \d"):
        code.get_kernel("k")


def test_ptx_with_an_error_has_no_module_and_says_why(device):
    code = ObjectCode.from_ptx(PTX.replace(b"ret;", b"mov.u32 %nonsense, 1;\n ret;"), name="bad")
    with pytest.raises(CUDAError, match=r"CUDA_ERROR_INVALID_PTX.*\n.*line \d"):
        code.get_module()


def test_ptx_newer_than_the_driver_fails_and_names_both_versions(device):
    code = ObjectCode.from_ptx(PTX.replace(b"8.0", b"99.9"))
    with pytest.raises(CUDAError, match=r"\.version 99\.9.*driver for CUDA 1[0-9]\.[0-9]"):
        code.get_kernel("k")


def other_arch(device):
    """Return an architecture whose code the device does not run."""
    return "sm_75" if device.arch != "75" else "sm_80"


def test_a_cubin_for_another_architecture_says_which_and_what_the_device_is(nvrtc, device):
    arch = other_arch(device)
    code = Program(SOURCE, "c++", {"arch": arch, "name": "elsewhere.cu"}).compile("cubin")
    with pytest.raises(
        CUDAError,
        match=rf"object code 'elsewhere\.cu', which is a cubin for {arch}, on a device of sm_{device.arch}",
    ) as caught:
        code.get_kernel("twice")
    assert caught.value.name == "CUDA_ERROR_NO_BINARY_FOR_GPU"


def test_a_fatbin_for_other_architectures_says_which_and_what_the_device_is(nvrtc, device):
    arch = other_arch(device)
    cubin = Program(SOURCE, "c++", {"arch": arch}).compile("cubin").code
    fatbin = make_fatbin(fatbin_part(2, int(arch[3:]), cubin))
    with pytest.raises(CUDAError, match=rf"which is a fatbin for {arch}, on a device of sm_{device.arch}") as caught:
        ObjectCode.from_fatbin(fatbin).get_kernel("twice")
    assert caught.value.name == "CUDA_ERROR_NO_BINARY_FOR_GPU"


def test_ptx_for_a_newer_architecture_says_which_and_what_the_device_is(nvrtc, device):
    newest = max(supported_archs())
    if int(device.arch) >= newest:
        pytest.skip("the compiler knows nothing newer than this device")
    code = Program(SOURCE, "c++", {"arch": f"sm_{newest}"}).compile("ptx")
    with pytest.raises(CUDAError, match=rf"which is PTX for sm_{newest} \(.version .*on a device of sm_{device.arch}"):
        code.get_kernel("twice")


@pytest.mark.simulator_only("another driver may find out when the kernel is launched")
def test_a_cubin_that_was_made_to_be_linked_says_so(nvrtc, device):
    source = 'extern "C" __device__ int there(); extern "C" __global__ void twice(int *x) { *x = there(); }'
    code = Program(source, "c++", {"arch": "sm_90", "relocatable_device_code": True}).compile("cubin")
    with pytest.raises(CUDAError, match="which is a cubin for sm_90 and relocatable: link it first, with Linker"):
        code.get_kernel("twice")


@pytest.mark.simulator_only("only the simulated driver tells which calls were made")
def test_the_driver_never_sees_code_that_is_cut_short(cubin, device):
    from cuda_core_cffi import simulator

    fatbin = make_fatbin(fatbin_part(2, 90, cubin))
    with simulator.trace() as trace:
        for code in (
            ObjectCode.from_cubin(cubin[:-1]),
            ObjectCode.from_fatbin(fatbin[:-1]),
            ObjectCode.from_ptx(PTX[:9] + b"\0" + PTX[9:]),
        ):
            for use in (lambda code=code: code.handle, code.get_module, lambda code=code: code.get_global("x")):
                with pytest.raises(ValueError, match="damaged"):
                    use()
    assert trace.names == []


@pytest.mark.simulator_only("there is no older driver")
def test_a_driver_that_cannot_tell_its_kernels_has_those_of_the_code_named():
    output = output_of(
        """
        from cuda_core_cffi import CUDAError, Device, ObjectCode
        Device().set_current()
        ptx = b".version 8.0\\n.target sm_90\\n.address_size 64\\n.visible .entry twice()\\n{\\nret;\\n}\\n"
        try:
            ObjectCode.from_ptx(ptx).get_kernel("twise")
        except CUDAError as error:
            print(error)
        """,
        CUDA_SIM_DRIVER_VERSION="12020",
    )
    assert output.endswith("the object code has no kernel 'twise'; did you mean 'twice'?")


def test_without_a_device_a_failure_is_told_all_the_same(device):
    code = ObjectCode.from_ptx(PTX.replace(b"ret;", b"mov.u32 %nonsense, 1;\n ret;"), name="bad")

    def load():
        with pytest.raises(CUDAError, match="loading object code 'bad'") as caught:
            code.get_module()
        assert "on a device" not in str(caught.value)

    in_thread(load)


def test_code_is_loaded_once(code):
    before = alive()["library"]
    assert code.handle == code.handle != 0
    assert int(ffi.cast("uintptr_t", code.cdata)) == code.handle
    assert alive()["library"] == before + 1


def test_threads_load_code_once(code):
    before = alive()["library"]
    handles: list[int] = []
    threads = [threading.Thread(target=lambda: handles.append(code.handle)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(handles)) == 1
    assert alive()["library"] == before + 1


def test_code_is_unloaded_with_its_last_user(code):
    before = alive()["library"]
    again = pickle.loads(pickle.dumps(code))
    kernel = again.get_kernel("twice")
    del again
    assert alive()["library"] == before + 1
    assert kernel.handle
    kernel.close()
    del kernel


def test_closed_code_is_unloaded(code):
    before = alive()["library"]
    assert code.handle
    code.close()
    code.close()
    assert (alive()["library"], code.is_closed, code.handle) == (before, True, 0)


def test_closed_code_loads_nothing_more(code):
    with code:
        assert not code.is_closed
    for use in (lambda: code.get_kernel("twice"), code.get_module, lambda: code.cdata):
        with pytest.raises(RuntimeError, match="this ObjectCode is closed"):
            use()


def test_closed_code_still_has_its_code(code):
    code.close()
    assert code.code
    assert pickle.loads(pickle.dumps(code)).get_kernel("twice").handle


def test_a_kernel_outlives_its_closed_code(code):
    kernel = code.get_kernel("twice")
    code.close()
    assert kernel.attributes.num_regs > 0


@pytest.mark.parametrize(
    "use",
    [
        lambda code, handle: code.get_kernel("twice"),
        lambda code, handle: code.get_global("twice"),
        lambda code, handle: code.get_module(),
        lambda code, handle: Kernel.from_handle(handle, code),
    ],
    ids=["get_kernel", "get_global", "get_module", "from_handle"],
)
def test_code_that_another_thread_closes_just_before_it_is_used_is_closed(code, monkeypatch, use):
    before = alive()["library"]
    with code.get_kernel("halve") as kernel:  # which would keep it loaded
        handle = kernel.handle
    load = ObjectCode._load

    def load_and_close(self):
        library = load(self)
        in_thread(self.close)
        return library

    monkeypatch.setattr(ObjectCode, "_load", load_and_close)
    with pytest.raises(RuntimeError, match="closed"):
        use(code, handle)
    assert alive()["library"] == before


def test_code_from_a_file_is_loaded(code, tmp_path):
    path = tmp_path / "a.cubin"
    path.write_bytes(code.code)
    assert ObjectCode.from_cubin(path).get_kernel("twice").handle


def test_a_fatbin_is_loaded_with_what_the_device_runs(nvrtc, device):
    arch = int(device.arch)
    program = Program(SOURCE, "c++", {"arch": f"sm_{arch}"})
    parts = [fatbin_part(2, arch, program.compile("cubin").code), fatbin_part(1, arch, program.compile("ptx").code)]
    with ObjectCode.from_fatbin(make_fatbin(*parts)) as code:
        assert code.get_kernel("twice").num_arguments == 1
        with pytest.raises(CUDAError, match="has no kernel 'twise'; did you mean 'twice'"):
            code.get_kernel("twise")


def test_a_module_is_an_address(code):
    module = code.get_module()
    assert isinstance(module, int)
    assert module != 0
    assert code.get_module() == module


# Kernels


@pytest.mark.parametrize("name", ["twice", b"twice", "scale<float>"])
def test_a_kernel_is_got_by_symbol_or_name_expression(code, name):
    assert code.get_kernel(name).handle


def test_a_symbol_mapping_renames_kernels(code):
    renamed = ObjectCode.from_cubin(code.code, symbol_mapping={"doubled": "twice"})
    assert renamed.get_kernel("doubled").handle
    assert renamed.get_kernel("twice") == renamed.get_kernel("doubled")


def test_a_missing_kernel_is_named_with_those_like_it(code):
    with pytest.raises(
        CUDAError, match=r"object code 'halves\.cu' has no kernel 'twise'; did you mean 'twice'"
    ) as caught:
        code.get_kernel("twise")
    assert caught.value.name == "CUDA_ERROR_NOT_FOUND"


def test_a_missing_kernel_is_named_with_name_expressions_like_it(code):
    with pytest.raises(CUDAError, match="did you mean 'scale<float>'"):
        code.get_kernel("scale<double>")


def test_a_kernel_whose_name_is_mangled_is_named(code):
    with pytest.raises(CUDAError, match=r"'_Z7mangledPi'.*extern \"C\""):
        code.get_kernel("mangled")


def test_a_missing_kernel_is_named_with_that_of_its_name_in_the_source(code):
    with pytest.raises(CUDAError, match=r"did you mean '_Z7mangledPi' \(mangled\)"):
        code.get_kernel("manglet")


def test_a_missing_kernel_is_named_with_the_expression_of_one_in_a_namespace(nvrtc, device):
    source = "namespace demo { template <class T> __global__ void weigh(T *x) { *x = 1; } __device__ int weight; }"
    names = ["demo::weigh<float>", "&demo::weight"]
    code = Program(source, "c++").compile("cubin", names)
    for asked in ("weight<float>", "weihg", "demo::wiegh<int>"):
        with pytest.raises(CUDAError, match=r"did you mean 'demo::weigh<float>'\?"):
            code.get_kernel(asked)
    with pytest.raises(CUDAError, match=r"did you mean '_ZN4demo5weighIfEEvPT_' \(demo::weigh\)\?$"):
        code.get_kernel("_ZN4demo5weighIfEEvPT")
    with pytest.raises(CUDAError, match=r"has no variable 'weigth'; did you mean '&demo::weight'\?"):
        code.get_global("weigth")
    with pytest.raises(CUDAError, match="has no kernel '&demo::weight'; it is a variable: use get_global"):
        code.get_kernel("&demo::weight")


def test_a_template_that_was_not_instantiated_says_how_to(code):
    unmapped = ObjectCode.from_cubin(code.code)
    with pytest.raises(CUDAError, match=r"did you mean '_Z5scale.*' \(scale\)\? Templates are instantiated"):
        unmapped.get_kernel("scale<float>")


def test_code_without_kernels_has_none_to_name(device):
    code = ObjectCode.from_ptx(PTX[: PTX.index(b".visible")] + b".visible .global .u32 alone;\n")
    with pytest.raises(CUDAError, match=r"has no kernel 'k'$"):
        code.get_kernel("k")


def test_a_missing_kernel_like_no_other_lists_what_there_is(code):
    with pytest.raises(CUDAError, match=r"has no kernel 'qqqqqq'; it has .*'halve'"):
        code.get_kernel("qqqqqq")


@pytest.mark.parametrize("name", [None, 3, ["twice"]])
def test_a_kernel_name_of_another_type_is_refused(name):
    with pytest.raises(TypeError, match="name of a kernel"):
        ObjectCode.from_ptx(PTX).get_kernel(name)


@pytest.mark.parametrize("name", ["", b"", "a\0b"])
def test_a_kernel_name_that_is_empty_or_has_nul_is_refused(name):
    with pytest.raises(ValueError, match="name of a kernel"):
        ObjectCode.from_ptx(PTX).get_kernel(name)


# The kernels and the variables in it

DECLARATIONS = """
namespace tables { __device__ int weights[4]; }
__constant__ float factor;
namespace ns { __global__ void first(int *x) { *x = tables::weights[0]; } }
template <class T> __global__ void scale(T *x) { *x *= factor; }
extern "C" __global__ void plain() {}
"""
EXPRESSIONS = ["scale<float>", "&tables::weights"]


@pytest.fixture
def declared(nvrtc, device):
    """Return code that has kernels and variables, of which some are known by name expressions."""
    with Program(DECLARATIONS, "c++").compile("cubin", EXPRESSIONS) as code:
        yield code


def test_code_lists_its_kernels_and_its_variables(declared):
    assert sorted(declared.kernels) == ["_ZN2ns5firstEPi", "plain", "scale<float>"]
    assert sorted(declared.globals) == ["&tables::weights", "factor"]
    assert len(declared.kernels) == 3
    assert "plain" in declared.kernels
    assert "factor" not in declared.kernels
    assert repr(declared.globals) == f"<globals {list(declared.globals)}>"


def test_the_items_are_kernels_and_memory(declared):
    names = {kernel.name: kernel.mangled_name for kernel in declared.kernels.values()}
    assert names == {"ns::first": "_ZN2ns5firstEPi", "plain": "plain", "scale<float>": "_Z5scaleIfEvPT_"}
    with declared.kernels["plain"] as kernel:
        assert kernel == declared.get_kernel("plain")
    assert {name: buffer.size for name, buffer in declared.globals.items()} == {"&tables::weights": 16, "factor": 4}


def test_an_unknown_name_is_a_key_error_with_those_that_are_known(declared):
    with pytest.raises(KeyError, match="the code has no kernel 'plane'; did you mean 'plain'"):
        declared.kernels["plane"]
    with pytest.raises(KeyError, match="the code has no variable 'xyz'; it has "):
        declared.globals["xyz"]
    assert declared.kernels.get(7) is None


def test_names_are_read_without_loading(cubin):
    code = ObjectCode.from_cubin(cubin)
    assert sorted(code.kernels) == ["_Z7mangledPi", "halve", "twice"]
    assert list(code.globals) == []
    with pytest.raises(KeyError, match="the code has no variable 'x'; it has none"):
        code.globals["x"]
    assert repr(code) == "<ObjectCode handle=0x0 code_type='cubin'>"


def test_code_that_must_be_linked_has_no_kernels_yet():
    code = ObjectCode.from_ltoir(b"LTO IR")
    for name in ("kernels", "globals"):
        with pytest.raises(RuntimeError, match="link it first"):
            getattr(code, name)


@pytest.mark.simulator_only("loads a fatbin of PTX that this test makes")
def test_the_driver_lists_the_kernels_of_a_fatbin(device):
    with ObjectCode.from_fatbin(make_fatbin(fatbin_part(1, 90, PTX))) as code:
        assert list(code.kernels) == ["k"]


def test_an_error_about_an_argument_names_the_kernel(declared, device, stream):
    kernel = declared.kernels["scale<float>"]
    with pytest.raises(TypeError) as caught:
        launch(stream, LaunchConfig(grid=1, block=1), kernel, object())
    assert caught.value.__notes__ == [f"launch of {kernel!r}"]
    assert "name='scale<float>'" in repr(kernel)
