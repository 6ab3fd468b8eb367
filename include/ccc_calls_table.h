/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The helpers that _calls.c calls. */
#ifndef CCC_CALLS_TABLE_H
#define CCC_CALLS_TABLE_H

#include "ccc_calls.h"
#include "ccc_copy.h"

static const ccc_calls ccc_calls_table = {
    ccc_box_kind,     ccc_box_bytes,     ccc_is_open, ccc_close, ccc_drop, ccc_pool_allocate,
    ccc_event_create, ccc_stream_create, ccc_fill,    ccc_copy,
};

static const ccc_calls *ccc_calls_get(void)
{
    return &ccc_calls_table;
}

#endif
