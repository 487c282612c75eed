#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <reel/detail/immovable.h>
#include <reel/detail/members.h>
#include <reel/io/weights.h>
#include <reel/nn/functional_call.h>
#include <reel/nn/module.h>
#include <reel/no_record.h>
#include <reel/version.h>

/// \file
/// Models for programs in other languages: a shared library with a model and one line, which the C interface
/// (reel/c.h) loads. It is linked with libreel.so, not with libreel.a.

namespace reel {

/// A model of a plugin, behind an interface without its type.
class PluginModel : detail::Immovable {
 public:
  /// Frees the model.
  virtual ~PluginModel() = default;

  /// Copies the weights in a file into the model, with the plugin's options.
  /// Throws: what io::load_into throws.
  virtual void load(const std::string& path) = 0;
  /// The number of elements of all parameters.
  virtual std::int64_t parameter_count() const = 0;
  /// The fewest and the most tensors that the model takes.
  virtual std::pair<std::size_t, std::size_t> input_counts() const = 0;
  /// Calls the model, whose results are in the order in which it returns them; nothing is recorded. Threads may call it
  /// concurrently.
  /// Throws: what the model throws; Error for another number of inputs than `input_counts()` says.
  virtual std::vector<Tensor> run(std::span<const Tensor> inputs) const = 0;

 protected:
  PluginModel() = default;
};

/// The interface by which a program uses a plugin that it has loaded.
struct Plugin {
  /// The version of this struct and of PluginModel.
  static constexpr std::uint32_t interface_version = 1;

  std::uint32_t version = interface_version;           ///< what the plugin was compiled with
  const Version* library = nullptr;                    ///< of the reel that the plugin is linked with
  const char* name = "";                               ///< of the model
  std::unique_ptr<PluginModel> (*create)() = nullptr;  ///< makes a model with its initial weights
};

namespace detail {

/// Appends the tensors in a result of a model: a tensor, or a range, a tuple or a plain struct of such results.
template <class T>
void append_tensors(std::vector<Tensor>& tensors, const T& result) {
  if constexpr (std::convertible_to<const T&, Tensor>) {
    tensors.push_back(result);
  } else if constexpr (std::ranges::range<const T>) {
    for (const auto& part : result) append_tensors(tensors, part);
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    std::apply([&](const auto&... parts) { (append_tensors(tensors, parts), ...); }, result);
  } else {
    static_assert(std::is_aggregate_v<T>,
                  "a model of a plugin returns tensors, or ranges, tuples or plain structs of them");
    std::apply([&](const auto&... parts) { (append_tensors(tensors, parts), ...); }, members_of(result));
  }
}

template <class Input, std::size_t>
using SameInput = Input;

/// True if a model can be called with as many inputs as there are indices, all of one type.
template <class Model, class Input, std::size_t... i>
constexpr bool takes_inputs(std::index_sequence<i...>) {
  return std::is_invocable_v<const Model&, SameInput<Input, i>...>;
}

/// The most inputs that a plugin's model can take.
inline constexpr std::size_t most_plugin_inputs = 8;

/// The calls of a plugin's model with a number of inputs that is known when it runs.
template <class Model>
struct PluginCall {
  /// Whether the model takes `count` inputs: as Arg, which carries the plugin's line, or else as tensors.
  template <std::size_t count>
  static constexpr bool takes_args = takes_inputs<Model, const Arg&>(std::make_index_sequence<count>());
  template <std::size_t count>
  static constexpr bool takes =
      takes_args<count> || takes_inputs<Model, const Tensor&>(std::make_index_sequence<count>());

  /// The fewest and the most inputs that the model takes; {1, 0} if it takes none of the numbers in [0, 8].
  static constexpr std::pair<std::size_t, std::size_t> counts() {
    return []<std::size_t... count>(std::index_sequence<count...>) {
      std::pair<std::size_t, std::size_t> range(1, 0);
      bool found = false;
      ((takes<count> ? void((range = {found ? range.first : count, count}, found = true)) : void()), ...);
      return range;
    }(std::make_index_sequence<most_plugin_inputs + 1>());
  }

  /// Calls the model with all inputs. Throws: Error if it does not take that number of them.
  static std::vector<Tensor> run(const Model& model, std::span<const Tensor> inputs, Location where) {
    std::vector<Tensor> results;
    bool found = [&]<std::size_t... count>(std::index_sequence<count...>) {
      return (run_with<count>(model, inputs, where, results) || ...);
    }(std::make_index_sequence<most_plugin_inputs + 1>());
    if (!found) throw Error("a model of a plugin does not take " + std::to_string(inputs.size()) + " inputs", where);
    return results;
  }

 private:
  template <std::size_t count>
  static bool run_with(const Model& model, std::span<const Tensor> inputs, Location where,
                       std::vector<Tensor>& results) {
    if constexpr (takes<count>) {
      if (inputs.size() != count) return false;
      [&]<std::size_t... i>(std::index_sequence<i...>) {
        if constexpr (takes_args<count>)
          append_tensors(results, model(Arg(inputs[i], where)...));
        else
          append_tensors(results, model(inputs[i]...));
      }(std::make_index_sequence<count>());
      return true;
    }
    return false;
  }
};

/// The model that a plugin's factory makes.
template <class Model>
class LoadableModel final : public PluginModel {
 public:
  LoadableModel(Model model, const io::LoadOptions& options, Location where)
      : model_(std::move(model)), options_(options), where_(where) {
    model_.eval();
  }
  void load(const std::string& path) override { io::load_into(model_, path, options_, where_); }
  std::int64_t parameter_count() const override { return model_.parameter_count(); }
  std::pair<std::size_t, std::size_t> input_counts() const override { return PluginCall<Model>::counts(); }
  std::vector<Tensor> run(std::span<const Tensor> inputs) const override {
    NoRecord pause;
    return PluginCall<Model>::run(model_, inputs, where_);
  }

 private:
  Model model_;
  const io::LoadOptions& options_;
  Location where_;
};

}  // namespace detail

/// The plugin of the model that `factory` makes: `factory()` returns a module by value, whose `operator()` is const and
/// maps at most 8 tensors to a tensor, or to a range, a tuple or a plain struct of tensors. `factory` is a lambda without
/// captures. `options` say how weights are loaded, such as `{.from_pytorch = true}`.
///
/// The line of a plugin is `extern "C" const reel::Plugin* reel_plugin() { return reel::plugin("counter", [] { return
/// Counter(16); }); }`; the file is compiled with `-shared -fPIC` and linked with libreel.so.
template <class Factory>
  requires std::derived_from<std::invoke_result_t<Factory>, nn::Module>
const Plugin* plugin(const char* name, Factory factory, io::LoadOptions options = {},
                     Location where = Location::here()) {
  using Model = std::invoke_result_t<Factory>;
  static_assert(std::is_empty_v<Factory>, "the factory of a plugin's model has no captures");
  constexpr auto counts = detail::PluginCall<Model>::counts();
  static_assert(counts.first <= counts.second, "a plugin's model has an operator() const that takes at most 8 tensors");
  // The first call initialises them, as each type of factory belongs to one line.
  static const Factory make = factory;
  static const io::LoadOptions load_options = std::move(options);
  static const Location line = where;
  static const Plugin made{.library = &library_version(), .name = name, .create = []() -> std::unique_ptr<PluginModel> {
                             return std::make_unique<detail::LoadableModel<Model>>(make(), load_options, line);
                           }};
  return &made;
}

/// The plugin of a model that is made without arguments: a module whose `operator()` is const and maps at most 8 tensors
/// to a tensor, or to a range, a tuple or a plain struct of tensors. `options` say how weights are loaded, such as
/// `{.from_pytorch = true}`.
///
/// The line of a plugin is `extern "C" const reel::Plugin* reel_plugin() { return reel::plugin<Counter>("counter"); }`; the
/// file is compiled with `-shared -fPIC` and linked with libreel.so.
template <std::derived_from<nn::Module> Model>
const Plugin* plugin(const char* name, io::LoadOptions options = {}, Location where = Location::here()) {
  return plugin(
      name, [] { return Model(); }, std::move(options), where);
}

}  // namespace reel

/// The function that a plugin defines: what it has. It has the name of C, and is visible whatever the compiler's options say.
extern "C" [[gnu::visibility("default")]] const reel::Plugin* reel_plugin();
