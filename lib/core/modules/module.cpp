#include "module.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "../printable.h"
#include "module_folder.h"

namespace reel::detail {
namespace {

// The folder of the library or program that contains reel. A relative name would mean another file after a change of
// the working folder.
std::filesystem::path own_folder() {
  Dl_info here{};
  if (!dladdr(reinterpret_cast<const void*>(&load_module), &here) || !here.dli_fname) return {};
  std::filesystem::path file = here.dli_fname;
  return file.is_absolute() ? file.parent_path().lexically_normal() : std::filesystem::path();
}

std::filesystem::path program_folder() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

std::vector<std::filesystem::path> module_folders() {
  if (const char* named = std::getenv("REEL_MODULES"); named && *named) return {named};
  std::vector<std::filesystem::path> folders;
  for (const std::filesystem::path& folder : {own_folder(), program_folder()}) {
    if (folder.empty() || (!folders.empty() && folder == folders.front())) continue;
    folders.push_back(folder);
    folders.push_back(folder / module_subfolder);
  }
  folders.emplace_back(installed_module_folder);
  return folders;
}

// Empty, with a sentence in `failure`, if there is none.
std::filesystem::path find_module(const ModuleName& module, std::string& failure) {
  std::vector<std::filesystem::path> folders = module_folders();
  std::vector<std::string> names;
  for (const std::filesystem::path& folder : folders) {
    std::filesystem::path file = folder / fmt::format("lib{}.so", module.name);
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) return file;
    names.push_back(printable(folder.string()));
  }
  failure = fmt::format(
      "{} need lib{}.so, which is not in {}: install it with reel, or name its folder in the environment variable "
      "REEL_MODULES",
      module.purpose, module.name, fmt::join(names, ", "));
  return {};
}

}  // namespace

const void* load_module(const ModuleName& module, std::size_t bytes, std::string& failure) {
  std::filesystem::path file = find_module(module, failure);
  if (file.empty()) return nullptr;
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char* reason = dlerror();
    failure =
        fmt::format("{} need '{}', which cannot be loaded: {}; it needs Debian's {}", module.purpose,
                    printable(file.string()), printable(reason ? reason : "for no given reason"), module.packages);
    return nullptr;
  }
  auto* table_of = reinterpret_cast<ModuleTable*>(dlsym(library, "reel_module_table"));
  const void* table = table_of ? table_of(module.version, bytes) : nullptr;
  if (!table)
    failure = fmt::format("'{}' belongs to another version of reel: install both together", printable(file.string()));
  return table;
}

}  // namespace reel::detail
