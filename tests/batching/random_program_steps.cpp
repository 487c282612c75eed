#include <cmath>
#include <utility>

#include "batching/random_program.h"
#include "failing_allocator.h"

// The steps of random programs.

namespace reel_test {

using namespace reel;

Run::Run(const Common& common, std::size_t example)
    : common_(common),
      p_(common.parameters),
      example_(example),
      random_(common.program.seeds[example]),
      matrices_{common.program.inputs[example]},
      vectors_{tanh(sum(matrices_[0], {0}))} {
  const std::pair<Feature, std::vector<Step>> steps[] = {
      {views, {&Run::take_rows, &Run::take_rows, &Run::take_empty_rows}},
      {scopes, {&Run::pause, &Run::cast, &Run::differentiate, &Run::checkpoint_step, &Run::replace_gradient}},
      {listeners, {&Run::detect_anomaly, &Run::profile}},
      {in_place, {&Run::sum_in_place}},
      {hooks, {&Run::hook}},
      {late_watch, {&Run::read_own}},
      {exceptions, {&Run::handle_error}},
      {outer_tape, {&Run::differentiate_outside}},
      {inner_batches, {&Run::run_both, &Run::run_inner_batch}},
  };
  for (const auto& [feature, more] : steps)
    if (common.program.has(feature)) further_.insert(further_.end(), more.begin(), more.end());
}

void Run::note(const std::string& text) {
  Uncounted uncounted;
  common_.texts[example_] += text + "; ";
}

Tensor Run::result() {
  std::size_t steps = 3 + random_() % 12;
  for (std::size_t i = 0; i < steps; ++i) step(random_());
  Tensor total = sum(tanh(vectors_.back()));
  for (const Tensor& m : matrices_) total = total + mean(m);
  return total;
}

void Run::step(std::uint64_t choice) {
  const Program& program = common_.program;
  if (step_++ == program.stops_at && example_ == program.stopped) stop();
  if (further_.empty() || choice >> 60 & 1) return plain(choice);
  (this->*further_[choice % further_.size()])(choice >> 8);
}

void Run::plain(std::uint64_t choice) {
  std::uint64_t kind = choice % 30;
  const Tensor m = matrix(choice >> 8), n = matrix(choice >> 16), v = vector(choice >> 24);
  switch (kind) {
    case 0: return add(tanh(matmul(m, p_.W)));
    case 1: return add(tanh(addmm(p_.bias, m, p_.W)));
    case 2: return add(sigmoid(m) * tanh(n));
    case 3: return add(tanh(m + v));
    case 4: return add(softmax(m * n));
    case 5: return add(tanh(matmul(concat({m, n}, 1), p_.wide)));
    case 6: {
      std::vector<Tensor> halves = chunk(m, 2, 1);
      return add(concat({halves[1], tanh(halves[0])}, 1));
    }
    case 7: return vectors_.push_back(tanh(sum(m, {0})));
    case 8: return vectors_.push_back(take(p_.table, argmax(v), 0));
    case 9: return vectors_.push_back(reshape(slice(m, 0, 0, 1), {width}));
    case 10: return add(tanh(matmul(matmul(m, transpose(n)), n)));
    case 11: return branch(choice, m, v);
    case 12: return loop(m);
    case 13: return add(tree_lstm_cell(matmul(m, p_.gates), {n_like(n, m)}).h);
    case 14: {
      // Rows of the result: those of several examples may be equally far apart.
      std::vector<Tensor> lines = split(tree_lstm_cell(slice(matmul(m, p_.gates), 1, 0, 3 * width)).c, 1);
      return add(lines[choice >> 16 & 1 ? 0 : lines.size() - 1] + 0 * m);
    }
    case 15: return add(layer_norm(m, {width}, p_.bias, p_.bias));
    case 16: {
      Tensor classes = argmax(stop_gradient(m), 1);
      return vectors_.push_back(v * cross_entropy(m, classes, {.reduction = LossReduction::sum}) * 0.1);
    }
    case 17: return add(tanh(cumsum(m, static_cast<int>(choice >> 16 & 1))));
    case 18: return add(sort(m, 1).values);
    case 19: return add(gather(m, 1, argsort(stop_gradient(n_like(n, m)), 1)));
    case 20: return add(gru_cell(m, n_like(n, m), p_.gru));
    case 21: return add(tanh(sum(conv1d(reshape(m, {-1, 1, width}), p_.filters, {.padding = 1}), {1})));
    case 22: return add(scaled_dot_product_attention(m, n, n));
    case 23: return vectors_.push_back(tanh(logsumexp(m, {0}) * reel::std(v)));
    case 24: return add(m * (0.5 + rand({1, width}, {.dtype = f64})));
    case 25: return add(tanh(matmul(m, transpose(p_.W))));
    case 26: {
      // A layer over the rows as steps, in one direction or two.
      const RecurrentWeights weights[] = {p_.gru, {p_.gru.W_h, p_.gru.W_x, p_.gru.bias}};
      bool two = choice >> 16 & 1;
      Tensor y = gru(reshape(m, {-1, 1, width}), {}, std::span(weights, two ? 2 : 1), {.bidirectional = two}).output;
      return add(reshape(slice(y, 2, 0, width), {-1, width}) * 0.9);
    }
    case 27: return add(dropout(batch_norm(m, p_.bias, p_.bias, p_.mean, p_.variance), {.probability = 0.2}) * 0.5);
    case 28: {
      std::vector<std::int64_t> ids;
      auto segments = static_cast<std::int64_t>(1 + (choice >> 16) % 3);
      for (std::int64_t i = 0; i < m.size(0); ++i) ids.push_back((i * 5 + 1) % segments);
      Tensor sums = segment_sum(m, tensor(ids), segments), one = expand(slice(sums, 0, 0, 1), {segments, width});
      return add(tanh(index_add(copy(sums), 1, tensor({1, 0}), slice(one, 1, 0, 2))));
    }
    default: return add(where(m > 0, m, 0.1 * n));
  }
}

void Run::branch(std::uint64_t choice, const Tensor& m, const Tensor& v) {
  if (sum(v).item() > 0) return add(tanh(matmul(m, p_.W) - v));
  if (choice >> 32 & 1) return add(exp(-square(m)));
  vectors_.push_back(v * 0.5);
}

// A different number of times for each example.
void Run::loop(const Tensor& m) {
  Tensor state = m;
  for (int i = 0; i < 5 && mean(square(state)).item() > 0.1; ++i) state = tanh(matmul(state, p_.W) * 0.6);
  add(state);
}

Tensor Run::n_like(const Tensor& n, const Tensor& m) { return n.size(0) == m.size(0) ? n : slice(n, 0, 0, 1) + 0 * m; }

// Rows of the common tensor or of one of the example's own: those of several examples may overlap, repeat or be equally
// far apart.
Tensor Run::some_rows(std::uint64_t choice) const {
  constexpr std::int64_t all = 16;
  auto i = static_cast<std::int64_t>(example_),
       count = 1 + static_cast<std::int64_t>(choice >> (28 + 3 * example_)) % 3;
  Tensor from = common_.rows;
  if ((choice >> 8) % 4 == 0) from = concat(std::vector<Tensor>(all, slice(matrix(choice >> 10), 0, 0, 1)), 0);
  const std::int64_t steps[] = {0, 1, 1, 2, count, all - 1};
  std::int64_t at = (static_cast<std::int64_t>(choice >> 16 & 15) + i * steps[(choice >> 20) % 6]) % all;
  std::int64_t start = std::min(at, all - 2 * count);
  switch (choice % 10) {
    case 0:
    case 1: return slice(from, 0, start, start + count);
    case 2: return slice(from, 0, start, start + 2 * count, 2);
    case 3: return flip(slice(from, 0, start, start + count), {0});
    case 4: return slice(from, 0, start + count, start, -1);
    case 5: return slice(flip(from, {0}), 0, start, start + count);
    case 6: return expand(slice(slice(from, 0, start, start + count), 1, 1, 2), {count, width});
    default: return expand(slice(from, 0, at, at + 1), {count, width});
  }
}

void Run::take_rows(std::uint64_t choice) {
  Tensor rows = some_rows(choice), used;
  Origin origin = common_.program.origin;
  bool tracked =
      (choice >> 8) % 4 == 0 || origin == Origin::watched || origin == Origin::parameter || origin == Origin::computed;
  if (!tracked) common_.taken[example_] = rows;
  const Tensor m = matrix(choice >> 24);
  switch ((choice >> 32) % 6) {
    case 0: used = tanh(rows); break;
    case 1: used = rows * expand(p_.bias, rows.shape()); break;
    case 2: used = sin(flip(rows, {1})) * p_.bias; break;
    case 3: used = cumsum(rows * rows, 1); break;
    case 4: used = tanh(matmul(rows, p_.W)); break;
    default: used = rows * p_.bias;
  }
  if (rows.size(0) == m.size(0)) return add(choice >> 40 & 1 ? used : used * m);
  vectors_.push_back(tanh(sum(used, {0})));
}

void Run::take_empty_rows(std::uint64_t choice) {
  const Tensor m = matrix(choice >> 8);
  Tensor none = slice(choice & 1 ? m : common_.rows, 0, 1, 1);
  if (choice >> 1 & 1) return add(concat({tanh(matmul(none, p_.W)), m}, 0));
  vectors_.push_back(vector(choice >> 16) + sum(none * p_.bias, {0}));
}

// A number or a row of the example's own, which is to be watched afterwards.
void Run::read_own(std::uint64_t choice) {
  const Tensor m = matrix(choice >> 8), &number = common_.numbers[example_], &row = common_.own[example_];
  switch (choice % 6) {
    case 0: return add(m * number);
    case 1: return add(tanh(m + row));
    case 2: return vectors_.push_back(reshape(row, {width}));
    case 3: return add(tanh(matmul(row, p_.W)) * m);
    case 4: return add(m * to(argmax(row), f64));
    default: return vectors_.push_back(vector(choice >> 16) * number);
  }
}

void Run::pause(std::uint64_t choice) {
  const Tensor m = matrix(choice >> 8);
  Tensor constant;
  {
    NoRecord paused;
    constant = tanh(matmul(m, p_.W));
    if (choice & 1) constant = constant + sum(square(m)) * 0.1;
  }
  add(choice & 2 ? constant : constant * m);
}

// Products of single terms are rounded alike, however many rows the group has.
void Run::cast(std::uint64_t choice) {
  const Tensor m = matrix(choice >> 8);
  Tensor factor = to(stop_gradient(slice(p_.W, 1, 0, 1)(slice(0, 1))), f32), column = to(slice(m, 1, 0, 1), f32),
         product;
  {
    AutocastScope scope = autocast(choice & 1 ? bf16 : f16);
    product = matmul(column, factor);
  }
  note(product.dtype() == bf16 ? "bf16" : product.dtype() == f16 ? "f16" : "neither");
  add(m + to(product, f64));
}

void Run::differentiate(std::uint64_t choice) {
  Tensor m = matrix(choice >> 8) * 1, gradient;
  {
    Tape inner;
    inner.watch(m);
    gradient = inner.gradient(sum(tanh(matmul(m, p_.W))), m);
  }
  add(tanh(gradient) * m);
}

void Run::differentiate_outside(std::uint64_t choice) {
  const Tensor m = matrix(choice >> 8);
  Tape* tape = common_.program.persistent ? common_.tape : nullptr;
  if (!tape) return add(tanh(m));
  switch (choice % 3) {
    case 0: return add(m * tanh(sum(tape->gradient(sum(tanh(matmul(m, p_.W))), p_.W))));
    case 1: return add(m * tanh(tape->jacobian(sum(m * p_.bias, {0}), p_.bias)(0)));
    default: tape->backward(sum(m * p_.bias)); add(m * 0.5);
  }
}

void Run::checkpoint_step(std::uint64_t choice) {
  const Tensor m = matrix(choice >> 8);
  Tensor W = p_.W;
  if (choice & 1) return add(checkpoint([W](const Tensor& z) { return tanh(matmul(z, W)) * z; }, m));
  // It runs again when this run has ended.
  add(checkpoint([&p = p_](const Tensor& z, const Tensor& v) { return tanh(addmm(p.bias, z, p.W)) + v; }, m,
                 vector(choice >> 16)));
}

void Run::replace_gradient(std::uint64_t choice) {
  add(custom_gradient([](const Tensor& z) { return tanh(2 * z) * sum(z, {0}); },
                      // Bounded, and no large gradient's rounding shows: the sine of 10¹⁰ is right to six digits.
                      [](const Tensor& gradient) { return tanh(gradient) * 3; }, matrix(choice >> 8)));
}

void Run::detect_anomaly(std::uint64_t choice) {
  const Tensor m = matrix(choice >> 8);
  // The sign of a number near 0 differs by rounding, and the text shows that of a zero.
  Tensor zero = abs(0 * stop_gradient(m)), one;
  try {
    auto scope = debug::detect_anomaly({.infinities = example_ % 2 == 0});
    one = exp(choice & 1 ? log(zero) : log(1 + zero));
    if (choice & 2) one = one * tanh(matmul(m, p_.W));
  } catch (const AnomalyError& error) {
    note(error.what());
    one = tanh(m);
  }
  add(m + one);
}

void Run::profile(std::uint64_t choice) {
  const Tensor m = matrix(choice >> 8);
  debug::Profile profile;
  Tensor made = tanh(matmul(m, p_.W));
  for (std::uint64_t i = 0; i < choice % 3; ++i) made = sin(made);
  profile.stop();
  Uncounted uncounted;
  std::int64_t calls = 0;
  for (const debug::ProfileRow& row : profile.rows(debug::ProfileBy::op)) calls += row.calls;
  note(std::to_string(calls));
  add(made);
}

void Run::sum_in_place(std::uint64_t choice) {
  const Tensor m = matrix(choice >> 8), v = vector(choice >> 16);
  switch (choice % 4) {
    case 0: {
      Tensor total = zeros({width}, {.dtype = f64});
      for (std::uint64_t i = 0; i < 1 + choice / 4 % 3; ++i) total += tanh(v * (1.0 + static_cast<double>(i)));
      return vectors_.push_back(total * 0.5);
    }
    case 1: {
      Tensor made = copy(m);
      made -= tanh(matmul(m, p_.W));
      made /= 2.0;
      return add(clamp_(made, -3, 3));
    }
    case 2: {
      Tensor made = zeros_like(m);
      made(0) += v;
      made(slice(), 1) += sum(m);
      masked_fill_(made, made > 4, 0.5);
      return add(made);
    }
    default: {
      Tensor total = sum(m);
      for (std::uint64_t i = 0; i < choice / 4 % 3; ++i) total += sum(v) * 0.1;
      return vectors_.push_back(tanh(total) * v);
    }
  }
}

void Run::hook(std::uint64_t choice) {
  Tensor m = tanh(matmul(matrix(choice >> 8), p_.W));
  if (common_.tape) {
    if (choice & 1)
      common_.tape->hook(m, [](const Tensor& gradient) { return gradient * 1.5; });
    else
      common_.tape->hook(m, [&text = common_.texts[example_]](const Tensor& gradient) {
        // If the result of another example depends on m's group, m's gradient may be zeros instead of none.
        NoRecord paused;
        bool any = max(abs(gradient)).item() > 0;
        Uncounted uncounted;
        if (any) text += "hook; ";
      });
    if (choice & 2) common_.tape->trace(m);
  }
  add(choice & 4 && common_.tape ? truncate(m) * 0.5 : m);
}

// An error of the kernel's is that of one example of its group.
void Run::handle_error(std::uint64_t choice) {
  const Tensor m = matrix(choice >> 8), v = vector(choice >> 16);
  bool fails = (example_ + choice) % 3 == 0;
  try {
    if (choice >> 4 & 1)
      vectors_.push_back(reshape(take(p_.table, tensor({std::int64_t{fails ? 100 : 2}}), 0), {width}));
    else
      add(fails ? matmul(m, p_.gru.bias) : tanh(m * v));
  } catch (const Error& error) {
    note(error.what());
    vectors_.push_back(v * 0.25);
  }
}

void Run::run_both(std::uint64_t choice) {
  const Tensor m = matrix(choice >> 8), n = matrix(choice >> 16);
  auto [a, b] = both([&] { return tanh(matmul(m, p_.W)); },
                     [&] {
                       Tensor made = tanh(matmul(n, p_.W));
                       return choice & 1 ? tanh(made) * rand({1, width}, {.dtype = f64}) : made;
                     });
  add(a * n_like(b, a));
}

void Run::run_inner_batch(std::uint64_t choice) {
  const Tensor m = matrix(choice >> 8);
  std::vector<Tensor> made = batch_map(split(m, 1), [&](const Tensor& row) { return tanh(matmul(row, p_.W)) * row; },
                                       {.immediate = common_.options.immediate});
  add(concat(made, 0));
}

void Run::stop() {
  switch (common_.program.stopping) {
    case Stopping::exception: throw Stop("stopped");
    case Stopping::op: matmul(matrix(0), vectors_[0] + 0 * stack({vectors_[0], vectors_[0], vectors_[0]})); break;
    case Stopping::kernel: take(p_.table, tensor({std::int64_t{99}}), 0);
  }
  throw Stop("the call was accepted");
}

}  // namespace reel_test
