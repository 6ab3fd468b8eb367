// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Running a launch: nodes that wait for nothing any more go into a list, from which threads take them. The thread that
// serves the stream is the first; others come to help whenever something is ready and every thread there is has gone
// into work that may take long.

#include <stdlib.h>
#include <time.h>

#include "driver/config.h"
#include "graph/graph_conditional.h"
#include "graph/graph_exec.h"

enum { MOST_THREADS = 64, SHORT_WORK = 64 << 10 };

// One pass over a plan. Its memory lasts until its last node is done.
struct run {
    const struct sim_plan *plan;
    struct sim_slot *parent;  // the node that runs the graph; NULL for the first plan
    _Atomic size_t left;      // nodes that are not done
    struct sim_slot *slots;   // by node
    bool loops;               // for as long as the parent's condition holds,
    uint64_t until;           // and not past this time, if it is not 0
};

struct sim_slot {
    struct sim_slot *next;
    struct run *run;
    _Atomic uint32_t waiting;  // dependencies that are not done
};

static void help(struct sim_launch *launch, bool first);

// --- Threads --------------------------------------------------------------------------------------------------

struct helper {
    struct sim_task task;
    struct sim_launch *launch;
};

static void run_helper(struct sim_task *task)
{
    struct helper *helper = (struct helper *)task;
    struct sim_launch *launch = helper->launch;
    free(helper);
    help(launch, false);
}

// With the lock held: sees to it that what is ready is taken up.
static void call_help(struct sim_launch *launch)
{
    if (!launch->first || launch->free)
        return;
    if (launch->idle) {
        launch->idle = false;
        launch->free++;
        pthread_cond_signal(&launch->wake);
        return;
    }
    struct helper *helper = launch->threads < MOST_THREADS ? malloc(sizeof *helper) : NULL;
    if (!helper)
        return;  // whoever is done first goes on with it
    *helper = (struct helper){.task.run = run_helper, .launch = launch};
    launch->threads++;
    launch->free++;
    sim_workers_take(&helper->task);
}

static bool is_short(const struct sim_work *work)
{
    switch ((int)work->type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
        const struct sim_copy *copy = &work->copy.job.copy;
        return copy->width * copy->height * copy->depth <= SHORT_WORK;
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
        const struct sim_fill *fill = &work->fill.job.fill;
        return fill->width * fill->height * fill->element <= SHORT_WORK;
    }
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return false;
    default: return true;
    }
}

static void go_away(struct sim_launch *launch)
{
    pthread_mutex_lock(&launch->lock);
    launch->free--;
    call_help(launch);
    pthread_mutex_unlock(&launch->lock);
}

static void come_back(struct sim_launch *launch)
{
    pthread_mutex_lock(&launch->lock);
    launch->free++;
    pthread_mutex_unlock(&launch->lock);
}

// --- Work -----------------------------------------------------------------------------------------------------

static void run_values(const struct sim_work *work)
{
    for (unsigned i = 0; i < work->values.params.count; i++)
        if (work->values.jobs[i].bytes)
            sim_value_run(work->context, &work->values.jobs[i]);
}

static void run_memory(const struct sim_plan_node *node, const struct sim_work *work)
{
    // What is freed or allocated elsewhere was so for the host when the graph was launched.
    bool allocates = work->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    if (allocates && node->inside)
        (void)sim_graph_memory_allocate(work->memory.memory);  // its memory is backed, so this cannot fail
    if (!allocates && (!node->inside || sim_graph_memory_free(work->memory.memory)))
        sim_graph_memory_leave(work->memory.address);
}

// Called by kernels: handles are those that the launch's nodes were made with.
static int set_condition(void *ctx, uint64_t handle, uint32_t value)
{
    struct sim_launch *launch = ctx;
    for (size_t i = 0; i < launch->exec->condition_count; i++) {
        struct sim_exec_condition *condition = &launch->exec->conditions[i];
        if (sim_object_handle(launch->state->items[condition->item].work->conditional.conditional) == handle) {
            atomic_store(&condition->value, value);
            return 1;
        }
    }
    return 0;
}

static void run_work(struct sim_launch *launch, const struct sim_plan_node *node, const struct sim_work *work)
{
    struct sim_launch_event *event = node->event == SIM_NO_EVENT ? NULL : &launch->events[node->event];
    switch ((int)work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        sim_kernel_run(work->context, work->kernel.job, &(struct sim_conditions){set_condition, launch});
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY: sim_copy_run(work->context, &work->copy.job); break;
    case CU_GRAPH_NODE_TYPE_MEMSET: sim_fill_run(work->context, &work->fill.job); break;
    case CU_GRAPH_NODE_TYPE_HOST:
        if (atomic_load(&launch->context->error) == CUDA_SUCCESS)
            sim_host_run(work->host.function, work->host.data);
        break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: sim_event_mark_end(&event->mark); break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        sim_event_wait_end(&event->wait, atomic_load(&launch->context->error) == CUDA_SUCCESS);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE: run_memory(node, work); break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: run_values(work); break;
    default: break;
    }
}

// --- Order ----------------------------------------------------------------------------------------------------

struct ready {  // nodes that became so, to be added to the launch's at once
    struct sim_slot *first, *last;
};

static void add_ready(struct ready *ready, struct sim_slot *slot)
{
    slot->next = NULL;
    if (ready->last)
        ready->last->next = slot;
    else
        ready->first = slot;
    ready->last = slot;
}

static void start(struct run *run, struct ready *ready)
{
    const struct sim_plan *plan = run->plan;
    atomic_store(&run->left, plan->count);
    for (size_t i = 0; i < plan->count; i++) {
        uint32_t waiting = plan->first[SIM_IN][i + 1] - plan->first[SIM_IN][i];
        run->slots[i].run = run;
        atomic_store_explicit(&run->slots[i].waiting, waiting, memory_order_relaxed);
    }
    for (size_t i = 0;
         i < plan->count && plan->first[SIM_IN][plan->order[i] + 1] == plan->first[SIM_IN][plan->order[i]]; i++)
        add_ready(ready, &run->slots[plan->order[i]]);
}

static struct run *run_new(const struct sim_plan *plan, struct sim_slot *parent)
{
    struct run *run = malloc(sizeof *run);
    struct sim_slot *slots = malloc((plan->count + 1) * sizeof *slots);
    if (!run || !slots) {
        free(run);
        free(slots);
        return NULL;
    }
    *run = (struct run){.plan = plan, .parent = parent, .slots = slots};
    return run;
}

static void run_free(struct run *run)
{
    free(run->slots);
    free(run);
}

// The node of a slot.
static const struct sim_plan_node *node_of(const struct sim_slot *slot, const struct sim_work **work,
                                           const struct sim_launch *launch)
{
    size_t index = (size_t)(slot - slot->run->slots);
    *work = launch->state->items[slot->run->plan->base + index].work;
    return &slot->run->plan->nodes[index];
}

// May a loop go on? Ends it where kernels would be ended.
static bool goes_on(struct sim_launch *launch, const struct sim_slot *slot, uint64_t until)
{
    const struct sim_work *work;
    const struct sim_plan_node *node = node_of(slot, &work, launch);
    if (atomic_load(&work->context->error) != CUDA_SUCCESS ||
        !atomic_load(&launch->exec->conditions[node->condition].value))
        return false;
    if (!until || sim_now_ns() < until)
        return true;
    sim_report("time limit", "conditional node", 0, 0, NULL, "a WHILE node goes on for longer than kernels may");
    sim_context_fail(work->context, CUDA_ERROR_LAUNCH_TIMEOUT, sim_last_report());
    return false;
}

// A loop with nothing in it can only end by the time limit, or with the context.
static void loop_idly(struct sim_launch *launch, const struct sim_slot *slot, uint64_t until)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    go_away(launch);
    while (goes_on(launch, slot, until))
        nanosleep(&pause, NULL);
    come_back(launch);
}

static uint64_t loop_limit(void)
{
    double seconds = sim_config()->kernel_seconds;
    return seconds > 0 ? sim_now_ns() + (uint64_t)(seconds * 1e9) : 0;
}

// The graph that a node runs now; NULL for none.
static const struct sim_plan *choose(const struct sim_launch *launch, const struct sim_slot *slot, bool *loops)
{
    const struct sim_work *work;
    const struct sim_plan_node *node = node_of(slot, &work, launch);
    *loops = false;
    if (node->type == CU_GRAPH_NODE_TYPE_GRAPH)
        return &launch->exec->plans[node->first_child];
    if (atomic_load(&work->context->error) != CUDA_SUCCESS)
        return NULL;
    uint32_t choice = sim_conditional_choice(work, atomic_load(&launch->exec->conditions[node->condition].value));
    *loops = work->conditional.type == CU_GRAPH_COND_TYPE_WHILE;
    return choice < node->child_count ? &launch->exec->plans[node->first_child + choice] : NULL;
}

// Starts what a node runs. Returns false if there is nothing to wait for.
static bool begin(struct sim_launch *launch, struct sim_slot *slot, struct ready *ready)
{
    bool loops;
    const struct sim_plan *plan = choose(launch, slot, &loops);
    uint64_t until = loops ? loop_limit() : 0;
    if (plan && !plan->count && loops)
        loop_idly(launch, slot, until);
    if (!plan || !plan->count)
        return false;
    struct run *run = run_new(plan, slot);
    if (!run) {
        sim_context_fail(launch->context, CUDA_ERROR_OUT_OF_MEMORY, "no host memory to run a graph");
        return false;
    }
    run->loops = loops;
    run->until = until;
    start(run, ready);
    return true;
}

// A node is done, and with it perhaps the graph that it belongs to, and the node that runs that.
static void finish(struct sim_launch *launch, struct sim_slot *slot, struct ready *ready)
{
    while (slot) {
        struct run *run = slot->run;
        const struct sim_plan *plan = run->plan;
        uint32_t node = (uint32_t)(slot - run->slots);
        for (uint32_t e = plan->first[SIM_OUT][node]; e < plan->first[SIM_OUT][node + 1]; e++) {
            struct sim_slot *later = &run->slots[plan->ends[SIM_OUT][e]];
            if (atomic_fetch_sub_explicit(&later->waiting, 1, memory_order_acq_rel) == 1)
                add_ready(ready, later);
        }
        if (atomic_fetch_sub_explicit(&run->left, 1, memory_order_acq_rel) != 1)
            return;
        if (run->loops && goes_on(launch, run->parent, run->until)) {
            start(run, ready);
            return;
        }
        slot = run->parent;
        run_free(run);
    }
    pthread_mutex_lock(&launch->lock);
    launch->done = true;
    launch->idle = false;
    pthread_cond_signal(&launch->wake);
    pthread_mutex_unlock(&launch->lock);
}

static void execute(struct sim_launch *launch, struct sim_slot *slot, struct ready *ready)
{
    const struct sim_plan *plan = slot->run->plan;
    size_t index = (size_t)(slot - slot->run->slots);
    const struct sim_plan_node *node = &plan->nodes[index];
    const struct sim_exec_item *item = &launch->state->items[plan->base + index];
    if (node->child_count) {
        if (begin(launch, slot, ready))
            return;
    } else if (!item->enabled || is_short(item->work)) {
        if (item->enabled)
            run_work(launch, node, item->work);
    } else {
        go_away(launch);
        run_work(launch, node, item->work);
        come_back(launch);
    }
    finish(launch, slot, ready);
}

// --- Launches -------------------------------------------------------------------------------------------------

static void enqueue(struct sim_launch *launch, const struct ready *ready)
{
    if (!ready->first)
        return;
    if (launch->last)
        launch->last->next = ready->first;
    else
        launch->first = ready->first;
    launch->last = ready->last;
}

static void help(struct sim_launch *launch, bool first)
{
    pthread_mutex_lock(&launch->lock);
    for (;;) {
        struct sim_slot *slot = launch->first;
        if (slot) {
            launch->first = slot->next;
            if (!launch->first)
                launch->last = NULL;
            pthread_mutex_unlock(&launch->lock);
            struct ready ready = {0};
            execute(launch, slot, &ready);
            pthread_mutex_lock(&launch->lock);
            enqueue(launch, &ready);
        } else if (!first) {
            break;
        } else if (launch->done && !launch->threads) {
            break;
        } else {
            launch->idle = !launch->done;
            launch->free--;
            while (launch->idle || (launch->done && launch->threads))
                pthread_cond_wait(&launch->wake, &launch->lock);
            // Whoever ended the wait for something to do has counted this thread in again.
            if (launch->done)
                break;
        }
    }
    if (!first) {
        launch->threads--;
        launch->free--;
        if (!launch->threads)
            pthread_cond_signal(&launch->wake);
    }
    pthread_mutex_unlock(&launch->lock);
}

void sim_launch_run(struct sim_launch *launch)
{
    const struct sim_plan *plan = &launch->exec->plans[0];
    for (size_t i = 0; i < launch->left_count; i++)
        sim_graph_memory_leave(launch->left_behind[i]);
    for (size_t i = 0; i < launch->exec->condition_count; i++) {
        struct sim_exec_condition *condition = &launch->exec->conditions[i];
        const struct sim_conditional *own = launch->state->items[condition->item].work->conditional.conditional;
        if (own->flags & CU_GRAPH_COND_ASSIGN_DEFAULT)
            atomic_store(&condition->value, own->value);
    }
    if (!plan->count)
        return;
    struct run *run = run_new(plan, NULL);
    if (!run) {
        sim_context_fail(launch->context, CUDA_ERROR_OUT_OF_MEMORY, "no host memory to run a graph");
        return;
    }
    struct ready ready = {0};
    start(run, &ready);
    launch->free = 1;
    enqueue(launch, &ready);
    help(launch, true);
}
