"""Elements that Python objects and tensors share: addresses, writes seen by both, lifetimes."""

import array
import ctypes
import gc
import os
import sys
import unittest
import weakref

import numpy as np

import reel

DTYPES = ["float32", "float64", "float16", "int32", "int64", "uint8", "bool", "int8", "int16"]
SHAPES = [(), (5,), (0, 3), (2, 3), (2, 1, 4)]


class Owned(np.ndarray):
    """An array that can be referred to weakly, to see when it ends."""


def owned(values):
    made = np.empty(np.shape(values), np.asarray(values).dtype).view(Owned)
    made[...] = values
    return made


class SharingTest(unittest.TestCase):
    def setUp(self):
        gc.collect()
        self.live = reel.live_tensors()

    def tearDown(self):
        gc.collect()
        self.assertEqual(reel.live_tensors(), self.live)

    def test_numpy_takes_tensors_and_gives_arrays_at_one_address(self):
        takers = [np.from_dlpack, np.asarray, lambda x: np.frombuffer(x, x_dtype).reshape(x.shape), lambda x: x.numpy()]
        for dtype in DTYPES:
            x_dtype = dtype
            for shape in SHAPES:
                values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
                for taker in takers:
                    if taker is takers[2] and values.size == 0:
                        continue  # np.frombuffer refuses a buffer without elements
                    with self.subTest(dtype=dtype, shape=shape, taker=taker):
                        x = reel.tensor(values)
                        taken = taker(x)
                        self.assertEqual((taken.shape, taken.dtype), (values.shape, values.dtype))
                        np.testing.assert_array_equal(taken, values)
                        self.assertTrue(values.size == 0 or taken.ctypes.data == x.data_ptr())
                for giver in (reel.from_dlpack, reel.from_buffer):
                    with self.subTest(dtype=dtype, shape=shape, giver=giver):
                        x = giver(values)
                        self.assertEqual(x.shape, shape)
                        self.assertTrue(values.size == 0 or x.data_ptr() == values.ctypes.data)
                        np.testing.assert_array_equal(np.asarray(x), values)

    def test_both_sides_see_each_others_writes(self):
        a = np.zeros((2, 3), "float32")
        x = reel.from_dlpack(a)
        x += 1
        a[0, 0] = 5
        self.assertEqual(x.tolist(), a.tolist())
        self.assertEqual(x.tolist(), [[5, 1, 1], [1, 1, 1]])
        b = np.asarray(x)
        b *= 2
        self.assertEqual(a.tolist(), [[10, 2, 2], [2, 2, 2]])

    def test_views_keep_their_strides(self):
        a = np.arange(24.0).reshape(4, 6)
        for view in (a.T, a[::-1], a[1::2, ::3], a[1:1], np.broadcast_to(a[0], (3, 6)).copy()[:, 1]):
            for giver in (reel.from_dlpack, reel.from_buffer):
                x = giver(view)
                np.testing.assert_array_equal(np.asarray(x), view)
                self.assertTrue(view.size == 0 or np.asarray(x).strides == view.strides)
                np.testing.assert_array_equal(np.from_dlpack(x), view)
        x = reel.tensor(a).T
        with self.assertRaises(BufferError):
            np.frombuffer(x, "float64")  # which reads contiguous memory only

    def test_an_array_lives_as_long_as_a_tensor_or_a_view_refers_to_it(self):
        for giver in (reel.from_dlpack, reel.from_buffer):
            a = owned(np.arange(6.0).reshape(2, 3))
            ended = weakref.ref(a)
            x = giver(a)
            del a
            gc.collect()
            self.assertIsNotNone(ended())
            row = x[1]
            del x
            gc.collect()
            self.assertIsNotNone(ended())
            self.assertEqual(row.tolist(), [3, 4, 5])
            del row
            gc.collect()
            self.assertIsNone(ended())

    def test_a_tensor_lives_as_long_as_an_array_or_a_capsule_refers_to_it(self):
        for taker in (np.from_dlpack, np.asarray, memoryview):
            taken = taker(reel.full((1000,), 7.0) + 1)
            others = [reel.zeros((1000,)) for _ in range(10)]  # would take its memory if it were free
            self.assertEqual(taken[999], 8.0)
            self.assertEqual(reel.live_tensors(), self.live + 11)
            del taken, others
        for version in (None, (1, 0)):
            capsule = reel.ones((3,)).__dlpack__(max_version=version)
            self.assertEqual(reel.live_tensors(), self.live + 1)
            del capsule
            gc.collect()
            self.assertEqual(reel.live_tensors(), self.live)

    def test_a_capsule_is_taken_once(self):
        capsule = np.arange(3.0).__dlpack__()
        x = reel.from_dlpack(capsule)
        with self.assertRaises(reel.ArgumentError):
            reel.from_dlpack(capsule)
        del capsule
        self.assertEqual(x.tolist(), [0, 1, 2])

    def test_what_a_tape_saves_keeps_an_array_alive(self):
        a = owned(np.array([2.0, 3.0]))
        ended = weakref.ref(a)
        w = reel.tensor([1.0, 1.0], dtype="f64")
        w.requires_grad = True
        with reel.Tape() as tape:
            loss = (w * reel.from_dlpack(a)).sum()
            del a
            gc.collect()
            self.assertIsNotNone(ended())
            tape.backward(loss)
        self.assertEqual(w.grad.tolist(), [2, 3])
        del loss
        gc.collect()
        self.assertIsNone(ended())

    def test_memory_that_is_read_only_is_refused_and_can_be_copied(self):
        a = np.arange(3.0)
        a.flags.writeable = False
        for giver, read_only in ((reel.from_dlpack, a), (reel.from_buffer, a), (reel.from_buffer, b"abc")):
            with self.assertRaises(reel.Error) as raised:
                giver(read_only)
            self.assertIn("read-only", str(raised.exception))
        self.assertEqual(reel.tensor(a).tolist(), [0, 1, 2])
        self.assertEqual(reel.tensor(b"abc").tolist(), [97, 98, 99])

    def test_other_buffers_are_shared_too(self):
        a = array.array("f", [1, 2, 3])
        x = reel.from_buffer(a)
        x *= 2
        self.assertEqual(a.tolist(), [2, 4, 6])
        with self.assertRaises(BufferError):
            a.append(1)  # it would move while the tensor refers to it
        del x
        gc.collect()
        a.append(1)
        c = (ctypes.c_int32 * 3)(1, 2, 3)
        self.assertEqual(reel.from_buffer(c).tolist(), [1, 2, 3])
        self.assertEqual(reel.from_buffer(bytearray(b"ab")).dtype, reel.u8)

    def test_elements_without_a_dtype_here_are_refused(self):
        for dtype in ("uint16", "uint32", "complex64", ">f4"):
            with self.subTest(dtype=dtype), self.assertRaises((reel.Error, BufferError)):
                reel.from_buffer(np.zeros(3, dtype))
        for wrong in (3, "abc", [1.0], None):
            with self.subTest(value=wrong), self.assertRaises(TypeError):
                reel.from_dlpack(wrong)
            with self.subTest(value=wrong), self.assertRaises(TypeError):
                reel.from_buffer(wrong)
        misaligned = np.frombuffer(bytearray(9), "uint8")[1:].view("float32")
        with self.assertRaises(reel.ShapeError):
            reel.from_buffer(misaligned)

    def test_bf16_has_no_buffer_but_dlpack(self):
        x = reel.ones((2,)).to("bf16")
        with self.assertRaises(BufferError):
            memoryview(x)
        self.assertEqual(reel.from_dlpack(x).dtype, reel.bf16)

    def test_what_a_tape_tracks_is_not_exported_and_a_parameter_is(self):
        w = reel.ones((2,))
        w.requires_grad = True
        self.assertEqual(np.asarray(w).tolist(), [1, 1])
        with reel.Tape() as tape:
            y = w * 2
            for taker in (np.from_dlpack, memoryview):
                with self.assertRaises(reel.TapeError):
                    taker(y)
            self.assertEqual(np.asarray(y.stop_gradient()).tolist(), [2, 2])
            tape.backward(y.sum())
        del y

    def test_dlpack_follows_the_array_api(self):
        x = reel.ones((2,))
        self.assertEqual(x.__dlpack_device__(), (1, 0))
        copied = np.from_dlpack(x, copy=True)
        self.assertNotEqual(copied.ctypes.data, x.data_ptr())
        self.assertEqual(np.from_dlpack(x, device="cpu").ctypes.data, x.data_ptr())
        with self.assertRaises(BufferError):
            x.__dlpack__(dl_device=(2, 0))
        with self.assertRaises(reel.ArgumentError):
            x.__dlpack__(stream=1)


@unittest.skipUnless("REEL_PYTHON_TORCH" in os.environ, "tools/python --torch runs it")
class TorchTest(unittest.TestCase):
    def test_pytorch_takes_and_gives_tensors_at_one_address(self):
        import torch

        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8, torch.int8, torch.int16):
            given = torch.arange(6).reshape(2, 3).to(dtype)
            for view in (given, given.T, given[:, 1:]):
                x = reel.from_dlpack(view)
                self.assertEqual(x.data_ptr(), view.data_ptr())
                back = torch.from_dlpack(x)
                self.assertEqual((back.data_ptr(), back.dtype, back.stride()), (view.data_ptr(), dtype, view.stride()))
                self.assertTrue(torch.equal(back, view))

    def test_each_keeps_the_other_alive(self):
        import torch

        x = reel.from_dlpack(torch.arange(1000.0) + 1)
        others = [torch.zeros(1000) for _ in range(10)]
        self.assertEqual(x[999].item(), 1000)
        live = reel.live_tensors()
        y = torch.from_dlpack(reel.full((1000,), 7.0))
        self.assertEqual(reel.live_tensors(), live + 1)
        self.assertEqual(y[999].item(), 7)
        del y, others
        gc.collect()
        self.assertEqual(reel.live_tensors(), live)

    def test_gradients_equal_pytorchs(self):
        import torch

        a = torch.rand(4, 3, requires_grad=True)
        loss = torch.nn.functional.cross_entropy(torch.tanh(a), torch.tensor([0, 2, 1, 1]))
        loss.backward()
        x = reel.from_dlpack(a.detach())
        x.requires_grad = True
        with reel.Tape() as tape:
            own = reel.cross_entropy(x.tanh(), reel.tensor([0, 2, 1, 1]))
            tape.backward(own)
        self.assertAlmostEqual(own.item(), loss.item(), places=6)
        self.assertTrue(torch.allclose(torch.from_dlpack(x.grad), a.grad, atol=1e-7))


if __name__ == "__main__":
    sys.exit("run it by run.py")
