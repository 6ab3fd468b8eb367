// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Bulk copies: cp.async.bulk and cp.async.bulk.tensor. They are done at once, so waiting for them is nothing.
#ifndef SIM_PTX_BULK_H
#define SIM_PTX_BULK_H

#include "ptx/ptx_decode.h"

// After cp.async, of which .bulk was taken.
void decode_bulk(decoder *d);

#endif
