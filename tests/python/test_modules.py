"""Modules, optimisers and files in Python."""

import gc
import tempfile
import unittest
from pathlib import Path

import numpy as np

import reel
from reel import nn, optim


class Tagger(nn.Module):
    def __init__(self, words, size, tags):
        super().__init__()
        self.embedding = nn.Embedding(words, size)
        self.lstm = nn.LSTM(size, size, bidirectional=True)
        self.output = nn.Linear(2 * size, tags, bias=False)
        self.scale = reel.ones((tags,))
        scale = reel.ones((tags,))
        scale.requires_grad = True
        self.scale = scale

    def __call__(self, words):
        return self.output(self.lstm(self.embedding(words).unsqueeze(1)).output.squeeze(1)) * self.scale


class ModulesTest(unittest.TestCase):
    def test_layers_compute_what_numpy_computes(self):
        x = np.random.default_rng(1).normal(size=(5, 3)).astype("float32")
        line = nn.Linear(3, 2)
        np.testing.assert_allclose(np.asarray(line(reel.tensor(x))), x @ np.asarray(line.weight) + np.asarray(line.bias), rtol=1e-5)
        table = nn.Embedding(7, 4)
        np.testing.assert_array_equal(np.asarray(table(reel.tensor([3, 0, 3]))), np.asarray(table.table)[[3, 0, 3]])
        normed = np.asarray(nn.LayerNorm(3)(reel.tensor(x)))
        np.testing.assert_allclose(normed, (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5), rtol=1e-4, atol=1e-5)

    def test_every_layer_can_be_made_and_called(self):
        sequence, image = reel.randn((4, 2, 6)), reel.randn((2, 6, 5, 5))
        calls = {
            nn.Linear(6, 2): (sequence,), nn.Highway(6): (sequence,), nn.LayerNorm(6): (sequence,), nn.RMSNorm((6,)): (sequence,),
            nn.LSTM(6, 3, layers=2): (sequence,), nn.GRU(6, 3): (sequence,), nn.RNN(6, 3, activation="relu"): (sequence,),
            nn.Conv2d(6, 2, 3, padding="same"): (image,), nn.Conv1d(6, 2, (3,)): (reel.randn((2, 6, 9)),), nn.BatchNorm2d(6): (image,),
            nn.GroupNorm(2, 6): (image,), nn.Dropout(0.5): (image,), nn.Flatten(): (image,), nn.ReLU(): (image,), nn.Tanh(): (image,),
            nn.MultiHeadAttention(6, 2): (reel.randn((2, 4, 6)),), nn.TransformerEncoderLayer(6, 2): (reel.randn((2, 4, 6)),),
            nn.EmbeddingBag(9, 4): (reel.tensor([[1, 2], [3, 4]]),), nn.Bilinear(3, 4, 5): (reel.randn((2, 3)), reel.randn((2, 4))),
            nn.GRUCell(6, 3): (sequence[0], reel.zeros((2, 3))), nn.LSTMCell(6, 3): (sequence[0], (reel.zeros((2, 3)), reel.zeros((2, 3)))),
        }
        for layer, inputs in calls.items():
            with self.subTest(layer=type(layer).__name__):
                result = layer(*inputs)
                self.assertTrue(np.isfinite(np.asarray(result if isinstance(result, reel.Tensor) else result[0])).all())

    def test_attributes_become_parts_with_names(self):
        model = Tagger(10, 3, 4)
        self.assertEqual(sorted(model.named_parameters()), ["embedding.table", "lstm.nets.0.W_h", "lstm.nets.0.W_x", "lstm.nets.0.bias",
                                                            "lstm.nets.1.W_h", "lstm.nets.1.W_x", "lstm.nets.1.bias", "output.weight", "scale"])
        self.assertEqual(model.parameter_count(), sum(p.numel() for p in model.parameters()))
        self.assertTrue(model.training and model.lstm.training)
        model.eval()
        self.assertFalse(model.training or model.lstm.training)
        model.output = nn.Linear(6, 5)
        self.assertEqual(model.named_parameters()["output.weight"].shape, (6, 5))
        model.scale = reel.full((5,), 2.0)
        self.assertEqual(model.named_parameters()["scale"].tolist(), [2.0] * 5)
        with self.assertRaises(AttributeError):
            model.missing
        layer = model.lstm
        del model
        gc.collect()
        self.assertEqual(len(layer.parameters()), 6)

    def test_sequential_calls_modules_and_functions(self):
        net = nn.Sequential(nn.Linear(2, 3), reel.tanh, nn.Linear(3, 1))
        x = reel.randn((4, 2))
        self.assertEqual(list(net.named_parameters()), ["0.weight", "0.bias", "2.weight", "2.bias"])
        self.assertEqual(net(x).tolist(), net[2](net[0](x).tanh()).tolist())

    def test_a_model_learns_with_every_optimiser(self):
        words, tags = reel.tensor([1, 2, 3, 4]), reel.tensor([0, 1, 2, 0])
        for made in (optim.SGD, optim.Adam, optim.AdamW, optim.Adagrad, optim.RMSprop, optim.Adadelta, optim.Adamax, optim.NAdam, optim.RAdam,
                     optim.Lion, optim.Rprop):
            with self.subTest(optimiser=made.__name__):
                reel.manual_seed(1)
                model = Tagger(10, 8, 3)
                optimiser = made(model.parameters(), learning_rate=1.0 if made in (optim.Adadelta, optim.SGD) else 0.02)
                losses = []
                for _ in range(30):
                    with reel.Tape() as tape:
                        loss = reel.cross_entropy(model(words), tags)
                        tape.backward(loss)
                    optim.clip_grad_norm(model.parameters(), 5.0)
                    optimiser.step()
                    optimiser.zero_grad()
                    losses.append(loss.item())
                self.assertLess(losses[-1], losses[0] - 0.02)

    def test_a_step_of_sgd_is_the_parameter_less_the_scaled_gradient(self):
        w = reel.tensor([1.0, 2.0])
        w.requires_grad = True
        sgd = optim.SGD([w], learning_rate=0.5)
        with reel.Tape() as tape:
            tape.backward((w * reel.tensor([3.0, 4.0])).sum())
        sgd.step()
        self.assertEqual(w.tolist(), [-0.5, 0.0])
        self.assertEqual(w.grad.tolist(), [3, 4])
        sgd.zero_grad()
        self.assertTrue(w.grad is None or not np.asarray(w.grad).any())
        sgd.learning_rate = 0.25
        self.assertEqual(sgd.learning_rate, 0.25)

    def test_weights_and_states_are_saved_and_loaded(self):
        model, other = Tagger(10, 3, 4), Tagger(10, 3, 4)
        adam = optim.Adam(model.parameters())
        with reel.Tape() as tape:
            tape.backward(model(reel.tensor([1, 2])).square().sum())
        adam.step()
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "model.safetensors"))
            model.save(path)
            self.assertEqual(other.load(path), ([], []))
            for name, value in reel.load(path).items():
                np.testing.assert_array_equal(np.asarray(value), np.asarray(other.named_parameters()[name]))
            reel.save(path, {"a": reel.ones((2,))})
            self.assertEqual(reel.load(path)["a"].tolist(), [1, 1])
            with self.assertRaises(reel.MisfitError):
                other.load(path)
            with self.assertRaises(OSError) as raised:
                reel.load(path + ".missing")
            self.assertIsInstance(raised.exception, reel.FileError)
        third = Tagger(10, 3, 4)
        third.load_state_dict(model.state_dict())
        self.assertEqual(third(reel.tensor([1])).tolist(), model(reel.tensor([1])).tolist())
        again = optim.Adam(third.parameters())
        again.load_state_dict(adam.state_dict())
        self.assertEqual(sorted(again.state_dict()), sorted(adam.state_dict()))

    def test_options_are_keywords_and_unknown_ones_are_refused(self):
        self.assertNotIn("bias", nn.Linear(2, 3, bias=False).named_parameters())
        self.assertEqual(nn.Linear(2, 3, dtype="f64").weight.dtype, reel.f64)
        self.assertEqual(nn.Linear(2, 3, initialiser=lambda shape: reel.full(shape, 3.0)).weight.tolist(), [[3.0] * 3] * 2)
        for wrong in (lambda: nn.Linear(2, 3, biass=False), lambda: nn.Linear("a", 3), lambda: optim.Adam([1]), lambda: optim.Adam(3),
                      lambda: nn.Linear(2, 3, initialiser=3), lambda: nn.Linear(2, 3)("a"), lambda: nn.LSTM(2, 3)(reel.ones((1, 1, 2)), 5)):
            with self.assertRaises(reel.ArgumentError):
                wrong()

    def test_freezing_and_conversions_change_the_parameters(self):
        model = Tagger(10, 3, 4)
        self.assertEqual(model.freeze("lstm.*"), 6)
        self.assertFalse(model.named_parameters()["lstm.nets.0.bias"].requires_grad)
        self.assertIs(model.to("f64"), model)
        self.assertEqual(model.output.weight.dtype, reel.f64)
