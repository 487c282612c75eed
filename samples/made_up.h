#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <reel/data.h>
#include <reel/random.h>
#include <reel/tensor.h>

namespace samples {

/// Phrases whose sentiment, from 0 to 4, follows from their words: "very" strengthens, "not" inverts, two phrases
/// average.
std::vector<reel::data::LabelledTree> made_up_trees(std::uint64_t seed, int count);

/// Expressions of lists as trees of two children, `((([max 2) 9) ])`, all different: the largest, the smallest and the
/// median of a list, rounded down, and its sum modulo 10, of two to five numbers from 0 to 9 or lists, which are nested
/// `depth` deep at most. A node's value is that of its expression, −1 of one that is not closed.
/// Source: Nangia and Bowman, ListOps: a diagnostic dataset for latent tree learning (NAACL 2018).
std::vector<reel::data::LabelledTree> made_up_lists(std::uint64_t seed, int count, int depth);

/// Sentences of made-up words, whose tags show in their endings, and for one ending in the word before.
std::vector<reel::data::Sentence> made_up_tweets(std::uint64_t seed, int count);

/// Images of digits, u8 (N, 28, 28), and their labels (N).
struct DigitImages {
  reel::Tensor images, labels;
};
/// Digits drawn with the seven segments of a clock, each of another place, size, slope and thickness, with noise.
DigitImages made_up_digits(std::uint64_t seed, int count);

/// Sentences in which verbs agree with their subjects.
std::string made_up_text(std::uint64_t seed);

/// A text, and what it is to become.
struct Example {
  std::string source, target;
};
/// A day from 1950 to 2049, in one of eight formats, and as 2026-11-23. Every tenth day is held back: it is drawn only if
/// that is asked for.
Example made_up_date(reel::Generator& generator, bool held_back);
/// 4 to 12 letters, and their reversal. Every tenth sum of their alphabetical places is held back: it is drawn only if that
/// is asked for.
Example made_up_reversal(reel::Generator& generator, bool held_back);

/// Features, and the class that they belong to.
struct Point {
  std::vector<float> x;
  std::int64_t y = 0;
};

/// Points around the centres of 16 clusters, each of whose classes, from 0 to `classes` - 1, are those of the largest of
/// linear functions of its own.
std::vector<Point> made_up_clusters(std::uint64_t seed, std::int64_t count, std::int64_t features,
                                    std::int64_t classes);

}  // namespace samples
