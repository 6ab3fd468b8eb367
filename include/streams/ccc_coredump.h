// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Settings of core dumps: those of the process, where the context is NULL, or of one context.
#ifndef CCC_COREDUMP_H
#define CCC_COREDUMP_H

#include "streams/ccc_context.h"

// Read a setting. *size is that of the buffer.
static int ccc_coredump_get(const ccc_handle *context, int setting, void *value, size_t size)
{
    if (context == NULL) {
        int status = ccc_init();
        if (status)
            return status;
        CCC_TRY(cuCoredumpGetAttributeGlobal, (CUcoredumpSettings)setting, value, &size);
        return 0;
    }
    CCC_USE(context);
    CCC_SCOPE(scope, ccc_enter_context(&scope, context));
    CCC_TRY(cuCoredumpGetAttribute, (CUcoredumpSettings)setting, value, &size);
    return ccc_left(&scope, 0);
}

static int ccc_coredump_set(const ccc_handle *context, int setting, void *value, size_t size)
{
    if (context == NULL) {
        int status = ccc_init();
        if (status)
            return status;
        CCC_TRY(cuCoredumpSetAttributeGlobal, (CUcoredumpSettings)setting, value, &size);
        return 0;
    }
    CCC_USE(context);
    CCC_SCOPE(scope, ccc_enter_context(&scope, context));
    CCC_TRY(cuCoredumpSetAttribute, (CUcoredumpSettings)setting, value, &size);
    return ccc_left(&scope, 0);
}

#endif
