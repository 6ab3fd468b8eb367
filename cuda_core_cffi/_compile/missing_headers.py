# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Headers that NVRTC did not find, and where they are."""

from __future__ import annotations

import re
from typing import Final

from cuda_core_cffi._core.libraries import NVRTC_LIBRARY

_BUNDLED_SINCE: Final = (13, 3)
_MISSING: Final = re.compile(r'error: (?:cannot|could not) open source file "([^"]+)"')

# Headers of the CUDA Toolkit for kernels: those inside NVRTC, and others.
_BUNDLED: Final = re.compile(
    r"(?:cuda|nv|cooperative_groups)/.*|crt/mma\.h(?:pp)?|mma\.h|math_constants\.h|cuComplex\.h|cooperative_groups\.h"
    r"|vector_types\.h|cuda_(?:fp\d+|bf16|tf32|pipeline\w*|awbarrier\w*)\.h(?:pp)?"
)
_TOOLKIT: Final = re.compile(r"(?:cub|thrust)/.*|cu(?:rand|da)\w*\.h(?:pp)?|device_\w+\.h(?:pp)?|crt/.*")

# Functions that NVRTC declares by itself, by the header of the host compiler that programs include for it.
_BUILT_IN: Final = {
    "assert": "assert needs",
    "math": "mathematical functions need",
    "stdio": "printf needs",
    "stdlib": "malloc and free need",
    "string": "memcpy and memset need",
    "stddef": "size_t needs",
}
_NOT_FOR_KERNELS: Final = frozenset({"cuda_runtime.h", "cuda_runtime_api.h", "cuda.h", "device_launch_parameters.h"})
# Headers of <cuda/std/...>, and headers that have no such form.
_STANDARD: Final = re.compile(
    "algorithm|array|atomic|barrier|bit|bitset|cfloat|charconv|chrono|climits|complex|concepts|cstdint|ctime|expected"
    "|functional|initializer_list|iterator|latch|limits|memory|numbers|numeric|optional|random|ranges|ratio|semaphore"
    "|span|string_view|tuple|type_traits|utility|variant"
)
_HOST_ONLY: Final = re.compile(
    "exception|filesystem|format|fstream|future|iomanip|iostream|list|locale|map|mutex|new|queue|set|sstream|stack"
    "|stdexcept|string|system_error|thread|typeinfo|unordered_map|unordered_set|vector|unistd[.]h"
)
_C_NAMES: Final = {"float.h": "cfloat", "limits.h": "climits", "stdint.h": "cstdint", "time.h": "ctime"}


def explain_missing_header(log: str, uses_bundled: bool) -> str:
    """Return what to add to the message of a compilation that did not find a header, or an empty string.

    For example ``"; for 'cuda_fp16.h', pass ProgramOptions(use_bundled_headers=True)"``.
    """
    found = _MISSING.search(log)
    if found is None:
        return ""
    name = found[1]
    stem = name.removesuffix(".h") if name.endswith(".h") else name.removeprefix("c")
    if name in _NOT_FOR_KERNELS:
        return f"; {name!r} is for host code: kernels need no header for what CUDA C++ has built in"
    if stem in _BUILT_IN and name in (f"{stem}.h", f"c{stem}"):
        return f"; {_BUILT_IN[stem]} no header in kernels: remove the #include of {name!r}"
    standard = _C_NAMES.get(name, name)
    if _STANDARD.fullmatch(standard):
        remedy = "" if uses_bundled else f"; {_remedy(True)}"
        return f"; {name!r} is for host code: kernels include <cuda/std/{standard}>{remedy}"
    if _HOST_ONLY.fullmatch(name):
        return f"; {name!r} is for host code: kernels cannot use it"
    is_bundled = _BUNDLED.fullmatch(name) is not None
    if (is_bundled and not uses_bundled) or _TOOLKIT.fullmatch(name):
        return f"; for {name!r}, {_remedy(is_bundled)}"
    return f"; for {name!r}, pass its folder as include_path, or its text in extra_headers"


def _remedy(is_bundled: bool) -> str:
    version = NVRTC_LIBRARY.version()
    if is_bundled and version >= _BUNDLED_SINCE:
        return "pass ProgramOptions(use_bundled_headers=True)"
    suffix = "" if version[0] >= 13 else f"-cu{version[0]}"
    packages = " ".join(f"nvidia-{name}{suffix}" for name in ("cuda-runtime", "cuda-cccl", "curand"))
    return f"pass the folders of the CUDA Toolkit's headers as include_path (pip install {packages} brings them)"
