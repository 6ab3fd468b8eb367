// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Bulk copies and reductions: cp.async.bulk, cp.reduce.async.bulk, and those of tensors. They are done at once, so
// waiting for them is nothing.
#ifndef SIM_PTX_BULK_H
#define SIM_PTX_BULK_H

#include "ptx/ptx_decode.h"

// After cp.async or cp.reduce.async, of which .bulk was taken.
void decode_bulk(decoder *d, int reduces);

#endif
