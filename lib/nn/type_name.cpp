#include "type_name.h"

#include <cxxabi.h>
#include <cstdlib>
#include <memory>

namespace reel::nn {

std::string plain_type_name(const std::type_info& type) {
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                   &std::free);
  std::string name = status == 0 ? text.get() : type.name();
  // Removes the namespaces of the type and of each of its arguments.
  std::string plain;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '(') {  // (anonymous namespace), or the function around a local struct
      i = name.find(')', i);
      if (i == std::string::npos) break;
      continue;
    }
    if (name[i] == ':') {
      std::size_t start = plain.find_last_of("<, ");
      plain.resize(start == std::string::npos ? 0 : start + 1);
      while (i + 1 < name.size() && name[i + 1] == ':') ++i;
      continue;
    }
    plain += name[i];
  }
  return plain;
}

}  // namespace reel::nn
