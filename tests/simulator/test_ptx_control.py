# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Branches, calls, launches of every shape, and what a kernel that goes wrong does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ptx_runner import GpuError, Runner
from sim_driver import run_alone

COLLATZ = r"""
extern "C" __global__ void k(const int *x, int *o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long v = x[i];
    int steps = 0;
    while (v != 1) {
        if (v & 1) { v = 3 * v + 1; } else { v >>= 1; }
        if (++steps > 500) break;
        for (int j = 0; j < (int)(v & 3); j++) { if (j == 2) continue; steps += j == 7; }
    }
    o[i] = steps;
}
"""


def test_lanes_that_leave_a_loop_at_different_times(ptx: Runner, rng: np.random.Generator) -> None:
    x = rng.integers(1, 100000, 1000, np.int32)
    out = ptx.zeros(1000, np.int32)
    ptx.run(COLLATZ, "k", 8, 128, ptx.array(x), out, np.int32(1000))

    def steps(v: int) -> int:
        count = 0
        while v != 1:
            v = 3 * v + 1 if v & 1 else v >> 1
            count += 1
            if count > 500:
                break
        return count

    np.testing.assert_array_equal(out.get(), [steps(int(v)) for v in x])


def test_switch_and_nested_breaks(ptx: Runner) -> None:
    source = r"""
    __device__ int classify(int v) {
        switch (v % 11) {
        case 0: return 5; case 1: return -3; case 2: case 3: return v; case 4: return v * 2; case 5: v += 7;
        case 6: return v - 1; case 7: return 99; case 8: return 0x7fffffff; case 9: return v << 3; default: return ~v;
        }
    }
    extern "C" __global__ void k(int *o) {
        int i = threadIdx.x, total = 0;
        for (int a = 0; a < 10; a++) {
            for (int b = 0; b < 10; b++) {
                if (a * b > i) break;
                if ((a + b) % 3 == 0) continue;
                total += classify(a * b + i) & 0xffff;
            }
            if (total > 300000) goto done;
        }
    done:
        o[i] = total;
    }
    """

    def classify(v: int) -> int:
        table = {0: 5, 1: -3, 2: v, 3: v, 4: v * 2, 5: v + 6, 6: v - 1, 7: 99, 8: 0x7FFFFFFF, 9: v << 3}
        return table.get(v % 11, ~v)

    def total(i: int) -> int:
        result = 0
        for a in range(10):
            for b in range(10):
                if a * b > i:
                    break
                if (a + b) % 3 == 0:
                    continue
                result += classify(a * b + i) & 0xFFFF
            if result > 300000:
                break
        return result

    out = ptx.zeros(100, np.int32)
    ptx.run(source, "k", 1, 100, out)
    np.testing.assert_array_equal(out.get(), [total(i) for i in range(100)])


@pytest.mark.parametrize("grid", [(5,), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize("block", [(7,), (8, 5), (4, 3, 6), (32, 32)])
def test_every_thread_runs_once(ptx: Runner, grid: tuple[int, ...], block: tuple[int, ...]) -> None:
    source = r"""
    extern "C" __global__ void k(int *count, uint3 *where) {
        int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        int i = b * blockDim.x * blockDim.y * blockDim.z + t;
        atomicAdd(&count[i], 1);
        where[i] = threadIdx;
    }
    """
    total = int(np.prod(grid) * np.prod(block))
    count, where = ptx.zeros(total, np.int32), ptx.zeros((total, 3), np.uint32)
    ptx.run(source, "k", grid, block, count, where)
    assert (count.get() == 1).all()
    bx, by, bz = (*block, 1, 1)[:3]
    threads = np.arange(bx * by * bz)
    want = np.stack([threads % bx, threads // bx % by, threads // bx // by], 1)
    np.testing.assert_array_equal(where.get().reshape(-1, bx * by * bz, 3)[0], want)


def test_structures_by_value(ptx: Runner) -> None:
    source = r"""
    struct Inner { signed char c[5]; short s; };
    struct Outer { int a; double d; Inner in[2]; float f; };
    struct Wide { double v[8]; };
    __device__ __noinline__ Outer change(Outer o, int k) { o.a += k; o.d *= 2; o.in[1].c[k] = 'x'; o.in[0].s = -7;
        return o; }
    __device__ __noinline__ Wide scale(Wide w, float by) { for (int i = 0; i < 8; i++) w.v[i] *= by; return w; }
    extern "C" __global__ void k(signed char head, Outer o, Wide w, Outer *out, double *sum, unsigned short tail) {
        out[threadIdx.x] = change(o, threadIdx.x & 3);
        Wide s = scale(w, threadIdx.x); double total = head + tail;
        for (int i = 0; i < 8; i++) total += s.v[(i + threadIdx.x) & 7];
        sum[threadIdx.x] = total;
    }
    """
    inner = np.dtype({"names": ["c", "s"], "formats": ["5i1", "i2"], "offsets": [0, 6], "itemsize": 8})
    outer = np.dtype(
        {
            "names": ["a", "d", "in", "f"],
            "formats": ["i4", "f8", (inner, 2), "f4"],
            "offsets": [0, 8, 16, 32],
            "itemsize": 40,
        }
    )
    value = np.zeros(1, outer)
    value["a"], value["d"], value["f"] = 10, 1.25, 3.5
    value["in"]["c"] = np.arange(10).reshape(1, 2, 5)
    out, total = ptx.zeros(64, outer), ptx.zeros(64, np.float64)
    wide = np.arange(8, dtype=np.float64)
    ptx.run(source, "k", 1, 64, np.int8(-5), value.tobytes(), wide.tobytes(), out, total, np.uint16(60000))
    got = out.get()
    for i in range(64):
        assert got[i]["a"] == 10 + (i & 3)
        assert got[i]["d"] == 2.5
        assert got[i]["f"] == 3.5
        assert got[i]["in"][0]["s"] == -7
        want = np.arange(5, 10)
        want[i & 3] = ord("x")
        np.testing.assert_array_equal(got[i]["in"][1]["c"], want)
        assert total.get()[i] == 28.0 * i - 5 + 60000


CALLS = r"""
typedef int (*Function)(int, int);
__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int mul(int a, int b) { return a * b; }
__device__ __noinline__ int sub(int a, int b) { return a - b; }
__device__ Function table[3] = {add, mul, sub};
__device__ __noinline__ long long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ __noinline__ int ackermann(int m, int n) {
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
__device__ __noinline__ int odd(int n);
__device__ __noinline__ int even(int n) { return n == 0 ? 1 : odd(n - 1); }
__device__ __noinline__ int odd(int n) { return n == 0 ? 0 : even(n - 1); }
struct Shape { __device__ virtual float area() const = 0; };
struct Square : Shape { float a; __device__ Square(float a) : a(a) {} __device__ float area() const override {
    return a * a; } };
struct Circle : Shape { float r; __device__ Circle(float r) : r(r) {} __device__ float area() const override {
    return 3 * r * r; } };
__device__ __noinline__ float measure(const Shape &s) { return s.area(); }
extern "C" __global__ void pointers(int *o) { int i = threadIdx.x; o[i] = table[i % 3](i, 5); }
extern "C" __global__ void recursion(long long *o) { int i = threadIdx.x;
    o[i] = i % 2 ? fib(i % 13) : ackermann(2, i % 5) + 1000 * even(i); }
extern "C" __global__ void virtuals(float *o) { int i = threadIdx.x; Square s(i); Circle c(i);
    o[i] = i % 3 ? measure(s) : measure(c); }
template <int N, typename T> struct Power { static __device__ T of(T x) { return x * Power<N - 1, T>::of(x); } };
template <typename T> struct Power<0, T> { static __device__ T of(T) { return 1; } };
extern "C" __global__ void templates(double *o) { int i = threadIdx.x; auto f = [i](double x) { return x + i; };
    o[i] = Power<3, double>::of(f(0.5)) + Power<2, int>::of(i); }
"""


def test_function_pointers(ptx: Runner) -> None:
    out = ptx.zeros(96, np.int32)
    ptx.run(CALLS, "pointers", 1, 96, out)
    np.testing.assert_array_equal(out.get(), [[i + 5, i * 5, i - 5][i % 3] for i in range(96)])


def test_recursion_that_diverges(ptx: Runner) -> None:
    def fib(n: int) -> int:
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    out = ptx.zeros(64, np.int64)
    ptx.run(CALLS, "recursion", 1, 64, out)
    want = [fib(i % 13) if i % 2 else 2 * (i % 5) + 3 + 1000 for i in range(64)]
    np.testing.assert_array_equal(out.get(), want)


def test_virtual_functions(ptx: Runner) -> None:
    out = ptx.zeros(64, np.float32)
    ptx.run(CALLS, "virtuals", 1, 64, out)
    np.testing.assert_array_equal(out.get(), [i * i if i % 3 else 3 * i * i for i in range(64)])


def test_templates_and_lambdas(ptx: Runner) -> None:
    out = ptx.zeros(64, np.float64)
    ptx.run(CALLS, "templates", 1, 64, out)
    np.testing.assert_array_equal(out.get(), [(0.5 + i) ** 3 + i * i for i in range(64)])


def test_printf(ptx: Runner, capfd: pytest.CaptureFixture[str]) -> None:
    source = r"""
    extern "C" __global__ void k(int v, double d, const char *none) {
        printf("plain\n");
        printf("%d|%5d|%-5d|%05d|%+d|%u|%x|%#X\n", v, v, v, v, v, (unsigned)-v, 255u, 255u);
        printf("%lld %llu %hd\n", -1234567890123ll, 18446744073709551615ull, (short)-3);
        printf("%f %.2f %8.3f %e %g %G\n", d, d, d, d, d, 1e-10);
        printf("%s %10s %.2s %c%c %%\n", "text", "right", "cut", 'a', 'b');
        printf("%p\n", (void *)0x1234);
    }
    """
    ptx.run(source, "k", 1, 1, np.int32(42), np.float64(3.14159), np.uint64(0))
    assert capfd.readouterr().out.splitlines() == [
        "plain",
        "42|   42|42   |00042|+42|4294967254|ff|0XFF",
        "-1234567890123 18446744073709551615 -3",
        "3.141590 3.14    3.142 3.141590e+00 3.14159 1E-10",
        "text      right cu ab %",
        "0x1234",
    ]


def test_each_thread_prints(ptx: Runner, capfd: pytest.CaptureFixture[str]) -> None:
    source = 'extern "C" __global__ void k() { if (threadIdx.x % 2) printf("%d.%d\\n", blockIdx.x, threadIdx.x); }'
    ptx.run(source, "k", 3, 40)
    assert sorted(capfd.readouterr().out.split()) == sorted(f"{b}.{t}" for b in range(3) for t in range(1, 40, 2))


def fails(runner: Runner, name: str, source: str, *arguments: object, **how: object) -> str:
    with pytest.raises(GpuError) as caught:
        runner.run(source, "k", how.pop("grid", 1), how.pop("block", 32), *arguments, **how)  # type: ignore[arg-type]
    assert caught.value.args[0] == name
    return str(caught.value)


def test_trap_fails_the_launch(broken: Runner) -> None:
    fails(broken, "LAUNCH_FAILED", 'extern "C" __global__ void k() { if (threadIdx.x == 3) __trap(); }')


def test_assertion_fails_the_launch(broken: Runner, capfd: pytest.CaptureFixture[str]) -> None:
    fails(broken, "ASSERT", 'extern "C" __global__ void k(int n) { assert(n == 3 && "three"); }', np.int32(2))
    assert 'Assertion `n == 3 && "three"` failed' in capfd.readouterr().out


def test_access_outside_an_allocation(broken: Runner) -> None:
    out = broken.zeros(32, np.int32)
    fails(broken, "ILLEGAL_ADDRESS", 'extern "C" __global__ void k(int *o) { o[threadIdx.x + (1 << 28)] = 1; }', out)


def test_null_pointer(broken: Runner) -> None:
    fails(broken, "ILLEGAL_ADDRESS", 'extern "C" __global__ void k(int *o) { o[threadIdx.x] = 1; }', np.uint64(0))


def test_misaligned_access(broken: Runner) -> None:
    out = broken.zeros(64, np.int32)
    fails(broken, "MISALIGNED_ADDRESS", 'extern "C" __global__ void k(char *o) { *(int *)(o + 2) = 1; }', out)


def test_access_outside_of_shared_memory(broken: Runner) -> None:
    source = r"""
    extern "C" __global__ void k(int *o, int n) {
        __shared__ int s[32];
        s[threadIdx.x + n] = 1;
        __syncthreads();
        o[0] = s[n];
    }
    """
    fails(broken, "ILLEGAL_ADDRESS", source, broken.zeros(1, np.int32), np.int32(100000))


def test_endless_recursion(broken: Runner) -> None:
    source = r"""
    __device__ __noinline__ int f(int n, volatile int *o) { volatile int a[4];
        a[n & 3] = o[0] + 1;
        int r = n < 0 ? 0 : f(n + 1, a); return r + a[r & 3]; }
    extern "C" __global__ void k(int *o) { o[2] = f(0, o); }
    """
    fails(broken, "HARDWARE_STACK_ERROR", source, broken.zeros(4, np.int32), block=1)


def test_an_endless_loop_ends_at_the_time_limit(tmp_path: Path) -> None:
    text = """.version 7.0
.target sm_75
.address_size 64
.visible .entry k() { LOOP: bra LOOP; }
"""
    path = tmp_path / "endless.ptx"
    path.write_text(text)
    printed = run_alone(
        f"""
        cu.start()
        module = cu.out(c_void_p, "cuModuleLoad", {str(path)!r}.encode())
        function = cu.out(c_void_p, "cuModuleGetFunction", module, b"k")
        cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, None, None)
        print(cu.status("cuCtxSynchronize"))
        """,
        CUDA_SIM_KERNEL_SECONDS="0.2",
    )
    assert printed.strip() == "LAUNCH_TIMEOUT"


def test_unknown_instruction_is_named_when_it_runs(broken: Runner) -> None:
    text = rb"""
    .version 8.0
    .target sm_80
    .address_size 64
    .visible .entry k(.param .u64 p, .param .u32 n)
    {
        .reg .pred %p<2>; .reg .b32 %r<3>; .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [p];
        ld.param.u32 %r1, [n];
        setp.eq.s32 %p1, %r1, 0;
        @%p1 bra DONE;
        frobnicate.sync.u32 %r2, {%r1, %r1}, [%rd1, {%r1}];
    DONE:
        st.u32 [%rd1], 7;
        ret;
    }
    """
    library = broken.gpu.load(text)
    out = broken.zeros(1, np.int32)
    pointer = np.uint64(out.pointer).tobytes()
    broken.gpu.launch(library, "k", (1, 1, 1), (1, 1, 1), [pointer, np.int32(0).tobytes()])
    assert out.get()[0] == 7
    with pytest.raises(GpuError) as caught:
        broken.gpu.launch(library, "k", (1, 1, 1), (1, 1, 1), [pointer, np.int32(1).tobytes()])
    assert caught.value.args[0] in ("NOT_SUPPORTED", "LAUNCH_FAILED")


MALFORMED = {
    "empty": "",
    "not PTX": "hello",
    "no target": ".version 8.0\n",
    "32-bit": ".version 8.0\n.target sm_80\n.address_size 32\n",
    "unclosed": ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() {",
    "undeclared register": ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { mov.u32 %r1, 5; }",
    "undefined label": ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { bra nowhere; }",
    "unresolved function": ".version 8.0\n.target sm_80\n.address_size 64\n.extern .func f();\n.entry k() { call f; }",
    "too few operands": ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { .reg .u32 a; add.u32 a, a; }",
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_malformed_text_is_refused(newest: Runner, text: str) -> None:
    with pytest.raises(GpuError) as caught:
        newest.gpu.load_at_once(text.encode())
    assert caught.value.args[0] in ("INVALID_PTX", "INVALID_IMAGE")


def test_future_version_is_refused(newest: Runner) -> None:
    with pytest.raises(GpuError, match="UNSUPPORTED_PTX_VERSION"):
        newest.gpu.load_at_once(b".version 99.0\n.target sm_80\n.address_size 64\n")


WRITTEN = b"""
.version 7.3
.target sm_75
.address_size 64
.func (.reg .b32 r) add3 (.reg .b32 a, .reg .b32 b) { .reg .b32 t; add.s32 t, a, b; add.s32 r, t, 3; ret; }
.visible .entry k(.param .u64 p, .param .u32 n)
{
  .reg .b32 %r<20>; .reg .b64 %rd<10>; .reg .pred %p<4>; .reg .b128 %q<3>;
  .shared .align 16 .b8 sh[64];
  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x; mul.wide.u32 %rd2, %r2, 4; add.s64 %rd1, %rd1, %rd2;
  and.b32 %r3, %r2, 3;
  TS: .branchtargets A, B, C, D;
  brx.idx %r3, TS;
A: mov.u32 %r4, 10; bra E;
B: mov.u32 %r4, 20; bra.uni E;
C: call (%r4), add3, (%r2, 5); bra E;
D: cvt.u64.u32 %rd3, %r2; mov.b128 %q1, {%rd3, %rd1}; mov.b128 %q2, %q1; mov.b128 {%rd4, %rd5}, %q2;
    cvt.u32.u64 %r4, %rd4;
E: alloca.u64 %rd6, 64, 16; st.local.u32 [%rd6+12], %r4; cvta.local.u64 %rd7, %rd6; ld.u32 %r5, [%rd7+12];
  { .reg .b32 t; L1: add.s32 t, %r5, 1; mov.u32 %r5, t; setp.lt.s32 %p1, %r5, 15; @%p1 bra L1; }
  { .reg .b32 t; L1: add.s32 t, %r5, 1; mov.u32 %r5, t; setp.lt.s32 %p1, %r5, 16; @%p1 bra L1; }
  st.global.u32 [%rd1], %r5;
  setp.gt.u32 %p2, %r2, 20;
  @%p2 exit;
  bar.sync 0;
  st.global.u32 [%rd1+256], %r4;
}
"""


@pytest.mark.simulator_only("the real compiler refuses some of this text, which the reader takes")
def test_text_that_no_compiler_wrote(newest: Runner) -> None:
    """Register parameters, a branch table, 128-bit registers, alloca, labels in scopes, a barrier after an exit."""
    out = newest.zeros((2, 64), np.int32)
    newest.gpu.launch(
        newest.gpu.load(WRITTEN), "k", (1, 1, 1), (32, 1, 1), [np.uint64(out.pointer).tobytes(), np.int32(1).tobytes()]
    )
    values = [[10, 20, i + 8, i][i & 3] for i in range(32)]
    np.testing.assert_array_equal(out.get()[0, :32], [max(16, max(15, v + 1) + 1) for v in values])
    np.testing.assert_array_equal(out.get()[1, :21], values[:21])
