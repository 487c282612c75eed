#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <reel/data.h>

namespace samples {

/// Phrases whose sentiment, from 0 to 4, follows from their words: "very" strengthens, "not" inverts, two phrases
/// average.
std::vector<reel::data::LabelledTree> made_up_trees(std::uint64_t seed, int count);

/// Sentences of made-up words, whose tags show in their endings, and for one ending in the word before.
std::vector<reel::data::Sentence> made_up_tweets(std::uint64_t seed, int count);

/// Sentences in which verbs agree with their subjects.
std::string made_up_text(std::uint64_t seed);

}  // namespace samples
