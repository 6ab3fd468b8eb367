# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Another library, which takes DLPack tensors and declares their structures anew."""

from __future__ import annotations

from typing import Any

import cffi

from cuda_core_cffi import _capsule


def make_types() -> Any:
    """Return an FFI that knows DLPack's structures, declared here anew."""
    types = cffi.FFI()
    types.cdef("""
        typedef struct { int32_t device_type; int32_t device_id; } DLDevice;
        typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
        typedef struct { void *data; DLDevice device; int32_t ndim; DLDataType dtype; int64_t *shape; int64_t *strides;
                         uint64_t byte_offset; } DLTensor;
        struct sim_old { DLTensor dl_tensor; void *manager_ctx; void (*deleter)(struct sim_old *); };
        struct sim_versioned { uint32_t major; uint32_t minor; void *manager_ctx;
                               void (*deleter)(struct sim_versioned *); uint64_t flags; DLTensor dl_tensor; };
    """)
    return types


TYPES = make_types()


class Consumer:
    """Takes the tensor out of a capsule, as C code of another library does."""

    def __init__(self, capsule: Any) -> None:
        self.address, self.versioned = _capsule.consume(capsule)
        ctype = "struct sim_versioned *" if self.versioned else "struct sim_old *"
        self.managed = TYPES.cast(ctype, self.address)

    @property
    def tensor(self) -> Any:
        return self.managed.dl_tensor

    @property
    def content(self) -> bytes:
        return bytes(TYPES.buffer(TYPES.cast("char *", self.tensor.data), self.tensor.shape[0]))

    def delete(self) -> None:
        self.managed.deleter(self.managed)
