// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// PTX reader and interpreter: the interface that the rest of the simulated driver uses.
//
// A module is loaded once and is immutable afterwards (its global variables aside), so any number of
// threads may launch entries of one module at the same time. Every address that crosses this interface is a
// host pointer: device memory is ordinary host memory that the interpreter reads and writes directly.
#ifndef SIM_PTX_H
#define SIM_PTX_H

#include <stddef.h>
#include <stdint.h>

typedef struct sim_ptx_module sim_ptx_module;
struct sim_texture;  // texture/image.h
struct sim_surface;

// What the interpreter asks of the driver. The structure is copied by sim_ptx_load; `ctx` and `epoch` must
// outlive the module. Callbacks may come from several threads at once. Optional members may be NULL.
typedef struct sim_ptx_host {
    void *ctx;

    // Memory for the module's variables, zero-filled. Return 0 or a CUresult. NULL: malloc is used, and the
    // variables are then always accessible without `check`.
    int (*alloc)(void *ctx, size_t size, size_t align, uint64_t *addr);
    void (*release)(void *ctx, uint64_t addr);

    // Device-side malloc and free (in a kernel). NULL: a heap of the module's own, of 8 MiB, which needs no `check`.
    // Not 0 from heap_alloc makes malloc return NULL; from heap_free it fails the launch.
    int (*heap_alloc)(void *ctx, size_t size, uint64_t *addr);
    int (*heap_free)(void *ctx, uint64_t addr);

    // May a kernel read (or write) `size` bytes at `addr`? 0: yes, and range[0], range[1] receive the first and
    // one-past-last address for which the same answer holds (at least the bytes asked about); not 0: the launch
    // fails with CUDA_ERROR_ILLEGAL_ADDRESS. NULL: every address is accepted. The answer is cached per worker
    // thread until *epoch changes, so bump *epoch at every free, unmap or change of access.
    int (*check)(void *ctx, uint64_t addr, size_t size, int is_write, uint64_t range[2]);
    const uint64_t *epoch;  // read atomically; NULL: answers stay valid for the length of one launch

    // Copies the texture or the surface behind a handle. Not 0: there is none, and the launch fails with
    // CUDA_ERROR_ILLEGAL_ADDRESS. NULL: there are none at all.
    int (*texture)(void *ctx, uint64_t handle, struct sim_texture *out);
    int (*surface)(void *ctx, uint64_t handle, struct sim_surface *out);

    // One finished piece of printf output (not NUL-terminated). NULL: written to stdout.
    void (*print)(void *ctx, const char *text, size_t len);
} sim_ptx_host;

typedef enum sim_ptx_class {
    SIM_PTX_INT,    // an integer or a pointer
    SIM_PTX_FLOAT,  // f16, f32 or f64, by size
    SIM_PTX_BYTES,  // an aggregate (an array of bytes in the text)
} sim_ptx_class;

typedef struct sim_ptx_param {
    uint32_t offset, size, align;
    sim_ptx_class type;
    int is_pointer;  // the text says .ptr
} sim_ptx_param;

// One .entry. All members are read-only for the caller and live as long as the module.
typedef struct sim_ptx_entry {
    sim_ptx_module *module;
    const char *name;
    const sim_ptx_param *params;
    uint32_t param_count;
    uint32_t param_bytes;         // size of the whole parameter buffer
    uint32_t shared_bytes;        // static shared memory per block
    uint32_t local_bytes;         // local memory per thread (this function's frame, callees not included)
    uint32_t const_bytes;         // .const variables of the module
    uint32_t registers;           // an estimate, 16..255
    uint32_t maxntid[3];          // .maxntid, 0 where the text has none
    uint32_t reqntid[3];          // .reqntid, 0 where the text has none
    uint32_t minnctapersm;        // .minnctapersm, 0 if none
    uint32_t max_threads;         // most threads per block: the product of reqntid or maxntid, else 1024
    uint32_t cluster[3];          // .reqnctapercluster, 0 where the text has none
    uint32_t max_cluster_rank;    // .maxclusterrank, 0 if none
    int explicit_cluster;         // .explicitcluster
    uint32_t max_dynamic_shared;  // with the default carve-out: 49152 - shared_bytes
    uint32_t ptx_version;         // 10 * major + minor, as CU_FUNC_ATTRIBUTE_PTX_VERSION
    uint32_t target_sm;           // 75 for sm_75
    const void *code;             // private
} sim_ptx_entry;

typedef struct sim_ptx_global {
    const char *name;
    uint64_t address;
    size_t size;
    int is_const;    // .const
    int is_managed;  // .attribute(.managed)
} sim_ptx_global;

typedef struct sim_ptx_launch {
    uint32_t grid[3], block[3];
    uint32_t cluster[3];      // all 0: the entry's own, or none
    uint32_t dynamic_shared;  // bytes
    const void *params;       // a buffer of entry->param_bytes bytes; copied before the call runs anything
    int cooperative;          // all blocks are resident at once, grid synchronisation works
    const int *cancel;        // read atomically; not 0 stops the launch with CUDA_ERROR_LAUNCH_FAILED; may be NULL
    double time_limit;        // seconds, 0: none; then CUDA_ERROR_LAUNCH_TIMEOUT
    unsigned workers;         // threads that run blocks, the calling one included; 0 means 1
    unsigned sm_count;        // %nsmid; 0 means 1
    const uint16_t *sms;      // the %smid of those that it runs on, sms_count of them; NULL: all, from 0 on
    unsigned sms_count;
    uint64_t grid_id;  // %gridid
    // What cudaGraphSetConditional does: returns 0 if the handle is none of the launch's. NULL outside of graphs.
    int (*set_condition)(void *ctx, uint64_t handle, uint32_t value);
    void *condition_ctx;
} sim_ptx_launch;

enum { SIM_PTX_MESSAGE = 1152 };

typedef struct sim_ptx_fault {
    char message[SIM_PTX_MESSAGE];  // one line: what is wrong, address, block, thread, line of the source, instruction
    unsigned line;                  // line of the PTX text, 0 if none
    uint64_t address;               // the address accessed, 0 if none
    uint32_t block[3], thread[3];
} sim_ptx_fault;

// Returns 0, or CUDA_ERROR_INVALID_PTX (218), CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222),
// CUDA_ERROR_OUT_OF_MEMORY (2). `log` receives one line that names the line of the text and what is wrong (or
// an empty string). `text` need not end in NUL; what follows a NUL inside is another text, which is linked with the
// ones before it: what is extern in one may be defined in another, what is neither visible nor weak is a text's own.
int sim_ptx_load(const char *text, size_t len, const sim_ptx_host *host, sim_ptx_module **out, char *log,
                 size_t log_len);
// Reads a text that is to be linked later: what is extern may stay undefined. Results as above.
int sim_ptx_check(const char *text, size_t len, char *log, size_t log_len);
// No launch of the module may be running, nor come after either. The first frees the memory of its variables only.
void sim_ptx_free_variables(sim_ptx_module *module);
void sim_ptx_unload(sim_ptx_module *module);

unsigned sim_ptx_entry_count(const sim_ptx_module *module);
const sim_ptx_entry *sim_ptx_entry_at(const sim_ptx_module *module, unsigned index);  // NULL past the end
const sim_ptx_entry *sim_ptx_entry_find(const sim_ptx_module *module, const char *name);

unsigned sim_ptx_global_count(const sim_ptx_module *module);
const sim_ptx_global *sim_ptx_global_at(const sim_ptx_module *module, unsigned index);
const sim_ptx_global *sim_ptx_global_find(const sim_ptx_module *module, const char *name);

// Runs the grid to its end on the calling thread and workers-1 helpers. Returns 0 or a CUresult, and then fills
// `fault` (which may be NULL). Dimensions and sizes are taken as validated, except that a zero dimension or more
// than 1024 threads per block is CUDA_ERROR_INVALID_VALUE (1).
int sim_ptx_launch_grid(const sim_ptx_entry *entry, const sim_ptx_launch *launch, sim_ptx_fault *fault);

#endif
