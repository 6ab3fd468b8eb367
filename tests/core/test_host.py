# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The host, as a place for memory."""

from __future__ import annotations

import pickle
import threading
import weakref
from typing import Any

import pytest

from cuda_core_cffi import Host


def test_the_whole_host_is_one_object() -> None:
    assert Host() is Host()
    assert Host().numa_id is None
    assert Host().is_numa_current is False


def test_a_numa_node_is_one_object() -> None:
    assert Host(1) is Host(numa_id=1)
    assert Host(1).numa_id == 1
    assert Host(1).is_numa_current is False


def test_the_current_numa_node_is_one_object() -> None:
    assert Host.numa_current() is Host(is_numa_current=True)
    assert Host.numa_current().is_numa_current is True
    assert Host.numa_current().numa_id is None


def test_threads_share_the_objects() -> None:
    found: list[Host] = []
    threads = [threading.Thread(target=lambda: found.append(Host(7))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(item is Host(7) for item in found)


def test_different_places_differ() -> None:
    places = [Host(), Host(0), Host(1), Host.numa_current()]
    assert len(set(places)) == 4
    assert Host() != 0
    assert Host(0) != 0


def test_a_node_and_the_current_node_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="exclude each other"):
        Host(0, is_numa_current=True)


def test_a_negative_node_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be negative, not -1"):
        Host(-1)


@pytest.mark.parametrize("wrong", ["0", 0.0, True, [0]], ids=repr)
def test_a_node_must_be_an_integer(wrong: Any) -> None:
    with pytest.raises(TypeError, match="numa_id must be an int"):
        Host(wrong)


def test_is_numa_current_goes_by_keyword() -> None:
    with pytest.raises(TypeError):
        Host(None, True)  # type: ignore[misc]


@pytest.mark.parametrize("host", [Host(), Host(3), Host.numa_current()], ids=repr)
def test_pickling_gives_the_same_object(host: Host) -> None:
    assert pickle.loads(pickle.dumps(host)) is host


def test_the_repr_names_the_node() -> None:
    assert [repr(Host()), repr(Host(2)), repr(Host.numa_current())] == [
        "Host()",
        "Host(numa_id=2)",
        "Host.numa_current()",
    ]


def test_it_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Host(1).numa_id = 2  # type: ignore[misc]


def test_it_can_be_weakly_referenced() -> None:
    assert weakref.ref(Host())() is Host()
