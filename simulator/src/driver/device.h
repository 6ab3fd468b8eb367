// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SIM_DEVICE_H
#define SIM_DEVICE_H

#include "driver/config.h"
#include "driver/report.h"
#include "driver/sim.h"

struct sim_pool;
struct sim_usage;

struct sim_device {
    int ordinal;
    int gpu;  // its number on the machine, where CUDA_VISIBLE_DEVICES hides none
    size_t memory;
    struct sim_usage *usage;
    struct sim_arena *arena;
    _Atomic int fault;  // of a kernel; from then on no context of the device works, and none can be made
    char fault_report[SIM_REPORT_TEXT];  // of the first fault; context.c has the lock
};

CUresult sim_device_find(CUdevice ordinal, struct sim_device **device);
struct sim_device *sim_device_at(int ordinal);  // for ordinals known to be valid
int sim_device_count(void);
static inline bool sim_numa_node_exists(int node) { return node == 0; }  // the host has one
enum { SIM_FIRST_BUS = 0x10, SIM_NAME_BYTES = 64 };  // the devices' PCI addresses are 0000:10:00.0 and so on
void sim_device_name(char name[SIM_NAME_BYTES]);
int sim_device_of_gpu(int gpu);  // -1 if it is hidden
CUresult sim_devices_init(void);
bool sim_device_charge(struct sim_device *device, size_t bytes);  // false when the memory does not suffice
void sim_device_refund(struct sim_device *device, size_t bytes);
int sim_device_attribute(int ordinal, CUdevice_attribute attribute, int *value);  // 0 if there is such an attribute

#endif
