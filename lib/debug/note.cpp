#include <reel/debug/note.h>

#include <type_traits>

#include <fmt/format.h>

#include "../core/context.h"

namespace reel::debug {

using namespace detail;

namespace {

std::string text_of(const Note::Value& value) {
  return std::visit(
      []<class T>(const T& one) -> std::string {
        if constexpr (std::is_same_v<T, std::string>)
          return one;
        else if constexpr (std::is_same_v<T, double>)
          return fmt::format("{:.6g}", one);
        else if constexpr (std::is_same_v<T, std::int64_t>)
          return fmt::format("{}", one);
        else if constexpr (std::is_same_v<T, data::Source>)
          return data::to_string(one);
        else
          return data::to_string(std::span<const data::Source>(one), 3);
      },
      value);
}

}  // namespace

Note::Note(const char* key, Value value) : value_(std::move(value)) {
  Context& context = detail::context();
  outer = context.notes;
  this->key = key;
  append_value = [](const ActiveNote& frame, std::string& text) {
    text += text_of(static_cast<const Note&>(frame).value_);
  };
  context.notes = this;
}

Note::~Note() {
  // Notes in a std::optional may end in any order.
  for (const ActiveNote** at = &detail::context().notes; *at; at = &const_cast<ActiveNote*>(*at)->outer)
    if (*at == this) {
      *at = outer;
      return;
    }
}

}  // namespace reel::debug
