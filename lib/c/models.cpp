#include <dlfcn.h>

#include <reel/c/plugin.h>

#include <span>
#include <string>
#include <vector>

#include "guard.h"
#include "handles.h"

namespace reel::detail {
namespace {

using PluginFunction = const Plugin*();
using VersionFunction = const Version&() noexcept;

// A name without a folder would be looked for among the system's libraries.
std::string path_of(const std::string& name) { return name.find('/') == std::string::npos ? "./" + name : name; }

void* open_library(const std::string& path) {
  // Its destructors and thread-locals must stay for as long as a tensor or a thread may use them.
  void* library = dlopen(path_of(path).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char* reason = dlerror();
    refuse(REEL_FILE_ERROR, "the plugin '{}' cannot be loaded: {}", path, reason ? reason : "for no given reason");
  }
  return library;
}

template <class Function>
Function* function_in(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// A second reel in the process would have other threads' contexts, allocators and types: it may come from libreel.a or
// from another release.
bool has_own_reel(void* library, const Plugin& plugin) {
  auto* version = function_in<VersionFunction>(library, "_ZN4reel15library_versionEv");
  return plugin.library != &library_version() || (version && &version() != &library_version());
}

const Plugin& plugin_in(const std::string& path) {
  void* library = open_library(path);
  auto* function = function_in<PluginFunction>(library, "reel_plugin");
  if (!function)
    refuse(
        REEL_FILE_ERROR,
        "'{}' is no plugin: it has no function reel_plugin; define one in the model's source, as reel/c/plugin.h says",
        path);
  const Plugin* plugin = function();
  if (!plugin || plugin->version != Plugin::interface_version)
    refuse(REEL_FILE_ERROR,
           "the plugin '{}' was compiled with the headers of another release than {}: compile it again", path,
           library_version().string);
  if (has_own_reel(library, *plugin))
    refuse(
        REEL_FILE_ERROR,
        "the plugin '{}' has a reel of its own, from libreel.a or another release: link it with the libreel.so of {}",
        path, library_version().string);
  return *plugin;
}

void check_count(const reel_model& model, std::size_t count) {
  auto [fewest, most] = model.model->input_counts();
  if (count >= fewest && count <= most) return;
  refuse(REEL_ARGUMENT_ERROR, "the model '{}' takes {} tensor{}, not {}", model.name,
         fewest == most ? fmt::to_string(most) : fmt::format("from {} to {}", fewest, most), most == 1 ? "" : "s",
         count);
}

}  // namespace
}  // namespace reel::detail

using namespace reel;
using namespace reel::detail;

reel_status reel_model_load(const char* plugin, const char* weights, reel_model** result) {
  return guarded(__func__, [&] {
    given(result, "result");
    const Plugin& found = plugin_in(given(plugin, "plugin"));
    auto loaded = std::make_unique<reel_model>(reel_model{found.name, found.create()});
    if (weights) loaded->model->load(weights);
    *result = loaded.release();
  });
}

void reel_model_free(reel_model* model) { std::unique_ptr<reel_model> freed(model); }

const char* reel_model_name(const reel_model* model) { return model ? model->name.c_str() : nullptr; }

int64_t reel_model_parameter_count(const reel_model* model) {
  return guarded_value(__func__, int64_t{-1}, [&] { return given(model, "the model")->model->parameter_count(); });
}

reel_status reel_model_run(const reel_model* model, const reel_tensor* const* inputs, size_t input_count,
                           reel_tensor** results, size_t capacity, size_t* result_count) {
  return guarded(__func__, [&] {
    given(model, "the model");
    given(result_count, "result_count");
    check_count(*model, input_count);
    if (input_count > 0) given(inputs, "inputs");
    if (capacity > 0) given(results, "results");
    std::vector<Tensor> operands;
    for (const reel_tensor* input : std::span(inputs, input_count)) operands.push_back(tensor_of(input));
    std::vector<std::unique_ptr<reel_tensor>> handles;
    for (const Tensor& value : model->model->run(operands)) handles.push_back(handle_of(value));
    if (handles.size() > capacity) {
      *result_count = handles.size();
      refuse(REEL_ARGUMENT_ERROR, "the model '{}' has {} results, and there is place for {}", model->name,
             handles.size(), capacity);
    }
    *result_count = handles.size();
    for (std::size_t i = 0; i < handles.size(); ++i) results[i] = handles[i].release();
  });
}
