#include "ctc.h"

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "../../../lib/core/dtype_dispatch.h"
#include "../../../lib/kernels/formulas/ctc.h"
#include "../../device/element.h"
#include "../../device/launch.h"

// Source: Graves et al., Connectionist temporal classification (2006). In logarithms and f64: sums over thousands of
// steps lose f32's digits. A group processes an example, a thread some of its states: blank, label 0, blank, label 1,
// …, blank. The states that a step passes to the next are in shared memory, unless there are too many of them.

namespace reel::detail::inline REEL_TARGET {
namespace {

using namespace formulas;

template <class T>
struct Problem {
  const T* logs;  // (steps, examples, classes)
  const std::int64_t *targets, *input_lengths, *target_lengths;
  std::int64_t steps, examples, classes, longest, blank;

  Problem(const View& logs, const CtcTargets& given)
      : logs(logs.as<T>()),
        targets(given.targets.as<std::int64_t>()),
        input_lengths(given.input_lengths.as<std::int64_t>()),
        target_lengths(given.target_lengths.as<std::int64_t>()),
        steps(logs.dims[0]),
        examples(logs.dims[1]),
        classes(logs.dims[2]),
        longest(given.targets.dims[1]),
        blank(given.blank) {}

  REEL_HOST_DEVICE std::int64_t most_states() const { return 2 * longest + 1; }
  /// A thread for each state, up to the limit of a block.
  int threads() const {
    std::int64_t wanted = (most_states() + warp_size - 1) / warp_size * warp_size;
    return static_cast<int>(wanted < most_threads ? wanted : most_threads);
  }
  REEL_DEVICE bool is_label(std::int64_t label) const { return label >= 0 && label < classes && label != blank; }
};

// One example of a problem.
template <class T>
class Alignment {
 public:
  REEL_DEVICE Alignment(const Problem<T>& problem, std::int64_t n)
      : problem_(problem),
        labels_(problem.targets + n * problem.longest),
        first_(problem.logs + n * problem.classes),
        steps_(problem.input_lengths[n]),
        labels_count_(problem.target_lengths[n]) {}

  REEL_DEVICE std::int64_t steps() const { return steps_; }
  REEL_DEVICE std::int64_t states() const { return 2 * labels_count_ + 1; }
  REEL_DEVICE std::int64_t label(std::int64_t place) const { return labels_[place]; }
  /// Writes the symbols of all states, from which the functions below read them.
  template <class Group>
  REEL_DEVICE void find_symbols(Group& group, std::int64_t count, std::int32_t* symbols) {
    symbols_ = symbols;
    group.each([&](int thread) {
      for (std::int64_t s = thread; s < count; s += group.size())
        symbols[s] = static_cast<std::int32_t>(s % 2 == 0 ? problem_.blank : labels_[s / 2]);
    });
  }
  REEL_DEVICE std::int64_t symbol(std::int64_t s) const { return symbols_[s]; }
  REEL_DEVICE double log_of(std::int64_t t, std::int64_t s) const {
    return loaded(first_[t * problem_.examples * problem_.classes + symbol(s)]);
  }
  /// Returns true if state s may follow s − 2.
  REEL_DEVICE bool skips(std::int64_t s) const { return s >= 2 && s % 2 == 1 && symbol(s) != symbol(s - 2); }
  /// Returns true if an example's lengths or labels are invalid; called by a group, and `report` gets each of them.
  template <class Group, class Report>
  REEL_DEVICE bool has_faults(Group& group, const Report& report) const {
    bool has_steps = steps_ >= 0 && steps_ <= problem_.steps;
    bool has_length = labels_count_ >= 0 && labels_count_ <= problem_.longest;
    std::int64_t count = has_length ? labels_count_ : 0;
    auto faults = group.template per_thread<int>();
    group.each([&](int thread) {
      int found = 0;
      if (thread == 0 && !has_steps) report(Fault::ctc_input_length, steps_);
      if (thread == 0 && has_steps && !has_length) report(Fault::ctc_target_length, labels_count_);
      for (std::int64_t s = thread; s < count; s += group.size()) {
        if (problem_.is_label(labels_[s])) continue;
        found = 1;
        if (has_steps) report(Fault::ctc_label, labels_[s]);
      }
      faults[thread] = found;
    });
    return !has_steps || !has_length || group.reduce(faults, [](int a, int b) { return a > b ? a : b; }) > 0;
  }

 private:
  const Problem<T>& problem_;
  const std::int64_t* labels_;
  const T* first_;
  const std::int32_t* symbols_ = nullptr;
  std::int64_t steps_, labels_count_;
};

// A group's memory for each state: some doubles and 32-bit numbers. It is shared memory if `fits`, else in `doubles` and
// `numbers`.
template <int double_count, int number_count>
struct StateMemory {
  static constexpr std::size_t most_shared = 48 * 1024;

  double* doubles = nullptr;
  std::int32_t* numbers = nullptr;
  bool fits = false;

  static std::size_t shared_bytes(std::int64_t states) {
    return static_cast<std::size_t>(states) * (double_count * sizeof(double) + number_count * sizeof(std::int32_t)) +
           32;
  }

  template <class Group>
  REEL_DEVICE double* doubles_of(Group& group, std::int64_t states) const {
    std::int64_t count = double_count * states;
    return fits ? group.template shared<double>(count) : doubles + group.index() * count;
  }
  template <class Group>
  REEL_DEVICE std::int32_t* numbers_of(Group& group, std::int64_t states) const {
    std::int64_t count = number_count * states;
    return fits ? group.template shared<std::int32_t>(count) : numbers + group.index() * count;
  }
};

// Runs a program, which has such a member, for each example.
template <class Program, class T, int double_count, int number_count>
void run_with_memory(const Problem<T>& problem, Program program,
                     StateMemory<double_count, number_count> Program::*member) {
  using Memory = StateMemory<double_count, number_count>;
  std::int64_t states = problem.most_states();
  auto all = static_cast<std::size_t>(problem.examples * states);
  std::size_t shared_bytes = Memory::shared_bytes(states);
  bool fits = shared_bytes <= Memory::most_shared;
  Scratch doubles(fits ? 0 : all * double_count * sizeof(double)),
      numbers(fits ? 0 : all * number_count * sizeof(std::int32_t));
  program.*member = {doubles.template as<double>(), numbers.template as<std::int32_t>(), fits};
  for_each_group(problem.examples, problem.threads(), fits ? shared_bytes : 0, program);
}

template <class T>
struct Forward {
  Problem<T> problem;
  double* alphas;
  Wide<T>* losses;
  FaultReporter faults;
  StateMemory<2, 1> memory;  // the last two rows of alphas, and symbols

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    std::int64_t n = group.index(), row = problem.most_states();
    Alignment<T> path(problem, n);
    bool is_bad = path.has_faults(group, [&](Fault kind, std::int64_t value) { faults.report(kind, value, n); });
    std::int64_t steps = is_bad ? 0 : path.steps(), states = is_bad ? 1 : path.states();
    double* rows = memory.doubles_of(group, row);
    path.find_symbols(group, states, memory.numbers_of(group, row));
    double* own = alphas + n * problem.steps * row;
    for (std::int64_t t = 0; t < steps; ++t) {
      double *kept = own + t * row, *now = rows + t % 2 * row;
      const double* last = rows + (t + 1) % 2 * row;
      group.each([&](int thread) {
        for (std::int64_t s = thread; s < states; s += group.size()) {
          double value = impossible;
          if (t > 0)
            value = path.log_of(t, s) +
                    log_of_sum(last[s], s >= 1 ? last[s - 1] : impossible, path.skips(s) ? last[s - 2] : impossible);
          else if (s < 2)
            value = path.log_of(0, s);
          now[s] = kept[s] = value;
        }
      });
    }
    group.each([&](int thread) {
      if (thread != 0) return;
      const double* end = own + (steps - 1) * row;
      double log = states == 1 ? 0 : impossible;
      if (steps > 0) log = log_of_sum(end[states - 1], states > 1 ? end[states - 2] : impossible, impossible);
      losses[n] = static_cast<Wide<T>>(-log);
    });
  }
};

// The buffers of the gradient of an example.
struct Kept {
  double *betas, *others;  // of the present step and of the next to be computed
  double* passing;         // the probability that an alignment passes through a state
  // for each label, the position of its next occurrence, −1 for none; −2 − position if it occurred before
  std::int32_t* following;
};

template <class T>
struct Backward {
  Problem<T> problem;
  T* out;
  const Wide<T>* gradient;
  const double* alphas;
  StateMemory<3, 2> memory;  // of Kept, and symbols

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    std::int64_t n = group.index(), row = problem.most_states();
    Alignment<T> path(problem, n);
    if (path.has_faults(group, [](Fault, std::int64_t) {}) || path.steps() == 0) return;
    const double* own = alphas + n * problem.steps * row;
    const double* end = own + (path.steps() - 1) * row;
    std::int64_t count = path.states();
    double total = log_of_sum(end[count - 1], count > 1 ? end[count - 2] : impossible, impossible);
    if (total == impossible) return;
    double* first = memory.doubles_of(group, row);
    std::int32_t* numbers = memory.numbers_of(group, row);
    Kept kept{first, first + row, first + 2 * row, numbers + row};
    path.find_symbols(group, count, numbers);
    link(group, path, kept.following);
    group.each([&](int thread) {
      for (std::int64_t s = thread; s < count; s += group.size()) kept.betas[s] = s >= count - 2 ? 0 : impossible;
    });
    for (std::int64_t t = path.steps(); t-- > 0;) {
      give_step(group, path, t, own + t * row, total, kept);
      double* betas = kept.betas;
      kept.betas = kept.others;
      kept.others = betas;
    }
  }

 private:
  // Links the positions of equal labels.
  template <class Group>
  REEL_DEVICE void link(Group& group, const Alignment<T>& path, std::int32_t* following) const {
    std::int64_t count = path.states() / 2;
    group.each([&](int thread) {
      for (std::int64_t place = thread; place < count; place += group.size()) {
        std::int64_t label = path.label(place), next = place + 1, before = place;
        while (next < count && path.label(next) != label) ++next;
        while (before > 0 && path.label(before - 1) != label) --before;
        auto found = static_cast<std::int32_t>(next < count ? next : -1);
        following[place] = before == 0 ? found : -3 - found;
      }
    });
  }

  template <class Group>
  REEL_DEVICE void give_step(Group& group, const Alignment<T>& path, std::int64_t t, const double* alpha, double total,
                             const Kept& kept) const {
    std::int64_t n = group.index(), count = path.states();
    auto blanks = group.template per_thread<double>();
    group.each([&](int thread) {
      double sum = 0;
      for (std::int64_t s = thread; s < count; s += group.size()) {
        double passing = std::exp(alpha[s] + kept.betas[s] - total);
        kept.passing[s] = passing;
        if (s % 2 == 0) sum += passing;
      }
      blanks[thread] = sum;
    });
    double blank = group.reduce(blanks, [](double a, double b) { return a + b; });
    T* to = out + (t * problem.examples + n) * problem.classes;
    double d = gradient[n];
    auto give = [&](std::int64_t symbol, double sum) { to[symbol] = stored<T>(static_cast<Wide<T>>(-d * sum)); };
    group.each([&](int thread) {
      if (thread == 0) give(problem.blank, blank);
      for (std::int64_t s = thread; s < count; s += group.size()) {
        if (s % 2 == 1 && kept.following[s / 2] >= -1) {
          double sum = 0;
          for (std::int64_t place = s / 2; place >= 0;) {
            sum += kept.passing[2 * place + 1];
            std::int32_t next = kept.following[place];
            place = next >= -1 ? next : -3 - next;
          }
          give(path.symbol(s), sum);
        }
        // The probability of what follows a state, without the state's own symbol.
        auto onwards = [&](std::int64_t next) { return kept.betas[next] + path.log_of(t, next); };
        kept.others[s] = log_of_sum(onwards(s), s + 1 < count ? onwards(s + 1) : impossible,
                                    s + 2 < count && path.skips(s + 2) ? onwards(s + 2) : impossible);
      }
    });
  }
};

}  // namespace

bool ctc_loss(const View& losses, const View& alphas, const View& logs, const CtcTargets& given, CtcFault&) {
  with_floating(logs.dtype, [&]<class T>(std::type_identity<T>) {
    Problem<T> problem(logs, given);
    run_with_memory(problem, Forward<T>{problem, alphas.as<double>(), losses.as<Wide<T>>(), fault_reporter(), {}},
                    &Forward<T>::memory);
  });
  return true;
}

void ctc_loss_gradient(const View& out, const View& gradient, const View& logs, const View& alphas,
                       const CtcTargets& given) {
  if (out.numel == 0) return;
  with_floating(logs.dtype, [&]<class T>(std::type_identity<T>) {
    Problem<T> problem(logs, given);
    fill_with_zeros(out.data, static_cast<std::size_t>(out.numel) * sizeof(T));
    run_with_memory(problem, Backward<T>{problem, out.as<T>(), gradient.as<Wide<T>>(), alphas.as<double>(), {}},
                    &Backward<T>::memory);
  });
}

}  // namespace reel::detail::inline REEL_TARGET
