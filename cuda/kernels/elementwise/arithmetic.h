#pragma once

#include "../../device/formula_loop.h"
#include "../../device/row_choice.h"

namespace reel::detail {
inline namespace REEL_TARGET {

// The formulas of arithmetic_quotients.cu and so on; arithmetic.cu has all others.
using Quotients = Formulas<formulas::FloorDivide, formulas::Mod>;
using Powers = Formulas<formulas::Pow, formulas::Logaddexp, formulas::Atan2>;
using Limits = Formulas<formulas::Maximum, formulas::Minimum>;

void fill_quotients(KernelTable& table);
void fill_powers(KernelTable& table);
void fill_limits(KernelTable& table);
void fill_bits(KernelTable& table);

/// A view of contiguous f32 elements.
class Plain {
 public:
  Plain(const float* data, std::int64_t count)
      : count_(count), view_{const_cast<float*>(data), &count_, &step_, count, 1, DType::f32, true} {}
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;
  const View& operator*() const { return view_; }

 private:
  static constexpr std::int64_t step_ = 1;
  std::int64_t count_;
  View view_;
};

template <class F>
void plain_binary(float* out, const float* a, const float* b, std::int64_t count) {
  run_alike<float>(F(), *Plain(out, count), *Plain(a, count), *Plain(b, count));
}

template <class... Rows>
void fill_binary_kernels(KernelTable& table, KernelList<Rows...>) {
  auto fill = [&]<class Row>(Row) {
    using F = typename Row::Formula;
    table.binary[binary_place<F>] = row_kernel<Row>;
    if constexpr (Row::cost == Cost::cheap && Row::operands != Operands::integers &&
                  Row::operands != Operands::integers_and_bools)
      table.plain_binary[binary_place<F>] = plain_binary<F>;
  };
  (fill(Rows()), ...);
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
