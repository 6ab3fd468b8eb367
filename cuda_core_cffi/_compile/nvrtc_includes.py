# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What NVRTC may read besides the source: headers in memory, and files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cuda_core_cffi._compile.program_options import ProgramOptions

_OPTIONS = ("include_path", "pre_include", "pch", "use_pch", "pch_dir")

# An #include that may find a file beside the source, which is the working directory if the program's name has none: in
# quotes, or of a macro. What stands in angle brackets comes from the compiler itself, or from include_path. Several
# expressions, because one that begins with a literal is ten times as fast as one that begins with a choice.
_GAP = rb"(?:\s|/\*.*?\*/)*+"
_DIRECTIVE = _GAP + rb"(?:include|include_next|import|embed)\b" + _GAP + rb"(?!<)"
_QUESTION = rb"__has_(?:include|include_next|embed)\b" + _GAP + rb"(?!\(" + _GAP + rb"<)"
_LOCAL_INCLUDES = [
    re.compile(pattern, re.DOTALL)
    for pattern in (rb"#" + _DIRECTIVE, rb"%:" + _DIRECTIVE, rb"\?\?=" + _DIRECTIVE, _QUESTION)
]


def files_asked_for(options: ProgramOptions) -> str | None:
    """Return which option makes NVRTC read files other than its own, in words; None if none does."""
    found = next((name for name in _OPTIONS if getattr(options, name)), None)
    return None if found is None else f"with {found} the code depends on files"


def files_included(source: bytes, options: ProgramOptions) -> str | None:
    """Return which line may make NVRTC read files other than its own, in words; None if none does."""
    if options.no_source_include:
        return None
    line = _local_include(source)
    if line is None and options.extra_headers:
        line = next(filter(None, (_local_include(header) for _, header in extra_headers(options))), None)
    return line and f"{line!r} may find a file beside the source (with no_source_include it does not)"


def extra_headers(options: ProgramOptions) -> Iterator[tuple[bytes, bytes]]:
    """Yield the name and the text of each header in memory."""
    for name, text in options.extra_headers or ():
        yield name.encode(), text.encode() if isinstance(text, str) else bytes(text)


def _local_include(source: bytes) -> str | None:
    """Return the line that may include a file beside the source, if there is any."""
    find = source.find
    # Most kernels have nothing that those begin with, which is seen faster than searched. Continued lines may hide it.
    if find(b"#") < 0 and find(b"\\") < 0 and find(b"__has_") < 0 and find(b"%:") < 0 and find(b"??=") < 0:
        return None
    joined = source.replace(b"\\\r\n", b"").replace(b"\\\n", b"")  # as the compiler reads continued lines
    for pattern in _LOCAL_INCLUDES:
        if found := pattern.search(joined):
            return joined[found.start() :].splitlines()[0].decode(errors="replace")
    return None
