// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Functions that device code calls and the driver provides: vprintf, malloc, free, __assertfail.
#ifndef SIM_PTX_BUILTIN_H
#define SIM_PTX_BUILTIN_H

#include "ptx/ptx_types.h"

// NULL if the name is none of them.
exec_fn ptx_builtin_find(const char *name);

#endif
