#include <reel/reel.h>

#include <cmath>
#include <memory>
#include <stdexcept>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

std::string location(int line) { return std::string("custom_misuse_test.cpp:") + std::to_string(line); }

Tensor values() { return tensor({0.3, -0.7, 1.6, 2.4}); }

// exp(x)², with exp(x) saved but not returned
struct SavesTheWay {
  static constexpr const char* name = "saves_the_way";
  bool as_constant = false;
  struct Saved {
    Tensor x, exponential;
  };
  Tensor forward(Saved& saved, const Tensor& x) const {
    Tensor e = exp(x);
    saved = {x, as_constant ? stop_gradient(e) : e};
    return e * e;
  }
  Tensor gradient(const Saved& saved, const Tensor& dy) const { return 2 * dy * saved.exponential * saved.exponential; }
};

}  // namespace

TEST_CASE("a forward that uses a tracked tensor which is not its input is refused, with that tensor's line") {
  int parameter_line = __LINE__ + 1;
  Tensor w = tensor({1.0, 2.0, 3.0, 4.0}).requires_grad();
  Tensor x = values(), free = values();
  auto times = [&](const Tensor& other) {
    return custom_gradient(
        "times", [&](const Tensor& x) { return x * other; }, [](const Tensor& dy) { return dy; }, x);
  };
  CHECK(sum(times(w)).item() == Approx(sum(x * w).item()));  // nothing records
  Tape tape;
  tape.watch(x);
  std::string text = error_of<TapeError>([&] { times(w); });
  CHECK_THAT(text, contains("times: its forward uses (4,) f64"));
  CHECK_THAT(text, contains(location(parameter_line)));
  CHECK_THAT(text, contains("pass it as an input, or use stop_gradient of it"));
  Tensor h = w * 2;
  CHECK_THAT(error_of<TapeError>([&] { times(h); }), contains("its forward uses (4,) f64"));
  times(stop_gradient(w));
  times(stop_gradient(h));
  times(free);
  custom_gradient([&](const Tensor& x) { return x * stop_gradient(w); }, [](const Tensor& dy) { return dy; }, x);
  // The tape continues to record.
  CHECK(tape.gradient(sum(h * x), x).to_vector<double>() == h.to_vector<double>());
}

TEST_CASE("a forward that returns a tracked tensor which is not its input is refused") {
  Tensor w = values().requires_grad(), x = values();
  Tape tape;
  tape.watch(x);
  CHECK_THAT(error_of<TapeError>(
                 [&] { custom_gradient([&](const Tensor&) { return w; }, [](const Tensor& dy) { return dy; }, x); }),
             contains("is tracked and is not among its inputs"));
}

TEST_CASE("a forward that overwrites an input, or a tracked tensor, is refused") {
  Tensor x = values(), w = values().requires_grad();
  Tape tape;
  tape.watch(x);
  Tensor h = w * 2;
  auto overwrite = [](Tensor& other) {
    return [&](const Tensor& x) {
      add_(other.defined() ? other : x, 1.0);
      return x * 2;
    };
  };
  auto backward = [](const Tensor& dy) { return dy; };
  Tensor none;
  CHECK_THAT(error_of<TapeError>([&] { custom_gradient(overwrite(none), backward, x); }),
             contains("custom_gradient: its forward overwrote its input 0"));
  CHECK_THAT(error_of<TapeError>([&] { custom_gradient(overwrite(h), backward, w); }),
             contains("comes from outside the function that overwrites it"));
  CHECK_THAT(error_of<TapeError>([&] { custom_gradient(overwrite(w), backward, h); }), contains("is a parameter"));
}

TEST_CASE("results that are undefined or not floating are refused") {
  Tensor x = values();
  auto backward = [](const Tensor& dy) { return dy; };
  auto undefined = [](const Tensor&) { return Tensor{}; };
  auto integer = [](const Tensor& x) { return to(x, i32); };
  for (bool recording : {false, true}) {
    Tape tape;
    tape.watch(x);
    std::unique_ptr<NoRecord> pause = recording ? nullptr : std::make_unique<NoRecord>();
    CHECK_THAT(error_of<Error>([&] { custom_gradient(undefined, backward, x); }),
               contains("returned an undefined tensor as result 0"));
    CHECK_THAT(error_of<DTypeError>([&] { custom_gradient(integer, backward, x); }),
               contains("its forward returned (4,) i32, through which no gradient can flow back"));
  }
  CHECK_THAT(error_of<Error>([&] { custom_gradient(integer, backward, Tensor{}); }), contains("undefined tensor"));
  CHECK_THAT(error_of<DTypeError>([&] { custom_gradient(integer, backward, 2); }), contains("takes a tensor here"));
}

TEST_CASE("gradients of a wrong number, shape or dtype are refused in the op's name, at its caller's line") {
  Tensor x = values();
  Tape tape({.persistent = true});
  tape.watch(x);
  auto twice = [](const Tensor& x) { return 2 * x; };
  auto message = [&](auto backward) {
    int line = __LINE__ + 1;
    Tensor y = custom_gradient("doubled", twice, backward, x);
    std::string text = error_of<Error>([&] { tape.gradient(sum(y), x); });
    CHECK_THAT(text, contains(location(line)));
    return text;
  };
  CHECK_THAT(message([](const Tensor& dy) {
               return std::vector{dy, dy};
             }),
             contains("doubled: its gradient function returned 2 gradients for 1 inputs"));
  CHECK_THAT(message([](const Tensor& dy) { return sum(dy); }),
             contains("doubled: its gradient function returned () f64 for input 0, which is (4,) f64"));
  CHECK_THAT(message([](const Tensor& dy) { return to(dy, f32); }),
             contains("doubled: its gradient function returned (4,) f32 for input 0, which is (4,) f64"));
}

TEST_CASE("a second derivative through a value that the forward computed and saved is refused, and not left out") {
  Tensor x = values();
  Tape outer;
  outer.watch(x);
  Tensor first;
  int line = 0;
  {
    Tape inner;
    line = __LINE__ + 1;
    Tensor y = apply(SavesTheWay{}, x);
    first = inner.gradient(sum(y), x);  // allowed in first order
  }
  CHECK(first.to_vector<double>()[0] == Approx(2 * std::exp(0.6)));
  std::string text = error_of<TapeError>([&] { outer.gradient(sum(first), x); });
  CHECK_THAT(text, contains("saves_the_way: a gradient of higher order has to flow back through member 1"));
  CHECK_THAT(text, contains(location(line)));
  CHECK_THAT(text, contains("compute it from the inputs"));
}

TEST_CASE("what a checkpoint or a tape inside the forward computed counts as computed by the forward") {
  struct Slope {
    bool in_checkpoint;
    struct Saved {
      Tensor x, slope;
    };
    Tensor forward(Saved& saved, const Tensor& x) const {
      auto slope = [](const Tensor& x) {
        Tape tape;
        tape.watch(x);
        return tape.gradient(sum(x * x * x), x);
      };
      saved = {x, in_checkpoint ? checkpoint(slope, x) : slope(x)};
      return x * x * x;
    }
    Tensor gradient(const Saved& saved, const Tensor& dy) const { return dy * saved.slope; }
  };
  for (bool in_checkpoint : {false, true}) {
    Tensor x = values();
    Tape outer;
    outer.watch(x);
    Tensor first;
    {
      Tape inner;
      first = inner.gradient(sum(apply(Slope{in_checkpoint}, x)), x);
    }
    CHECK(first.to_vector<double>()[0] == Approx(3 * 0.09));
    CHECK_THAT(error_of<TapeError>([&] { outer.gradient(sum(first), x); }),
               contains("apply: a gradient of higher order has to flow back through member 1"));
  }
}

TEST_CASE("a saved value that is stop_gradient of what was computed is a constant in second order") {
  Tensor x = values();
  Tape outer;
  outer.watch(x);
  Tensor first;
  {
    Tape inner;
    first = inner.gradient(sum(apply(SavesTheWay{.as_constant = true}, x)), x);
  }
  CHECK_THROWS_AS(outer.gradient(sum(first), x), TapeError);
}

TEST_CASE("a saved value that is overwritten later is refused with both lines") {
  Tensor x = values().requires_grad();
  Tape tape;
  int op_line = __LINE__ + 1;
  Tensor y = custom_gradient([](const Tensor& x) { return x * x; },
                             [](const Tensor& dy, const Tensor& x) { return 2 * dy * x; }, x);
  int write_line = __LINE__ + 1;
  x.write<double>()[0] = 5;
  std::string text = error_of<TapeError>([&] { tape.backward(sum(y)); });
  CHECK_THAT(text, contains("custom_gradient: its gradient needs input 0"));
  CHECK_THAT(text, contains(location(op_line)));
  CHECK_THAT(text, contains(location(write_line)));
}

TEST_CASE("a forward or a gradient that throws leaves the tape usable and every grad as it was") {
  Tensor x = values().requires_grad();
  Tape tape;
  auto throwing = [](const Tensor& x) -> Tensor {
    if (x.defined()) throw std::runtime_error("mine");
    return x;
  };
  auto identity = [](const Tensor& x) { return x; };
  CHECK(error_of<std::runtime_error>([&] { custom_gradient(throwing, identity, x); }) == "mine");
  CHECK(is_recording());
  Tensor y = custom_gradient(identity, throwing, x);
  CHECK(error_of<std::runtime_error>([&] { tape.backward(sum(y * x)); }) == "mine");
  CHECK_FALSE(x.grad().defined());
  tape.backward(sum(x));
  CHECK(sum(x.grad()).item() == 4);
}
