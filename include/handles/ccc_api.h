// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What other libraries call, with the GIL or without: the functions of ccc_api, and the release of a use.
//
// The call that releases the last use of a handle destroys the driver handle, which may wait for the device, and so for
// a host callback that waits for the GIL. The call therefore releases the GIL if this thread holds it. This module is
// not linked with Python: the module _capsule has the functions for it (ccc_detach.h).
#ifndef CCC_API_H
#define CCC_API_H

#include "handles/ccc_end.h"

static void *ccc_stay_attached(void) { return NULL; }

static void ccc_was_attached(void *detached) { (void)detached; }

static void *(*ccc_detach)(void) = ccc_stay_attached;  // releases the GIL; NULL: this thread does not hold it
static void (*ccc_attach)(void *) = ccc_was_attached;  // takes it again, with what ccc_detach returned

// Set both, when the package is imported.
static void ccc_set_detach(uint64_t detach, uint64_t attach)
{
    ccc_detach = (void *(*)(void))(uintptr_t)detach;
    ccc_attach = (void (*)(void *))(uintptr_t)attach;
}

// Release a use of a handle, which may be NULL, in a thread that may hold the GIL.
static void ccc_release_any(ccc_handle *handle)
{
    if (!ccc_unuse(handle))
        return;
    void *detached = ccc_detach();
    ccc_end_unused(handle, 0);
    ccc_attach(detached);
}

static ccc_kind ccc_api_kind(const ccc_handle *handle) { return handle ? ccc_handle_kind(handle) : CCC_KINDS; }

static uint64_t ccc_api_value(const ccc_handle *handle) { return handle ? ccc_handle_value(handle) : 0; }

static size_t ccc_api_bytes(const ccc_handle *handle) { return handle ? ccc_handle_bytes(handle) : 0; }

static int ccc_api_retain(ccc_handle *handle) { return handle ? ccc_retain(handle) : 0; }

// The caller is not informed of failures of cleanup: Python reports them.
static void ccc_api_release(ccc_handle *handle)
{
    ccc_release_any(handle);
    ccc_report_cleanup();
}

static const ccc_api ccc_api_table = {
    sizeof(ccc_api), ccc_api_kind, ccc_api_value, ccc_api_bytes, ccc_api_retain, ccc_api_release,
};

static const ccc_api *ccc_get_api(void) { return &ccc_api_table; }

#endif
