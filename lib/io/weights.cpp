#include <reel/io/weights.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <reel/ops/elementwise.h>
#include <reel/ops/in_place.h>
#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../core/op_error.h"
#include "../core/storage.h"
#include "header.h"
#include "pytorch.h"

namespace reel::io {

using namespace detail;

namespace {

constexpr const char* name_ = "io::load_into";
// The rest of a longer list is counted.
constexpr std::size_t most_lines = 40;

std::vector<NamedTensor> contents_of(const nn::Module& module) {
  std::vector<NamedTensor> all = module.named_parameters();
  for (NamedTensor& buffer : module.named_buffers()) all.push_back(std::move(buffer));
  return all;
}

// Under the module's names.
std::vector<NamedTensor> renamed(std::span<const NamedTensor> given, const LoadOptions& options, Location where) {
  std::vector<NamedTensor> found;
  std::unordered_map<std::string, std::string> origin;
  for (const NamedTensor& named : given) {
    std::string name = options.rename ? options.rename(named.name) : named.name;
    if (name.empty() && !named.name.empty()) continue;
    if (!named.tensor.defined()) fail<Error>(name_, where, "{} is an undefined tensor", shown(named.name));
    if (auto [first, is_new] = origin.emplace(name, named.name); !is_new)
      fail<Error>(name_, where, "{} and {} are both to be the module's {}", shown(first->second), shown(named.name),
                  shown(name));
    found.push_back({std::move(name), named.tensor});
  }
  return found;
}

void check_names_differ(std::span<const NamedTensor> found, Location where) {
  std::unordered_set<std::string_view> names;
  for (const NamedTensor& named : found)
    if (!names.insert(named.name).second)
      fail<Error>(name_, where, "two of the given tensors are the module's {}, under its own name and under PyTorch's",
                  shown(named.name));
}

std::vector<NamedTensor> adapted(const nn::Module& module, std::span<const NamedTensor> given,
                                 const LoadOptions& options, Location where) {
  std::vector<NamedTensor> found = renamed(given, options, where);
  if (options.from_pytorch) {
    found = as_in(module, std::move(found), options.convert);
    check_names_differ(found, where);
  }
  if (!options.transform) return found;
  for (NamedTensor& named : found) {
    named.tensor = options.transform(named.name, named.tensor);
    if (!named.tensor.defined())
      fail<Error>(name_, where, "the transform made an undefined tensor of {}", shown(named.name));
  }
  return found;
}

bool is_transpose(const Tensor& a, const Tensor& b) {
  return a.rank() == 2 && b.rank() == 2 && a.size(0) == b.size(1) && a.size(1) == b.size(0);
}

bool repeats_elements(const Tensor& x) {
  if (x.is_contiguous()) return false;
  for (int i = 0; i < x.rank(); ++i)
    if (x.strides()[i] == 0 && x.size(i) > 1) return true;
  return false;
}

// Why the given values cannot become those of the tensor; empty if they can.
std::string difference(const Tensor& own, const Tensor& given, bool convert) {
  // One value would stand for several.
  if (repeats_elements(own)) return fmt::format("{} repeats elements in the module: make it contiguous", describe(own));
  std::string hint;
  bool fits = own.shape() == given.shape();
  if (!fits && is_transpose(own, given))
    hint = ": the other way round, as PyTorch has it; .from_pytorch = true or a .transform would turn it";
  else if (fits && own.dtype() != given.dtype() && !convert)
    hint = ": .convert = true would convert it";
  else if (fits)
    return {};
  return fmt::format("{} in the module, {} given{}", describe(own), describe(given), hint);
}

class Comparison {
 public:
  struct Match {
    Tensor own, given;
  };

  Comparison(std::span<const NamedTensor> own, std::span<const NamedTensor> given, const LoadOptions& options) {
    std::unordered_map<std::string_view, const Tensor*> left;
    for (const NamedTensor& named : given) left.emplace(named.name, &named.tensor);
    for (const NamedTensor& named : own) {
      auto found = left.find(named.name);
      if (found == left.end()) {
        passed_over.missing.push_back(named.name);
        if (options.strict) add("missing", named.name, describe(named.tensor));
        continue;
      }
      if (std::string why = difference(named.tensor, *found->second, options.convert); !why.empty())
        add("differs", named.name, why);
      else
        matches.push_back({named.tensor, *found->second});
      left.erase(found);
    }
    for (const NamedTensor& named : given) {
      if (!left.contains(named.name)) continue;
      passed_over.unexpected.push_back(named.name);
      if (options.strict) add("unexpected", named.name, describe(named.tensor));
    }
  }

  bool fits() const { return lines_.empty(); }
  /// The differences, a line each.
  std::string lines() const {
    std::string text;
    for (std::size_t i = 0; i < std::min(lines_.size(), most_lines); ++i) text += lines_[i];
    if (lines_.size() > most_lines) text += fmt::format("\n  … and {} more", lines_.size() - most_lines);
    return text;
  }
  std::size_t count() const { return lines_.size(); }

  std::vector<Match> matches;
  PassedOver passed_over;

 private:
  void add(const char* kind, const std::string& name, const std::string& what) {
    lines_.push_back(fmt::format("\n  {:<10}  {}  {}", kind, shortened(name), what));
  }

  std::vector<std::string> lines_;
};

PassedOver load_values(nn::Module& module, std::span<const NamedTensor> given, const std::string& source,
                       const LoadOptions& options, Location where) {
  CallerScope caller(where);
  // A parameter is overwritten, not computed; a tape that has used it notices.
  NoRecord pause;
  Comparison comparison(contents_of(module), adapted(module, given, options, where), options);
  if (!comparison.fits())
    throw MisfitError(fmt::format("{}: {} not fit the module in {} place{}, and nothing was changed", name_, source,
                                  comparison.count(), comparison.count() == 1 ? "" : "s"),
                      context().resolve(where), comparison.lines());
  // What may fail comes before the first change.
  std::unordered_set<const Storage*> overwritten;
  for (const Comparison::Match& match : comparison.matches) overwritten.insert(match.own.body().storage);
  for (Comparison::Match& match : comparison.matches) {
    match.given = to(to(match.given, match.own.device()), match.own.dtype());
    if (overwritten.contains(match.given.body().storage)) match.given = copy(match.given);
  }
  for (const Comparison::Match& match : comparison.matches) copy_(Destination(match.own, where), match.given);
  return std::move(comparison.passed_over);
}

}  // namespace

void save(const std::string& path, const nn::Module& module, const Metadata& metadata, Location where) {
  save(path, contents_of(module), metadata, where);
}

PassedOver load_into(nn::Module& module, const std::string& path, const LoadOptions& options, Location where) {
  return load_values(module, load(path, where).tensors, fmt::format("'{}' does", path), options, where);
}

PassedOver load_into(nn::Module& module, std::span<const NamedTensor> tensors, const LoadOptions& options,
                     Location where) {
  return load_values(module, tensors, "the given tensors do", options, where);
}

}  // namespace reel::io
