# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What a driver says to random descriptions of tensor maps, and what the simulated one says to the same."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from helpers import SUPPORT, child_environment
from random_tensor_maps import descriptions, status_of

from cuda_core_cffi import Device

COUNT = 4000
INVALID_VALUE = 1


def simulated(seed: int) -> list[int]:
    """Return what the simulated driver says, in a process of its own."""
    command = [sys.executable, str(SUPPORT / "random_tensor_maps.py"), str(seed), str(COUNT)]
    environment = child_environment(CUDA_CORE_CFFI_DRIVER="simulator")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    statuses: list[int] = json.loads(done.stdout)
    return statuses


def recorded() -> list[list[int]]:
    """Return, by seed, what a driver said on an H100."""
    text = (SUPPORT / "tensor_map_answers.txt").read_text()
    blocks = ["".join(block.split()) for block in text.split("\n\n")[1:]]
    digits = [f"{int(block, 16):0{COUNT}b}" for block in blocks]
    return [[0 if digit == "1" else INVALID_VALUE for digit in bits] for bits in digits]


def test_the_simulated_driver_answers_random_descriptions_as_one_on_an_h100_did() -> None:
    for seed, statuses in enumerate(recorded()):
        assert simulated(seed) == statuses


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.gpu_only("compares the simulated driver with another")
def test_the_simulated_driver_answers_random_descriptions_as_this_one_does(device: Device, seed: int) -> None:
    memory = device.allocate(4096, stream=device.default_stream)
    cases = descriptions(seed, COUNT)
    here = [status_of(case, memory.handle) for case in cases]
    memory.close()
    there = simulated(seed)
    assert len(here) == len(there) == COUNT
    assert here.count(0) > COUNT // 10
    different = [(a, b, case) for a, b, case in zip(here, there, cases, strict=True) if a != b]
    text = "\n".join(f"{a} here, {b} simulated: {case}" for a, b, case in different[:60])
    assert not different, f"{len(different)} of {COUNT} differ:\n{text}"
