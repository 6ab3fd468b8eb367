# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The generator of ``cuda_core_cffi.driver``, on every header at hand.

Headers are those of ``headers.find_include_dir()`` and of the folders in ``CUDA_TEST_INCLUDE_DIRS``.
"""

from __future__ import annotations

import ast
import re

import pytest

pytest.importorskip("pycparser", reason="reads headers")

from cuda_headers import bindings, cdef, directions, include_dirs, read, roles

WANTED_SHARE = 0.95
OUTPUTS = {"out", "inout", "size"}


@pytest.fixture(scope="module", params=include_dirs(), ids=str)
def api(request: pytest.FixtureRequest) -> cdef.Api:
    """Return a header, classified."""
    return read(request.param)


@pytest.fixture(scope="module")
def known(api: cdef.Api) -> dict[str, dict[str, roles.Role]]:
    """Return the roles of parameters by function and C name."""
    return {name: {role.parameter.name: role for role in found} for name, found in roles.find_roles(api)[0].items()}


@pytest.fixture(scope="module")
def module(api: cdef.Api) -> str:
    """Return the generated module."""
    return bindings.write_driver_module(api)


@pytest.fixture(scope="module")
def functions(module: str) -> dict[str, ast.FunctionDef]:
    """Return the functions of the generated module."""
    return {node.name: node for node in ast.parse(module).body if isinstance(node, ast.FunctionDef)}


def names(function: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in function.args.args]


def test_nearly_every_function_is_mapped(api: cdef.Api) -> None:
    unmapped = bindings.report(api)
    assert len(unmapped) <= (1 - WANTED_SHARE) * len(api.functions), unmapped


def test_every_unmapped_function_has_a_reason(api: cdef.Api) -> None:
    assert all(bindings.report(api).values())


def test_mapped_and_unmapped_functions_are_all_there_are(api: cdef.Api, functions: dict[str, ast.FunctionDef]) -> None:
    assert {*functions, *bindings.report(api)} == {function.name for function in api.functions}


def test_table_names_nothing_that_the_header_lacks(api: cdef.Api) -> None:
    assert roles.stale_entries(api) == []


def test_stale_entry_is_found(api: cdef.Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(directions.DIRECTIONS, "cuInit.nothing", "out")
    assert roles.stale_entries(api) == ["cuInit.nothing"]


def test_entry_that_is_said_to_be_missing_but_is_there_is_found(api: cdef.Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(directions.ONLY_IN, "cuModuleGetFunctionCount.count", (1, 2))
    assert roles.stale_entries(api) == ["cuModuleGetFunctionCount.count"]


def test_table_settles_nothing_that_the_header_says(api: cdef.Api, monkeypatch: pytest.MonkeyPatch) -> None:
    settled, _ = roles.find_roles(api)
    owners = {key.split(".")[0] for key in directions.DIRECTIONS}
    monkeypatch.setattr(directions, "DIRECTIONS", {})
    derived, _ = roles.find_roles(api)
    assert [name for name in owners if name in derived and derived[name] == settled[name]] == []


def test_comment_that_says_returned_makes_an_output(known: dict[str, dict[str, roles.Role]]) -> None:
    assert known["cuDeviceGetAttribute"]["pi"].direction == "out"


def test_marker_makes_an_output(known: dict[str, dict[str, roles.Role]]) -> None:
    assert known["cuMemGetAccess"]["flags"].direction == "out"


def test_const_pointer_is_an_input(known: dict[str, dict[str, roles.Role]]) -> None:
    assert known["cuMemcpy2D"]["pCopy"].direction == "in"


def test_pointer_to_const_pointer_is_an_output(known: dict[str, dict[str, roles.Role]]) -> None:
    assert known["cuGetErrorName"]["pStr"].direction == "out"


def test_destination_is_filled(known: dict[str, dict[str, roles.Role]]) -> None:
    assert known["cuMemcpyDtoH"]["dstHost"].direction == "target"


def test_array_gets_the_count_beside_it(known: dict[str, dict[str, roles.Role]]) -> None:
    found = known["cuLibraryLoadData"]
    assert (found["jitOptions"].count, found["libraryOptions"].count) == ("numJitOptions", "numLibraryOptions")


def test_array_gets_the_count_before_it_where_none_is_after(known: dict[str, dict[str, roles.Role]]) -> None:
    assert known["cuModuleLoadDataEx"]["options"].count == "numOptions"


def test_single_structure_has_no_count(known: dict[str, dict[str, roles.Role]]) -> None:
    assert known["cuGraphAddKernelNode"]["nodeParams"].count is None


def test_count_is_a_parameter_or_an_expression_over_parameters(known: dict[str, dict[str, roles.Role]]) -> None:
    builtin = {"max", directions.KERNEL, directions.UNCOUNTED}
    for function, found in known.items():
        for role in found.values():
            assert set(re.findall(r"[A-Za-z_]\w*", role.count or "")) <= {*found, *builtin}, (function, role)


def test_handles_and_numbers_have_their_kind(known: dict[str, dict[str, roles.Role]]) -> None:
    found = known["cuMemAllocAsync"]
    assert [found[name].kind for name in ("dptr", "bytesize", "hStream")] == ["number", "int", "handle"]


def test_outputs_are_no_arguments(
    known: dict[str, dict[str, roles.Role]], functions: dict[str, ast.FunctionDef]
) -> None:
    for name, found in known.items():
        wanted = [role.name for role in found.values() if role.direction not in ("out", "size")]
        payloads = [role.name for role in found.values() if role.direction == "out" and role.kind == "void"]
        assert [item for item in names(functions[name]) if item not in payloads] == wanted


def test_docstring_names_the_outputs(functions: dict[str, ast.FunctionDef]) -> None:
    assert ast.get_docstring(functions["cuDeviceGetAttribute"]) == "Return (status, pi)."


def test_names_of_python_are_avoided(functions: dict[str, ast.FunctionDef]) -> None:
    assert names(functions["cuGraphAddDependencies"])[:2] == ["hGraph", "from_"]


def test_enumerators_have_the_values_of_the_compiler(module: str, api: cdef.Api) -> None:
    classes = {node.name: node for node in ast.parse(module).body if isinstance(node, ast.ClassDef)}
    values = {item.targets[0].id: ast.literal_eval(item.value) for item in classes["CUresult"].body}  # type: ignore[attr-defined]
    assert (values["CUDA_SUCCESS"], values["CUDA_ERROR_UNKNOWN"]) == (0, 999)
    assert len(values) == len(api.enums["CUresult"].values.enumerators)


def test_shift_into_the_sign_is_negative() -> None:
    shift = cdef.c_ast.BinaryOp("<<", cdef.c_ast.Constant("int", "1"), cdef.c_ast.Constant("int", "31"))
    assert bindings.evaluate(shift, {}) == -(2**31)


def test_type_of_a_payload_comes_from_the_comments(api: cdef.Api) -> None:
    assert roles.payload_types(api)["CU_MEMPOOL_ATTR_RELEASE_THRESHOLD"] == "cuuint64_t"


def test_nameless_union_belongs_to_the_structure(module: str, api: cdef.Api) -> None:
    if api.header.version < 13000:
        pytest.skip("the structures of CUDA 12 have no nameless union")
    location = next(
        node for node in ast.parse(module).body if isinstance(node, ast.ClassDef) and node.name == "CUmemLocation"
    )
    assert "id" in {item.targets[0].id for item in location.body if isinstance(item, ast.Assign)}  # type: ignore[attr-defined]


def test_no_text_of_the_header_is_in_the_module(module: str, api: cdef.Api) -> None:
    text = (api.header.include_dir / "cuda.h").read_text(errors="replace")
    briefs = {item.strip() for item in re.findall(r"\\brief +([^\n]{25,})", text)}
    assert briefs
    assert not [item for item in briefs if item in module]


def test_unclear_parameter_leaves_its_function_out(api: cdef.Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(directions.DIRECTIONS, "cuCtxGetApiVersion.version")
    assert "unsigned int * version" in bindings.report(api)["cuCtxGetApiVersion"]
