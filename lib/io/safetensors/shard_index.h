#pragma once

#include <map>
#include <string>

#include <reel/location.h>

namespace reel::io {

class Reader;

/// Maps each tensor of a checkpoint in several files to the file that has it, relative to the index's folder.
using ShardIndex = std::map<std::string, std::string>;

/// True for a file that is JSON, which no safetensors file is that anyone could load: its first eight bytes would be
/// the length of a header beyond all limits.
bool is_shard_index(const Reader& file);

/// Reads an index. Throws: FileError, in the name of `function`, if it is no JSON object with a "weight_map" of strings,
/// or names a tensor twice, or a file by two names, by an absolute path or by one that leads out of the folder.
ShardIndex read_shard_index(const char* function, const Reader& file, const std::string& path, Location where);

/// The path of a file that an index names.
std::string shard_path(const std::string& index_path, const std::string& shard);

}  // namespace reel::io
