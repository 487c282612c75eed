#pragma once

#include "files_table.h"

namespace reel::detail {

/// The functions of the table for one kind of file. libpng and libjpeg report failures by longjmp, which ends no
/// lifetimes: between a setjmp and the calls of a library there are no objects with destructors.
bool png_size(const void* bytes, std::size_t count, ImageSize& size, ModuleMessage& message) noexcept;
bool decode_png(const void* bytes, std::size_t count, const ImageSize& size, std::uint8_t* values,
                ModuleMessage& message) noexcept;
bool encode_png(const ImageSize& size, const std::uint8_t* values, ByteSink sink, ModuleMessage& message) noexcept;
bool jpeg_size(const void* bytes, std::size_t count, ImageSize& size, ModuleMessage& message) noexcept;
bool decode_jpeg(const void* bytes, std::size_t count, const ImageSize& size, std::uint8_t* values,
                 ModuleMessage& message) noexcept;

}  // namespace reel::detail
