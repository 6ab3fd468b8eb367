// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Physical memory is a memory file, so that it can be mapped at several addresses and in several processes. Addresses
// come from one stretch of address space that is never given back to the system: a late access by work that is still
// running finds nothing there, rather than somebody else's memory.

#define _GNU_SOURCE
#include "memory/virtual.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory/arena.h"
#include "driver/device.h"
#include "memory/pool.h"

static const size_t ADDRESSES = (size_t)1 << 40;
static const size_t FEWEST_ADDRESSES = (size_t)1 << 32;
static const size_t LAST_ADDRESS = (size_t)1 << 49;  // of a GPU
enum { LARGEST_NODE = 1024, FIRST_WITH_HOST = 13000 };

struct reservation {
    struct sim_range range;
    struct sim_history history;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // guards what follows, and the counts of physical memory
static uintptr_t base, end;                               // the stretch of addresses
static uintptr_t cursor;                                  // where the next reservation is tried first
static struct sim_range *reservations;
static size_t reservation_count, reservation_bytes;
static uint64_t reservations_made;

static void unlock(pthread_mutex_t **held) { pthread_mutex_unlock(*held); }

// Holds the lock to the end of the scope.
#define LOCKED \
    __attribute__((cleanup(unlock))) pthread_mutex_t *held = &lock; \
    pthread_mutex_lock(held)

// --- Reservations ---------------------------------------------------------------------------------------------

static bool start_addresses(void)
{
    for (size_t bytes = ADDRESSES; !base && bytes >= FEWEST_ADDRESSES; bytes /= 2) {
        void *found = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (found != MAP_FAILED) {
            base = cursor = sim_round_up((uintptr_t)found, SIM_GRANULARITY);
            end = (uintptr_t)found + bytes;
        }
    }
    return base != 0;
}

// The first free place from an address on; 0 if there is none.
static uintptr_t fit_from(uintptr_t address, size_t size, size_t alignment)
{
    for (;;) {
        address = sim_round_up(address, alignment);
        if (address < base || address > end || size > end - address)
            return 0;
        const struct sim_range *before = sim_ranges_before(reservations, address + size - 1);
        if (!before || before->start + before->size <= address)
            return address;
        address = before->start + before->size;
    }
}

SIM_API(cuMemAddressReserve,
        (CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags),
        (ptr, size, alignment, addr, flags))
{
    // The real driver asks for more than the page size that its header speaks of.
    SIM_REQUIRE(ptr && size && size % SIM_GRANULARITY == 0 && addr % SIM_GRANULARITY == 0 && !flags);
    SIM_REQUIRE((alignment & (alignment - 1)) == 0);
    if (addr >= LAST_ADDRESS || size >= LAST_ADDRESS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (alignment < SIM_GRANULARITY)
        alignment = SIM_GRANULARITY;
    LOCKED;
    struct reservation *reservation = calloc(1, sizeof *reservation);
    if (!reservation || !start_addresses()) {
        free(reservation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uintptr_t place = addr >= base && addr % alignment == 0 ? fit_from(addr, size, alignment) : 0;
    if (place != addr)
        place = 0;  // the hint cannot be met
    if (!place)
        place = fit_from(cursor, size, alignment);
    if (!place)
        place = fit_from(base, size, alignment);
    if (!place) {
        free(reservation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (place + size > cursor)
        cursor = place + size;
    reservation->range = (struct sim_range){.start = place, .size = size};
    reservation->history = (struct sim_history){
        .start = place, .size = size, .allocated_by = "cuMemAddressReserve", .order = ++reservations_made};
    sim_ranges_add(&reservations, &reservation->range);
    reservation_count++;
    reservation_bytes += size;
    *ptr = place;
    return CUDA_SUCCESS;
}

SIM_API(cuMemAddressFree, (CUdeviceptr ptr, size_t size), (ptr, size))
{
    LOCKED;
    struct reservation *reservation = (struct reservation *)sim_ranges_at(reservations, ptr);
    const char *why = NULL;
    if (!reservation)
        why = "is not the start of a reservation";
    else if (reservation->range.start != ptr || reservation->range.size != size)
        why = "and this size are not those of the reservation";
    else if (sim_allocation_overlaps(ptr, size))
        why = "has memory mapped";
    if (why) {
        sim_report("invalid free", "cuMemAddressFree", ptr, size, reservation ? &reservation->history : NULL,
                   "0x%llx %s", (unsigned long long)ptr, why);
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_ranges_remove(&reservations, &reservation->range);
    reservation_count--;
    reservation_bytes -= size;
    free(reservation);
    return CUDA_SUCCESS;
}

bool sim_reservation_at(uintptr_t address, uintptr_t *start, size_t *size)
{
    LOCKED;
    const struct sim_range *range = sim_ranges_at(reservations, address);
    if (range) {
        *start = range->start;
        *size = range->size;
    }
    return range != NULL;
}

void sim_reservations_count(size_t *count, size_t *bytes)
{
    LOCKED;
    *count = reservation_count;
    *bytes = reservation_bytes;
}

static void report_leak(struct sim_range *range, void *unused)
{
    (void)unused;
    sim_report("leak", "exit", range->start, range->size, &((struct reservation *)range)->history,
               "%zu bytes of addresses were never freed", range->size);
}

void sim_reservations_report_leaks(void)
{
    LOCKED;
    sim_ranges_each(reservations, report_leak, NULL);
}

// --- Physical memory ------------------------------------------------------------------------------------------

static bool on_host(const CUmemAllocationProp *properties)
{
    return properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
}

static bool has_node(int node)
{
    char path[64];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d", node);
    return node == 0 || (node > 0 && node < LARGEST_NODE && access(path, F_OK) == 0);
}

static CUresult check_properties(const CUmemAllocationProp *properties)
{
    SIM_REQUIRE(properties && properties->type == CU_MEM_ALLOCATION_TYPE_PINNED && !properties->win32HandleMetaData);
    if (properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_FABRIC)
        return CUDA_ERROR_NOT_PERMITTED;  // as on a machine without a channel to share memory over
    SIM_REQUIRE((properties->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0);
    struct sim_device *device;
    switch ((int)properties->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: return sim_device_find(properties->location.id, &device);
    case CU_MEM_LOCATION_TYPE_HOST:
        SIM_REQUIRE(properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE &&
                    sim_config()->driver_version >= FIRST_WITH_HOST);
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA: SIM_REQUIRE(has_node(properties->location.id)); return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

SIM_API(cuMemGetAllocationGranularity,
        (size_t *granularity, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option),
        (granularity, prop, option))
{
    // The properties may be such that no memory can be had: only cuMemCreate looks at them.
    SIM_REQUIRE(granularity && prop);
    SIM_REQUIRE(option == CU_MEM_ALLOC_GRANULARITY_MINIMUM || option == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    *granularity = SIM_GRANULARITY;
    return CUDA_SUCCESS;
}

void sim_physical_finalize(void *pointer)
{
    const struct sim_physical *physical = pointer;
    if (physical->file >= 0)
        close(physical->file);
    if (physical->charged)
        sim_device_refund(sim_device_at(physical->properties.location.id), physical->size);
}

// With the lock held: is anything left that needs the memory?
static void settle(struct sim_physical *physical)
{
    if (!physical->handles && !physical->mappings)
        sim_object_retire(physical);
}

// With the lock held: the memory for a handle that was not released yet.
static CUresult find(CUmemGenericAllocationHandle handle, struct sim_physical **physical)
{
    void *found;
    SIM_REQUIRE(sim_object_find(SIM_PHYSICAL, (void *)(uintptr_t)handle, &found) == SIM_FOUND);
    *physical = found;
    SIM_REQUIRE((*physical)->handles);  // mappings alone do not make the handle valid
    return CUDA_SUCCESS;
}

// A memory file tells everything about itself in its name, which another process can read.
#define FILE_NAME "cuda-sim location %d %d handles %d rdma %d"

static bool charge(const CUmemAllocationProp *properties, size_t size)
{
    struct sim_device *device = sim_device_at(properties->location.id);
    if (sim_device_charge(device, size))
        return true;
    sim_pools_trim_all(device->ordinal);  // memory that pools keep for later is given up first
    return sim_device_charge(device, size);
}

SIM_API(cuMemCreate,
        (CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop, unsigned long long flags),
        (handle, size, prop, flags))
{
    SIM_REQUIRE(handle && size && size % SIM_GRANULARITY == 0 && !flags);
    SIM_TRY(check_properties(prop));
    if (size > SIZE_MAX / 2)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct sim_physical *physical = sim_object_new(SIM_PHYSICAL);
    if (!physical)
        return CUDA_ERROR_OUT_OF_MEMORY;
    physical->properties = *prop;
    if (prop->location.type == CU_MEM_LOCATION_TYPE_HOST) {  // reads back as its nearest node
        physical->properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
        physical->properties.location.id = 0;
    }
    physical->size = size;
    physical->handles = 1;
    physical->file = -1;
    char name[128];
    const bool on_device = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    const int place = on_device ? sim_device_at(prop->location.id)->gpu : prop->location.id;
    snprintf(name, sizeof name, FILE_NAME, (int)prop->location.type, place, (int)prop->requestedHandleTypes,
             prop->allocFlags.gpuDirectRDMACapable);
    physical->charged = !on_host(prop) && charge(prop, size);
    if (physical->charged || on_host(prop))
        physical->file = memfd_create(name, MFD_CLOEXEC);
    if (physical->file < 0 || ftruncate(physical->file, (off_t)size)) {
        sim_object_retire(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = sim_object_handle(physical);
    return CUDA_SUCCESS;
}

SIM_API(cuMemRelease, (CUmemGenericAllocationHandle handle), (handle))
{
    LOCKED;
    SIM_HELD struct sim_physical *physical = NULL;
    if (find(handle, &physical) != CUDA_SUCCESS) {
        sim_report("double free", "cuMemRelease", (uintptr_t)handle, 0, NULL, "0x%llx is not a handle, or was released",
                   handle);
        return CUDA_ERROR_INVALID_VALUE;
    }
    physical->handles--;
    settle(physical);
    return CUDA_SUCCESS;
}

SIM_API(cuMemGetAllocationPropertiesFromHandle, (CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle),
        (prop, handle))
{
    SIM_REQUIRE(prop);
    LOCKED;
    SIM_HELD struct sim_physical *physical = NULL;
    SIM_TRY(find(handle, &physical));
    *prop = physical->properties;
    return CUDA_SUCCESS;
}

SIM_API(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle *handle, void *addr), (handle, addr))
{
    SIM_REQUIRE(handle);
    LOCKED;
    struct sim_allocation mapping;
    SIM_REQUIRE(sim_allocation_at((uintptr_t)addr, &mapping) && mapping.physical);
    mapping.physical->handles++;
    *handle = sim_object_handle(mapping.physical);
    return CUDA_SUCCESS;
}

// --- Sharing --------------------------------------------------------------------------------------------------

SIM_API(cuMemExportToShareableHandle,
        (void *shareableHandle, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType handleType,
         unsigned long long flags),
        (shareableHandle, handle, handleType, flags))
{
    SIM_REQUIRE(shareableHandle && !flags && handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    LOCKED;
    SIM_HELD struct sim_physical *physical = NULL;
    SIM_TRY(find(handle, &physical));
    SIM_REQUIRE(physical->properties.requestedHandleTypes & handleType);
    int file = fcntl(physical->file, F_DUPFD_CLOEXEC, 0);
    if (file < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *(int *)shareableHandle = file;
    return CUDA_SUCCESS;
}

struct search {
    struct stat file;
    struct sim_physical *found;
};

static void compare(void *object, void *arg)
{
    struct search *search = arg;
    struct sim_physical *physical = object;
    struct stat file;
    if (physical->file >= 0 && fstat(physical->file, &file) == 0 && file.st_ino == search->file.st_ino &&
        file.st_dev == search->file.st_dev)
        search->found = physical;
}

// What the name of a memory file says; false for any other file.
static bool read_properties(int file, CUmemAllocationProp *properties)
{
    char path[64], name[160] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (readlink(path, name, sizeof name - 1) < 0)
        return false;
    int type, id, handles, rdma;
    if (sscanf(name, "/memfd:" FILE_NAME, &type, &id, &handles, &rdma) != 4)
        return false;
    *properties = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .requestedHandleTypes = (CUmemAllocationHandleType)handles,
                                        .location = {.type = (CUmemLocationType)type},
                                        .allocFlags = {.gpuDirectRDMACapable = rdma != 0}};
    properties->location.id = type == CU_MEM_LOCATION_TYPE_DEVICE ? sim_device_of_gpu(id) : id;
    return type != CU_MEM_LOCATION_TYPE_DEVICE || properties->location.id >= 0;  // else hidden from this process
}

SIM_API(cuMemImportFromShareableHandle,
        (CUmemGenericAllocationHandle *handle, void *osHandle, CUmemAllocationHandleType shHandleType),
        (handle, osHandle, shHandleType))
{
    SIM_REQUIRE(handle && shHandleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    int file = (int)(intptr_t)osHandle;
    struct search search = {.found = NULL};
    CUmemAllocationProp properties;
    SIM_REQUIRE(fstat(file, &search.file) == 0 && read_properties(file, &properties));
    SIM_TRY(check_properties(&properties));
    LOCKED;
    sim_object_each(SIM_PHYSICAL, compare, &search);
    struct sim_physical *physical = search.found;
    if (!physical) {
        physical = sim_object_new(SIM_PHYSICAL);
        if (!physical)
            return CUDA_ERROR_OUT_OF_MEMORY;
        physical->properties = properties;
        physical->properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;  // only its own process exports it
        physical->size = (size_t)search.file.st_size;
        physical->file = fcntl(file, F_DUPFD_CLOEXEC, 0);
        if (physical->file < 0) {
            sim_object_retire(physical);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    physical->handles++;
    *handle = sim_object_handle(physical);
    return CUDA_SUCCESS;
}

// --- Mappings -------------------------------------------------------------------------------------------------

SIM_API(cuMemMap,
        (CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags),
        (ptr, size, offset, handle, flags))
{
    SIM_REQUIRE(size && !flags);
    if (offset || ptr % SIM_GRANULARITY)
        return CUDA_ERROR_NOT_SUPPORTED;
    LOCKED;
    SIM_HELD struct sim_physical *physical = NULL;
    SIM_TRY(find(handle, &physical));
    if (size != physical->size)
        return CUDA_ERROR_NOT_SUPPORTED;  // no driver maps a part yet
    const struct sim_range *reserved = sim_ranges_at(reservations, ptr);
    SIM_REQUIRE(reserved && size <= reserved->start + reserved->size - ptr && !sim_allocation_overlaps(ptr, size));
    const CUmemAllocationProp *properties = &physical->properties;
    struct sim_allocation description = {
        .range = {.start = ptr, .size = size},
        .memory = SIM_VIRTUAL_MEMORY,
        .device = on_host(properties) ? 0 : properties->location.id,
        .on_host = on_host(properties),
        .physical = physical,
    };
    if (mmap((void *)ptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, physical->file, 0) == MAP_FAILED ||
        !sim_allocation_add(&description))
        return CUDA_ERROR_OUT_OF_MEMORY;
    physical->mappings++;
    return CUDA_SUCCESS;
}

// With the lock held: is the range made of whole mappings? `host` says whether all of them are of host memory.
static bool fully_mapped(uintptr_t start, size_t size, bool *host)
{
    struct sim_allocation mapping;
    uintptr_t address = start;
    *host = true;
    while (address - start < size) {
        if (!sim_allocation_at(address, &mapping) || !mapping.physical || mapping.range.start != address)
            return false;
        *host = *host && mapping.on_host;
        address += mapping.range.size;
    }
    return size && address - start == size;
}

static bool is_mapping(const struct sim_allocation *allocation) { return allocation->physical != NULL; }

SIM_API(cuMemUnmap, (CUdeviceptr ptr, size_t size), (ptr, size))
{
    LOCKED;
    bool host;
    if (!fully_mapped(ptr, size, &host)) {
        struct sim_allocation mapping;
        bool known = sim_allocation_at(ptr, &mapping);
        sim_report("invalid free", "cuMemUnmap", ptr, size, known ? &mapping.history : NULL,
                   "%zu bytes at 0x%llx are not whole mappings", size, (unsigned long long)ptr);
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (uintptr_t address = ptr; address - ptr < size;) {
        struct sim_allocation mapping;
        sim_allocation_remove(address, is_mapping, &mapping);
        // Work that still runs must find something there: it is a fault on hardware, not a crash of the program.
        mmap((void *)address, mapping.range.size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
        address += mapping.range.size;
        mapping.physical->mappings--;
        settle(mapping.physical);
    }
    return CUDA_SUCCESS;
}

// --- Rights ---------------------------------------------------------------------------------------------------

// The bit of a location; 0 where there is none.
static CUresult right_of(CUmemLocation location, bool host_memory, uint32_t *right)
{
    struct sim_device *device;
    switch ((int)location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        SIM_TRY(sim_device_find(location.id, &device));
        *right = 1u << location.id;
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        SIM_REQUIRE(host_memory);
        *right = SIM_HOST_RIGHT;
        return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

SIM_API(cuMemSetAccess, (CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count),
        (ptr, size, desc, count))
{
    SIM_REQUIRE(desc && count);
    LOCKED;
    bool host;
    SIM_REQUIRE(fully_mapped(ptr, size, &host));
    struct sim_rights given = {0, 0}, kept = {UINT32_MAX, UINT32_MAX};
    for (size_t i = 0; i < count; i++) {
        uint32_t right, flags = desc[i].flags;
        SIM_TRY(right_of(desc[i].location, host, &right));
        SIM_REQUIRE(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                    flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        kept.readers &= ~right;
        kept.writers &= ~right;
        given.readers = flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ? given.readers & ~right : given.readers | right;
        given.writers = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? given.writers | right : given.writers & ~right;
    }
    sim_allocation_set_rights(ptr, size, given, kept);
    return CUDA_SUCCESS;
}

SIM_API(cuMemGetAccess, (unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr),
        (flags, location, ptr))
{
    SIM_REQUIRE(flags && location);
    struct sim_allocation mapping;
    SIM_REQUIRE(sim_allocation_at(ptr, &mapping) && mapping.physical);
    uint32_t right;
    SIM_TRY(right_of(*location, mapping.on_host, &right));
    *flags = mapping.rights.writers & right   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
             : mapping.rights.readers & right ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                              : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}
