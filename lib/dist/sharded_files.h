#pragma once

#include <string>
#include <vector>

#include <reel/dist/group.h>
#include <reel/named_tensor.h>

#include "row_shares.h"

namespace reel::detail {

/// Saves each rank's rows of several tensors in a file of its own, and when all of them are complete the file that names
/// them; then removes those of the save before. Throws: what io::save throws.
void save_shares(const dist::Group& group, const RowShares& shares, const std::string& prefix,
                 const std::vector<NamedTensor>& tensors, Location where);

/// Loads a rank's rows of the tensors that any number of ranks has saved.
/// Throws: io::FileError; Error for tables of another number of rows or another seed.
std::vector<NamedTensor> load_shares(const dist::Group& group, const RowShares& shares, const std::string& prefix,
                                     Location where);

}  // namespace reel::detail
