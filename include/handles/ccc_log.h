// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The error log of the driver, from CUDA 12.9 on.
//
// The driver keeps the last lines, which are read from a position that the whole process shares: Python sorts them
// (cuda_core_cffi/_core/driver_log.py). Nothing is read before a call fails. If a program wants every line, the driver
// calls ccc_log_arrived, in the thread whose call failed, where Python must not be waited for: the release thread reads
// instead.
#ifndef CCC_LOG_H
#define CCC_LOG_H

#include "handles/ccc_end.h"

#define CCC_LOG_SINCE 12090
// Bytes. The driver keeps 25600, and puts a line of its own before them; into less than there is it writes too much.
#define CCC_LOG_CAPACITY 32768

CCC_LOCK(ccc_log_lock);
static CUlogIterator ccc_log_position;  // the driver counts its lines from 0
static atomic_int ccc_log_followed;     // by how many that want every line

// Whether there is a log. A function that is not there must not be looked up: it would be reported as missing.
static int ccc_log_exists(void) { return ccc_driver_version() >= CCC_LOG_SINCE && ccc_driver.reason == CCC_AVAILABLE; }

// Copy the lines logged since the last call; returns the number of bytes. In a function that the driver calls, no
// driver function may be called: the lines are read later.
static size_t ccc_log_read(char *buffer, size_t capacity)
{
    size_t size = capacity;
    if (!ccc_log_exists() || ccc_in_callback)
        return 0;
    pthread_mutex_lock(&ccc_log_lock);
    if (cuLogsDumpToMemory(&ccc_log_position, buffer, &size, 0) != CUDA_SUCCESS)
        size = 0;
    pthread_mutex_unlock(&ccc_log_lock);
    return size;
}

static void CUDA_CB ccc_log_arrived(void *data, CUlogLevel level, char *message, size_t length)
{
    (void)data, (void)level, (void)message, (void)length;
    if (atomic_load(&ccc_log_followed) > 0)
        ccc_ask_python();
}

// Have the release thread read each line soon after it was logged, until ccc_log_unfollow was called as often. The
// callback stays registered: the manual does not say that it may be unregistered while another thread calls it.
static int ccc_log_follow(void)
{
    static atomic_int registered;
    int status = ccc_init();
    if (status)
        return status;
    if (!atomic_load(&registered)) {
        CCC_TRY(cuLogsRegisterCallback, ccc_log_arrived, NULL, NULL);
        atomic_store(&registered, 1);
    }
    atomic_fetch_add(&ccc_log_followed, 1);
    return 0;
}

static void ccc_log_unfollow(void) { atomic_fetch_sub(&ccc_log_followed, 1); }

#endif
