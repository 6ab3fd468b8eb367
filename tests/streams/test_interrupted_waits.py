# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Signals that arrive while a program waits for a kernel of the simulated driver that does not end."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest
from helpers import LIMIT, child_environment, output_of

pytestmark = pytest.mark.simulator_only("with a GPU, Python runs the handlers of signals after the wait")

SPIN = """
    import signal, threading
    from cuda_core_cffi import Device, LaunchConfig, ObjectCode, launch
    PTX = b'''
    .version 8.0
    .target sm_90
    .address_size 64
    .visible .entry spin(.param .u64 flag) {
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [flag];
    again:
    ld.volatile.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra again;
    ret;
    }'''
    device = Device()
    device.set_current()
    stream, other = device.create_stream(), device.create_stream()
    from cuda_core_cffi import LegacyPinnedMemoryResource
    flag = LegacyPinnedMemoryResource().allocate(4)
    view = memoryview(bytearray(4))
    flag.fill(0, stream=stream)
    stream.sync()
    launch(stream, LaunchConfig(grid=1, block=1), ObjectCode.from_ptx(PTX).get_kernel("spin"), flag)
    event = stream.record()

    def let_go():
        flag.fill(1, stream=other)
        other.sync()
"""
WAITS = ["stream.sync()", "event.sync()", "device.sync()"]


def indented(code: str) -> str:
    return textwrap.indent(textwrap.dedent(code), "    ")


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_ends_a_wait_for_an_endless_kernel(wait: str) -> None:
    code = SPIN + indented(
        f"""
        try:
            print("waiting", flush=True)
            {wait}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=child_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    assert (process.returncode, out, error) == (0, "interrupted\n", "")


@pytest.mark.parametrize("wait", WAITS)
def test_a_handler_that_raises_nothing_does_not_end_the_wait(wait: str) -> None:
    code = SPIN + indented(
        f"""
        def handle(number, frame):
            print("handled")
            let_go()
        signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        {wait}
        print(event.is_done)
        """
    )
    assert output_of(code).split() == ["handled", "True"]


@pytest.mark.parametrize("wait", WAITS)
def test_the_next_wait_after_an_interrupted_one_waits_for_all_work(wait: str) -> None:
    code = SPIN + indented(
        f"""
        class Stop(Exception):
            pass
        def stop(number, frame):
            raise Stop
        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            {wait}
        except Stop:
            print("stopped", event.is_done)
        let_go()
        {wait}
        print(event.is_done)
        """
    )
    assert output_of(code).split() == ["stopped", "False", "True"]


def test_a_stream_can_be_closed_by_another_thread_while_its_work_is_waited_for() -> None:
    code = SPIN + indented(
        """
        def close():
            stream.close()
            let_go()
        timer = threading.Timer(0.4, close)
        timer.start()
        stream.sync()
        timer.join()
        print(event.is_done)
        """
    )
    assert output_of(code) == "True"
