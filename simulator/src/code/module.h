// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Modules, libraries and what they hold.
//
// A library belongs to no context: it keeps the image and is loaded as a hidden module into each context in which it
// is used. Functions belong to a module, kernels to a library; each holds a reference to its owner, and the owner's
// end ends their handles.

#ifndef SIM_MODULE_H
#define SIM_MODULE_H

#include "driver/config.h"
#include "driver/context.h"
#include "ptx/ptx.h"

struct sim_settings {  // what a program may change about a function
    int max_dynamic_shared;
    int carveout;
    int cluster[3];
    int non_portable;
    int cluster_policy;
};

struct sim_function {
    struct sim_object base;
    struct sim_module *module;
    const sim_ptx_entry *entry;
    struct sim_kernel *kernel;  // whose settings count; NULL for functions of a module of the program's
    struct sim_settings settings;
};

struct sim_module {
    struct sim_object base;
    struct sim_context *context;
    struct sim_library *library;  // NULL for modules of the program's; the library outlives its modules' handles
    sim_ptx_module *image;
    pthread_mutex_t lock;
    struct sim_function **functions;  // by entry; made on first use
};

struct sim_kernel {
    struct sim_object base;
    struct sim_library *library;
    const sim_ptx_entry *entry;  // of the library's own image
    pthread_mutex_t lock;
    struct sim_settings settings[SIM_MAX_DEVICES];
};

struct sim_library {
    struct sim_object base;
    char *text;
    size_t length;
    CUresult status;              // why the image cannot be used; found when it is loaded, told when it is used
    sim_ptx_module *image;        // for questions that need no context
    struct sim_kernel **kernels;  // by entry
    pthread_mutex_t lock;         // guards what follows
    struct loaded {
        uint64_t context_id;
        struct sim_module *module;  // with a reference
    } *loaded;
    size_t loaded_count;
};

// --- Images ---------------------------------------------------------------------------------------------------

struct sim_log {  // a buffer of the program's
    char *text;
    size_t size, used;
    void **used_out;
};

struct sim_jit {  // the options of a load or a link that mean something here
    struct sim_log error, info;
    float *wall_time_out;
};

CUresult sim_jit_read(struct sim_jit *jit, unsigned count, CUjit_option *options, void **values);
void sim_log_add(struct sim_log *log, const char *text);
// Finds the PTX in an image, which may be a fat binary, or a cubin with PTX behind it: the texts, each but the last
// with a NUL behind it, that sim_ptx_load takes as one module. The reason of a failure goes to the log of `jit`, which
// may be NULL.
CUresult sim_image_find(const void *image, struct sim_jit *jit, const char **text, size_t *length);
bool sim_image_is_cut_short(const void *image, size_t size);
// Makes a cubin of texts, as the linker's output: an ELF file with PTX behind it, and without machine code.
void *sim_image_make(const char *text, size_t length, size_t *size);
// Loads PTX text; `context` is NULL for an image that is only asked questions.
CUresult sim_image_load(const char *text, size_t length, struct sim_context *context, struct sim_jit *jit,
                        sim_ptx_module **image);
CUresult sim_image_read_file(const char *path, char **data, size_t *length);  // `length` may be NULL

// --- Objects --------------------------------------------------------------------------------------------------

CUresult sim_module_new(struct sim_context *context, struct sim_library *library, sim_ptx_module *image,
                        struct sim_module **module);
void sim_module_retire(struct sim_module *module);
CUresult sim_module_function(struct sim_module *module, const sim_ptx_entry *entry, struct sim_function **function);
CUresult sim_library_module(struct sim_library *library, struct sim_context *context, struct sim_module **module);
CUresult sim_library_find(CUlibrary handle, struct sim_library **library);
CUresult sim_kernel_find(CUkernel handle, struct sim_kernel **kernel);
// The function of a handle, which may be a CUkernel: then in the context given. Takes a reference.
CUresult sim_function_find(CUfunction handle, struct sim_context *context, struct sim_function **function);
void sim_modules_retire_of(struct sim_context *context);
void sim_libraries_forget(struct sim_context *context);  // drops what libraries loaded into it

struct sim_link {  // a link that is being prepared
    struct sim_object base;
    pthread_mutex_t lock;  // guards what follows
    struct sim_jit jit;
    char *text;  // what was added, each with a NUL behind it
    size_t length;
    void *image;  // what came out
    size_t image_size;
};

void sim_link_finalize(void *link);
void sim_module_finalize(void *module);
void sim_library_finalize(void *library);
void sim_kernel_finalize(void *kernel);
void sim_function_finalize(void *function);

// --- Functions ------------------------------------------------------------------------------------------------

void sim_settings_init(struct sim_settings *settings, const sim_ptx_entry *entry);
struct sim_settings sim_function_settings(struct sim_function *function);
int sim_device_value(CUdevice_attribute attribute);  // of the configured device
// How many blocks fit on a multiprocessor.
int sim_blocks_per_multiprocessor(const sim_ptx_entry *entry, int threads, size_t dynamic_shared,
                                  const struct sim_settings *settings);

#endif
