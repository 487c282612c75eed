#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <reel/tensor.h>

namespace reel::detail {

struct Context;

/// A cache of the last large operands that groups have joined. An operand that examples read repeatedly, as each step of
/// an attention reads its encoder's states, is copied once, and its gradient is divided among the examples once.
class JoinedParts {
 public:
  /// Returns the tensor of this shape that `add` was given with these parts, if it is still what joining them would give;
  /// else an undefined one.
  Tensor find(const Context& context, std::span<const Tensor* const> parts, const Shape& shape) const;
  /// Keeps `whole`, which was joined of `parts`, if they are large.
  void add(const Context& context, std::span<const Tensor* const> parts, const Tensor& whole);

 private:
  struct Part {
    Tensor tensor;
    std::uint32_t slot, version;

    Part(const Context& context, const Tensor& tensor);
    bool is(const Context& context, const Tensor& other) const;
  };
  struct Joined {
    std::vector<Part> parts;
    Tensor whole;
    bool recorded = false;
    std::uint32_t scope_id = 0;
    std::uint64_t epoch = 0;  // of the tape list
  };

  std::array<Joined, 8> last_;
  std::size_t oldest_ = 0;
};

}  // namespace reel::detail
