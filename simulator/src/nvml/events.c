// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Sets of events, of the devices and of the system. Nothing happens by itself: cudaSimEvent makes it happen.

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/config.h"
#include "driver/device.h"
#include "nvml/gpu.h"

enum { FIRST_CAPACITY = 16, ALL_DEVICES = SIM_MAX_DEVICES, NO_INSTANCE = -1, MS = 1000, NS_OF_MS = 1000000 };
static const unsigned FOREVER = ~0u;

// By name, for the control.
static const struct {
    const char *name;
    unsigned long long kind;
    bool system;
} names[] = {
    {"single_bit_ecc_error", nvmlEventTypeSingleBitEccError, false},
    {"double_bit_ecc_error", nvmlEventTypeDoubleBitEccError, false},
    {"pstate", nvmlEventTypePState, false},
    {"xid_critical_error", nvmlEventTypeXidCriticalError, false},
    {"clock", nvmlEventTypeClock, false},
    {"power_source_change", nvmlEventTypePowerSourceChange, false},
    {"mig_config_change", nvmlEventMigConfigChange, false},
    {"single_bit_ecc_error_storm", nvmlEventTypeSingleBitEccErrorStorm, false},
    {"dram_retirement_event", nvmlEventTypeDramRetirementEvent, false},
    {"dram_retirement_failure", nvmlEventTypeDramRetirementFailure, false},
    {"non_fatal_poison_error", nvmlEventTypeNonFatalPoisonError, false},
    {"fatal_poison_error", nvmlEventTypeFatalPoisonError, false},
    {"gpu_unavailable_error", nvmlEventTypeGpuUnavailableError, false},
    {"gpu_recovery_action", nvmlEventTypeGpuRecoveryAction, false},
    {"gpu_driver_unbind", nvmlSystemEventTypeGpuDriverUnbind, true},
    {"gpu_driver_bind", nvmlSystemEventTypeGpuDriverBind, true},
};

static unsigned long long kinds(bool system)
{
    unsigned long long all = 0;
    for (size_t i = 0; i < SIM_COUNT(names); i++)
        if (names[i].system == system)
            all |= names[i].kind;
    return all;
}

struct event {
    unsigned device;
    unsigned long long kind, data;
};

// One structure for both kinds of sets: that of the system waits for all devices. Handles are addresses, looked up in
// the list before they are used.
struct set {
    struct set *next;
    bool system, freed;
    unsigned waiting;
    unsigned long long wanted[SIM_MAX_DEVICES + 1];  // by device; the last of the system
    struct event *events;
    size_t count, capacity;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived;
static struct set *sets;

// --- Sets, with the lock held ---------------------------------------------------------------------------------

static struct set *find(const void *handle, bool system)
{
    struct set *set = sets;
    while (set && !((const void *)set == handle && set->system == system && !set->freed))
        set = set->next;
    return set;
}

static void make_condition(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&arrived, &attributes);
    pthread_condattr_destroy(&attributes);
}

// The threads that hold the lock, or wait, are not in a child of fork().
static void after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    make_condition();
}

static void set_up(void)
{
    make_condition();
    pthread_atfork(NULL, NULL, after_fork);
}

static void discard(struct set *set)
{
    struct set **link = &sets;
    while (*link != set)
        link = &(*link)->next;
    *link = set->next;
    free(set->events);
    free(set);
}

static void add_event(struct set *set, struct event event)
{
    if (set->count == set->capacity) {
        size_t capacity = set->capacity ? 2 * set->capacity : FIRST_CAPACITY;
        struct event *grown = realloc(set->events, capacity * sizeof *grown);
        if (!grown)
            return;
        set->events = grown;
        set->capacity = capacity;
    }
    set->events[set->count++] = event;
}

// --- What both kinds of sets do -------------------------------------------------------------------------------

static nvmlReturn_t create(void **handle, bool system)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_up);
    SIM_NVML_REQUIRE(handle);
    struct set *set = calloc(1, sizeof *set);
    if (!set)
        return NVML_ERROR_MEMORY;
    set->system = system;
    pthread_mutex_lock(&lock);
    set->next = sets;
    sets = set;
    pthread_mutex_unlock(&lock);
    *handle = set;
    return NVML_SUCCESS;
}

static nvmlReturn_t destroy(void *handle, bool system)
{
    pthread_mutex_lock(&lock);
    struct set *set = find(handle, system);
    if (set) {
        // Those who wait for it go first.
        set->freed = true;
        if (set->waiting)
            pthread_cond_broadcast(&arrived);
        else
            discard(set);
    }
    pthread_mutex_unlock(&lock);
    return set ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t want(void *handle, bool system, unsigned device, unsigned long long kinds)
{
    pthread_mutex_lock(&lock);
    struct set *set = find(handle, system);
    if (set)
        set->wanted[device] |= kinds;
    pthread_mutex_unlock(&lock);
    return set ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

// Takes up to `capacity` events, of which there is at least one.
static nvmlReturn_t wait_for(void *handle, bool system, unsigned milliseconds, struct event *events, size_t *capacity)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += milliseconds / MS;
    until.tv_nsec += (long)(milliseconds % MS) * NS_OF_MS;
    if (until.tv_nsec >= MS * NS_OF_MS) {
        until.tv_nsec -= MS * NS_OF_MS;
        until.tv_sec++;
    }
    pthread_mutex_lock(&lock);
    struct set *set = find(handle, system);
    nvmlReturn_t status = set ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
    if (set) {
        set->waiting++;
        while (status == NVML_SUCCESS && !set->count && !set->freed)
            if (milliseconds == FOREVER)
                pthread_cond_wait(&arrived, &lock);
            else if (pthread_cond_timedwait(&arrived, &lock, &until) == ETIMEDOUT && !set->count)
                status = NVML_ERROR_TIMEOUT;
        if (set->freed)
            status = NVML_ERROR_INVALID_ARGUMENT;
        size_t taken = status != NVML_SUCCESS ? 0 : set->count < *capacity ? set->count : *capacity;
        *capacity = taken;
        if (taken) {
            memcpy(events, set->events, taken * sizeof *events);
            set->count -= taken;
            memmove(set->events, set->events + taken, set->count * sizeof *events);
        }
        if (!--set->waiting && set->freed)
            discard(set);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

// Control: something happens to a device. Returns how many sets wanted to know, or -1 if there is no such event or
// device.
SIM_EXPORT int cudaSimEvent(unsigned device, const char *name, unsigned long long data)
{
    size_t i = 0;
    while (i < SIM_COUNT(names) && strcmp(names[i].name, name) != 0)
        i++;
    if (i == SIM_COUNT(names) || device >= sim_gpu_count())
        return -1;
    int told = 0;
    pthread_mutex_lock(&lock);
    for (struct set *set = sets; set; set = set->next)
        if (set->system == names[i].system && !set->freed &&
            set->wanted[set->system ? ALL_DEVICES : device] & names[i].kind) {
            add_event(set, (struct event){device, names[i].kind, data});
            told++;
        }
    if (told)
        pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&lock);
    return told;
}

// --- Of devices -----------------------------------------------------------------------------------------------

SIM_NVML(nvmlEventSetCreate, (nvmlEventSet_t *set), (set)) { return create((void **)set, false); }
SIM_NVML(nvmlEventSetFree, (nvmlEventSet_t set), (set)) { return destroy(set, false); }

SIM_NVML_DEVICE(nvmlDeviceGetSupportedEventTypes, (nvmlDevice_t device, unsigned long long *eventTypes),
                (device, eventTypes))
{
    SIM_NVML_REQUIRE(eventTypes);
    *eventTypes = kinds(false);
    return NVML_SUCCESS;
}

SIM_NVML_DEVICE(nvmlDeviceRegisterEvents, (nvmlDevice_t device, unsigned long long eventTypes, nvmlEventSet_t set),
                (device, eventTypes, set))
{
    SIM_NVML_SUPPORTED(!(eventTypes & ~kinds(false)));
    return want(set, false, device->index, eventTypes);
}

static nvmlReturn_t wait_of_device(nvmlEventSet_t set, nvmlEventData_t *data, unsigned milliseconds)
{
    SIM_NVML_REQUIRE(data);
    struct event event;
    size_t one = 1;
    SIM_NVML_TRY(wait_for(set, false, milliseconds, &event, &one));
    *data = (nvmlEventData_t){.device = sim_gpu_at(event.device),
                              .eventType = event.kind,
                              .eventData = event.data,
                              .gpuInstanceId = (unsigned)NO_INSTANCE,
                              .computeInstanceId = (unsigned)NO_INSTANCE};
    return NVML_SUCCESS;
}

SIM_NVML(nvmlEventSetWait_v2, (nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeoutms),
         (set, data, timeoutms))
{
    return wait_of_device(set, data, timeoutms);
}

SIM_NVML(nvmlEventSetWait, (nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeoutms), (set, data, timeoutms))
{
    SIM_NVML_REQUIRE(data);
    nvmlEventData_t whole;
    SIM_NVML_TRY(wait_of_device(set, &whole, timeoutms));
    memcpy(data, &whole, offsetof(nvmlEventData_t, gpuInstanceId));  // the structure ended there then
    return NVML_SUCCESS;
}

// --- Of the system --------------------------------------------------------------------------------------------

SIM_NVML(nvmlSystemEventSetCreate, (nvmlSystemEventSetCreateRequest_t *request), (request))
{
    SIM_NVML_VERSION(request, nvmlSystemEventSetCreateRequest_v1);
    return create((void **)&request->set, true);
}

SIM_NVML(nvmlSystemEventSetFree, (nvmlSystemEventSetFreeRequest_t *request), (request))
{
    SIM_NVML_VERSION(request, nvmlSystemEventSetFreeRequest_v1);
    return destroy(request->set, true);
}

SIM_NVML(nvmlSystemRegisterEvents, (nvmlSystemRegisterEventRequest_t *request), (request))
{
    SIM_NVML_VERSION(request, nvmlSystemRegisterEventRequest_v1);
    SIM_NVML_REQUIRE(!(request->eventTypes & ~kinds(true)));
    return want(request->set, true, ALL_DEVICES, request->eventTypes);
}

SIM_NVML(nvmlSystemEventSetWait, (nvmlSystemEventSetWaitRequest_t *request), (request))
{
    SIM_NVML_VERSION(request, nvmlSystemEventSetWaitRequest_v1);
    SIM_NVML_REQUIRE(request->data && request->dataSize);
    struct event events[FIRST_CAPACITY];
    size_t count = request->dataSize < FIRST_CAPACITY ? request->dataSize : FIRST_CAPACITY;
    request->numEvent = 0;
    SIM_NVML_TRY(wait_for(request->set, true, request->timeoutms, events, &count));
    for (size_t i = 0; i < count; i++)
        request->data[i] =
            (nvmlSystemEventData_v1_t){.eventType = events[i].kind, .gpuId = (SIM_FIRST_BUS + events[i].device) << 8};
    request->numEvent = (unsigned)count;
    return NVML_SUCCESS;
}
