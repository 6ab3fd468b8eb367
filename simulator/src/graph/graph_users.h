// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// User objects: what a program hands to graphs so that it lives as long as they need it.

#ifndef SIM_GRAPH_USERS_H
#define SIM_GRAPH_USERS_H

#include "driver/object.h"

// References to user objects that change hands together. A set is never changed while it is shared: graphs,
// executables and launches hold the same one until one of them needs another. NULL is the empty set.
struct sim_user_set;

void sim_user_set_hold(struct sim_user_set *set);
// Who holds the last reference decides where the destructors run: `later` on a thread of the driver's, else in this
// thread, when it lets the lock of graphs go.
void sim_user_set_drop(struct sim_user_set *set, bool later);
void sim_user_objects_end(void);  // runs the destructors that wait for this thread, which holds no lock

struct sim_user_object {
    struct sim_object base;
    CUhostFn destroy;
    void *data;
    uint64_t count;                // of the references of the program's and of sets
    struct sim_user_object *next;  // of those that wait to be destroyed
};
CUresult sim_user_object_find(CUuserObject handle, struct sim_user_object **object);
// Replaces *set by one with more, or fewer, references to the object.
CUresult sim_user_set_add(struct sim_user_set **set, struct sim_user_object *object, unsigned count, bool move);
CUresult sim_user_set_remove(struct sim_user_set **set, struct sim_user_object *object, unsigned count);

#endif
