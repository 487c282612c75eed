#!/usr/bin/env python3
"""Times with PyTorch what reel_cuda_bench times with reel: the same names, shapes and way of timing."""

import argparse
import dataclasses
import json
import math
import sys
import time

# These are also timing.cpp's.
REPETITIONS = 11
WARM_UP, REPETITION = 0.1, 0.02  # s


@dataclasses.dataclass
class Case:
    family: str
    name: str
    operations: int
    work: float
    prepare: object  # makes the operands, and returns what is timed
    tf32: bool = False

    @property
    def records(self):
        return self.name.endswith("backward") or self.family == "training"


def dtype_of(name):
    return {"f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16}.get(name, torch.float32)


def matmul_cases(device):
    def product(dtype, rows, size):
        def prepare():
            a = torch.randn(rows, size, device=device).to(dtype_of(dtype))
            b = torch.randn(size, size, device=device).to(dtype_of(dtype))
            return lambda: torch.matmul(a, b)
        name = f"matmul {dtype} ({rows}, {size}) x ({size}, {size})"
        return Case("matmul", name, 1, 2 * rows * size * size, prepare, dtype == "tf32")

    for dtype in ("f32", "tf32", "bf16", "f16"):
        for size in (256, 1024, 4096) if dtype == "f32" else (256, 1024, 4096, 8192):
            yield product(dtype, size, size)
        yield product(dtype, 32, 2048)
    yield product("f64", 2048, 2048)


def convolution_cases(device):
    batch = 32

    def layer(channels, out, window, stride, size, dtype):
        padding = window // 2
        out_size = (size + 2 * padding - window) // stride + 1
        name = f"conv2d {dtype} ({batch}, {channels}, {size}, {size}) {window} x {window} by {stride} to {out}"
        work = 2 * batch * out * out_size**2 * channels * window**2

        def operands():
            x = torch.randn(batch, channels, size, size, device=device).to(dtype_of(dtype))
            w = torch.randn(out, channels, window, window, device=device).to(dtype_of(dtype))
            return x, w

        def forward():
            x, w = operands()
            return lambda: torch.nn.functional.conv2d(x, w, stride=stride, padding=padding)

        def both():
            x, w = (one.requires_grad_() for one in operands())
            seed = torch.randn(batch, out, out_size, out_size, device=device).to(dtype_of(dtype))

            def run():
                y = torch.nn.functional.conv2d(x, w, stride=stride, padding=padding)
                torch.autograd.grad(y, (x, w), seed)
            return run
        yield Case("conv", name + " forward", 1, work, forward, dtype == "tf32")
        yield Case("conv", name + " forward, backward", 1, 3 * work, both, dtype == "tf32")

    for shape in ((3, 64, 7, 2, 224), (64, 64, 3, 1, 56), (256, 64, 1, 1, 56),
                  (128, 128, 3, 1, 28), (256, 256, 3, 1, 14), (512, 512, 3, 1, 7)):
        for dtype in ("f32", "tf32", "bf16"):
            yield from layer(*shape, dtype)


def recurrent_cases(device):
    steps, batch = 50, 32

    def layer(size):
        net = torch.nn.LSTM(size, size, device=device)
        return lambda x: net(x)[0], list(net.parameters())

    def loop(size):
        cell = torch.nn.LSTMCell(size, size, device=device)

        def run(x):
            state = torch.zeros(batch, size, device=device), torch.zeros(batch, size, device=device)
            for t in range(steps):
                state = cell(x[t], state)
            return state[0]
        return run, list(cell.parameters())

    def net(what, size, make):
        name = f"{what} T = {steps}, B = {batch}, H = {size}"
        work = 16 * steps * batch * size * size

        def forward():
            compute, _ = make(size)
            x = torch.randn(steps, batch, size, device=device)
            return lambda: compute(x)

        def both():
            compute, parameters = make(size)
            x = torch.randn(steps, batch, size, device=device, requires_grad=True)
            seed = torch.ones_like(compute(x))

            def run():
                compute(x).backward(seed)
                for source in (x, *parameters):
                    source.grad = None
            return run
        yield Case("lstm", name + " forward", 1, work, forward)
        yield Case("lstm", name + " forward, backward", 1, 3 * work, both)

    for what, make in (("lstm", layer), ("lstm cell in a loop", loop)):
        for size in (128, 512):
            yield from net(what, size, make)


def chain_cases(device):
    length = 100

    def add_chain(x, a, b):
        for _ in range(length // 2):
            x = x * a
            x = x + b
        return x

    def tanh_chain(x, a, b):
        for _ in range(length // 2):
            x = torch.tanh(x * a)
        return x

    def chain(what, size, compute):
        name = f"chain of {what}, [{size}]"

        def operands():
            a = torch.randn(size, device=device) * 1e-3 + 1
            return torch.randn(size, device=device), a, torch.randn(size, device=device)

        def forward():
            x, a, b = operands()
            return lambda: compute(x, a, b)

        def both():
            x, a, b = (one.requires_grad_() for one in operands())
            seed = torch.ones(size, device=device)

            def run():
                compute(x, a, b).backward(seed)
                x.grad = a.grad = b.grad = None
            return run
        yield Case("chain", name + " forward", length, 0, forward)
        yield Case("chain", name + " forward, backward", length, 0, both)

    for size in (64, 4096):
        yield from chain("mul, add", size, add_chain)
        yield from chain("mul, tanh", size, tanh_chain)


def layer_cases(device):
    def randn(*shape):
        return torch.randn(*shape, device=device)

    def layer(family, name, draw, compute):
        def forward():
            operands = draw()
            return lambda: compute(*operands)

        def both():
            operands = draw()
            sources = [one.requires_grad_() for one in operands if one.is_floating_point()]
            seed = torch.ones_like(compute(*operands))
            return lambda: torch.autograd.grad(compute(*operands), sources, seed)
        yield Case(family, name + " forward", 1, 0, forward)
        yield Case(family, name + " forward, backward", 1, 0, both)

    def adam(count, size):
        def prepare():
            parameters = [randn(size).requires_grad_() for _ in range(count)]
            for one in parameters:
                one.grad = randn(size)
            return torch.optim.Adam(parameters).step
        return Case("adam", f"adam step, {count} tensors of {size}", 1, 0, prepare)

    yield from layer("softmax", "softmax (4096, 1000)", lambda: [randn(4096, 1000)], lambda x: torch.softmax(x, 1))
    yield from layer("layer_norm", "layer_norm (4096, 1024)", lambda: [randn(4096, 1024), randn(1024), randn(1024)],
                     lambda x, weight, bias: torch.nn.functional.layer_norm(x, (1024,), weight, bias))
    yield from layer("sum", "sum (4096, 4096) over axis 1", lambda: [randn(4096, 4096)], lambda x: torch.sum(x, 1))
    yield from layer("elementwise", "tanh (4096, 4096)", lambda: [randn(4096, 4096)], lambda x: torch.tanh(x))
    yield from layer("embedding", "embedding (100000, 128), 4096 rows",
                     lambda: [randn(100000, 128), torch.randint(0, 100000, (4096,), device=device)],
                     lambda table, indices: torch.nn.functional.embedding(indices, table))
    yield adam(100, 100000)
    yield adam(1000, 1000)


def graph_cases(device):
    def training(capturable=False):
        layers = torch.nn.Linear(784, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU()
        net = torch.nn.Sequential(*layers, torch.nn.Linear(1024, 10)).to(device)
        adam = torch.optim.Adam(net.parameters(), capturable=capturable)
        x, target = torch.randn(64, 784, device=device), torch.randint(0, 10, (64,), device=device)

        def step():
            adam.zero_grad()
            torch.nn.functional.cross_entropy(net(x), target).backward()
            adam.step()
        return step

    def replay():
        if device == "cpu":
            return training()
        step = training(capturable=True)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        return graph.replay

    name = "training 784-1024-1024-10, batch 64, Adam"
    yield Case("training", name, 1, 0, training)
    yield Case("training", name + ", as a CUDA graph", 1, 0, replay)


def all_cases(device):
    for family in (chain_cases, matmul_cases, convolution_cases, recurrent_cases, layer_cases, graph_cases):
        yield from family(device)


def seconds(run, count, synchronise):
    synchronise()
    start = time.perf_counter()
    for _ in range(count):
        run()
    synchronise()
    return time.perf_counter() - start


def time_of(run, synchronise):
    """Microseconds of a run: the median of the repetitions, between their quartiles."""
    seconds(run, 1, synchronise)
    count, spent = 1, 0
    while spent < WARM_UP:
        took = seconds(run, count, synchronise)
        spent += took
        count = max(1, min(math.ceil(REPETITION * count / took), 2 * count))
    times = sorted(1e6 * seconds(run, count, synchronise) / count for _ in range(REPETITIONS))
    return times[REPETITIONS // 4], times[REPETITIONS // 2], times[REPETITIONS - 1 - REPETITIONS // 4]


def measure(case, device, runs_once):
    entry = {"family": case.family, "name": case.name, "work": case.work}
    # Set outside of the timed part: setting it takes longer than some ops.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = case.tf32
    try:
        with torch.set_grad_enabled(case.records):
            time_case(case, entry, device, runs_once)
    except Exception as error:  # the other cases are still measured
        entry["error"] = str(error)
        print(f"{case.name}: FAILED: {error}", flush=True)
    return entry


def time_case(case, entry, device, runs_once):
    run = case.prepare()
    if runs_once:
        run()
        print(f"{case.name}: runs", flush=True)
    else:
        synchronise = torch.cuda.synchronize if device == "cuda" else lambda: None
        entry["microseconds"] = [time / case.operations for time in time_of(run, synchronise)]
        print(f"{case.name:<76}{entry['microseconds'][1]:>12.2f} us", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--filter", default="", help="only cases whose name contains this")
    parser.add_argument("--only", action="append", metavar="NAME",
                        help="only the case of this name, and those of further --only")
    parser.add_argument("--json", help="also write the times to this file")
    parser.add_argument("--seconds", type=float, default=0, help="start no case after so many")
    parser.add_argument("--list", action="store_true", help="only print the names of the cases")
    parser.add_argument("--once", action="store_true", help="run each case once, without timing it")
    arguments = parser.parse_args()
    cases = [case for case in all_cases(arguments.device)
             if arguments.filter in case.name and (not arguments.only or case.name in arguments.only)]
    if unknown := sorted(set(arguments.only or ()) - {case.name for case in cases}):
        parser.error(f"there is no case {unknown[0]}")
    if arguments.list:
        print("\n".join(case.name for case in cases))
        return 0
    try:
        global torch
        import torch
    except ImportError as error:
        print(f"Python has no PyTorch: {error}")
        return 77
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print(f"PyTorch {torch.__version__} sees no CUDA device")
        return 77
    device_name = torch.cuda.get_device_name() if arguments.device == "cuda" else "cpu"
    print(f"PyTorch {torch.__version__} on {device_name}", flush=True)
    start = time.perf_counter()
    entries = []
    for case in cases:
        if arguments.seconds and time.perf_counter() - start > arguments.seconds:
            print(f"the time is up: {len(entries)} of {len(cases)} cases were measured")
            break
        entries.append(measure(case, arguments.device, arguments.once))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"version": torch.__version__, "device": device_name, "cases": entries}, file, indent=1)
    return 1 if any("error" in entry for entry in entries) else 0


if __name__ == "__main__":
    sys.exit(main())
