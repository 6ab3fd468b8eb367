// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "memory/ranges.h"

// The depth of a treap is logarithmic with overwhelming probability, so recursion is safe.

static _Atomic uint32_t seed = 2463534242u;

static uint32_t next_random(void)
{
    uint32_t x = seed;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    seed = x;
    return x;
}

static size_t largest(const struct sim_range *range) { return range ? range->largest : 0; }

static void update(struct sim_range *range)
{
    size_t most = range->size;
    if (largest(range->left) > most)
        most = largest(range->left);
    if (largest(range->right) > most)
        most = largest(range->right);
    range->largest = most;
}

static void split(struct sim_range *root, uintptr_t start, struct sim_range **low, struct sim_range **high)
{
    if (!root) {
        *low = *high = NULL;
    } else if (root->start < start) {
        split(root->right, start, &root->right, high);
        update(*low = root);
    } else {
        split(root->left, start, low, &root->left);
        update(*high = root);
    }
}

static struct sim_range *merge(struct sim_range *low, struct sim_range *high)
{
    if (!low || !high)
        return low ? low : high;
    if (low->priority > high->priority) {
        low->right = merge(low->right, high);
        update(low);
        return low;
    }
    high->left = merge(low, high->left);
    update(high);
    return high;
}

static struct sim_range *insert(struct sim_range *root, struct sim_range *range)
{
    if (!root || range->priority > root->priority) {
        split(root, range->start, &range->left, &range->right);
        update(range);
        return range;
    }
    if (range->start < root->start)
        root->left = insert(root->left, range);
    else
        root->right = insert(root->right, range);
    update(root);
    return root;
}

static struct sim_range *take_out(struct sim_range *root, struct sim_range *range)
{
    if (!root)
        return NULL;
    if (root == range)
        return merge(root->left, root->right);
    if (range->start < root->start)
        root->left = take_out(root->left, range);
    else
        root->right = take_out(root->right, range);
    update(root);
    return root;
}

void sim_ranges_add(struct sim_range **root, struct sim_range *range)
{
    range->priority = next_random();
    *root = insert(*root, range);
}

void sim_ranges_remove(struct sim_range **root, struct sim_range *range) { *root = take_out(*root, range); }

struct sim_range *sim_ranges_before(struct sim_range *root, uintptr_t address)
{
    struct sim_range *best = NULL;
    while (root)
        if (root->start <= address) {
            best = root;
            root = root->right;
        } else {
            root = root->left;
        }
    return best;
}

struct sim_range *sim_ranges_after(struct sim_range *root, uintptr_t address)
{
    struct sim_range *best = NULL;
    while (root)
        if (root->start > address) {
            best = root;
            root = root->left;
        } else {
            root = root->right;
        }
    return best;
}

struct sim_range *sim_ranges_at(struct sim_range *root, uintptr_t address)
{
    struct sim_range *range = sim_ranges_before(root, address);
    return range && address - range->start < range->size ? range : NULL;
}

struct sim_range *sim_ranges_first_fit(struct sim_range *root, size_t size, int (*fits)(struct sim_range *, void *),
                                       void *arg)
{
    if (!root || root->largest < size)
        return NULL;
    struct sim_range *found = sim_ranges_first_fit(root->left, size, fits, arg);
    if (found)
        return found;
    if (root->size >= size && (!fits || fits(root, arg)))
        return root;
    return sim_ranges_first_fit(root->right, size, fits, arg);
}

void sim_ranges_each(struct sim_range *root, void (*visit)(struct sim_range *, void *), void *arg)
{
    if (!root)
        return;
    sim_ranges_each(root->left, visit, arg);
    struct sim_range *right = root->right;
    visit(root, arg);
    sim_ranges_each(right, visit, arg);
}
