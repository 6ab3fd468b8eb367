# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""With which version of CUDA each function of NVML came, which ``nvml.h`` does not say.

The table is made from the headers of all versions, which PyPI has (``nvidia-nvml-dev-cu12``, ``nvidia-nvml-dev``)::

    python generator/nvml_since.py 12.0=path/to/nvml.h 12.1=path/to/nvml.h ...

Functions of the first of them are left out of it.
"""

from __future__ import annotations

import pathlib
import re
import sys

SINCE: dict[str, tuple[str, ...]] = {
    # table
    "12.2": (
        "nvmlDeviceGetConfComputeGpuAttestationReport",
        "nvmlDeviceGetConfComputeGpuCertificate",
        "nvmlDeviceGetConfComputeMemSizeInfo",
        "nvmlDeviceGetConfComputeProtectedMemoryUsage",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetJpgUtilization",
        "nvmlDeviceGetModuleId",
        "nvmlDeviceGetOfaUtilization",
        "nvmlDeviceGetRunningProcessDetailList",
        "nvmlDeviceGetSupportedClocksEventReasons",
        "nvmlDeviceSetConfComputeUnprotectedMemSize",
        "nvmlDeviceSetPowerManagementLimit_v2",
        "nvmlGpmQueryIfStreamingEnabled",
        "nvmlGpmSetStreamingEnabled",
        "nvmlSystemGetConfComputeCapabilities",
        "nvmlSystemGetConfComputeGpusReadyState",
        "nvmlSystemGetConfComputeState",
        "nvmlSystemGetNvlinkBwMode",
        "nvmlSystemSetConfComputeGpusReadyState",
        "nvmlSystemSetNvlinkBwMode",
    ),
    "12.3": (
        "nvmlDeviceGetC2cModeInfoV",
        "nvmlDeviceGetLastBBXFlushTime",
    ),
    "12.4": (
        "nvmlDeviceGetGpuFabricInfoV",
        "nvmlDeviceGetNumaNodeId",
        "nvmlDeviceGetPciInfoExt",
        "nvmlDeviceGetProcessesUtilizationInfo",
        "nvmlDeviceGetSramEccErrorStatus",
        "nvmlDeviceGetVgpuHeterogeneousMode",
        "nvmlDeviceGetVgpuInstancesUtilizationInfo",
        "nvmlDeviceGetVgpuProcessesUtilizationInfo",
        "nvmlDeviceGetVgpuTypeCreatablePlacements",
        "nvmlDeviceGetVgpuTypeSupportedPlacements",
        "nvmlDeviceSetVgpuCapabilities",
        "nvmlDeviceSetVgpuHeterogeneousMode",
        "nvmlSystemGetConfComputeKeyRotationThresholdInfo",
        "nvmlSystemGetConfComputeSettings",
        "nvmlSystemSetConfComputeKeyRotationThresholdInfo",
        "nvmlVgpuInstanceGetPlacementId",
        "nvmlVgpuTypeGetFbReservation",
        "nvmlVgpuTypeGetGspHeapSize",
    ),
    "12.5": (
        "nvmlDeviceGetCapabilities",
        "nvmlDeviceGetClockOffsets",
        "nvmlDeviceGetDriverModel_v2",
        "nvmlDeviceSetClockOffsets",
    ),
    "12.6": (
        "nvmlSystemGetDriverBranch",
        "nvmlVgpuTypeGetBAR1Info",
    ),
    "12.8": (
        "nvmlDeviceGetCoolerInfo",
        "nvmlDeviceGetCurrentClockFreqs",
        "nvmlDeviceGetDramEncryptionMode",
        "nvmlDeviceGetFanSpeedRPM",
        "nvmlDeviceGetMarginTemperature",
        "nvmlDeviceGetNvlinkBwMode",
        "nvmlDeviceGetNvlinkSupportedBwModes",
        "nvmlDeviceGetPerformanceModes",
        "nvmlDeviceGetPlatformInfo",
        "nvmlDeviceGetTemperatureV",
        "nvmlDevicePowerSmoothingActivatePresetProfile",
        "nvmlDevicePowerSmoothingSetState",
        "nvmlDevicePowerSmoothingUpdatePresetProfileParam",
        "nvmlDeviceSetDramEncryptionMode",
        "nvmlDeviceSetNvlinkBwMode",
        "nvmlDeviceWorkloadPowerProfileClearRequestedProfiles",
        "nvmlDeviceWorkloadPowerProfileGetCurrentProfiles",
        "nvmlDeviceWorkloadPowerProfileGetProfilesInfo",
        "nvmlDeviceWorkloadPowerProfileSetRequestedProfiles",
        "nvmlVgpuInstanceGetRuntimeStateSize",
    ),
    "12.9": (
        "nvmlDeviceGetHandleByUUIDV",
        "nvmlGpuInstanceGetActiveVgpus",
        "nvmlGpuInstanceGetCreatableVgpus",
        "nvmlGpuInstanceGetVgpuHeterogeneousMode",
        "nvmlGpuInstanceGetVgpuSchedulerLog",
        "nvmlGpuInstanceGetVgpuSchedulerState",
        "nvmlGpuInstanceGetVgpuTypeCreatablePlacements",
        "nvmlGpuInstanceSetVgpuHeterogeneousMode",
        "nvmlGpuInstanceSetVgpuSchedulerState",
        "nvmlSystemEventSetCreate",
        "nvmlSystemEventSetFree",
        "nvmlSystemEventSetWait",
        "nvmlSystemRegisterEvents",
        "nvmlVgpuTypeGetMaxInstancesPerGpuInstance",
    ),
    "13.0": (
        "nvmlDeviceGetAddressingMode",
        "nvmlDeviceGetGpuInstanceProfileInfoByIdV",
        "nvmlDeviceGetHostname_v1",
        "nvmlDeviceGetNvLinkInfo",
        "nvmlDeviceGetPdi",
        "nvmlDeviceGetPowerMizerMode_v1",
        "nvmlDeviceGetRepairStatus",
        "nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts",
        "nvmlDeviceReadWritePRM_v1",
        "nvmlDeviceSetHostname_v1",
        "nvmlDeviceSetPowerMizerMode_v1",
    ),
    "13.1": (
        "nvmlDeviceGetUnrepairableMemoryFlag_v1",
        "nvmlDeviceReadPRMCounters_v1",
        "nvmlDeviceSetRusdSettings_v1",
        "nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1",
    ),
    "13.2": (
        "nvmlDeviceGetRemappedRows_v2",
        "nvmlDeviceGetVgpuSchedulerLog_v2",
        "nvmlDeviceGetVgpuSchedulerState_v2",
        "nvmlDeviceSetVgpuSchedulerState_v2",
        "nvmlDeviceVgpuForceGspUnload",
        "nvmlGpuInstanceGetVgpuSchedulerLog_v2",
        "nvmlGpuInstanceGetVgpuSchedulerState_v2",
        "nvmlGpuInstanceSetVgpuSchedulerState_v2",
    ),
    "13.3": (
        "nvmlDeviceGetAccountingStats_v2",
        "nvmlDeviceGetBBXTimeData_v1",
        "nvmlSystemGetCPER_v1",
    ),
    "13.4": (
        "nvmlDeviceGetAdaptiveTgpModeInfo_v1",
        "nvmlDeviceGetBankRemapperStatus_v1",
        "nvmlDeviceGetGpuFabricInfo_v4",
        "nvmlDeviceGetMemoryLimits_v1",
        "nvmlDeviceGetNvLinkTelemetrySamples_v1",
        "nvmlDevicePerfMetricsGetSamples_v1",
        "nvmlDeviceSetAdaptiveTgpMode_v1",
        "nvmlDeviceSetMemoryLimits_v1",
        "nvmlDeviceSetNvlinkBwModeAsync_v1",
        "nvmlEventSetGetContextCount_v1",
        "nvmlEventSetGetContextData_v1",
        "nvmlEventSetGetContextInfo_v1",
        "nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1",
        "nvmlEventSetRegisterGpuOperationalEvents_v1",
        "nvmlEventSetWait_v3",
    ),
    "13.5": (
        "nvmlDeviceGetGpuUptime_v1",
        "nvmlDeviceGetNvLinkInfo_v3",
        "nvmlDeviceGetNvlinkNvlePrivateInfo_v1",
        "nvmlDeviceGetNvlinkRemapTableInfo_v1",
        "nvmlDeviceLockNvlinkRemapTable_v1",
        "nvmlDeviceSetNvlinkNvleReady_v1",
        "nvmlDeviceSetupNvlinkNvleEncryptionKey_v1",
        "nvmlSystemGetConfComputeSettings_v2",
    ),
    # end
}

PROTOTYPE = re.compile(r"^(?:DEPRECATED\(\S+\)\s+)?nvmlReturn_t\s+(?:DECLDIR\s+)?(nvml\w+)\s*\(", re.MULTILINE)


def main(arguments: list[str]) -> int:
    """Write the table of this file again from the headers that are named."""
    if len(arguments) < 2 or not all("=" in argument for argument in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    headers = {tuple(map(int, item.split("=")[0].split("."))): item.split("=", 1)[1] for item in arguments}
    known: set[str] = set()
    lines = []
    for index, version in enumerate(sorted(headers)):
        found = set(PROTOTYPE.findall(pathlib.Path(headers[version]).read_text(errors="replace")))
        if index and found - known:
            lines.append(f'    "{version[0]}.{version[1]}": (\n')
            lines += [f'        "{name}",\n' for name in sorted(found - known)]
            lines.append("    ),\n")
        known |= found
    here = pathlib.Path(__file__)
    start, end = "    # table\n", "    # end\n"
    before, _, rest = here.read_text().partition(start)
    here.write_text(before + start + "".join(lines) + end + rest.partition(end)[2])
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
