"""What the machine has: its GPU, the toolkit, NVIDIA's libraries, and a Python with PyTorch."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path


def device_names():
    """Returns (the names of the GPUs, "" or why there are none)."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return [], "NVIDIA's driver is not installed (libcuda.so.1 is not found)"
    status = driver.cuInit(0)
    if status != 0:
        text = ctypes.c_char_p()
        driver.cuGetErrorString(status, ctypes.byref(text))
        return [], f"NVIDIA's driver says \"{(text.value or b'error').decode()}\""
    count = ctypes.c_int()
    if driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return [], "NVIDIA's driver sees no device"
    names = []
    for index in range(count.value):
        device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
        driver.cuDeviceGet(ctypes.byref(device), index)
        driver.cuDeviceGetName(name, 256, device)
        names.append(name.value.decode())
    return names, ""


def compute_capability():
    """That of the first GPU, as (major, minor); None if the driver does not say."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    values = []
    for attribute in (75, 76):  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, …_MINOR
        value = ctypes.c_int()
        if driver.cuInit(0) != 0 or driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, 0) != 0:
            return None
        values.append(value.value)
    return tuple(values)


def driver_version():
    """The newest CUDA that the driver runs, as (major, minor); None if there is no driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    version = ctypes.c_int()
    if driver.cuDriverGetVersion(ctypes.byref(version)) != 0:
        return None
    return version.value // 1000, version.value % 1000 // 10


def toolkit_version(root):
    """The version of a toolkit's nvcc, as (major, minor); None if it does not say."""
    found = re.search(r"release (\d+)\.(\d+)", output_of([root / "bin/nvcc", "--version"]))
    return (int(found[1]), int(found[2])) if found else None


def versions_fault(root):
    """Why programs of the toolkit would not run with the machine's driver; "" if they do.

    A driver runs programs of its own major version and of all older ones.
    """
    driver, toolkit = driver_version(), toolkit_version(root)
    if not driver or not toolkit or driver[0] >= toolkit[0]:
        return ""
    return (f"NVIDIA's driver goes up to CUDA {driver[0]}.{driver[1]}, and the toolkit in {root} is {toolkit[0]}.{toolkit[1]}: "
            f"install a newer driver, or put the nvcc of a toolkit {driver[0]} on PATH")


def find_program(name, *folders):
    return shutil.which(name) or next((shutil.which(name, path=str(folder)) for folder in folders
                                       if shutil.which(name, path=str(folder))), None)


def output_of(command):
    """What a command prints; "" if it fails."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def first_line(command):
    return (output_of(command).strip().splitlines() or [""])[0]


def toolkit_root():
    """The folder of the CUDA toolkit, or None."""
    nvcc = find_program("nvcc", "/usr/local/cuda/bin", "/opt/cuda/bin")
    return Path(nvcc).resolve().parent.parent if nvcc else None


# The libraries that reel's CUDA module links with, and their headers.
LIBRARIES = {
    "cudart": "cuda_runtime_api.h",
    "cublasLt": "cublasLt.h",
    "cublas": "cublas_api.h",
    "cudnn": "cudnn.h",
    "cusolver": "cusolverDn.h",
    "cusparse": "cusparse.h",
}


def holds(folders, library, header):
    includes, libraries = folders
    return (any((folder / header).is_file() for folder in includes) and
            any((folder / f"lib{library}.so").exists() for folder in libraries))


def package_folders(python):
    """The folders of NVIDIA's packages for Python: (include, lib) of each."""
    listed = first_line([python, "-c", "import nvidia, os; print(os.pathsep.join(nvidia.__path__))"])
    found = []
    for root in filter(None, listed.split(os.pathsep)):
        for package in sorted(Path(root).glob("*")):
            if (package / "include").is_dir() and (package / "lib").is_dir():
                found.append((package / "include", package / "lib"))
    return found


def borrow_libraries(prefix, python):
    """Links what the toolkit and the system lack, and Python's packages have, into the prefix.

    Returns (a line about each library that is not the toolkit's, the names of those that are nowhere).
    """
    root = toolkit_root()
    multiarch = f"{os.uname().machine}-linux-gnu"
    system = ([Path("/usr/include"), Path("/usr/include", multiarch)], [Path("/usr/lib", multiarch), Path("/usr/lib64")])
    toolkit = ([root / "include"], [root / "lib64", root / "lib"])
    include, lib = prefix / "usr/include", prefix / "usr/lib" / multiarch
    packages = None
    lines, missing = [], []
    for library, header in LIBRARIES.items():
        if holds(toolkit, library, header) or holds(system, library, header):
            continue
        packages = package_folders(python) if packages is None else packages
        for headers, libraries in packages:
            shared = sorted(libraries.glob(f"lib{library}.so.*"))
            if shared and (headers / header).is_file():
                link_all(headers, include)
                link_all(libraries, lib)
                (lib / f"lib{library}.so").unlink(missing_ok=True)
                (lib / f"lib{library}.so").symlink_to(shared[0])
                lines.append(f"{library} is that of Python's package in {libraries.parent}")
                break
        else:
            missing.append(library)
    if packages and (lib / "libcudnn.so").exists():
        # It compiles kernels as it runs, with a library that it looks for beside its own package.
        for folder in [libraries for _, libraries in packages] + toolkit[1]:
            link_all(folder, lib, "libnvrtc*.so*")
    return lines, missing


def link_all(source, target, pattern="*"):
    target.mkdir(parents=True, exist_ok=True)
    for one in source.glob(pattern):
        place = target / one.name
        if one.name != "__pycache__" and not place.exists():
            place.unlink(missing_ok=True)
            place.symlink_to(one)


def describe(python):
    """Lines that say what is here."""
    names, absence = device_names()
    root = toolkit_root()
    version = output_of([root / "bin/nvcc", "--version"]) if root else ""
    release = next((line.strip() for line in version.splitlines() if "release" in line), "no nvcc")
    driver = first_line(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
    torch = first_line([python, "-c", "from importlib.metadata import version; print('PyTorch', version('torch'))"])
    return [
        f"GPU       {', '.join(names) or 'none: ' + absence}" + (f", driver {driver}" if driver else ""),
        f"toolkit   {root or 'none'}: {release}",
        f"compiler  {first_line(['g++', '--version']) or 'no g++'}; {os.cpu_count()} processors",
        f"Python    {sys.version.split()[0]}, {torch or 'no PyTorch'}",
    ]
