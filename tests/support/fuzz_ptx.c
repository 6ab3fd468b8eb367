// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Mutates PTX texts, loads them, and runs what loads. Nothing may crash and no sanitizer may complain.
//
//   gcc -std=gnu11 -g -O1 -ffp-contract=off -fsanitize=address,undefined -fno-sanitize-recover=undefined -pthread
//       -I SRC -I CUDA tests/support/fuzz_ptx.c SRC/ptx/*.c -lm -o fuzz_ptx
//   ./fuzz_ptx SECONDS SEED FILE.ptx...
//
// SRC is simulator/src, CUDA the folder of cuda.h. CUDA_SIM_VECTORS=0 runs the handlers without vectors.
// A file may hold several texts, with a NUL between them: these are linked.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ptx/ptx.h"
#include "tensor/tensor_map.h"
#include "texture/image.h"

#define BUFFER 65536
#define MAX_TEXT (1u << 20)

// There are no tensor maps here: kernels that use one fail.
const struct sim_tensor_map *sim_tensor_map_of(const void *bytes)
{
    (void)bytes;
    return NULL;
}

unsigned sim_tensor_element_bytes(const struct sim_tensor_map *map)
{
    (void)map;
    return 1;
}

static uint64_t state;
static uint8_t buffer[BUFFER] __attribute__((aligned(256)));

static uint32_t rnd(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return n ? (uint32_t)(state >> 11) % n : 0;
}

// Kernels may use the one buffer and nothing else.
static int check(void *ctx, uint64_t address, size_t size, int is_write, uint64_t range[2])
{
    uint64_t base = (uintptr_t)buffer;
    (void)ctx, (void)is_write;
    if (address < base || address > base + BUFFER || size > base + BUFFER - address)
        return 1;
    range[0] = base;
    range[1] = base + BUFFER;
    return 0;
}

static int heap_alloc(void *ctx, size_t size, uint64_t *address)
{
    (void)ctx;
    *address = (uintptr_t)buffer;
    return size > BUFFER;
}

static int heap_free(void *ctx, uint64_t address)
{
    (void)ctx, (void)address;
    return 0;
}

// Small handles are those of textures and surfaces of any shape, at the start of the buffer.
static struct sim_image image(uint64_t handle)
{
    struct sim_image image = {
        .address = (uintptr_t)buffer, .width = 1 + handle % 5, .height = 1 + handle % 3, .depth = 6 * (1 + handle % 2)};
    image.format = (struct sim_format){handle % 3, 1 << handle % 3, 1 << handle / 3 % 3, false};
    if (image.format.component == SIM_FLOATING)
        image.format.bytes = 2 + 2 * (handle & 1);
    image.pitch = image.width * sim_texel_bytes(image.format);
    image.slice = image.pitch * image.height;
    return image;
}

static int texture(void *ctx, uint64_t handle, struct sim_texture *out)
{
    (void)ctx;
    if (handle >= 200)
        return 1;
    *out = (struct sim_texture){
        .address = (uintptr_t)buffer, .bytes = BUFFER, .level_count = 1, .shape = handle % SIM_SHAPES, .most_level = 9};
    out->levels[0] = image(handle);
    for (; out->level_count < handle % 4; out->level_count++)
        out->levels[out->level_count] = image(handle);
    out->mipmapped = out->level_count > 1;
    for (int i = 0; i < 3; i++)
        out->address_mode[i] = (uint8_t)(handle >> i & 3);
    out->fractions =
        out->levels[0].format.component != SIM_FLOATING && out->levels[0].format.bytes < 4 && (handle & 16);
    out->linear = (handle & 8) && (out->fractions || out->levels[0].format.component == SIM_FLOATING);
    out->linear_levels = out->linear;
    out->normalized_coordinates = handle & 1;
    out->seamless = (handle & 32) && out->shape >= SIM_SHAPE_CUBEMAP;
    return 0;
}

static int surface(void *ctx, uint64_t handle, struct sim_surface *out)
{
    (void)ctx;
    *out = (struct sim_surface){(uintptr_t)buffer, BUFFER, image(handle), handle % SIM_SHAPES};
    return handle >= 200;
}

static void print(void *ctx, const char *text, size_t len)
{
    volatile char last = len ? text[len - 1] : 0;
    (void)ctx, (void)last;
}

static const char *const tokens[] = {
    "%r1",
    "%rd1",
    "%p1",
    "%f1",
    "%fd1",
    "%rs1",
    "0",
    "1",
    "-1",
    "4294967295",
    "18446744073709551615",
    "0x80000000",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ";",
    ",",
    ":",
    ".",
    ".u8",
    ".s16",
    ".u32",
    ".s64",
    ".f16",
    ".f16x2",
    ".bf16",
    ".f32",
    ".f64",
    ".b128",
    ".pred",
    ".v2",
    ".v4",
    ".shared",
    ".local",
    ".global",
    ".const",
    ".param",
    ".rn",
    ".rz",
    ".sat",
    ".ftz",
    ".cc",
    ".hi",
    ".lo",
    ".wide",
    ".sync",
    ".aligned",
    "bra",
    "call",
    "ret",
    "exit",
    "bar.sync 0;",
    "shfl.sync.idx.b32 ",
    "mov",
    "ld",
    "st",
    "atom.add",
    "cvt",
    ".reg",
    ".align",
    "16",
    "1048576",
    "0f7FC00000",
    "0d7FF0000000000000",
    "%tid.x",
    "%clock64",
    "@%p1",
    "@!%p1",
    "_",
    "|",
    "!",
    "+",
    "-",
    "generic(",
    "barrier.cluster.arrive;",
    "mbarrier.init.shared.b64 ",
    "alloca.u64 ",
    "vprintf",
    "malloc",
    "brx.idx ",
    ".branchtargets",
    ".callprototype",
    "%reserved_smem_offset_1",
    "elect.sync ",
    "redux.sync.add.s32 ",
    "tex.",
    "tld4.",
    "suld.b.",
    "sust.p.",
    ".1d",
    ".a2d",
    ".cube",
    ".v4",
    ".trap",
    ".zero",
    ".clamp",
    ".level",
    ".grad",
    ".visible ",
    ".weak ",
    ".extern ",
    ".common ",
};

// Cuts a range, doubles one, moves one, changes a byte or a number, or puts a token in: mostly at word borders.
static size_t mutate(char *text, size_t len)
{
    size_t at = len ? rnd((uint32_t)len) : 0, n = 1 + rnd(rnd(4) ? 12 : 400);
    if (rnd(3))
        while (at < len && text[at] != ' ' && text[at] != ',' && text[at] != '.' && text[at] != '\n')
            at++;
    if (at + n > len)
        n = len - at;
    switch (rnd(7)) {
    case 0: memmove(text + at, text + at + n, len - at - n); return len - n;
    case 1:
        if (len + n > MAX_TEXT)
            return len;
        memmove(text + at + n, text + at, len - at);
        return len + n;
    case 2: {
        size_t from = len ? rnd((uint32_t)len) : 0;
        if (from + n > len)
            n = len - from;
        if (at + n > len)
            n = len - at;
        memmove(text + at, text + from, n);
        return len;
    }
    case 3:
        if (at < len)
            text[at] = (char)(rnd(4) ? 32 + rnd(95) : rnd(256));
        return len;
    case 4:
        for (; at < len; at++)
            if (text[at] >= '0' && text[at] <= '9') {
                text[at] = (char)('0' + rnd(10));
                break;
            }
        return len;
    default: {
        const char *token = tokens[rnd(sizeof tokens / sizeof *tokens)];
        size_t size = strlen(token);
        if (len + size > MAX_TEXT)
            return len;
        if (rnd(2)) {  // instead of a word
            size_t end = at + 1;
            while (end < len && text[end] != ' ' && text[end] != ',' && text[end] != '.' && text[end] != ';' &&
                   text[end] != '\n')
                end++;
            if (end > len)
                end = len;
            if (at > len)
                at = len;
            memmove(text + at, text + end, len - end);
            len -= end - at;
        }
        memmove(text + at + size, text + at, len - at);
        memcpy(text + at, token, size);
        return len + size;
    }
    }
}

static unsigned long loads, good, launches, finished;

static void run(sim_ptx_module *module)
{
    for (unsigned i = 0; i < sim_ptx_entry_count(module) && i < 8; i++) {
        const sim_ptx_entry *entry = sim_ptx_entry_at(module, i);
        uint8_t params[32768];
        for (unsigned k = 0; k < entry->param_bytes; k += 8) {
            uint64_t v = rnd(3) ? (uintptr_t)buffer + 64 * rnd(64) : rnd(200);
            memcpy(params + k, &v, entry->param_bytes - k < 8 ? entry->param_bytes - k : 8);
        }
        sim_ptx_launch launch = {.grid = {1 + rnd(3), 1, 1},
                                 .block = {1 + rnd(70), 1 + rnd(2), 1},
                                 .dynamic_shared = rnd(2) * 256,
                                 .params = params,
                                 .cooperative = (int)rnd(2),
                                 .time_limit = 0.03,
                                 .workers = 1 + rnd(2),
                                 .sm_count = 2};
        if (entry->cluster[0])
            launch.grid[0] *= entry->cluster[0];
        sim_ptx_fault fault;
        launches++;
        if (!sim_ptx_launch_grid(entry, &launch, &fault))
            finished++;
    }
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return fprintf(stderr, "usage: fuzz_ptx SECONDS SEED FILE.ptx...\n"), 2;
    time_t end = time(NULL) + atoi(argv[1]);
    state = strtoull(argv[2], NULL, 0) * 2654435769u + 88172645463325252u;
    static const sim_ptx_host host = {.heap_alloc = heap_alloc,
                                      .heap_free = heap_free,
                                      .check = check,
                                      .print = print,
                                      .texture = texture,
                                      .surface = surface};
    char *text = malloc(MAX_TEXT + 1024), *last = argc > 3 && getenv("FUZZ_LAST") ? getenv("FUZZ_LAST") : NULL;
    while (time(NULL) < end) {
        FILE *file = fopen(argv[3 + rnd((uint32_t)argc - 3)], "rb");
        if (!file)
            return perror("fuzz_ptx"), 2;
        size_t len = fread(text, 1, MAX_TEXT / 2, file);
        fclose(file);
        for (unsigned n = rnd(4) ? 1 + rnd(3) : rnd(30); n; n--)
            len = mutate(text, len);
        if (last) {
            file = fopen(last, "wb");
            if (file)
                fwrite(text, 1, len, file), fclose(file);
        }
        // Exactly as long as the text, so that reading past its end is seen.
        char *exact = malloc(len ? len : 1);
        memcpy(exact, text, len);
        sim_ptx_module *module;
        char log[300];
        loads++;
        if (!sim_ptx_load(exact, len, &host, &module, log, sizeof log)) {
            good++;
            run(module);
            sim_ptx_unload(module);
        }
        sim_ptx_check(exact, len, log, sizeof log);
        free(exact);
    }
    printf("%lu texts, %lu loaded, %lu launches, %lu finished\n", loads, good, launches, finished);
    free(text);
    return 0;
}
