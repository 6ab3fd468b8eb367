// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The heap of device-side malloc: memory of the host's malloc, known by a sorted table so that accesses can be
// checked. What a kernel did not free stays until the module goes, as on hardware it stays until the context goes.
#include "ptx/ptx_heap.h"

#include <stdlib.h>
#include <string.h>

#define HEAP_LIMIT ((size_t)8 << 20)  // the default of CU_LIMIT_MALLOC_HEAP_SIZE

struct piece {
    uint64_t address;
    size_t size;
};

struct ptx_heap {
    pthread_mutex_t lock;
    struct piece *pieces;  // by address
    size_t count, cap, used;
};

ptx_heap *ptx_heap_new(void)
{
    ptx_heap *heap = calloc(1, sizeof *heap);
    if (heap)
        pthread_mutex_init(&heap->lock, NULL);
    return heap;
}

void ptx_heap_delete(ptx_heap *heap)
{
    if (!heap)
        return;
    for (size_t i = 0; i < heap->count; i++)
        free((void *)(uintptr_t)heap->pieces[i].address);
    free(heap->pieces);
    pthread_mutex_destroy(&heap->lock);
    free(heap);
}

// The first piece above `address`.
static size_t above(const ptx_heap *heap, uint64_t address)
{
    size_t lo = 0, hi = heap->count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (heap->pieces[mid].address <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static int grow(ptx_heap *heap)
{
    if (heap->count < heap->cap)
        return 1;
    size_t cap = heap->cap ? heap->cap * 2 : 64;
    struct piece *grown = realloc(heap->pieces, cap * sizeof *grown);
    if (!grown)
        return 0;
    heap->pieces = grown;
    heap->cap = cap;
    return 1;
}

uint64_t ptx_heap_alloc(ptx_heap *heap, size_t size)
{
    if (size > HEAP_LIMIT)
        return 0;
    size = size ? (size + 15) & ~(size_t)15 : 16;
    uint64_t address = 0;
    pthread_mutex_lock(&heap->lock);
    if (size <= HEAP_LIMIT - heap->used && grow(heap) && (address = (uintptr_t)malloc(size))) {
        size_t i = above(heap, address);
        memmove(heap->pieces + i + 1, heap->pieces + i, (heap->count - i) * sizeof *heap->pieces);
        heap->pieces[i] = (struct piece){address, size};
        heap->count++;
        heap->used += size;
    }
    pthread_mutex_unlock(&heap->lock);
    return address;
}

int ptx_heap_free(ptx_heap *heap, uint64_t address)
{
    pthread_mutex_lock(&heap->lock);
    size_t i = above(heap, address);
    int known = i && heap->pieces[i - 1].address == address;
    if (known) {
        heap->used -= heap->pieces[i - 1].size;
        memmove(heap->pieces + i - 1, heap->pieces + i, (heap->count - i) * sizeof *heap->pieces);
        heap->count--;
    }
    pthread_mutex_unlock(&heap->lock);
    if (known)
        free((void *)(uintptr_t)address);
    return known;
}

int ptx_heap_contains(ptx_heap *heap, uint64_t address, size_t size)
{
    pthread_mutex_lock(&heap->lock);
    size_t i = above(heap, address);
    int inside = i && address - heap->pieces[i - 1].address < heap->pieces[i - 1].size &&
                 size <= heap->pieces[i - 1].size - (address - heap->pieces[i - 1].address);
    pthread_mutex_unlock(&heap->lock);
    return inside;
}
