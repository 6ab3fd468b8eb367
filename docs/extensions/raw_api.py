# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""``{raw-api} cuda_core_cffi.driver functions``: what the build generates from the headers, in short entries.

The kinds are ``module`` (its docstring), ``functions``, ``structures``, ``enumerations``, ``handles``, ``constants``.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

OPTIONS = ("   :no-contents-entry:",)  # two thousand entries would be in the contents of every page


def kind_of(value: Any) -> str:
    """Return which list a public name belongs in."""
    if inspect.isfunction(value):
        return "functions"
    if isinstance(value, type):
        if issubclass(value, enum.Enum):
            return "enumerations"
        return "handles" if issubclass(value, int) else "structures"
    return "constants"


def entry(name: str, value: Any, kind: str) -> list[str]:
    """Return the lines, in reStructuredText, that describe a name."""
    if kind == "functions":
        signature = inspect.signature(value)
        parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
        shown = str(signature.replace(parameters=parameters, return_annotation=signature.empty))
        return [f".. py:function:: {name}{shown}", *OPTIONS, "", f"   {told(value)}", ""]
    if kind == "enumerations":
        members = [f"``{member}`` = {number.value}" for member, number in value.__members__.items()]
        return [f".. py:class:: {name}", *OPTIONS, "", *(f"   | {member}" for member in members), ""]
    if kind == "constants":
        return [f".. py:data:: {name}", f"   :value: {int(value)}", *OPTIONS, ""]
    if kind == "handles":
        return [f".. py:class:: {name}", *OPTIONS, ""]
    fields = [field for field in vars(value) if not field.startswith("_")]
    shown = ", ".join(f"``{field}``" for field in sorted(fields))
    return [f".. py:class:: {name}", *OPTIONS, "", f"   Fields: {shown}" if shown else "", ""]


def told(value: Any) -> str:
    """Return the docstring of a function, with the names of what it returns as code."""
    text = " ".join((inspect.getdoc(value) or "").split())
    return re.sub(r"\((.*?)\)", r"``(\1)``", text, count=1)


class RawAPI(SphinxDirective):
    """The entries of one kind of a module."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        """Return the entries."""
        module_name, kind = self.arguments
        module = importlib.import_module(module_name)
        if kind == "module":
            lines = [f".. py:module:: {module_name}", "", *(inspect.getdoc(module) or "").splitlines()]
            return self.parse_text_to_nodes("\n".join(["```{eval-rst}", *lines, "```"]))
        lines = [f".. py:currentmodule:: {module_name}", ""]
        for name in sorted(module.__all__):
            value = getattr(module, name)
            if kind_of(value) == kind:
                lines += entry(name, value, kind)
        lines += [".. py:currentmodule:: None", ""]
        return self.parse_text_to_nodes("\n".join(["```{eval-rst}", *lines, "```"]))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("raw-api", RawAPI)
    return {"parallel_read_safe": True}
