#pragma once

#include <algorithm>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include <reel/reel.h>

#include "training.h"

/// \file
/// Shared by the language models of the samples: texts as ids of characters, their options, and their results.

namespace samples {

/// The options, given on the command line, of a model of a text's characters.
struct TextOptions : RunOptions {
  std::string text;
  std::int64_t steps = 64;
  double dropout = 0, clip = 1, temperature = 0.8;
  std::int64_t warm_up = 100;
  int sample = 300;
  bool bf16 = false;
};
/// Adds `--text`, `--steps`, whose text of `--help` is given, `--dropout`, `--clip`, `--warm-up`, `--bf16`, `--sample`,
/// `--temperature`, and the options of `add_common_options`.
void add_text_options(CommandLine& line, TextOptions& options, const char* steps);

/// The bytes that a model knows; a byte's id is its index among them in ascending order.
class Characters {
 public:
  /// The bytes that occur in a text.
  explicit Characters(std::string_view text);
  /// The bytes that `words()` of a saved model lists.
  static Characters from_words(const std::string& words);
  /// All bytes as decimal numbers.
  std::string words() const;
  /// The number of bytes.
  std::int64_t size() const { return std::ssize(bytes_); }
  /// The byte with an id.
  char operator[](std::int64_t id) const { return static_cast<char>(bytes_[static_cast<std::size_t>(id)]); }
  /// The ids (characters) of a text. Throws: std::runtime_error for a byte that the model does not know.
  reel::Tensor ids(std::string_view text) const;

 private:
  Characters() = default;
  std::vector<int> bytes_;  // by id
};

/// The texts of a run as ids (characters).
struct Texts {
  Characters characters;
  reel::Tensor learnt, held_back;  ///< the first nine tenths of `--text`, and the rest
  reel::Tensor test;               ///< `--test`; undefined without it
};
/// Reads `--text`, or makes up sentences of a small grammar without it, and `--test`. `file`: what `load` gave, whose
/// characters hold. Throws: std::runtime_error for a text that is empty or too short for `smallest` characters to learn.
Texts read_texts(const TextOptions& options, reel::io::Contents& file, std::int64_t smallest);

/// Segments (steps + 1) of a text that is read in `--batch` parallel streams: a batch of them continues the batch
/// before, stream by stream, and shares a character with it.
inline auto segments_in_order(const reel::Tensor& text, const TextOptions& options) {
  std::int64_t streams = options.batch, steps = options.steps, length = text.size(0) / streams;
  return reel::data::transformed(std::views::iota(std::int64_t{0}, streams * ((length - 1) / steps)),
                                 [=](std::int64_t i) {
                                   std::int64_t start = i % streams * length + i / streams * steps;
                                   return reel::slice(text, 0, start, start + steps + 1);
                                 });
}

/// Segments (steps + 1) of a text that begin anywhere, as many as cover the text once; others in each epoch.
inline auto random_segments(const reel::Tensor& text, const TextOptions& options) {
  std::int64_t steps = options.steps, starts = text.size(0) - steps;
  return reel::data::transformed(std::views::iota(std::int64_t{0}, std::max<std::int64_t>(text.size(0) / steps, 1)),
                                 [=](std::int64_t, reel::Generator& generator) {
                                   reel::IntegerOptions random{.generator = &generator};
                                   auto start = reel::randint(0, starts, {}, random).item<std::int64_t>();
                                   return reel::slice(text, 0, start, start + steps + 1);
                                 });
}

/// A schedule of the learning rate that rises for `--warm-up` steps and falls along a cosine; `steps`: of the run.
reel::optim::Schedule warm_cosine(const TextOptions& options, std::int64_t steps);

/// Draws an id from softmax(logits / temperature), logits (V).
std::int64_t draw(const reel::Tensor& logits, double temperature);

/// Prints the losses in nats per character, as a table and, of the text that was held back, as the last line.
void print_losses(const Texts& texts, double held_back, double test);

}  // namespace samples
