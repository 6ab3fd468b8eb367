# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The folders of the package and the floors of its C: what each imports, and the page that shows it."""

from __future__ import annotations

import ast
import importlib.util
import pathlib
import re
import tomllib
from types import ModuleType

import pytest
from helpers import without_comments

from cuda_core_cffi._core.registry import Registry

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "cuda_core_cffi"
MOST_REGISTERED = 8


@pytest.fixture(scope="module")
def architecture() -> ModuleType:
    spec = importlib.util.spec_from_file_location("architecture", ROOT / "docs" / "architecture.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def package(tmp_path: pathlib.Path) -> pathlib.Path:
    """A package with a folder that imports another in one of its functions."""
    folder = tmp_path / "package"
    for name, text in {
        "__init__.py": "add_lazy_names(globals(), {'_upper.module': ('name',)})",
        "_lower/__init__.py": "",
        "_lower/module.py": "from cuda_core_cffi import _cuda",
        "_upper/__init__.py": "",
        "_upper/module.py": "def function():\n    from cuda_core_cffi._lower import module",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_folders_import_each_other_in_no_circle(architecture) -> None:
    assert architecture.circle(architecture.edges(architecture.find_imports())) == []


@pytest.mark.parametrize("name", ["package", "include", "simulator"])
def test_the_page_shows_what_the_code_imports(architecture, name) -> None:
    text = architecture.PAGE.read_text()
    shown = architecture.replace_block(text, name, architecture.blocks()[name])
    assert shown == text, "run python docs/architecture.py --write"


def test_imports_are_found_wherever_they_are(architecture, package) -> None:
    found = architecture.edges(architecture.find_imports(package))
    assert found == {"_lower": {"_core"}, "_upper": {"_lower"}, "cuda_core_cffi": {"_upper"}}


def test_an_import_the_other_way_is_a_circle(architecture, package) -> None:
    (package / "_lower" / "__init__.py").write_text("import cuda_core_cffi._upper.module")
    found = architecture.find_imports(package)
    assert architecture.circle(architecture.edges(found)) == ["_lower", "_upper", "_lower"]
    assert architecture.page(found) not in architecture.PAGE.read_text()


def test_an_import_for_types_is_no_circle_and_is_shown(architecture, package) -> None:
    text = "if TYPE_CHECKING:\n    from cuda_core_cffi._upper.module import name\n"
    (package / "_lower" / "__init__.py").write_text(text)
    found = architecture.find_imports(package)
    assert architecture.circle(architecture.edges(found)) == []
    assert "_lower -. types .-> _upper" in architecture.page(found)


def test_a_page_without_the_place_for_the_picture_is_refused(architecture) -> None:
    with pytest.raises(ValueError, match=r"architecture\.md has no <!-- written by"):
        architecture.replace_block("text", "package", "block")


def test_headers_include_their_own_and_lower_floors(architecture) -> None:
    found = architecture.find_includes()
    assert found.keys() == set(architecture.FLOORS)
    assert found["driver"] == set()
    assert architecture.includes_upward(found) == []


def test_an_include_of_a_higher_floor_is_found(architecture, tmp_path) -> None:
    for name, text in {"memory/a.h": '#include "handles/b.h"\n', "handles/b.h": '#include "graph/c.h"\n'}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    found = architecture.find_includes(tmp_path)
    assert found == {"handles": {"graph"}, "memory": {"handles"}}
    assert architecture.includes_upward(found) == [("handles", "graph")]


def test_the_registry_has_what_is_listed(architecture) -> None:
    roles = {*Registry.__annotations__, *(name for name in vars(Registry) if not name.startswith("_"))}
    assert roles == architecture.REGISTERED.keys()
    assert len(roles) <= MOST_REGISTERED


def test_what_is_registered_comes_from_the_folder_that_is_listed(architecture) -> None:
    for role, folder in architecture.REGISTERED.items():
        sources = "".join(path.read_text() for path in (PACKAGE / folder).glob("*.py"))
        named = f'"cuda_core_cffi.{folder}' in (PACKAGE / "_core" / "registry.py").read_text()
        assert named or f"registry.{role} = " in sources


def test_no_two_headers_have_a_variable_of_the_same_name() -> None:
    """C takes them for one, and says nothing, where they come together in a module."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "include").rglob("*.h"):
        text = without_comments(path.read_text())
        for declared in re.findall(r"^static ([^(;{=]+?)(?:;| =|\[)", text, re.MULTILINE):
            for declarator in declared.split(","):
                found.setdefault(declarator.split()[-1].lstrip("*"), set()).add(path.name)
    assert found["ccc_captures"] == {"ccc_order.h"}
    assert {name: places for name, places in found.items() if len(places) > 1} == {
        "ccc_types": {"ccc_handle.h", "ccc_kinds.h"},  # declared below all kinds, defined above them
    }


def test_the_compiled_modules_import_what_is_at_the_bottom() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "include").rglob("*.[ch]"))
    assert set(re.findall(r'find\("cuda_core_cffi\.(\w+)', sources)) == {"_core", "_cuda"}


@pytest.mark.parametrize("folder", sorted(path.parent.name for path in PACKAGE.glob("_*/__init__.py")))
def test_a_folder_says_what_it_is_for_and_who_imports_whom(folder) -> None:
    text = ast.get_docstring(ast.parse((PACKAGE / folder / "__init__.py").read_text()))
    assert len(re.findall(r"\.(?=\s|$)", text)) >= 3
    assert "import" in text


def test_every_folder_of_the_package_is_in_the_wheel() -> None:
    with open(ROOT / "pyproject.toml", "rb") as file:
        listed = set(tomllib.load(file)["tool"]["setuptools"]["packages"])
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "cuda_core_cffi").rglob("*.py")}
    assert listed == {".".join(folder.parts) for folder in folders}


def test_private_modules_list_no_names_unless_they_pass_them_on() -> None:
    """Type checkers need ``__all__`` where a module imports names for others."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        private = any(part[0] == "_" for part in path.relative_to(PACKAGE).with_suffix("").parts)
        written = path.name != "__init__.py" and not path.name.endswith("generated.py")
        if private and written and re.search(r"^__all__", path.read_text(), re.MULTILINE):
            found.add(str(path.relative_to(PACKAGE)))
    assert found == {"_core/ffi.py", "_core/python_calls.py", "system/_device.py"}
