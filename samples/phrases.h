#pragma once

#include <cstdint>
#include <functional>
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

/// The words of a file of weights, from its metadata "words"; those of the training trees if the file has none.
reel::data::Vocabulary vocabulary_of(const std::vector<reel::data::LabelledTree>& training,
                                     const reel::io::Contents& file);

/// Prints the results on the test trees, if there are any, and in the last line those on the dev trees. `items`: what is
/// counted, "phrases"; `evaluate`: classifies the phrases of some trees.
void print_sentiment_results(
    const Sets<reel::data::LabelledTree>& sets, const std::string& items,
    const std::function<reel::train::ConfusionMatrix(const std::vector<reel::data::LabelledTree>&)>& evaluate);

}  // namespace samples
