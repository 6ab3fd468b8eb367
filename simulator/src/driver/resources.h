// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Resources of a device: sets of its multiprocessors, and the workqueues through which work reaches it.

#ifndef SIM_RESOURCES_H
#define SIM_RESOURCES_H

#include "driver/sim.h"

enum { SIM_MAX_SMS = 256, SIM_SM_WORDS = SIM_MAX_SMS / 64 };
enum sim_resource_type {  // older headers name the first two only
    SIM_RESOURCE_INVALID = 0,
    SIM_RESOURCE_SM = 1,
    SIM_RESOURCE_WORKQUEUE_CONFIG = 1000,
    SIM_RESOURCE_WORKQUEUE = 10000,
};

// The structure of the program, CUdevResource: what its header calls padding is the driver's.
struct sim_resource {
    int type;
    int device;
    uint64_t split;              // the number of the call that split it off; 0 if it is as it was queried
    uint64_t sms[SIM_SM_WORDS];  // a bit for each multiprocessor
    uint64_t unused[6];
    union {
        struct {
            unsigned count, least, alignment, flags, locality;
        } sm;
        struct {
            int device;
            unsigned limit;
            int scope;
        } config;
        uint64_t workqueue;  // which one it is
        unsigned char bytes[48];
    };
};
_Static_assert(sizeof(struct sim_resource) == sizeof(CUdevResource) &&
                   offsetof(struct sim_resource, sm) == offsetof(CUdevResource, sm),
               "the layout of CUdevResource");

// What a descriptor stands for, and a green context has.
struct sim_provision {
    int device;
    uint64_t sms[SIM_SM_WORDS];
    unsigned sm_count;
    unsigned limit;  // of work at the same time, and who else has the workqueues
    int scope;
    uint64_t workqueue;  // 0: that of the device
};
#define SIM_NEW_WORKQUEUE UINT64_MAX  // in a descriptor: each context that is made with it has one of its own

CUresult sim_resource_of_device(int device, int type, struct sim_resource *resource);
CUresult sim_resource_of_provision(const struct sim_provision *provision, int type, struct sim_resource *resource);
// The descriptor for a handle: it is valid for the rest of the process.
CUresult sim_provision_find(CUdevResourceDesc handle, const struct sim_provision **provision);

#endif
