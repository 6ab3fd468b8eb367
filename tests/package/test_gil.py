# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Threads that give up the GIL for calls of the driver tell one another; what they believe of it can be wrong."""

from __future__ import annotations

import os

import pytest
from helpers import in_threads, output_of

from cuda_core_cffi import Device

CALLS = 5000
THREADS = 5


def test_threads_that_call_and_one_that_computes_all_get_on(device: Device):
    """Who computes has the GIL without telling, and is waited for in Python."""
    called = []

    def work(number: int) -> int:
        turns = 0
        if number == 0:
            while len(called) < THREADS - 1:
                turns += 1
            return turns
        device.set_current()
        with device.create_stream() as stream, device.create_event() as event:
            for _ in range(CALLS):
                stream.record(event)
                event.sync()
                turns += 1
        called.append(number)
        return turns

    assert in_threads(THREADS, work)[1:] == [CALLS] * (THREADS - 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork()")
def test_in_the_child_of_a_fork_no_thread_is_waited_for():
    """One that was asleep, waiting for the GIL, is not there any more: each call would wait for it for 10 ms."""
    text = output_of(
        """
        import os, sys, threading, time, warnings
        from cuda_core_cffi import lib

        warnings.simplefilter("ignore", DeprecationWarning)  # Python does not like a fork with threads
        stop = []

        def call():
            while not stop:
                lib.ccc_refs_count()

        sys.setswitchinterval(0.001)
        threads = [threading.Thread(target=call) for _ in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        sys.setswitchinterval(10)  # from now on this thread has the GIL, and the others come to wait for it
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            pass
        child = os.fork()
        if child == 0:
            for _ in range(20000):
                lib.ccc_refs_count()
            os._exit(7)
        sys.setswitchinterval(0.001)
        stop.append(True)
        for thread in threads:
            thread.join()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert text == "7"


def test_at_exit_nobody_waits_for_threads_that_ended_waiting():
    """Daemon threads end where they wait for the GIL; each call after that would wait for them for 10 ms and more."""
    output_of(
        """
        import sys, threading, time, types
        from cuda_core_cffi import Device, lib

        device = Device(0)
        device.set_current()
        late = sys.modules["late"] = types.ModuleType("late")  # goes when the interpreter clears its modules
        late.events = [device.create_event() for _ in range(5000)]
        del late

        def call(function=lib.ccc_refs_count):
            while True:
                function()

        for _ in range(8):
            threading.Thread(target=call, daemon=True).start()
        time.sleep(0.3)
        """
    )
