// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// mbarrier objects in shared memory.
#ifndef SIM_PTX_MBARRIER_H
#define SIM_PTX_MBARRIER_H

#include "ptx/ptx_decode.h"

void decode_mbarrier(decoder *d, int arg);
void decode_cp_async_arrive(decoder *d);
// Bytes have arrived in shared memory, of which the object at the address has been told to expect some.
step mbarrier_complete(warp *w, const insn *in, unsigned lane, uint64_t address, uint32_t bytes);

#endif
