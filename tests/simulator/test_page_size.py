# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pathlib
import shutil
import subprocess

import pytest
from compiling import CC
from sim_driver import run_alone

# Discards memory as a kernel with pages of 64 KiB does: a start inside a page is refused, a length is rounded up.
LARGE_PAGES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 65536 };

int madvise(void *start, size_t bytes, int advice)
{
    if ((uintptr_t)start % PAGE)
        abort();
    return (int)syscall(SYS_madvise, start, (bytes + PAGE - 1) / PAGE * PAGE, advice);
}

long sysconf(int name)
{
    long (*real)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");
    return name == _SC_PAGESIZE ? PAGE : real(name);
}
"""


@pytest.fixture(scope="module")
def large_pages(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of a library to preload, or skip where it cannot be built."""
    if shutil.which(CC) is None:
        pytest.skip(f"there is no C compiler {CC!r}")
    folder: pathlib.Path = tmp_path_factory.mktemp("pages")
    (folder / "pages.c").write_text(LARGE_PAGES)
    command = [CC, "-shared", "-fPIC", "-o", str(folder / "pages.so"), str(folder / "pages.c"), "-ldl"]
    subprocess.run(command, check=True)
    return str(folder / "pages.so")


def test_freed_pinned_memory_leaves_its_neighbours_alone_where_pages_have_64_kib(large_pages: str) -> None:
    printed = run_alone(
        """
        cu.start()
        size = 24 * 4096  # one and a half pages of 64 KiB
        pointers = [c_void_p() for _ in range(16)]
        for number, pointer in enumerate(pointers):
            cu.cuMemHostAlloc(byref(pointer), c_size_t(size), c_uint(0))
            ctypes.memset(pointer, number + 1, size)
        for pointer in pointers[::2]:
            cu.cuMemFreeHost(pointer)
        print([ctypes.string_at(pointer, size) == bytes([number + 1]) * size
               for number, pointer in enumerate(pointers)][1::2])
        """,
        LD_PRELOAD=large_pages,
    )
    assert printed.startswith(f"{[True] * 8}\n")  # an emulator says that it cannot preload it into a shell
