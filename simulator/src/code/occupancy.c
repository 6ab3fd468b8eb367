// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// How many blocks fit at once, by the published rules of the hardware.

#include "driver/device.h"
#include "code/launch.h"
#include "code/module.h"
#include "streams/stream.h"

enum { WARP = 32, REGISTER_UNIT = 256, SHARED_UNIT = 128, PORTABLE_CLUSTER = 8, LARGEST_CLUSTER = 16 };

static int smaller(int a, int b) { return a < b ? a : b; }

int sim_blocks_per_multiprocessor(const sim_ptx_entry *entry, int threads, size_t dynamic_shared,
                                  const struct sim_settings *settings)
{
    if (threads > sim_device_value(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK) ||
        dynamic_shared > (size_t)settings->max_dynamic_shared)
        return 0;
    int warps = (threads + WARP - 1) / WARP;
    int blocks = smaller(sim_device_value(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
                         sim_device_value(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / (warps * WARP));
    int registers = (int)sim_round_up(entry->registers * WARP, REGISTER_UNIT) * warps;
    blocks = smaller(blocks, sim_device_value(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR) / registers);
    int shared = (int)sim_round_up(entry->shared_bytes + dynamic_shared, SHARED_UNIT) +
                 sim_device_value(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    return smaller(blocks, sim_device_value(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / shared);
}

// Asks for a current context, also for functions, which have one of their own.
static CUresult find_here(CUfunction handle, struct sim_function **function)
{
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    return sim_function_find(handle, NULL, function);
}

SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
        (int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize, unsigned int flags),
        (numBlocks, func, blockSize, dynamicSMemSize, flags))
{
    SIM_REQUIRE(numBlocks && blockSize > 0 && !(flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE));
    SIM_HELD struct sim_function *function = NULL;
    SIM_TRY(find_here(func, &function));
    struct sim_settings settings = sim_function_settings(function);
    *numBlocks = sim_blocks_per_multiprocessor(function->entry, blockSize, dynamicSMemSize, &settings);
    return CUDA_SUCCESS;
}

SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessor,
        (int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize),
        (numBlocks, func, blockSize, dynamicSMemSize))
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_body(numBlocks, func, blockSize, dynamicSMemSize, 0);
}

SIM_API(cuOccupancyMaxPotentialBlockSizeWithFlags,
        (int *minGridSize, int *blockSize, CUfunction func, CUoccupancyB2DSize blockSizeToDynamicSMemSize,
         size_t dynamicSMemSize, int blockSizeLimit, unsigned int flags),
        (minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit, flags))
{
    SIM_REQUIRE(minGridSize && blockSize && blockSizeLimit >= 0);
    SIM_REQUIRE(!(flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE));
    SIM_HELD struct sim_function *function = NULL;
    SIM_TRY(find_here(func, &function));
    struct sim_settings settings = sim_function_settings(function);
    int limit = (int)function->entry->max_threads;
    if (blockSizeLimit && blockSizeLimit < limit)
        limit = blockSizeLimit;
    int best = 0, best_blocks = 0, best_size = 0;
    for (int aligned = (int)sim_round_up((size_t)limit, WARP); aligned > 0; aligned -= WARP) {
        int size = smaller(aligned, limit);
        size_t shared = blockSizeToDynamicSMemSize ? blockSizeToDynamicSMemSize(size) : dynamicSMemSize;
        int blocks = sim_blocks_per_multiprocessor(function->entry, size, shared, &settings);
        if (blocks * size > best) {
            best = blocks * size;
            best_blocks = blocks;
            best_size = size;
        }
    }
    *blockSize = best_size;
    *minGridSize = best_blocks * sim_device_value(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    return CUDA_SUCCESS;
}

SIM_API(cuOccupancyMaxPotentialBlockSize,
        (int *minGridSize, int *blockSize, CUfunction func, CUoccupancyB2DSize blockSizeToDynamicSMemSize,
         size_t dynamicSMemSize, int blockSizeLimit),
        (minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit))
{
    return cuOccupancyMaxPotentialBlockSizeWithFlags_body(minGridSize, blockSize, func, blockSizeToDynamicSMemSize,
                                                          dynamicSMemSize, blockSizeLimit, 0);
}

SIM_API(cuOccupancyAvailableDynamicSMemPerBlock,
        (size_t *dynamicSmemSize, CUfunction func, int numBlocks, int blockSize),
        (dynamicSmemSize, func, numBlocks, blockSize))
{
    SIM_REQUIRE(dynamicSmemSize && numBlocks > 0 && blockSize > 0);
    SIM_HELD struct sim_function *function = NULL;
    SIM_TRY(find_here(func, &function));
    struct sim_settings settings = sim_function_settings(function);
    SIM_REQUIRE(numBlocks <= sim_blocks_per_multiprocessor(function->entry, blockSize, 0, &settings));
    int share = sim_device_value(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / numBlocks;
    SIM_REQUIRE(share >= (int)function->entry->shared_bytes);
    *dynamicSmemSize = (size_t)smaller(share - (int)function->entry->shared_bytes, settings.max_dynamic_shared);
    return CUDA_SUCCESS;
}

// --- Clusters -------------------------------------------------------------------------------------------------

// Clusters are those of a launch: in the context of its stream.
static CUresult find_for(const CUlaunchConfig *config, CUfunction handle, struct sim_function **function)
{
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_find(config->hStream, &stream));
    SIM_TRY(sim_function_find(handle, stream->context, function));
    if ((*function)->module->context == stream->context)
        return CUDA_SUCCESS;
    sim_object_drop(*function);
    *function = NULL;
    return CUDA_ERROR_INVALID_HANDLE;
}

SIM_API(cuOccupancyMaxPotentialClusterSize, (int *clusterSize, CUfunction func, const CUlaunchConfig *config),
        (clusterSize, func, config))
{
    SIM_REQUIRE(clusterSize && config);
    SIM_HELD struct sim_function *function = NULL;
    SIM_TRY(find_for(config, func, &function));
    *clusterSize = sim_function_settings(function).non_portable ? LARGEST_CLUSTER : PORTABLE_CLUSTER;
    return CUDA_SUCCESS;
}

SIM_API(cuOccupancyMaxActiveClusters, (int *numClusters, CUfunction func, const CUlaunchConfig *config),
        (numClusters, func, config))
{
    SIM_REQUIRE(numClusters && config);
    SIM_HELD struct sim_function *function = NULL;
    SIM_TRY(find_for(config, func, &function));
    struct sim_launch_wish wish;
    SIM_TRY(sim_launch_read(config, &wish));
    unsigned cluster = wish.cluster[0] * wish.cluster[1] * wish.cluster[2];
    *numClusters = 0;
    if (cluster) {
        struct sim_settings settings = sim_function_settings(function);
        int threads = (int)(wish.block[0] * wish.block[1] * wish.block[2]);
        int blocks = sim_blocks_per_multiprocessor(function->entry, threads, wish.dynamic_shared, &settings);
        *numClusters = blocks * sim_device_value(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) / (int)cluster;
    }
    return CUDA_SUCCESS;
}
