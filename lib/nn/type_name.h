#pragma once

#include <string>
#include <typeinfo>

namespace reel::nn {

/// The name of a type, without namespaces: "Linear".
std::string plain_type_name(const std::type_info& type);

}  // namespace reel::nn
