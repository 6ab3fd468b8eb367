// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Comparison and selection handlers.
#ifndef SIM_PTX_CMP_H
#define SIM_PTX_CMP_H

#include "ptx/ptx_types.h"

enum { BOOL_NONE, BOOL_AND, BOOL_OR, BOOL_XOR };

exec_fn ptx_setp_handler(ptx_type type);
exec_fn ptx_set_handler(ptx_type type);
exec_fn ptx_selp_handler(void);
exec_fn ptx_slct_handler(ptx_type by);

#endif
