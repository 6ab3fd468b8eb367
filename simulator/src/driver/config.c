// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "driver/config.h"

#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { DEFAULT_DRIVER_VERSION = 13000, OLDEST_DRIVER_VERSION = 5000, NEWEST_DRIVER_VERSION = 99990 };
enum { MOST_WORKERS = 16, MOST_FANS = 8, ALL_NVLINKS = -1 };
enum { OLDEST_CAPABILITY = 5, NEWEST_CAPABILITY = 19, NAME = 64 };
static const size_t DEFAULT_MEMORY = (size_t)1 << 30;
static const size_t MINIMUM_MEMORY = (size_t)1 << 20;
static const size_t MAXIMUM_MEMORY = (size_t)1 << 40;
static const char PREFIX[] = "CUDA_SIM_";

extern char **environ;

static struct sim_config config;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// --- Values -------------------------------------------------------------------------------------------------------

// A number from `least` to `most`, in decimal digits only.
static bool read_int(const char *text, int least, int most, int *value)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || number < least || number > most)
        return false;
    *value = (int)number;
    return true;
}

static bool read_switch(const char *text, bool *value)
{
    int number;
    if (!read_int(text, 0, 1, &number))
        return false;
    *value = number != 0;
    return true;
}

static bool read_seconds(const char *text, double *value)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || !isfinite(number) || number < 0)
        return false;
    *value = number;
    return true;
}

static bool read_devices(const char *text) { return read_int(text, 0, SIM_MAX_DEVICES, &config.devices); }
static bool read_fans(const char *text) { return read_int(text, 0, MOST_FANS, &config.fans); }
static bool read_nvlinks(const char *text) { return read_int(text, 0, SIM_MAX_NVLINKS, &config.nvlinks); }
static bool read_peer_access(const char *text) { return read_switch(text, &config.peer_access); }
static bool read_vectors(const char *text) { return read_switch(text, &(bool){false}); }  // ptx/ptx_lanes.c uses it
static bool read_kernel_seconds(const char *text) { return read_seconds(text, &config.kernel_seconds); }
static bool read_delay_seconds(const char *text) { return read_seconds(text, &config.delay_seconds); }

// A number with K, M, G or T, after which B or iB may stand.
static bool read_memory(const char *text)
{
    static const char units[] = "KMGT";
    char *end;
    double bytes = strtod(text, &end);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (unit) {
        bytes *= (double)((size_t)1 << 10 * (unit - units + 1));
        end += end[1] == 'i' && end[2] == 'B' ? 3 : end[1] == 'B' || end[1] == 'b' ? 2 : 1;
    }
    if (!isdigit((unsigned char)*text) || *end || !(bytes >= (double)MINIMUM_MEMORY && bytes <= (double)MAXIMUM_MEMORY))
        return false;
    config.memory = (size_t)bytes;
    return true;
}

static bool read_capability(const char *text)
{
    char major[3];
    size_t digits = strspn(text, "0123456789");
    if (digits < 1 || digits >= sizeof major || (text[digits] && text[digits] != '.'))
        return false;
    memcpy(major, text, digits);
    major[digits] = 0;
    config.minor = 0;
    return read_int(major, OLDEST_CAPABILITY, NEWEST_CAPABILITY, &config.major) &&
           (!text[digits] || read_int(text + digits + 1, 0, 9, &config.minor));
}

static bool read_version(const char *text)
{
    return read_int(text, OLDEST_DRIVER_VERSION, NEWEST_DRIVER_VERSION, &config.driver_version) &&
           config.driver_version % 10 == 0;
}

static bool read_report(const char *text) { return config.report_stderr = strcmp(text, "stderr") == 0; }

static bool read_shared(const char *text)
{
    config.shared = strdup(text);
    return true;
}

// One setting of CUDA_SIM_SENSORS: the name of a sensor, for all devices or one, and a whole number.
static bool is_sensor(const char *setting, size_t length)
{
    static const char *const names[] = {
#define VALUE(name, text, initial) text,
#include "nvml/values.h"
#undef VALUE
    };
    char *name, *end;
    unsigned long index = strtoul(setting, &name, 10);
    name = name != setting && *name == ':' ? name + 1 : (char *)setting;
    const char *equals = memchr(setting, '=', length);
    if (!equals || equals < name || index >= SIM_MAX_DEVICES)
        return false;
    strtoll(equals + 1, &end, 0);
    if (end == equals + 1 || end != setting + length)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == (size_t)(equals - name) && !strncmp(names[i], name, (size_t)(equals - name)))
            return true;
    return false;
}

static bool read_sensors(const char *text)
{
    config.sensors = strdup(text);
    while (*text) {
        size_t length = strcspn(text, ",");
        if (!is_sensor(text, length))
            return false;
        text += length;
        text += *text == ',';
    }
    return true;
}

// --- Variables ----------------------------------------------------------------------------------------------------

static const struct variable {
    const char *name;
    bool (*read)(const char *text);
    const char *allowed;
} variables[] = {
    {"CUDA_SIM_COMPUTE_CAPABILITY", read_capability, "a compute capability such as 9.0"},
    {"CUDA_SIM_DELAY_SECONDS", read_delay_seconds, "a number of seconds such as 0.01; 0 for no delay"},
    {"CUDA_SIM_DEVICES", read_devices, "a number of devices from 0 to 16"},
    {"CUDA_SIM_DRIVER_VERSION", read_version,
     "1000 * major + 10 * minor of a CUDA version, such as 13000 for CUDA 13.0"},
    {"CUDA_SIM_FANS", read_fans, "a number of fans from 0 to 8"},
    {"CUDA_SIM_KERNEL_SECONDS", read_kernel_seconds, "a number of seconds such as 60; 0 for no limit"},
    {"CUDA_SIM_LIBRARY", NULL, NULL},  // the programs that load this library read it
    {"CUDA_SIM_MEMORY", read_memory, "a number of bytes from 1M to 1T, with K, M, G or T, such as 4G"},
    {"CUDA_SIM_NVLINKS", read_nvlinks, "a number of NVLinks from 0 to 18"},
    {"CUDA_SIM_PEER_ACCESS", read_peer_access, "0 or 1"},
    {"CUDA_SIM_REPORT", read_report, "stderr"},
    {"CUDA_SIM_SENSORS", read_sensors,
     "settings such as temperature=85,1:power=300000, of sensors that simulator.sensors() names"},
    {"CUDA_SIM_SHARED", read_shared, NULL},
    {"CUDA_SIM_VECTORS", read_vectors, "0 or 1"},
};
enum { VARIABLES = sizeof variables / sizeof *variables };
_Static_assert(SIM_MAX_DEVICES == 16 && MOST_FANS == 8 && SIM_MAX_NVLINKS == 18, "the table has other limits in words");

static const struct variable *find_variable(const char *name, size_t length)
{
    for (size_t i = 0; i < VARIABLES; i++)
        if (strlen(variables[i].name) == length && !strncmp(variables[i].name, name, length))
            return &variables[i];
    return NULL;
}

static void refuse_name(const char *name, size_t length)
{
    size_t size = sizeof config.problem;
    size_t used = (size_t)snprintf(config.problem, size, "%.*s is not a variable of the simulated driver; these are:",
                                   (int)(length < NAME ? length : NAME), name);
    for (size_t i = 0; i < VARIABLES && used < size; i++)
        used += (size_t)snprintf(config.problem + used, size - used, "%s %s", i ? "," : "", variables[i].name);
}

static void refuse_value(const struct variable *variable, const char *text)
{
    int major, minor, length = 0;
    int used = snprintf(config.problem, sizeof config.problem, "%s=%.*s is not valid: it must be %s", variable->name,
                        NAME, text, variable->allowed);
    if (variable->read == read_version && sscanf(text, "%2d.%2d%n", &major, &minor, &length) == 2 && !text[length])
        snprintf(config.problem + used, sizeof config.problem - (size_t)used, "; CUDA %d.%d is %d", major, minor,
                 1000 * major + 10 * minor);
}

// Only a folder may have an empty value. Only the first problem is described.
static void read_variable(const char *entry)
{
    const char *equals = strchr(entry, '=');
    if (!equals || config.problem[0])
        return;
    const struct variable *variable = find_variable(entry, (size_t)(equals - entry));
    if (!variable)
        refuse_name(entry, (size_t)(equals - entry));
    else if (variable->read && (equals[1] || variable->read == read_shared) && !variable->read(equals + 1))
        refuse_value(variable, equals + 1);
}

// --- CUDA_VISIBLE_DEVICES -----------------------------------------------------------------------------------------

void sim_gpu_uuid(int gpu, char bytes[16])
{
    static const char pattern[16] = {'s', 'i', 'm', 'u', 'l', 'a', 0x40, 't', (char)0x80, 'e', 'd', 'G', 'P', 'U'};
    memcpy(bytes, pattern, sizeof pattern);
    bytes[sizeof pattern - 1] = (char)gpu;
}

void sim_gpu_uuid_text(int gpu, char text[SIM_UUID_TEXT])
{
    char bytes[16];
    sim_gpu_uuid(gpu, bytes);
    char *to = text + sprintf(text, "GPU-");
    for (int i = 0; i < 16; i++)
        to += sprintf(to, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", (unsigned char)bytes[i]);
}

// The GPU whose UUID begins with the text; -1 unless there is exactly one.
static int find_uuid(const char *text, size_t length)
{
    int found = -1;
    for (int gpu = 0; gpu < config.devices; gpu++) {
        char uuid[SIM_UUID_TEXT];
        sim_gpu_uuid_text(gpu, uuid);
        if (length > strlen(uuid) || strncasecmp(uuid, text, length) != 0)
            continue;
        if (found >= 0)
            return -1;
        found = gpu;
    }
    return found;
}

// The GPU that an entry means: a UUID or the beginning of one, or an index, after which drivers read no further.
static int find_visible(const char *entry, bool by_uuid)
{
    size_t length = strcspn(entry, ",");
    while (length && isspace((unsigned char)entry[length - 1]))
        length--;
    if (by_uuid)
        return strncmp(entry, "GPU-", 4) == 0 ? find_uuid(entry, length) : -1;
    long index = isdigit((unsigned char)*entry) ? strtol(entry, NULL, 10) : -1;
    return index < config.devices ? (int)index : -1;
}

static const char *skip_space(const char *text) { return text + strspn(text, " \t"); }

// An invalid entry ends the list, and with an entry that is there twice no device is visible.
static void read_visible(const char *text)
{
    bool by_uuid = false;
    config.visible = 0;
    for (const char *entry = text ? skip_space(text) : NULL; entry; entry = strchr(entry, ',')) {
        entry = skip_space(entry + (*entry == ','));
        by_uuid = config.visible ? by_uuid : strncmp(entry, "GPU-", 4) == 0;
        int gpu = find_visible(entry, by_uuid);
        if (gpu < 0)
            return;
        for (int i = 0; i < config.visible; i++)
            if (config.gpus[i] == gpu) {
                config.visible = 0;
                return;
            }
        config.gpus[config.visible++] = gpu;
    }
}

// --- Reading ------------------------------------------------------------------------------------------------------

static void read_environment(void)
{
    config = (struct sim_config){
        .driver_version = DEFAULT_DRIVER_VERSION,
        .devices = 1,
        .memory = DEFAULT_MEMORY,
        .major = 9,
        .peer_access = true,
        .nvlinks = ALL_NVLINKS,
    };
    for (char **entry = environ; entry && *entry; entry++)
        if (!strncmp(*entry, PREFIX, sizeof PREFIX - 1))
            read_variable(*entry);
    if (config.nvlinks == ALL_NVLINKS)
        config.nvlinks = config.devices > 1 ? SIM_MAX_NVLINKS : 0;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    for (config.visible = 0; !visible && config.visible < config.devices; config.visible++)
        config.gpus[config.visible] = config.visible;
    if (visible)
        read_visible(visible);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    config.workers = processors < 1 ? 1 : processors > MOST_WORKERS ? MOST_WORKERS : (unsigned)processors;
    if (config.problem[0])
        fprintf(stderr, "cuda simulator: %s\n", config.problem);
}

const struct sim_config *sim_config(void)
{
    pthread_once(&once, read_environment);
    return &config;
}
