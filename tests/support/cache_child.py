# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What other processes do with a cache in a folder, for the tests of it.

A spawned process can import only modules, so the functions are here.
"""

from __future__ import annotations

import os
import random
import time
from multiprocessing.synchronize import Barrier

from helpers import LIMIT

from cuda_core_cffi.utils import FileStreamProgramCache

WRITES = 150
KEYS = 60
LEAST, MOST = 100, 4000  # bytes of a value


def size_of(key: int) -> int:
    """Return how large the values of a key are."""
    return LEAST + key * 977 % (MOST - LEAST)


def is_whole(key: int, value: bytes) -> bool:
    """Tell whether a value is one that a process wrote: all of one byte, and of the key's size."""
    return len(value) == size_of(key) and len(set(value)) == 1


def write_and_read(path: str, limit: int | None, worker: int, barrier: Barrier | None) -> None:
    """Write values of one byte under random keys and read others, until all is written; exit with 1 if one is wrong."""
    cache = FileStreamProgramCache(path, max_size_bytes=limit)
    dice = random.Random(worker)
    if barrier is not None:
        barrier.wait(LIMIT)
    for _ in range(WRITES):
        key = dice.randrange(KEYS)
        cache[str(key)] = bytes([worker]) * size_of(key)
        key = dice.randrange(KEYS)
        value = cache.get(str(key))
        if value is not None and not is_whole(key, value):
            os._exit(1)


def write_for_ever(path: str, limit: int | None, worker: int) -> None:
    """Write until killed."""
    while True:
        write_and_read(path, limit, worker, None)


def stop_in_mid_write(path: str, value: bytes, ready: str) -> None:
    """Write a value under ``"key"``, and stop, for ever, when the file is written but has not its name yet."""

    def stop(source: str, target: str, **folders: int) -> None:
        open(ready, "w").close()
        time.sleep(LIMIT)

    os.replace = stop
    FileStreamProgramCache(path)["key"] = value
