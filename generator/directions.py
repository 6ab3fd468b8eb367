# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What :mod:`bindings` must know of the driver's parameters and neither types nor comments of ``cuda.h`` say.

A key is ``function.parameter`` (or ``structure.field``). A test fails when a key names what the headers no longer
have; :data:`ONLY_IN` lists what only some of them have. What is listed for ``cuX`` holds for ``cuX_v2`` too.
"""

from __future__ import annotations

__all__ = [
    "COUNTS",
    "DIRECTIONS",
    "KEPT_ON_ERROR",
    "KERNEL",
    "ONLY_IN",
    "PAYLOADS",
    "PAYLOAD_CLASSES",
    "RENAMED",
    "UNCOUNTED",
]

# "in", "out", "inout"; "target": a buffer of the caller that is filled; "size": the length of the payload, given
# and returned
DIRECTIONS = {
    "cuCheckpointProcessCheckpoint.args": "inout",
    "cuCheckpointProcessLock.args": "in",
    "cuCheckpointProcessRestore.args": "inout",
    "cuCheckpointProcessUnlock.args": "in",
    "cuCoredumpGetAttribute.size": "size",
    "cuCoredumpGetAttribute.value": "out",
    "cuCoredumpGetAttributeGlobal.size": "size",
    "cuCoredumpGetAttributeGlobal.value": "out",
    "cuCoredumpSetAttribute.size": "size",
    "cuCoredumpSetAttributeGlobal.size": "size",
    "cuCtxGetApiVersion.version": "out",
    "cuDevSmResourceSplit.groupParams": "inout",
    "cuDevSmResourceSplit.remainder": "out",
    "cuDevSmResourceSplitByCount.nbGroups": "inout",
    "cuDevSmResourceSplitByCount.remainder": "out",
    "cuDevSmResourceSplitByCount.remaining": "out",
    "cuDeviceComputeCapability.major": "out",
    "cuDeviceComputeCapability.minor": "out",
    "cuDeviceGetExecAffinitySupport.pi": "out",
    "cuDeviceGetMemPool.pool": "out",
    "cuDeviceRegisterAsyncNotification.callback": "out",
    "cuEventElapsedTime.pMilliseconds": "out",
    "cuGraphAddNode.nodeParams": "inout",
    "cuGraphExecGetId.graphId": "out",
    "cuGraphExecUpdate.resultInfo": "out",
    "cuGraphGetEdges.numEdges": "inout",
    "cuGraphGetId.graphId": "out",
    "cuGraphGetNodes.numNodes": "inout",
    "cuGraphGetRootNodes.numRootNodes": "inout",
    "cuGraphNodeGetContainingGraph.phGraph": "out",
    "cuGraphNodeGetDependencies.numDependencies": "inout",
    "cuGraphNodeGetDependentNodes.numDependentNodes": "inout",
    "cuGraphNodeGetToolsId.toolsNodeId": "out",
    "cuLibraryGetKernelCount.count": "out",
    "cuLogsDumpToFile.iterator": "inout",
    "cuLogsDumpToMemory.buffer": "target",
    "cuLogsDumpToMemory.iterator": "inout",
    "cuLogsDumpToMemory.size": "inout",
    "cuMemGetDefaultMemPool.location": "in",
    "cuMemGetMemPool.location": "in",
    "cuMemGetMemPool.pool": "out",
    "cuMemPoolCreate.pool": "out",
    "cuMemRangeGetAttribute.data": "out",
    "cuMemRangeGetAttributes.data": "out",
    "cuMemSetMemPool.location": "in",
    "cuMemcpy3DWithAttributesAsync.op": "in",
    "cuMemcpyWithAttributesAsync.attr": "in",
    "cuModuleGetFunctionCount.count": "out",
    "cuPointerGetAttributes.data": "out",
    "cuStreamEndCapture.phGraph": "out",
    "cuSurfObjectCreate.pSurfObject": "out",
    "cuSurfObjectGetResourceDesc.pResDesc": "out",
    "cuSurfRefGetArray.phArray": "out",
    "cuTensorMapEncodeIm2col.tensorMap": "out",
    "cuTensorMapEncodeIm2colWide.tensorMap": "out",
    "cuTensorMapEncodeTiled.tensorMap": "out",
    "cuTensorMapReplaceAddress.tensorMap": "inout",
    "cuTensorMapSetAllocationClass.tensorMap": "inout",
    "cuTexObjectCreate.pTexObject": "out",
    "cuTexObjectGetResourceDesc.pResDesc": "out",
    "cuTexObjectGetResourceViewDesc.pResViewDesc": "out",
    "cuTexObjectGetTextureDesc.pTexDesc": "out",
    "cuTexRefSetBorderColor.pBorderColor": "in",
    "cuThreadExchangeStreamCaptureMode.mode": "inout",
}

# Arrays: a number, an expression over parameters or fields, or one of these two
UNCOUNTED = "uncounted"  # its end is marked in the array
KERNEL = "kernel"  # the kernel knows how many
COUNTS = {
    "CUDA_CONDITIONAL_NODE_PARAMS.phGraph_out": "size",
    "CUDA_MEM_ALLOC_NODE_PARAMS.accessDescs": "accessDescCount",
    "CUcheckpointRestoreArgs.gpuPairs": "gpuPairsCount",
    "cuDevSmResourceSplit.groupParams": "nbGroups",
    "cuDeviceGetCliqueInfo.cliqueInfo": "count",
    "cuDeviceGetHostAtomicCapabilities.capabilities": "count",
    "cuDeviceGetLuid.luid": "8",
    "cuDeviceGetName.name": "len",
    "cuDeviceGetP2PAtomicCapabilities.capabilities": "count",
    "cuDeviceGetPCIBusId.pciBusId": "len",
    "cuGraphAddNode.dependencyData": "numDependencies",
    "cuGraphGetEdges.edgeData": "numEdges",
    "cuGraphGetEdges.from": "numEdges",
    "cuGraphGetEdges.to": "numEdges",
    "cuGraphGetNodes.nodes": "numNodes",
    "cuGraphGetRootNodes.rootNodes": "numRootNodes",
    "cuGraphNodeGetDependencies.dependencies": "numDependencies",
    "cuGraphNodeGetDependencies.edgeData": "numDependencies",
    "cuGraphNodeGetDependentNodes.dependentNodes": "numDependentNodes",
    "cuGraphNodeGetDependentNodes.edgeData": "numDependentNodes",
    "cuLaunchCooperativeKernel.kernelParams": KERNEL,
    "cuLaunchKernel.extra": UNCOUNTED,
    "cuLaunchKernel.kernelParams": KERNEL,
    "cuLaunchKernelEx.extra": UNCOUNTED,
    "cuLaunchKernelEx.kernelParams": KERNEL,
    "cuMemGetLocationInfo.location_out": "-(-size // max(summaryGranularity, 1))",
    "cuMemRangeGetAttributes.data": "numAttributes",
    "cuPointerGetAttributes.data": "numAttributes",
    "cuTensorMapEncodeIm2col.elementStrides": "tensorRank",
    "cuTensorMapEncodeIm2col.globalDim": "tensorRank",
    "cuTensorMapEncodeIm2col.globalStrides": "tensorRank - 1",
    "cuTensorMapEncodeIm2col.pixelBoxLowerCorner": "tensorRank - 2",
    "cuTensorMapEncodeIm2col.pixelBoxUpperCorner": "tensorRank - 2",
    "cuTensorMapEncodeIm2colWide.elementStrides": "tensorRank",
    "cuTensorMapEncodeIm2colWide.globalDim": "tensorRank",
    "cuTensorMapEncodeIm2colWide.globalStrides": "tensorRank - 1",
    "cuTensorMapEncodeTiled.boxDim": "tensorRank",
    "cuTensorMapEncodeTiled.elementStrides": "tensorRank",
    "cuTensorMapEncodeTiled.globalDim": "tensorRank",
    "cuTensorMapEncodeTiled.globalStrides": "tensorRank - 1",
    "cuTexRefGetBorderColor.pBorderColor": "4",
    "cuTexRefSetBorderColor.pBorderColor": "4",
}

# Types behind ``void *`` by attribute, where no comment says "(value type = ...)"
PAYLOAD_CLASSES = {
    "bool": ("unsigned int", "bool"),
    "_Bool": ("_Bool", "bool"),
    "path": ("char[1024]", "bytes"),
    "int[]": ("int", "list"),
}
COREDUMP = {
    "CU_COREDUMP_ENABLE_ON_EXCEPTION": "_Bool",
    "CU_COREDUMP_TRIGGER_HOST": "_Bool",
    "CU_COREDUMP_LIGHTWEIGHT": "_Bool",
    "CU_COREDUMP_ENABLE_USER_TRIGGER": "_Bool",
    "CU_COREDUMP_FILE": "path",
    "CU_COREDUMP_PIPE": "path",
    "CU_COREDUMP_GENERATION_FLAGS": "CUCoredumpGenerationFlags",
}
GRAPH_MEMORY = {
    "CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT": "cuuint64_t",
    "CU_GRAPH_MEM_ATTR_USED_MEM_HIGH": "cuuint64_t",
    "CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT": "cuuint64_t",
    "CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH": "cuuint64_t",
}
POINTER = {
    "CU_POINTER_ATTRIBUTE_CONTEXT": "CUcontext",
    "CU_POINTER_ATTRIBUTE_MEMORY_TYPE": "CUmemorytype",
    "CU_POINTER_ATTRIBUTE_DEVICE_POINTER": "CUdeviceptr",
    "CU_POINTER_ATTRIBUTE_HOST_POINTER": "unsigned long long",
    "CU_POINTER_ATTRIBUTE_P2P_TOKENS": "CUDA_POINTER_ATTRIBUTE_P2P_TOKENS",
    "CU_POINTER_ATTRIBUTE_SYNC_MEMOPS": "bool",
    "CU_POINTER_ATTRIBUTE_BUFFER_ID": "unsigned long long",
    "CU_POINTER_ATTRIBUTE_IS_MANAGED": "bool",
    "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL": "int",
    "CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE": "bool",
    "CU_POINTER_ATTRIBUTE_RANGE_START_ADDR": "CUdeviceptr",
    "CU_POINTER_ATTRIBUTE_RANGE_SIZE": "size_t",
    "CU_POINTER_ATTRIBUTE_MAPPED": "bool",
    "CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES": "unsigned long long",
    "CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE": "bool",
    "CU_POINTER_ATTRIBUTE_ACCESS_FLAGS": "CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS",
    "CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE": "CUmemoryPool",
    "CU_POINTER_ATTRIBUTE_MAPPING_SIZE": "size_t",
    "CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR": "CUdeviceptr",
    "CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID": "unsigned long long",
    "CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE": "bool",
    "CU_POINTER_ATTRIBUTE_LOCALITY_DOMAIN_ORDINAL": "int",
}
MEMORY_RANGE = {
    "CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY": "int",
    "CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION": "int",
    "CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY": "int[]",
    "CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION": "int",
    "CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE": "CUmemLocationType",
    "CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID": "int",
    "CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE": "CUmemLocationType",
    "CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID": "int",
}
SHAREABLE = {
    "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR": "int",
    "CU_MEM_HANDLE_TYPE_WIN32": "unsigned long long",
    "CU_MEM_HANDLE_TYPE_WIN32_KMT": "unsigned int",
    "CU_MEM_HANDLE_TYPE_FABRIC": "CUmemFabricHandle",
}
PAYLOADS = {
    "cuCoredumpGetAttribute.value": COREDUMP,
    "cuCoredumpGetAttributeGlobal.value": COREDUMP,
    "cuCoredumpSetAttribute.value": COREDUMP,
    "cuCoredumpSetAttributeGlobal.value": COREDUMP,
    "cuDeviceGetGraphMemAttribute.value": GRAPH_MEMORY,
    "cuDeviceSetGraphMemAttribute.value": GRAPH_MEMORY,
    "cuLogicalEndpointExport.handle": {"CU_LOGICAL_ENDPOINT_IPC_HANDLE_TYPE_FABRIC": "CUlogicalEndpointFabricHandle"},
    "cuMemExportToShareableHandle.shareableHandle": SHAREABLE,
    "cuMemGetHandleForAddressRange.handle": {"CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD": "int"},
    "cuMemPoolExportToShareableHandle.handle_out": SHAREABLE,
    "cuMemPoolGetAttribute.value": {},  # the comments say
    "cuMemPoolSetAttribute.value": {},
    "cuMemRangeGetAttribute.data": MEMORY_RANGE,
    "cuMemRangeGetAttributes.data": MEMORY_RANGE,
    "cuPointerGetAttribute.data": POINTER,
    "cuPointerGetAttributes.data": POINTER,
    "cuPointerSetAttribute.value": POINTER,
}

# Outputs that explain an error, and so are returned with it
KEPT_ON_ERROR = (
    "cuGetProcAddress.symbolStatus",
    "cuGraphExecUpdate.resultInfo",
    "cuMemBatchDecompressAsync.errorIndex",
    "cuMemcpy3DBatchAsync.failIdx",
    "cuMemcpyBatchAsync.failIdx",
)

# Names that Python or its readers have other uses for; cuda-bindings has the same
RENAMED = {
    "bytes": "numbytes",
    "format": "pformat",
    "from": "from_",
    "input": "input_",
    "len": "length",
    "type": "typename",
}

# Oldest and newest CUDA_VERSION whose header has a name, of the versions tested: 12090, 13000, 13050
NEWEST = 99990
ONLY_IN = {
    "CU_LOGICAL_ENDPOINT_IPC_HANDLE_TYPE_FABRIC": (13050, NEWEST),
    "CU_POINTER_ATTRIBUTE_LOCALITY_DOMAIN_ORDINAL": (13050, NEWEST),
    "CUcheckpointRestoreArgs.gpuPairs": (13000, NEWEST),
    "cuDevSmResourceSplit.groupParams": (13050, NEWEST),
    "cuDevSmResourceSplit.remainder": (13050, NEWEST),
    "cuDevSmResourceSplitByCount.remainder": (13050, NEWEST),
    "cuDevSmResourceSplitByCount.remaining": (12090, 13000),
    "cuDeviceGetCliqueInfo.cliqueInfo": (13050, NEWEST),
    "cuDeviceGetHostAtomicCapabilities.capabilities": (13000, NEWEST),
    "cuDeviceGetP2PAtomicCapabilities.capabilities": (13000, NEWEST),
    "cuGraphExecGetId.graphId": (13050, NEWEST),
    "cuGraphGetId.graphId": (13050, NEWEST),
    "cuGraphNodeGetContainingGraph.phGraph": (13050, NEWEST),
    "cuGraphNodeGetToolsId.toolsNodeId": (13050, NEWEST),
    "cuLogicalEndpointExport.handle": (13050, NEWEST),
    "cuMemGetDefaultMemPool.location": (13000, NEWEST),
    "cuMemGetLocationInfo.location_out": (13050, NEWEST),
    "cuMemGetMemPool.location": (13000, NEWEST),
    "cuMemGetMemPool.pool": (13000, NEWEST),
    "cuMemSetMemPool.location": (13000, NEWEST),
    "cuMemcpy3DBatchAsync.failIdx": (12090, 12090),
    "cuMemcpy3DWithAttributesAsync.op": (13050, NEWEST),
    "cuMemcpyBatchAsync.failIdx": (12090, 12090),
    "cuMemcpyWithAttributesAsync.attr": (13050, NEWEST),
    "cuTensorMapSetAllocationClass.tensorMap": (13050, NEWEST),
}
