// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Driver objects and their handles.
//
// A handle is a number (kind, generation, slot), never an address: whatever a program passes is looked up, and a
// stale or invented handle is an error instead of a crash. The memory of a slot is never given back, so a look-up
// may race with a destroy without a lock.

#ifndef SIM_OBJECT_H
#define SIM_OBJECT_H

#include "driver/sim.h"

enum sim_kind {
    SIM_CONTEXT = 1,
    SIM_STREAM,
    SIM_EVENT,
    SIM_POOL,
    SIM_LIBRARY,
    SIM_KERNEL,
    SIM_MODULE,
    SIM_FUNCTION,
    SIM_PHYSICAL,
    SIM_GRAPH,
    SIM_GRAPH_NODE,
    SIM_GRAPH_EXEC,
    SIM_USER_OBJECT,
    SIM_CONDITIONAL,
    SIM_LINK,
    SIM_ARRAY,
    SIM_MIPMAP,
    SIM_TEXTURE,
    SIM_SURFACE,
    SIM_GREEN,
    SIM_KINDS,
};

struct sim_object {
    _Atomic uint32_t references;
    _Atomic uint32_t generation;
    _Atomic bool live;  // the handle is valid; references may keep the object longer
    bool internal;      // not counted as one of the program's objects
    uint32_t slot;
    enum sim_kind kind;
    struct sim_object *next_free;
};

// How an object of a kind ends, once the last reference is gone. Its bytes after `base` are zeroed on creation.
struct sim_kind_info {
    const char *name;
    size_t size;
    void (*finalize)(void *object);
};
extern const struct sim_kind_info sim_kinds[SIM_KINDS];

enum sim_lookup { SIM_FOUND, SIM_STALE, SIM_UNKNOWN };

void *sim_object_new(enum sim_kind kind);  // NULL when out of memory; one reference, the handle's
uintptr_t sim_object_handle(const void *object);
enum sim_lookup sim_object_find(enum sim_kind kind, const void *handle, void **object);  // takes a reference
bool sim_object_hold(void *object);    // false if it is already ending
bool sim_object_retire(void *object);  // ends the handle and its reference; false if another call did
void sim_object_drop(void *object);    // NULL is fine
void sim_object_hide(void *object);    // leaves it out of the count of the program's objects
size_t sim_object_live(enum sim_kind kind);
void sim_live_report_leaks(void);  // objects that are never destroyed, by kind
// Calls `visit` with a reference held for each live object of a kind.
void sim_object_each(enum sim_kind kind, void (*visit)(void *object, void *arg), void *arg);

static inline void sim_object_autodrop(void *slot) { sim_object_drop(*(void **)slot); }

// A local reference that is dropped at the end of its scope.
#define SIM_HELD __attribute__((cleanup(sim_object_autodrop)))

#endif
