# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The documentation site: ``sphinx-build -W docs build/site``, after ``pip install ".[cu13,docs]"``.

``.ci/site`` builds it in an environment of its own and looks at it in a browser. Chapters of the tutorial are executed
by the build, on the simulated driver.
"""

from __future__ import annotations

import os
import pathlib
import sys
import tempfile
from typing import Any

DOCS = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS / "extensions")]

# What the chapters run with. A program that they start is found in the environment that builds the site.
os.environ["CUDA_CORE_CFFI_DRIVER"] = "simulator"
os.environ["CUDA_SIM_SHARED"] = ""  # NVML shows no other process
os.environ["PATH"] = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="cuda-core-cffi-docs-")
os.environ["PYTHONSTARTUP"] = str(DOCS / "extensions" / "shell_cells.py")
os.environ["DOCS_EXAMPLES"] = str(DOCS.parent / "examples")
os.environ["COLUMNS"] = "90"
os.environ["PY_COLORS"] = "0"  # for pytest
os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"

from cuda_core_cffi import __version__  # noqa: E402  (the driver is chosen first)

project = "cuda-core-cffi"
author = "The cuda-core-cffi authors"
copyright = "2026, the cuda-core-cffi authors"
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.graphviz",
    "sphinx_copybutton",
    "mermaid_flowchart",
    "repository_links",
    "raw_api",
    "summary_tables",
]
exclude_patterns = ["extensions"]
suppress_warnings = ["ref.python"]  # `Device` is first cuda_core_cffi.Device, then that of system

# Pages
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

# Chapters of the tutorial: the pages that have cells
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 120

# Reference
autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    "show-inheritance": True,
    "inherited-members": "BaseException,Exception,tuple,str,int,Enum,IntEnum,StrEnum,MutableSet,MutableMapping,ABC",
}
autodoc_typehints_format = "short"
autosummary_generate = False
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
PUBLIC = ["cuda_core_cffi", *(f"cuda_core_cffi.{name}" for name in ("graph", "system", "texture", "typing", "utils"))]
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
default_role = "py:obj"
add_module_names = False
toc_object_entries_show_parents = "hide"

# HTML
html_theme = "furo"
html_title = f"cuda-core-cffi {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_favicon = "static/icon.svg"
html_show_sphinx = False
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
graphviz_output_format = "svg"


def skip_member(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the fields of named tuples, which the docstring of the class tells."""
    return True if str(getattr(value, "__doc__", "")).startswith("Alias for field number") else None


def signature(
    app: Any, what: str, name: str, value: Any, options: Any, arguments: str | None, returned: str | None
) -> tuple[str, str | None] | None:
    """Show no arguments of classes that are not made by calling them."""
    return ("", None) if what == "class" and arguments == "(*args: object, **kwargs: object)" else None


def bases(app: Any, name: str, value: Any, options: Any, found: list[Any]) -> None:
    """Show what is public among the bases, and of private ones the first public class that they derive from."""
    modules = [sys.modules[module] for module in PUBLIC if module in sys.modules]
    public = [getattr(module, name) for module in modules for name in module.__all__]
    shown = []
    for base in found:
        line = getattr(base, "__mro__", [base])
        shown += [one for one in line if one in public or not one.__module__.startswith("cuda_core_cffi.")][:1]
    found[:] = list(dict.fromkeys(one for one in shown if one is not object)) or [object]


def setup(app: Any) -> None:
    """Register what is above."""
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-process-bases", bases)
