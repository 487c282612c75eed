#include <reel/reel.h>

#include <future>
#include <type_traits>

#include "catch.h"

using namespace reel;
using reel_test::contains;
using reel_test::error_of;

namespace {

std::string place(int line) { return std::string("misuse_test.cpp:") + std::to_string(line); }

// Whether `new Tape` compiles.
template <class T>
concept HeapAllocatable = requires { new T(); };

}  // namespace

TEST_CASE("a tape cannot be copied, moved or put on the heap") {
  STATIC_REQUIRE_FALSE(std::is_copy_constructible_v<Tape>);
  STATIC_REQUIRE_FALSE(std::is_move_constructible_v<Tape>);
  STATIC_REQUIRE_FALSE(HeapAllocatable<Tape>);
}

TEST_CASE("overwriting a saved value names the op's line and the overwrite's line") {
  Tensor w = ones({3}).requires_grad();
  Tape tape;
  int op_line = __LINE__ + 1;
  Tensor y = w * w;
  int write_line = __LINE__ + 1;
  w.write<float>()[0] = 5;
  std::string text = error_of<TapeError>([&] { tape.backward(sum(y)); });
  CHECK_THAT(text, contains("mul: its gradient needs input"));
  CHECK_THAT(text, contains("overwritten at"));
  CHECK_THAT(text, contains(place(op_line)));
  CHECK_THAT(text, contains(place(write_line)));
}

TEST_CASE("overwriting a value that no gradient needs is allowed") {
  Tensor w = ones({3}).requires_grad();
  Tape tape;
  Tensor y = w + 1.0;
  w.write<float>()[0] = 5;
  tape.backward(sum(y));
  CHECK(w.grad().to_vector<float>() == std::vector<float>{1, 1, 1});
}

TEST_CASE("writing into a tensor that an open tape computed is refused") {
  Tensor w = ones({3}).requires_grad();
  Tape tape;
  Tensor y = w * 2.0;
  CHECK_THAT(error_of<TapeError>([&] { y.write<float>(); }), contains("is tracked by an open tape"));
  stop_gradient(y).write<float>()[0] = 1;
}

TEST_CASE("a guard that is alive, or ends, between an op and its gradient counts as an overwrite") {
  Tensor x = tensor({3.f});
  Tape tape({.persistent = true});
  {
    Writer<float> writer = x.write<float>();
    tape.watch(x);
    Tensor y = x * x;
    writer[0] = 10;
    CHECK_THAT(error_of<TapeError>([&] { tape.gradient(y, x); }), contains("is still alive"));
  }
  Tensor z = stop_gradient(x);
  tape.watch(z);
  Tensor y;
  {
    Writer<float> writer = tensor({1.f}).write<float>();
    y = z * z;
  }
  CHECK(tape.gradient(y, z).item() == 20);
}

TEST_CASE("a tracked tensor that was overwritten through another handle cannot be used") {
  Tensor x = tensor({3.f}), base = tensor({3.f, 4.f});
  Tensor part = slice(base, 0, 0, 1), w = ones({2}).requires_grad();
  Tape tape;
  tape.watch(x);
  tape.watch(part);
  Tensor y = x * 2, row = slice(w, 0, 0, 1);
  stop_gradient(y).write<float>()[0] = 100;
  CHECK_THAT(error_of<TapeError>([&] { y* y; }), contains("was overwritten at"));
  base.write<float>()[0] = 7;
  CHECK_THAT(error_of<TapeError>([&] { part* x; }), contains("was overwritten at"));
  w.write<float>()[0] = 7;
  CHECK_THAT(error_of<TapeError>([&] { row* x; }), contains("was overwritten at"));
  // The parameter itself is overwritten by training all the time.
  CHECK(sum(w * 1).item() == 8);
}

TEST_CASE("a watched tensor is called made, not computed, and may become a parameter") {
  Tensor x = ones({2});
  Tape tape;
  tape.watch(x);
  CHECK_THAT(error_of<TapeError>([&] { x.write<float>(); }), contains("(2,) f32, made at"));
  x.requires_grad();
  x.requires_grad(false);
  x.requires_grad();
  tape.backward(sum(x * 2));
  CHECK(sum(x.grad()).item() == 4);
}

TEST_CASE("backward that would reach no parameter says so and keeps the tape") {
  Tensor x = full({}, 3.0);
  Tape tape;
  tape.watch(x);
  Tensor y = x * x;
  CHECK_THAT(error_of<TapeError>([&] { tape.backward(y); }), contains("does not depend on any parameter"));
  CHECK(tape.gradient(y, x).item() == 6);
}

TEST_CASE("an error found before the walk leaves the tape usable") {
  Tensor x = full({}, 3.0), other = ones({});
  Tape tape;
  tape.watch(x);
  tape.watch(other);
  Tensor y = x * x, unrelated = other * 1;
  CHECK_THROWS_AS(tape.gradient(y, other), TapeError);
  CHECK(tape.gradient(y, x).item() == 6);
}

TEST_CASE("watching a dead tensor does not make it a silent constant later") {
  Tensor x = full({}, 3.0).requires_grad(), h;
  {
    Tape tape;
    h = x * 2;
  }
  {
    Tape tape;
    tape.watch(h);
    CHECK(tape.gradient(h * h, h).item() == 12);
  }
  Tape tape;
  CHECK_THAT(error_of<TapeError>([&] { h* x; }), contains("has finished"));
}

TEST_CASE("what another thread's tape computed cannot be watched") {
  Tensor w = ones({}).requires_grad();
  Tape tape;
  Tensor h = w * 2.0;
  std::string text = std::async(std::launch::async, [&] {
                       Tape other;
                       return error_of<TapeError>([&] { other.watch(h); });
                     }).get();
  CHECK_THAT(text, contains("belongs to the tape of another thread"));
}

TEST_CASE("a second backward over dropped entries says so") {
  Tensor w = ones({}).requires_grad();
  Tape tape;
  Tensor loss = w * w;
  tape.backward(loss);
  CHECK_THAT(error_of<TapeError>([&] { tape.backward(loss); }), contains("has been differentiated already"));
}

TEST_CASE("using a tensor of a finished tape names the line that made it and says what to do") {
  Tensor w = ones({}).requires_grad(), h;
  int line = 0;
  {
    Tape tape;
    line = __LINE__ + 1;
    h = w * 2.0;
  }
  Tensor plain = h * 3.0;  // nothing records: a plain value
  CHECK(plain.item() == 6);
  Tape tape;
  std::string text = error_of<TapeError>([&] { h* w; });
  CHECK_THAT(text, contains("belongs to a tape that has finished"));
  CHECK_THAT(text, contains("use stop_gradient"));
  CHECK_THAT(text, contains(place(line)));
  Tensor carried = stop_gradient(h) * w;
  tape.backward(carried);
  CHECK(w.grad().item() == 2);
}

TEST_CASE("a tensor of a finished tape may be watched anew") {
  Tensor w = ones({}).requires_grad(), h;
  {
    Tape tape;
    h = w * 2.0;
  }
  Tape tape;
  tape.watch(h);
  CHECK(tape.gradient(h * h, h).item() == 4);
}

TEST_CASE("a watched tensor is a plain value again when its tape has finished") {
  Tensor x = ones({}), w = ones({}).requires_grad();
  Tape tape;
  tape.watch(x);
  CHECK(tape.gradient(x * w, x).item() == 1);
  Tensor y = x * w;
  CHECK_THROWS_AS(tape.gradient(y, x), TapeError);
  tape.backward(y);
  CHECK(w.grad().item() == 1);
}

TEST_CASE("a tensor of another thread's tape is refused") {
  Tensor w = ones({}).requires_grad();
  Tape tape;
  Tensor h = w * 2.0;
  std::string text = std::async(std::launch::async, [&] {
                       Tape other;
                       return error_of<TapeError>([&] { h * 2.0; });
                     }).get();
  CHECK_THAT(text, contains("belongs to the tape of another thread"));
}

TEST_CASE("a target that was not recorded, or is older than the tape, is refused") {
  Tensor x = ones({}), w = ones({}).requires_grad();
  Tape outer;
  CHECK_THAT(error_of<TapeError>([&] { outer.gradient(x * 2.0, w); }), contains("was not recorded"));
  Tensor old = w * 2.0;
  Tape inner;
  CHECK_THAT(error_of<TapeError>([&] { inner.gradient(old, w); }), contains("is older than this tape"));
}

TEST_CASE("a source that is not tracked is refused") {
  Tensor x = ones({}), w = ones({}).requires_grad();
  Tape tape;
  Tensor y = x * w;
  CHECK_THAT(error_of<TapeError>([&] { tape.gradient(y, x); }), contains("source 0, () f32"));
}

TEST_CASE("an integer target, an undefined target and an undefined source are refused") {
  Tensor x = ones({});
  Tape tape;
  tape.watch(x);
  CHECK_THROWS_AS(tape.backward(tensor({1, 2})), DTypeError);
  CHECK_THAT(error_of<Error>([&] { tape.backward(Tensor{}); }), contains("undefined tensor"));
  CHECK_THAT(error_of<Error>([&] { tape.gradient(x * 2.0, Tensor{}); }), contains("source 0 is an undefined tensor"));
}

TEST_CASE("a tape inside NoRecord inside a tape is refused, and fine without the outer tape") {
  {
    NoRecord pause;
    Tensor x = ones({});
    Tape tape;
    tape.watch(x);
    CHECK(tape.gradient(x * 2.0, x).item() == 2);
  }
  CHECK_FALSE(is_recording());
  Tape outer;
  NoRecord pause;
  CHECK_THAT(error_of<TapeError>([] { Tape inner; }), contains("cannot open inside NoRecord"));
  CHECK_FALSE(is_recording());
}

TEST_CASE("a computed tensor cannot be made a parameter while its tape is open") {
  Tensor w = ones({}).requires_grad();
  Tape tape;
  Tensor h = w * 2.0;
  CHECK_THAT(error_of<TapeError>([&] { h.requires_grad(); }), contains("is no parameter"));
}
