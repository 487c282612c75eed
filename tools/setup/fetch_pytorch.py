#!/usr/bin/env python3
"""Unpacks PyTorch's C++ headers and CPU libraries, of the versions in pytorch.txt, from the wheels of Python's registry.

The folder then has torch/include, torch/lib and nvidia/…/lib, beside each other as the wheels lay them out, so that
libtorch_cpu.so finds what it links with. The wheels are half a gigabyte; of what they unpack to, a gigabyte for GPUs is left out.
Where the folder holds these versions already, nothing is done.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

REQUIREMENTS = pathlib.Path(__file__).resolve().with_name("pytorch.txt")
# No libgomp: with the system's, which reel uses, too, a process has one OpenMP runtime. No headers of libraries that reel links
# with in other versions.
WANTED = re.compile(r"torch/include/(?!fmt/|nlohmann/|oneapi/).*|torch/lib/lib(torch_cpu|c10)\.so|nvidia/[^/]+/lib/lib(cupti|cudart)\.so\.\d+"
                    r"|[^/]+\.dist-info/licenses/.*")


def download(folder):
    """Returns the wheels, or ends the program with pip's reason."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--only-binary=:all:", "--dest", str(folder), "--requirement", str(REQUIREMENTS)]
    found = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if found.returncode != 0:
        lines = [line for line in found.stderr.splitlines() if line.startswith("ERROR")] or found.stderr.splitlines()
        reason = lines[-1].removeprefix("ERROR: ") if lines else f"it ended with status {found.returncode}"
        sys.exit(f"reel: pip could not fetch PyTorch's wheels, which needs a network: {reason}")
    return sorted(folder.glob("*.whl"))


def unpack(wheels, folder):
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder, [name for name in archive.namelist() if WANTED.fullmatch(name)])
    for library in ("torch/lib/libtorch_cpu.so", "torch/lib/libc10.so"):
        if not (folder / library).is_file():
            sys.exit(f"reel: PyTorch's wheel has no {library} for this processor and Python.")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: fetch_pytorch.py FOLDER")
    folder = pathlib.Path(sys.argv[1]).resolve()
    wanted = REQUIREMENTS.read_text()
    versions = folder / "versions.txt"
    if versions.is_file() and versions.read_text() == wanted:
        return
    print(f"Fetching PyTorch's wheels into {folder} (half a gigabyte) …", file=sys.stderr)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".pytorch-", dir=folder.parent) as temporary:
        wheels, unpacked = pathlib.Path(temporary, "wheels"), pathlib.Path(temporary, "unpacked")
        unpack(download(wheels), unpacked)
        (unpacked / versions.name).write_text(wanted)
        shutil.rmtree(folder, ignore_errors=True)
        unpacked.rename(folder)


if __name__ == "__main__":
    main()
