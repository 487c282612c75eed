#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>

#include <reel/data/loader_engine.h>

namespace reel::detail {

/// A batch that has been made, or why it could not be.
struct MadeBatch {
  std::shared_ptr<void> batch;
  std::exception_ptr error;
};

/// Thrown through the functions of a Loader that ends, so that no further item is made.
struct LoaderStopped {};

/// Makes a batch of the items with the given indices: gives each its random numbers, and names the item in the error
/// if a function throws. `number`: the batch's position in its epoch, for the random numbers of `collate`.
MadeBatch make_batch(const LoaderFunctions& functions, std::span<const std::int64_t> indices, std::uint64_t seed,
                     std::int64_t epoch, std::int64_t number, const std::atomic<bool>& stopped, Location where);

/// The exception that is being handled, as a LoadError about items if it has a sentence to add them to. `subject`: "item
/// 3".
std::exception_ptr load_error(const std::string& subject, Location where);

/// An item as the subject of an error: "item 3 (a.txt:4)".
std::string item_subject(const LoaderFunctions& functions, std::int64_t index);

/// The source of an item, unknown also if it cannot be told.
data::Source source_of(const LoaderFunctions& functions, std::int64_t index);

}  // namespace reel::detail
