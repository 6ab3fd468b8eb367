// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Macros that change what CFFI's code does around each call from Python; they are defined before that code.
//
// CFFI saves errno, for libraries that report in it. Neither the driver nor this package does, and it takes a tenth of
// the shortest call.
//
// CFFI releases the GIL, so that other threads run, and so that a driver function that waits for a callback does not
// wait for one that needs the GIL. That takes half of the shortest call. The functions listed here keep the GIL: they
// read memory, take no lock, wait for nothing and call no callback. None calls the driver but ccc_device_now, whose two
// calls read the current context of the calling thread. If CFFI named its functions otherwise, they would release the
// GIL.
#ifndef CCC_GENERATED_CALLS_H
#define CCC_GENERATED_CALLS_H

#include "python/ccc_gil.h"

#undef _cffi_restore_errno
#undef _cffi_save_errno
#define _cffi_restore_errno() ((void)0)
#define _cffi_save_errno() ((void)0)

// clang-format off
#define CCC_KEEPING_THE_GIL(function) \
    function(ccc_attend) \
    function(ccc_device_now) \
    function(ccc_driver_per_thread) \
    function(ccc_driver_used) \
    function(ccc_driver_version) \
    function(ccc_flags) \
    function(ccc_handle_device) \
    function(ccc_handle_value) \
    function(ccc_identity) \
    function(ccc_is_open) \
    function(ccc_last_call) \
    function(ccc_last_status) \
    function(ccc_live_count) \
    function(ccc_nvml_is_ready) \
    function(ccc_nvml_set_ready) \
    function(ccc_parent) \
    function(ccc_releases_pending) \
    function(ccc_unattend)
// clang-format on

// Whether this is the code that calls one of them; the compiler finds that out.
#undef CCC_KEEPS_GIL
#define CCC_IS_CALL_OF(name) || __builtin_strcmp(__func__, "_cffi_f_" #name) == 0
#define CCC_KEEPS_GIL (0 CCC_KEEPING_THE_GIL(CCC_IS_CALL_OF))

#ifdef Py_GIL_DISABLED  // where ccc_gil.h leaves Python's own macros
#undef Py_BEGIN_ALLOW_THREADS
#undef Py_END_ALLOW_THREADS
#define Py_BEGIN_ALLOW_THREADS \
    { \
        PyThreadState *ccc_state = CCC_KEEPS_GIL ? NULL : PyEval_SaveThread();
#define Py_END_ALLOW_THREADS \
    if (!CCC_KEEPS_GIL) \
        PyEval_RestoreThread(ccc_state); \
    }
#endif

#endif
