// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The references that a definition has itself, as a tree: a list for the graph, and one for each graph inside its
// nodes, which is released with the node. The lists of graphs inside nodes have names: the driver's handles of the
// graphs. The functions need the lock of the root. Programs nest graphs to any depth: no function calls itself.
#ifndef CCC_REF_TREE_H
#define CCC_REF_TREE_H

#include "driver/ccc_compat.h"
#include "handles/ccc_map.h"
#include "memory/ccc_buffer.h"
#include "streams/ccc_host_call.h"

typedef struct ccc_ref_tree {
    ccc_refs *refs;
    struct ccc_ref_tree *inner;         // the lists of the graphs inside the nodes of this one
    struct ccc_ref_tree *next, **link;  // of those: the next, and what points to this
    struct ccc_ref_tree *outer;         // the list of the graph around; NULL for the root
    uint64_t graph;  // inside a node; 0: the driver did not report it, and the list is released with the outer one
    uint64_t node;   // around the graph; 0: not known either
} ccc_ref_tree;

// Prepare a ccc_refs for a graph: of memory that the graph allocates, or a graph around it, take a memory use only.
static void ccc_refs_for(ccc_refs *refs, const ccc_handle *root)
{
    for (size_t i = 0; i < refs->count; i++) {
        ccc_handle *handle = (ccc_handle *)refs->handles[i];
        if (refs->handles[i] & CCC_MEMORY_ONLY || !(handle->flags & CCC_OF_GRAPH) ||
            ccc_companion(ccc_allocation(handle)) != root)
            continue;
        refs->handles[i] |= CCC_MEMORY_ONLY;
        atomic_fetch_add(&handle->memory_uses, 1);
        ccc_release(handle);
    }
}

static void ccc_refs_link(ccc_refs **list, ccc_refs *refs)
{
    refs->next = *list;
    refs->link = list;
    if (refs->next)
        refs->next->link = &refs->next;
    *list = refs;
}

static void ccc_refs_unlink(ccc_refs *refs)
{
    *refs->link = refs->next;
    if (refs->next)
        refs->next->link = refs->link;
    refs->next = NULL;
    refs->link = NULL;
}

// The list, without a name, of a graph inside a node. NULL: out of memory.
static ccc_ref_tree *ccc_ref_tree_new(ccc_ref_tree *outer, uint64_t node)
{
    ccc_ref_tree *made = calloc(1, sizeof *made);
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

static uint64_t ccc_ref_tree_key(const ccc_ref_tree *tree) { return tree->graph ? tree->graph : tree->node; }

// Take the name from a list: its graph was destroyed without our knowledge, and the driver gave the handle to another.
static void ccc_ref_tree_forget(ccc_map *names, uint64_t key)
{
    ccc_ref_tree *tree = ccc_map_find(names, key);
    if (tree == NULL)
        return;
    ccc_map_remove(names, key);
    tree->graph = tree->node = 0;
}

// Say which graph a list is of. There is room for the name.
static void ccc_ref_tree_name(ccc_map *names, ccc_ref_tree *tree, uint64_t graph, uint64_t node)
{
    tree->graph = graph;
    tree->node = node;
    uint64_t key = ccc_ref_tree_key(tree);
    if (key == 0)
        return;
    ccc_ref_tree_forget(names, key);
    ccc_map_set(names, key, tree);
}

// Release the references of one list.
static void ccc_ref_tree_release_own(ccc_ref_tree *tree)
{
    while (tree->refs) {
        ccc_refs *refs = tree->refs;
        ccc_refs_unlink(refs);
        ccc_refs_release(refs);
    }
}

// Free the empty list of a graph inside a node.
static void ccc_ref_tree_free(ccc_map *names, ccc_ref_tree *tree)
{
    uint64_t key = ccc_ref_tree_key(tree);
    if (key && ccc_map_find(names, key) == tree)
        ccc_map_remove(names, key);
    *tree->link = tree->next;
    if (tree->next)
        tree->next->link = tree->link;
    free(tree);
}

// Release the references of a graph, and of the graphs inside it.
static void ccc_ref_tree_clear(ccc_map *names, ccc_ref_tree *tree)
{
    for (ccc_ref_tree *at = tree;;) {
        ccc_ref_tree_release_own(at);
        if (at->inner) {
            at = at->inner;
        } else if (at == tree) {
            return;
        } else {
            ccc_ref_tree *outer = at->outer;
            ccc_ref_tree_free(names, at);
            at = outer;
        }
    }
}

// The same for a graph inside a node, whose list is freed.
static void ccc_ref_tree_remove(ccc_map *names, ccc_ref_tree *tree)
{
    ccc_ref_tree_clear(names, tree);
    ccc_ref_tree_free(names, tree);
}

// A graph inside a node was destroyed: remove the list of that name, if it is for that graph.
static void ccc_ref_tree_remove_named(ccc_map *names, uint64_t key, uint64_t graph)
{
    ccc_ref_tree *tree = ccc_map_find(names, key);
    if (tree && tree->graph == graph)
        ccc_ref_tree_remove(names, tree);
}

// The list after `at` of all inside `tree`, outer ones first. NULL: it is the last.
static ccc_ref_tree *ccc_ref_tree_next(const ccc_ref_tree *at, const ccc_ref_tree *tree)
{
    if (at->inner)
        return at->inner;
    while (at != tree && at->next == NULL)
        at = at->outer;
    return at == tree ? NULL : at->next;
}

// Count the structures of references of a graph and the graphs inside it, and the graphs.
static size_t ccc_ref_tree_count(const ccc_ref_tree *tree, size_t *graphs)
{
    size_t count = 0;
    for (const ccc_ref_tree *at = tree; at; at = ccc_ref_tree_next(at, tree), ++*graphs)
        for (const ccc_refs *refs = at->refs; refs; refs = refs->next)
            count++;
    return count;
}

static void ccc_ref_tree_add_to(const ccc_ref_tree *tree, ccc_refs *bundle)
{
    for (const ccc_ref_tree *at = tree; at; at = ccc_ref_tree_next(at, tree))
        for (ccc_refs *refs = at->refs; refs; refs = refs->next)
            ccc_refs_bundle_add(bundle, refs);
}

// Make a ccc_refs that has a use of all references of a graph, and of the graphs inside it; *made is NULL where there
// are none.
static int ccc_ref_tree_bundle(const ccc_ref_tree *tree, ccc_refs **made)
{
    size_t graphs = 0, count = tree ? ccc_ref_tree_count(tree, &graphs) : 0;
    *made = NULL;
    if (count == 0)
        return 0;
    if ((*made = ccc_refs_bundle(count)) == NULL)
        return CCC_NO_MEMORY;
    ccc_ref_tree_add_to(tree, *made);
    return 0;
}

// Share the references of one list with a copy, in a new ccc_refs for each, because each node of the copy may be
// changed.
static int ccc_ref_tree_share_own(const ccc_ref_tree *tree, ccc_ref_tree *copy)
{
    for (ccc_refs *refs = tree->refs; refs; refs = refs->next) {
        ccc_refs *shared = ccc_refs_share(refs);
        if (shared == NULL)
            return CCC_NO_MEMORY;
        ccc_refs_link(&copy->refs, shared);
    }
    return 0;
}

// The same with the lists inside.
static int ccc_ref_tree_share(const ccc_ref_tree *tree, ccc_ref_tree *copy)
{
    for (const ccc_ref_tree *at = tree;;) {
        if (ccc_ref_tree_share_own(at, copy))
            return CCC_NO_MEMORY;
        if (at->inner) {
            at = at->inner;
        } else {
            for (; at != tree && at->next == NULL; at = at->outer)
                copy = copy->outer;
            if (at == tree)
                return 0;
            at = at->next;
            copy = copy->outer;
        }
        if ((copy = ccc_ref_tree_new(copy, at->node)) == NULL)
            return CCC_NO_MEMORY;
    }
}

// Name the lists inside a copy, which have the nodes of the original's, once the driver has made it: `graph`, or 0.
// A list whose graph the driver does not report is released with the outer one. There is room for the names.
static void ccc_ref_tree_settle(ccc_map *names, ccc_ref_tree *copy, uint64_t graph)
{
    for (ccc_ref_tree *at = ccc_ref_tree_next(copy, copy); at; at = ccc_ref_tree_next(at, copy)) {
        CUgraph found = NULL;
        CUgraphNode node = NULL, original = (CUgraphNode)(uintptr_t)at->node;
        uint64_t around = at->outer == copy ? graph : at->outer->graph;
        if (around == 0 || original == NULL ||
            cuGraphNodeFindInClone(&node, original, (CUgraph)(uintptr_t)around) != CUDA_SUCCESS ||
            cuGraphChildGraphNodeGetGraph(node, &found) != CUDA_SUCCESS) {
            node = NULL;
            found = NULL;
        }
        ccc_ref_tree_name(names, at, (uintptr_t)found, (uintptr_t)node);
    }
}

// Give the references of one list to the driver, as user objects of a graph. On failure the rest stays.
static int ccc_ref_tree_give_own(ccc_ref_tree *tree, CUgraph graph)
{
    while (tree->refs) {
        ccc_refs *refs = tree->refs;
        CUuserObject object;
        atomic_fetch_add(&refs->uses, 1);  // the driver's; released on failure
        int status = ccc_refs_give(refs, graph, &object);
        if (status)
            return status;
        ccc_refs_unlink(refs);
        refs->object = object;
        ccc_refs_release(refs);
    }
    return 0;
}

// Give the references of a graph, and of those inside it, to the driver: each to its own graph, from which copies and
// executables of any graph around get it. Where the graph is not known, the nearest known one around gets them. On
// failure the others stay.
static int ccc_ref_tree_give(ccc_ref_tree *tree, CUgraph graph)
{
    int status = 0;
    for (ccc_ref_tree *at = tree; at && status == 0; at = ccc_ref_tree_next(at, tree)) {
        const ccc_ref_tree *known = at;
        while (known != tree && known->graph == 0)
            known = known->outer;
        status = ccc_ref_tree_give_own(at, known == tree ? graph : (CUgraph)(uintptr_t)known->graph);
    }
    return status;
}

// The references of a new copy and their originals, from *count on; sets *count to their number.
static void ccc_ref_tree_copies(const ccc_ref_tree *copy, ccc_refs **originals, ccc_refs **copies, size_t capacity,
                                size_t *count)
{
    for (const ccc_ref_tree *at = copy; at; at = ccc_ref_tree_next(at, copy))
        for (ccc_refs *refs = at->refs; refs; refs = refs->next) {
            if (refs->bundle && *count < capacity) {
                originals[*count] = refs->bundle[0];
                copies[*count] = refs;
            }
            *count += refs->bundle != NULL;
        }
}

#endif
