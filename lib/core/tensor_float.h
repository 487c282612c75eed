#pragma once

namespace reel::detail {

/// Whether devices may round the factors of f32 products and convolutions to TF32, which has a mantissa of 10 bits. At
/// first they may not. From any thread.
bool may_use_tf32() noexcept;
void allow_tf32(bool allowed) noexcept;

}  // namespace reel::detail
