"""Tensors in Python: making them, operators, indexing, printing; judged by NumPy."""

import operator
import random
import unittest

import numpy as np

import reel

OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.lt, operator.le, operator.gt,
             operator.ge, operator.eq, operator.ne]
SHAPES = [((3, 4), (3, 4)), ((3, 1), (4,)), ((2, 3, 4), (3, 1)), ((), (2,))]


def drawn(shape):
    return np.random.default_rng(random.randrange(2**32)).uniform(0.5, 2, shape).astype("float32")


class TensorTest(unittest.TestCase):
    def assert_equal(self, tensor, array):
        self.assertEqual(tensor.shape, array.shape)
        np.testing.assert_allclose(np.asarray(tensor), array, rtol=1e-6)

    def test_operators_compute_what_numpy_computes(self):
        for left, right in SHAPES:
            a, b = drawn(left), drawn(right)
            x, y = reel.tensor(a), reel.tensor(b)
            for apply in OPERATORS:
                with self.subTest(apply=apply.__name__, shapes=(left, right)):
                    self.assert_equal(apply(x, y), np.asarray(apply(a, b)))
                    self.assert_equal(apply(x, 1.5), np.asarray(apply(a, np.float32(1.5))))
                    self.assert_equal(apply(1.5, y), np.asarray(apply(np.float32(1.5), b)))

    def test_unary_matrix_and_integer_operators_compute_what_numpy_computes(self):
        a, b = drawn((3, 4)), drawn((4, 2))
        x = reel.tensor(a)
        self.assert_equal(-x, -a)
        self.assert_equal(abs(x - 1), abs(a - 1))
        np.testing.assert_allclose(np.asarray(x @ reel.tensor(b)), a @ b, rtol=1e-5)
        i, j = np.array([6, 3, -5]), np.array([3, 5, 2])
        k, m = reel.tensor(i), reel.tensor(j)
        for apply in (operator.and_, operator.or_, operator.xor, operator.floordiv, operator.mod, operator.lshift):
            with self.subTest(apply=apply.__name__):
                self.assert_equal(apply(k, m), apply(i, j))
        self.assert_equal(~(x > 1), ~(a > 1))

    def test_operators_in_place_write_into_the_elements(self):
        a = drawn((3, 4))
        x = reel.tensor(a)
        same = x
        x += 1
        x *= reel.tensor([1.0, 2.0, 3.0, 4.0])
        x -= 0.5
        x /= 2
        self.assertIs(same, x)
        self.assert_equal(x, ((a + 1) * np.array([1, 2, 3, 4], "float32") - np.float32(0.5)) / 2)

    def test_indexing_selects_what_numpy_selects(self):
        a = drawn((4, 5, 6))
        x = reel.tensor(a)
        keys = [0, -1, (1, 2, 3), slice(1, 3), slice(None, None, -1), (slice(None), 2), (..., 1), None, (None, 1), (slice(1, -1), ..., slice(0, 6, 2)),
                (2, ..., None), [2, 0, 0], ([1, 2], [0, 3]), np.int64(2), (), Ellipsis, slice(10, 20)]
        for key in keys:
            with self.subTest(key=key):
                self.assert_equal(x[key], a[key])
        self.assert_equal(x[x > 1], a[a > 1])
        self.assert_equal(x[reel.tensor([1, 3])], a[[1, 3]])

    def test_assigning_to_a_part_writes_into_it(self):
        a = drawn((4, 5))
        x = reel.tensor(a)
        for key, value in [(0, 1.0), ((slice(None), 1), 2.0), ([1, 2], 3.0), ((slice(1, 3), slice(None, None, 2)), drawn((2, 3)))]:
            x[key] = reel.tensor(value) if isinstance(value, np.ndarray) else value
            a[key] = value
            self.assert_equal(x, a)
        x[x > 1] = 0
        a[a > 1] = 0
        self.assert_equal(x, a)
        with self.assertRaises(reel.ArgumentError):
            del x[0]

    def test_indices_out_of_range_and_of_other_types_are_refused(self):
        x = reel.zeros((2, 3))
        for key, error in [(2, IndexError), ((0, 0, 0), IndexError), ("a", TypeError), (1.5, TypeError), ((0,) * 11, IndexError),
                           (True, TypeError), (slice(0, 2, 0), ValueError), ([0, "a"], TypeError)]:
            with self.subTest(key=key), self.assertRaises(error) as raised:
                x[key]
            self.assertIsInstance(raised.exception, reel.Error)

    def test_literals_have_the_elements_and_dtypes_of_their_numbers(self):
        for data, dtype, shape in [(1.5, "f32", ()), (3, "i64", ()), (True, "bool", ()), ([[1, 2], [3, 4]], "i64", (2, 2)),
                                   ([1, 2.5], "f32", (2,)), ([], "f32", (0,)), ([[], []], "f32", (2, 0)), ([True, False], "bool", (2,)),
                                   (2**62 + 1, "i64", ())]:
            with self.subTest(data=data):
                x = reel.tensor(data)
                self.assertEqual(x.shape, shape)
                self.assertEqual(str(x.dtype).split(".")[-1].replace("boolean", "bool"), dtype)
                self.assertEqual(x.tolist(), data)
        self.assertEqual(reel.tensor([1, 2], dtype=reel.f64).dtype, reel.f64)
        self.assertEqual(reel.tensor([1, True], dtype="i32").tolist(), [1, 1])
        with self.assertRaises(reel.DTypeError):
            reel.tensor([1.5], dtype="i32")
        for ragged in ([[1], [2, 3]], [1, [2]], [[1], 2]):
            with self.subTest(data=ragged), self.assertRaises(reel.ShapeError):
                reel.tensor(ragged)
        with self.assertRaises(reel.ArgumentError):
            reel.tensor(["a"])

    def test_literals_copy_arrays_of_any_layout_also_read_only_ones(self):
        for dtype in ("float32", "float64", "float16", "int32", "int64", "uint8", "bool", "int8", "int16"):
            for array in (np.arange(12).reshape(3, 4).astype(dtype), np.arange(12).astype(dtype).reshape(3, 4).T,
                          np.arange(12).astype(dtype)[::-2], np.zeros((0, 3), dtype), np.array(1).astype(dtype)):
                with self.subTest(dtype=dtype, shape=array.shape):
                    array.flags.writeable = False
                    copied = reel.tensor(array)
                    np.testing.assert_array_equal(np.asarray(copied), array)
                    self.assertTrue(array.size == 0 or copied.data_ptr() != array.ctypes.data)

    def test_numbers_length_iteration_and_truth_are_those_of_the_elements(self):
        x = reel.tensor([[1.0, 2.0], [3.0, 4.0]])
        self.assertEqual(len(x), 2)
        self.assertEqual([row.tolist() for row in x], x.tolist())
        self.assertEqual((float(x[0, 1]), int(x[1, 0]), bool(x[0, 0] > 5), x[1, 1].item()), (2.0, 3, False, 4.0))
        self.assertEqual([10, 11, 12][reel.tensor(1)], 11)
        with self.assertRaises(reel.ShapeError):
            bool(x)
        with self.assertRaises(reel.ShapeError):
            float(x)
        with self.assertRaises(TypeError):
            [1][x[0, 0]]
        self.assertEqual((x.ndim, x.numel(), x.size(-1), x.strides, x.is_contiguous()), (2, 4, 2, (2, 1), True))
        self.assertEqual(x.T.strides, (1, 2))
        self.assertEqual(str(x.device), "cpu")
        self.assertEqual(len({x, x}), 1)

    def test_printing_shows_elements_dtype_and_that_a_tensor_is_a_parameter(self):
        x = reel.tensor([[1.0, 2.5]])
        self.assertEqual(str(x), "[[1.  2.5]]")
        self.assertEqual(repr(x), "tensor([[1.  2.5]], dtype=f32)")
        x.requires_grad = True
        self.assertEqual(repr(x), "tensor([[1.  2.5]], dtype=f32, requires_grad=True)")

    def test_an_array_beside_an_operator_is_refused_in_either_order(self):
        x, a = reel.ones((2,)), np.ones(2)
        for apply in (lambda: x + a, lambda: a + x, lambda: x @ a):
            with self.assertRaises(TypeError):
                apply()
        self.assertIs(x == "a", False)
