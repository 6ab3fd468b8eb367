// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Qualifiers by name, through a hash table that is filled once.
#include "ptx/ptx_mods.h"

#include <pthread.h>
#include <string.h>

#define BUCKETS 1024

static const char *const names[M_COUNT] = {"",
#define X(id, text) text,
                                           PTX_MODS(X)
#undef X
};

static uint16_t table[BUCKETS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static unsigned hash(const char *s, size_t n)
{
    unsigned h = 5381;
    for (size_t i = 0; i < n; i++)
        h = h * 33 ^ (unsigned char)s[i];
    return h % BUCKETS;
}

static void fill(void)
{
    for (uint16_t i = 1; i < M_COUNT; i++) {
        unsigned h = hash(names[i], strlen(names[i]));
        while (table[h])
            h = (h + 1) % BUCKETS;
        table[h] = i;
    }
}

uint16_t mod_find(const char *name, size_t len)
{
    pthread_once(&once, fill);
    for (unsigned h = hash(name, len); table[h]; h = (h + 1) % BUCKETS) {
        const char *s = names[table[h]];
        if (strncmp(s, name, len) == 0 && s[len] == 0)
            return table[h];
    }
    return M_NONE;
}

const char *mod_name(uint16_t mod) { return mod < M_COUNT ? names[mod] : ""; }
