# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The generator of ``cuda_core_cffi.nvml``, on every ``nvml.h`` at hand."""

from __future__ import annotations

import ast
import re
import shutil

import pytest

pytest.importorskip("pycparser", reason="reads headers")

from cuda_headers import headers, nvml, nvml_bindings, nvml_include_dirs, nvml_since, read, read_nvml

SMALL = """
#define NVML_API_VERSION 13
typedef enum nvmlReturn_enum { NVML_SUCCESS = 0, NVML_ERROR_X = 1 } nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;
"""


@pytest.fixture(scope="module", params=nvml_include_dirs(), ids=str)
def api(request: pytest.FixtureRequest) -> nvml.NvmlApi:
    """Return a header, classified."""
    return read_nvml(request.param)


@pytest.fixture(scope="module")
def module(api: nvml.NvmlApi) -> ast.Module:
    """Return the generated module."""
    return ast.parse(nvml_bindings.write_nvml_module(api))


@pytest.fixture(scope="module")
def functions(module: ast.Module) -> dict[str, ast.FunctionDef]:
    """Return the functions of the generated module."""
    return {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}


def classify(tmp_path, text):  # type: ignore[no-untyped-def]
    """Return what is made of a header with more text."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no C compiler")
    (tmp_path / "nvml.h").write_text(SMALL + text)
    return nvml.classify(headers.read_nvml_header(tmp_path))


def arguments(function: ast.FunctionDef) -> dict[str, bool]:
    """Return the parameters of a function, and whether they may be left out."""
    names = [argument.arg for argument in function.args.args]
    optional = len(function.args.defaults)
    return {name: index >= len(names) - optional for index, name in enumerate(names)}


def outputs(function: ast.FunctionDef) -> str | None:
    return ast.get_docstring(function)


def test_every_function_is_in_the_module(api: nvml.NvmlApi, functions: dict[str, ast.FunctionDef]) -> None:
    assert {*functions} == {function.symbol for function in api.functions}
    assert len(functions) > 300


def test_only_what_has_no_status_is_left_out_of_the_functions(api: nvml.NvmlApi) -> None:
    assert [name for name in api.left_out if re.match(r"nvml[A-Z]\w+$", name)] == ["nvmlErrorString"]


def test_every_macro_has_a_value_or_a_reason(api: nvml.NvmlApi) -> None:
    versions = {name.removesuffix("_t") for name in api.versions}
    known = {*api.values, *api.names, *api.left_out}
    assert {*api.header.macros} - known == {*api.header.macros} & versions
    assert all(api.left_out.values())


def test_an_unknown_type_of_a_parameter_stops_the_build(tmp_path) -> None:  # type: ignore[no-untyped-def]
    found = classify(tmp_path, "nvmlReturn_t nvmlX(double value);\n")
    with pytest.raises(headers.HeaderError, match="no rule for a parameter of type double"):
        nvml.write_cdef(found)


def test_a_macro_that_is_no_value_stops_the_build(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(headers.HeaderError, match="no rule for the macro NVML_X"):
        classify(tmp_path, "#define NVML_X do {} while (0)\n")


def test_a_macro_may_name_a_later_one(tmp_path) -> None:  # type: ignore[no-untyped-def]
    found = classify(tmp_path, "#define NVML_A (NVML_B | 1)\n#define NVML_B (1 << 2)\n")
    assert nvml_bindings.value_of(found, found.values["NVML_A"], {}) == 5


def test_the_tables_name_nothing_that_the_newest_header_lacks() -> None:
    newest = max(map(read_nvml, nvml_include_dirs()), key=lambda api: len(api.functions))
    assert nvml_bindings.stale_entries(newest) == []


def test_a_stale_entry_is_found(api: nvml.NvmlApi, monkeypatch: pytest.MonkeyPatch) -> None:
    before = nvml_bindings.stale_entries(api)
    monkeypatch.setitem(nvml_bindings.DIRECTIONS, "nvmlShutdown.nothing", "out")
    assert nvml_bindings.stale_entries(api) == sorted([*before, "nvmlShutdown.nothing"])


def test_the_age_of_each_function_is_that_of_the_headers(api: nvml.NvmlApi) -> None:
    """A header has what came with its version of CUDA or before, and nothing that came later."""
    folder = api.header.include_dir
    if not (folder / "cuda.h").is_file():
        pytest.skip("no cuda.h beside it tells the version")
    version = read(folder).header.version
    since = {name: number(age) for age, names in nvml_since.SINCE.items() for name in names}
    found = {*nvml_since.PROTOTYPE.findall(api.header.text)}
    assert [name for name in found if since.get(name, 0) > version] == []
    assert [name for name, age in since.items() if age <= version and name not in found] == []


def number(age: str) -> int:
    major, minor = age.split(".")
    return 1000 * int(major) + 10 * int(minor)


def test_a_shape_has_one_function(api: nvml.NvmlApi) -> None:
    text = nvml.write_rows(api)
    shapes = re.findall(r"^static int ccc_nvml_call_(\w+)\(", text, re.MULTILINE)
    assert len(shapes) == len({*shapes}) < 50
    assert shapes == re.findall(r"^int ccc_nvml_call_(\w+)\(", nvml.write_cdef(api), re.MULTILINE)


@pytest.mark.parametrize(
    ("ctypes", "shape"),
    [
        (["nvmlDevice_t", "unsigned int *"], "pp"),
        (["unsigned int", "int", "unsigned long long"], "uil"),
        (["nvmlVgpuTypeId_t", "nvmlReturn_t", "const char *"], "uup"),
        ([], ""),
    ],
)
def test_the_shape_is_how_c_passes_the_parameters(api: nvml.NvmlApi, ctypes: list[str], shape: str) -> None:
    assert nvml.shape_of(api, ctypes) == shape


def test_a_negative_enumerator_makes_a_signed_integer(tmp_path) -> None:  # type: ignore[no-untyped-def]
    found = classify(tmp_path, "typedef enum e { NVML_LOW = -1 } nvmlE_t;\nnvmlReturn_t nvmlX(nvmlE_t e);\n")
    assert nvml.shape_of(found, ["nvmlE_t"]) == "i"
    assert "typedef int nvmlE_t;" in nvml.write_cdef(found)


def test_a_second_name_of_a_structure_is_the_same_class(tmp_path) -> None:  # type: ignore[no-untyped-def]
    found = classify(tmp_path, "typedef struct s { int a; } nvmlA_t, nvmlB_t;\n")
    assert (list(found.records), found.aliases["nvmlB_t"]) == (["nvmlA_t"], "nvmlA_t")
    assert nvml.write_cdef(found).count("int a;") == 1


def test_a_new_name_is_that_of_the_newest_version(api: nvml.NvmlApi) -> None:
    assert (api.names["nvmlInit"], api.names["nvmlDeviceGetPciInfo"]) == ("nvmlInit_v2", "nvmlDeviceGetPciInfo_v3")


# what the parameters are to Python


def test_numbers_that_are_filled_are_outputs(functions: dict[str, ast.FunctionDef]) -> None:
    found = functions["nvmlDeviceGetEncoderStats"]
    assert arguments(found) == {"device": False}
    assert outputs(found) == "Return (status, sessionCount, averageFps, averageLatency)."


def test_a_structure_that_is_filled_may_be_given(functions: dict[str, ast.FunctionDef]) -> None:
    found = functions["nvmlDeviceGetMemoryInfo_v2"]
    assert arguments(found) == {"device": False, "memory": True}
    assert outputs(found) == "Return (status, memory)."


def test_a_structure_before_an_input_is_an_output_alone(functions: dict[str, ast.FunctionDef]) -> None:
    found = functions["nvmlEventSetWait_v2"]
    assert arguments(found) == {"set": False, "timeoutms": False}
    assert outputs(found) == "Return (status, data)."


def test_a_structure_that_is_an_output_alone_states_its_version_too(functions: dict[str, ast.FunctionDef]) -> None:
    found = functions["nvmlSystemGetDriverBranch"]
    assert arguments(found) == {"length": False}
    assert "branchInfo_ = _stamped(nvmlSystemDriverBranchInfo_v1_t, None, " in ast.unparse(found)


def test_a_structure_that_is_set_has_to_be_given(functions: dict[str, ast.FunctionDef]) -> None:
    found = functions["nvmlDeviceSetClockOffsets"]
    assert arguments(found) == {"device": False, "info": False}
    assert outputs(found) == "Return (status,)."


def test_a_count_is_given_and_returned(functions: dict[str, ast.FunctionDef]) -> None:
    found = functions["nvmlDeviceGetComputeRunningProcesses_v3"]
    assert arguments(found) == {"device": False, "infoCount": True}
    assert outputs(found) == "Return (status, infoCount, infos)."


def test_a_number_without_an_array_is_an_output(functions: dict[str, ast.FunctionDef]) -> None:
    found = functions["nvmlDeviceGetCount_v2"]
    assert arguments(found) == {}
    assert outputs(found) == "Return (status, deviceCount)."


def test_a_structure_with_more_behind_it_has_a_size_and_no_count(functions: dict[str, ast.FunctionDef]) -> None:
    found = functions["nvmlDeviceGetVgpuMetadata"]
    assert arguments(found) == {"device": False, "pgpuMetadata": False, "bufferSize": False}
    assert "_records(" not in ast.unparse(found)


def test_several_arrays_may_share_a_count(functions: dict[str, ast.FunctionDef]) -> None:
    found = functions["nvmlDeviceGetRetiredPages_v2"]
    assert arguments(found) == {"device": False, "cause": False, "pageCount": True}
    assert outputs(found) == "Return (status, pageCount, addresses, timestamps)."


def test_a_text_has_the_length_that_is_given(functions: dict[str, ast.FunctionDef]) -> None:
    found = functions["nvmlDeviceGetName"]
    assert arguments(found) == {"device": False, "length": False}
    assert outputs(found) == "Return (status, name)."


def test_the_structures_of_a_list_are_changed_in_place(functions: dict[str, ast.FunctionDef]) -> None:
    found = functions["nvmlDeviceGetFieldValues"]
    assert arguments(found) == {"device": False, "valuesCount": False, "values": False}
    assert outputs(found) == "Return (status,)."


def test_each_array_has_a_length(api: nvml.NvmlApi) -> None:
    """A pointer whose name says that there are several is an array, unless a structure holds them."""
    several = re.compile(r"infos|sessionInfos?|\w+Set|deviceArray|devices|pids|addresses|timestamps|samples|placements")
    arrays = [
        (name, role.name, role.count)
        for name, roles in nvml_bindings.find_roles(api).items()
        for role in roles
        if role.depth and several.fullmatch(role.name) and not role.type.endswith("_v1_t") and "EventSet" not in name
    ]
    assert len(arrays) > 20
    assert [item for item in arrays if item[2] is None] == []


def test_no_text_of_the_header_is_in_the_module(api: nvml.NvmlApi) -> None:
    text = nvml_bindings.write_nvml_module(api)
    comments = re.findall(r"//!<\s*(.{20,60})", api.header.text)
    assert len(comments) > 500
    assert [comment for comment in comments if comment in text] == []
