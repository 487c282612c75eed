#include <cmath>
#include <cstdint>
#include <type_traits>

#include "../../../lib/core/dtype_dispatch.h"
#include "../../../lib/kernels/loss.h"
#include "../../device/launch.h"
#include "../../device/packed_row.h"
#include "../../runtime/cuda_kernels.h"
#include "aligned_view.h"
#include "ctc.h"
#include "exponents.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// Class indices of i32 or i64, and which of them are ignored.
struct Targets {
  const void* first;
  bool is_long;
  std::int64_t classes, ignored;

  Targets(const View& targets, std::int64_t classes, std::int64_t ignored)
      : first(targets.data), is_long(targets.dtype == DType::i64), classes(classes), ignored(ignored) {}
  REEL_DEVICE std::int64_t at(std::int64_t n) const {
    return is_long ? static_cast<const std::int64_t*>(first)[n] : static_cast<const std::int32_t*>(first)[n];
  }
  REEL_DEVICE bool is_class(std::int64_t target) const { return target >= 0 && target < classes; }
  REEL_DEVICE bool counts(std::int64_t target) const { return target != ignored && is_class(target); }
  REEL_DEVICE void report_unless_fitting(std::int64_t target, const FaultReporter& faults) const {
    if (target != ignored && !is_class(target)) faults.report(Fault::target, target, classes);
  }
};

// Bound: the logits are read once.
template <class T, int lanes>
struct CrossEntropy {
  Targets targets;
  const T* logits;
  Wide<T>*losses, *exponents;
  FaultReporter faults;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    using W = Wide<T>;
    std::int64_t n = group.index(), target = targets.at(n);
    const T* row = logits + n * targets.classes;
    Exponents<W> all{0, 0};
    bool counts = targets.counts(target);
    if (counts) {
      PackLoop<lanes> loop(0, targets.classes / lanes, group.size());
      auto kept = group.template per_thread<KeptPacks<T, lanes>>();
      all = exponents_of_row<lanes, T>(group, loop, kept, [&](std::int64_t p) { return load_pack<lanes>(row, p); });
    }
    group.each([&](int thread) {
      if (thread != 0) return;
      targets.report_unless_fitting(target, faults);
      exponents[2 * n] = all.largest;
      exponents[2 * n + 1] = all.sum;
      losses[n] = counts ? std::log(all.sum) - (loaded(row[target]) - all.largest) : W(0);
    });
  }
};

bool cross_entropy(const View& losses, const View& exponents, const View& logits, const View& targets,
                   std::int64_t ignored, std::int64_t&) {
  std::int64_t classes = logits.dims[1];
  with_floating(logits.dtype, [&]<class T>(std::type_identity<T>) {
    with_lanes<T>(classes, [&]<int lanes>(std::integral_constant<int, lanes>) {
      AlignedView from(logits, lanes);
      for_each_group(losses.numel, threads_for_packs(classes / lanes, lanes), 0,
                     CrossEntropy<T, lanes>{{targets, classes, ignored},
                                            from.view().template as<T>(),
                                            losses.as<Wide<T>>(),
                                            exponents.as<Wide<T>>(),
                                            fault_reporter()});
    });
  });
  return true;
}

// Bound: the logits are read once and the result is written once.
template <class T, int lanes>
struct CrossEntropyGradient {
  Targets targets;
  T* out;
  const T* logits;
  const Wide<T>*d, *exponents;
  std::int64_t d_stride;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    using W = Wide<T>;
    std::int64_t n = group.index(), target = targets.at(n);
    const T* row = logits + n * targets.classes;
    T* to = out + n * targets.classes;
    W largest = exponents[2 * n], sum = exponents[2 * n + 1], gradient = d[n * d_stride], scale = gradient / sum;
    bool counts = targets.counts(target);
    PackLoop<lanes> loop(0, targets.classes / lanes, group.size());
    group.each([&](int thread) {
      KeptPacks<T, lanes> own;
      loop.run(
          0, thread, [&](int k, std::int64_t p) { own.of[k] = load_pack<lanes>(row, p); },
          [&](int k, std::int64_t p) {
            Pack<T, lanes> result;
#pragma unroll
            for (int lane = 0; lane < lanes; ++lane) {
              W power = counts ? std::exp(loaded(own.of[k].element[lane]) - largest) : W(0);
              // p − 1 is computed as a difference, without rounding p first.
              bool is_target = p * lanes + lane == target;
              result.element[lane] = stored<T>(!counts     ? W(0)
                                               : is_target ? gradient * (power / sum - W(1))
                                                           : power * scale);
            }
            store_pack<lanes>(to, p, result);
          });
    });
  }
};

void cross_entropy_gradient(const View& out, const View& d, const View& logits, const View& targets,
                            const View& exponents, std::int64_t ignored) {
  if (out.numel == 0) return;
  std::int64_t classes = logits.dims[1];
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    with_lanes<T>(classes, [&]<int lanes>(std::integral_constant<int, lanes>) {
      AlignedView from(logits, lanes);
      AlignedResult to(out, lanes);
      for_each_group(logits.dims[0], threads_for_packs(classes / lanes, lanes), 0,
                     CrossEntropyGradient<T, lanes>{{targets, classes, ignored},
                                                    to.view().template as<T>(),
                                                    from.view().template as<T>(),
                                                    d.as<Wide<T>>(),
                                                    exponents.as<Wide<T>>(),
                                                    d.rank == 0 ? 0 : d.strides[0]});
      to.finish();
    });
  });
}

template <class T>
struct NllLoss {
  Targets targets;
  const T* x;
  Wide<T>* losses;
  FaultReporter faults;

  REEL_DEVICE void operator()(std::int64_t n) const {
    std::int64_t target = targets.at(n);
    targets.report_unless_fitting(target, faults);
    losses[n] = targets.counts(target) ? -loaded(x[n * targets.classes + target]) : Wide<T>(0);
  }
};

bool nll_loss(const View& losses, const View& x, const View& targets, std::int64_t ignored, std::int64_t&) {
  with_floating(x.dtype, [&]<class T>(std::type_identity<T>) {
    for_each(losses.numel,
             NllLoss<T>{{targets, x.dims[1], ignored}, x.as<T>(), losses.as<Wide<T>>(), fault_reporter()});
  });
  return true;
}

// By one group.
template <class T>
struct MeanOfTargets {
  Targets targets;
  const T* losses;
  T *mean, *count;
  std::int64_t losses_count;

  struct Sum {
    double losses, targets;
  };

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    auto partial = group.template per_thread<Sum>();
    group.each([&](int thread) {
      Sum sum{0, 0};
      for (std::int64_t n = thread; n < losses_count; n += group.size()) {
        sum.losses += losses[n];
        sum.targets += targets.at(n) != targets.ignored ? 1 : 0;
      }
      partial[thread] = sum;
    });
    Sum sum = group.reduce(partial, [](const Sum& a, const Sum& b) {
      return Sum{a.losses + b.losses, a.targets + b.targets};
    });
    group.each([&](int thread) {
      if (thread != 0) return;
      *mean = static_cast<T>(sum.losses / sum.targets);
      *count = static_cast<T>(sum.targets);
    });
  }
};

void mean_of_targets(const View& mean, const View& count, const View& losses, const View& targets,
                     std::int64_t ignored) {
  auto run = [&]<class T>(std::type_identity<T>) {
    for_each_block(
        1, most_threads, 0,
        MeanOfTargets<T>{{targets, 0, ignored}, losses.as<const T>(), mean.as<T>(), count.as<T>(), losses.numel});
  };
  if (losses.dtype == DType::f64)
    run(std::type_identity<double>());
  else
    run(std::type_identity<float>());
}

constexpr LossKernels loss_kernels{
    .elements = {},
    .cross_entropy = cross_entropy,
    .cross_entropy_gradient = cross_entropy_gradient,
    .nll_loss = nll_loss,
    .mean_of_targets = mean_of_targets,
    .ctc_loss = ctc_loss,
    .ctc_loss_gradient = ctc_loss_gradient,
};

}  // namespace

void fill_loss(KernelTable& table) { table.loss = &loss_kernels; }

}  // namespace reel::detail::inline REEL_TARGET
