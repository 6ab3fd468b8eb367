// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Hash maps from numbers other than 0, such as handles, to pointers. Without a lock; all zero bytes is an empty map.
#ifndef CCC_MAP_H
#define CCC_MAP_H

#include "driver/ccc_error.h"

#include <stdlib.h>

#define CCC_LEAST_SLOTS 16

typedef struct ccc_slot {
    uint64_t key;  // 0: the slot is free
    void *value;
} ccc_slot;

typedef struct ccc_map {
    ccc_slot *slots;  // a power of two of them; with a collision, the next free one is used
    size_t size;
    size_t used;
} ccc_map;

static size_t ccc_map_home(const ccc_map *map, uint64_t key)
{
    return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (map->size - 1);
}

// The slot of a key, or the free one where it would be. The map has slots.
static ccc_slot *ccc_map_slot(const ccc_map *map, uint64_t key)
{
    size_t at = ccc_map_home(map, key);
    while (map->slots[at].key && map->slots[at].key != key)
        at = (at + 1) & (map->size - 1);
    return &map->slots[at];
}

static void *ccc_map_find(const ccc_map *map, uint64_t key) { return map->used ? ccc_map_slot(map, key)->value : NULL; }

// Make room for `more` keys, so that setting them cannot fail.
static int ccc_map_reserve(ccc_map *map, size_t more)
{
    size_t size = map->size ? map->size : CCC_LEAST_SLOTS;
    while (size / 2 < map->used + more)
        size *= 2;
    if (size == map->size)
        return 0;
    ccc_map larger = {calloc(size, sizeof *larger.slots), size, map->used};
    if (larger.slots == NULL)
        return ccc_fail(CCC_NO_MEMORY, "malloc");
    for (size_t i = 0; i < map->size; i++)
        if (map->slots[i].key)
            *ccc_map_slot(&larger, map->slots[i].key) = map->slots[i];
    free(map->slots);
    *map = larger;
    return 0;
}

// Set the value of a key, for which there is room.
static void ccc_map_set(ccc_map *map, uint64_t key, void *value)
{
    ccc_slot *slot = ccc_map_slot(map, key);
    map->used += slot->key == 0;
    *slot = (ccc_slot){key, value};
}

static void ccc_map_remove(ccc_map *map, uint64_t key)
{
    ccc_slot *slot = map->used ? ccc_map_slot(map, key) : NULL;
    if (slot == NULL || slot->key == 0)
        return;
    map->used--;
    size_t hole = (size_t)(slot - map->slots), mask = map->size - 1;
    for (size_t at = (hole + 1) & mask; map->slots[at].key; at = (at + 1) & mask)
        if (((at - ccc_map_home(map, map->slots[at].key)) & mask) >= ((at - hole) & mask)) {  // it may move back
            map->slots[hole] = map->slots[at];
            hole = at;
        }
    map->slots[hole] = (ccc_slot){0};
}

static void ccc_map_end(ccc_map *map)
{
    free(map->slots);
    *map = (ccc_map){0};
}

#endif
