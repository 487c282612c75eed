"""Importing the module before and after other libraries, and beside ones that take most of the static thread-local memory."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TRAIN = """
w = reel.ones((2, 2))
w.requires_grad = True
with reel.Tape() as tape:
    tape.backward((reel.ones((1, 2)) @ w).tanh().sum())
assert w.grad.shape == (2, 2)
"""


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


class ImportTest(unittest.TestCase):
    def assert_runs(self, code):
        done = run(code)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_it_works_before_and_after_numpy(self):
        self.assert_runs("import numpy, reel" + TRAIN)
        self.assert_runs("import reel, numpy" + TRAIN)

    def test_it_works_where_other_libraries_have_taken_most_static_thread_local_memory(self):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "taking.c")
            source.write_text("static __thread char taken[SIZE] __attribute__((tls_model(\"initial-exec\"), used));\n"
                              "char* address(void) { return taken; }\n", encoding="utf-8")
            library = Path(folder, "taking.so")
            subprocess.run(["g++", "-x", "c", "-shared", "-fPIC", "-DSIZE=1024", source, "-o", library], check=True)
            self.assert_runs(f"import ctypes; ctypes.CDLL({str(library)!r}); import reel" + TRAIN)
            # A library that takes more cannot be loaded: the memory is limited, and the one above has taken of it.
            subprocess.run(["g++", "-x", "c", "-shared", "-fPIC", "-DSIZE=100000", source, "-o", library], check=True)
            self.assertNotEqual(run(f"import ctypes; ctypes.CDLL({str(library)!r})").returncode, 0)

    def test_it_works_in_threads_and_forked_processes(self):
        self.assert_runs(f"import reel, threading\ndef train():{TRAIN.replace(chr(10), chr(10) + ' ')}\n"
                         "threads = [threading.Thread(target=train) for _ in range(4)]\n"
                         "for t in threads: t.start()\nfor t in threads: t.join()")
        self.assert_runs("import os, reel\nx = reel.ones((2,))\npid = os.fork()\n"
                         "if pid == 0: os._exit(0 if (x + 1).tolist() == [2, 2] else 1)\n"
                         "assert os.waitpid(pid, 0)[1] == 0")

    def test_tensors_that_outlive_the_interpreter_are_dropped_without_harm(self):
        self.assert_runs("import reel, numpy, builtins\nbuiltins.kept = [reel.from_dlpack(numpy.ones(3)), numpy.asarray(reel.ones((3,)))]\n"
                         "builtins.model = reel.nn.Sequential(reel.nn.Linear(2, 2))\ntape = reel.Tape().__enter__()")

    @unittest.skipUnless("REEL_PYTHON_TORCH" in os.environ, "tools/python --torch runs it")
    def test_it_works_before_and_after_torch(self):
        for order in ("torch, reel", "reel, torch", "numpy, torch, reel", "torch, numpy, reel"):
            with self.subTest(order=order):
                self.assert_runs(f"import {order}{TRAIN}x = torch.from_dlpack(w)\nassert torch.tanh(x).sum() > 0")
