// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// mbarrier objects in shared memory.
#ifndef SIM_PTX_MBARRIER_H
#define SIM_PTX_MBARRIER_H

#include "ptx/ptx_decode.h"

void decode_mbarrier(decoder *d, int arg);
void decode_cp_async_arrive(decoder *d);

#endif
