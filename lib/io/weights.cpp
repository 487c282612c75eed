#include <reel/io/hdf5.h>
#include <reel/io/pytorch.h>
#include <reel/io/weights.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <reel/ops/comparison.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/in_place.h>
#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../core/op_error.h"
#include "../core/printable.h"
#include "../core/storage.h"
#include "../ops/elementwise/elementwise.h"
#include "../ops/if_needed.h"
#include "file_magic.h"
#include "keras_layout.h"
#include "pytorch_layout.h"
#include "torch_save.h"

namespace reel::io {

using namespace detail;

namespace {

constexpr const char* op_name = "io::load_into";
// A longer list ends with the number of omitted lines.
constexpr std::size_t most_lines = 40;
constexpr const char* own_format = "reel";
// Source: what Hugging Face's libraries write for PyTorch.
constexpr const char* pytorch_format = "pt";

// With `remove_duplicates` false, a tensor with several names under each.
std::vector<NamedTensor> contents_of(const nn::Module& module, bool remove_duplicates = true) {
  std::vector<NamedTensor> all = module.named_parameters(remove_duplicates);
  for (NamedTensor& buffer : module.named_buffers(remove_duplicates)) all.push_back(std::move(buffer));
  return all;
}

// The tensors under the module's names.
std::vector<NamedTensor> renamed(std::span<const NamedTensor> given, const LoadOptions& options, Location where) {
  std::vector<NamedTensor> found;
  std::unordered_map<std::string, std::string> origin;
  for (const NamedTensor& named : given) {
    std::string name = options.rename ? options.rename(named.name) : named.name;
    if (name.empty() && !named.name.empty()) continue;
    if (!named.tensor.defined()) fail<Error>(op_name, where, "{} is an undefined tensor", shown(named.name));
    if (auto [first, is_new] = origin.emplace(name, named.name); !is_new)
      fail<Error>(op_name, where, "{} and {} are both to be the module's {}", shown(first->second), shown(named.name),
                  shown(name));
    found.push_back({std::move(name), named.tensor});
  }
  return found;
}

void check_names_differ(std::span<const NamedTensor> found, const char* library, Location where) {
  std::unordered_set<std::string_view> names;
  for (const NamedTensor& named : found)
    if (!names.insert(named.name).second)
      fail<Error>(op_name, where, "two of the given tensors are the module's {}, under its own name and under {}'s",
                  shown(named.name), library);
}

Tensor transformed(const NamedTensor& named, const LoadOptions& options, Location where) {
  if (!options.transform) return named.tensor;
  Tensor made = options.transform(named.name, named.tensor);
  if (!made.defined()) fail<Error>(op_name, where, "the transform made an undefined tensor of {}", shown(named.name));
  return made;
}

bool is_transpose(const Tensor& a, const Tensor& b) {
  return a.rank() == 2 && b.rank() == 2 && a.size(0) == b.size(1) && a.size(1) == b.size(0);
}

// Why values cannot be loaded into a tensor; empty if they can.
std::string difference(const Tensor& own, const Tensor& given, bool convert) {
  // One element would have to hold several values.
  if (repeats_elements(own.body()))
    return fmt::format("{} repeats elements in the module: make it contiguous", describe(own));
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

bool equal_elements(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && allclose(a, b, {.relative = 0, .absolute = 0, .equal_nan = true});
}

// The first lines of a list, and the number of omitted ones.
std::string first_lines(std::span<const std::string> lines) {
  std::string text;
  for (const std::string& line : lines.first(std::min(lines.size(), most_lines))) text += line;
  if (lines.size() > most_lines) text += fmt::format("\n  … and {} more", lines.size() - most_lines);
  return text;
}

std::string line_of(const char* kind, const std::string& name, const std::string& what) {
  return fmt::format("\n  {:<10}  {}  {}", kind, shortened(name), what);
}

class Comparison {
 public:
  struct Match {
    Tensor own, given;
  };

  // `own`: a tensor with several names under each, of which one or more may be given.
  Comparison(std::span<const NamedTensor> own, std::span<const NamedTensor> given, const LoadOptions& options) {
    std::unordered_map<std::string_view, const Tensor*> left;
    for (const NamedTensor& named : given) left.emplace(named.name, &named.tensor);
    std::unordered_map<const Body*, const NamedTensor*> first_given;
    for (const NamedTensor& named : own) {
      auto found = left.find(named.name);
      if (found == left.end()) continue;
      auto [first, is_new] = first_given.try_emplace(&named.tensor.body(), &named);
      if (std::string why = difference(named.tensor, *found->second, options.convert); !why.empty())
        add("differs", named.name, why);
      else if (is_new)
        matches.push_back({named.tensor, *found->second});
      else if (const Tensor& other = *left.at(first->second->name); !equal_elements(other, *found->second))
        add("differs", named.name,
            fmt::format("other values than {}, which is the same tensor in the module",
                        shortened(first->second->name)));
      given_.insert(named.name);
    }
    for (const NamedTensor& named : own) {
      if (!first_given.try_emplace(&named.tensor.body(), &named).second) continue;
      passed_over.missing.push_back(named.name);
      if (options.strict) add("missing", named.name, describe(named.tensor));
    }
    for (const NamedTensor& named : given) {
      if (given_.contains(named.name)) continue;
      passed_over.unexpected.push_back(named.name);
      if (options.strict) add("unexpected", named.name, describe(named.tensor));
    }
  }

  bool fits() const { return lines_.empty(); }
  /// The differences, one line each.
  std::string lines() const { return first_lines(lines_); }
  std::size_t count() const { return lines_.size(); }

  std::vector<Match> matches;
  PassedOver passed_over;

 private:
  void add(const char* kind, const std::string& name, const std::string& what) {
    lines_.push_back(line_of(kind, name, what));
  }

  std::vector<std::string> lines_;
  std::unordered_set<std::string_view> given_;  // names of the module's tensors
};

const Tensor* find(std::span<const NamedTensor> tensors, std::string_view name) {
  auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const NamedTensor& named) { return named.name == name; });
  return found == tensors.end() ? nullptr : &found->tensor;
}

// The module's weights that PyTorch's layout, transposed, would fit, too; none if one of them does not.
std::vector<NamedTensor> fitting_transposed(const nn::Module& module, const std::vector<NamedTensor>& found,
                                            const LoadOptions& options, Location where) {
  std::vector<NamedTensor> own = contents_of(module, false), fitting;
  for (const NamedTensor& named : as_in(module, found, options.convert)) {
    const Tensor *as_it_is = find(found, named.name), *in_module = find(own, named.name);
    if (!as_it_is || !in_module || as_it_is->is(named.tensor) || in_module->numel() <= 1) continue;
    if (!difference(*in_module, transformed(named, options, where), options.convert).empty()) return {};
    fitting.push_back({named.name, *in_module});
  }
  return fitting;
}

// The source of the tensors, for messages and for detecting their layout.
struct WeightsSource {
  std::string name;
  const Metadata* metadata;  // null: not from a file
};

bool has_format(const WeightsSource& source, const char* format) {
  if (!source.metadata) return false;
  auto found = source.metadata->find(format_key);
  return found != source.metadata->end() && found->second == format;
}

bool is_marked(const WeightsSource& source) { return has_format(source, own_format); }

void check_not_marked(const WeightsSource& source, const char* option, Location where) {
  if (is_marked(source))
    throw MisfitError(fmt::format("{}: {} was saved by reel, and {} = true would transpose its weights: leave it out; "
                                  "nothing was changed",
                                  op_name, source.name, option),
                      context().call_site(where), "");
}

// Checks that the layout of tensors that fit without conversion is known.
void check_layout_is_known(const nn::Module& module, const std::vector<NamedTensor>& found, const WeightsSource& source,
                           const LoadOptions& options, Location where) {
  if (is_marked(source) || !source.metadata || options.from_pytorch) return;
  std::vector<std::string> lines;
  for (const NamedTensor& named : fitting_transposed(module, found, options, where))
    lines.push_back(line_of("either way", named.name, describe(named.tensor)));
  if (lines.empty()) return;
  throw MisfitError(
      fmt::format("{}: {} does not say whether its weights are (in, out), as reel's are, or (out, in), as "
                  "PyTorch's are, and fits the module either way: say .from_pytorch = true for PyTorch's "
                  "or .from_pytorch = false for reel's; nothing was changed",
                  op_name, source.name),
      context().call_site(where), first_lines(lines));
}

PassedOver load_values(nn::Module& module, std::span<const NamedTensor> given, const WeightsSource& source,
                       const LoadOptions& options, Location where) {
  CallerScope caller(where);
  // Loading overwrites a parameter and is not recorded; a tape that has used it detects the overwrite.
  NoRecord pause;
  if (options.from_keras && options.from_pytorch.value_or(false))
    fail<Error>(op_name, where, "takes the weights of Keras or of PyTorch, not of both");
  std::vector<NamedTensor> of_layers;
  if (options.from_keras) given = of_layers = named_as_layers(given);
  std::vector<NamedTensor> found = renamed(given, options, where);
  bool is_of_torch_save = has_format(source, torch_save_format);
  if (options.from_pytorch.value_or(is_of_torch_save && !options.from_keras)) {
    check_not_marked(source, ".from_pytorch", where);
    found = as_in(module, std::move(found), options.convert);
    check_names_differ(found, "PyTorch", where);
  } else if (options.from_keras) {
    check_not_marked(source, ".from_keras", where);
    found = from_keras_layers(module, std::move(found));
    check_names_differ(found, "Keras", where);
  }
  std::vector<NamedTensor> ready = found;
  for (NamedTensor& named : ready) named.tensor = transformed(named, options, where);
  std::vector<NamedTensor> own = contents_of(module, false);
  Comparison comparison(own, ready, options);
  if (!comparison.fits())
    throw MisfitError(
        fmt::format("{}: {} {} not fit the module in {} place{}, and nothing was changed", op_name, source.name,
                    source.metadata ? "does" : "do", comparison.count(), comparison.count() == 1 ? "" : "s"),
        context().call_site(where), comparison.lines());
  if (!is_of_torch_save && !options.from_keras) check_layout_is_known(module, found, source, options, where);
  // Checks that may fail come before the first change.
  std::unordered_set<const Storage*> overwritten;
  for (const Comparison::Match& match : comparison.matches) overwritten.insert(match.own.body().storage);
  for (Comparison::Match& match : comparison.matches) {
    match.given = to_if_needed(to_if_needed(match.given, match.own.device()), match.own.dtype());
    if (overwritten.contains(match.given.body().storage)) match.given = copy(match.given);
  }
  for (const Comparison::Match& match : comparison.matches) copy_(Destination(match.own, where), match.given);
  return std::move(comparison.passed_over);
}

Metadata marked(const Metadata& metadata, const char* layout, Location where) {
  Metadata all = metadata;
  const std::string& format = all.emplace(format_key, layout).first->second;
  if (format != layout)
    fail<Error>("io::save", where,
                "the metadata say that the format is {}, but a module is laid out as \"{}\"'s: leave "
                "\"{}\" out, or save a list of tensors",
                shown(format), layout, format_key);
  return all;
}

Contents load_any(const std::string& path, Location where) {
  switch (format_of_file(path, where)) {
    case WeightsFormat::torch_save: return load_pytorch(path, where);
    case WeightsFormat::hdf5: return load_hdf5(path, where);
    default: return load(path, where);
  }
}

}  // namespace

void save(const std::string& path, const nn::Module& module, const Metadata& metadata, Location where) {
  save(path, contents_of(module), marked(metadata, own_format, where), where);
}

void save(const std::string& path, const nn::Module& module, const SaveOptions& options, Location where) {
  if (!options.for_pytorch) return save(path, module, options.metadata, where);
  CallerScope caller(where);
  save(path, as_in_pytorch(module, contents_of(module, false)), marked(options.metadata, pytorch_format, where), where);
}

void check_save(const std::string& path, const nn::Module& module, const Metadata& metadata, Location where) {
  check_save(path, contents_of(module), marked(metadata, own_format, where), where);
}

PassedOver load_into(nn::Module& module, const std::string& path, const LoadOptions& options, Location where) {
  Contents contents = load_any(path, where);
  return load_values(module, contents.tensors, {fmt::format("'{}'", printable(path)), &contents.metadata}, options,
                     where);
}

PassedOver load_into(nn::Module& module, const Contents& contents, const LoadOptions& options, Location where) {
  return load_values(module, contents.tensors, {"the file", &contents.metadata}, options, where);
}

PassedOver load_into(nn::Module& module, std::span<const NamedTensor> tensors, const LoadOptions& options,
                     Location where) {
  return load_values(module, tensors, {"the given tensors", nullptr}, options, where);
}

}  // namespace reel::io
