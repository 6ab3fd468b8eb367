// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What can be set of a device, with its name and what it is at first, in NVML's units.

VALUE(TEMPERATURE, "temperature", 34)
VALUE(MEMORY_TEMPERATURE, "memory_temperature", 40)
VALUE(POWER, "power", 70000)
VALUE(POWER_LIMIT, "power_limit", SIM_POWER_DEFAULT)
VALUE(ENERGY, "energy", SIM_DERIVED)                    // of the power, since the machine was started
VALUE(GPU_UTILIZATION, "gpu_utilization", SIM_DERIVED)  // of the work done in the last second
VALUE(MEMORY_UTILIZATION, "memory_utilization", SIM_DERIVED)
VALUE(ENCODER_UTILIZATION, "encoder_utilization", 0)
VALUE(DECODER_UTILIZATION, "decoder_utilization", 0)
VALUE(JPEG_UTILIZATION, "jpeg_utilization", 0)
VALUE(OFA_UTILIZATION, "ofa_utilization", 0)
// In the order of nvmlClockType_t.
VALUE(GRAPHICS_CLOCK, "graphics_clock", 345)
VALUE(SM_CLOCK, "sm_clock", 345)
VALUE(MEMORY_CLOCK, "memory_clock", SIM_DERIVED)  // the maximum
VALUE(VIDEO_CLOCK, "video_clock", 765)
VALUE(GRAPHICS_CLOCK_TARGET, "graphics_clock_target", SIM_DERIVED)  // of applications: the maximum
VALUE(MEMORY_CLOCK_TARGET, "memory_clock_target", SIM_DERIVED)
VALUE(CLOCKS_EVENT_REASONS, "clocks_event_reasons", nvmlClocksEventReasonGpuIdle)
VALUE(PSTATE, "pstate", NVML_PSTATE_0)
VALUE(FAN_SPEED, "fan_speed", 30)
VALUE(FAN_POLICY, "fan_policy", NVML_FAN_POLICY_TEMPERATURE_CONTINOUS_SW)
VALUE(PCIE_GENERATION_NOW, "pcie_generation", SIM_PCIE_GENERATION)
VALUE(PCIE_WIDTH_NOW, "pcie_width", SIM_PCIE_WIDTH)
VALUE(PCIE_TX, "pcie_tx", 0)
VALUE(PCIE_RX, "pcie_rx", 0)
VALUE(PCIE_REPLAYS, "pcie_replays", 0)
VALUE(ECC_MODE, "ecc_mode", NVML_FEATURE_ENABLED)
VALUE(ECC_PENDING, "ecc_pending", NVML_FEATURE_ENABLED)
// Corrected and uncorrected, of each kind of counter.
VALUE(ECC_CORRECTED_VOLATILE, "ecc_corrected_volatile", 0)
VALUE(ECC_CORRECTED_AGGREGATE, "ecc_corrected_aggregate", 0)
VALUE(ECC_UNCORRECTED_VOLATILE, "ecc_uncorrected_volatile", 0)
VALUE(ECC_UNCORRECTED_AGGREGATE, "ecc_uncorrected_aggregate", 0)
VALUE(REMAPPED_CORRECTABLE, "remapped_correctable", 0)
VALUE(REMAPPED_UNCORRECTABLE, "remapped_uncorrectable", 0)
VALUE(REMAPPED_PENDING, "remapped_pending", 0)
VALUE(REMAPPED_FAILURE, "remapped_failure", 0)
VALUE(NVLINK_STATE, "nvlink_state", NVML_FEATURE_ENABLED)  // of every link
VALUE(NVLINK_ERRORS, "nvlink_errors", 0)                   // of each counter of each link
VALUE(PERSISTENCE_MODE, "persistence_mode", NVML_FEATURE_ENABLED)
VALUE(COMPUTE_MODE, "compute_mode", NVML_COMPUTEMODE_DEFAULT)
VALUE(ACCOUNTING_MODE, "accounting_mode", NVML_FEATURE_DISABLED)
