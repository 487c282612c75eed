#!/usr/bin/env python3
"""Runs the tests of the Python module; the last line says "N passed, N failed, N skipped".

Usage: run.py [--torch] [--sanitize] [FILE…]
       run.py --build ROOT BUILD FILE

Without files, all test_*.py. --torch runs those that need PyTorch, in a Python that has it; the others want a newer NumPy than
Debian's. --sanitize runs them with the address sanitizer's library loaded before Python. --build first builds the module against BUILD, a Meson build of ROOT,
and runs FILE with the Python that it is installed in; it exits with status 77 where nanobind cannot be downloaded.
"""

import os
import random
import subprocess
import sys
import unittest
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
TORCH_TESTS = ["test_sharing.TorchTest", "test_import"]


def build(root, directory, file):
    made = subprocess.run([sys.executable, root / "tools/python_module/build_wheel.py", root, directory], check=False)
    if made.returncode:
        sys.exit(made.returncode)
    python = root / "build/python/environment/bin/python"
    os.execv(python, [str(python), str(FOLDER / "run.py"), file])


def restart_under_sanitizer():
    """Starts this program again with the sanitizer's library, which has to be loaded first."""
    library = subprocess.check_output(["g++", "-print-file-name=libasan.so"], text=True).strip()
    cpp = subprocess.check_output(["g++", "-print-file-name=libstdc++.so"], text=True).strip()
    os.environ.update(LD_PRELOAD=f"{library}:{cpp}", ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1",
                      PYTHONMALLOC="malloc")
    arguments = [argument for argument in sys.argv if argument != "--sanitize"]
    os.execve("/usr/bin/setarch", ["setarch", "-R", sys.executable, *arguments], os.environ)


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--build"]:
        build(Path(arguments[1]).resolve(), Path(arguments[2]).resolve(), arguments[3])
    if "--sanitize" in arguments:
        restart_under_sanitizer()
    if "--torch" in arguments:
        os.environ["REEL_PYTHON_TORCH"] = "1"
    files = [argument for argument in arguments if not argument.startswith("--")]
    if not files:
        files = TORCH_TESTS if "--torch" in arguments else [path.name for path in sorted(FOLDER.glob("test_*.py"))]
    seed = int(os.environ.get("REEL_SEED", "1"))
    print(f"seed {seed}")
    random.seed(seed)
    sys.path.insert(0, str(FOLDER))
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromName(file.removesuffix(".py")) for file in files)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(suite)
    failed = len(result.failures) + len(result.errors)
    passed = result.testsRun - failed - len(result.skipped)
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}")
    print(f"{passed} passed, {failed} failed, {len(result.skipped)} skipped")
    sys.exit(1 if failed or not result.testsRun else 0)


if __name__ == "__main__":
    main()
