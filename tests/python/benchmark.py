#!/usr/bin/env python3
"""Measures what an op costs from Python: a loop of calls on 64 f32, less the empty loop; the best of several runs.

tools/python --benchmark runs it. tools/bench op_overhead has what the ops cost in C++.
"""

import ctypes
import time

import reel


def best(function, count=20000, runs=15):
    found = float("inf")
    for _ in range(runs):
        start = time.perf_counter_ns()
        function(count)
        found = min(found, (time.perf_counter_ns() - start) / count)
    return found


def empty(count):
    for _ in range(count):
        pass


def main():
    x, a, b = reel.ones((64,)), reel.ones((64,)), reel.ones((64,))
    matrix = reel.ones((8, 8))

    def chain(count):
        y = x
        for _ in range(count // 2):
            y = y * a
            y = y + b

    def function(count):
        tanh = reel.tanh
        for _ in range(count):
            tanh(x)

    def method(count):
        for _ in range(count):
            x.tanh()

    def options(count):
        for _ in range(count):
            reel.sum(x, axis=0, keepdims=True)

    def product(count):
        for _ in range(count):
            matrix @ matrix

    def index(count):
        for _ in range(count):
            x[1:5]

    def recorded(count):
        w = reel.ones((64,))
        w.requires_grad = True
        with reel.Tape():
            y = w
            for _ in range(count // 2):
                y = y * a
                y = y + b

    nothing = best(empty)
    for name, case in [("x * a, x + b", chain), ("x * a, x + b, recorded", recorded), ("reel.tanh(x)", function), ("x.tanh()", method),
                       ("reel.sum(x, axis=0, keepdims=True)", options), ("(8, 8) @ (8, 8)", product), ("x[1:5]", index)]:
        print(f"{name:36} {best(case) - nothing:6.0f} ns")
    # The cost of releasing and taking back the global lock, if no other thread wants it.
    held, released = ctypes.PyDLL(None).getppid, ctypes.CDLL(None).getppid

    def call(f):
        def calls(count):
            for _ in range(count):
                f()
        return calls

    print(f"{'releasing the global lock':36} {best(call(released)) - best(call(held)):6.0f} ns")


if __name__ == "__main__":
    main()
