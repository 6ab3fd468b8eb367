// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "driver/config.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct sim_config config;
static pthread_once_t once = PTHREAD_ONCE_INIT;

enum { DEFAULT_DRIVER_VERSION = 13000, MINIMUM_MEMORY = 1 << 20, MOST_WORKERS = 16, MOST_FANS = 8 };
static const size_t DEFAULT_MEMORY = (size_t)1 << 30;
static const size_t MAXIMUM_MEMORY = (size_t)1 << 40;

static size_t parse_bytes(const char *text, size_t fallback)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || value <= 0)
        return fallback;
    switch (toupper((unsigned char)*end)) {
    case 'K': value *= 1 << 10; break;
    case 'M': value *= 1 << 20; break;
    case 'G': value *= 1 << 30; break;
    default: break;
    }
    if (value < MINIMUM_MEMORY)
        return MINIMUM_MEMORY;
    return value > (double)MAXIMUM_MEMORY ? MAXIMUM_MEMORY : (size_t)value;
}

static int limited(int value, int most) { return value < 0 ? 0 : value > most ? most : value; }

static void read_environment(void)
{
    const char *text = getenv("CUDA_SIM_DRIVER_VERSION");
    config.driver_version = text && atoi(text) > 0 ? atoi(text) : DEFAULT_DRIVER_VERSION;

    text = getenv("CUDA_SIM_DEVICES");
    config.devices = text && *text ? limited(atoi(text), SIM_MAX_DEVICES) : 1;

    text = getenv("CUDA_SIM_MEMORY");
    config.memory = text ? parse_bytes(text, DEFAULT_MEMORY) : DEFAULT_MEMORY;

    config.major = 9;
    config.minor = 0;
    text = getenv("CUDA_SIM_COMPUTE_CAPABILITY");
    if (text && isdigit((unsigned char)*text)) {
        char *end;
        config.major = (int)strtol(text, &end, 10);
        config.minor = *end == '.' ? atoi(end + 1) : 0;
    }

    text = getenv("CUDA_SIM_PEER_ACCESS");
    config.peer_access = !text || strcmp(text, "0") != 0;

    text = getenv("CUDA_SIM_REPORT");
    config.report_stderr = text && strcmp(text, "stderr") == 0;

    text = getenv("CUDA_SIM_KERNEL_SECONDS");
    config.kernel_seconds = text ? strtod(text, NULL) : 0;

    text = getenv("CUDA_SIM_DELAY_SECONDS");
    config.delay_seconds = text ? strtod(text, NULL) : 0;

    text = getenv("CUDA_SIM_SHARED");
    config.shared = text ? strdup(text) : NULL;

    text = getenv("CUDA_SIM_FANS");
    config.fans = text ? limited(atoi(text), MOST_FANS) : 0;

    text = getenv("CUDA_SIM_NVLINKS");
    config.nvlinks = text ? limited(atoi(text), SIM_MAX_NVLINKS) : config.devices > 1 ? SIM_MAX_NVLINKS : 0;

    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    config.workers = processors < 1 ? 1 : processors > MOST_WORKERS ? MOST_WORKERS : (unsigned)processors;
}

const struct sim_config *sim_config(void)
{
    pthread_once(&once, read_environment);
    return &config;
}
