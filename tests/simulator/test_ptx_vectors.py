# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The vector instructions of the processor, which the interpreter of PTX uses where there are any."""

from __future__ import annotations

from pathlib import Path

import vector_operations
from helpers import output_of

RUN = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"
SCRIPT = str(Path(vector_operations.__file__))


def digests(vectors: str | None) -> list[str]:
    environment = {"CUDA_CORE_CFFI_DRIVER": "simulator", "CUDA_SIM_VECTORS": vectors}
    return output_of(RUN, SCRIPT, **environment).splitlines()


def test_instructions_give_the_same_bits_with_vectors_and_without() -> None:
    with_vectors = digests(None)
    assert len(with_vectors) == len(vector_operations.operations())
    assert with_vectors == digests("0")
