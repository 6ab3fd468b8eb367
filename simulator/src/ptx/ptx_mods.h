// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The qualifiers of instructions (.s32, .rn, .global, ...).
#ifndef SIM_PTX_MODS_H
#define SIM_PTX_MODS_H

#include <stddef.h>
#include <stdint.h>

// Names first sorted by use: the order within the types follows ptx_type.
// clang-format off: many to a line
#define PTX_MODS(X) \
    X(b8, "b8") X(b16, "b16") X(b32, "b32") X(b64, "b64") X(b128, "b128") \
    X(u8, "u8") X(u16, "u16") X(u32, "u32") X(u64, "u64") \
    X(s8, "s8") X(s16, "s16") X(s32, "s32") X(s64, "s64") \
    X(f16, "f16") X(f16x2, "f16x2") X(bf16, "bf16") X(bf16x2, "bf16x2") X(f32, "f32") X(f64, "f64") X(f32x2, "f32x2") \
    X(pred, "pred") X(tf32, "tf32") X(e4m3x2, "e4m3x2") X(e5m2x2, "e5m2x2") X(u16x2, "u16x2") X(s16x2, "s16x2") \
    X(rn, "rn") X(rz, "rz") X(rm, "rm") X(rp, "rp") X(rni, "rni") X(rzi, "rzi") X(rmi, "rmi") X(rpi, "rpi") \
    X(rna, "rna") \
    X(global, "global") X(shared, "shared") X(shared_cta, "shared::cta") X(shared_cluster, "shared::cluster") \
    X(local, "local") X(const_, "const") X(param, "param") X(param_entry, "param::entry") X(param_func, "param::func") \
    X(ftz, "ftz") X(sat, "sat") X(satfinite, "satfinite") X(relu, "relu") X(NaN, "NaN") X(xorsign, "xorsign") \
    X(abs, "abs") \
    X(approx, "approx") X(full, "full") X(cc, "cc") X(lo, "lo") X(hi, "hi") X(wide, "wide") \
    X(eq, "eq") X(ne, "ne") X(lt, "lt") X(le, "le") X(gt, "gt") X(ge, "ge") X(ls, "ls") X(hs, "hs") \
    X(equ, "equ") X(neu, "neu") X(ltu, "ltu") X(leu, "leu") X(gtu, "gtu") X(geu, "geu") X(num, "num") X(nan, "nan") \
    X(and_, "and") X(or_, "or") X(xor_, "xor") X(popc, "popc") X(add, "add") X(min, "min") X(max, "max") X(inc, "inc") \
    X(dec, "dec") X(exch, "exch") X(cas, "cas") \
    X(weak, "weak") X(relaxed, "relaxed") X(acquire, "acquire") X(release, "release") X(acq_rel, "acq_rel") \
    X(sc, "sc") \
    X(volatile_, "volatile") X(mmio, "mmio") X(cta, "cta") X(cluster, "cluster") X(gpu, "gpu") X(sys, "sys") \
    X(gl, "gl") \
    X(v2, "v2") X(v4, "v4") X(v8, "v8") X(nc, "nc") X(ca, "ca") X(cg, "cg") X(cs, "cs") X(lu, "lu") X(cv, "cv") \
    X(wb, "wb") X(wt, "wt") \
    X(l1_normal, "L1::evict_normal") X(l1_last, "L1::evict_last") X(l1_first, "L1::evict_first") \
    X(l1_none, "L1::no_allocate") X(l1_unchanged, "L1::evict_unchanged") X(l2_64, "L2::64B") \
    X(l2_128, "L2::128B") X(l2_256, "L2::256B") \
    X(l2_hint, "L2::cache_hint") X(l2_last, "L2::evict_last") X(l2_normal, "L2::evict_normal") \
    X(l2_first, "L2::evict_first") \
    X(L1, "L1") X(L2, "L2") X(tensormap, "tensormap") \
    X(uni, "uni") X(to, "to") X(l, "l") X(r, "r") X(wrap, "wrap") X(clamp, "clamp") X(up, "up") X(down, "down") \
    X(bfly, "bfly") X(idx, "idx") X(all, "all") X(any, "any") X(ballot, "ballot") X(sync, "sync") X(arrive, "arrive") \
    X(red, "red") X(warp, "warp") X(aligned, "aligned") X(wait, "wait") X(noinc, "noinc") X(shiftamt, "shiftamt") \
    X(f4e, "f4e") X(b4e, "b4e") X(rc8, "rc8") X(ecl, "ecl") X(ecr, "ecr") X(rc16, "rc16") \
    X(finite, "finite") X(infinite, "infinite") X(number, "number") X(notanumber, "notanumber") \
    X(normal, "normal") X(subnormal, "subnormal") \
    X(async_, "async") X(commit_group, "commit_group") X(wait_group, "wait_group") X(wait_all, "wait_all") \
    X(mbarrier, "mbarrier") \
    X(init, "init") X(inval, "inval") X(arrive_drop, "arrive_drop") X(test_wait, "test_wait") X(try_wait, "try_wait") \
    X(expect_tx, "expect_tx") X(complete_tx, "complete_tx") X(noComplete, "noComplete") X(parity, "parity") \
    X(pending_count, "pending_count") \
    X(proxy, "proxy") X(alias, "alias") X(launch_dependents, "launch_dependents") X(generic, "generic") \
    X(mbarrier_init, "mbarrier_init") X(level, "level") X(elect, "elect") X(bulk, "bulk") X(oob, "oob") \
    X(tensor, "tensor") X(tile, "tile") X(im2col, "im2col") X(im2col_no_offs, "im2col_no_offs") \
    X(bulk_group, "bulk_group") \
    X(mbarrier_bytes, "mbarrier::complete_tx::bytes") X(multicast, "multicast::cluster") X(reduce, "reduce") \
    X(read, "read") X(prefetch, "prefetch") \
    X(async_shared_cta, "async.shared::cta") X(noftz, "noftz") X(clc, "clc") \
    X(geom_1d, "1d") X(geom_2d, "2d") X(geom_3d, "3d") X(geom_4d, "4d") X(geom_5d, "5d") X(geom_a1d, "a1d") \
    X(geom_a2d, "a2d") X(geom_cube, "cube") \
    X(geom_acube, "acube") X(base, "base") X(grad, "grad") X(g, "g") X(b, "b") X(a, "a") X(p, "p") \
    X(trap, "trap") X(zero, "zero") \
    X(width, "width") X(height, "height") X(depth, "depth") X(channel_data_type, "channel_data_type") \
    X(channel_order, "channel_order") X(normalized_coords, "normalized_coords") X(array_size, "array_size") \
    X(num_mipmap_levels, "num_mipmap_levels") X(num_samples, "num_samples") X(memory_layout, "memory_layout")
// clang-format on

typedef enum ptx_mod {
    M_NONE,
#define X(id, text) M_##id,
    PTX_MODS(X)
#undef X
        M_COUNT
} ptx_mod;

#define M_FIRST_TYPE M_b8
#define M_LAST_TYPE M_s16x2

uint16_t mod_find(const char *name, size_t len);  // M_NONE if unknown
const char *mod_name(uint16_t mod);

#endif
