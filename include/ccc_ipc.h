/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing between processes. What crosses is 64 bytes that only the driver understands, or a file descriptor. */
#ifndef CCC_IPC_H
#define CCC_IPC_H

#include "ccc_memory.h"

/* Name an event to other processes; payload has CU_IPC_HANDLE_SIZE bytes. */
static int ccc_event_export(const ccc_box *event, void *payload)
{
    CUipcEventHandle handle;
    if (!ccc_is_open(event))
        return CCC_CLOSED;
    CCC_TRY(cuIpcGetEventHandle, &handle, (CUevent)CCC_POINTER(event));
    memcpy(payload, &handle, sizeof handle);
    return 0;
}

/* An event of another process, in a context of the device. */
static ccc_box *ccc_event_import(int device, const void *payload, unsigned int flags)
{
    ccc_scope scope;
    CUipcEventHandle handle;
    CUevent event = NULL;
    ccc_box *box = NULL;
    memcpy(&handle, payload, sizeof handle);
    if (ccc_enter(&scope, device))
        return NULL;
    CUresult result = cuIpcOpenEventHandle(&event, handle);
    if (result)
        ccc_fail((int)result, "cuIpcOpenEventHandle");
    else if ((box = ccc_new(CCC_EVENT, (uintptr_t)event, ccc_event_flags(flags), scope.context)) == NULL)
        cuEventDestroy(event);
    ccc_leave(&scope);
    return box;
}

#endif
