# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Programs written for cuda.core, which import this package under that name.

Each test runs programs in processes of their own: what imports find cannot be changed back.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
from helpers import LIMIT, child_environment, output_of

from cuda_core_cffi import UnavailableError
from cuda_core_cffi._alias.install import FOLDER
from cuda_core_cffi._core.libraries import NVJITLINK_LIBRARY, NVRTC_LIBRARY

try:
    INSTALLED = importlib.metadata.version("cuda-core")  # where a test machine has it too, its metadata answer
except importlib.metadata.PackageNotFoundError:
    INSTALLED = "1.2.2"
INSTALL = "from cuda_core_cffi import install_as_cuda_core; install_as_cuda_core()\n"


def command(*arguments: str, cwd: pathlib.Path | None = None, **environment: str | None):
    """Run the command with these arguments; return its finished process."""
    return subprocess.run(
        [sys.executable, "-m", "cuda_core_cffi.as_cuda_core", *arguments],
        env=child_environment(**environment),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def printed(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the lines that a process printed, which must have ended well."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def program(text: str) -> str:
    """Return the text of a program, without its indentation, after the installation."""
    return INSTALL + textwrap.dedent(text)


# What is imported


def test_names_are_those_of_this_package():
    assert (
        output_of(
            program(
                """
                import cuda.core, cuda.core.checkpoint, cuda.core.graph, cuda.core.typing, cuda.core.utils
                import cuda_core_cffi as ours
                import cuda_core_cffi.checkpoint, cuda_core_cffi.graph, cuda_core_cffi.typing, cuda_core_cffi.utils
                from cuda.core import Device, Kernel, LaunchConfig, Stream, launch
                from cuda.core.utils import StridedMemoryView
                assert (Device, Kernel, Stream, launch) == (ours.Device, ours.Kernel, ours.Stream, ours.launch)
                assert LaunchConfig is ours.LaunchConfig
                assert StridedMemoryView is ours.utils.StridedMemoryView
                assert cuda.core.checkpoint is ours.checkpoint
                assert (cuda.core.graph, cuda.core.typing, cuda.core.utils) == (ours.graph, ours.typing, ours.utils)
                import cuda.core.graph.definition, cuda_core_cffi.graph.definition
                assert cuda.core.graph.definition is ours.graph.definition
                assert ours.utils.__spec__.name == ours.utils.__name__ == "cuda_core_cffi.utils"
                assert set(ours.__all__) <= set(cuda.core.__all__) <= set(dir(cuda.core))
                assert all(hasattr(cuda.core, name) for name in dir(cuda.core))
                assert all(getattr(cuda.core, name) is getattr(ours, name) for name in ours.__all__ if name[0] != "_")
                """
            )
        )
        == ""
    )


def test_the_version_is_that_of_the_api():
    assert output_of(
        program(
            """
            import cuda.core, importlib.metadata
            print(cuda.core.__version__, importlib.metadata.version("cuda-core"), cuda.core.__name__)
            """
        )
    ).split() == ["1.2.2", INSTALLED, "cuda.core"]


def test_it_has_a_file_and_a_folder_from_which_nothing_is_imported():
    code = """
        import importlib.util, inspect, os, pkgutil
        import cuda.core, cuda.core.utils
        assert os.path.isfile(cuda.core.__file__)
        assert cuda.core.__path__ == [os.path.dirname(cuda.core.__file__)]
        assert cuda.core.__spec__.submodule_search_locations == cuda.core.__path__
        assert cuda.core.__spec__.origin == cuda.core.__file__
        assert list(pkgutil.iter_modules(cuda.core.__path__)) == []
        assert importlib.util.find_spec("cuda.core._core") is None
        assert inspect.getsourcefile(cuda.core) == cuda.core.__file__
        assert os.path.basename(cuda.core.utils.__file__) == "utils.py"
    """
    assert output_of(program(code)) == ""


@pytest.mark.parametrize("build", ["cu12", "cu13"])
def test_the_packages_of_the_wheel_are_the_same_one(build):
    code = f"""
        import cuda.core.{build}.graph
        from cuda.core.{build} import Device
        from cuda.core.{build}.utils import StridedMemoryView
        import cuda.core, cuda.core.graph, cuda.core.utils
        assert Device is cuda.core.Device and StridedMemoryView is cuda.core.utils.StridedMemoryView
        assert cuda.core.{build}.graph is cuda.core.graph
        print(cuda.core.__name__, cuda.core.__spec__.name)
    """
    assert output_of(program(code)) == "cuda.core cuda.core"


def test_classes_say_that_they_are_of_cuda_core():
    """nvmath-python takes a stream for one of cuda.core by the name of its class's package."""
    assert output_of(
        program(
            """
            import copy, pickle, typing
            from cuda.core import Device, LaunchConfig, ProgramOptions, graph, typing as names, utils
            from cuda_core_cffi._core.integers import class_of_handle
            device = Device(0)
            device.set_current()
            stream = device.create_stream()
            print(*(type(made).__module__ for made in (device, stream, device.allocate(8, stream=stream))))
            print(utils.StridedMemoryView.__module__, graph.GraphDefinition.__module__)
            print(type(device.create_graph_builder()).__module__, type(graph.GraphDefinition().join()).__module__)
            assert pickle.loads(pickle.dumps(device)) is device
            assert pickle.loads(pickle.dumps((Device, graph.Graph))) == (Device, graph.Graph)
            assert "device_code_optimize" in typing.get_type_hints(ProgramOptions)  # its names are found
            print(class_of_handle(stream), class_of_handle(names.SourceCodeType.PTX), class_of_handle(7))
            """
        )
    ).splitlines() == [
        "cuda.core cuda.core cuda.core",
        "cuda.core.utils cuda.core.graph",
        "cuda.core.graph cuda.core.graph",
        "Stream None None",
    ]


def test_submodules_are_there_without_an_import_of_their_own():
    assert output_of(program("import cuda.core\nprint(cuda.core.utils.__name__, cuda.core.graph.__name__)")) == (
        "cuda_core_cffi.utils cuda_core_cffi.graph"
    )


def test_the_whole_api_comes_with_a_star():
    assert output_of(program("from cuda.core import *\nprint(Device.__name__, launch.__name__)")) == "Device launch"


def test_private_names_that_released_programs_import():
    assert (
        output_of(
            program(
                """
                from cuda.core._dlpack import DLDeviceType
                from cuda.core._event import Event
                from cuda.core._memory import Buffer, MemoryResource
                from cuda.core._memoryview import StridedMemoryView, args_viewable_as_strided_memory
                from cuda.core._module import Kernel, ObjectCode
                from cuda.core._stream import IsStreamType, Stream
                from cuda.core._utils.cuda_utils import CUDAError, NVRTCError, handle_return
                import cuda_core_cffi as ours
                assert (Event, Buffer, Kernel, Stream) == (ours.Event, ours.Buffer, ours.Kernel, ours.Stream)
                assert (CUDAError, NVRTCError) == (ours.CUDAError, ours.NVRTCError)
                assert int(DLDeviceType.kDLCUDA) == 2
                """
            )
        )
        == ""
    )


@pytest.mark.parametrize("name", ["cuda.core.nothing", "cuda.core._nothing", "cuda.core.utils.nothing"])
def test_what_is_not_served_is_not_found(name):
    code = f"""
        try:
            import {name}
        except ModuleNotFoundError as error:
            print(error.name)
    """
    assert output_of(program(code)) == name


def test_a_name_that_is_not_there_is_an_import_error():
    code = """
        try:
            from cuda.core import Nothing
        except ImportError as error:
            print(error.name, "Nothing" in str(error))
    """
    assert output_of(program(code)) == "cuda.core True"


def test_the_name_of_the_guides_is_served_with_a_warning():
    code = """
        import warnings
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            from cuda.core.experimental import Device
            from cuda.core.experimental.utils import StridedMemoryView
        import cuda.core, cuda.core.utils
        assert Device is cuda.core.Device and StridedMemoryView is cuda.core.utils.StridedMemoryView
        print(*(f"{item.category.__name__} {item.message}" for item in told))
    """
    assert output_of(program(code)) == ("DeprecationWarning cuda.core.experimental is now cuda.core: import from there")


def test_nothing_is_served_unless_asked_for():
    code = """
        import importlib.util, os, sys
        import cuda_core_cffi
        assert not any(type(finder).__module__.startswith("cuda_core_cffi") for finder in sys.meta_path)
        assert "cuda_core_cffi._alias.install" not in sys.modules
        assert "_alias" not in os.environ.get("PYTHONPATH", "")
    """
    assert output_of(code) == ""


def test_another_one_imported_before_is_an_error():
    code = """
        import sys, types
        sys.modules["cuda.core"] = other = types.ModuleType("cuda.core")
        other.__file__ = "/elsewhere/cuda/core/__init__.py"
        before = list(sys.meta_path)
        from cuda_core_cffi import install_as_cuda_core
        try:
            install_as_cuda_core()
        except ImportError as error:
            print(error)
        assert sys.meta_path == before
    """
    assert "imported already, from /elsewhere/cuda/core/__init__.py" in output_of(code)


def test_an_installed_one_is_not_used(tmp_path):
    package = tmp_path / "cuda" / "core"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    (tmp_path / "cuda_core-7.0.dist-info").mkdir()
    (tmp_path / "cuda_core-7.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: cuda-core\nVersion: 7.0\n"
    )
    code = """
        import sys
        sys.path.insert(0, sys.argv[1])
        from cuda_core_cffi import install_as_cuda_core
        install_as_cuda_core()
        install_as_cuda_core()
        import cuda.core, cuda_core_cffi, importlib.metadata
        print(cuda.core.Device is cuda_core_cffi.Device, importlib.metadata.version("cuda-core"))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)],
        env=child_environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert printed(done) == ["True 7.0"]  # whoever asks for the distribution is told of the installed one


def another_vendor(folder: pathlib.Path) -> None:
    """Install a distribution that brings a ``cuda.core`` of its own."""
    (folder / "cuda" / "core").mkdir(parents=True)
    (folder / "cuda" / "core" / "__init__.py").write_text("class Device: pass\n")
    (folder / "cuda" / "bindings").mkdir()
    (folder / "cuda" / "bindings" / "__init__.py").write_text("")
    (folder / "cuda" / "bindings" / "driver.py").write_text("raise RuntimeError('no library of another vendor')")
    info = folder / "other_interop-10.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-interop\nVersion: 10.0\n")
    (info / "RECORD").write_text("cuda/core/__init__.py,,\ncuda/bindings/driver.py,,\n")


def test_the_one_of_another_vendor_is_not_used(tmp_path):
    another_vendor(tmp_path)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + program(
        """
        import cuda.core, cuda_core_cffi, importlib.metadata
        print(cuda.core.Device is cuda_core_cffi.Device, importlib.metadata.version("cuda-core"))
        device = cuda.core.Device(0)
        device.set_current()
        print(type(device.create_stream().handle).__name__)  # its bindings cannot be imported
        """
    )
    assert output_of(code).split() == ["True", INSTALLED, "int"]


def test_the_one_of_another_vendor_imported_before_is_named(tmp_path):
    another_vendor(tmp_path)
    code = f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import cuda.core
        from cuda_core_cffi import install_as_cuda_core
        try:
            install_as_cuda_core()
        except ImportError as error:
            print(error)
        from cuda.core import Device
        assert Device.__module__ == "cuda.core" and not hasattr(Device, "set_current")
    """
    path = tmp_path / "cuda" / "core" / "__init__.py"
    assert output_of(code).startswith(
        f"cuda.core has been imported already, from {path} of other-interop: call install_as_cuda_core before"
    )


def test_a_package_cuda_that_imports_its_core_gets_this_one(tmp_path):
    another_vendor(tmp_path)
    (tmp_path / "cuda" / "__init__.py").write_text("from cuda import core\nfrom cuda.core import Device as its\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + program(
        "import cuda, cuda_core_cffi\nprint(cuda.its is cuda.core.Device is cuda_core_cffi.Device)"
    )
    assert output_of(code) == "True"


def test_other_packages_below_cuda_stay(tmp_path):
    (tmp_path / "cuda" / "other").mkdir(parents=True)
    (tmp_path / "cuda" / "other" / "__init__.py").write_text("here = True")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + program(
        "import cuda.core, cuda.other\nprint(cuda.other.here, cuda.core.Device.__name__)"
    )
    assert output_of(code) == "True Device"


# Handles


def test_handles_are_of_cuda_bindings_where_that_is_installed():
    code = """
        from cuda.core import Device, DeviceMemoryResource, Stream
        from cuda.core.graph import GraphDefinition
        device = Device(0)
        device.set_current()
        graph = GraphDefinition()
        node, executable = graph.empty(), graph.instantiate()
        condition = graph.create_condition(1)
        stream, event, pool = device.create_stream(), device.create_event(), DeviceMemoryResource(device, {})
        items = (stream, event, device.context, pool, graph, executable, node)
        try:
            from cuda.bindings import driver
        except ImportError:
            expected = [int] * 7
        else:
            expected = [driver.CUstream, driver.CUevent, driver.CUcontext, driver.CUmemoryPool, driver.CUgraph,
                        driver.CUgraphExec, driver.CUgraphNode]
            assert type(condition.handle) is int
        assert [type(item.handle) for item in items] == expected
        assert all(type(item.handle)(int(item.handle)) == item.handle for item in items)
        for item in items:
            assert f"{int(item.handle):#x}" in repr(item)
        assert stream.__cuda_stream__() == (0, int(stream.handle)) and type(stream.__cuda_stream__()[1]) is int
        with pool.allocate(16, stream) as buffer:
            assert type(buffer.handle) is int
            buffer.fill(0, stream=stream)
        assert Stream.from_handle(stream.handle) == stream
        stream.sync()
    """
    assert output_of(program(code)) == ""


def test_code_whose_handle_a_program_has_is_left_to_it():
    """numba-cuda unloads the library of an ObjectCode: on a GPU a second time ends the process."""
    lines = output_of(
        program(
            """
            import gc
            from cuda.core import Device, Kernel, LaunchConfig, ObjectCode, launch
            from cuda_core_cffi import ffi, lib, live_objects
            PTX = b".version 7.0\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { ret; }\\n"
            device = Device(0)
            device.set_current()
            stream = device.create_stream()
            for unloaded_before in (True, False, False):
                code = ObjectCode.from_ptx(PTX)
                kernel = code.get_kernel("k")
                handle = ffi.cast("CUlibrary", int(code.handle))
                number = int(kernel.handle)
                again = Kernel.from_handle(number, code)  # also where an earlier kernel had the number
                launch(stream, LaunchConfig(grid=1, block=1), again)
                stream.sync()
                if unloaded_before:
                    print(lib.cuLibraryUnload(handle))
                    handle = None
                    kept = code, kernel, again
                del code, kernel, again
                gc.collect()
                if handle:
                    print(lib.cuLibraryUnload(handle))
            del kept
            for _ in range(3):  # PyPy calls the finalizers of what refers to one another in turn
                gc.collect()
            print(live_objects()["library"])
            """
        )
    )
    assert lines.split() == ["0", "0", "0", "0"]


def test_symbols_are_bytes_as_with_cuda_core():
    code = """
        import pickle
        from cuda.core import Device, ObjectCode
        PTX = b".version 7.0\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { ret; }\\n"
        code = ObjectCode.from_ptx(PTX, symbol_mapping={"first": "k", "second": b"k"})
        assert code.symbol_mapping == {"first": b"k", "second": b"k"}
        again = ObjectCode.from_ptx(PTX, symbol_mapping=code.symbol_mapping)
        Device(0).set_current()
        for made in (code, again, pickle.loads(pickle.dumps(code))):
            assert made.symbol_mapping == code.symbol_mapping
            for name in ("first", "second", code.symbol_mapping["first"]):
                made.get_kernel(name).close()
    """
    assert output_of(program(code)) == ""


def test_symbols_of_linked_code_are_bytes_too():
    code = """
        from cuda.core import Linker, LinkerOptions, Program
        source = "template <class T> __global__ void scale(T *x) { x[threadIdx.x] *= 2; }"
        options = {"arch": "sm_90", "relocatable_device_code": True}
        code = Program(source, "c++", options).compile("cubin", ["scale<float>"])
        linked = Linker(code, options=LinkerOptions(arch="sm_90")).link("cubin")
        assert code.symbol_mapping == linked.symbol_mapping == {"scale<float>": b"_Z5scaleIfEvPT_"}
        print(code.code.find(code.symbol_mapping["scale<float>"]) > 0)
    """
    for library in (NVRTC_LIBRARY, NVJITLINK_LIBRARY):
        try:
            library.load()
        except UnavailableError as error:
            pytest.skip(str(error))
    assert output_of(program(code)) == "True"


def test_devices_have_at_most_as_many_links_as_with_cuda_core():
    code = """
        import warnings
        from cuda.core import system
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            print(system.NvlinkInfo.max_links, [item.category.__name__ for item in told])
        for device in system.Device.get_all_devices():
            for link in range(18):
                try:
                    device.get_nvlink(link).state
                except ValueError:
                    assert link >= device.get_nvlink_count()
                else:
                    assert link < device.get_nvlink_count()
    """
    assert output_of(program(code)) == "18 ['DeprecationWarning']"


def test_results_of_cuda_bindings_are_checked():
    code = """
        import enum
        from cuda.core._utils.cuda_utils import CUDAError, handle_return
        from cuda_core_cffi import driver

        class CUresult(enum.IntEnum):
            CUDA_SUCCESS = 0
            CUDA_ERROR_INVALID_VALUE = 1

        assert handle_return((CUresult.CUDA_SUCCESS,)) is None
        assert handle_return((CUresult.CUDA_SUCCESS, 5)) == 5
        assert handle_return((CUresult.CUDA_SUCCESS, 5, 6)) == (5, 6)
        assert handle_return(driver.cuInit(0)) is None
        assert handle_return(driver.cuDeviceGetCount()) == 1
        try:
            handle_return((CUresult.CUDA_ERROR_INVALID_VALUE, 5))
        except CUDAError as error:
            print(error.name, error.status)
    """
    assert output_of(program(code), CUDA_CORE_CFFI_DRIVER="simulator") == "CUDA_ERROR_INVALID_VALUE 1"


def test_results_of_the_runtime_and_of_nvrtc_are_checked():
    pytest.importorskip("cuda.bindings.runtime")
    code = """
        from cuda.bindings import nvrtc, runtime
        from cuda.core._utils.cuda_utils import CUDAError, NVRTCError, handle_return
        assert handle_return((runtime.cudaError_t.cudaSuccess, 3)) == 3
        assert handle_return((nvrtc.nvrtcResult.NVRTC_SUCCESS,)) is None
        for kind, status in ((CUDAError, runtime.cudaError_t.cudaErrorInvalidValue),
                             (NVRTCError, nvrtc.nvrtcResult.NVRTC_ERROR_INVALID_INPUT)):
            try:
                handle_return((status,))
            except kind as error:
                print(type(error).__name__, error.name, error.status, status.name in str(error))
    """
    assert output_of(program(code)).splitlines() == [
        "CUDAError cudaErrorInvalidValue 1 True",
        "NVRTCError NVRTC_ERROR_INVALID_INPUT 3 True",
    ]


# The command


def test_a_script_runs_with_its_arguments_and_its_folder(tmp_path):
    (tmp_path / "beside.py").write_text("value = 7")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, beside, cuda.core\n"
        "print(__name__, sys.argv[1:], beside.value, cuda.core.__version__, __file__ == sys.argv[0])\n"
        "sys.exit(3)\n"
    )
    done = command(str(script), "-x", "two", cwd=tmp_path.parent, PYTHONSAFEPATH=None)
    assert done.stdout == "__main__ ['-x', 'two'] 7 1.2.2 True\n", done.stderr
    assert done.returncode == 3


def test_a_module_runs(tmp_path):
    (tmp_path / "module_of_mine.py").write_text("import sys, cuda.core\nprint(__name__, sys.argv[1:])")
    assert printed(command("-m", "module_of_mine", "a", cwd=tmp_path, PYTHONSAFEPATH=None)) == ["__main__ ['a']"]


def test_a_command_runs():
    assert printed(command("-c", "import sys, cuda.core; print(__name__, sys.argv, cuda.core.__version__)", "a")) == [
        "__main__ ['-c', 'a'] 1.2.2"
    ]


def test_a_command_runs_as_the_main_module(tmp_path):
    code = "import pickle, sys\nclass Own: pass\nprint(pickle.loads(pickle.dumps(Own)) is Own, sys.path[0] == '')"
    assert printed(command("-c", code, cwd=tmp_path, PYTHONSAFEPATH=None)) == ["True True"]


def test_a_safe_path_stays_as_it_is(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys; print(sys.argv[1] in sys.path, sys.path[0] == sys.argv[1])")
    done = command(str(script), str(tmp_path), PYTHONSAFEPATH="1")
    assert printed(done) == ["False False"]


@pytest.mark.parametrize("arguments", [(), ("-m",), ("-c",), ("--nothing",)])
def test_without_a_program_it_says_how_it_is_called(arguments):
    done = command(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "python -m cuda_core_cffi.as_cuda_core script.py" in done.stderr


def test_help():
    assert "python -m cuda_core_cffi.as_cuda_core script.py" in "\n".join(printed(command("--help")))


# Other processes


def test_processes_that_a_program_starts_import_it_too(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import multiprocessing, subprocess, sys
            from cuda.core import Device

            def tell(queue):
                import cuda.core, cuda_core_cffi
                queue.put(cuda.core.Device is Device is cuda_core_cffi.Device)

            if __name__ == "__main__":
                for method in ("spawn", "forkserver"):
                    context = multiprocessing.get_context(method)
                    queue = context.Queue()
                    process = context.Process(target=tell, args=(queue,))
                    process.start()
                    print(method, queue.get(timeout=100))
                    process.join()
                code = "import cuda.core as c, cuda_core_cffi as f; print('subprocess', c.Device is f.Device)"
                sys.stdout.flush()
                subprocess.run([sys.executable, "-c", code], check=True)
            """
        )
    )
    assert printed(command(str(script))) == [
        "spawn True",
        "forkserver True",
        "subprocess True",
    ]


def test_one_environment_variable_is_enough():
    (folder,) = printed(command("--path"))
    assert folder == FOLDER
    code = "import importlib.metadata, cuda.core; print(cuda.core.__version__, importlib.metadata.version('cuda-core'))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=child_environment(folder), capture_output=True, text=True, check=False
    )
    assert printed(done) == [f"1.2.2 {INSTALLED}"]


def test_the_variable_costs_nothing_where_nobody_asks():
    code = "import sys; print([name for name in sys.modules if name.startswith(('cuda', 'numpy', 'cffi'))])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=child_environment(FOLDER),
        capture_output=True,
        text=True,
        check=False,
    )
    assert printed(done) == ["[]"]


def test_another_sitecustomize_runs_as_well(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.mine = True")
    code = "import sys, sitecustomize; import cuda.core; print(sys.mine, sitecustomize.__file__ == sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "sitecustomize.py")],
        env=child_environment(FOLDER, str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert printed(done) == ["True True"]


def test_a_child_finds_the_package_where_its_parent_did(tmp_path):
    path = [FOLDER]
    if backend := importlib.util.find_spec("_cffi_backend"):  # PyPy has it built in
        path.append(str(pathlib.Path(str(backend.origin)).parent))
    done = subprocess.run(
        [sys.executable, "-c", "import cuda.core; print(cuda.core.__version__)"],
        env={**child_environment(), "PYTHONPATH": os.pathsep.join(path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert printed(done) == ["1.2.2"]
