#pragma once

namespace reel::detail {

/// Whether devices may round the factors of f32 products and convolutions to TF32, which has a mantissa of 10 bits; off
/// by default. May be called from any thread.
bool may_use_tf32() noexcept;
void allow_tf32(bool allowed) noexcept;

}  // namespace reel::detail
