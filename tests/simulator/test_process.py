# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from sim_driver import run_alone


def test_nothing_works_before_initialisation() -> None:
    printed = run_alone(
        """
        print(cu.status("cuDeviceGetCount", byref(c_int())), cu.status("cuStreamQuery", None))
        print(cu.status("cuCtxGetCurrent", byref(c_void_p())), cu.status("cuMemFree_v2", c_uint64(0)))
        print(cu.status("cuDriverGetVersion", byref(c_int())), cu.status("cuInit", 1), sim.live()["streams"].number)
        """
    )
    assert printed.split() == ["NOT_INITIALIZED"] * 4 + ["SUCCESS", "INVALID_VALUE", "0"]


def test_a_child_of_a_process_that_used_the_driver_cannot() -> None:
    printed = run_alone(
        """
        cu.start()
        stream = cu.stream()
        gate = cu.block(stream)
        pid = os.fork()
        if not pid:
            print(cu.status("cuInit", 0), cu.status("cuStreamSynchronize", stream))
            print(cu.status("cuMemFree_v2", c_uint64(1)))
            print(cu.status("cuDriverGetVersion", byref(c_int())), sim.live()["streams"].number, flush=True)
            os._exit(0)
        print(os.waitpid(pid, 0)[1])
        gate.open()
        print(cu.status("cuStreamSynchronize", stream))
        """
    )
    assert printed.split() == ["NOT_INITIALIZED"] * 3 + ["SUCCESS", "0", "0", "SUCCESS"]


def test_a_child_that_exits_normally_is_quiet() -> None:
    printed = run_alone(
        """
        cu.start()
        cu.alloc(8)
        pid = os.fork()
        if not pid:
            sys.exit(0)
        print(os.waitpid(pid, 0)[1])
        cu.cuDevicePrimaryCtxRelease_v2(0)
        """,
        CUDA_SIM_REPORT="stderr",
    )
    assert printed.strip() == "0"


def test_a_child_of_a_process_that_had_not_started_the_driver_may() -> None:
    printed = run_alone(
        """
        pid = os.fork()
        if not pid:
            cu.start()
            print(cu.status("cuMemAlloc_v2", byref(c_uint64()), c_size_t(8)), flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        cu.start()
        print(cu.status("cuMemAlloc_v2", byref(c_uint64()), c_size_t(8)))
        """
    )
    assert printed.split() == ["SUCCESS", "SUCCESS"]


def test_a_process_may_end_with_work_pending() -> None:
    printed = run_alone(
        """
        cu.start()
        stream, memory = cu.stream(), cu.alloc(8)
        cu.cuMemsetD8_v2(memory, 0, c_size_t(8))
        cu.cuStreamWaitValue32_v2(stream, memory, 1, 1)
        cu.cuMemsetD8Async(memory, 1, c_size_t(8), stream)
        print("done")
        """
    )
    assert printed.strip() == "done"


def test_threads_that_end_leave_no_stream_behind() -> None:
    printed = run_alone(
        """
        import threading
        context = cu.start()
        def work():
            cu.cuCtxSetCurrent(context)
            cu.cuStreamSynchronize(PER_THREAD)
        for _ in range(100):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        cu.cuCtxSynchronize()
        print(sim.live()["streams"].number, cu.status("cuDevicePrimaryCtxRelease_v2", 0))
        """
    )
    assert printed.split() == ["0", "SUCCESS"]
