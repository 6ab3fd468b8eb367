# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Coolers, fans and temperatures of a device."""

from __future__ import annotations

import warnings

from cuda_core_cffi._core.answers import Answer
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi.system._enumerators import (
    COOLER_CONTROLS,
    COOLER_TARGETS,
    FAN_CONTROL_POLICIES,
    TEMPERATURE_THRESHOLDS,
    THERMAL_CONTROLLERS,
    THERMAL_TARGETS,
)
from cuda_core_cffi.system._library import call, field, nvml, reads_member, reads_number, value, values
from cuda_core_cffi.system._snapshot import Items, OfDevice, Part, Snapshot
from cuda_core_cffi.system.exceptions import FunctionNotFoundError
from cuda_core_cffi.system.typing import (
    CoolerControl,
    CoolerTarget,
    DeviceArch,
    FanControlPolicy,
    TemperatureThresholds,
    ThermalController,
    ThermalTarget,
)

READ_AS_FIELDS = (
    TemperatureThresholds.SHUTDOWN,
    TemperatureThresholds.SLOWDOWN,
    TemperatureThresholds.MEM_MAX,
    TemperatureThresholds.GPU_MAX,
)

read_architecture = reads_number("nvmlDeviceGetArchitecture", int)
read_fan_speed = reads_number("nvmlDeviceGetFanSpeed_v2", int, arguments=1)
read_target_fan_speed = reads_number("nvmlDeviceGetTargetFanSpeed", int, arguments=1)
read_fan_control_policy = reads_number("nvmlDeviceGetFanControlPolicy_v2", int, arguments=1)
read_temperature_threshold = reads_number("nvmlDeviceGetTemperatureThreshold", int, arguments=1)
read_temperature = reads_number("nvmlDeviceGetTemperature", int, arguments=1)
# which is asked for NVML_TEMPERATURE_GPU, 0, by a new structure
read_gpu_temperature = reads_member("nvmlDeviceGetTemperatureV", "nvmlTemperature_v1_t", "temperature", int)


class CoolerInfo(Snapshot["nvml.nvmlCoolerInfo_v1_t"]):
    """The cooler of a device.

    Parameters
    ----------
    cooler_info : nvmlCoolerInfo_v1_t
        What NVML told.
    """

    __slots__ = ()

    _STRUCTURE = "nvmlCoolerInfo_v1_t"

    def __init__(self, cooler_info: nvml.nvmlCoolerInfo_v1_t) -> None:
        self._record = cooler_info

    @property
    def signal_type(self) -> CoolerControl | None:
        """How the cooler is controlled; None if it is not, or in a way that this version does not know."""
        return COOLER_CONTROLS.members.get(int(self._record.signalType))

    @property
    def target(self) -> list[CoolerTarget]:
        """What the cooler cools. What NVML added later is left out."""
        return COOLER_TARGETS.in_mask(int(self._record.target))


class FanInfo(OfDevice):
    """A fan of a device; made by :meth:`Device.get_fan`. To set something needs root.

    Parameters
    ----------
    handle : nvmlDevice_t
        The device.
    fan : int
        The number of the fan, from 0.
    """

    __slots__ = ("_fan",)

    def __init__(self, handle: nvml.nvmlDevice_t, fan: int) -> None:
        self._handle = handle
        self._fan = fan

    def __repr__(self) -> str:
        """Return the number of the fan."""
        return f"<FanInfo {self._fan}>"

    @property
    def speed(self) -> int:
        """The speed that is meant, in percent of the maximum; it can be more than 100.

        A fan that is blocked does not reach it. To set it makes the policy manual, until :meth:`set_default_speed`.
        """
        return read_fan_speed(self, self._fan)

    @speed.setter
    def speed(self, speed: int) -> None:
        percent = integer(speed, "speed", "an int, in percent")
        if percent < 0:
            raise ValueError(f"speed must be 0 percent or more, not {percent}")
        call(nvml.nvmlDeviceSetFanSpeed_v2, self._handle, self._fan, percent)

    @property
    def speed_rpm(self) -> int:
        """The speed that is meant, in rotations per minute."""
        asked = nvml.nvmlFanSpeedInfo_v1_t(fan=self._fan)
        return value(nvml.nvmlDeviceGetFanSpeedRPM, self._handle, asked).speed

    @property
    def target_speed(self) -> int:
        """The speed that the driver steers to, in percent of the maximum."""
        return read_target_fan_speed(self, self._fan)

    @property
    def min_max_speed(self) -> tuple[int, int]:
        """The least and the most that the speed of the device's fans can be set to, in percent."""
        return values(nvml.nvmlDeviceGetMinMaxFanSpeed, self._handle)

    @property
    def control_policy(self) -> FanControlPolicy:
        """Who sets the speed. What NVML added later counts as the driver."""
        policy = read_fan_control_policy(self, self._fan)
        return FAN_CONTROL_POLICIES.members.get(policy, FanControlPolicy.TEMPERATURE_CONTROLLED)

    def set_default_speed(self) -> None:
        """Let the driver set the speed, by the temperature.

        Raises
        ------
        NoPermissionError
            If the user may not do that.
        """
        call(nvml.nvmlDeviceSetDefaultFanSpeed_v2, self._handle, self._fan)


class ThermalSensor(Part):
    """A thermal sensor of a device.

    Parameters
    ----------
    ptr : structure
        What NVML told of the sensor.
    owner : object
        What the structure is in; it is kept alive.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """Return what is measured, and the temperature."""
        return f"<ThermalSensor target={str(self.target)!r} current_temp={self.current_temp}>"

    @property
    def controller(self) -> ThermalController:
        """The chip that the sensor belongs to."""
        return THERMAL_CONTROLLERS.members.get(int(self._record.controller), ThermalController.UNKNOWN)

    default_min_temp = Answer(
        field("defaultMinTemp"), doc="The least temperature that the sensor measures, in degrees Celsius."
    )
    default_max_temp = Answer(
        field("defaultMaxTemp"), doc="The highest temperature that the sensor measures, in degrees Celsius."
    )
    current_temp = Answer(field("currentTemp"), doc="The temperature, in degrees Celsius.")

    @property
    def target(self) -> ThermalTarget:
        """What the sensor measures."""
        return THERMAL_TARGETS.members.get(int(self._record.target), ThermalTarget.NONE)


class ThermalSettings(Items[ThermalSensor], Snapshot["nvml.nvmlGpuThermalSettings_t"]):
    """The thermal sensors of a device.

    Parameters
    ----------
    thermal_settings : nvmlGpuThermalSettings_t
        What NVML told.
    """

    __slots__ = ()

    _ITEM = "thermal sensor"
    _STRUCTURE = "nvmlGpuThermalSettings_t"

    def __init__(self, thermal_settings: nvml.nvmlGpuThermalSettings_t) -> None:
        self._record = thermal_settings

    @property
    def _items(self) -> list[ThermalSensor]:  # type: ignore[override]
        return [ThermalSensor(sensor, self) for sensor in self._record.sensor[: self._record.count]]


class Temperature(OfDevice):
    """Temperatures of a device, in degrees Celsius.

    Parameters
    ----------
    handle : nvmlDevice_t
        The device.
    """

    __slots__ = ()

    def __init__(self, handle: nvml.nvmlDevice_t) -> None:
        self._handle = handle

    def get_sensor(self) -> int:
        """Return the temperature of the GPU.

        Returns
        -------
        int
            The temperature in degrees Celsius.

        Raises
        ------
        NotSupportedError
            If the device does not tell it.
        """
        try:
            return read_gpu_temperature(self)
        except FunctionNotFoundError:  # older drivers
            return read_temperature(self, nvml.nvmlTemperatureSensors_t.NVML_TEMPERATURE_GPU)

    def get_threshold(self, threshold_type: TemperatureThresholds | str) -> int:
        """Return a temperature at which something happens.

        Parameters
        ----------
        threshold_type : TemperatureThresholds or str
            What happens.

        Returns
        -------
        int
            The temperature in degrees Celsius.

        Raises
        ------
        ValueError
            If there is no such threshold.
        NotSupportedError
            If the device does not have it.

        Warns
        -----
        DeprecationWarning
            On Ada and newer, for the thresholds that NVIDIA wants to be read there with
            :meth:`Device.get_field_values`, as ``DEV_TEMPERATURE_*``.
        """
        number = TEMPERATURE_THRESHOLDS.number(threshold_type)
        if threshold_type in READ_AS_FIELDS and read_architecture(self) >= DeviceArch.ADA:
            warnings.warn(
                f"the threshold {str(threshold_type)!r} is read with get_field_values from Ada on: DEV_TEMPERATURE_*",
                DeprecationWarning,
                stacklevel=2,
            )
        return read_temperature_threshold(self, number)

    margin = Answer(
        reads_member("nvmlDeviceGetMarginTemperature", "nvmlMarginTemperature_v1_t", "marginTemperature", int),
        doc="How far it is to the nearest temperature at which the device slows down, in degrees Celsius.",
    )

    def get_thermal_settings(self, sensor_index: ThermalTarget | str) -> ThermalSettings:
        """Return thermal sensors.

        Parameters
        ----------
        sensor_index : ThermalTarget or str
            What the sensor measures.

        Returns
        -------
        ThermalSettings
            The sensors.

        Raises
        ------
        ValueError
            If there is no such target.
        NotSupportedError
            If the device does not tell it.
        """
        target = THERMAL_TARGETS.number(sensor_index)
        return ThermalSettings(value(nvml.nvmlDeviceGetThermalSettings, self._handle, target))
