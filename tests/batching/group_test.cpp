#include <reel/batching.h>
#include <reel/reel.h>

#include <functional>
#include <string>
#include <vector>

#include "catch.h"
#include "checks.h"

// The operands of a group: views of one tensor, numbers, and what is known of their uses.

using namespace reel;
using namespace reel_test;

namespace {

// The operand of example i, a view of X, which is (8, 4).
struct Rows {
  const char* name;
  Tensor (*of)(const Tensor& X, int i);
};

Tensor row(const Tensor& X, int i) { return slice(X, 0, i, i + 1); }

constexpr Rows all_rows[] = {
    {"adjacent rows", row},
    {"two repeated rows, then one",
     [](const Tensor& X, int i) {
       return expand(row(X, i), {i == 0 ? 2 : 1, 4});
     }},
    {"one row, then repeated ones",
     [](const Tensor& X, int i) {
       return expand(row(X, i), {1 + i % 3, 4});
     }},
    {"repeated rows where the next repetition would lie",
     [](const Tensor& X, int i) {
       return expand(row(X, 2 * i), {2, 4});
     }},
    {"one repeated row, in all examples",
     [](const Tensor& X, int i) {
       return expand(row(X, 3), {2 + i % 2, 4});
     }},
    {"one row, in all examples", [](const Tensor& X, int) { return row(X, 3); }},
    {"rows that overlap", [](const Tensor& X, int i) { return slice(X, 0, i, i + 2); }},
    {"rows that overlap, with gaps", [](const Tensor& X, int i) { return slice(X, 0, i, i + 4, 2); }},
    {"one row, then two with a gap",
     [](const Tensor& X, int i) { return i == 0 ? row(X, 0) : slice(X, 0, 2 * i - 1, 2 * i + 2, 2); }},
    {"rows in reverse order", [](const Tensor& X, int i) { return row(X, 6 - i); }},
    {"two rows in reverse order", [](const Tensor& X, int i) { return flip(slice(X, 0, 2 * i, 2 * i + 2), {0}); }},
    {"reversed rows, then one",
     [](const Tensor& X, int i) { return i == 0 ? flip(slice(X, 0, 3, 5), {0}) : row(X, 3 - i); }},
    {"reversed rows, one after the other",
     [](const Tensor& X, int i) { return slice(flip(X, {0}), 0, 2 * i, 2 * i + 2); }},
    {"columns", [](const Tensor& X, int i) { return transpose(slice(slice(X, 0, 0, 4), 1, i, i + 1)); }},
    {"rows with repeated columns",
     [](const Tensor& X, int i) {
       return expand(slice(X, 0, i, i + 1)(slice(), slice(1, 2)), {1, 4});
     }},
    {"rows in a tensor with another axis",
     [](const Tensor& X, int i) -> Tensor {
       return reshape(X, {2, 4, 4})(i % 2, slice(i / 2, i / 2 + 1));
     }},
};

}  // namespace

TEST_CASE("views of one tensor are joined as the rows that they show") {
  manual_seed(41);
  Tensor W = draw({4}).requires_grad(), x = draw({8, 4});
  using Use = Tensor (*)(const Tensor& x, const Tensor& w);
  const Use uses[] = {
      [](const Tensor& x, const Tensor& w) { return x * (w + zeros(x.shape(), {.dtype = f64})); },
      [](const Tensor& x, const Tensor& w) { return sum(x, {0}) * w; },
      [](const Tensor& x, const Tensor& w) { return flip(slice(x, 1, 1, 3), {1}) * slice(w, 0, 0, 2); },
      [](const Tensor& x, const Tensor& w) {
        return transpose(reshape(x, {-1, 2, 2}), 1, 2) * reshape(w, {2, 2});
      },
      [](const Tensor& x, const Tensor& w) {
        return concat({x, x * w}, 1);
      },
      [](const Tensor& x, const Tensor& w) {
        return cumsum(x, 1) * matmul(x, reshape(w, {4, 1}));
      },
  };
  for (const Rows& rows : all_rows)
    for (std::size_t use = 0; use < std::size(uses); ++use)
      for (int source = 0; source < 4; ++source) {
        CAPTURE(rows.name, use, source);
        check_as_immediate([&](const BatchOptions& options) {
          Tensor X = copy(x);
          if (source == 1) mul_(X, 0.5);
          Tape tape;
          if (source == 2) tape.watch(X);
          Tensor from = source == 3 ? tanh(X + W) : X;
          std::vector<Tensor> made = batch_map(
              numbers(4), [&](int i) { return sum(tanh(uses[use](rows.of(from, i), W)), {-1}); }, options);
          Tensor total = zeros({}, {.dtype = f64});
          for (const Tensor& one : made) total = total + sum(square(one));
          std::vector<Tensor> gradients = tape.gradient(total, source == 2 ? std::vector{W, X} : std::vector{W});
          made.insert(made.end(), gradients.begin(), gradients.end());
          return made;
        });
      }
}

TEST_CASE("results of a group are joined again as the rows that views of them show") {
  manual_seed(42);
  Tensor W = draw({4, 4}).requires_grad(), x = draw({8, 4});
  for (const Rows& rows : all_rows) {
    CAPTURE(rows.name);
    check_as_immediate([&](const BatchOptions& options) {
      Tape tape;
      std::vector<Tensor> made = batch_map(
          numbers(4),
          [&](int i) {
            Tensor h = tanh(matmul(x * (1 + 0.1 * i), W));
            return sum(tanh(rows.of(h, i)) * W(0));
          },
          options);
      made.push_back(tape.gradient(sum(stack(made)), W));
      return made;
    });
  }
}

TEST_CASE("a view without elements is the operand of its example alone") {
  manual_seed(43);
  Tensor W = draw({4}).requires_grad(), x = draw({8, 4});
  check_as_immediate([&](const BatchOptions& options) {
    Tape tape;
    std::vector<Tensor> made = batch_map(
        numbers(6),
        [&](int i) {
          Tensor some = slice(x, 0, i, i + i % 3), none = slice(some, 0, some.size(0));
          return sum(some * W) + sum(tanh(none * W)) + sum(slice(x, 1, i % 4, i % 4)) + sum(row(x, i) * W);
        },
        options);
    made.push_back(tape.gradient(sum(stack(made)), W));
    return made;
  });
}

TEST_CASE("equal numbers that a tape tracks outside of a checkpoint have the gradients of single examples") {
  manual_seed(44);
  Tensor W = draw({4}).requires_grad();
  check_as_immediate([&](const BatchOptions& options) {
    Tape tape;
    std::vector<Tensor> c;
    for (int i = 0; i < 4; ++i) c.push_back(i == 0 ? full({}, 2.0, {.dtype = f64}) : 2 + 0 * sum(W));
    tape.watch(c[3]);
    Tensor y = checkpoint(
        [&](const Tensor& w) {
          return stack(batch_map(
              numbers(4), [&](int i) { return sum(w * c[static_cast<std::size_t>(i)]); }, options));
        },
        W);
    return tape.gradient(sum(square(y)), {W, c[1], c[2], c[3]});
  });
}

TEST_CASE("a number of a finished tape is refused, though others have its value") {
  Tensor W = ones({4}).requires_grad();
  std::vector<Tensor> c;
  {
    Tape tape;
    for (int i = 0; i < 4; ++i) c.push_back(i == 2 ? 2 + 0 * sum(W) : full({}, 2.0));
  }
  std::string expected;
  for (bool immediate : {true, false}) {
    Tape tape;
    std::string text = error_of<TapeError>([&] {
      batch_map(numbers(4), [&](int i) { return W * c[static_cast<std::size_t>(i)]; }, {.immediate = immediate});
    });
    CHECK(text.find("belongs to a tape that has finished") != std::string::npos);
    if (immediate) expected = text;
    CHECK(text == expected);
  }
}

namespace {

struct Taken {
  Tensor view, y;
};

// Each example takes the same view of X, and computes with it.
std::vector<Taken> take_views(const Tensor& X, const Tensor& W, Tape& tape, bool watched, const BatchOptions& options) {
  return batch_map(
      numbers(4),
      [&](int i) {
        Tensor view = transpose(slice(X, 0, 2, 4));
        if (watched) tape.watch(view);
        return Taken{view, sum(tanh(matmul(W * (1 + i), view)))};
      },
      options);
}

}  // namespace

TEST_CASE("a view that several examples take of an untracked tensor is a tensor of each") {
  manual_seed(45);
  Tensor W = draw({4}).requires_grad(), x = draw({8, 4});
  for (bool overwritten : {false, true}) {
    CAPTURE(overwritten);
    check_as_immediate([&](const BatchOptions& options) {
      Tensor X = copy(x), other = X;
      if (overwritten) mul_(X, 0.5);
      Tape tape;
      std::vector<Taken> made = take_views(X, W, tape, true, options);
      Tensor total = zeros({}, {.dtype = f64});
      for (const Taken& one : made) total = total + one.y;
      return tape.gradient(total, {W, made[0].view, made[1].view, made[3].view});
    });
  }
}

TEST_CASE("a view that several examples take of a tracked tensor has no gradient of one of them") {
  manual_seed(46);
  Tensor W = draw({4}).requires_grad(), X = draw({8, 4}).requires_grad();
  Tape tape({.persistent = true});
  std::vector<Taken> made = take_views(X, W, tape, false, {});
  Tensor total = made[0].y + made[1].y;
  const std::string told = "is one tensor for several examples of batch_map";
  const std::function<void()> asks[] = {
      [&] { tape.gradient(total, made[1].view); },
      [&] { tape.hook(made[0].view, [](const Tensor&) {}); },
      [&] { tape.trace(made[3].view); },
  };
  for (const auto& ask : asks) CHECK(error_of<TapeError>(ask).find(told) != std::string::npos);
  CHECK(error_of<TapeError>([&] { take_views(X, W, tape, true, {}); }).empty());
  check_close({tape.gradient(total, X)}, {tape.gradient(take_views(X, W, tape, false, {.immediate = true})[0].y +
                                                            sum(tanh(matmul(W * 2, transpose(slice(X, 0, 2, 4))))),
                                                        X)});
}

TEST_CASE("an example differentiates its own loss by a view that others take, too") {
  manual_seed(47);
  Tensor W = draw({4}).requires_grad(), X = draw({8, 4}).requires_grad();
  check_as_immediate([&](const BatchOptions& options) {
    Tape tape;
    return batch_map(
        numbers(4),
        [&](int i) {
          Tensor view = transpose(slice(X, 0, 2, 4)), gradient;
          {
            Tape inner;
            gradient = inner.gradient(sum(tanh(matmul(W * (1 + i), view))), view);
          }
          return gradient * tanh(W(0));
        },
        options);
  });
}

namespace {

// A use of an example's own x before x is watched.
struct LateUse {
  const char* name;
  std::function<std::vector<Tensor>()> make;
  std::function<Tensor(const Tensor& x, const Tensor& W)> use;
};

std::vector<Tensor> four(const std::function<Tensor(int)>& make) {
  std::vector<Tensor> made;
  for (int i : numbers(4)) made.push_back(make(i));
  return made;
}

const std::vector<LateUse>& late_uses() {
  static const Tensor X = ones({4, 4});
  static const auto rows = [] { return four([](int i) { return row(X, i); }); };
  static const auto apart = [] { return four([](int) { return ones({1, 4}); }); };
  static const std::vector<LateUse> all{
      {"equal numbers", [] { return four([](int) { return full({}, 2.0); }); },
       [](const Tensor& x, const Tensor& W) { return W * x; }},
      {"different numbers", [] { return four([](int i) { return full({}, 2.0 + i); }); },
       [](const Tensor& x, const Tensor& W) { return W * x; }},
      {"adjacent rows", rows, [](const Tensor& x, const Tensor& W) { return W * x; }},
      {"adjacent rows that nothing tracks", rows, [](const Tensor& x, const Tensor&) { return exp(x); }},
      {"tensors of their own", apart, [](const Tensor& x, const Tensor& W) { return W * x; }},
      {"operands by rows", apart,
       [](const Tensor& x, const Tensor& W) {
         return tanh(matmul(x, expand(W, {4, 4})));
       }},
      {"views", rows, [](const Tensor& x, const Tensor&) { return slice(x, 1, 0, 2); }},
      {"large operands that are joined once", [] { return four([](int) {
                                                     return ones({64, 32});
                                                   }); },
       [](const Tensor& x, const Tensor& W) { return exp(x) + exp(x) * sum(W); }},
      {"one tensor, of which all take a view", [] { return std::vector<Tensor>(4, copy(X)); },
       [](const Tensor& x, const Tensor& W) { return row(x, 1) * W; }},
      {"rows after an op that was refused", rows,
       [](const Tensor& x, const Tensor& W) {
         try {
           return cross_entropy(x, tensor({std::int64_t{9}}));
         } catch (const IndexError&) {
           return W * 1;
         }
       }},
      {"rows of which only the largest place was asked", rows,
       [](const Tensor& x, const Tensor& W) { return W * to(argmax(x), f32); }},
  };
  return all;
}

}  // namespace

TEST_CASE("a tensor that an example has used cannot be watched or become a parameter, as without a batch") {
  for (const LateUse& late : late_uses())
    for (std::size_t i : {0, 1, 3})
      for (bool watched : {true, false}) {
        CAPTURE(late.name, i, watched);
        std::string expected;
        for (bool immediate : {true, false}) {
          Tensor W = ones({4}).requires_grad();
          std::vector<Tensor> x = late.make();
          Tape tape;
          batch_map(x, [&](const Tensor& one) { return late.use(one, W); }, {.immediate = immediate});
          std::string text = "accepted";
          try {
            if (watched)
              tape.watch(x[i]);
            else
              x[i].requires_grad();
          } catch (const TapeError& error) {
            text = error.what();
          }
          if (immediate) expected = text;
          CHECK(text == expected);
        }
        bool unused = &late >= &late_uses().end()[-2];
        CHECK((expected == "accepted") == unused);
      }
}

TEST_CASE("the error for a tensor that is watched late names the line of the example that used it") {
  Tensor W = ones({4}).requires_grad(), X = ones({4, 4});
  std::vector<Tensor> x = four([&](int i) { return row(X, i); });
  Tape tape;
  int lines[2] = {};
  batch_map(numbers(4), [&](int i) {
    const Tensor& own = x[static_cast<std::size_t>(i)];
    if (i % 2 == 0) {
      lines[0] = __LINE__ + 1;
      return W * own;
    }
    lines[1] = __LINE__ + 1;
    return W * own;
  });
  for (std::size_t i = 0; i < 4; ++i) {
    std::string text = error_of<TapeError>([&] { tape.watch(x[i]); });
    CAPTURE(i, text);
    CHECK(text.find("was used by mul at " + reel_test::line_of(__FILE__, lines[i % 2])) != std::string::npos);
  }
}

TEST_CASE(
    "a tensor that only ops without a gradient use may be watched before a checkpoint around the batch runs again") {
  Tensor W = ones({4}).requires_grad(), X = draw({4, 4});
  std::vector<Tensor> x = four([&](int i) { return copy(row(X, i)); });
  std::vector<Tensor> expected;
  for (bool immediate : {true, false}) {
    Tape tape;
    Tensor loss = checkpoint(
        [&](const Tensor& w) {
          return sum(
              stack(batch_map(numbers(4), [&](int i) { return sum(w * to(x[static_cast<std::size_t>(i)] > 0, f64)); },
                              {.immediate = immediate})));
        },
        W);
    tape.watch(x[1]);
    std::vector<Tensor> found{tape.gradient(loss, W)};
    if (immediate) expected = found;
    check_close(found, expected);
  }
}

TEST_CASE("of equal numbers in a checkpoint around a batch, only the tracked one has a gradient") {
  Tensor n = full({}, 2.0, {.dtype = f64}).requires_grad(), X = draw({4, 3}),
         W = ones({3}, {.dtype = f64}).requires_grad();
  for (int tracked : {0, 1, 3}) {
    CAPTURE(tracked);
    std::vector<Tensor> expected;
    for (bool immediate : {true, false}) {
      Tape tape;
      Tensor loss = checkpoint(
          [&](const Tensor& w) {
            return sum(stack(batch_map(
                numbers(4), [&](int i) { return row(X, i) * w * (i == tracked ? n : full({}, 2.0, {.dtype = f64})); },
                {.immediate = immediate})));
          },
          W);
      std::vector<Tensor> found = tape.gradient(loss, std::vector<Tensor>{W, n});
      if (immediate) expected = found;
      check_close(found, expected);
    }
  }
}
