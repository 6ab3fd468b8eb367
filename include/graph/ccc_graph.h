// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Graphs and executables. The driver wants calls on one graph made one after the other, even those that only look: so
// each call here holds the lock of the graph's root, or of the executable. Calls that take a ccc_refs take it over:
// where they fail, it is finished. docs/graphs.md says which objects a graph keeps.
#ifndef CCC_GRAPH_H
#define CCC_GRAPH_H

#include "graph/ccc_ref_tree.h"
#include "launch/ccc_launch.h"

#define CCC_GONE (-25)  // a node was destroyed, or the graph that was inside it

enum { CCC_CAPTURE_ACTIVE = 1, CCC_CAPTURE_LOST };  // a capture that goes on, and one that came to nothing

typedef struct ccc_graph {
    pthread_mutex_t lock;
    int excludes;  // who holds the lock excludes calls that give captured streams work, too
    ccc_ref_tree
        tree;  // of a definition: references that the driver does not have; of an executable: a bundle, and for nodes
    ccc_map names;        // of a definition: what is kept for graphs inside nodes, by their handles
    ccc_map by_node;      // of an executable: its references for nodes
    ccc_map gone;         // of a root: nodes in it that were destroyed, and graphs that were inside them
    ccc_handle *event;    // of an executable that has references: behind its last launch, unless that was in `stream`
    ccc_handle *stream;   // of an executable that has references: the stream of its last launch, if ours; not a use
    int shown;            // of a definition: others know a handle of it, so that the driver has to have all references
    int conditional;      // a root has conditional nodes, or is of other code, which may have added some
    atomic_int captured;  // of a graph that is captured here; unless it is 0, the driver destroys it
} ccc_graph;

// The handle of a graph or an executable.
typedef struct ccc_graph_handle {
    ccc_handle handle;
    ccc_graph *graph;  // NULL: a graph inside a node, which has its root's
    uint64_t node;     // of a graph inside a node: that node
} ccc_graph_handle;

// Why the driver did not instantiate or update.
typedef struct ccc_refusal {
    int result;     // a CUgraphInstantiateResult or CUgraphExecUpdateResult
    uint64_t node;  // the one at fault; 0: not known
} ccc_refusal;

#define CCC_GRAPH_OF(handle) ((CUgraph)CCC_POINTER(handle))
#define CCC_EXEC_OF(handle) ((CUgraphExec)CCC_POINTER(handle))

static inline ccc_graph_handle *ccc_as_graph(const ccc_handle *handle) { return (ccc_graph_handle *)handle; }

// What a graph or an executable has; NULL of a graph inside a node.
static inline ccc_graph *ccc_graph_data(const ccc_handle *handle) { return ccc_as_graph(handle)->graph; }

static ccc_handle *ccc_graph_new(ccc_kind kind, uint64_t value)
{
    ccc_graph *graph = calloc(1, sizeof *graph);
    ccc_handle *handle = graph ? ccc_new(kind, value, 0, NULL) : NULL;
    if (handle == NULL) {
        free(graph);
        ccc_fail(CCC_NO_MEMORY, "malloc");
        return NULL;
    }
    pthread_mutex_init(&graph->lock, NULL);
    ccc_as_graph(handle)->graph = graph;
    return handle;
}

// The handle whose lock counts: a graph inside another has its root's.
static ccc_handle *ccc_graph_root(ccc_handle *handle)
{
    while (handle->flags & CCC_BORROWED)
        handle = handle->parent;
    return handle;
}

static ccc_graph *ccc_root_data(const ccc_handle *handle)
{
    return ccc_graph_data(ccc_graph_root((ccc_handle *)handle));
}

// Use a graph, and its root, which is returned. NULL: one of them is closed.
static ccc_handle *ccc_graph_acquire(ccc_handle *handle)
{
    if (!ccc_acquire(handle))
        return NULL;
    ccc_handle *root = ccc_graph_root(handle);  // which cannot go as long as the graph inside it is used
    if (root == handle || ccc_acquire(root))
        return root;
    ccc_release(handle);
    return NULL;
}

static void ccc_graph_release(ccc_handle *handle)
{
    ccc_handle *root = ccc_graph_root(handle);
    ccc_release(handle);
    if (root != handle)
        ccc_release(root);
}

static void ccc_graph_lock(ccc_handle *root)
{
    if (!ccc_graph_locks())
        return;
    pthread_mutex_lock(&ccc_graph_data(root)->lock);
    ccc_graph_data(root)->excludes = ccc_lock_captures();  // after all the locks of graphs
}

static void ccc_graph_unlock(ccc_handle *root)
{
    if (!ccc_graph_locks())
        return;
    ccc_unlock_captures(&ccc_graph_data(root)->excludes);
    pthread_mutex_unlock(&ccc_graph_data(root)->lock);
}

static char ccc_gone;  // the value in maps of what is gone

// Find out whether a graph and nodes in it are there. What was destroyed is remembered, because another thread may have
// looked before that, and go on with it now. The driver may give its handle to something new, so whoever is given a
// handle by the driver calls ccc_graph_found. The lock is held.
static int ccc_graph_check(ccc_handle *handle, const uint64_t *nodes, size_t count)
{
    const ccc_map *gone = &ccc_root_data(handle)->gone;
    if (CCC_LIKELY(gone->used == 0))
        return 0;
    for (; handle->flags & CCC_BORROWED; handle = handle->parent)
        if (ccc_map_find(gone, handle->value))
            return ccc_fail(CCC_GONE, "");
    for (size_t i = 0; i < count; i++)
        if (ccc_map_find(gone, nodes[i]))
            return ccc_fail(CCC_GONE, "");
    return 0;
}

static void ccc_graph_found(ccc_handle *handle, const uint64_t *values, size_t count)
{
    ccc_map *gone = &ccc_root_data(handle)->gone;
    for (size_t i = 0; gone->used && i < count; i++)
        ccc_map_remove(gone, values[i]);
}

static void ccc_graph_leave(ccc_handle *handle)
{
    ccc_graph_unlock(ccc_graph_root(handle));
    ccc_graph_release(handle);
}

// Enter a graph in order to use nodes of it.
static int ccc_graph_enter_at(ccc_handle *handle, const uint64_t *nodes, size_t count)
{
    ccc_handle *root = ccc_graph_acquire(handle);
    if (root == NULL)
        return CCC_CLOSED;
    ccc_graph_lock(root);
    int status = ccc_graph_check(handle, nodes, count);
    if (status)
        ccc_graph_leave(handle);
    return status;
}

static int ccc_graph_enter(ccc_handle *handle) { return ccc_graph_enter_at(handle, NULL, 0); }

static void ccc_graph_leave_scoped(ccc_handle **handle) { ccc_graph_leave(*handle); }

// Enter a graph, perhaps in order to use nodes of it, until the end of the scope. On failure return `otherwise`, which
// may be the status, from the helper.
#define CCC_ENTER_OR(handle, nodes, count, otherwise) \
    int status = ccc_graph_enter_at(handle, nodes, count); \
    if (status) \
        return otherwise; \
    __attribute__((cleanup(ccc_graph_leave_scoped))) ccc_handle *const ccc_entered_ = (handle)
#define CCC_ENTER(handle) CCC_ENTER_OR(handle, NULL, 0, status)
#define CCC_ENTER_AT(handle, node) CCC_ENTER_OR(handle, &(node), 1, status)

#define CCC_MOST_GRAPHS 3

// Graphs that are used at once; there is a NULL behind the last.
typedef struct ccc_graphs {
    ccc_handle *handles[CCC_MOST_GRAPHS + 1];
} ccc_graphs;

// The roots of some graphs, in an order that every thread keeps to, and each once; returns how many.
static size_t ccc_graph_roots(ccc_handle *const *handles, ccc_handle **roots)
{
    size_t found = 0;
    for (; *handles; handles++) {
        ccc_handle *root = ccc_graph_root(*handles);
        size_t at = found;
        while (at && roots[at - 1] > root)
            at--;
        if (at && roots[at - 1] == root)
            continue;
        memmove(&roots[at + 1], &roots[at], (found++ - at) * sizeof *roots);
        roots[at] = root;
    }
    return found;
}

static void ccc_graph_leave_all(ccc_graphs **graphs)
{
    ccc_handle *roots[CCC_MOST_GRAPHS];
    size_t locked = ccc_graph_roots((*graphs)->handles, roots);
    while (locked)
        ccc_graph_unlock(roots[--locked]);
    for (ccc_handle **handle = (*graphs)->handles; *handle; handle++)
        ccc_graph_release(*handle);
}

static int ccc_graph_enter_all(ccc_graphs *graphs)
{
    ccc_handle *const *handles = graphs->handles, *roots[CCC_MOST_GRAPHS];
    for (size_t i = 0; handles[i]; i++)
        if (ccc_graph_acquire(handles[i]) == NULL) {
            while (i)
                ccc_graph_release(handles[--i]);
            return CCC_CLOSED;
        }
    size_t locked = ccc_graph_roots(handles, roots);
    for (size_t i = 0; ccc_graph_locks() && i < locked; i++) {
        pthread_mutex_lock(&ccc_graph_data(roots[i])->lock);
        ccc_graph_data(roots[i])->excludes = 0;
    }
    ccc_graph_data(roots[0])->excludes = ccc_lock_captures();  // after all the locks of graphs
    int status = 0;
    for (size_t i = 0; status == 0 && handles[i]; i++)
        status = ccc_graph_check(handles[i], NULL, 0);
    if (status)
        ccc_graph_leave_all(&graphs);
    return status;
}

// Enter two or three graphs, of which the last may be NULL, as CCC_ENTER_OR does one.
#define CCC_ENTER_ALL_OR(otherwise, ...) \
    ccc_graphs graphs_ = {{__VA_ARGS__}}; \
    int status = ccc_graph_enter_all(&graphs_); \
    if (status) \
        return otherwise; \
    __attribute__((cleanup(ccc_graph_leave_all))) ccc_graphs *const ccc_entered_ = &graphs_

static ccc_handle *ccc_graph_create(void)
{
    CUgraph graph = NULL;
    if (ccc_init())
        return NULL;
    CUresult result = cuGraphCreate(&graph, 0);
    if (result) {
        ccc_fail((int)result, "cuGraphCreate");
        return NULL;
    }
    ccc_handle *handle = ccc_graph_new(CCC_GRAPH, (uintptr_t)graph);
    if (handle == NULL)
        cuGraphDestroy(graph);
    return handle;
}

// A graph that somebody gives us, for example what a capture made. It is ours from now on, even on failure.
static ccc_handle *ccc_graph_own(uint64_t value)
{
    ccc_handle *handle = ccc_graph_new(CCC_GRAPH, value);
    if (handle == NULL)
        cuGraphDestroy((CUgraph)(uintptr_t)value);
    else
        ccc_graph_data(handle)->conditional = 1;
    return handle;
}

// A graph that belongs to a node of another one. NULL: that one is closed, or out of memory.
static ccc_handle *ccc_graph_inner(uint64_t value, uint64_t node, ccc_handle *outer)
{
    CCC_USE_OR(outer, ccc_closed());
    ccc_handle *handle = ccc_new(CCC_GRAPH, value, CCC_BORROWED, outer);
    if (handle)
        ccc_as_graph(handle)->node = node;
    return handle;
}

// What a definition keeps itself for a graph: for itself, or one inside its nodes. NULL: nothing. The lock is held.
static ccc_ref_tree *ccc_graph_tree(const ccc_handle *handle)
{
    if (ccc_graph_data(handle))
        return &ccc_graph_data(handle)->tree;
    return ccc_map_find(&ccc_root_data(handle)->names, handle->value);
}

// The same, with an empty list where there is none. NULL: out of memory.
static ccc_ref_tree *ccc_graph_tree_of(ccc_handle *handle)
{
    ccc_ref_tree *tree;
    size_t missing = 0, at = 0;
    for (ccc_handle *around = handle; (tree = ccc_graph_tree(around)) == NULL; around = around->parent)
        missing++;
    if (missing == 0)
        return tree;
    ccc_map *names = &ccc_root_data(handle)->names;
    ccc_handle **inside = malloc(missing * sizeof *inside);
    if (inside == NULL || ccc_map_reserve(names, missing)) {
        free(inside);
        ccc_fail(CCC_NO_MEMORY, "malloc");
        return NULL;
    }
    for (; at < missing; at++, handle = handle->parent)
        inside[at] = handle;
    while (at && (tree = ccc_ref_tree_new(tree, 0))) {
        --at;
        ccc_ref_tree_name(names, tree, inside[at]->value, ccc_as_graph(inside[at])->node);
    }
    free(inside);
    return tree;
}

// Whether the driver has all references of a graph: others know a handle, or the driver may destroy what it captures.
static int ccc_graph_is_shown(ccc_handle *handle)
{
    const ccc_graph *root = ccc_root_data(handle);
    return root->shown || root->captured;
}

// Have a graph keep something, which may be NULL. An executable whose graph has user objects takes the driver 4.7
// microseconds to launch instead of 1.0 (driver 580, H200), and their making takes longer than that of a node: so a
// definition has its references itself, those of graphs inside its nodes, too, until the driver has to pass them on. On
// failure the ccc_refs is finished. The lock is held, here and below.
static int ccc_graph_attach(ccc_handle *handle, ccc_refs *refs)
{
    if (refs == NULL)
        return 0;
    ccc_refs_for(refs, ccc_graph_root(handle));
    if (ccc_graph_is_shown(handle))
        return ccc_refs_attach(refs, CCC_GRAPH_OF(handle));
    ccc_ref_tree *tree = ccc_graph_tree_of(handle);
    if (tree == NULL) {
        ccc_refs_release(refs);
        return CCC_NO_MEMORY;
    }
    ccc_refs_link(&tree->refs, refs);
    return 0;
}

// Take a ccc_refs, or NULL, from a graph. Clones and executables of the graph keep it.
static void ccc_graph_detach(ccc_handle *handle, ccc_refs *refs)
{
    if (refs == NULL || refs->object) {
        ccc_refs_detach(refs, CCC_GRAPH_OF(handle));
    } else {
        ccc_refs_unlink(refs);
        ccc_refs_release(refs);
    }
}

// Before a node is given `child`, of which the driver makes a copy: have the graph keep what the child keeps itself, in
// *copy, or the driver if it has all that the graph keeps. Then, or if there is nothing, *copy is NULL.
static int ccc_graph_embed(ccc_handle *handle, ccc_handle *child, ccc_ref_tree **copy)
{
    ccc_ref_tree *tree = child ? ccc_graph_tree(child) : NULL;
    ccc_map *names = &ccc_root_data(handle)->names;
    size_t graphs = 0;
    *copy = NULL;
    if (tree == NULL || ccc_ref_tree_count(tree, &graphs) == 0)
        return 0;
    if (ccc_graph_is_shown(handle))
        return ccc_ref_tree_give(tree, CCC_GRAPH_OF(child));
    ccc_ref_tree *outer = ccc_graph_tree_of(handle);
    if (outer == NULL || ccc_map_reserve(names, graphs) || (*copy = ccc_ref_tree_new(outer, 0)) == NULL)
        return CCC_NO_MEMORY;
    int status = ccc_ref_tree_share(tree, *copy);
    if (status) {
        ccc_ref_tree_remove(names, *copy);
        *copy = NULL;
    }
    return status;
}

// Afterwards: what is kept in the copy, if there is one, is for the graph inside the node; 0: there is no such node.
static void ccc_graph_embedded(ccc_handle *handle, uint64_t node, ccc_ref_tree *copy)
{
    ccc_map *names = &ccc_root_data(handle)->names;
    CUgraph inner = NULL;
    if (copy == NULL)
        return;
    if (node == 0) {
        ccc_ref_tree_remove(names, copy);
        return;
    }
    if (cuGraphChildGraphNodeGetGraph((CUgraphNode)(uintptr_t)node, &inner) != CUDA_SUCCESS)
        inner = NULL;
    ccc_ref_tree_name(names, copy, (uintptr_t)inner, node);
    ccc_ref_tree_settle(names, copy, (uintptr_t)inner);
}

// Release the references of graphs that were inside a node.
static void ccc_graph_remove_inner(ccc_handle *handle, uint64_t node, const uint64_t *inner, size_t count)
{
    ccc_map *names = &ccc_root_data(handle)->names;
    for (size_t i = 0; i < count; i++)
        ccc_ref_tree_remove_named(names, inner[i], inner[i]);
    ccc_ref_tree_remove_named(names, node, 0);  // for a graph that the driver did not report
}

// Somebody is to have the handle of a graph, and may make copies and executables of it, and reach the graphs inside it:
// not in the child of fork(), and in a host function the driver cannot be given anything. Whoever has the handle of a
// graph inside a node has the executables of the root run with user objects, anyway: so all references are given.
static int ccc_graph_show(ccc_handle *handle)
{
    if (ccc_driver.reason == CCC_FORKED)
        return 0;
    if (ccc_in_callback) {
        CCC_USE(handle);
        const ccc_graph *graph = ccc_root_data(handle);
        return graph->shown || (graph->tree.refs == NULL && graph->names.used == 0)
                   ? 0
                   : ccc_fail(CUDA_ERROR_NOT_PERMITTED, "cuUserObjectCreate in a host function");
    }
    CCC_ENTER(handle);
    ccc_handle *root = ccc_graph_root(handle);
    status = ccc_ref_tree_give(&ccc_graph_data(root)->tree, CCC_GRAPH_OF(root));
    if (status == 0) {
        ccc_graph_data(root)->shown = 1;
        ccc_ref_tree_clear(&ccc_graph_data(root)->names, &ccc_graph_data(root)->tree);
    }
    return status;
}

// Of a new copy: what it keeps, and what the original has in the place of that. Returns how many there are.
static size_t ccc_graph_copies(ccc_handle *copy, ccc_refs **originals, ccc_refs **copies, size_t capacity)
{
    size_t count = 0;
    CCC_ENTER_OR(copy, NULL, 0, 0);
    const ccc_ref_tree *tree = ccc_graph_tree(copy);
    if (tree)
        ccc_ref_tree_copies(tree, originals, copies, capacity, &count);
    return count;
}

// Have a clone, which nobody knows yet, keep what the original does.
static int ccc_graph_share(const ccc_handle *graph, ccc_handle *clone)
{
    const ccc_ref_tree *tree = ccc_graph_tree(graph);
    ccc_map *names = &ccc_graph_data(clone)->names;
    size_t graphs = 0;
    if (tree == NULL || ccc_ref_tree_count(tree, &graphs) == 0)
        return 0;
    int status = ccc_map_reserve(names, graphs);
    if (status == 0 && (status = ccc_ref_tree_share(tree, &ccc_graph_data(clone)->tree)) == 0)
        ccc_ref_tree_settle(names, &ccc_graph_data(clone)->tree, clone->value);
    return status;
}

static ccc_handle *ccc_graph_clone(ccc_handle *graph)
{
    CUgraph clone = NULL;
    ccc_handle *handle = NULL;
    CCC_ENTER_OR(graph, NULL, 0, (ccc_fail(status, ""), NULL));
    CUresult result = cuGraphClone(&clone, CCC_GRAPH_OF(graph));
    if (result)
        ccc_fail((int)result, "cuGraphClone");
    else if ((handle = ccc_graph_own((uintptr_t)clone))) {
        ccc_graph_data(handle)->conditional = ccc_root_data(graph)->conditional;
        status = ccc_graph_share(graph, handle);
    }
    if (status == 0)
        return handle;
    ccc_release_object(handle);
    ccc_fail(status, "malloc");
    return NULL;
}

// The node of a clone that stands for a node of the original; 0 where the driver does not tell.
static uint64_t ccc_graph_find(ccc_handle *clone, uint64_t original)
{
    CUgraphNode node = NULL;
    CCC_ENTER_OR(clone, NULL, 0, 0);
    CUresult result = cuGraphNodeFindInClone(&node, (CUgraphNode)(uintptr_t)original, CCC_GRAPH_OF(clone));
    uint64_t found = result ? 0 : (uintptr_t)node;
    ccc_graph_found(clone, &found, 1);
    return found;
}

// A condition in the current context.
static int ccc_graph_condition(ccc_handle *graph, unsigned int value, unsigned int flags,
                               CUgraphConditionalHandle *condition)
{
    CUcontext context = NULL;
    CCC_TRY(cuCtxGetCurrent, &context);
    if (context == NULL)
        return ccc_fail(CCC_NO_CONTEXT, "cuGraphConditionalHandleCreate");
    CCC_ENTER(graph);
    CCC_TRY(cuGraphConditionalHandleCreate, condition, CCC_GRAPH_OF(graph), context, value, flags);
    return 0;
}

static int ccc_graph_print(ccc_handle *graph, const char *path, unsigned int flags)
{
    CCC_ENTER(graph);
    CCC_TRY(cuGraphDebugDotPrint, CCC_GRAPH_OF(graph), path, flags);
    return 0;
}

#endif
