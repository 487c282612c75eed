#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include <reel/detail/custom_form.h>
#include <reel/tensor.h>

namespace reel {

namespace detail {

/// A function that can be run again from a copy of its bytes.
struct Segment {
  /// `captured`: what it uses from outside and is differentiated by.
  void (*run)(std::span<const std::byte> function, std::span<const Tensor> inputs, std::span<const Tensor> captured,
              std::span<Tensor> outputs);
  std::span<const std::byte> function;
  std::shared_ptr<const void> owner;  ///< of what the bytes point to, if anything
};

/// Fills `outputs`. Throws: what the function throws; as `checkpoint`.
void run_checkpoint(const Segment& segment, std::span<const Arg> inputs, std::span<Tensor> outputs);

template <class F, class Inputs>
struct SegmentForm;
template <class F, std::size_t... i>
struct SegmentForm<F, std::index_sequence<i...>> {
  static_assert(std::is_invocable_v<const F&, EachTensor<i>...>,
                "the function of a checkpoint takes one const Tensor& for each input");
  using Result = std::invoke_result_t<const F&, EachTensor<i>...>;
  static_assert(result_count<Result> != 0, "the function of a checkpoint returns a Tensor or a std::array<Tensor, K>");

  // Otherwise the bytes are its address.
  static constexpr bool is_plain = std::is_trivially_copyable_v<F> && alignof(F) <= 8;

  static void run(std::span<const std::byte> function, std::span<const Tensor> inputs, std::span<const Tensor>,
                  std::span<Tensor> outputs) {
    const F* f;
    if constexpr (is_plain)
      f = reinterpret_cast<const F*>(function.data());
    else
      std::memcpy(static_cast<void*>(&f), function.data(), sizeof(const F*));
    Result result = (*f)(inputs[i]...);
    std::span<const Tensor> given = listed(result);
    for (std::size_t k = 0; k < given.size(); ++k) outputs[k] = given[k];
  }
};

}  // namespace detail

/// y = f(x…), of which the tape keeps the inputs only: a backward pass computes f again when it reaches it. It saves
/// memory; files from which a training resumes are those of train::Checkpoint.
///
///     for (const Block& block : model.blocks) h = checkpoint([&block](const Tensor& h) { return block(h); }, h);
///
/// f takes a `const Tensor&` for each input and returns a Tensor or a std::array<Tensor, K>. It may capture parameters
/// and other tracked tensors: their gradients are found too. A variable captured by reference has to live until the
/// gradient has been computed, so local tensors and variables of a loop are to be captured by value. When f runs again,
/// the thread's generator gives the random numbers of the first run; everything else that f does is done twice, and
/// leaves nothing on the tape but the results. A tape that f opens sees back to what f is given and captures, and no
/// further. Checkpoints nest, and a gradient of higher order keeps no more than the first. With nothing recording, this
/// is f(x…).
/// Throws: TapeError if f overwrites an input or another tensor from outside; in a backward pass, if f gives other
/// results than the first time, or uses other tracked tensors.
/// Source: Chen et al., Training deep nets with sublinear memory cost (2016).
template <class F, class... More>
auto checkpoint(const F& f, const Arg& x, const More&... more) {
  using Form = detail::SegmentForm<F, std::make_index_sequence<1 + sizeof...(More)>>;
  using Result = typename Form::Result;
  const Arg inputs[] = {x, Arg(more)...};
  std::array<Tensor, detail::result_count<Result>> outputs;
  if constexpr (Form::is_plain) {
    detail::run_checkpoint({Form::run, std::as_bytes(std::span(&f, 1)), nullptr}, inputs, outputs);
  } else {
    auto owner = std::make_shared<const F>(f);
    const F* address = owner.get();
    detail::run_checkpoint({Form::run, std::as_bytes(std::span(&address, 1)), std::move(owner)}, inputs, outputs);
  }
  return detail::gathered<Result>([&](std::size_t k) { return std::move(outputs[k]); });
}

}  // namespace reel
