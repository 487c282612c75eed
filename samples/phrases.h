#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <reel/data.h>

#include "made_up.h"
#include "training.h"

namespace samples {

/// The number of sentiments, from very negative to very positive.
constexpr std::int64_t sentiments = 5;

/// A labelled phrase of a sentence.
struct Phrase {
  std::vector<std::int64_t> words;  ///< the ids of its words, in order
  std::int64_t label;               ///< in [0, sentiments)
  bool is_sentence;                 ///< whether it is the whole sentence
};

/// The phrases of trees in which every node is labelled, sentences last of theirs; `all`: false for sentences alone.
std::vector<Phrase> phrases_of(const std::vector<reel::data::LabelledTree>& trees,
                               const reel::data::Vocabulary& vocabulary, bool all);

/// Trees of five sentiments that the options name, in lower case; 600 made-up ones without `--train`.
Sets<reel::data::LabelledTree> read_sentiment_trees(const RunOptions& options);

}  // namespace samples
