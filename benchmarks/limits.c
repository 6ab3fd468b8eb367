// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The limit: the driver calls behind each row, in a C loop. Compiled and loaded by clib.py when the benchmarks run.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cuda.h>

#define SIZE 1024
#define STRETCH 256
#define MAX_ARGUMENTS 512
#define MAX_THREADS 64
#define BATCH 100

// clang-format off: many to a line
#define FUNCTIONS(F) \
    F(cuInit) F(cuDeviceGet) F(cuDevicePrimaryCtxRetain) F(cuCtxSetCurrent) F(cuCtxGetCurrent) F(cuCtxGetDevice) \
    F(cuDeviceGetMemPool) F(cuMemPoolSetAttribute) F(cuMemAllocFromPoolAsync) F(cuMemFreeAsync) \
    F(cuMemHostAlloc) F(cuMemsetD8Async) F(cuMemcpyAsync) F(cuEventCreate) F(cuEventDestroy) F(cuEventRecord) \
    F(cuEventQuery) F(cuEventSynchronize) F(cuEventElapsedTime) F(cuStreamCreateWithPriority) F(cuStreamDestroy) \
    F(cuStreamSynchronize) F(cuStreamWaitEvent)
#define KERNEL_FUNCTIONS(F) \
    F(cuLibraryLoadData) F(cuLibraryGetKernel) F(cuLaunchKernel) F(cuLaunchKernelEx) F(cuGraphCreate) F(cuGraphDestroy) \
    F(cuGraphAddKernelNode) F(cuGraphInstantiateWithFlags) F(cuGraphExecDestroy) F(cuGraphLaunch) \
    F(cuStreamBeginCapture) F(cuStreamEndCapture)
// clang-format on

// STRING(f) is the symbol's real name: cuda.h defines cuEventDestroy as cuEventDestroy_v2.
#define STRING_(name) #name
#define STRING(name) STRING_(name)
#define DECLARE(f) static __typeof__(f) *p_##f;
#define FIND(f) \
    if ((p_##f = (__typeof__(f) *)dlsym(library, STRING(f))) == NULL) { \
        snprintf(message, sizeof message, "the driver has no %s", STRING(f)); \
        return message; \
    }
FUNCTIONS(DECLARE)
KERNEL_FUNCTIONS(DECLARE)

static void *library;
static char message[256];
static _Atomic(int) failed;  // the last status that was not 0
static CUcontext context;
static CUmemoryPool pool;
static CUstream stream, second;
static CUdeviceptr buffer, other, pinned;
static CUevent event, start, end;
static CUfunction kernel0, kernel1, kernel4, kernel16, kernel256, kernel512, kernel_mixed;
static CUgraphExec graph;  // one launch of kernel4
static void *arguments[MAX_ARGUMENTS], *mixed_arguments[8];

static inline void try(CUresult status)
{
    if (__builtin_expect(status != CUDA_SUCCESS, 0))
        failed = (int)status;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// The status of the first thing that failed since the last call; 0 for none.
int limits_failed(void) { return atomic_exchange(&failed, 0); }

void limits_drain(void)
{
    try(p_cuStreamSynchronize(stream));
    try(p_cuStreamSynchronize(CU_STREAM_LEGACY));
}

// Open the driver and make the first device's context current. Returns NULL, or what went wrong.
static const char *open_driver(const char *driver, CUdevice *device)
{
    library = dlopen(driver, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return dlerror();
    FUNCTIONS(FIND)
    try(p_cuInit(0));
    try(p_cuDeviceGet(device, 0));
    try(p_cuDevicePrimaryCtxRetain(&context, *device));
    try(p_cuCtxSetCurrent(context));
    return NULL;
}

// The seconds that this takes; negative if it failed.
double limits_first(const char *driver)
{
    CUdevice device = 0;
    double began = now();
    return open_driver(driver, &device) == NULL && !failed ? now() - began : -1;
}

// Open the driver and make everything that the rows need. Returns NULL, or what went wrong.
const char *limits_open(const char *driver)
{
    static const long long integer = 7;
    static const double number = 0.5;
    static const int integer32 = 7;
    static const float number32 = 0.5f;
    static const short integer16 = 7;
    static const unsigned char byte = 7, truth = 1;
    unsigned long long keep = ~0ull;
    void *memory = NULL;
    CUdevice device = 0;
    const char *problem = open_driver(driver, &device);
    if (problem != NULL)
        return problem;
    try(p_cuDeviceGetMemPool(&pool, device));
    // Both Python packages raise the release threshold, so that freed memory stays in the pool.
    try(p_cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    try(p_cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
    try(p_cuStreamCreateWithPriority(&second, CU_STREAM_NON_BLOCKING, 0));
    try(p_cuMemAllocFromPoolAsync(&buffer, SIZE, pool, stream));
    try(p_cuMemAllocFromPoolAsync(&other, SIZE, pool, stream));
    try(p_cuMemHostAlloc(&memory, SIZE, CU_MEMHOSTALLOC_PORTABLE));
    pinned = (CUdeviceptr)memory;
    try(p_cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    try(p_cuEventCreate(&start, 0));
    try(p_cuEventCreate(&end, 0));
    try(p_cuEventRecord(event, stream));
    try(p_cuEventRecord(start, stream));
    try(p_cuEventRecord(end, stream));
    limits_drain();
    void *kinds[] = {&buffer, (void *)&integer, (void *)&number};
    for (int index = 0; index < MAX_ARGUMENTS; index++)
        arguments[index] = kinds[index % 3];
    const void *mixed[] = {&buffer, &integer, &number, &truth, &integer32, &number32, &integer16, &byte};
    for (size_t index = 0; index < sizeof mixed / sizeof *mixed; index++)
        mixed_arguments[index] = (void *)mixed[index];
    if (failed) {
        snprintf(message, sizeof message, "a driver call failed with status %d", limits_failed());
        return message;
    }
    return NULL;
}

// A graph of so many launches, one after the other.
static CUgraph define(long count, CUfunction kernel)
{
    CUDA_KERNEL_NODE_PARAMS parameters = {.kern = (CUkernel)kernel,
                                          .gridDimX = 1,
                                          .gridDimY = 1,
                                          .gridDimZ = 1,
                                          .blockDimX = 1,
                                          .blockDimY = 1,
                                          .blockDimZ = 1,
                                          .kernelParams = arguments};
    CUgraph definition = NULL;
    CUgraphNode node = NULL, before = NULL;
    try(p_cuGraphCreate(&definition, 0));
    for (long index = 0; index < count; index++, before = node)
        try(p_cuGraphAddKernelNode(&node, definition, &before, index > 0, &parameters));
    return definition;
}

// Load the kernels. Returns NULL, or what went wrong.
const char *limits_load(const void *code)
{
    struct {
        const char *name;
        CUfunction *function;
    } wanted[] = {{"kernel0", &kernel0},          {"kernel1", &kernel1},     {"kernel4", &kernel4},
                  {"kernel16", &kernel16},        {"kernel256", &kernel256}, {"kernel512", &kernel512},
                  {"kernel_mixed", &kernel_mixed}};
    CUlibrary kernels = NULL;
    CUkernel kernel = NULL;
    KERNEL_FUNCTIONS(FIND)
    CUresult status = p_cuLibraryLoadData(&kernels, code, NULL, NULL, 0, NULL, NULL, 0);
    for (size_t index = 0; status == CUDA_SUCCESS && index < sizeof wanted / sizeof *wanted; index++) {
        status = p_cuLibraryGetKernel(&kernel, kernels, wanted[index].name);
        *wanted[index].function = (CUfunction)kernel;  // the driver takes either
    }
    if (status == CUDA_SUCCESS) {
        CUgraph definition = define(1, kernel4);
        try(p_cuGraphInstantiateWithFlags(&graph, definition, 0));
        try(p_cuGraphDestroy(definition));
        status = (CUresult)limits_failed();
    }
    if (status == CUDA_SUCCESS)
        return NULL;
    snprintf(message, sizeof message, "the kernels could not be loaded: status %d", (int)status);
    return message;
}

static inline void allocate_free(CUstream queue)
{
    CUdeviceptr pointer;
    try(p_cuMemAllocFromPoolAsync(&pointer, SIZE, pool, queue));
    try(p_cuMemFreeAsync(pointer, queue));
}

static inline void launch(CUfunction kernel, CUstream queue)
{
    try(p_cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, queue, arguments, NULL));
}

static inline void launch_ex(CUfunction kernel, CUstream queue)
{
    CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, queue, NULL, 0};
    try(p_cuLaunchKernelEx(&config, kernel, arguments, NULL));
}

#define ROW(name, body) \
    double name(long count) \
    { \
        double began = now(); \
        while (count-- > 0) { \
            body; \
        } \
        return now() - began; \
    }

ROW(allocate_own, allocate_free(stream))
ROW(allocate_default, allocate_free(CU_STREAM_LEGACY))
ROW(fill, try(p_cuMemsetD8Async(buffer, 0, SIZE, stream)))
ROW(copy_device, try(p_cuMemcpyAsync(other, buffer, SIZE, stream)))
ROW(copy_pinned, try(p_cuMemcpyAsync(buffer, pinned, SIZE, stream)))
ROW(event_create, CUevent made; try(p_cuEventCreate(&made, CU_EVENT_DISABLE_TIMING)); try(p_cuEventDestroy(made)))
ROW(event_record, try(p_cuEventRecord(event, stream)))
ROW(event_query, try(p_cuEventQuery(event)))
ROW(event_sync, try(p_cuEventSynchronize(event)))
ROW(event_elapsed, float milliseconds; try(p_cuEventElapsedTime(&milliseconds, start, end)))
ROW(stream_create, CUstream made; try(p_cuStreamCreateWithPriority(&made, CU_STREAM_NON_BLOCKING, 0));
    try(p_cuStreamDestroy(made)))
ROW(stream_sync, try(p_cuStreamSynchronize(stream)))
ROW(stream_wait_event, try(p_cuStreamWaitEvent(stream, event, 0)))
ROW(stream_wait_stream, CUevent made; try(p_cuEventCreate(&made, CU_EVENT_DISABLE_TIMING));
    try(p_cuEventRecord(made, second)); try(p_cuStreamWaitEvent(stream, made, 0)); try(p_cuEventDestroy(made)))
ROW(device_current, CUcontext current; CUdevice device; try(p_cuCtxGetCurrent(&current));
    try(p_cuCtxGetDevice(&device)))
ROW(set_current, try(p_cuCtxSetCurrent(context)))
ROW(launch0, launch(kernel0, stream))
ROW(launch1, launch(kernel1, stream))
ROW(launch4, launch(kernel4, stream))
ROW(launch16, launch(kernel16, stream))
ROW(launch256, launch(kernel256, stream))
ROW(launch512, launch(kernel512, stream))
ROW(launch_mixed, try(p_cuLaunchKernel(kernel_mixed, 1, 1, 1, 1, 1, 1, 0, stream, mixed_arguments, NULL)))
ROW(graph_launch, try(p_cuGraphLaunch(graph, stream)))
ROW(prepared0, launch_ex(kernel0, stream))
ROW(prepared4, launch_ex(kernel4, stream))
ROW(prepared16, launch_ex(kernel16, stream))
ROW(batch, for (int index = 0; index < BATCH; index++) launch_ex(kernel4, stream))

// Allocate so many buffers that live at once: fill keeps them, empty frees them. Returns the seconds.
static CUdeviceptr *live;
static long live_count;

double limits_fill(long count, size_t size)
{
    live = malloc((size_t)count * sizeof *live);
    live_count = count;
    double began = now();
    for (long index = 0; index < count; index++)
        try(p_cuMemAllocFromPoolAsync(&live[index], size, pool, stream));
    return now() - began;
}

double limits_empty(void)
{
    double began = now();
    for (long index = 0; index < live_count; index++)
        try(p_cuMemFreeAsync(live[index], stream));
    double seconds = now() - began;
    free(live);
    return seconds;
}

// The seconds to define, capture, instantiate and launch a graph of so many launches, one after the other.
void limits_graph(long count, long launches, double *seconds)
{
    CUgraph definition = NULL, captured = NULL;
    CUgraphExec executable = NULL;
    double began = now();
    definition = define(count, kernel0);
    seconds[0] = now() - began;
    began = now();
    try(p_cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (long index = 0; index < count; index++)
        launch(kernel0, stream);
    try(p_cuStreamEndCapture(stream, &captured));
    seconds[1] = now() - began;
    began = now();
    try(p_cuGraphInstantiateWithFlags(&executable, definition, 0));
    seconds[2] = now() - began;
    seconds[3] = 0;
    for (long index = -1; index < launches; index++) {
        began = now();
        try(p_cuGraphLaunch(executable, stream));
        if (index >= 0)  // the first launch also uploads the graph
            seconds[3] += now() - began;
        limits_drain();
    }
    try(p_cuGraphExecDestroy(executable));
    try(p_cuGraphDestroy(captured));
    try(p_cuGraphDestroy(definition));
}

// Several threads, each with a stream of its own; the same procedure as in threads.py.
typedef enum work_kind { ALLOCATE, LAUNCH, PREPARED, BATCHES } work_kind;

typedef struct worker {
    pthread_t thread;
    pthread_barrier_t *barrier;
    work_kind kind;
    double seconds, ended;
    long calls;
} worker;

static void *work(void *argument)
{
    worker *self = argument;
    CUstream queue = NULL;
    try(p_cuCtxSetCurrent(context));
    try(p_cuStreamCreateWithPriority(&queue, CU_STREAM_NON_BLOCKING, 0));
    long stretch = self->kind == BATCHES ? STRETCH / BATCH * BATCH : STRETCH;
    pthread_barrier_wait(self->barrier);
    double deadline = now() + self->seconds;
    while ((self->ended = now()) < deadline) {
        for (long call = 0; call < stretch; call++)
            if (self->kind == ALLOCATE)
                allocate_free(queue);
            else if (self->kind == LAUNCH)
                launch(kernel4, queue);
            else
                launch_ex(kernel4, queue);
        try(p_cuStreamSynchronize(queue));
        self->calls += stretch;
    }
    try(p_cuStreamDestroy(queue));
    return NULL;
}

// Calls per second of all threads together.
double limits_threads(int kind, int count, double seconds)
{
    static worker workers[MAX_THREADS];
    pthread_barrier_t barrier;
    if (count > MAX_THREADS)
        return 0;
    pthread_barrier_init(&barrier, NULL, (unsigned int)count + 1);
    for (int index = 0; index < count; index++) {
        workers[index] = (worker){.barrier = &barrier, .kind = (work_kind)kind, .seconds = seconds};
        pthread_create(&workers[index].thread, NULL, work, &workers[index]);
    }
    pthread_barrier_wait(&barrier);
    double began = now(), ended = began;
    long calls = 0;
    for (int index = 0; index < count; index++) {
        pthread_join(workers[index].thread, NULL);
        calls += workers[index].calls;
        if (workers[index].ended > ended)
            ended = workers[index].ended;
    }
    pthread_barrier_destroy(&barrier);
    return (double)calls / (ended - began);
}
