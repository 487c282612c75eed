"""The programs that tools/gpu-check --quick runs: in a build directory, or in a folder that was filled from one elsewhere."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from . import machine

LIBRARY, MODULE = "lib/libreel.so", "cuda/libreel_cuda.so"
OP_TABLE, GRAPH = "tests/cuda/cuda_op_table_test", "tests/cuda/cuda_graph_test"
FIGURES, SAMPLE = "tools/reel_cuda_bench", "samples/convnet"
STAND_IN = "tests/cuda/stand_in/libcuda_stand_in.so"
MODULES = ["lib/libreel_files.so", "lib/libreel_decompositions.so"]
RUN = [OP_TABLE, GRAPH, FIGURES, SAMPLE]
LABEL = "prebuilt.json"
# Libraries of the system of the machine that runs them, and of NVIDIA.
LEFT_OUT = re.compile(r"^(ld-linux|linux-vdso|libc\.|libm\.|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libcu|libnv|libreel)")


class Unusable(Exception):
    """A sentence that says why programs that were built elsewhere cannot be run."""


def hash_of(*files):
    found = hashlib.sha256()
    for file in files:
        found.update(Path(file).read_bytes())
    return found.hexdigest()[:16]


def hash_of_sources(root):
    """Of all that the programs are compiled from."""
    found = hashlib.sha256()
    for folder in ("include", "lib", "cuda", "samples", "tests/cuda", "tests/ops", "tools/benchmark/cuda"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in (".h", ".cpp", ".cu", ".build"):
                found.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def libraries_of(program):
    """What a program or library is linked with and the folder should have: (name, path)."""
    output = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    for name, path in re.findall(r"^\s*(\S+) => (/\S+)", output, re.MULTILINE):
        if not LEFT_OUT.match(name):
            yield name, Path(path)


def copy_of(file, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    shutil.copy2(file, target, follow_symlinks=False)


def fill(folder, root, build, architectures):
    """Fills a folder from a build directory. Returns the number of bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / LABEL).unlink(missing_ok=True)  # until all is there
    names = [MODULE, *RUN, *(name for name in (*MODULES, STAND_IN) if (build / name).is_file())]
    for name in names:
        copy_of(build / name, folder / name)
    for library in ("libreel", "libreel_debug"):
        for file in (build / "lib").glob(f"{library}.so*"):
            if file.is_file():
                copy_of(file, folder / "lib" / file.name)
    shutil.rmtree(folder / "libraries", ignore_errors=True)
    for name in [LIBRARY, *names]:
        for library, path in libraries_of(build / name):
            copy_of(path.resolve(), folder / "libraries" / library)
    label = {"architectures": architectures, "toolkit": machine.toolkit_version(machine.toolkit_root()),
             "sources": hash_of_sources(root), "module": hash_of(folder / MODULE)}
    (folder / LABEL).write_text(json.dumps(label, indent=1) + "\n")
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink())


def read_label(folder):
    """What is known of a filled folder. Throws: Unusable."""
    try:
        label = json.loads((folder / LABEL).read_text())
        module = hash_of(folder / MODULE)
    except FileNotFoundError as error:
        raise Unusable(f"{folder} lacks {Path(error.filename).name}: it is filled by tools/gpu-check --prebuild DIR on a "
                       "machine that has the CUDA toolkit, and copied whole") from None
    except ValueError as error:
        raise Unusable(f"{folder / LABEL} cannot be read: {error}") from None
    if module != label["module"]:
        raise Unusable(f"{MODULE} in {folder} is not the one that the folder was filled with; copy it again")
    if missing := [name for name in (LIBRARY, *RUN) if not (folder / name).is_file()]:
        raise Unusable(f"{folder} lacks {', '.join(missing)}; copy it again")
    return label


def check_device(label, capability, driver):
    """Throws: Unusable unless code for the label's architectures runs on a GPU of such a capability, (major, minor)."""
    numbers = [(int(text[:-1]), int(text[-1])) for text in label["architectures"]]
    if capability and not any(major == capability[0] and minor <= capability[1] for major, minor in numbers):
        raise Unusable(f"the kernels were compiled for {', '.join(label['architectures'])}, and the GPU is of "
                       f"{capability[0]}{capability[1]}; fill the folder with --gpu-architectures "
                       f"{capability[0]}{capability[1]}")
    toolkit = label["toolkit"]
    if driver and toolkit and driver[0] < toolkit[0]:
        raise Unusable(f"NVIDIA's driver goes up to CUDA {driver[0]}.{driver[1]}, and the library was built with "
                       f"{toolkit[0]}.{toolkit[1]}: install a newer driver, or build with a toolkit {driver[0]}")


def search_path(folder, python):
    """LD_LIBRARY_PATH for programs from elsewhere: NVIDIA's libraries are those of this machine."""
    folders = []
    if root := machine.toolkit_root():
        folders += [root / "lib64", root / "lib"]
    folders += [libraries for _, libraries in machine.package_folders(python)]
    return os.pathsep.join([os.environ.get("LD_LIBRARY_PATH", ""), *map(str, folders), str(folder / "libraries")]).strip(":")
