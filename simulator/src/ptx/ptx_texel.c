// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Components of texels: in memory, and as registers hold them.
#include <math.h>
#include <string.h>

#include "ptx/ptx_float.h"
#include "ptx/ptx_sample.h"

static uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

static uint32_t raw(const uint8_t *p, unsigned bytes)
{
    uint32_t v = 0;
    memcpy(&v, p, bytes);
    return v;
}

static int32_t sign_extend(uint32_t v, unsigned bytes)
{
    unsigned unused = 32 - 8 * bytes;
    return (int32_t)(v << unused) >> unused;
}

// The largest value that stands for 1.
static double whole(struct sim_format format)
{
    return (double)(((uint64_t)1 << (8 * format.bytes - (format.component == SIM_SIGNED))) - 1);
}

static uint32_t unpack_one(const uint8_t *p, struct sim_format format, int fractions)
{
    uint32_t v = raw(p, format.bytes);
    if (format.component == SIM_FLOATING)
        return format.bytes == 2 ? bits_of((float)half_to_double((uint16_t)v)) : v;
    int32_t number = format.component == SIM_SIGNED ? sign_extend(v, format.bytes) : (int32_t)v;
    if (!fractions)
        return (uint32_t)number;
    double fraction = number / whole(format);
    return bits_of((float)(fraction < -1 && fractions == 1 ? -1 : fraction));
}

void texel_unpack(const void *memory, struct sim_format format, int fractions, uint32_t out[4])
{
    const uint8_t *p = memory;
    memset(out, 0, 4 * sizeof *out);
    for (unsigned i = 0; i < format.channels; i++)
        out[i] = unpack_one(p + i * format.bytes, format, fractions);
}

static double limited(double v, double least, double most) { return v < least ? least : v > most ? most : v; }

// To the nearest integer; of two that are as near, the one nearer to zero.
static double nearest(double v) { return copysign(ceil(fabs(v) - 0.5), v); }

static uint32_t pack_one(struct sim_format format, uint32_t v)
{
    double most = whole(format), least = format.component == SIM_SIGNED ? -most - 1 : 0;
    if (format.component == SIM_FLOATING)
        return format.bytes == 2 ? half_from_double(float_of(v), R_RZ) : v;
    if (format.normalized) {
        double f = float_of(v);
        return (uint32_t)(int32_t)nearest(limited(f == f ? f : 0, format.component == SIM_SIGNED ? -1 : 0, 1) * most);
    }
    if (format.bytes == 4)
        return v;
    return (uint32_t)(int32_t)limited(format.component == SIM_SIGNED ? (double)(int32_t)v : (double)v, least, most);
}

void texel_pack(void *memory, struct sim_format format, const uint32_t in[4])
{
    uint8_t *p = memory;
    for (unsigned i = 0; i < format.channels; i++) {
        uint32_t v = pack_one(format, in[i]);
        memcpy(p + i * format.bytes, &v, format.bytes);
    }
}
