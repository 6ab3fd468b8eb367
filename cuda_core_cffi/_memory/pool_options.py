# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Options of pools of device memory, which are imported when a program has any."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass
class DeviceMemoryResourceOptions:
    """Options of a device memory pool.

    Attributes
    ----------
    ipc_enabled : bool
        Let other processes use the pool's buffers. Default False.
    max_size : int
        The most memory that the pool may hold, in bytes; 0 leaves it to the system. Default 0.
    """

    ipc_enabled: bool = False
    max_size: int = 0
