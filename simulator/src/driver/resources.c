// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "driver/resources.h"

#include <stdlib.h>
#include <string.h>

#include "code/module.h"
#include "driver/config.h"
#include "driver/device.h"

enum { IGNORE_COSCHEDULING = 1, LARGEST_CLUSTERS = 2 };  // flags of a split by count
enum { BACKFILL = 1, LOCALITY_FLAGS = 6 };               // flags of a group
enum { SCOPE_DEVICE = 0, SCOPE_BALANCED = 1 };
enum { CONNECTIONS = 8, MOST_CONNECTIONS = 32 };
enum { CUDA_13_1 = 13010, HOPPER = 9, SMALLEST_GROUP = 2, MOST_COSCHEDULED = 32 };

static _Atomic uint64_t last_split;

static bool knows_workqueues(void) { return sim_config()->driver_version >= CUDA_13_1; }

// --- Sets of multiprocessors ----------------------------------------------------------------------------------

static bool has(const uint64_t *sms, unsigned sm) { return sms[sm / 64] >> sm % 64 & 1; }

static unsigned count_of(const uint64_t *sms)
{
    unsigned count = 0;
    for (int i = 0; i < SIM_SM_WORDS; i++)
        count += (unsigned)__builtin_popcountll(sms[i]);
    return count;
}

// Moves the first `count` multiprocessors of a set to another one, which is empty.
static void take(uint64_t *from, unsigned count, uint64_t *to)
{
    memset(to, 0, SIM_SM_WORDS * sizeof *to);
    for (unsigned sm = 0; sm < SIM_MAX_SMS && count; sm++)
        if (has(from, sm)) {
            to[sm / 64] |= UINT64_C(1) << sm % 64;
            from[sm / 64] &= ~(UINT64_C(1) << sm % 64);
            count--;
        }
}

// --- Queries --------------------------------------------------------------------------------------------------

static unsigned least_partition(void)
{
    int major = sim_config()->major;
    return major >= HOPPER ? 8 : major == 8 ? 4 : major == 7 ? 2 : 1;
}

static unsigned alignment(void)
{
    int major = sim_config()->major;
    return major >= HOPPER ? 8 : major >= 7 ? 2 : 1;
}

static unsigned connections(void)
{
    const char *text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    int number = text ? atoi(text) : 0;
    return number < 1 ? CONNECTIONS : number > MOST_CONNECTIONS ? MOST_CONNECTIONS : (unsigned)number;
}

static void describe_sms(struct sim_resource *resource, int device, const uint64_t *sms)
{
    *resource = (struct sim_resource){.type = SIM_RESOURCE_SM, .device = device};
    memcpy(resource->sms, sms, sizeof resource->sms);
    resource->sm.count = count_of(sms);
    resource->sm.least = least_partition();
    resource->sm.alignment = alignment();
}

// A configuration, or the workqueue itself.
static CUresult describe_workqueue(struct sim_resource *resource, int type, const struct sim_provision *provision)
{
    if (!knows_workqueues() || (type != SIM_RESOURCE_WORKQUEUE_CONFIG && type != SIM_RESOURCE_WORKQUEUE))
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    *resource = (struct sim_resource){.type = type, .device = provision->device};
    if (type == SIM_RESOURCE_WORKQUEUE) {
        resource->workqueue = provision->workqueue;
        return CUDA_SUCCESS;
    }
    resource->config.device = provision->device;
    resource->config.limit = provision->limit;
    resource->config.scope = provision->scope;
    return CUDA_SUCCESS;
}

static void all_sms(uint64_t *sms)
{
    memset(sms, 0, SIM_SM_WORDS * sizeof *sms);
    for (int sm = 0; sm < sim_device_value(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT); sm++)
        sms[sm / 64] |= UINT64_C(1) << sm % 64;
}

CUresult sim_resource_of_provision(const struct sim_provision *provision, int type, struct sim_resource *resource)
{
    if (type != SIM_RESOURCE_SM)
        return describe_workqueue(resource, type, provision);
    describe_sms(resource, provision->device, provision->sms);
    return CUDA_SUCCESS;
}

CUresult sim_resource_of_device(int device, int type, struct sim_resource *resource)
{
    struct sim_provision provision = {.device = device, .limit = connections(), .scope = SCOPE_DEVICE};
    all_sms(provision.sms);
    return sim_resource_of_provision(&provision, type, resource);
}

SIM_API(cuDeviceGetDevResource, (CUdevice device, CUdevResource *resource, CUdevResourceType type),
        (device, resource, type))
{
    SIM_REQUIRE(resource);
    struct sim_device *found;
    SIM_TRY(sim_device_find(device, &found));
    return sim_resource_of_device(device, (int)type, (struct sim_resource *)resource);
}

// --- Splitting ------------------------------------------------------------------------------------------------

// A resource that can be split: as it was queried, and with multiprocessors.
static CUresult read_input(const CUdevResource *input, struct sim_resource *resource)
{
    SIM_REQUIRE(input);
    memcpy(resource, input, sizeof *resource);
    if (resource->type != SIM_RESOURCE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    return resource->split || !resource->sm.count ? CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION : CUDA_SUCCESS;
}

// A part of a split. Before CUDA 13.1 a part does not tell how it could be split in turn.
static void write_part(CUdevResource *to, const struct sim_resource *input, uint64_t split, const uint64_t *sms,
                       unsigned coscheduled, unsigned flags)
{
    struct sim_resource part;
    describe_sms(&part, input->device, sms);
    part.split = split;
    part.sm.least = knows_workqueues() ? input->sm.least : 0;
    part.sm.alignment = knows_workqueues() ? coscheduled : 0;
    part.sm.flags = flags;
    memcpy(to, &part, sizeof part);
}

static void write_remainder(CUdevResource *to, const struct sim_resource *input, uint64_t split, const uint64_t *sms)
{
    if (!to)
        return;
    if (count_of(sms))
        write_part(to, input, split, sms, SMALLEST_GROUP, 0);
    else
        memset(to, 0, sizeof *to);
}

SIM_API(cuDevSmResourceSplitByCount,
        (CUdevResource *result, unsigned int *nbGroups, const CUdevResource *input, CUdevResource *remainder,
         unsigned int flags, unsigned int minCount),
        (result, nbGroups, input, remainder, flags, minCount))
{
    struct sim_resource from;
    SIM_REQUIRE(nbGroups);
    SIM_TRY(read_input(input, &from));
    SIM_REQUIRE(!(flags & IGNORE_COSCHEDULING && flags & LARGEST_CLUSTERS));
    if (minCount > from.sm.count) {
        if (!result)
            *nbGroups = 0;
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    }
    bool fine = flags & IGNORE_COSCHEDULING;
    unsigned least = fine && least_partition() > SMALLEST_GROUP ? SMALLEST_GROUP : least_partition();
    unsigned unit = fine && alignment() > SMALLEST_GROUP ? SMALLEST_GROUP : alignment();
    unsigned size = (unsigned)sim_round_up(minCount > least ? minCount : least, unit);
    if (size > from.sm.count)
        size = from.sm.count;
    unsigned groups = from.sm.count / size;
    if (!result) {
        *nbGroups = groups;
        return CUDA_SUCCESS;
    }
    if (groups > *nbGroups)
        groups = *nbGroups;
    uint64_t split = atomic_fetch_add(&last_split, 1) + 1, left[SIM_SM_WORDS], part[SIM_SM_WORDS];
    memcpy(left, from.sms, sizeof left);
    for (unsigned i = 0; i < groups; i++) {
        take(left, size, part);
        write_part(&result[i], &from, split, part, unit, 0);
    }
    write_remainder(remainder, &from, split, left);
    *nbGroups = groups;
    return CUDA_SUCCESS;
}

struct group {  // CU_DEV_SM_RESOURCE_GROUP_PARAMS, which older headers lack
    unsigned count, coscheduled, preferred, flags, locality, reserved[11];
};

// How many multiprocessors a group gets of those that are left; 0 for none.
static CUresult size_of(const struct group *group, unsigned all, unsigned left, bool wanted, unsigned *size)
{
    const unsigned most = sim_config()->major >= HOPPER ? MOST_COSCHEDULED : SMALLEST_GROUP;
    unsigned unit = group->coscheduled ? group->coscheduled : alignment();
    bool backfill = group->flags & BACKFILL;
    SIM_SUPPORTED(!(group->flags & LOCALITY_FLAGS));  // of devices with several dies
    SIM_REQUIRE(!(group->flags & ~(unsigned)BACKFILL));
    if (unit % SMALLEST_GROUP || unit > most || (group->preferred && group->preferred % unit))
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    *size = group->count;
    if (!group->count)  // as many as there are
        *size = backfill ? left : left - left % unit;
    else if (group->count > all || group->count % SMALLEST_GROUP || (group->count % unit && !backfill))
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    if (*size > left || (wanted && (!*size || (*size < unit && !backfill))))
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    return CUDA_SUCCESS;
}

#if CUDA_VERSION < 13010
#define GROUP_PARAMS void
CUresult cuDevSmResourceSplit(CUdevResource *, unsigned, const CUdevResource *, CUdevResource *, unsigned, void *);
#else
#define GROUP_PARAMS CU_DEV_SM_RESOURCE_GROUP_PARAMS
_Static_assert(sizeof(struct group) == sizeof(GROUP_PARAMS), "the layout of CU_DEV_SM_RESOURCE_GROUP_PARAMS");
#endif

SIM_API(cuDevSmResourceSplit,
        (CUdevResource *result, unsigned int nbGroups, const CUdevResource *input, CUdevResource *remainder,
         unsigned int flags, GROUP_PARAMS *groupParams),
        (result, nbGroups, input, remainder, flags, groupParams))
{
    struct sim_resource from;
    struct group *groups = (struct group *)groupParams;
    SIM_REQUIRE(nbGroups && groups && !flags);
    SIM_TRY(read_input(input, &from));
    unsigned left_over = from.sm.count;
    for (unsigned i = 0; i < nbGroups; i++) {  // first whether it is possible: nothing is written otherwise
        unsigned size;
        SIM_TRY(size_of(&groups[i], from.sm.count, left_over, result != NULL, &size));
        left_over -= size;
    }
    uint64_t split = atomic_fetch_add(&last_split, 1) + 1, left[SIM_SM_WORDS], part[SIM_SM_WORDS];
    memcpy(left, from.sms, sizeof left);
    for (unsigned i = 0; i < nbGroups; i++) {
        SIM_TRY(size_of(&groups[i], from.sm.count, count_of(left), result != NULL, &groups[i].count));
        take(left, groups[i].count, part);
        if (result)
            write_part(&result[i], &from, split, part, groups[i].coscheduled ? groups[i].coscheduled : alignment(),
                       groups[i].flags);
    }
    if (result)
        write_remainder(remainder, &from, split, left);
    return CUDA_SUCCESS;
}

// --- Descriptors ----------------------------------------------------------------------------------------------

struct descriptor {
    struct descriptor *next;
    struct sim_provision provision;
};

static struct descriptor *_Atomic descriptors;

static bool same(const struct sim_provision *one, const struct sim_provision *other)
{
    return one->device == other->device && !memcmp(one->sms, other->sms, sizeof one->sms) &&
           one->limit == other->limit && one->scope == other->scope && one->workqueue == other->workqueue;
}

// No call destroys a descriptor, so there is one for each provision.
static CUresult describe(const struct sim_provision *provision, CUdevResourceDesc *handle)
{
    struct descriptor *made = NULL, *newest = atomic_load(&descriptors), *found;
    do {
        for (found = newest; found && !same(&found->provision, provision);)
            found = found->next;
        if (found)
            break;
        if (!made && !(made = malloc(sizeof *made)))
            return CUDA_ERROR_OUT_OF_MEMORY;
        *made = (struct descriptor){newest, *provision};
    } while (!atomic_compare_exchange_weak(&descriptors, &newest, made));
    if (found)
        free(made);
    *handle = (CUdevResourceDesc)(found ? found : made);
    return CUDA_SUCCESS;
}

// What was given so far of each type.
struct given {
    const struct sim_resource *sms, *config, *workqueue;
};

// From CUDA 13.1 on, sets of multiprocessors that go together have to come from one split.
static CUresult add_sms(struct sim_provision *provision, const struct sim_resource *resource, struct given *given)
{
    const struct sim_resource *first = given->sms;
    if (knows_workqueues() && first &&
        (!first->split || first->split != resource->split || first->sm.alignment != resource->sm.alignment))
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    for (int i = 0; i < SIM_SM_WORDS; i++)
        provision->sms[i] |= resource->sms[i];
    given->sms = resource;
    return CUDA_SUCCESS;
}

static CUresult add_workqueue(struct sim_provision *provision, const struct sim_resource *resource, struct given *given)
{
    const struct sim_resource **place = resource->type == SIM_RESOURCE_WORKQUEUE ? &given->workqueue : &given->config;
    if (*place)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    *place = resource;
    if (resource->type == SIM_RESOURCE_WORKQUEUE) {
        provision->workqueue = resource->workqueue;
        return CUDA_SUCCESS;
    }
    if (!resource->config.limit || resource->config.scope < SCOPE_DEVICE || resource->config.scope > SCOPE_BALANCED)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    provision->limit = resource->config.limit;
    provision->scope = resource->config.scope;
    return CUDA_SUCCESS;
}

static CUresult add(struct sim_provision *provision, const struct sim_resource *resource, struct given *given)
{
    bool workqueue = resource->type == SIM_RESOURCE_WORKQUEUE_CONFIG || resource->type == SIM_RESOURCE_WORKQUEUE;
    if (resource->type != SIM_RESOURCE_SM && !(workqueue && knows_workqueues()))
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (resource->device != provision->device)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    return workqueue ? add_workqueue(provision, resource, given) : add_sms(provision, resource, given);
}

SIM_API(cuDevResourceGenerateDesc, (CUdevResourceDesc *phDesc, CUdevResource *resources, unsigned int nbResources),
        (phDesc, resources, nbResources))
{
    SIM_REQUIRE(phDesc && resources && nbResources);
    const struct sim_resource *first = (const struct sim_resource *)resources;
    struct sim_provision provision = {.device = first->device, .limit = connections()};
    struct given given = {NULL, NULL, NULL};
    for (unsigned i = 0; i < nbResources; i++)
        SIM_TRY(add(&provision, &first[i], &given));
    if (!given.sms)
        all_sms(provision.sms);
    provision.sm_count = count_of(provision.sms);
    if (given.config && !given.workqueue)
        provision.workqueue = SIM_NEW_WORKQUEUE;
    return describe(&provision, phDesc);
}

CUresult sim_provision_find(CUdevResourceDesc handle, const struct sim_provision **provision)
{
    for (struct descriptor *one = atomic_load(&descriptors); one; one = one->next)
        if ((void *)one == (void *)handle) {
            *provision = &one->provision;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}
