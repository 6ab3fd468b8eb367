/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The helpers that _calls.c calls. */
#ifndef CCC_CALLS_TABLE_H
#define CCC_CALLS_TABLE_H

#include "python/ccc_calls.h"
#include "memory/ccc_copy.h"
#include "handles/ccc_keep.h"
#include "launch/ccc_prepared.h"
#include "memory/ccc_tensor.h"

static ccc_calls ccc_calls_table = {
    .kind = ccc_box_kind,
    .bytes = ccc_box_bytes,
    .is_open = ccc_is_open,
    .is_borrowed = ccc_is_borrowed,
    .handle = ccc_handle,
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
    .launch_target = ccc_launch_target,
    .launch_plan = ccc_launch_plan,
    .tensor_for = ccc_tensor_for,
    .tensor_delete = ccc_tensor_delete,
    .gil = &ccc_gil_of_all,
};

/* The address of the table. CFFI's functions are known when the module has been imported. */
static uint64_t ccc_calls_get(void)
{
#ifndef PYPY_VERSION
    ccc_calls_table.from_pointer = (void *)_cffi_from_c_pointer;
    ccc_calls_table.to_pointer = (void *)_cffi_to_c_pointer;
#endif
    return (uintptr_t)&ccc_calls_table;
}

/* For the module _capsule, which is not linked with this one either. */
static uint64_t ccc_gil_address(void)
{
    return (uintptr_t)&ccc_gil_of_all;
}

#endif
