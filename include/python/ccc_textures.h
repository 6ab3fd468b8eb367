// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Arrays, textures and surfaces, for _calls.c: made as objects of Python in one call.
#ifndef CCC_TEXTURES_H
#define CCC_TEXTURES_H

#include "python/ccc_packer.h"

static PyObject *shape_ctype, *resource_ctype, *sampling_ctype;

static PyObject *calls_create_array(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    int device;
    ccc_handle *handle;
    (void)module;
    if (check_count("create_array", count, 3) || check_class(arguments[0]) || read_integers(arguments + 1, 1, &device))
        return NULL;
    const struct CUDA_ARRAY3D_DESCRIPTOR_st *shape = pointer_of(arguments[2], shape_ctype);
    if (shape == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS handle = helpers->array_create(device, shape);
    Py_END_ALLOW_THREADS return own_handle(arguments[0], handle);
}

// create_texture(cls, device, resource, keep, what, how).
static PyObject *calls_create_texture(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    int device;
    ccc_handle *handle;
    (void)module;
    if (check_count("create_texture", count, 6) || check_class(arguments[0]) ||
        read_integers(arguments + 1, 1, &device))
        return NULL;
    ccc_handle *resource = handle_or_error(arguments[2]);
    const struct CUDA_RESOURCE_DESC_st *what = resource ? pointer_of(arguments[4], resource_ctype) : NULL;
    const struct CUDA_TEXTURE_DESC_st *how = what ? (void *)to_pointer(arguments[5], sampling_ctype) : NULL;
    int keep = what ? PyObject_IsTrue(arguments[3]) : -1;
    if (keep < 0 || (how == NULL && PyErr_Occurred()))
        return NULL;
    int held = hold(resource);  // else the helper says that it is closed
    Py_BEGIN_ALLOW_THREADS handle = helpers->texture_create(device, resource, keep, what, how);
    Py_END_ALLOW_THREADS if (held) let_go(resource);
    return own_handle(arguments[0], handle);
}

#endif
