"""The C++ model of samples/outside/python as a class of Python."""

import gc
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

import reel

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLE = ROOT / "samples/outside/python"


def library_folder():
    """The folder of the library that the module was built against."""
    configured = (ROOT / "build/python/extension/options").read_text(encoding="utf-8")
    return next(line for line in configured.splitlines() if line.startswith("-Dreel_library=")).split("=", 1)[1]


def build():
    """Builds the sample as if reel were installed; returns the folder."""
    folder = ROOT / "build/python/sample"
    (folder / "pkgconfig").mkdir(parents=True, exist_ok=True)
    (folder / "pkgconfig/reel.pc").write_text(f"Name: reel\nDescription: a build\nVersion: 0\nLibs: -L{library_folder()} -lreel\n"
                                              f"Cflags: -std=c++20 -I{ROOT / 'include'}\n", encoding="utf-8")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(folder / "pkgconfig"), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    steps = [["ninja", "-C", folder / "build"]]
    if not (folder / "build/build.ninja").is_file():
        steps.insert(0, ["meson", "setup", folder / "build", SAMPLE])
    for step in steps:
        done = subprocess.run(step, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stdout)
    return folder / "build"


@unittest.skipIf("libasan" in os.environ.get("LD_PRELOAD", ""), "the sample is built without sanitizers")
class ExtensionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = build()
        sys.path.insert(0, str(cls.folder))
        import tagger

        cls.tagger = tagger

    def test_the_class_has_the_models_constructor_call_and_parameters(self):
        model = self.tagger.Tagger(10, size=4)
        self.assertIsInstance(model, reel.nn.Module)
        self.assertEqual(model.named_parameters()["output.weight"].shape, (8, 3))
        self.assertEqual(self.tagger.Tagger(10, 4, tags=5)(reel.tensor([1, 2, 3])).shape, (3, 5))
        self.assertEqual(len(model.parameters()), 9)
        for wrong in (lambda: self.tagger.Tagger(10), lambda: self.tagger.Tagger("a", 4), lambda: model("a"), lambda: model()):
            with self.assertRaises(TypeError):
                wrong()

    def test_it_computes_what_the_same_layers_of_python_compute(self):
        model = self.tagger.Tagger(10, 4)
        state = model.state_dict()
        lstm = reel.nn.LSTM(4, 4, bidirectional=True)
        lstm.load_state_dict({name.removeprefix("lstm."): value for name, value in state.items() if name.startswith("lstm.")})
        words = reel.tensor([3, 1, 4, 1])
        steps = reel.embedding(state["words.table"], words).unsqueeze(1)
        wanted = lstm(steps).output.squeeze(1) @ state["output.weight"] + state["output.bias"]
        np.testing.assert_allclose(np.asarray(model(words)), np.asarray(wanted), rtol=1e-5)

    def test_errors_of_the_model_name_the_line_of_python(self):
        model = self.tagger.Tagger(10, 4)
        with self.assertRaises(reel.IndexError) as raised:
            model(reel.tensor([11]))
        self.assertRegex(str(raised.exception), r"; at .*test_extension\.py:\d+$")
        with self.assertRaises(reel.ShapeError):
            self.tagger.Tagger(-1, 4)

    def test_it_is_a_part_of_a_module_of_python(self):
        net = reel.nn.Sequential(self.tagger.Tagger(10, 4, 3), reel.nn.Linear(3, 2))
        self.assertEqual(net(reel.tensor([1, 2])).shape, (2, 2))
        self.assertIn("0.words.table", net.named_parameters())
        live = reel.live_tensors()
        del net
        gc.collect()
        self.assertEqual(reel.live_tensors(), live - 11)

    def test_python_trains_it_whichever_module_is_imported_first(self):
        for order in ("import tagger, reel", "import reel, tagger"):
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([sys.executable, "-c", f"{order}\nimport train\ntrain.main()"], cwd=folder, capture_output=True, text=True,
                                      env={**os.environ, "PYTHONPATH": f"{self.folder}:{SAMPLE}", "LD_LIBRARY_PATH": library_folder()},
                                      check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                losses = [float(line.split()[-1]) for line in done.stdout.splitlines()]
                self.assertLess(losses[-1], 0.35, done.stdout)
                self.assertIn("output.weight", reel.load(str(Path(folder, "tagger.safetensors"))))
