// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The error log: the last lines that were logged, and the functions that are told of each.

#include "driver/logs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/context.h"
#include "driver/report.h"
#include "driver/sim.h"

enum { LINES = 100, LINE = 256, PREFIX = 56, CALLBACKS = 16 };  // the time, the thread and NUL take a prefix

static const char rolled_over[] =
    "Log buffer has rolled over since the previous dump. The oldest messages will be missing\n";
static const char too_small[] =
    "The provided buffer is not large enough to hold all messages. Some messages will be missing\n";

struct line {
    char text[LINE];
    size_t length;  // with the line feed
};

struct CUlogsCallbackEntry_st {
    CUlogsCallback function;
    void *data;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // guards what follows
static struct line lines[LINES];
static unsigned next;  // how many lines were logged
static struct CUlogsCallbackEntry_st *callbacks[CALLBACKS];

static size_t begin_line(char *text)
{
    struct timespec now;
    struct tm local;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    int length = snprintf(text, LINE, "[%02d:%02d:%02d.%03ld][%llu][CUDA][E] ", local.tm_hour, local.tm_min,
                          local.tm_sec, now.tv_nsec / 1000000, (unsigned long long)pthread_self());
    return (size_t)length;
}

// Returns the length of the part of a text that fits in a line, cut before a semicolon if it has one.
static size_t cut(const char *text, size_t room)
{
    size_t length = strlen(text);
    if (length <= room)
        return length;
    for (length = room; length && memcmp(text + length, "; ", 2) != 0; length--)
        ;
    return length ? length : room;
}

static void add_line(const char *text, size_t length)
{
    struct CUlogsCallbackEntry_st told[CALLBACKS];
    struct line line;
    size_t count = 0, begin = begin_line(line.text);
    memcpy(line.text + begin, text, length);
    line.text[line.length = begin + length] = 0;
    pthread_mutex_lock(&lock);
    lines[next++ % LINES] = line;
    for (size_t i = 0; i < CALLBACKS; i++)
        if (callbacks[i])
            told[count++] = *callbacks[i];
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < count; i++)  // without what the buffer has before and after
        told[i].function(told[i].data, CU_LOG_LEVEL_ERROR, line.text + begin, line.length - begin);
}

void sim_log(const char *format, ...)
{
    char text[SIM_REPORT_TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *c = text; *c; c++)
        if (*c == '\n')
            *c = ' ';
    for (const char *rest = text; *rest;) {
        size_t length = cut(rest, LINE - PREFIX);
        add_line(rest, length);
        rest += length;
        if (rest[0] == ';' && rest[1] == ' ')
            rest += 2;
    }
}

void sim_log_failure(const char *function, CUresult status)
{
    const char *name;
    if (status == CUDA_ERROR_NOT_READY || status == CUDA_ERROR_NOT_INITIALIZED)
        return;
    sim_log_fault(status);
    if (cuGetErrorName(status, &name) != CUDA_SUCCESS)
        name = "unknown";
    sim_log("Returning %d (%s) from %s", (int)status, name, function);
}

// --- Reading --------------------------------------------------------------------------------------------------

// As much as there is room for, the newest lines last, with a NUL. Returns the length; -1 if there is no room for any.
static ptrdiff_t copy_lines(unsigned begin, char *buffer, size_t capacity)
{
    const char *header = "";
    size_t length = 0, left;
    if (begin + LINES < next) {
        header = rolled_over;
        begin = next - LINES;
    }
    for (unsigned i = begin; i != next; i++)
        length += lines[i % LINES].length + 1;
    for (; begin != next && length + strlen(header) >= capacity; begin++) {
        header = too_small;
        length -= lines[begin % LINES].length + 1;
    }
    if (!length)
        return header == too_small ? -1 : 0;
    left = strlen(header);
    memcpy(buffer, header, left);
    for (char *to = buffer + left; begin != next; begin++, *to++ = '\n') {
        memcpy(to, lines[begin % LINES].text, lines[begin % LINES].length);
        to += lines[begin % LINES].length;
    }
    buffer[left + length] = 0;
    return (ptrdiff_t)(left + length);
}

static CUresult dump(CUlogIterator *iterator, char *buffer, size_t *size)
{
    unsigned oldest = next > LINES ? next - LINES - 1 : 0;  // so that what is missing is told
    ptrdiff_t length = -1;
    if (!iterator || *iterator <= next)
        length = copy_lines(iterator ? *iterator : oldest, buffer, *size);
    *size = length < 0 ? 0 : (size_t)length;
    SIM_REQUIRE(length >= 0);
    if (iterator)
        *iterator = next;
    return CUDA_SUCCESS;
}

static CUresult dump_to_file(CUlogIterator *iterator, const char *path)
{
    static char buffer[LINES * LINE + sizeof rolled_over];
    size_t size = sizeof buffer;
    FILE *file = fopen(path, "w");
    SIM_REQUIRE(file);
    CUresult status = dump(iterator, buffer, &size);
    fwrite(buffer, 1, size, file);
    fclose(file);
    return status;
}

// --- The API, which is no business of traces and faults ---------------------------------------------------------

static CUresult leave(const char *function, CUresult status)
{
    if (status != CUDA_SUCCESS)
        sim_log_failure(function, status);
    return status;
}

SIM_EXPORT CUresult cuLogsCurrent(CUlogIterator *iterator_out, unsigned int flags)
{
    (void)flags;  // drivers do not look at them
    if (!iterator_out)
        return leave("cuLogsCurrent", CUDA_ERROR_INVALID_VALUE);
    pthread_mutex_lock(&lock);
    *iterator_out = next;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *size, unsigned int flags)
{
    (void)flags;
    CUresult status = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    if (buffer && size)
        status = dump(iterator, buffer, size);
    pthread_mutex_unlock(&lock);
    return leave("cuLogsDumpToMemory", status);
}

SIM_EXPORT CUresult cuLogsDumpToFile(CUlogIterator *iterator, const char *pathToFile, unsigned int flags)
{
    (void)flags;
    CUresult status = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    if (pathToFile)
        status = dump_to_file(iterator, pathToFile);
    pthread_mutex_unlock(&lock);
    return leave("cuLogsDumpToFile", status);
}

static CUresult add_callback(CUlogsCallback function, void *data, CUlogsCallbackHandle *out)
{
    size_t place = 0;
    SIM_REQUIRE(function);
    struct CUlogsCallbackEntry_st *entry = malloc(sizeof *entry);
    if (!entry)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *entry = (struct CUlogsCallbackEntry_st){function, data};
    pthread_mutex_lock(&lock);
    while (place < CALLBACKS && callbacks[place])
        place++;
    if (place < CALLBACKS)
        callbacks[place] = entry;
    pthread_mutex_unlock(&lock);
    if (place == CALLBACKS) {
        free(entry);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (out)
        *out = entry;
    return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuLogsRegisterCallback(CUlogsCallback callbackFunc, void *userData,
                                           CUlogsCallbackHandle *callback_out)
{
    return leave("cuLogsRegisterCallback", add_callback(callbackFunc, userData, callback_out));
}

static CUresult remove_callback(CUlogsCallbackHandle callback)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < CALLBACKS && callback && !found; i++)
        if ((found = callbacks[i] == callback))
            callbacks[i] = NULL;
    pthread_mutex_unlock(&lock);
    SIM_REQUIRE(found);  // where drivers crash
    free(callback);
    return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle callback)
{
    return leave("cuLogsUnregisterCallback", remove_callback(callback));
}
