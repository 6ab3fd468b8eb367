/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The helpers that _calls.c calls. */
#ifndef CCC_CALLS_TABLE_H
#define CCC_CALLS_TABLE_H

#include "ccc_calls.h"
#include "ccc_copy.h"

static const ccc_calls ccc_calls_table = {
    .kind = ccc_box_kind,
    .bytes = ccc_box_bytes,
    .is_open = ccc_is_open,
    .close = ccc_close,
    .drop = ccc_drop,
    .pool_allocate = ccc_pool_allocate,
    .event_create = ccc_event_create,
    .stream_create = ccc_stream_create,
    .fill = ccc_fill,
    .copy = ccc_copy,
    .event_record = ccc_event_record,
    .stream_wait_event = ccc_stream_wait_event,
    .stream_wait_stream = ccc_stream_wait_stream,
    .event_elapsed = ccc_event_elapsed,
    .event_query = ccc_event_query,
    .event_sync = ccc_event_sync,
    .stream_sync = ccc_stream_sync,
};

static const ccc_calls *ccc_calls_get(void)
{
    return &ccc_calls_table;
}

#endif
