// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "ptx/ptx_sample.h"

#include <math.h>
#include <string.h>

// Weights and positions between texels, and levels, are fixed-point numbers with 8 bits of fraction. How they are
// rounded no document says; here it is as on an H100, where the weights of all texels that are read are whole 256ths.
#define FRACTION_BITS 8
#define ONE (1 << FRACTION_BITS)

enum { FACES = 6, OUTSIDE = -1 };

typedef struct texel {
    float f[4];
    uint32_t u[4];
} texel;

static int is_floating(const struct sim_texture *t)
{
    return t->levels[0].format.component == SIM_FLOATING || t->fractions;
}

// ---- texels

static float linear_from_srgb(float c) { return c <= 0.04045f ? c / 12.92f : (float)pow((c + 0.055) / 1.055, 2.4); }

// `raw`: the least of signed integers, which reads as -1, is a little less where it is filtered.
static texel read_texel(const struct sim_texture *t, const struct sim_image *image, int64_t x, int64_t y, int64_t z,
                        int raw)
{
    texel v;
    size_t offset = (size_t)z * image->slice + (size_t)y * image->pitch + (size_t)x * sim_texel_bytes(image->format);
    texel_unpack((const void *)(image->address + offset), image->format, t->fractions ? 1 + raw : 0, v.u);
    memcpy(v.f, v.u, sizeof v.f);
    for (int i = 0; i < 3 && t->srgb; i++)
        v.f[i] = linear_from_srgb(v.f[i]);
    return v;
}

// Integers get the bits of the border's numbers, as hardware has it.
static texel border_texel(const struct sim_texture *t)
{
    texel v;
    memset(&v, 0, sizeof v);
    for (unsigned i = 0; i < t->levels[0].format.channels; i++)
        v.f[i] = t->border[i];
    memcpy(v.u, v.f, sizeof v.u);
    return v;
}

// ---- coordinates

// The texel that stands for one with an index that may be outside, or OUTSIDE for the border.
static int64_t addressed(int64_t i, int64_t n, unsigned mode)
{
    if (i >= 0 && i < n)
        return i;
    int64_t period = mode == SIM_MIRROR ? 2 * n : n, within = i % period;
    if (within < 0)
        within += period;
    switch (mode) {
    case SIM_WRAP: return within;
    case SIM_MIRROR: return within < n ? within : period - 1 - within;
    case SIM_BORDER: return OUTSIDE;
    default: return i < 0 ? 0 : n - 1;
    }
}

// Far outside, where all texels are alike or nothing can be said of them.
static double bounded(double x)
{
    const double far = (double)((int64_t)1 << 40);
    return x != x ? 0 : x < -far ? -far : x > far ? far : x;
}

typedef struct axis {
    int64_t first;    // the texel, or the first of two
    unsigned weight;  // of the second
    int64_t n;
    unsigned mode;
} axis;

static axis axis_of(double x, uint32_t n, unsigned mode, int linear)
{
    axis a = {.n = n, .mode = mode};
    x = bounded(x);
    if (linear) {
        int64_t fixed = (int64_t)floor((x - 0.5) * ONE + 0.5);
        a.first = fixed >> FRACTION_BITS;
        a.weight = (unsigned)(fixed & (ONE - 1));
    } else {
        a.first = (int64_t)floor(x);
    }
    return a;
}

// ---- cubemaps

// A vector in the coordinates of a face: two along it, and one away from the middle of the cube.
static void along_face(unsigned face, const double d[3], double out[3])
{
    int negative = face & 1;
    switch (face / 2) {
    case 0: out[0] = negative ? d[2] : -d[2], out[1] = -d[1]; break;
    case 1: out[0] = d[0], out[1] = negative ? -d[2] : d[2]; break;
    default: out[0] = negative ? -d[0] : d[0], out[1] = -d[1]; break;
    }
    out[2] = negative ? -d[face / 2] : d[face / 2];
}

static unsigned face_of(const double d[3])
{
    double x = fabs(d[0]), y = fabs(d[1]), z = fabs(d[2]);
    unsigned axis = x >= y && x >= z ? 0 : y >= z ? 1 : 2;
    return 2 * axis + (d[axis] < 0);
}

// The face that a direction meets, and where: both coordinates from -1 to 1.
static unsigned project(const double d[3], double *s, double *t)
{
    double v[3];
    unsigned face = face_of(d);
    along_face(face, d, v);
    *s = v[2] > 0 ? v[0] / v[2] : 0;
    *t = v[2] > 0 ? v[1] / v[2] : 0;
    return face;
}

static void direction_of(unsigned face, double s, double t, double d[3])
{
    switch (face) {
    case 0: d[0] = 1, d[1] = -t, d[2] = -s; break;
    case 1: d[0] = -1, d[1] = -t, d[2] = s; break;
    case 2: d[0] = s, d[1] = 1, d[2] = t; break;
    case 3: d[0] = s, d[1] = -1, d[2] = -t; break;
    case 4: d[0] = s, d[1] = -t, d[2] = 1; break;
    default: d[0] = -s, d[1] = -t, d[2] = -1; break;
    }
}

// The texel next to a face, over one of its edges.
static void step_over(unsigned *face, int64_t *i, int64_t *j, int64_t n)
{
    double d[3], s, t;
    direction_of(*face, (2.0 * (double)*i + 1) / (double)n - 1, (2.0 * (double)*j + 1) / (double)n - 1, d);
    *face = project(d, &s, &t);
    *i = addressed((int64_t)floor((s + 1) / 2 * (double)n), n, SIM_CLAMP);
    *j = addressed((int64_t)floor((t + 1) / 2 * (double)n), n, SIM_CLAMP);
}

// ---- filters

typedef struct footprint {
    const struct sim_image *image;
    unsigned dims;
    axis a[3];
    unsigned face, first_layer;  // of cubemaps; other layers are just the last axis
} footprint;

// False if there is no such texel: over a corner of a cube.
static int corner_texel(const struct sim_texture *t, const footprint *fp, unsigned corner, texel *out)
{
    int64_t at[3] = {0, 0, 0};
    unsigned face = fp->face, outside = 0;
    int seamless = t->seamless && t->linear;
    for (unsigned k = 0; k < fp->dims; k++) {
        const axis *a = &fp->a[k];
        at[k] = a->first + (corner >> k & 1);
        outside += at[k] < 0 || at[k] >= a->n;
        if (seamless)
            continue;
        at[k] = addressed(at[k], a->n, t->seamless ? SIM_CLAMP : a->mode);
        if (at[k] == OUTSIDE) {
            *out = border_texel(t);
            return 1;
        }
    }
    if (seamless && outside == 2)
        return 0;
    if (seamless && outside)
        step_over(&face, &at[0], &at[1], fp->a[0].n);
    *out = read_texel(t, fp->image, at[0], at[1], fp->dims == 3 ? at[2] : fp->first_layer + face, t->linear);
    return 1;
}

static int half_up(int v) { return (v + ONE / 2) >> FRACTION_BITS; }
static int half_down(int v) { return -half_up(-v); }

// The weight of each texel, in 256ths: first z is split, then x, then y, and each part is rounded.
static void weigh(const struct sim_texture *t, const footprint *fp, int weights[8])
{
    int part[3] = {0, 0, 0};
    for (unsigned k = 0; k < fp->dims; k++) {
        const axis *a = &fp->a[k];
        int same =
            a->mode == SIM_CLAMP && !t->seamless && (a->first < 0 || a->first >= a->n - 1);  // twice the same texel
        part[k] = same ? 0 : (int)a->weight;
    }
    for (int z = 0; z < 2; z++) {
        int slice = z ? part[2] : ONE - part[2], right = half_up(part[0] * slice), left = slice - right;
        int lower_right = half_up(right * part[1]), lower_left = half_down(left * part[1]);
        int *w = weights + 4 * z;
        w[0] = left - lower_left, w[1] = right - lower_right, w[2] = lower_left, w[3] = lower_right;
    }
}

static texel filtered(const struct sim_texture *t, const footprint *fp)
{
    texel v;
    double sum[4] = {0, 0, 0, 0}, total = 0;
    int weights[8];
    if (!t->linear) {
        corner_texel(t, fp, 0, &v);
        return v;
    }
    weigh(t, fp, weights);
    for (unsigned corner = 0; corner < 1u << fp->dims; corner++) {
        if (weights[corner] == 0 || !corner_texel(t, fp, corner, &v))
            continue;
        total += weights[corner];
        for (int i = 0; i < 4; i++)
            sum[i] += weights[corner] * (double)v.f[i];
    }
    memset(&v, 0, sizeof v);
    for (int i = 0; i < 4; i++)
        v.f[i] = (float)(t->fractions ? fmax(sum[i] / total, -1) : sum[i] / total);
    return v;
}

static footprint place(const struct sim_texture *t, const sample_at *at, const struct sim_image *image, int linear)
{
    footprint fp = {.image = image, .dims = at->cube ? 2 : at->dims};
    const uint32_t sizes[3] = {image->width, image->height, image->depth};
    double c[3] = {at->c[0], at->c[1], at->c[2]};
    int normalized = t->normalized_coordinates;
    uint32_t layers = image->depth;
    if (at->cube) {
        double s, u;
        fp.face = project(c, &s, &u);
        c[0] = (s + 1) / 2;
        c[1] = (u + 1) / 2;
        normalized = 1;
        layers /= FACES;
    }
    for (unsigned k = 0; k < fp.dims; k++)
        fp.a[k] = axis_of(normalized ? bounded(c[k]) * sizes[k] : c[k], sizes[k], t->address_mode[k], linear);
    if (t->shape == SIM_SHAPE_1D && fp.dims == 1 && linear) {  // the second coordinate is 0, the edge of the only row
        fp.dims = 2;
        fp.a[1] = axis_of(0, 1, t->address_mode[1], linear);
    }
    if (fp.dims < 3)
        fp.first_layer = (at->layer < layers ? at->layer : layers - 1) * (at->cube ? FACES : 1);
    return fp;
}

// ---- levels

// How many texels a derivative of the coordinates is, along each dimension of the first level.
static void in_texels(const struct sim_texture *t, const sample_at *at, const float *derivative, double out[3])
{
    const uint32_t sizes[3] = {t->levels[0].width, t->levels[0].height, t->levels[0].depth};
    out[0] = out[1] = out[2] = 0;
    if (!at->cube) {
        for (unsigned k = 0; k < at->dims; k++)
            out[k] = (double)derivative[k] * sizes[k];
        return;
    }
    // Not the slope: from the place on the face to the one of the direction with the derivative added.
    const double d[3] = {at->c[0], at->c[1], at->c[2]};
    const double other[3] = {d[0] + (double)derivative[0], d[1] + (double)derivative[1], d[2] + (double)derivative[2]};
    double from[3], to[3];
    unsigned face = face_of(d);
    along_face(face, d, from);
    along_face(face, other, to);
    for (unsigned k = 0; k < 2 && from[2] > 0 && to[2] > 0; k++)
        out[k] = (to[k] / to[2] - from[k] / from[2]) * sizes[k] / 2;
}

// About the length of a vector.
static double length_of(const double v[3])
{
    double x = fabs(v[0]), y = fabs(v[1]), z = fabs(v[2]);
    double most = fmax(x, fmax(y, z)), least = fmin(x, fmin(y, z));
    return most + 11. / 32 * (x + y + z - most - least) + least / 4;
}

// About the longer axis of the ellipse that two derivatives span: the length of them and of their diagonals.
float lod_of_gradients(const struct sim_texture *t, const sample_at *at, const float *dx, const float *dy)
{
    double x[3], y[3], sum[3], difference[3];
    in_texels(t, at, dx, x);
    in_texels(t, at, dy, y);
    for (int k = 0; k < 3; k++)
        sum[k] = x[k] + y[k], difference[k] = x[k] - y[k];
    double sides = fmax(length_of(x), length_of(y)), diagonals = fmax(length_of(sum), length_of(difference));
    return (float)(rint(log2(fmax(sides, 11. / 16 * diagonals)) * ONE) / ONE);
}

// A level in 256ths, which is rounded down.
static double fixed_level(double level)
{
    const double far = 1 << 16;
    return level != level ? 0 : floor(fmax(fmin(level, far), -far) * ONE);
}

// The level that is read, in 256ths.
static uint32_t clamped_lod(const struct sim_texture *t, const sample_at *at)
{
    double lod = at->lod_given ? fixed_level((double)at->lod) + trunc((double)t->bias * ONE) : 0;
    double most = fixed_level((double)t->most_level), least = fixed_level((double)t->least_level);
    if (lod > most)
        lod = most;
    if (lod < least)
        lod = least;
    double last = (t->level_count - 1) * (double)ONE;
    return lod != lod || lod < 0 ? 0 : (uint32_t)(lod > last ? last : lod);
}

static texel sample_level(const struct sim_texture *t, const sample_at *at, uint32_t level)
{
    footprint fp = place(t, at, &t->levels[level], t->linear);
    return filtered(t, &fp);
}

static texel sample(const struct sim_texture *t, const sample_at *at)
{
    if (!t->mipmapped)
        return sample_level(t, at, 0);
    uint32_t lod = clamped_lod(t, at), level = lod >> FRACTION_BITS;
    if (!t->linear_levels)
        return sample_level(t, at, (lod + ONE / 2) >> FRACTION_BITS);
    double weight = (lod & (ONE - 1)) / (double)ONE;
    texel one = sample_level(t, at, level);
    if (weight == 0)
        return one;
    texel other = sample_level(t, at, level + 1);
    for (int i = 0; i < 4; i++)
        one.f[i] = (float)((1 - weight) * one.f[i] + weight * other.f[i]);
    return one;
}

static texel fetch(const struct sim_texture *t, const sample_at *at)
{
    texel v;
    uint32_t level = at->lod_given && at->lod > 0 ? (uint32_t)at->lod : 0;
    if (level >= t->level_count)
        level = t->level_count - 1;
    const struct sim_image *image = &t->levels[level];
    const uint32_t sizes[3] = {image->width, image->height, image->depth};
    int layered = t->shape == SIM_SHAPE_1D_LAYERED || t->shape == SIM_SHAPE_2D_LAYERED;
    memset(&v, 0, sizeof v);
    // By one whole number only buffers are read: of an array it reads nothing.
    if (at->dims == 1 && !layered && !t->linear_memory)
        return v;
    for (unsigned k = 0; k < at->dims; k++)
        if (at->i[k] < 0 || (uint32_t)at->i[k] >= sizes[k])
            return v;
    uint32_t layer = at->dims == 3 ? (uint32_t)at->i[2] : at->layer;
    if (layer >= image->depth)
        return v;
    return read_texel(t, image, at->i[0], at->dims > 1 ? at->i[1] : 0, layer, 0);
}

void sample_texture(const struct sim_texture *t, const sample_at *at, uint32_t out[4])
{
    sample_at near = *at;
    // A buffer has no filter, and nothing outside.
    if (t->linear_memory && !at->whole) {
        near.whole = 1;
        near.i[0] = (int32_t)fmax(fmin(floor(bounded(at->c[0])), INT32_MAX), INT32_MIN);
    }
    texel v = near.whole ? fetch(t, &near) : sample(t, at);
    memcpy(out, is_floating(t) ? (const void *)v.f : v.u, 4 * sizeof *out);
}

void gather_texels(const struct sim_texture *t, const sample_at *at, unsigned component, uint32_t out[4])
{
    static const unsigned corners[] = {2, 3, 1, 0};
    footprint fp = place(t, at, &t->levels[0], 1);
    for (int i = 0; i < 4; i++) {
        texel v;
        if (!corner_texel(t, &fp, corners[i], &v))
            memset(&v, 0, sizeof v);
        if (is_floating(t))
            memcpy(&out[i], &v.f[component], sizeof *out);
        else
            out[i] = v.u[component];
    }
}
