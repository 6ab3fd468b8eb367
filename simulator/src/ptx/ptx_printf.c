// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// printf of device code: the format is read here, each conversion is given to the host's snprintf.
#include "ptx/ptx_printf.h"

#include <stdio.h>
#include <string.h>

#define MAX_FORMAT 4096
#define MAX_OUT 8192

typedef struct output {
    char text[MAX_OUT];
    size_t n;
} output;

static void put(output *o, const char *s, size_t n)
{
    if (n > MAX_OUT - o->n)
        n = MAX_OUT - o->n;
    memcpy(o->text + o->n, s, n);
    o->n += n;
}

typedef struct arguments {
    uint64_t address;
    const ptx_reader *reader;
} arguments;

// Arguments lie one after the other, each at its natural alignment.
static int next(arguments *a, unsigned size, uint64_t *value)
{
    a->address = (a->address + size - 1) & ~(uint64_t)(size - 1);
    *value = 0;
    int ok = a->reader->read(a->reader->ctx, a->address, size, value);
    a->address += size;
    return ok;
}

// One conversion; f points after the '%'. Returns what follows it, or NULL after a fault.
static const char *convert(output *o, const char *f, const char *end, arguments *args)
{
    char spec[48] = "%", text[512];
    size_t n = 1;
    int width_limit = 400, longs = 0, shorts = 0;
    uint64_t v;
    const char *start = f;
    while (f < end && n < 16 && strchr("-+ #0", *f))
        spec[n++] = *f++;
    for (int part = 0; part < 2; part++) {
        if (part == 1) {
            if (f >= end || *f != '.')
                break;
            spec[n++] = *f++;
        }
        int number = 0;
        if (f < end && *f == '*') {
            f++;
            if (!next(args, 4, &v))
                return NULL;
            number = (int32_t)v;
        } else {
            for (; f < end && *f >= '0' && *f <= '9'; f++)
                if (number < 10000)
                    number = number * 10 + (*f - '0');
        }
        if (part == 0 && number == 0)
            continue;
        if (part == 1 && number < 0) {  // as if there were none
            n--;
            continue;
        }
        if (number > width_limit)
            number = width_limit;
        if (number < -width_limit)
            number = -width_limit;
        n += (size_t)snprintf(spec + n, 8, "%d", number);
    }
    for (; f < end && (*f == 'l' || *f == 'h' || *f == 'z' || *f == 't' || *f == 'j'); f++) {
        if (*f == 'h')
            shorts++;
        else
            longs++;
    }
    if (f >= end) {
        put(o, "%", 1);
        put(o, start, (size_t)(end - start));
        return end;
    }
    char c = *f++;
    int wrote = 0;
    switch (c) {
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
        if (!next(args, longs ? 8 : 4, &v))
            return NULL;
        if (c == 'd' || c == 'i') {
            long long s = longs ? (long long)v : shorts == 1 ? (int16_t)v : shorts > 1 ? (int8_t)v : (int32_t)v;
            snprintf(spec + n, 4, "ll%c", c);
            wrote = snprintf(text, sizeof text, spec, s);
        } else {
            unsigned long long u = longs ? v : shorts == 1 ? (uint16_t)v : shorts > 1 ? (uint8_t)v : (uint32_t)v;
            snprintf(spec + n, 4, "ll%c", c);
            wrote = snprintf(text, sizeof text, spec, u);
        }
        break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A': {
        double d;
        if (!next(args, 8, &v))
            return NULL;
        memcpy(&d, &v, 8);
        snprintf(spec + n, 4, "%c", c);
        wrote = snprintf(text, sizeof text, spec, d);
        break;
    }
    case 'c':
        if (!next(args, 4, &v))
            return NULL;
        snprintf(spec + n, 4, "c");
        wrote = snprintf(text, sizeof text, spec, (int)v);
        break;
    case 'p':
        if (!next(args, 8, &v))
            return NULL;
        snprintf(spec + n, 4, "p");
        wrote = snprintf(text, sizeof text, spec, (void *)(uintptr_t)v);
        break;
    case 's': {
        char s[MAX_FORMAT];
        if (!next(args, 8, &v))
            return NULL;
        if (!v)
            snprintf(s, sizeof s, "(null)");
        else if (!args->reader->string(args->reader->ctx, v, s, sizeof s))
            return NULL;
        snprintf(spec + n, 4, "s");
        char long_text[MAX_FORMAT + 512];
        wrote = snprintf(long_text, sizeof long_text, spec, s);
        put(o, long_text, wrote < 0 ? 0 : (size_t)wrote < sizeof long_text ? (size_t)wrote : sizeof long_text - 1);
        return f;
    }
    case '%': put(o, "%", 1); return f;
    default:  // not a conversion: as it is
        put(o, "%", 1);
        put(o, start, (size_t)(f - start));
        return f;
    }
    put(o, text, wrote < 0 ? 0 : (size_t)wrote < sizeof text ? (size_t)wrote : sizeof text - 1);
    return f;
}

int ptx_format(const ptx_reader *reader, uint64_t format, uint64_t address,
               void (*emit)(void *ctx, const char *text, size_t len), void *ctx)
{
    char fmt[MAX_FORMAT];
    output out;
    arguments args = {address, reader};
    int conversions = 0;
    out.n = 0;
    if (!reader->string(reader->ctx, format, fmt, sizeof fmt))
        return -1;
    const char *f = fmt, *end = fmt + strlen(fmt);
    while (f < end) {
        const char *p = memchr(f, '%', (size_t)(end - f));
        put(&out, f, (size_t)((p ? p : end) - f));
        if (!p)
            break;
        if (p + 1 < end && p[1] != '%')
            conversions++;
        f = convert(&out, p + 1, end, &args);
        if (!f)
            return -1;
    }
    emit(ctx, out.text, out.n);
    return conversions;
}
