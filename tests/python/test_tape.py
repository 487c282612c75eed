"""Tapes in Python: gradients, scopes, threads."""

import threading
import unittest

import numpy as np

import reel


def parameter(values):
    made = reel.tensor(values)
    made.requires_grad = True
    return made


class TapeTest(unittest.TestCase):
    def test_backward_adds_gradients_to_parameters(self):
        w = parameter([1.0, 2.0, 3.0])
        self.assertIsNone(w.grad)
        for count in (1, 2):
            with reel.Tape() as tape:
                tape.backward((w * w).sum())
            self.assertEqual(w.grad.tolist(), [2.0 * count, 4.0 * count, 6.0 * count])
        w.grad = None
        self.assertIsNone(w.grad)
        w.grad = reel.ones((3,))
        self.assertEqual(w.grad.tolist(), [1, 1, 1])

    def test_gradients_equal_differences(self):
        values = np.random.default_rng(1).normal(size=(4, 3))

        def loss(x):
            return (reel.log_softmax(x.tanh(), 1)[:, 0] * x.sum(axis=1)).mean()

        x = reel.tensor(values)
        with reel.Tape() as tape:
            tape.watch(x)
            gradient = tape.gradient(loss(x), x)
        for place in np.ndindex(values.shape):
            step = np.zeros_like(values)
            step[place] = 1e-6
            wanted = (loss(reel.tensor(values + step)).item() - loss(reel.tensor(values - step)).item()) / 2e-6
            self.assertAlmostEqual(gradient[place].item(), wanted, places=7)

    def test_gradient_takes_one_source_or_a_list(self):
        x, y, z = parameter([3.0]), parameter([5.0]), parameter([1.0])
        with reel.Tape(persistent=True) as tape:
            product = x * y
            self.assertEqual(tape.gradient(product, x).tolist(), [5])
            self.assertEqual([g.tolist() for g in tape.gradient(product, [x, y])], [[5], [3]])
            self.assertEqual(tape.gradient(product, z, unconnected="zeros").tolist(), [0])
            with self.assertRaises(reel.TapeError):
                tape.gradient(product, z)
            self.assertEqual(tape.gradient(product, x, seed=reel.tensor([2.0])).tolist(), [10])

    def test_nested_tapes_give_second_derivatives(self):
        x = parameter([2.0])
        with reel.Tape() as outer:
            with reel.Tape() as inner:
                cube = x * x * x
                first = inner.gradient(cube, x)
            self.assertEqual(outer.gradient(first, x).tolist(), [12])

    def test_a_tape_works_within_its_block_only(self):
        x = parameter([1.0])
        tape = reel.Tape()
        with self.assertRaises(reel.TapeError):
            tape.backward(x)
        with tape:
            y = x * 2
            with self.assertRaises(reel.TapeError):
                tape.__enter__()
        with self.assertRaises(reel.TapeError):
            tape.backward(y)
        with self.assertRaises(ZeroDivisionError), reel.Tape() as other:
            y = x * 2
            1 // 0
        with self.assertRaises(reel.TapeError):
            other.backward(y)
        with tape:  # once more
            tape.backward(x * 3)
        self.assertEqual(x.grad.tolist(), [3])

    def test_values_of_a_finished_tape_and_overwritten_ones_are_refused(self):
        x = parameter([1.0, 2.0])
        with reel.Tape() as tape:
            h = x.exp()
            h_before = h * h
            with self.assertRaises(reel.TapeError):
                h += 1
                tape.backward(h_before.sum())
        with reel.Tape() as tape, self.assertRaises(reel.TapeError):
            (h_before * x).sum()

    def test_nothing_is_recorded_within_no_record_and_without_a_tape(self):
        x = parameter([1.0])
        with reel.Tape() as tape:
            with reel.NoRecord():
                x * 2
            self.assertEqual(len(tape), 0)
            x * 2
            self.assertEqual(len(tape), 1)

    def test_each_thread_has_a_tape_of_its_own(self):
        w = parameter(np.ones((200, 200), "float32"))
        wrong = []

        def train(number):
            try:
                for _ in range(5):
                    x = reel.full((200, 200), float(number))
                    with reel.Tape() as tape:
                        gradient = tape.gradient((x @ w).sum(), w)
                    if not np.allclose(np.asarray(gradient), 200.0 * number):
                        wrong.append(number)
            except Exception as failure:  # shown by the check
                wrong.append(failure)

        with reel.Tape() as tape:
            doubled = w * 2
            threads = [threading.Thread(target=train, args=(number,)) for number in range(1, 5)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])
            tape.backward(doubled.sum())
        self.assertEqual(w.grad[0, 0].item(), 2)
