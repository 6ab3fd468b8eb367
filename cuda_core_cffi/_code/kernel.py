# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels: functions that a device runs, what they need, and how many fit."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

from cuda_core_cffi._code.mangling import Kind, kinds_from_ptx, kinds_from_symbol, merge_kinds, readable_name
from cuda_core_cffi._code.occupancy import KernelOccupancy, bounded
from cuda_core_cffi._core.answers import attribute, setting
from cuda_core_cffi._core.calls import make
from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.errors import CUDAError, UnavailableError, check, failure, last_failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import Handle, InUse
from cuda_core_cffi._core.integers import address_of, integer
from cuda_core_cffi._core.registry import registry

_handle = lib.ccc_handle_value
_parameter = lib.ccc_kernel_parameter
_current_device = lib.ccc_current_device

HIGHEST_CARVEOUT = 100  # percent
MOST_SHARED = 64  # packers of one kernel
_NO_CURRENT_DEVICE = -1  # what ccc_current_device returns when there is no failure either


class ParamInfo(NamedTuple):
    """Where a parameter of a kernel lies in its parameter buffer."""

    offset: int
    """Bytes from the start of the buffer."""
    size: int
    """Bytes."""


class KnownKernel:
    """What all objects for one kernel of a library share, once the first of them has found it."""

    __slots__ = ("kinds", "layout", "packers")

    def __init__(self) -> None:
        # What the properties of kernels return, in a tuple; None: not asked yet.
        self.kinds: tuple[tuple[Kind, ...] | None] | None = None
        self.layout: tuple[tuple[ParamInfo, ...] | None] | None = None
        # Of other objects, which may be gone: what they know of the parameters is taken, the kernel is not.
        self.packers: dict[tuple[type, ...], Any] = {}


class Library(Handle):
    """Code that the driver has loaded: what its kernels keep alive."""

    __slots__ = ("_kernels", "_log", "_names", "_ptx")

    _CTYPE = "CUlibrary"
    _MADE_BY = "ObjectCode"
    _kernels: dict[str, KnownKernel]  # by symbol
    _log: bytes  # driver 580 reports errors in PTX when a kernel is asked for, and logs them when it loads
    _names: dict[str, str]  # the name expressions that the code was compiled with, by symbol
    _ptx: bytes | None

    def _share(self) -> Library:
        """Return another object of the same code, which keeps it loaded after this one is closed."""
        return Library._made_by(lib.ccc_view, self._c_handle)


@runtime_checkable
class LoadableCode(Protocol):
    """What a kernel can belong to: an :class:`ObjectCode`."""

    def _load(self) -> Library: ...


class Kernel(Handle):
    """A function that a device runs.

    Kernels come from :meth:`ObjectCode.get_kernel`. A kernel keeps the code it belongs to loaded. Two objects for the
    same kernel are equal.

    Examples
    --------
    >>> kernel = code.get_kernel("store")
    >>> kernel.name, kernel.num_arguments
    ('store', 2)
    >>> grid, block = kernel.occupancy.max_potential_block_size(0, 0)
    >>> block <= kernel.attributes.max_threads_per_block
    True
    >>> kernel.close()
    """

    __slots__ = (
        "_attribute_cache",
        "_fast_packer",
        "_known",
        "_library",
        "_packer",
        "_packers",
        "_symbol",
    )  # fmt: skip

    _CTYPE = "CUkernel"
    _MADE_BY = "ObjectCode.get_kernel or Kernel.from_handle"
    # A dictionary takes 64 bytes even when it is empty: each is made when there is something to put into it.
    _attribute_cache: dict[tuple[int, int], int] | None
    _packers: dict[tuple[type, ...], Any] | None  # launch keeps them here, by the arguments' types
    _known: KnownKernel
    _library: Library | None
    _packer: Any  # that which the last launch, or node, looked for; None before the first
    _fast_packer: Any  # that of the packer
    _symbol: str | None

    def __repr__(self) -> str:
        try:
            return f"<Kernel handle={self._driver_handle:#x} name={self.name!r}>"
        except (CUDAError, RuntimeError):  # closed, and the name was never asked for; or an old driver
            return f"<Kernel handle={self._driver_handle:#x}>"

    @staticmethod
    def from_handle(handle: Any, mod: LoadableCode | None = None) -> Kernel:
        """Wrap a kernel by its handle.

        Parameters
        ----------
        handle : int
            Its address (``CUkernel``), or a CFFI pointer.
        mod : ObjectCode, optional
            The code that the kernel belongs to, which is then kept loaded. By default the kernel keeps its code loaded
            if it comes from :meth:`ObjectCode.get_kernel`; that of another library its owner has to keep.

        Returns
        -------
        Kernel
            The kernel.

        Raises
        ------
        TypeError
            If the handle is no integer, or `mod` no object code.
        ValueError
            If the handle is 0, or that of a kernel of other object code than `mod`.
        """
        if isinstance(handle, bool):
            raise TypeError("a kernel handle must be an int or a CFFI pointer, not bool")
        address = address_of(handle, "kernel")
        if address == 0:
            raise ValueError("a kernel handle must not be 0")
        if mod is not None and not isinstance(mod, LoadableCode):
            raise TypeError(f"mod must be an ObjectCode or None, not {type(mod).__name__}")
        library = None if mod is None else mod._load()
        parent = ffi.NULL if library is None else library._c_handle
        kernel = make(Kernel, lib.ccc_kernel_borrow, address, parent)
        if kernel is None:
            if lib.ccc_last_status() == lib.CCC_OTHER_LIBRARY:
                raise ValueError(f"the kernel {address:#x} belongs to other object code than {mod!r}")
            raise last_failure()
        return kernel._of_library(library, None)

    @property
    def attributes(self) -> KernelAttributes:
        """What the kernel needs, on the current device; ``attributes[device]`` on another."""
        return KernelAttributes._create(self, None)

    @property
    def occupancy(self) -> KernelOccupancy:
        """How many blocks of the kernel fit on the current device."""
        return KernelOccupancy._create(self)

    @property
    def name(self) -> str:
        """The name in the source: the name expression that the code was compiled with, as ``"scale<float>"``, or else
        the function's name with its namespaces, as ``"ns::scale"``.

        Raises
        ------
        UnavailableError
            If the kernel comes from :meth:`from_handle`, and the driver is older than CUDA 12.3.
        """
        symbol = self.mangled_name
        known = {} if self._library is None else self._library._names
        return known.get(symbol) or readable_name(symbol)

    @property
    def mangled_name(self) -> str:
        """The symbol, as ``"_Z5scaleIfEvPT_"``; of an ``extern "C"`` kernel it is the same as :attr:`name`.

        Raises
        ------
        UnavailableError
            If the kernel comes from :meth:`from_handle`, and the driver is older than CUDA 12.3.
        """
        if self._symbol is None:
            out = ffi.new("const char **")
            with InUse(self):
                check(lib.cuKernelGetName(out, self._function()), "cuKernelGetName")
                self._symbol = ffi.string(out[0]).decode()
        return self._symbol

    @property
    def num_arguments(self) -> int:
        """The number of arguments that the kernel takes.

        Raises
        ------
        UnavailableError
            If the driver is older than CUDA 12.4 and cannot tell.
        """
        return len(self.arguments_info)

    @property
    def arguments_info(self) -> list[ParamInfo]:
        """Offset and size of each argument, in bytes.

        Raises
        ------
        UnavailableError
            If the driver is older than CUDA 12.4 and cannot tell.
        """
        self._function()  # raises if it is closed
        layout = self._layout
        return list(self._query_layout() if layout is None else layout)

    @property
    def _layout(self) -> tuple[ParamInfo, ...] | None:
        """Offset and size of each parameter, or None with a driver older than CUDA 12.3."""
        known = self._known
        if known.layout is None:
            try:
                known.layout = (self._query_layout(),)
            except UnavailableError:
                known.layout = (None,)
        return known.layout[0]

    @property
    def _kinds(self) -> tuple[Kind, ...] | None:
        """The kind of each parameter (see ``_mangling``), or None where not even their number is known."""
        if self._known.kinds is None:
            self._known.kinds = (self._infer_kinds(),)
        return self._known.kinds[0]

    def _of_library(self, library: Library | None, symbol: str | None) -> Self:
        """Complete a new object: with its library and its symbol there, if they are known."""
        self._library, self._symbol = library, symbol
        if library is None or symbol is None:
            self._known = KnownKernel()
        else:
            self._known = library._kernels.get(symbol) or library._kernels.setdefault(symbol, KnownKernel())
        self._attribute_cache = self._packers = None
        self._packer = self._fast_packer = None
        return self

    def _find_packer(self, types: tuple[type, ...]) -> Any:
        """Return the packer for arguments of these types, and try it first from now on; None where there is none."""
        packer = self._packers.get(types) if self._packers else None
        if packer is None:
            like = self._known.packers.get(types)
            if like is None or self._layout is None:
                return None
            packer = like.retarget(self._c_handle)
            self._keep_packer(types, packer)
        self._packer, self._fast_packer = packer, packer.fast
        return packer

    def _keep_packer(self, types: tuple[type, ...], packer: Any) -> None:
        """Keep a packer for arguments of these types."""
        if self._packers is None:
            self._packers = {}
        self._packers[types] = packer

    def _set_packer(self, types: tuple[type, ...], packer: Any) -> None:
        """Keep a packer for arguments of these types, and try it first from now on."""
        self._keep_packer(types, packer)
        if len(self._known.packers) < MOST_SHARED:  # they live as long as the code, and so do the types
            self._known.packers.setdefault(types, packer)
        self._packer, self._fast_packer = packer, packer.fast

    def _function(self, ctype: str = "CUkernel") -> Any:
        """Return the driver's handle for a call; the driver takes a CUkernel for a CUfunction."""
        handle = _handle(self._c_handle)
        if not handle:
            raise RuntimeError("this Kernel is closed")
        return ffi.cast(ctype, handle)

    def _query_layout(self) -> tuple[ParamInfo, ...]:
        self._function()
        out = ffi.new("size_t[2]")
        layout: list[ParamInfo] = []
        while (status := _parameter(self._c_handle, len(layout), out, out + 1)) == 0:
            layout.append(ParamInfo(out[0], out[1]))
        if status != lib.CUDA_ERROR_INVALID_VALUE:
            raise self._failure(status)
        return tuple(layout)

    def _find_symbol(self) -> str | None:
        """Return the symbol, or None where the driver cannot tell."""
        try:
            return self.mangled_name
        except CUDAError:  # it is older than CUDA 12.3
            return None

    def _infer_kinds(self) -> tuple[Kind, ...] | None:
        symbol = self._find_symbol()
        declared = None
        if self._library is not None and self._library._ptx is not None and symbol:
            declared = kinds_from_ptx(self._library._ptx.decode(errors="replace"), symbol)
        kinds = merge_kinds(kinds_from_symbol(symbol) if symbol else None, declared)
        layout = self._layout
        if layout is None or (kinds is not None and len(kinds) == len(layout)):
            return kinds
        return (None,) * len(layout)


class KernelAttributes(Uncopyable):
    """What a kernel needs on a device.

    :attr:`max_dynamic_shared_size_bytes` and :attr:`preferred_shared_memory_carveout` can be assigned: for
    the kernel on that device, whichever object shows it.

    :attr:`Kernel.attributes` means the device that is current when an attribute is read; an index gives a view for
    a certain one: ``kernel.attributes[1].num_regs``. The views of one kernel share the values that they have read.
    """

    __slots__ = ("_device", "_kernel")

    _NOT_COPIED_BECAUSE = "it shows a kernel of this process"
    _PREFIX = "CU_FUNC_ATTRIBUTE_"
    _kernel: Kernel
    _device: int | None

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError("KernelAttributes cannot be constructed directly; use Kernel.attributes")

    def __getitem__(self, device: Any) -> KernelAttributes:
        """Return the view for a device.

        Parameters
        ----------
        device : Device or int
            The device, or its ordinal.

        Returns
        -------
        KernelAttributes
            The view.

        Raises
        ------
        TypeError
            If `device` is neither.
        ValueError
            If the ordinal is negative.
        """
        return KernelAttributes._create(self._kernel, bounded(_ordinal(device), "device", 0))

    __iter__: ClassVar[None] = None  # __getitem__ alone would make it iterable, without an end

    max_threads_per_block = attribute(int, "The most threads that a block of the kernel may have.")
    shared_size_bytes = attribute(int, "Static shared memory of a block, in bytes.")
    const_size_bytes = attribute(int, "Constant memory that the kernel needs, in bytes.")
    local_size_bytes = attribute(int, "Local memory of a thread, in bytes.")
    num_regs = attribute(int, "Registers of a thread.")
    ptx_version = attribute(int, "The architecture of the PTX the kernel comes from: 90 is 9.0.")
    binary_version = attribute(int, "The architecture of the machine code: 90 is 9.0.")
    cache_mode_ca = attribute(bool, "Whether global loads are cached in L1 (``-Xptxas --dlcm=ca``).")
    max_dynamic_shared_size_bytes = setting(
        int,
        "The most dynamic shared memory that a launch may ask for, in bytes. Launches and nodes that ask for more "
        "raise it. Assigning more than the device has is a ValueError.",
        lasting=False,
    )
    preferred_shared_memory_carveout = setting(
        int,
        "The share of the L1 cache that is preferred as shared memory, in percent; -1 for the default.",
        lasting=False,
    )
    cluster_size_must_be_set = attribute(bool, "Whether a launch must give the size of a cluster.")
    required_cluster_width = attribute(int, "The width that clusters must have, in blocks; 0 for any.", lasting=False)
    required_cluster_height = attribute(int, "The height that clusters must have, in blocks; 0 for any.", lasting=False)
    required_cluster_depth = attribute(int, "The depth that clusters must have, in blocks; 0 for any.", lasting=False)
    non_portable_cluster_size_allowed = attribute(
        bool, "Whether clusters may be larger than every device allows.", lasting=False
    )
    cluster_scheduling_policy_preference = attribute(
        int, "How the blocks of a cluster are spread (``CUclusterSchedulingPolicy``).", lasting=False
    )

    @classmethod
    def _create(cls, kernel: Kernel, device: int | None) -> KernelAttributes:
        self = cls.__new__(cls)
        self._kernel, self._device = kernel, device
        return self

    def _write(self, number: int, name: str, value: object) -> None:
        """Set an attribute, on the device of this view."""
        amount, device = integer(value, name), self._ordinal
        lowest, highest = -1, HIGHEST_CARVEOUT
        if number == lib.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            lowest, highest = 0, self._most_dynamic_shared(device)
        if not lowest <= amount <= highest:
            raise ValueError(f"{name} must be {lowest} to {highest} on device {device}, not {amount}")
        status = lib.ccc_kernel_set_attribute(self._kernel._c_handle, number, amount, device)
        if status:
            raise self._kernel._failure(status)

    def _most_dynamic_shared(self, device: int) -> int:
        """Return the bytes of dynamic shared memory that a device has for a block of the kernel."""
        most: int = registry.device(device).properties.max_shared_memory_per_block_optin
        return most - KernelAttributes._create(self._kernel, device).shared_size_bytes

    def _allow_dynamic_shared(self, size: int) -> None:
        """Have nodes ask for so many bytes of dynamic shared memory, on the current device; without one, do nothing."""
        device = int(_current_device())
        status = 0 if device < 0 else lib.ccc_kernel_allow_shared(self._kernel._c_handle, device, size)
        if status == lib.CUDA_ERROR_INVALID_VALUE:
            raise failure(status, None, f"; {self._describe_shared(size, device)}")
        if status:
            raise self._kernel._failure(status)

    def _describe_shared(self, size: int, device: int) -> str:
        """Return in words that a device has not so much dynamic shared memory for a block; nothing if it has."""
        most, static = self._most_dynamic_shared(device), KernelAttributes._create(self._kernel, device)
        besides = f", besides {static.shared_size_bytes} of static shared memory" if static.shared_size_bytes else ""
        if size <= most:
            return ""
        return f"{size} bytes of shmem_size are more than the {most} of {registry.device(device).name}{besides}"

    @property
    def _ordinal(self) -> int:
        """The device of this view."""
        return _require_current_device() if self._device is None else self._device

    def _read(self, number: int, lasting: bool = True) -> int:
        """Ask for an attribute; one that can be set does not last, and is read anew every time."""
        device = self._ordinal
        cache = self._kernel._attribute_cache
        key = (number, device)
        if lasting and cache and key in cache:
            return cache[key]
        out = ffi.new("int *")
        with InUse(self._kernel):
            check(lib.cuKernelGetAttribute(out, number, self._kernel._function(), device), "cuKernelGetAttribute")
        if lasting:
            if cache is None:
                self._kernel._attribute_cache = cache = {}
            cache[key] = int(out[0])
        return int(out[0])


def _ordinal(device: Any) -> Any:
    """Return the ordinal of a device, and anything else as it is."""
    return device.device_id if isinstance(device, registry.device) else device


def _require_current_device() -> int:
    device = int(_current_device())
    if device >= 0:
        return device
    if device == _NO_CURRENT_DEVICE:
        raise failure(lib.CCC_NO_CONTEXT, "cuKernelGetAttribute")
    raise last_failure()
