"""Errors of reel as exceptions of Python, and the lines that they name."""

import inspect
import unittest

import reel


class ErrorsTest(unittest.TestCase):
    def test_errors_are_exceptions_of_reel_and_of_python(self):
        for name, base in [("ArgumentError", TypeError), ("ShapeError", ValueError), ("DTypeError", TypeError), ("IndexError", IndexError),
                           ("DeviceError", RuntimeError), ("TapeError", RuntimeError), ("MemoryError", MemoryError),
                           ("FileError", OSError), ("MisfitError", ValueError)]:
            error = getattr(reel, name)
            self.assertTrue(issubclass(error, reel.Error) and issubclass(error, base), name)

    def test_the_message_names_the_line_of_the_caller(self):
        x = reel.ones((2, 3))
        calls = [lambda: x @ x, lambda: (reel.matmul(x, x)), lambda: (x.reshape((7,))),
                 lambda: (x[5]), lambda: (reel.nn.Linear(2, 2)(x)), lambda: (reel.tanh("a")),
                 lambda: (reel.nn.Linear(-2, 2))]
        for call in calls:
            line = call.__code__.co_firstlineno
            with self.assertRaises(reel.Error) as raised:
                call()
            self.assertRegex(str(raised.exception), rf"; at .*test_errors\.py:{line}$")
            self.assertEqual(raised.exception.file, __file__)
            self.assertEqual(raised.exception.line, line)

    def test_each_line_of_a_function_is_named_by_itself(self):
        x, lines = reel.ones((2, 3)), []
        for _ in range(2):  # the second time from what is remembered
            try:
                x @ x
            except reel.ShapeError as failure:
                lines.append((failure.line, inspect.currentframe().f_lineno - 2))
            try:
                x + reel.ones((4,))
            except reel.ShapeError as failure:
                lines.append((failure.line, inspect.currentframe().f_lineno - 2))
        for named, true in lines:
            self.assertEqual(named, true)

    def test_lines_of_code_that_is_gone_are_not_given_to_other_code(self):
        for number in range(3000):
            scope = {"reel": reel}
            exec(compile("\n" * number + "made = reel.ones((1,))", f"made_{number}.py", "exec"), scope)
            self.assertEqual(scope["made"].made_at, f"made_{number}.py:{number + 1}")

    def test_an_error_in_a_backward_names_the_line_of_the_op(self):
        w = reel.ones((2,))
        w.requires_grad = True
        with reel.Tape() as tape:
            y = w.exp()
            line = inspect.currentframe().f_lineno + 1
            z = y.square()
            y += 1
            with self.assertRaises(reel.TapeError) as raised:
                tape.backward(z.sum())
        self.assertIn(f"test_errors.py:{line}", str(raised.exception))

    def test_an_exception_of_the_programs_own_passes_through(self):
        class Odd:
            def __index__(self):
                raise KeyError("own")

        with self.assertRaises(KeyError):
            reel.zeros((Odd(),))

        def refused(shape):
            raise KeyError("own")

        with self.assertRaises(KeyError):
            reel.nn.Linear(2, 3, initialiser=refused)
