// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Copies of texts, for libraries that keep the pointers they are handed.
#ifndef CCC_STRINGS_H
#define CCC_STRINGS_H

#include <stddef.h>
#include <string.h>

// How many bytes the pointers to copies take, and the copies.
static size_t ccc_strings_size(const char *const *texts, unsigned int count)
{
    size_t size = 0;
    for (unsigned int i = 0; i < count; i++)
        size += sizeof *texts + strlen(texts[i]) + 1;
    return size;
}

// Copy texts to `buffer`, and pointers to these to `pointers`. Returns the end of the last.
static char *ccc_strings_copy(const char **pointers, char *buffer, const char *const *texts, unsigned int count)
{
    for (unsigned int i = 0; i < count; i++) {
        pointers[i] = buffer;
        buffer = stpcpy(buffer, texts[i]) + 1;
    }
    return buffer;
}

#endif
