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
  Work (*make)(const reel::BatchOptions& options);
  Work (*by_hand)();  ///< the same training step, batched by hand
  double share;       ///< of its speed, the goal
};

inline constexpr int sentence_count = 64;
/// The workloads that gain from groups, DyNet's among them. The tagger's sizes are those of its dynet-benchmark, the others'
/// are of that order.
/// Source: Neubig, Goldberg and Dyer, On-the-fly operation batching in dynamic computation graphs (2017).
std::vector<ExampleWorkload> grouped_workloads();
/// Parts of it: taggers and translation; a parser, chains and a lattice.
std::vector<ExampleWorkload> sentence_workloads();
std::vector<ExampleWorkload> parser_workloads();
ExampleWorkload lattice_workload();

/// A net of any width, and a training step of some of its examples.
struct SizedWorkload {
  std::string name;
  Work (*make)(std::int64_t width, std::size_t examples, const reel::BatchOptions& options);
};
std::vector<SizedWorkload> sized_workloads();

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
