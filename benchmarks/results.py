# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The results file: JSON, written anew after every row, so that a run that was stopped can go on."""

from __future__ import annotations

import datetime
import json
import os
import pathlib
from typing import Any

__all__ = ["Results", "Task"]

FORMAT = 1
IDENTITY = ("python", "versions", "cuda", "device")

Task = dict[str, Any]
"""What to measure: ``row``, and ``threads``, a number or None for the row in one thread."""


class Results:
    """What has been measured.

    Parameters
    ----------
    path : pathlib.Path
        The file. What is there already is read.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self.data: dict[str, Any] = {"format": FORMAT, "profile": None, "machine": {}, "implementations": {}}
        if path.exists():
            self.data = json.loads(path.read_text(encoding="utf-8"))
            if self.data.get("format") != FORMAT:
                raise ValueError(f"{path} is no results file of this version")
        for part in ("rows", "threads", "errors"):
            self.data.setdefault(part, {})

    def begin(self, profile: str, machine: dict[str, object]) -> None:
        """Note what is measured, which must be what was measured before; what failed before gets another chance."""
        for name, value in (("profile", profile), ("machine", machine)):
            if self.data[name] and self.data[name] != value:
                raise ValueError(
                    f"{self._path} has another {name}, {self.data[name]}: choose another --output, or --fresh"
                )
            self.data[name] = value
        self.data["errors"] = {}

    def describe(self, implementation: str, about: dict[str, Any]) -> None:
        """Note what an implementation is. Rows of another version of it must not be mixed with this one's."""
        known = self.data["implementations"].setdefault(implementation, about)
        if any(known[key] != about[key] for key in IDENTITY):
            raise ValueError(
                f"{self._path} has results of another {implementation}, {known}: choose another --output, or --fresh"
            )

    def wants(self, implementation: str, task: Task, rounds: int) -> bool:
        """Tell whether a task has fewer rounds than that, and has not failed in this run."""
        if title(task) in self.data["errors"].get(implementation, ()):
            return False
        return len(self._cell(task).get(implementation, ())) < rounds

    def add(self, implementation: str, task: Task, values: list[float]) -> None:
        """Add a round of a task, and write the file."""
        self._cell(task).setdefault(implementation, []).append(values)
        self.save()

    def fail(self, implementation: str, task: Task, error: str) -> None:
        """Note that a task failed, and write the file."""
        self.data["errors"].setdefault(implementation, {})[title(task)] = error
        self.save()

    def save(self) -> None:
        """Write the file; a reader sees the old or the new one, never half of it."""
        self.data["date"] = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(self.data, indent=1) + "\n", encoding="utf-8")
        os.replace(part, self._path)

    def _cell(self, task: Task) -> dict[str, list[list[float]]]:
        if task["threads"] is None:
            cell: dict[str, list[list[float]]] = self.data["rows"].setdefault(task["row"], {})
        else:
            cell = self.data["threads"].setdefault(task["row"], {}).setdefault(str(task["threads"]), {})
        return cell


def title(task: Task) -> str:
    """Return what to call a task in a message."""
    return task["row"] if task["threads"] is None else f"{task['row']}, {task['threads']} threads"
