#pragma once

#include <string>
#include <vector>

#include "workloads.h"

namespace reel_bench {

/// The seed of the workloads' random data and parameters.
inline constexpr std::uint64_t examples_seed = 2017;

/// A training step written for one example, called for each of a minibatch by `batch_map` with the given options.
struct ExampleWorkload {
  std::string name;
  int examples;  ///< in a minibatch
  Work (*make)(const reel::BatchOptions& options);
};

// DyNet's workloads. The tagger's sizes are those of its dynet-benchmark, the others' are of that order.
// Source: Neubig, Goldberg and Dyer, On-the-fly operation batching in dynamic computation graphs (2017).

inline constexpr int sentence_count = 64;
/// A BiLSTM over words, each an embedding beside a BiLSTM over its characters; a class for each word.
Work char_tagger(const reel::BatchOptions& options);
/// A BiLSTM over a sentence, and an LSTM that attends to it and writes another.
Work attention(const reel::BatchOptions& options);
/// A parser of shifts and reductions: which one is next, is read from the net's scores of the stack's top.
Work arc_standard(const reel::BatchOptions& options);
/// Chains of 5 to 60 layers, each one of four.
Work random_chains(const reel::BatchOptions& options);

/// The workloads that gain from groups.
std::vector<ExampleWorkload> grouped_workloads();

inline constexpr int large_examples = 4;
/// The training step of `mlp`, on examples of 64 rows each.
Work mlp_examples(const reel::BatchOptions& options);
/// The training step of `cnn`, on examples of 64 images each.
Work cnn_examples(const reel::BatchOptions& options);
/// lstm_steps steps of an LSTM in a loop, on examples of 32 sequences each: 512 inputs and states.
Work lstm_examples(const reel::BatchOptions& options);
inline constexpr int unshared_examples = 256, unshared_ops = 100;
/// leaky_relu of a vector, again and again, with a slope of each example.
Work unshared(const reel::BatchOptions& options);
/// One tree of the Tree-LSTM at a time.
Work single_trees(const reel::BatchOptions& options);

}  // namespace reel_bench
