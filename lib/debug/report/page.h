#pragma once

#include <string>

#include <reel/location.h>
#include <nlohmann/json.hpp>

namespace reel::debug {

/// The contents of a page.
struct PageContents {
  std::string title;
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();  ///< recordings; empty: none
  std::string difference = {};                                    ///< of the first two recordings; empty: none
  std::string logs = {};                                          ///< a folder of logs; empty: none
  bool live = false;  ///< whether a running program serves the page, which then asks it for the ops
};

/// The page of a report, which loads nothing; a live one talks with the server that it came from. Throws: FileError if
/// the logs cannot be read.
std::string page_of(const PageContents& contents, Location where);

}  // namespace reel::debug
