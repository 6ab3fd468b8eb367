// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// printf of device code.
#ifndef SIM_PTX_PRINTF_H
#define SIM_PTX_PRINTF_H

#include <stddef.h>
#include <stdint.h>

// How the formatter reads device memory. Both return 0 after a fault.
typedef struct ptx_reader {
    void *ctx;
    int (*read)(void *ctx, uint64_t address, unsigned size, uint64_t *value);
    int (*string)(void *ctx, uint64_t address, char *out, size_t size);
} ptx_reader;

// Returns the number of conversions, or -1 after a fault.
int ptx_format(const ptx_reader *reader, uint64_t format, uint64_t address,
               void (*emit)(void *ctx, const char *text, size_t len), void *ctx);

#endif
