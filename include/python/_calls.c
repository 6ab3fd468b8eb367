// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The functions of cuda_core_cffi/_core/python_calls.py for CPython. Everything else is CFFI.
//
// A CFFI function takes a tuple from two arguments on, and an object whose class has __del__ costs a call of a Python
// function and one more crossing when it goes, closed or not. Where the driver needs 400 ns for a pair of calls, these
// are as much again. So the calls that make, close and release objects, and those that programs make most, are here,
// over the same helpers (ccc_calls.h); an object that was closed goes without a crossing.
//
// Methods and functions that programs call are natives (ccc_native.h). The other functions here are called by Python of
// this package; None says that nothing was done because the arguments are not usual.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "python/ccc_buffers.h"
#include "python/ccc_devices.h"
#include "python/ccc_launches.h"
#include "python/ccc_queue.h"

// Store in an owner the handle that a function of CFFI returns. The interpreter runs no signal handler between the two.
// Returns 1, 0 where the function returns NULL, and -1 with an error set, also if the owner has a handle already.
static int fill_owner(PyObject *self, PyObject *const *function, Py_ssize_t count)
{
    helpers->set_making(1);
    PyObject *cdata = PyObject_Vectorcall(function[0], function + 1, (size_t)count - 1, NULL);
    helpers->set_making(0);
    ccc_handle *handle = cdata ? (ccc_handle *)to_pointer(cdata, handle_ctype) : NULL;
    if (handle == NULL) {
        Py_XDECREF(cdata);
        return PyErr_Occurred() ? -1 : 0;
    }
    int stored;
    Py_BEGIN_CRITICAL_SECTION(self);  // as the member that shows it is read in
    stored = HANDLE(self) == NULL;
    if (stored) {
        __atomic_store_n(&((owner *)self)->cdata, cdata, __ATOMIC_RELEASE);
        __atomic_store_n(&((owner *)self)->handle, handle, __ATOMIC_RELEASE);
    }
    Py_END_CRITICAL_SECTION();
    if (stored)
        return 1;
    Py_BEGIN_ALLOW_THREADS helpers->release_object(handle);
    Py_END_ALLOW_THREADS Py_DECREF(cdata);
    PyErr_SetString(PyExc_RuntimeError, "the object was initialised by another thread");
    return -1;
}

static PyObject *calls_make(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (count < 2)
        return PyErr_Format(PyExc_TypeError, "make takes at least 2 arguments, not %zd", count);
    if (check_class(arguments[0]))
        return NULL;
    PyObject *self = PyType_GenericAlloc((PyTypeObject *)arguments[0], 0);
    int result = self ? fill_owner(self, arguments + 1, count - 1) : -1;
    if (result == 1)
        return self;
    Py_XDECREF(self);
    return result ? NULL : Py_NewRef(Py_None);
}

static PyObject *calls_make_in(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (count < 2)
        return PyErr_Format(PyExc_TypeError, "make_in takes at least 2 arguments, not %zd", count);
    if (check_class((PyObject *)Py_TYPE(arguments[0])))
        return NULL;
    if (HANDLE(arguments[0]))
        return PyErr_Format(PyExc_TypeError, "the object has a handle already");
    int result = fill_owner(arguments[0], arguments + 1, count - 1);
    return result < 0 ? NULL : PyBool_FromLong(result);
}

// What object.__new__ does for classes written in Python, without a tuple of arguments.
static PyObject *calls_new_object(PyObject *module, PyObject *class)
{
    if (!PyType_Check(class) || !PyType_HasFeature((PyTypeObject *)class, Py_TPFLAGS_HEAPTYPE) ||
        PyType_HasFeature((PyTypeObject *)class, Py_TPFLAGS_IS_ABSTRACT))
        return PyObject_CallMethod((PyObject *)&PyBaseObject_Type, "__new__", "O", class);
    return PyType_GenericAlloc((PyTypeObject *)class, 0);
}

static PyObject *calls_close(PyObject *module, PyObject *argument)
{
    int closed;
    ccc_handle *handle = handle_or_error(argument);
    if (handle == NULL)
        return NULL;
    int waiting = close_handle(handle, &closed);
    if (waiting && report(waiting, 3))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *calls_close_once(PyObject *module, PyObject *argument)
{
    int closed;
    ccc_handle *handle = handle_or_error(argument);
    if (handle == NULL)
        return NULL;
    close_handle(handle, &closed);
    return PyBool_FromLong(closed);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define FAST(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL

static native *const natives[] = {
    &native_buffer_close,         &native_buffer_copy_from, &native_buffer_copy_to,      &native_buffer_dlpack,
    &native_buffer_dlpack_device, &native_buffer_fill,      &native_device_create_event, &native_device_create_stream,
    &native_device_set_current,   &native_event_is_done,    &native_event_rsub,          &native_event_sub,
    &native_event_sync,           &native_graph_launch,     &native_launch_usual,        &native_pool_allocate,
    &native_stream_record,        &native_stream_sync,      &native_stream_wait,
};

// lift(body, failed): put the native of the same qualified name before a function or property.
static PyObject *calls_lift(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (check_count("lift", count, 2))
        return NULL;
    PyObject *body = PyObject_TypeCheck(arguments[0], &PyProperty_Type) ? PyObject_GetAttrString(arguments[0], "fget")
                                                                        : Py_NewRef(arguments[0]);
    PyObject *name = body ? PyObject_GetAttrString(body, "__qualname__") : NULL, *made = NULL;
    size_t index = 0;
    while (name && index < COUNT(natives) && PyUnicode_CompareWithASCIIString(name, natives[index]->name))
        ++index;
    if (name && index == COUNT(natives))
        PyErr_Format(PyExc_RuntimeError, "nothing in C has the name %R", name);
    else if (name)
        made = lift_body(natives[index], body, arguments[1]);
    Py_XDECREF(body);
    Py_XDECREF(name);
    return made;
}

static PyMethodDef methods[] = {
    {"make", FAST(calls_make),
     "make(cls, function, /, *arguments)\n--\n\nReturn an object for the handle that a function makes, or None."},
    {"make_in", FAST(calls_make_in),
     "make_in(owner, function, /, *arguments)\n--\n\nGive an object the handle that a function makes."},
    {"new_object", calls_new_object, METH_O, "new_object(cls, /)\n--\n\nReturn an object with nothing set."},
    {"close", calls_close, METH_O, "close(owner, /)\n--\n\nClose, and show failures of cleanup."},
    {"close_once", calls_close_once, METH_O, "close_once(owner, /)\n--\n\nClose, and tell whether this call did."},
    {"thread_devices", calls_thread_devices, METH_NOARGS,
     "thread_devices()\n--\n\nReturn the devices of this thread by their ordinals."},
    {"make_packer", FAST(calls_make_packer),
     "make_packer(slots, target, /)\n--\n\nReturn what packs a kernel's arguments."},
    {"launch", FAST(calls_launch), "launch(packer, stream, native, values, /)\n--\n\nLaunch a kernel."},
    {"pack", FAST(calls_pack), "pack(packer, values, /)\n--\n\nReturn the packed arguments."},
    {"prepare", FAST(calls_prepare), "prepare(slots, native, plan, /)\n--\n\nReturn a prepared launch's functions."},
    {"lift", FAST(calls_lift), "lift(body, failed, /)\n--\n\nPut C before a function or property."},
    {NULL, NULL, 0, NULL},
};

// The names that are looked for, and CFFI's types.
static const struct {
    PyObject **place;
    const char *text;
} interned[] =
    {
        {&allocates_name, "_BUFFER"},
        {&captured_name, "_captured"},
        {&device_name, "_dlpack_device"},
        {&devices_name, "cuda_core_cffi.devices"},
        {&find_name, "_find"},
        {&referenced_name, "_keep"},
        {&keywords[COPY], "copy"},
        {&keywords[DL_DEVICE], "dl_device"},
        {&keywords[MAX_VERSION], "max_version"},
        {&keywords[STREAM], "stream"},
        {&native_name, "_native_cache"},
        {&owner_name, "_owner"},
        {&packer_name, "_fast_packer"},
        {&resource_name, "_mr"},
        {&stream_behind_name, "_stream"},
        {&value_name, "value"},
    },
  ctypes[] = {
      {&config_ctype, "ccc_config *"},
      {&handle_ctype, "ccc_handle *"},
      {&plan_ctype, "ccc_plan *"},
      {&target_ctype, "ccc_target *"},
  };

// Set all of them, and what is taken from modules in Python. -1: an error is set.
static int find_all(PyObject *ffi)
{
    for (size_t index = 0; index < COUNT(interned); ++index)
        if ((*interned[index].place = PyUnicode_InternFromString(interned[index].text)) == NULL)
            return -1;
    for (size_t index = 0; index < COUNT(ctypes); ++index)
        if ((*ctypes[index].place = PyObject_CallMethod(ffi, "typeof", "s", ctypes[index].text)) == NULL)
            return -1;
    check_cleanup = find("cuda_core_cffi._core.errors", "check_cleanup");
    last_failure = check_cleanup ? find("cuda_core_cffi._core.errors", "last_failure") : NULL;
    return last_failure ? 0 : -1;
}

static int calls_exec(PyObject *module)
{
    if (ccc_refuse_second_import("cuda_core_cffi._calls"))
        return -1;
    PyObject *ffi = find("cuda_core_cffi._cuda", "ffi"), *lib = find("cuda_core_cffi._cuda", "lib");
    PyObject *address = ffi && lib && find_all(ffi) == 0 ? PyObject_CallMethod(lib, "ccc_calls_get", NULL) : NULL;
    helpers = address ? PyLong_AsVoidPtr(address) : NULL;
    Py_XDECREF(ffi);
    Py_XDECREF(lib);
    Py_XDECREF(address);
    if (helpers == NULL)
        return -1;
    gil_of_all = helpers->gil;
    *(void **)&from_pointer = helpers->from_pointer;
    *(void **)&to_pointer = helpers->to_pointer;
    if ((owner_type = add_type(module, &owner_spec, NULL)) == NULL ||
        (memory_type = add_type(module, &memory_spec, owner_type)) == NULL ||
        (operand_type = add_type(module, &operand_spec, owner_type)) == NULL ||
        (finder_type = add_type(module, &finder_spec, NULL)) == NULL ||
        (packer_type = (PyTypeObject *)PyType_FromSpec(&packer_spec)) == NULL ||
        (lift_type = (PyTypeObject *)PyType_FromSpec(&lift_spec)) == NULL)
        return -1;
    ccc_import_done();
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, calls_exec},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_calls", "The calls that programs make most.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__calls(void) { return PyModuleDef_Init(&definition); }
