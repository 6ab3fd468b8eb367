# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks ran on."""

from __future__ import annotations

import os
import pathlib
import platform
import re
import shutil
import subprocess


def machine_facts(simulator: bool) -> dict[str, object]:
    """Return the facts about this machine that times depend on."""
    gpu, driver = ("simulated", "simulated") if simulator else gpu_facts()
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "gpu": gpu,
        "driver": driver,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def cpu_name() -> str:
    """Return the processor's name."""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    found = re.search(r"^model name\s*:\s*(.*)$", text, re.MULTILINE)
    return found.group(1).strip() if found else platform.machine()


def gpu_facts() -> tuple[str, str]:
    """Return the name of the first GPU and the version of its driver, as nvidia-smi tells them."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader", "--id=0"]
    if shutil.which(command[0]) is None:
        return "unknown", "unknown"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    fields = [field.strip() for field in done.stdout.split(",")]
    return (fields[0], fields[1]) if done.returncode == 0 and len(fields) == 2 else ("unknown", "unknown")
