# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Name expressions that the compiler does not understand: which names the source has."""

from __future__ import annotations

import re
from typing import Final

from cuda_core_cffi._code.missing_symbols import near_matches

# How NVRTC's log complains: it takes name expressions for a file of its own.
_UNKNOWN: Final = re.compile(r'^__nv_name_map\(\d+\): error: (?:identifier|.* has no member) "([^"]+)"', re.MULTILINE)
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ATTRIBUTE: Final = re.compile(r"\b__(?:launch_bounds|align|cluster_dims|maxnreg)__\s*\([^()]*\)")
_DEFINED: Final = re.compile(r"\b__(?:global|device|constant|managed)__\b[^;{}()\[\]=]*?\b([A-Za-z]\w*)\s*(?=[(;={\[])")


def explain_unknown_names(log: str, source: bytes) -> str:
    """Return what to add to the message of a compilation that failed; nothing if no name expression was to blame.

    Parameters
    ----------
    log : str
        The compiler's log.
    source : bytes
        What was compiled.

    Returns
    -------
    str
        ``"; in a name expression 'scole' is unknown: did you mean 'scale'?"``.
    """
    unknown = list(dict.fromkeys(_UNKNOWN.findall(log)))
    if not unknown:
        return ""
    text = _ATTRIBUTE.sub(" ", _COMMENT.sub(" ", source.decode(errors="replace")))
    defined = list(dict.fromkeys(_DEFINED.findall(text)))
    return "".join(_explain(name, defined) for name in unknown)


def _explain(name: str, defined: list[str]) -> str:
    text = f"; in a name expression {name!r} is unknown"
    if name in defined:
        return f"{text}: it is in a namespace, whose name has to come first"
    near = near_matches(name, defined)
    return f"{text}: did you mean {' or '.join(map(repr, near))}?" if near else text
