# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Print what cuda.core.system and the one of this package tell differently, on the simulated NVML.

    python tests/clients/compare_system.py [--peer PYTHON] [--ours PYTHON]

Each is a Python that has the package: cuda-core, and this one. Both evaluate the same expressions, and each property of
the objects that these lead to. The exit status is 1 if something differs that ACCEPTED does not list, or if ACCEPTED
lists what does not differ.
"""

from __future__ import annotations

import argparse
import enum
import fnmatch
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import warnings
from collections.abc import Iterator
from typing import Any

MACHINE = {"CUDA_SIM_DEVICES": "2", "CUDA_SIM_NVLINKS": "4", "CUDA_SIM_FANS": "2", "CUDA_SIM_SHARED": ""}
DEPTH = 3
CLOCKS = ("graphics", "sm", "memory", "video")
THRESHOLDS = ("shutdown", "slowdown", "mem_max", "gpu_max", "acoustic_min", "acoustic_curr", "acoustic_max", "gps_curr")
CAPABILITIES = ("read", "write", "nvlink", "atomics", "pci", "prop", "unknown")
LEVELS = ("internal", "single", "multiple", "hostbridge", "node", "system")
TARGETS = ("none", "gpu", "memory", "power_supply", "board", "vcd_board", "vcd_inlet", "vcd_outlet", "all")

EXPRESSIONS = [
    "sorted(set(s.__all__))",
    "s.CUDA_BINDINGS_NVML_IS_COMPATIBLE",
    "s.get_num_devices()",
    "s.get_user_mode_driver_version()",
    "s.get_kernel_mode_driver_version()",
    "s.get_nvml_version()",
    "s.get_driver_branch()",
    "s.get_process_name(99999999)",
    "s.get_process_name(-1)",
    "s.get_process_name('1')",
    "s.Device()",
    "s.Device(index=0, uuid='x')",
    "s.Device(0)",
    "s.Device(index=9)",
    "s.Device(index=-1)",
    "s.Device(index='0')",
    "s.Device(uuid='x')",
    "s.Device(uuid=3)",
    "s.Device(pci_bus_id='x')",
    "s.Device(uuid=d.uuid.encode()).index",
    "s.Device(pci_bus_id=d.pci_bus_id.encode()).index",
    "s.Device(index=0) == d",
    "s.Device.get_device_count()",
    "[one.index for one in s.Device.get_all_devices()]",
    "type(s.Device.get_all_devices()).__name__",
    "[one.index for one in s.Device.get_all_devices_with_cpu_affinity(0)]",
    "list(s.Device.get_all_devices_with_cpu_affinity(100000))",
    "d",
    "other",
    "d.to_cuda_device().device_id",
    "d.to_cuda_device().to_system_device().index",
    "d.get_cpu_affinity()",
    "d.get_cpu_affinity('socket')",
    "d.get_cpu_affinity('x')",
    "d.get_memory_affinity()",
    "d.get_memory_affinity('socket')",
    "d.set_cpu_affinity()",
    "d.clear_cpu_affinity()",
    "s.get_topology_common_ancestor(d, other)",
    "s.get_topology_common_ancestor(d, d)",
    "s.get_topology_common_ancestor(d, None)",
    "s.get_p2p_status(d, d, 'read')",
    "s.get_p2p_status(d, other, 'x')",
    "d.get_clock('x')",
    "d.get_clock(3)",
    "d.get_clock('sm').get_current_mhz('customer_boost_max')",
    "d.get_clock('sm').get_current_mhz('x')",
    "d.get_clock('sm').get_offsets(16)",
    "d.get_clock('sm').get_min_max_clock_of_pstate_mhz(-1)",
    "d.get_clock('sm').get_min_max_clock_of_pstate_mhz('0')",
    "d.temperature.get_sensor()",
    "d.temperature.get_threshold('x')",
    "d.temperature.get_thermal_settings('x')",
    "len(d.temperature.get_thermal_settings('gpu'))",
    "d.temperature.get_thermal_settings('all')[0]",
    "d.temperature.get_thermal_settings('all')[3]",
    "d.inforom.get_version('oem')",
    "d.inforom.get_version('ecc')",
    "d.inforom.get_version('power')",
    "d.inforom.get_version('den')",
    "d.inforom.get_version('x')",
    "d.inforom.validate()",
    "len(d.dynamic_pstates_info)",
    "d.dynamic_pstates_info[0]",
    "d.dynamic_pstates_info[99]",
    "d.get_fan(0)",
    "d.get_fan(2)",
    "d.get_fan(-1)",
    "d.get_fan('0')",
    "setattr(d.get_fan(0), 'speed', 50)",
    "d.get_fan(0).speed, d.get_fan(0).control_policy",
    "d.get_fan(0).set_default_speed()",
    "d.get_fan(0).control_policy",
    "d.get_nvlink(0)",
    "d.get_nvlink(4)",
    "d.get_nvlink(-1)",
    "d.get_nvlink_count()",
    "len(list(d.get_nvlinks()))",
    "d.get_field_values([])",
    "d.get_field_values([1, 2, (3, 0)]).get_all_values()",
    "d.get_field_values([1, (2, 0)])[0].field_id",
    "d.get_field_values([99999]).validate()",
    "d.get_field_values([99999])[0].value",
    "d.get_field_values([1])[1]",
    "d.get_field_values(3)",
    "d.get_field_values(['a'])",
    "d.get_field_values([(1, 2, 3)])",
    "d.clear_field_values([1])",
    "d.get_supported_event_types()",
    "d.register_events('pstate').wait(1)",
    "d.register_events('x')",
    "d.register_events(3)",
    "d.register_events([])",
    "d.register_events('pstate').wait(-1)",
    "d.register_events('pstate').wait('1')",
    "s.register_events('bind').wait(1)",
    "s.register_events('bind').wait(1, 0)",
    "s.register_events('x')",
    "s.register_events(3)",
    "setattr(d, 'is_persistence_mode_enabled', False)",
    "d.is_persistence_mode_enabled",
    "setattr(d, 'is_persistence_mode_enabled', True)",
    "setattr(d, 'is_persistence_mode_enabled', 'yes')",
    "setattr(d.mig, 'mode', True)",
    "d.mig.get_device_by_index(0)",
    "list(d.mig.get_all_devices())",
    "s.NvlinkInfo.max_links",
    *(f"d.get_clock({name!r}).{ask}" for name in CLOCKS for ask in (
        "get_current_mhz()", "get_max_mhz()", "get_max_customer_boost_mhz()", "get_offsets(0)",
        "get_min_max_clock_of_pstate_mhz(0)")),
    *(f"d.temperature.get_threshold({name!r})" for name in THRESHOLDS),
    *(f"len(d.temperature.get_thermal_settings({name!r}))" for name in TARGETS),
    *(f"s.get_p2p_status(d, other, {name!r})" for name in CAPABILITIES),
    *(f"[one.index for one in d.get_topology_nearest_gpus({name!r})]" for name in LEVELS),
]  # fmt: skip

FINER = "what cannot be converted is refused with another class of error"
ACCEPTED = {
    # a pattern of cases: the reason
    "s.Device(index=-1)": FINER,
    "s.get_process_name(-1)": FINER,
    "d.register_events('pstate').wait(-1)": FINER,
    "d.get_field_values(['a'])": FINER,
    "s.register_events('bind').wait(1, 0)": FINER,
    "setattr(d, 'is_persistence_mode_enabled', 'yes')": "a text is no state",
    "d.register_events([])*": "to wait for none would not end",
    "d.clear_field_values([1])": "a field that cannot be cleared is told",
    "s.Device(index=0) == d": "two objects for one device are equal",
    "s.NvlinkInfo.max_links": "the macro of another header",
    "d.to_cuda_device().to_system_device().index": "cuda-core does not find it: it asks without the prefix of the UUID",
}


def describe(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON; an object of the package as its class and its properties."""
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)  # enumerations of integers have another base in cuda-core
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, str | int | float | type(None)):
        return value
    if isinstance(value, list | tuple):
        return [type(value).__name__, *(describe(item, depth + 1) for item in value)]
    found: dict[str, Any] = {"class": type(value).__name__}
    if depth < DEPTH and ".system" in type(value).__module__:
        for name in sorted(dir(type(value))):
            item = getattr(type(value), name)
            if not name.startswith("_") and isinstance(item, property | types.GetSetDescriptorType):
                found[name] = outcome(lambda name=name: getattr(value, name), depth + 1)
    return found


def outcome(ask: Any, depth: int = 0) -> Any:
    """Return what is told, or the class of the error."""
    try:
        return describe(ask(), depth)
    except Exception as error:
        # some errors of cuda.bindings have another name than cuda.core gives them
        return f"raises {type(error).__name__.removeprefix('Nvml') or 'NvmlError'}"


def tell(package: str) -> None:
    """Print every outcome, as JSON, with the warnings."""
    s = importlib.import_module(f"{package}.system")
    d, other = s.Device(index=0), s.Device(index=1)
    found = {}
    for expression in EXPRESSIONS:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found[expression] = outcome(lambda text=expression: eval(text, {"s": s, "d": d, "other": other}))
        kinds = {warning.category.__name__ for warning in caught} - {"SyntaxWarning"}
        if kinds:
            found[f"{expression} warns"] = sorted(kinds)
    print(json.dumps(found))


def told(python: str, package: str, environment: dict[str, str]) -> dict[str, Any]:
    """Return every outcome of a package."""
    done = subprocess.run(
        [python, str(pathlib.Path(__file__).resolve()), "--tell", package],
        env={**os.environ, **MACHINE, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{package} ends with {done.returncode}\n{done.stderr}")
    return dict(flat("", json.loads(done.stdout)))


def flat(where: str, item: Any) -> Iterator[tuple[str, Any]]:
    """Yield every single value, and where it is."""
    if isinstance(item, dict):
        for name, value in item.items():
            yield from flat(f"{where}.{name}" if where else name, value)
    else:
        yield where, item


def differences(peer: dict[str, Any], ours: dict[str, Any]) -> Iterator[str]:
    """Yield what differs and is not accepted, and what is accepted and does not differ."""
    needed = set()
    for case in sorted({*peer, *ours}):
        one, other = peer.get(case, "absent"), ours.get(case, "absent")
        if one != other:
            accepted = [pattern for pattern in ACCEPTED if fnmatch.fnmatchcase(case, pattern.replace("[", "[[]"))]
            needed.update(accepted)
            if not accepted:
                yield f"{case}\n    cuda-core: {one}\n    here:      {other}"
    for pattern in sorted(set(ACCEPTED) - needed):
        yield f"{pattern}: is accepted, and does not differ"


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--peer", default=sys.executable, help="a Python that has cuda-core")
    parser.add_argument("--ours", default=sys.executable, help="a Python that has this package")
    parser.add_argument("--tell", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.tell:
        tell(options.tell)
        return 0
    ask = "from cuda_core_cffi import simulator; print(simulator.library_path())"
    library = subprocess.run([options.ours, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
            os.symlink(library, pathlib.Path(folder) / name)
        peer = told(options.peer, "cuda.core", {"LD_LIBRARY_PATH": folder})
        ours = told(options.ours, "cuda_core_cffi", {"CUDA_CORE_CFFI_DRIVER": "simulator"})
    found = list(differences(peer, ours))
    print(*found, sep="\n")
    print(f"{len(peer)} values compared, {len(found)} differ")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
