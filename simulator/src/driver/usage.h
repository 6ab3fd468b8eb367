// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What this process uses of the devices, where the NVML of every process can read it, and where its calls stand, for
// processes that lock it.

#ifndef SIM_USAGE_H
#define SIM_USAGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/config.h"

enum { SIM_USAGE_SLOTS = 16, SIM_USAGE_SLOT_NS = 1 << 27 };

// Of one device. The counters themselves are what is shared, so that publishing costs nothing.
struct sim_usage {
    _Atomic size_t memory;                   // bytes taken
    _Atomic uint32_t contexts;               // alive
    _Atomic uint32_t running;                // kernels and copies under way
    _Atomic uint64_t since;                  // when the first of them began
    _Atomic uint64_t busy[SIM_USAGE_SLOTS];  // by time: the number of the slot's period, and nanoseconds in it
};

enum { SIM_CALL_SLOTS = 16, SIM_CACHE_LINE = 64 };

// Of the whole process. Other processes change it to lock this one.
struct sim_control {
    _Atomic uint32_t state;    // a CUprocessState, or from SIM_LOCKING on; calls that are held back sleep on this word
    _Atomic uint32_t work;     // submitted, and not done
    _Atomic uint32_t managed;  // allocations of managed memory
    _Atomic uint8_t moved[SIM_MAX_DEVICES];  // by GPU: its number XOR that of the GPU that it was restored on
    struct {
        _Alignas(SIM_CACHE_LINE) _Atomic uint32_t calls;  // under way; each thread counts in one slot
    } slots[SIM_CALL_SLOTS];
};

// A process that uses a device.
struct sim_user {
    int pid;
    size_t memory;
    unsigned busy;  // percent of the last second
};

extern struct sim_usage *sim_usage;      // of this process, by GPU
extern struct sim_control *sim_control;  // of this process

void sim_usage_publish(void);     // when the driver starts; what fails leaves the usage known to this process only
void sim_usage_after_fork(void);  // in the child
void sim_usage_withdraw(void);

void sim_usage_begin(struct sim_usage *usage);  // of a kernel, or of a copy that takes a while
void sim_usage_end(struct sim_usage *usage);

// The processes with contexts or memory of the device, sorted by pid; the caller frees the array, which is NULL if
// there are none.
struct sim_user *sim_usage_read(int device, size_t *count);

// The same of another process; NULL if it has not started the driver. The caller gives it back.
struct sim_control *sim_control_open(int pid);
void sim_control_close(struct sim_control *control);

#endif
