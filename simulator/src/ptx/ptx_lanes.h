// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// How handlers of common instructions are written, so that they run all lanes of a warp in vector registers.
//
// The work is a function NAME_body that is always inlined; TWINS(NAME) makes two handlers of it. NAME runs on every
// processor. NAME_wide is compiled for x86-64 processors with AVX2, FMA and F16C, and takes the place of NAME when code
// is decoded on one (ptx_widest). Both compute the same to the bit: nothing is reordered, contracted or approximated.
// The body is told by its constant argument `wide` which one it is in.
//
// The rest of the simulated driver is compiled for size. LANES_BEGIN and LANES_END stand around what is compiled for
// speed.
#ifndef SIM_PTX_LANES_H
#define SIM_PTX_LANES_H

#include "ptx/ptx_exec.h"

// No flag of a floating-point exception is ever looked at, so lanes that are not active may compute too.
#define LANES_BEGIN \
    _Pragma("GCC push_options") _Pragma( \
        "GCC optimize(\"O2\", \"tree-vectorize\", \"vect-cost-model=dynamic\", \"fp-contract=off\", \"no-trapping-math\")")
#define LANES_END _Pragma("GCC pop_options")

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define HAS_WIDE 1
#define WIDE_TARGET __attribute__((target("avx2,fma,f16c,bmi,bmi2,popcnt")))

typedef struct handler_twins {
    exec_fn plain, wide;
} handler_twins;

// All twins are collected in one section, whose ends the linker knows.
#define ARE_TWINS(name) \
    static handler_twins name##_twins __attribute__((used, section("ptx_twins"))) = {name, name##_wide};
#define TWINS(name) \
    static step name(warp *w, const insn *in, uint32_t m) { return name##_body(w, in, m, 0); } \
    WIDE_TARGET static step name##_wide(warp *w, const insn *in, uint32_t m) { return name##_body(w, in, m, 1); } \
    ARE_TWINS(name)
#define PUBLIC_TWINS(name) \
    step name(warp *w, const insn *in, uint32_t m) { return name##_body(w, in, m, 0); } \
    WIDE_TARGET static step name##_wide(warp *w, const insn *in, uint32_t m) { return name##_body(w, in, m, 1); } \
    ARE_TWINS(name)
#else
#define HAS_WIDE 0
#define TWINS(name) \
    static step name(warp *w, const insn *in, uint32_t m) { return name##_body(w, in, m, 0); }
#define PUBLIC_TWINS(name) \
    step name(warp *w, const insn *in, uint32_t m) { return name##_body(w, in, m, 0); }
#endif

// The handler that this processor runs fastest.
exec_fn ptx_widest(exec_fn run);
int ptx_is_wide(void);

// Bit l in element l.
extern const uint32_t ptx_lane_bit[WARP];
extern const uint64_t ptx_lane_bit64[WARP];

// So few lanes that one at a time is faster. Without vectors that is any number but all.
INLINE int are_few(uint32_t m, const int wide)
{
    if (!wide)
        return m != FULL;
    m &= m - 1, m &= m - 1, m &= m - 1;
    return (m & (m - 1)) == 0;
}

// Moves the results of the lanes of m from the warp's temporary into a register.
void ptx_merge(const warp *w, uint64_t *d, uint32_t m);

// Runs a statement for every lane of m that sets o[l], with the lane in l. Other lanes may compute, and are not
// changed.
#define EACH_LANE(...) \
    do { \
        uint64_t *o = d; \
        if (__builtin_expect(m != FULL, 0)) { \
            if (are_few(m, wide)) { \
                for (uint32_t left_ = m; left_; left_ &= left_ - 1) { \
                    unsigned l = (unsigned)__builtin_ctz(left_); \
                    __VA_ARGS__ \
                } \
                break; \
            } \
            o = w->temp; \
        } \
        _Pragma("GCC ivdep") for (unsigned l = 0; l < WARP; l++) { __VA_ARGS__ } \
        if (__builtin_expect(m != FULL, 0)) \
            ptx_merge(w, d, m); \
    } while (0)

// The same for operands and results of 32 bits, of type T: sets o[i], with the lane's lower half at i. The vectors
// compute with the upper halves too, and put there what nobody reads: that takes less time than leaving them out.
#define EACH_WORD(T, ...) \
    do { \
        T *o = (T *)d; \
        if (__builtin_expect(m != FULL, 0)) { \
            if (are_few(m, wide)) { \
                for (uint32_t left_ = m; left_; left_ &= left_ - 1) { \
                    unsigned i = 2 * (unsigned)__builtin_ctz(left_); \
                    __VA_ARGS__ \
                } \
                break; \
            } \
            o = (T *)w->temp; \
        } \
        _Pragma("GCC ivdep") for (unsigned i = 0; i < 2 * WARP; i++) { __VA_ARGS__ } \
        if (__builtin_expect(m != FULL, 0)) \
            ptx_merge(w, d, m); \
    } while (0)

typedef uint32_t u32_word __attribute__((may_alias));
typedef int32_t s32_word __attribute__((may_alias));
typedef float f32_word __attribute__((may_alias));

// Dissolves the group: its lanes of m are at `pc` of its frame from now on, which other lanes are not told of.
INLINE void leave_group(warp *w, uint32_t m, uint32_t pc)
{
    uint32_t frame = w->frame, steps = (uint32_t)w->steps;
    _Pragma("GCC ivdep") for (unsigned l = 0; l < WARP; l++)
    {
        int leaves = (m & ptx_lane_bit[l]) != 0;
        w->lane_pc[l] = leaves ? pc : w->lane_pc[l];
        w->lane_frame[l] = leaves ? frame : w->lane_frame[l];
        w->last_run[l] = leaves ? steps : w->last_run[l];
    }
}

#define LANES1(name, T, expr) \
    INLINE step name##_body(warp *w, const insn *in, uint32_t m, const int wide) \
    { \
        uint64_t *d = dst(w, in->d); \
        const uint64_t *A = src(w, in->a); \
        EACH_LANE(T a = (T)A[l]; o[l] = (uint64_t)(expr);); \
        return ST_NEXT; \
    } \
    TWINS(name)

#define LANES2(name, T, U, expr) \
    INLINE step name##_body(warp *w, const insn *in, uint32_t m, const int wide) \
    { \
        uint64_t *d = dst(w, in->d); \
        const uint64_t *A = src(w, in->a), *B = src(w, in->b); \
        EACH_LANE(T a = (T)A[l]; U b = (U)B[l]; o[l] = (uint64_t)(expr);); \
        return ST_NEXT; \
    } \
    TWINS(name)

#define LANES3(name, T, U, V, expr) \
    INLINE step name##_body(warp *w, const insn *in, uint32_t m, const int wide) \
    { \
        uint64_t *d = dst(w, in->d); \
        const uint64_t *A = src(w, in->a), *B = src(w, in->b), *C = src(w, in->c); \
        EACH_LANE(T a = (T)A[l]; U b = (U)B[l]; V c = (V)C[l]; o[l] = (uint64_t)(expr);); \
        return ST_NEXT; \
    } \
    TWINS(name)

#define WORDS1(name, T, expr) \
    INLINE step name##_body(warp *w, const insn *in, uint32_t m, const int wide) \
    { \
        uint64_t *d = dst(w, in->d); \
        const T *A = (const T *)src(w, in->a); \
        EACH_WORD(T, T a = A[i]; o[i] = (expr);); \
        return ST_NEXT; \
    } \
    TWINS(name)

#define WORDS2(name, T, expr) \
    INLINE step name##_body(warp *w, const insn *in, uint32_t m, const int wide) \
    { \
        uint64_t *d = dst(w, in->d); \
        const T *A = (const T *)src(w, in->a), *B = (const T *)src(w, in->b); \
        EACH_WORD(T, T a = A[i]; T b = B[i]; o[i] = (expr);); \
        return ST_NEXT; \
    } \
    TWINS(name)

#define WORDS3(name, T, expr) \
    INLINE step name##_body(warp *w, const insn *in, uint32_t m, const int wide) \
    { \
        uint64_t *d = dst(w, in->d); \
        const T *A = (const T *)src(w, in->a), *B = (const T *)src(w, in->b), *C = (const T *)src(w, in->c); \
        EACH_WORD(T, T a = A[i]; T b = B[i]; T c = C[i]; o[i] = (expr);); \
        return ST_NEXT; \
    } \
    TWINS(name)

#if HAS_WIDE
// A wide handler of its own for a plain one: `expr` of four lanes of a and b, and of c.
#define WIDE3(name, expr) \
    WIDE_TARGET static step name##_wide(warp *w, const insn *in, uint32_t m) \
    { \
        uint64_t *d = dst(w, in->d), *o = m == FULL ? d : w->temp; \
        const uint64_t *A = src(w, in->a), *B = src(w, in->b), *C = in->c == NO_OPERAND ? B : src(w, in->c); \
        if (m != FULL && are_few(m, 1)) \
            return name(w, in, m); \
        for (unsigned l = 0; l < WARP; l += 4) { \
            __m256i a = _mm256_loadu_si256((const __m256i *)(A + l)), \
                    b = _mm256_loadu_si256((const __m256i *)(B + l)); \
            __m256i c = _mm256_loadu_si256((const __m256i *)(C + l)); \
            (void)c; \
            _mm256_storeu_si256((__m256i *)(o + l), (expr)); \
        } \
        if (m != FULL) \
            ptx_merge(w, d, m); \
        return ST_NEXT; \
    } \
    ARE_TWINS(name)
#else
#define WIDE3(name, expr)
#endif

#endif
