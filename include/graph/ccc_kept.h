// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What a definition keeps itself, as a tree: a list for the graph, and one for each graph inside its nodes, which goes
// with the node. The lists of graphs inside nodes have names: the driver's handles of the graphs. What is here needs
// the lock of the root. Programs nest graphs to any depth: no function calls itself.
#ifndef CCC_KEPT_H
#define CCC_KEPT_H

#include "driver/ccc_compat.h"
#include "handles/ccc_map.h"
#include "memory/ccc_buffer.h"
#include "streams/ccc_host_call.h"

typedef struct ccc_kept {
    ccc_keep *keeps;
    struct ccc_kept *inner;         // what is kept for the graphs inside the nodes of this one
    struct ccc_kept *next, **link;  // of those: the next, and what points to this
    struct ccc_kept *outer;         // the list of the graph around; NULL for the root
    uint64_t graph;                 // inside a node; 0: the driver did not tell, so that it goes with what is around it
    uint64_t node;                  // that it is inside; 0: not known either
} ccc_kept;

// A keep is to be the graph's: only hold memory that the graph itself allocates, or a graph around it.
static void ccc_keep_for(ccc_keep *keep, const ccc_handle *root)
{
    for (size_t i = 0; i < keep->count; i++) {
        ccc_handle *handle = (ccc_handle *)keep->handles[i];
        if (keep->handles[i] & CCC_HELD || !(handle->flags & CCC_OF_GRAPH) ||
            ccc_companion(ccc_allocation(handle)) != root)
            continue;
        keep->handles[i] |= CCC_HELD;
        atomic_fetch_add(&handle->holders, 1);
        ccc_release(handle);
    }
}

static void ccc_keep_link(ccc_keep **list, ccc_keep *keep)
{
    keep->next = *list;
    keep->link = list;
    if (keep->next)
        keep->next->link = &keep->next;
    *list = keep;
}

static void ccc_keep_unlink(ccc_keep *keep)
{
    *keep->link = keep->next;
    if (keep->next)
        keep->next->link = keep->link;
    keep->next = NULL;
    keep->link = NULL;
}

// The list, without a name, of a graph inside a node. NULL: out of memory.
static ccc_kept *ccc_kept_new(ccc_kept *outer, uint64_t node)
{
    ccc_kept *made = calloc(1, sizeof *made);
    if (made == NULL) {
        ccc_fail(CCC_NO_MEMORY, "malloc");
        return NULL;
    }
    made->node = node;
    made->outer = outer;
    made->next = outer->inner;
    made->link = &outer->inner;
    if (made->next)
        made->next->link = &made->next;
    outer->inner = made;
    return made;
}

static uint64_t ccc_kept_key(const ccc_kept *kept) { return kept->graph ? kept->graph : kept->node; }

// What has this name is of a graph that is gone without our knowledge: the driver has given its handle to another one.
static void ccc_kept_forget(ccc_map *names, uint64_t key)
{
    ccc_kept *kept = ccc_map_find(names, key);
    if (kept == NULL)
        return;
    ccc_map_remove(names, key);
    kept->graph = kept->node = 0;
}

// Say which graph a list is of. There is room for the name.
static void ccc_kept_name(ccc_map *names, ccc_kept *kept, uint64_t graph, uint64_t node)
{
    kept->graph = graph;
    kept->node = node;
    uint64_t key = ccc_kept_key(kept);
    if (key == 0)
        return;
    ccc_kept_forget(names, key);
    ccc_map_set(names, key, kept);
}

// Release the keeps of one list.
static void ccc_kept_let_go(ccc_kept *kept)
{
    while (kept->keeps) {
        ccc_keep *keep = kept->keeps;
        ccc_keep_unlink(keep);
        ccc_keep_finish(keep);
    }
}

// Free the empty list of a graph inside a node.
static void ccc_kept_free(ccc_map *names, ccc_kept *kept)
{
    uint64_t key = ccc_kept_key(kept);
    if (key && ccc_map_find(names, key) == kept)
        ccc_map_remove(names, key);
    *kept->link = kept->next;
    if (kept->next)
        kept->next->link = kept->link;
    free(kept);
}

// Let go of all that is kept for a graph, and for those inside it.
static void ccc_kept_clear(ccc_map *names, ccc_kept *kept)
{
    for (ccc_kept *at = kept;;) {
        ccc_kept_let_go(at);
        if (at->inner) {
            at = at->inner;
        } else if (at == kept) {
            return;
        } else {
            ccc_kept *outer = at->outer;
            ccc_kept_free(names, at);
            at = outer;
        }
    }
}

// The same for a graph inside a node, of which nothing is left.
static void ccc_kept_remove(ccc_map *names, ccc_kept *kept)
{
    ccc_kept_clear(names, kept);
    ccc_kept_free(names, kept);
}

// A graph inside a node is gone: let go of what has that name, if it is of that graph.
static void ccc_kept_drop(ccc_map *names, uint64_t key, uint64_t graph)
{
    ccc_kept *kept = ccc_map_find(names, key);
    if (kept && kept->graph == graph)
        ccc_kept_remove(names, kept);
}

// The list after `at` of all inside `kept`, outer ones first. NULL: it is the last.
static ccc_kept *ccc_kept_after(const ccc_kept *at, const ccc_kept *kept)
{
    if (at->inner)
        return at->inner;
    while (at != kept && at->next == NULL)
        at = at->outer;
    return at == kept ? NULL : at->next;
}

// How many keeps there are for a graph and those inside it, and how many graphs.
static size_t ccc_kept_count(const ccc_kept *kept, size_t *graphs)
{
    size_t count = 0;
    for (const ccc_kept *at = kept; at; at = ccc_kept_after(at, kept), ++*graphs)
        for (const ccc_keep *keep = at->keeps; keep; keep = keep->next)
            count++;
    return count;
}

static void ccc_kept_take(const ccc_kept *kept, ccc_keep *bundle)
{
    for (const ccc_kept *at = kept; at; at = ccc_kept_after(at, kept))
        for (ccc_keep *keep = at->keeps; keep; keep = keep->next)
            ccc_keep_take(bundle, keep);
}

// A keep that has a use of all that is kept for a graph, and those inside it; *made is it, or NULL where nothing is.
static int ccc_kept_bundle(const ccc_kept *kept, ccc_keep **made)
{
    size_t graphs = 0, count = kept ? ccc_kept_count(kept, &graphs) : 0;
    *made = NULL;
    if (count == 0)
        return 0;
    if ((*made = ccc_keep_bundle(count)) == NULL)
        return CCC_NO_MEMORY;
    ccc_kept_take(kept, *made);
    return 0;
}

// Share the keeps of one list with a copy, in a new keep for each, because each node of the copy may be changed.
static int ccc_kept_share_one(const ccc_kept *kept, ccc_kept *copy)
{
    for (ccc_keep *keep = kept->keeps; keep; keep = keep->next) {
        ccc_keep *twin = ccc_keep_share(keep);
        if (twin == NULL)
            return CCC_NO_MEMORY;
        ccc_keep_link(&copy->keeps, twin);
    }
    return 0;
}

// The same with the lists inside.
static int ccc_kept_share(const ccc_kept *kept, ccc_kept *copy)
{
    for (const ccc_kept *at = kept;;) {
        if (ccc_kept_share_one(at, copy))
            return CCC_NO_MEMORY;
        if (at->inner) {
            at = at->inner;
        } else {
            for (; at != kept && at->next == NULL; at = at->outer)
                copy = copy->outer;
            if (at == kept)
                return 0;
            at = at->next;
            copy = copy->outer;
        }
        if ((copy = ccc_kept_new(copy, at->node)) == NULL)
            return CCC_NO_MEMORY;
    }
}

// Name the lists inside a copy, which have the nodes of the original's, once the driver has made it: `graph`, or 0.
// What the driver does not tell of is kept until what is around it goes. There is room for the names.
static void ccc_kept_settle(ccc_map *names, ccc_kept *copy, uint64_t graph)
{
    for (ccc_kept *at = ccc_kept_after(copy, copy); at; at = ccc_kept_after(at, copy)) {
        CUgraph found = NULL;
        CUgraphNode node = NULL, original = (CUgraphNode)(uintptr_t)at->node;
        uint64_t around = at->outer == copy ? graph : at->outer->graph;
        if (around == 0 || original == NULL ||
            cuGraphNodeFindInClone(&node, original, (CUgraph)(uintptr_t)around) != CUDA_SUCCESS ||
            cuGraphChildGraphNodeGetGraph(node, &found) != CUDA_SUCCESS) {
            node = NULL;
            found = NULL;
        }
        ccc_kept_name(names, at, (uintptr_t)found, (uintptr_t)node);
    }
}

// Give the keeps of one list to the driver, as user objects of a graph. On failure the rest stays.
static int ccc_kept_hand_over_one(ccc_kept *kept, CUgraph graph)
{
    while (kept->keeps) {
        ccc_keep *keep = kept->keeps;
        CUuserObject object;
        atomic_fetch_add(&keep->uses, 1);  // the driver's; released on failure
        int status = ccc_keep_give(keep, graph, &object);
        if (status)
            return status;
        ccc_keep_unlink(keep);
        keep->object = object;
        ccc_keep_finish(keep);
    }
    return 0;
}

// Give the keeps of a graph, and of those inside it, to the driver: each to its own graph, from which copies and
// executables of any graph around get it. Where the graph is not known, the nearest known one around gets them. On
// failure the others stay.
static int ccc_kept_hand_over(ccc_kept *kept, CUgraph graph)
{
    int status = 0;
    for (ccc_kept *at = kept; at && status == 0; at = ccc_kept_after(at, kept)) {
        const ccc_kept *known = at;
        while (known != kept && known->graph == 0)
            known = known->outer;
        status = ccc_kept_hand_over_one(at, known == kept ? graph : (CUgraph)(uintptr_t)known->graph);
    }
    return status;
}

// The twins that a new copy has, and what they are twins of, from *count on; *count is how many there are then.
static void ccc_kept_twins(const ccc_kept *copy, ccc_keep **originals, ccc_keep **twins, size_t capacity, size_t *count)
{
    for (const ccc_kept *at = copy; at; at = ccc_kept_after(at, copy))
        for (ccc_keep *keep = at->keeps; keep; keep = keep->next) {
            if (keep->bundle && *count < capacity) {
                originals[*count] = keep->bundle[0];
                twins[*count] = keep;
            }
            *count += keep->bundle != NULL;
        }
}

#endif
