#!/usr/bin/env python3
"""Writes the files of this folder: weights in the layouts of Keras 2 and Keras 3, and what its layers make of inputs.

Usage: write_files.py, with h5py 3.16.0 and numpy 2.4.6 (the files in the repository are never written anew)

The equations are those of Keras's documentation: Keras itself is not needed. Sources: keras/src/saving/saving_lib.py
and keras/src/legacy/saving/legacy_h5_format.py of Keras 3.
"""

from pathlib import Path

import h5py
import numpy

folder = Path(__file__).parent
random = numpy.random.default_rng(3)


def numbers(*shape):
    return random.uniform(-1, 1, shape).astype("float32")


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def lstm(x, kernel, recurrent, bias):
    h = c = numpy.zeros((x.shape[1], recurrent.shape[0]), "float32")
    outputs = []
    for step in x:
        i, f, g, o = numpy.split(step @ kernel + h @ recurrent + bias, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * numpy.tanh(g)
        h = sigmoid(o) * numpy.tanh(c)
        outputs.append(h)
    return numpy.stack(outputs)


def gru(x, kernel, recurrent, bias):
    h = numpy.zeros((x.shape[1], recurrent.shape[0]), "float32")
    outputs = []
    for step in x:
        xz, xr, xh = numpy.split(step @ kernel + bias[0], 3, axis=1)
        hz, hr, hh = numpy.split(h @ recurrent + bias[1], 3, axis=1)
        z = sigmoid(xz + hz)
        h = z * h + (1 - z) * numpy.tanh(xh + sigmoid(xr + hr) * hh)
        outputs.append(h)
    return numpy.stack(outputs)


def simple_rnn(x, kernel, recurrent, bias):
    h = numpy.zeros((x.shape[1], recurrent.shape[0]), "float32")
    outputs = []
    for step in x:
        h = numpy.tanh(step @ kernel + h @ recurrent + bias)
        outputs.append(h)
    return numpy.stack(outputs)


def conv2d(x, kernel, bias):
    """x: (N, height, width, in), kernel: (height, width, in, out)."""
    rows, columns = x.shape[1] - kernel.shape[0] + 1, x.shape[2] - kernel.shape[1] + 1
    y = numpy.zeros((x.shape[0], rows, columns, kernel.shape[3]), "float32")
    for i in range(rows):
        for j in range(columns):
            window = x[:, i:i + kernel.shape[0], j:j + kernel.shape[1]]
            y[:, i, j] = numpy.tensordot(window, kernel, 3) + bias
    return y


def attention(x, weights):
    """x: (N, T, E)."""
    def project(name):
        return numpy.einsum("nte,ehd->nhtd", x, weights[f"{name}/kernel"]) + weights[f"{name}/bias"][None, :, None]
    q, k, v = (project(name) for name in ("query", "key", "value"))
    scores = q @ k.swapaxes(-1, -2) / numpy.sqrt(q.shape[-1])
    scores = numpy.exp(scores - scores.max(-1, keepdims=True))
    y = scores / scores.sum(-1, keepdims=True) @ v
    return numpy.einsum("nhtd,hde->nte", y, weights["attention_output/kernel"]) + weights["attention_output/bias"]


# A recurrent layer's cell has a name in Keras 2.
LAYERS = {
    "dense": {"kernel": numbers(4, 2), "bias": numbers(2)},
    "embedding": {"embeddings": numbers(5, 3)},
    "conv2d": {"kernel": numbers(2, 3, 2, 4), "bias": numbers(4)},
    "lstm": {f"lstm_cell/{name}": x for name, x in
             {"kernel": numbers(3, 8), "recurrent_kernel": numbers(2, 8), "bias": numbers(8)}.items()},
    "gru": {f"gru_cell_1/{name}": x for name, x in
            {"kernel": numbers(3, 6), "recurrent_kernel": numbers(2, 6), "bias": numbers(2, 6)}.items()},
    "simple_rnn": {f"simple_rnn_cell/{name}": x for name, x in
                   {"kernel": numbers(3, 2), "recurrent_kernel": numbers(2, 2), "bias": numbers(2)}.items()},
    "bidirectional": {f"{way}_lstm/lstm_cell/{name}": numbers(*shape) for way in ("forward", "backward")
                      for name, shape in {"kernel": (3, 8), "recurrent_kernel": (2, 8), "bias": (8,)}.items()},
    "batch_normalization": {"gamma": numbers(3), "beta": numbers(3), "moving_mean": numbers(3),
                            "moving_variance": numbers(3) ** 2 + 1},
    "layer_normalization": {"gamma": numbers(4), "beta": numbers(4)},
    "multi_head_attention": {f"{part}/{name}": numbers(*shape) for part in ("query", "key", "value", "attention_output")
                             for name, shape in
                             (("kernel", (2, 3, 6) if part == "attention_output" else (6, 2, 3)),
                              ("bias", (6,) if part == "attention_output" else (2, 3)))},
}


def write_keras_2(name, prefix, suffix, paths):
    with h5py.File(folder / name, "w") as file:
        root = file.require_group(prefix) if prefix else file
        root.attrs["layer_names"] = [layer.encode() for layer in LAYERS]
        for layer, weights in LAYERS.items():
            group = root.create_group(layer)
            names = [f"{paths}{layer}/{weight}{suffix}" for weight in weights]
            group.attrs["weight_names"] = [weight.encode() for weight in names]
            for weight, x in zip(names, weights.values()):
                group.create_dataset(weight, data=x)
        if prefix:
            file.create_group("optimizer_weights").create_dataset("iterations:0", data=numpy.int64(7))


def write_keras_3(name):
    """A layer's variables are numbered within it, and within each part of it."""
    parts = {"attention_output": "output_dense", "query": "query_dense", "key": "key_dense", "value": "value_dense",
             "forward_lstm": "forward_layer", "backward_lstm": "backward_layer"}
    with h5py.File(folder / name, "w") as file:
        for layer, weights in LAYERS.items():
            counts = {}
            file.create_group(f"layers/{layer}/vars")
            for weight, x in weights.items():
                path = [parts.get(part, "cell" if "_cell" in part else part) for part in weight.split("/")[:-1]]
                place = "/".join([f"layers/{layer}", *path, "vars"])
                counts[place] = counts.get(place, -1) + 1
                file.create_dataset(f"{place}/{counts[place]}", data=x)
        file.create_dataset("layers/dropout/seed_generator/vars/0", data=numpy.array([1, 2], "uint32"))
        file.create_dataset("optimizer/vars/0", data=numpy.int64(7))


def write_expected():
    def weights(layer, part=""):
        return [x for name, x in LAYERS[layer].items() if name.startswith(part)]
    x, steps, pictures = numbers(2, 4), numbers(5, 2, 3), numbers(1, 3, 4, 2)
    rows = numbers(2, 3)
    gamma, beta, mean, variance = weights("batch_normalization")
    normalised = (x - x.mean(1, keepdims=True)) / numpy.sqrt(x.var(1, keepdims=True) + 1e-3)
    tokens = numbers(2, 4, 6)
    expected = {
        "x": x, "steps": steps, "pictures": pictures, "rows": rows, "tokens": tokens,
        "dense": x @ weights("dense")[0] + weights("dense")[1],
        "embedding": weights("embedding")[0][[4, 0]],
        "conv2d": conv2d(pictures, *weights("conv2d")),
        "lstm": lstm(steps, *weights("lstm")), "gru": gru(steps, *weights("gru")),
        "simple_rnn": simple_rnn(steps, *weights("simple_rnn")),
        "bidirectional": numpy.concatenate(
            [lstm(steps, *weights("bidirectional", "forward")),
             lstm(steps[::-1], *weights("bidirectional", "backward"))[::-1]], 2),
        "batch_normalization": (rows - mean) / numpy.sqrt(variance + 1e-3) * gamma + beta,
        "layer_normalization": normalised * weights("layer_normalization")[0] + weights("layer_normalization")[1],
        "multi_head_attention": attention(tokens, LAYERS["multi_head_attention"]),
    }
    with h5py.File(folder / "expected.h5", "w") as file:
        for name, found in expected.items():
            file.create_dataset(name, data=found)


def write_types():
    with h5py.File(folder / "types.h5", "w") as file:
        for name in ("float16", "float32", "float64", "int32", "int64", "uint8", "bool", "int8", "uint16", "uint32"):
            file.create_dataset(f"numbers/{name}", data=numpy.array([[1, 0, 1]]).astype(name))
        file.create_dataset("big", data=numpy.array([1, 2, 3], ">f4"))
        file.create_dataset("compressed", data=numpy.zeros(1000, "float32"), compression="gzip")
        file.create_dataset("scalar", data=2.5)
        file.create_dataset("empty", data=numpy.zeros((0, 3), "float32"))
        file.create_dataset("words", data=["a", "bc"])
    with h5py.File(folder / "refused.h5", "w") as file:
        file.create_dataset("huge", shape=(1 << 40,), dtype="float32", chunks=(1024,))


write_keras_2("keras2.model.h5", "model_weights", ":0", "")
write_keras_2("keras3.legacy.h5", "", "", "sequential/")
write_keras_3("keras3.weights.h5")
write_expected()
write_types()
