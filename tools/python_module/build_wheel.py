#!/usr/bin/env python3
"""Builds the Python module, makes a wheel of it, and installs that; tools/python and tests/python/run.py call this.

Usage: build_wheel.py [--test] [--torch] [--benchmark] [--sanitize] ROOT BUILD

ROOT is the repository and BUILD a Meson build of it, whose libreel.so the wheel contains. The environment, the wheel and all
else are in ROOT/build/python. Exits with status 77, after a line that says why, where Python's registry cannot be reached.
"""

import argparse
import base64
import fcntl
import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

SKIPPED = 77
UNREACHABLE = re.compile(r"connection|resolution|resolve|timed? ?out|network|from versions: none|HTTP error|SSL", re.I)
SOURCES = Path(__file__).resolve().parent


def run(*command, **options):
    """Runs a command, and ends the program with what it printed if it fails."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)
    if done.returncode:
        sys.exit(f"{done.stdout}\nreel: {Path(command[0]).name} failed (its messages are above).")
    return done.stdout


def make_environment(folder, system_packages):
    """Makes a virtual environment with the requirements; does nothing where it is."""
    requirements = SOURCES / "requirements.txt"
    listed = requirements.read_text(encoding="utf-8")
    if system_packages:  # NumPy has to be the one that Debian's PyTorch was built for
        listed = "\n".join(line for line in listed.splitlines() if not line.startswith("numpy"))
    wanted = hashlib.sha256(f"{listed}{sys.version}{sys.prefix}".encode()).hexdigest()
    stamp = folder / "installed"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    print("Making a virtual environment with nanobind and NumPy …", file=sys.stderr)
    run(sys.executable, "-m", "venv", "--clear", *(["--system-site-packages"] if system_packages else []), folder)
    own = folder / "requirements.txt"
    own.write_text(listed, encoding="utf-8")
    pip = subprocess.run([folder / "bin/python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--only-binary",
                          ":all:", "--retries", "1", "--timeout", "20", "--disable-pip-version-check", "-r", own],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if pip.returncode and UNREACHABLE.search(pip.stdout):
        print("the packages of tools/python_module/requirements.txt cannot be downloaded")
        sys.exit(SKIPPED)
    if pip.returncode:
        sys.exit(pip.stdout)
    stamp.write_text(wanted, encoding="utf-8")


def build_extension(root, build, folder, python, sanitize):
    """Compiles the module; returns its file."""
    include = Path(sysconfig.get_paths()["include"])
    if not (include / "Python.h").is_file():
        sys.exit(f"reel: {include} has no Python.h; please install the headers of this Python (python3-dev)")
    library = (build / "lib/libreel.so").resolve()
    nanobind = run(python, "-c", "import nanobind, os; print(os.path.dirname(nanobind.__file__))").strip()
    options = [f"-Dnanobind={nanobind}", f"-Dpython_include={include}", f"-Dreel_include={root / 'include'}",
               f"-Dreel_library={library.parent}", f"-Dreel_name={library.name}"]
    if sanitize:
        options += ["-Db_sanitize=address", "-Db_lundef=false", "-Doptimization=1", "-Ddebug=true", "-Dcpp_args=-g1"]
    configured = (folder / "meson-private/coredata.dat").is_file()
    stamp = folder / "options"
    if not configured or not stamp.is_file() or stamp.read_text(encoding="utf-8") != "\n".join(options):
        run("meson", "setup", *(["--reconfigure"] if configured else []), *options, folder, SOURCES)
        stamp.write_text("\n".join(options), encoding="utf-8")
    else:
        run(sys.executable, SOURCES / "generate.py", root / "include", folder / "generated")
    print("Building the Python module (the first time takes a minute) …", file=sys.stderr)
    run("ninja", "-C", folder, "--quiet")
    return folder / "_reel.so"


def version_of(root):
    return re.search(r"version: '([\d.]+)'", (root / "meson.build").read_text(encoding="utf-8"))[1]


def wheel_files(root, build, extension):
    """The files of the wheel: (name in it, file)."""
    library = (build / "lib/libreel.so").resolve()
    soname = re.search(r"libreel\.so\.\d+\.\d+|libreel\.so\.\d+", library.name)[0]
    files = [(f"reel/{path.name}", path) for path in sorted((SOURCES / "reel").glob("*.py"))]
    files.append((f"reel/_reel{sysconfig.get_config_var('EXT_SUFFIX')}", extension))
    files.append((f"reel/{soname}", library))
    for module in ("libreel_files.so", "libreel_decompositions.so"):
        files.append((f"reel/{module}", build / "lib" / module))
    return files


def entry(name):
    # The time is fixed: equal contents are an equal wheel, which is not installed again while a test uses it.
    return zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))


def make_wheel(root, build, extension, folder):
    """Writes the wheel; returns its file. Source: packaging.python.org, binary distribution format 1.0."""
    version = version_of(root)
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    tag = f"{tag}-{tag}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    folder.mkdir(parents=True, exist_ok=True)
    wheel, information = folder / f"reel-{version}-{tag}.whl", f"reel-{version}.dist-info"
    texts = {
        "METADATA": f"Metadata-Version: 2.1\nName: reel\nVersion: {version}\nSummary: Eager automatic differentiation for dynamic "
                    f"models\nLicense: Apache-2.0\nRequires-Python: >=3.11\n",
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: tools/python\nRoot-Is-Purelib: false\nTag: {tag}\n",
    }
    contents = [(name, path.read_bytes()) for name, path in wheel_files(root, build, extension)]
    contents += [(f"{information}/{name}", text.encode()) for name, text in texts.items()]
    record = ""
    with zipfile.ZipFile(wheel.with_suffix(".part"), "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in contents:
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(data)}\n"
            archive.writestr(entry(name), data, zipfile.ZIP_DEFLATED)
        archive.writestr(entry(f"{information}/RECORD"), record + f"{information}/RECORD,,\n")
    os.replace(wheel.with_suffix(".part"), wheel)
    return wheel


def install(wheel, environment, python):
    """Installs the wheel unless it is installed."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    stamp = environment / "wheel"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == digest:
        return
    run(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--force-reinstall", "--disable-pip-version-check", wheel)
    stamp.write_text(digest, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser()
    for option in ("--test", "--torch", "--benchmark", "--sanitize"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("root", type=Path)
    parser.add_argument("build", type=Path)
    given = parser.parse_args()
    if sys.version_info < (3, 11):
        sys.exit("reel: the module needs Python 3.11 or later; PYTHON names another one")
    kind = "torch" if given.torch else "sanitize" if given.sanitize else ""
    root, folder = given.root.resolve(), given.root.resolve() / "build/python" / kind
    environment = folder / "environment"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:  # several tests may start at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        make_environment(environment, given.torch)
        python = environment / "bin/python"
        extension = build_extension(root, given.build.resolve(), folder / "extension", python, given.sanitize)
        wheel = make_wheel(root, given.build.resolve(), extension, folder / "dist")
        install(wheel, environment, python)
    if given.test:
        os.execv(python, [str(python), str(root / "tests/python/run.py"), *(["--torch"] if given.torch else []),
                          *(["--sanitize"] if given.sanitize else [])])
    if given.benchmark:
        os.execv(python, [str(python), str(root / "tests/python/benchmark.py")])
    print(wheel.relative_to(root))


if __name__ == "__main__":
    main()
