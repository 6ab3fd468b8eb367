# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Damaged code, whatever the damage: it is refused, or loaded, and nothing else."""

from __future__ import annotations

import pytest
from mutations import PIECES, Edit, damage, load, look, make_codes

from cuda_core_cffi import UnavailableError
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY
from cuda_core_cffi.typing import ObjectCodeFormatType

hypothesis = pytest.importorskip("hypothesis", exc_type=ImportError)  # its compiled part does not load on every PyPy
given, st = hypothesis.given, hypothesis.strategies

EXAMPLES = hypothesis.settings(
    max_examples=300, deadline=None, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
LARGEST = 20000  # of a place: more than the size of any code here
TYPES = st.sampled_from([ObjectCodeFormatType(kind) for kind in ("cubin", "fatbin", "ptx")])
REPLACED = st.builds(
    lambda place, piece: Edit(place, len(piece), piece),
    st.integers(0, 127) | st.integers(0, LARGEST),
    st.sampled_from(PIECES) | st.binary(min_size=1, max_size=8),
)
MOVED = st.builds(Edit, st.integers(0, LARGEST), st.integers(0, 400), st.binary(max_size=16))
EDITS = st.lists(REPLACED | MOVED, min_size=1, max_size=6)


@pytest.fixture(scope="module")
def codes():
    """Return whole code of each type that can be loaded."""
    try:
        NVRTC_LIBRARY.version()
    except UnavailableError as error:
        pytest.skip(str(error))
    return make_codes()


def test_whole_code_is_passed_on_to_the_driver(codes):
    assert all(look(data, code_type) for code_type, data in codes.items())


@EXAMPLES
@given(TYPES, EDITS)
def test_damaged_code_is_refused_or_looked_at(codes, code_type, edits):
    look(damage(codes[code_type], edits), code_type)


@pytest.mark.simulator_only("a real driver trusts code whose sizes are right, and may crash")
@EXAMPLES
@given(TYPES, EDITS)
def test_damaged_code_is_refused_or_loaded(device, codes, code_type, edits):
    load(damage(codes[code_type], edits), code_type)
