# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated driver between processes: events that several processes share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from sim_driver import DISABLE_TIMING, Driver, byref, c_void_p
from sim_ipc import (
    INTERPROCESS,
    MUTATIONS,
    EventHandle,
    Peer,
    event_handle,
    export_event,
    import_event,
    keep_no_descriptor,
    start_peers,
)

peer = pytest.fixture(start_peers)
no_descriptor_left = pytest.fixture(autouse=True)(keep_no_descriptor)


class TestEvents:
    @pytest.fixture
    def event(self, cu: Driver) -> Iterator[c_void_p]:
        event = cu.event(INTERPROCESS | DISABLE_TIMING)
        yield event
        cu.cuEventDestroy_v2(event)

    def test_event_of_this_process_alone_has_no_handle(self, cu: Driver) -> None:
        event = cu.event(DISABLE_TIMING)
        assert cu.status("cuIpcGetEventHandle", byref(EventHandle()), event) == "INVALID_HANDLE"
        cu.cuEventDestroy_v2(event)

    def test_handle_is_not_given_without_a_current_context(self, cu: Driver, event: c_void_p) -> None:
        context: c_void_p = cu.out(c_void_p, "cuCtxPopCurrent_v2")
        assert cu.status("cuIpcGetEventHandle", byref(EventHandle()), event) == "INVALID_CONTEXT"
        cu.cuCtxPushCurrent_v2(context)

    def test_own_handle_is_not_opened(self, cu: Driver, event: c_void_p) -> None:
        handle = event_handle(export_event(cu, event))
        assert cu.status("cuIpcOpenEventHandle", byref(c_void_p()), handle) == "INVALID_CONTEXT"

    def test_event_never_recorded_is_done(self, cu: Driver, peer: Callable[..., Peer], event: c_void_p) -> None:
        assert peer().run(
            """
            event = import_event(cu, handle)
            result = [cu.status("cuEventQuery", event), cu.status("cuStreamWaitEvent", None, event, 0)]
            cu.cuEventSynchronize(event)
            cu.cuEventDestroy_v2(event)
            """,
            handle=export_event(cu, event),
        ) == ["SUCCESS", "SUCCESS"]

    def test_stream_waits_for_a_record_of_the_other_process(
        self, cu: Driver, peer: Callable[..., Peer], event: c_void_p
    ) -> None:
        stream = cu.stream(1)
        gate = cu.block(stream)
        cu.cuEventRecord(event, stream)
        other = peer()
        before = other.run(
            """
            event, stream = import_event(cu, handle), cu.stream(1)
            cu.cuStreamWaitEvent(stream, event, 0)
            result = [cu.status("cuEventQuery", event), cu.status("cuStreamQuery", stream)]
            """,
            handle=export_event(cu, event),
        )
        gate.open()
        cu.cuStreamSynchronize(stream)
        after = other.run(
            """
            cu.cuStreamSynchronize(stream)
            result = cu.status("cuEventQuery", event)
            cu.cuEventDestroy_v2(event)
            cu.cuStreamDestroy_v2(stream)
            """
        )
        assert (before, after) == (["NOT_READY", "NOT_READY"], "SUCCESS")
        cu.cuStreamDestroy_v2(stream)

    def test_importer_records_and_the_exporter_waits(
        self, cu: Driver, peer: Callable[..., Peer], event: c_void_p
    ) -> None:
        cu.cuEventRecord(event, None)
        cu.cuCtxSynchronize()
        other = peer()
        other.run(
            """
            event, stream = import_event(cu, handle), cu.stream(1)
            gate = cu.block(stream)
            cu.cuEventRecord(event, stream)
            """,
            handle=export_event(cu, event),
        )
        assert cu.status("cuEventQuery", event) == "NOT_READY"
        other.run("gate.open()")
        cu.cuEventSynchronize(event)
        assert cu.status("cuEventQuery", event) == "SUCCESS"
        other.run("cu.cuEventDestroy_v2(event); cu.cuStreamDestroy_v2(stream)")

    def test_wait_is_for_the_record_made_before_it(
        self, cu: Driver, peer: Callable[..., Peer], event: c_void_p
    ) -> None:
        stream = cu.stream(1)
        cu.cuEventRecord(event, stream)
        cu.cuStreamSynchronize(stream)
        other = peer()
        other.run(
            "event = import_event(cu, handle); cu.cuStreamWaitEvent(None, event, 0)", handle=export_event(cu, event)
        )
        gate = cu.block(stream)
        cu.cuEventRecord(event, stream)
        assert other.run("cu.cuStreamSynchronize(None); result = cu.status('cuEventQuery', event)") == "NOT_READY"
        gate.open()
        other.run("cu.cuEventSynchronize(event); cu.cuEventDestroy_v2(event)")
        cu.cuStreamDestroy_v2(stream)

    def test_nobody_waits_for_a_process_that_was_killed(self, cu: Driver, peer: Callable[..., Peer]) -> None:
        other = peer()
        handle = other.run(
            """
            event, stream = cu.event(INTERPROCESS | DISABLE_TIMING), cu.stream(1)
            gate = cu.block(stream)
            cu.cuEventRecord(event, stream)
            result = export_event(cu, event).hex()
            """
        )
        event = import_event(cu, bytes.fromhex(handle))
        stream = cu.stream(1)
        cu.cuStreamWaitEvent(stream, event, 0)
        assert cu.status("cuStreamQuery", stream) == "NOT_READY"
        other.kill()
        cu.cuStreamSynchronize(stream)
        cu.cuEventSynchronize(event)
        cu.cuEventRecord(event, stream)
        cu.cuEventSynchronize(event)
        assert cu.status("cuIpcOpenEventHandle", byref(c_void_p()), event_handle(bytes.fromhex(handle))) != "SUCCESS"
        cu.cuEventDestroy_v2(event)
        cu.cuStreamDestroy_v2(stream)

    def test_imported_event_outlives_the_exporters(self, cu: Driver, peer: Callable[..., Peer]) -> None:
        event = cu.event(INTERPROCESS | DISABLE_TIMING)
        other = peer()
        other.run("event = import_event(cu, handle)", handle=export_event(cu, event))
        cu.cuEventDestroy_v2(event)
        assert (
            other.run(
                """
            cu.cuEventRecord(event, None)
            cu.cuEventSynchronize(event)
            result = cu.status("cuEventQuery", event)
            cu.cuEventDestroy_v2(event)
            """
            )
            == "SUCCESS"
        )

    def test_imported_event_takes_no_time(self, cu: Driver, peer: Callable[..., Peer], event: c_void_p) -> None:
        assert (
            peer().run(
                """
            event = import_event(cu, handle)
            cu.cuEventRecord(event, None)
            cu.cuEventSynchronize(event)
            result = cu.status("cuEventElapsedTime", byref(c_float()), event, event)
            cu.cuEventDestroy_v2(event)
            """,
                handle=export_event(cu, event),
            )
            == "INVALID_HANDLE"
        )

    def test_damaged_handles_are_errors_or_events(self, cu: Driver, peer: Callable[..., Peer], event: c_void_p) -> None:
        refused = peer().run(
            """
            result = 0
            for changed in mutations(handle):
                event = c_void_p()
                if cu.status("cuIpcOpenEventHandle", byref(event), event_handle(changed)) == "SUCCESS":
                    cu.cuEventQuery(event)
                    cu.cuEventDestroy_v2(event)
                else:
                    result += 1
            """,
            handle=export_event(cu, event),
        )
        assert refused > MUTATIONS // 4
