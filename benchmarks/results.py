# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The results file: JSON, written anew after every row, so that a run that was stopped can go on."""

from __future__ import annotations

import datetime
import itertools
import json
import os
import pathlib
from typing import Any

FORMAT = 2
IDENTITY = ("python", "versions", "cuda", "device")
MEASURED = ("rows", "growth")

Task = dict[str, Any]
"""What to measure: ``row``; ``size``, of threads, buffers or nodes, or None; and ``parts``, the rows that it fills."""


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
            if not isinstance(self.data, dict) or self.data.get("format") != FORMAT:
                raise ValueError(f"{path} is no results file of this version")
        for part in (*MEASURED, "errors", "absent"):
            self.data.setdefault(part, {})

    def begin(self, profile: str, machine: dict[str, object]) -> None:
        """Note what is measured, which must be what was measured before; what failed before gets another chance."""
        for name, value in (("profile", profile), ("machine", machine)):
            if self.data[name] and self.data[name] != value:
                raise ValueError(
                    f"{self._path} has another {name}, {self.data[name]}: choose another --output, or --fresh"
                )
            self.data[name] = value
        self.data["errors"], self.data["absent"] = {}, {}

    def describe(self, implementation: str, about: dict[str, Any]) -> None:
        """Note what an implementation is. Rows of another version of it must not be mixed with this one's."""
        known = self.data["implementations"].setdefault(implementation, about)
        if any(known[key] != about[key] for key in IDENTITY):
            raise ValueError(
                f"{self._path} has results of another {implementation}, {known}: choose another --output, or --fresh"
            )

    def wants(self, implementation: str, task: Task, rounds: int) -> bool:
        """Tell whether a task has fewer rounds than that, and has not failed, or been left out, in this run."""
        if any(title(task) in self.data[kind].get(implementation, ()) for kind in ("errors", "absent")):
            return False
        # a part that this implementation does not have stays empty
        return max(len(self._cell(part, task["size"]).get(implementation, ())) for part in task["parts"]) < rounds

    def add(self, implementation: str, task: Task, values: dict[str, list[float]]) -> None:
        """Add a round of a task, and write the file."""
        for part, figures in values.items():
            self._cell(part, task["size"], keep=True).setdefault(implementation, []).append(figures)
        self.save()

    def fail(self, implementation: str, task: Task, error: str) -> None:
        """Note that a task failed, and write the file."""
        self.data["errors"].setdefault(implementation, {})[title(task)] = error
        self.save()

    def leave_out(self, implementation: str, task: Task, reason: str) -> None:
        """Note that what a task needs is not there, and write the file."""
        self.data["absent"].setdefault(implementation, {})[title(task)] = reason
        self.save()

    def save(self) -> None:
        """Write the file; a reader sees the old or the new one, never half of it."""
        self.data["date"] = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(self.data, indent=1) + "\n", encoding="utf-8")
        os.replace(part, self._path)

    def _cell(self, row: str, size: int | None, keep: bool = False) -> dict[str, list[list[float]]]:
        place, keys = (self.data["rows"], [row]) if size is None else (self.data["growth"], [row, str(size)])
        for key in keys:
            place = place.setdefault(key, {}) if keep else place.get(key, {})
        return place  # type: ignore[no-any-return]


def title(task: Task) -> str:
    """Return what to call a task in a message."""
    return task["row"] if task["size"] is None else f"{task['row']}, {task['size']:,}"


def pool(cell: dict[str, list[list[float]]]) -> dict[str, list[float]]:
    """Return the values of all rounds together, by implementation."""
    return {name: list(itertools.chain.from_iterable(rounds)) for name, rounds in cell.items() if rounds}
