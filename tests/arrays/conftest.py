# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What several of these tests need: arrays that tensor maps describe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from boxes import Tensor

from cuda_core_cffi import Device, Stream


@pytest.fixture
def tensor(device: Device, stream: Stream) -> Iterator[Callable[[Any], Tensor]]:
    """Put arrays on the device, until the test ends."""
    made: list[Tensor] = []

    def make(array: Any) -> Tensor:
        made.append(Tensor(device, stream, array))
        return made[-1]

    yield make
    stream.sync()
    for item in made:
        item.buffer.close()
