#include "pickle.h"

#include <stdexcept>
#include <unordered_set>

#include <fmt/format.h>

#include "../core/printable.h"

namespace reel::io {

using detail::shown;

namespace {

constexpr int most_depth = 64;
constexpr std::size_t least_name_bytes = std::size_t{1} << 16, name_bytes_factor = 4;

// Visits containers from the outside in. A container that is named in several places is visited in each, so the number
// of visits is bounded by what a pickle of that size can have if it names each once.
class PickleVisit {
 public:
  explicit PickleVisit(std::size_t pickle_bytes)
      : visits_left_(pickle_bytes + 1), name_bytes_left_(least_name_bytes + name_bytes_factor * pickle_bytes) {}

  void visit(const PickleValue& value, const std::string& name, int depth, bool in_dicts) {
    count_visit();
    switch (value.kind) {
      case PickleValue::Kind::tensor:
        found.tensors.push_back({unique(name.empty() ? "tensor" : name), value.node});
        break;
      case PickleValue::Kind::dict: visit_dict(*value.node, name, depth, in_dicts); break;
      case PickleValue::Kind::list:
      case PickleValue::Kind::tuple:
        for (std::size_t i = 0; i < value.node->items.size(); ++i) visit_item(value.node->items[i], i, name, depth);
        break;
      default:
        if (in_dicts && !name.empty()) add_word(name, value);
    }
  }

  PickledTensors found;

 private:
  void count_visit() {
    if (visits_left_-- == 0) throw std::runtime_error("has a pickle whose containers contain each other");
  }

  // Lists of numbers, as an optimiser's of the parameters in a group, are not words: their items need no names, which
  // would be longer than the numbers.
  void visit_item(const PickleValue& item, std::size_t index, const std::string& name, int depth) {
    using enum PickleValue::Kind;
    if (item.kind == tensor || item.kind == dict || item.kind == list || item.kind == tuple)
      visit(item, joined(name, fmt::to_string(index), depth), depth + 1, false);
    else
      count_visit();
  }

  void visit_dict(const PickleNode& dict, const std::string& name, int depth, bool in_dicts) {
    for (std::size_t i = 0; i < dict.items.size(); i += 2) {
      const PickleValue& key = dict.items[i];
      if (key.kind != PickleValue::Kind::text && key.kind != PickleValue::Kind::integer)
        throw std::runtime_error(fmt::format(
            "has a pickle with a key that is neither a text nor a whole number, in the dict {}", shown(name)));
      std::string word =
          key.kind == PickleValue::Kind::text ? std::string(key.node->text) : fmt::to_string(key.integer);
      visit(dict.items[i + 1], joined(name, word, depth), depth + 1, in_dicts);
    }
  }

  std::string joined(const std::string& name, const std::string& word, int depth) {
    if (depth == most_depth)
      throw std::runtime_error(fmt::format("has a pickle whose containers are nested more than {} deep", most_depth));
    std::string longer = name.empty() ? word : fmt::format("{}.{}", name, word);
    if (longer.size() > name_bytes_left_) throw std::runtime_error("has a pickle whose names are longer than itself");
    name_bytes_left_ -= longer.size();
    return longer;
  }

  const std::string& unique(const std::string& name) {
    if (auto [first, is_new] = names_.insert(name); is_new) return *first;
    throw std::runtime_error(fmt::format("has a pickle with two tensors of the name {}", shown(name)));
  }

  void add_word(const std::string& name, const PickleValue& value) {
    switch (value.kind) {
      case PickleValue::Kind::boolean: found.words[name] = value.integer ? "True" : "False"; break;
      case PickleValue::Kind::integer: found.words[name] = fmt::to_string(value.integer); break;
      case PickleValue::Kind::real: found.words[name] = fmt::format("{}", value.real); break;
      case PickleValue::Kind::text:
        // A text may be named many times; each is a copy.
        if (value.node->text.size() > name_bytes_left_)
          throw std::runtime_error("has a pickle whose texts are longer than itself");
        name_bytes_left_ -= value.node->text.size();
        found.words[name] = value.node->text;
        break;
      default: break;
    }
  }

  std::size_t visits_left_, name_bytes_left_;
  std::unordered_set<std::string> names_;
};

}  // namespace

PickledTensors tensors_in(const PickleValue& value, std::size_t pickle_bytes) {
  PickleVisit visit(pickle_bytes);
  visit.visit(value, "", 0, true);
  return std::move(visit.found);
}

}  // namespace reel::io
