// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Core dumps of kernels that fail: their settings, and a file with what is reported of the kernel.

#include "driver/coredump.h"

#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver/context.h"
#include "driver/logs.h"

// CU_COREDUMP_LIGHTWEIGHT_FLAGS of CUDA 13.0: that of newer headers has more.
enum {
    SKIP_MOST = CU_COREDUMP_SKIP_NONRELOCATED_ELF_IMAGES | CU_COREDUMP_SKIP_GLOBAL_MEMORY |
    CU_COREDUMP_SKIP_SHARED_MEMORY | CU_COREDUMP_SKIP_LOCAL_MEMORY | CU_COREDUMP_SKIP_CONSTBANK_MEMORY
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // guards every setting
static struct sim_coredump everywhere;
static bool user_trigger;
static char pipe_path[SIM_COREDUMP_PATH];

void sim_coredump_init(struct sim_coredump *settings, unsigned flags)
{
    pthread_mutex_lock(&lock);
    *settings = everywhere;
    settings->on_exception = settings->armed = everywhere.on_exception || flags & CU_CTX_COREDUMP_ENABLE;
    pthread_mutex_unlock(&lock);
}

// --- Paths ----------------------------------------------------------------------------------------------------

// Puts the name of the host, the number of the process and the time for %h, %p and %t.
static void expand(const char *pattern, char *path)
{
    char host[HOST_NAME_MAX + 1] = "", item[sizeof host];
    size_t used = 0;
    gethostname(host, sizeof host - 1);
    for (; *pattern && used + 1 < SIM_COREDUMP_PATH; pattern++) {
        item[0] = *pattern;
        item[1] = 0;
        if (pattern[0] == '%' && pattern[1] && strchr("hpt%", pattern[1])) {
            switch (*++pattern) {
            case 'h': memcpy(item, host, sizeof host); break;
            case 'p': snprintf(item, sizeof item, "%d", (int)getpid()); break;
            case 't': snprintf(item, sizeof item, "%lld", (long long)time(NULL)); break;
            default: break;
            }
        }
        used += (size_t)snprintf(path + used, SIM_COREDUMP_PATH - used, "%s", item);
    }
    path[used < SIM_COREDUMP_PATH ? used : SIM_COREDUMP_PATH - 1] = 0;
}

// --- Writing --------------------------------------------------------------------------------------------------

void sim_coredump_write(const struct sim_coredump *settings, const char *message)
{
    struct sim_coredump now;
    pthread_mutex_lock(&lock);
    now = *settings;
    pthread_mutex_unlock(&lock);
    if (!now.on_exception || !now.armed)
        return;
    char path[SIM_COREDUMP_PATH];
    expand(now.file[0] ? now.file : "core.cuda.%h.%p", path);
    FILE *file = fopen(path, "wb");
    if (!file) {
        sim_log("no core dump could be written to %s", path);
    } else {
        Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                             .e_type = ET_CORE,
                             .e_machine = EM_CUDA,
                             .e_version = EV_CURRENT,
                             .e_ehsize = sizeof header};
        fwrite(&header, sizeof header, 1, file);
        fprintf(file, "simulated CUDA driver\n%s\n", message);
        fclose(file);
    }
    if (!(now.flags & CU_COREDUMP_SKIP_ABORT))
        abort();
}

// --- The API --------------------------------------------------------------------------------------------------

static bool *flag_of(struct sim_coredump *settings, CUcoredumpSettings attribute, bool global)
{
    if (attribute == CU_COREDUMP_ENABLE_ON_EXCEPTION)
        return &settings->on_exception;
    return global && attribute == CU_COREDUMP_ENABLE_USER_TRIGGER ? &user_trigger : NULL;
}

static char *path_of(struct sim_coredump *settings, CUcoredumpSettings attribute, bool global)
{
    if (attribute == CU_COREDUMP_FILE)
        return settings->file;
    return global && attribute == CU_COREDUMP_PIPE ? pipe_path : NULL;
}

// What old attributes say of the flags: the host aborts where it does not skip that; little is dumped where all is
// skipped.
static bool read_old(unsigned flags, CUcoredumpSettings attribute)
{
    return attribute == CU_COREDUMP_TRIGGER_HOST ? !(flags & CU_COREDUMP_SKIP_ABORT) : (flags & SKIP_MOST) == SKIP_MOST;
}

static void write_old(unsigned *flags, CUcoredumpSettings attribute, bool value)
{
    unsigned mask = attribute == CU_COREDUMP_TRIGGER_HOST ? CU_COREDUMP_SKIP_ABORT : SKIP_MOST;
    bool skip = attribute == CU_COREDUMP_TRIGGER_HOST ? !value : value;
    *flags = skip ? *flags | mask : *flags & ~mask;
}

static size_t size_of(CUcoredumpSettings attribute, bool global)
{
    switch ((int)attribute) {
    case CU_COREDUMP_ENABLE_USER_TRIGGER: return global ? sizeof(bool) : 0;
    case CU_COREDUMP_ENABLE_ON_EXCEPTION:
    case CU_COREDUMP_TRIGGER_HOST:
    case CU_COREDUMP_LIGHTWEIGHT: return sizeof(bool);
    case CU_COREDUMP_PIPE: return global ? SIM_COREDUMP_PATH : 0;
    case CU_COREDUMP_FILE: return SIM_COREDUMP_PATH;
    case CU_COREDUMP_GENERATION_FLAGS: return sizeof(unsigned);
    default: return 0;
    }
}

static CUresult get(struct sim_coredump *settings, CUcoredumpSettings attribute, void *value, size_t *size)
{
    bool global = settings == &everywhere;
    size_t needed = size_of(attribute, global);
    SIM_REQUIRE(size && needed);
    if (!value) {
        *size = needed;
        return CUDA_SUCCESS;
    }
    SIM_REQUIRE(*size >= needed);
    *size = needed;
    const bool *flag = flag_of(settings, attribute, global);
    const char *path = path_of(settings, attribute, global);
    if (path)
        memcpy(value, path, needed);
    else if (attribute == CU_COREDUMP_GENERATION_FLAGS)
        memcpy(value, &settings->flags, needed);
    else
        *(bool *)value = flag ? *flag : read_old(settings->flags, attribute);
    return CUDA_SUCCESS;
}

static CUresult set(struct sim_coredump *settings, CUcoredumpSettings attribute, const void *value, size_t *size)
{
    bool global = settings == &everywhere;
    size_t needed = size_of(attribute, global);
    SIM_REQUIRE(size && needed);
    if (!value) {
        *size = needed;
        return CUDA_SUCCESS;
    }
    bool *flag = flag_of(settings, attribute, global);
    char *path = path_of(settings, attribute, global);
    SIM_REQUIRE(path ? *size <= needed : *size == needed);
    if (path) {
        char pattern[SIM_COREDUMP_PATH] = "";
        snprintf(pattern, sizeof pattern, "%.*s", (int)(*size < sizeof pattern ? *size : sizeof pattern - 1),
                 (const char *)value);
        if (global)
            expand(pattern, path);
        else
            memcpy(path, pattern, sizeof pattern);
    } else if (attribute == CU_COREDUMP_GENERATION_FLAGS) {
        memcpy(&settings->flags, value, needed);
    } else if (flag) {
        *flag = *(const bool *)value;
        if (attribute == CU_COREDUMP_ENABLE_USER_TRIGGER && *flag)
            settings->on_exception = true;  // as drivers have it
    } else {
        write_old(&settings->flags, attribute, *(const bool *)value);
    }
    return CUDA_SUCCESS;
}

SIM_API(cuCoredumpGetAttributeGlobal, (CUcoredumpSettings attrib, void *value, size_t *size), (attrib, value, size))
{
    pthread_mutex_lock(&lock);
    CUresult status = get(&everywhere, attrib, value, size);
    pthread_mutex_unlock(&lock);
    return status;
}

SIM_API(cuCoredumpSetAttributeGlobal, (CUcoredumpSettings attrib, void *value, size_t *size), (attrib, value, size))
{
    pthread_mutex_lock(&lock);
    CUresult status = set(&everywhere, attrib, value, size);
    pthread_mutex_unlock(&lock);
    return status;
}

SIM_API(cuCoredumpGetAttribute, (CUcoredumpSettings attrib, void *value, size_t *size), (attrib, value, size))
{
    struct sim_context *context;
    SIM_REQUIRE(size_of(attrib, true));
    SIM_TRY(sim_current_quiet(&context));
    SIM_REQUIRE_THAT(size_of(attrib, false), "a context has no attribute %d of core dumps", (int)attrib);
    pthread_mutex_lock(&lock);
    CUresult status = get(&context->coredump, attrib, value, size);
    pthread_mutex_unlock(&lock);
    return status;
}

SIM_API(cuCoredumpSetAttribute, (CUcoredumpSettings attrib, void *value, size_t *size), (attrib, value, size))
{
    struct sim_context *context;
    SIM_REQUIRE(size_of(attrib, true));
    SIM_TRY(sim_current_quiet(&context));
    SIM_REQUIRE_THAT(size_of(attrib, false), "a context has no attribute %d of core dumps", (int)attrib);
    pthread_mutex_lock(&lock);
    CUresult status = set(&context->coredump, attrib, value, size);
    pthread_mutex_unlock(&lock);
    return status;
}
