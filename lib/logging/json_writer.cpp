#include "json_writer.h"

#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace reel::logging {

namespace {

// Source: RFC 8259, section 7.
void append_quoted(std::string& json, std::string_view text) {
  json += '"';
  for (char c : text) {
    if (c == '"' || c == '\\')
      (json += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      fmt::format_to(std::back_inserter(json), "\\u{:04x}", static_cast<unsigned>(c));
    else
      json += c;
  }
  json += '"';
}

}  // namespace

JsonWriter& JsonWriter::begin() {
  text_ += '{';
  return *this;
}

JsonWriter& JsonWriter::begin(std::string_view name) {
  append_name(name);
  return begin();
}

JsonWriter& JsonWriter::end() {
  text_ += '}';
  return *this;
}

JsonWriter& JsonWriter::member(std::string_view name, std::string_view text) {
  append_name(name);
  append_quoted(text_, text);
  return *this;
}

JsonWriter& JsonWriter::member(std::string_view name, double value) {
  if (std::isnan(value)) return member(name, std::string_view("NaN"));
  if (std::isinf(value)) return member(name, std::string_view(value > 0 ? "Infinity" : "-Infinity"));
  append_name(name);
  fmt::format_to(std::back_inserter(text_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::rounded(std::string_view name, double value, int decimals) {
  append_name(name);
  fmt::format_to(std::back_inserter(text_), "{:.{}f}", value, decimals);
  return *this;
}

JsonWriter& JsonWriter::json(std::string_view name, std::string_view value) {
  append_name(name);
  text_ += value;
  return *this;
}

void JsonWriter::append_name(std::string_view name) {
  if (text_.back() != '{') text_ += ',';
  append_quoted(text_, name);
  text_ += ':';
}

}  // namespace reel::logging
