"""The ops in Python: all are there, take their options by name, and compute what NumPy computes."""

import random
import re
import unittest
from pathlib import Path

import numpy as np

import reel

ROOT = Path(__file__).resolve().parent.parent.parent

# Registered ops that are no functions of include/reel/ops, by what Python has instead, or why it has nothing.
INSTEAD = {
    "slice": "slice_axis and x[1:2]",
    "index": "x[i]",
    "index_where": "x[mask]",
}

UNARY = {"exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "sin": np.sin, "floor": np.floor, "square": np.square,
         "abs": np.abs, "log1p": np.log1p, "sign": np.sign, "reciprocal": np.reciprocal, "isnan": np.isnan}
BINARY = {"add": np.add, "maximum": np.maximum, "atan2": np.arctan2, "logaddexp": np.logaddexp, "fmod": np.fmod, "less": np.less}
REDUCTIONS = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min, "var": np.var, "std": np.std,
              "median": np.median}


def drawn(*shape):
    return np.random.default_rng(random.randrange(2**32)).uniform(0.5, 2, shape).astype("float32")


def declared():
    """The functions that the headers of ops declare."""
    names = set()
    for header in (ROOT / "include/reel/ops").glob("*.h"):
        text = re.sub(r"//[^\n]*", "", header.read_text(encoding="utf-8"))
        names |= set(re.findall(r"^(?:Tensor|bool|std::vector<Tensor>|[A-Z]\w+) (\w+)\(const (?:Arg|Shape|Destination)&", text, re.M))
    return names


class OpsTest(unittest.TestCase):
    def assert_close(self, tensor, array, **tolerance):
        self.assertEqual(tensor.shape, np.shape(array))
        np.testing.assert_allclose(np.asarray(tensor), array, **({"rtol": 2e-5, "atol": 1e-6} | tolerance))

    def test_every_function_of_the_headers_can_be_called_from_python(self):
        names = declared()
        self.assertGreater(len(names), 250)
        missing = sorted(name for name in names if not hasattr(reel, name) and name not in INSTEAD)
        self.assertEqual(missing, [])
        print(f"{len(reel.op_names)} ops")

    def test_functions_and_methods_compute_what_numpy_computes(self):
        a, b = drawn(3, 4), drawn(4)
        x, y = reel.tensor(a), reel.tensor(b)
        for name, judge in UNARY.items():
            with self.subTest(op=name):
                self.assert_close(getattr(reel, name)(x), judge(a))
                self.assert_close(getattr(x, name)(), judge(a))
        for name, judge in BINARY.items():
            with self.subTest(op=name):
                self.assert_close(getattr(reel, name)(x, y), judge(a, b))
                self.assert_close(getattr(reel, name)(a=x, b=1.25), judge(a, np.float32(1.25)))

    def test_reductions_take_axes_and_keepdims(self):
        a = drawn(2, 3, 5)
        x = reel.tensor(a)
        for name, judge in REDUCTIONS.items():
            function = getattr(reel, name)
            with self.subTest(op=name):
                self.assert_close(function(x), judge(a))
                self.assert_close(function(x, 1), judge(a, axis=1))
                self.assert_close(function(x, axis=(0, -1)), judge(a, axis=(0, -1)))
                self.assert_close(function(x, axis=[2], keepdims=True), judge(a, axis=2, keepdims=True))
        self.assert_close(reel.var(x, correction=1.0), np.var(a, ddof=1))
        self.assertEqual(reel.argmax(x, 1).tolist(), np.argmax(a, 1).tolist())

    def test_ops_that_change_shapes_take_tuples_lists_and_numbers(self):
        a = drawn(2, 3, 4)
        x = reel.tensor(a)
        self.assert_close(x.reshape((4, 6)), a.reshape(4, 6))
        self.assert_close(x.reshape([-1]), a.ravel())
        self.assert_close(x.permute((2, 0, 1)), a.transpose(2, 0, 1))
        self.assert_close(x.unsqueeze(0), a[None])
        self.assert_close(x.flip(axis=1), a[:, ::-1])
        self.assert_close(reel.concat([x, x], axis=1), np.concatenate([a, a], 1))
        self.assert_close(reel.stack((x, x)), np.stack([a, a]))
        self.assert_close(reel.pad(x, [(0, 0), (1, 2), (0, 1)], value=3.0), np.pad(a, [(0, 0), (1, 2), (0, 1)], constant_values=3))
        self.assert_close(reel.pad(x, [(1, 1)] * 3, mode="edge"), np.pad(a, 1, mode="edge"))
        self.assertEqual([part.tolist() for part in reel.split(x, [1, 2], axis=1)], [a[:, :1].tolist(), a[:, 1:].tolist()])
        self.assertEqual([part.shape for part in reel.split(x, 1, axis=1)], [(2, 1, 4)] * 3)
        self.assert_close(reel.slice_axis(x, 1, 1, 3), a[:, 1:3])

    def test_overloads_are_chosen_by_the_number_and_types_of_arguments(self):
        self.assertEqual(reel.arange(3).tolist(), [0, 1, 2])
        self.assertEqual(reel.arange(1, 7, 2).tolist(), [1, 3, 5])
        self.assertEqual(reel.arange(2, dtype="f64").dtype, reel.f64)
        x = reel.tensor([1.7])
        self.assertEqual(x.to(reel.i32).tolist(), [1])
        self.assertEqual(x.to("cpu").tolist(), x.tolist())
        self.assertEqual(x.to("f64").dtype, reel.f64)
        a, b = drawn(3, 4), drawn(4, 3)
        self.assert_close(reel.tensordot(reel.tensor(a), reel.tensor(b), 1), np.tensordot(a, b, 1))
        self.assert_close(reel.tensordot(reel.tensor(a), reel.tensor(b), (0, 1), (1, 0)), np.tensordot(a, b, ((0, 1), (1, 0))))
        self.assertEqual(reel.bernoulli(0.5, (7,)).shape, (7,))
        self.assertEqual(reel.bernoulli(reel.full((2, 2), 0.5)).shape, (2, 2))
        image, filters = reel.randn((1, 2, 6, 6)), reel.randn((3, 2, 3, 3))
        without = reel.conv2d(image, filters, padding="same")
        self.assert_close(reel.conv2d(image, filters, reel.ones((3,)), padding=(1, 1)), np.asarray(without) + 1)

    def test_results_of_several_tensors_are_named_tuples(self):
        a = drawn(3, 5)
        found = reel.topk(reel.tensor(a), 2)
        self.assert_close(found.values, np.sort(a)[:, :-3:-1])
        values, indices = reel.sort(reel.tensor(a))
        self.assert_close(values, np.sort(a))
        self.assertEqual(indices.tolist(), np.argsort(a).tolist())
        q, r = reel.qr(reel.tensor(a))
        np.testing.assert_allclose(np.asarray(q @ r), a, atol=1e-5)

    def test_recurrent_ops_take_tuples_of_tensors(self):
        x, h = reel.randn((5, 2, 3)), reel.zeros((1, 2, 4))
        weights = (reel.randn((3, 16)), reel.randn((4, 16)), reel.zeros((16,)))
        whole = reel.lstm(x, (h, h), [weights])
        state = (h[0], h[0])
        for step in range(5):
            state = reel.lstm_cell(x[step], state, weights)
        self.assert_close(whole.h_n[0], np.asarray(state.h), atol=1e-5)

    def test_recurrent_weights_may_be_followed_by_the_dtype_that_rounds_them(self):
        reel.manual_seed(4)
        x, weights = reel.randn((5, 2, 3)), (reel.randn((3, 16)), reel.randn((4, 16)), reel.zeros((16,)))
        rounded = tuple(weight.to("bf16").to("f32") for weight in weights)
        found = reel.lstm(x, (None, None), [(*weights, reel.bf16)]).output
        self.assertEqual(found.tolist(), reel.lstm(x, (None, None), [rounded]).output.tolist())
        self.assertNotEqual(found.tolist(), reel.lstm(x, (None, None), [weights]).output.tolist())
        layer = reel.nn.LSTM(3, 4, weight_dtype="f16")
        plain = reel.nn.LSTM(3, 4)
        plain.load_state_dict({name: value if "bias" in name else value.to("f16").to("f32") for name, value in layer.state_dict().items()})
        self.assertEqual(layer(x).output.tolist(), plain(x).output.tolist())

    def test_random_numbers_follow_the_seed_and_generators(self):
        reel.manual_seed(3)
        first = reel.randn((4,)).tolist()
        reel.manual_seed(3)
        self.assertEqual(reel.randn((4,)).tolist(), first)
        self.assertEqual(reel.rand((3,), generator=reel.Generator(5)).tolist(), reel.rand((3,), generator=reel.Generator(5)).tolist())

    def test_numbers_of_other_libraries_are_numbers_and_arrays_are_not(self):
        x = reel.ones((2,))
        self.assertEqual((x * np.float32(2)).tolist(), [2, 2])
        self.assertEqual(reel.add(x, np.int64(2)).tolist(), [3, 3])
        for wrong in (np.ones(2), [1.0], "a", None, 1j):
            with self.subTest(value=wrong), self.assertRaises(reel.ArgumentError):
                reel.add(x, wrong)

    def test_wrong_calls_are_refused_with_what_fits(self):
        x = reel.ones((2, 2))
        wrong = [(lambda: reel.tanh(), "tanh(x)"), (lambda: reel.tanh(x, 1), "tanh(x)"), (lambda: reel.softmax(x, axes=0), "axis"),
                 (lambda: reel.sum(x, 0, True), "keepdims"), (lambda: reel.sum(x, axis="a"), "sum"), (lambda: reel.tanh(x, x=x), "tanh(x)"),
                 (lambda: reel.pad(x, [(1, 1), (1, 1)], mode="edges"), "'reflect'"), (lambda: reel.softmax(x, 1.5), "integer"),
                 (lambda: reel.softmax(x, 2**40), "32 bits"), (lambda: reel.softmax(x, 2**70), "integer"), (lambda: reel.gelu(x, approximate=1), "'tanh'"),
                 (lambda: reel.dropout(x, probability="half"), "number"), (lambda: reel.concat(x), "list"), (lambda: reel.concat([x, 1]), "Tensor"),
                 (lambda: reel.zeros((2,), dtype="f8"), "'f32'"), (lambda: reel.sum(x, keepdims=1), "True or False"),
                 (lambda: reel.zeros((2,), device="tpu"), "'cpu'"), (lambda: reel.rand((2,), generator=3), "Generator"),
                 (lambda: reel.conv2d(x, x, stride=(1, 1, 1, 1)), "three"), (lambda: reel.lstm_cell(x, (x,), (x, x)), "lstm_cell")]
        for call, words in wrong:
            with self.subTest(words=words), self.assertRaises(TypeError) as raised:
                call()
            self.assertIsInstance(raised.exception, reel.Error)
            self.assertIn(words, str(raised.exception))
