// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What the environment says about the simulated machine, read once.

#ifndef SIM_CONFIG_H
#define SIM_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

enum { SIM_MAX_DEVICES = 16, SIM_MAX_NVLINKS = 18, SIM_UUID_TEXT = 41 };

struct sim_config {
    int driver_version;         // CUDA_SIM_DRIVER_VERSION, as cuDriverGetVersion reports it
    int devices;                // CUDA_SIM_DEVICES: the GPUs of the machine, all of which NVML shows
    int visible;                // of these, the number that CUDA_VISIBLE_DEVICES leaves
    int gpus[SIM_MAX_DEVICES];  // the GPU of each device
    size_t memory;              // CUDA_SIM_MEMORY, bytes of each device
    int major, minor;           // CUDA_SIM_COMPUTE_CAPABILITY
    bool peer_access;           // CUDA_SIM_PEER_ACCESS, whether devices can be given access to each other's memory
    bool report_stderr;         // CUDA_SIM_REPORT=stderr
    double kernel_seconds;      // CUDA_SIM_KERNEL_SECONDS, after which a kernel is ended; 0: never
    double delay_seconds;       // CUDA_SIM_DELAY_SECONDS, up to which work waits before it begins; 0: not at all
    const char *shared;         // CUDA_SIM_SHARED, a folder; empty: none; NULL: one of the system's
    const char *sensors;        // CUDA_SIM_SENSORS, as it is; NULL: none
    int fans;                   // CUDA_SIM_FANS
    int nvlinks;                // CUDA_SIM_NVLINKS, of each device
    unsigned workers;           // threads that run the blocks of one kernel
    char problem[512];          // the variable that is not valid, and why: CUDA and NVML do not start. Usually empty
};

const struct sim_config *sim_config(void);

void sim_gpu_uuid(int gpu, char bytes[16]);
void sim_gpu_uuid_text(int gpu, char text[SIM_UUID_TEXT]);  // "GPU-" and the UUID

#endif
