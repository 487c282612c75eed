#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <reel/named_tensor.h>
#include <reel/nn/packed.h>

namespace reel::data {

/// Options of Segments.
struct SegmentOptions {
  std::int64_t steps = 64;    ///< the most steps of a segment, at least 1: how far gradients flow back. Default 64
  std::int64_t streams = 32;  ///< the most segments of a batch, each of another sequence; at least 1, default 32
  /// How many steps the targets are ahead of the inputs: 1 for a language model; 0 (default): there are no targets.
  std::int64_t ahead = 0;
  bool shuffle = false;    ///< whether each epoch has a random order of the sequences; default false
  std::uint64_t seed = 0;  ///< of the orders; default 0
};

/// Segments of several sequences, which continue those of the batch before.
struct SegmentBatch {
  nn::Packed x;                             ///< the inputs: elements (N, …), a segment of at most `steps` for each id
  nn::Packed y;                             ///< the targets, `ahead` steps later in their sequences; undefined without
  std::vector<std::int64_t> ids = {};       ///< the index of the sequence that each segment belongs to
  std::vector<std::int64_t> starts = {};    ///< the index of each segment's first step in its sequence
  std::vector<std::int64_t> finished = {};  ///< the ids of those sequences that end with this batch
};

/// Long sequences, cut into segments for truncated back-propagation through time. Each of `streams` parallel streams
/// gives the segments of one sequence after another, in order; when a sequence ends, its stream continues with the next
/// one that no stream has taken. Sequences may have any lengths, so the last segment of each may be shorter, and
/// towards the end of an epoch batches may have fewer segments.
///
///     nn::CarriedStates carried;
///     data::Segments segments(sequences, {.steps = 4, .streams = 2});
///     for (const auto& batch : segments) {
///       auto result = lstm(batch.x, carried.of(batch.ids));
///       carried.keep(batch.ids, {result.h_n, result.c_n});
///       for (std::int64_t id : batch.finished) carried.reset(id);
///     }
///
/// Source: Williams and Peng, An efficient gradient-based algorithm for on-line training of recurrent network
/// trajectories (1990).
class Segments {
 public:
  /// Cuts sequences (T, …), whose shapes agree except for their lengths T. Sequences not longer than `ahead` are left
  /// out.
  /// Throws: Error for options out of range, and for an undefined sequence; ShapeError for one of rank 0.
  explicit Segments(std::vector<Tensor> sequences, const SegmentOptions& options = {},
                    Location where = Location::here());

  /// The end of an epoch.
  struct End {};
  /// Iterates over the batches of an epoch; there is one at a time.
  class Iterator {
   public:
    /// The batch. It is valid until the next one is asked for.
    SegmentBatch& operator*() const { return segments_->batch_; }
    /// The batch's members.
    SegmentBatch* operator->() const { return &segments_->batch_; }
    /// Goes on to the next batch.
    Iterator& operator++() {
      segments_->advance();
      return *this;
    }
    /// True at the end of the epoch.
    bool operator==(End) const { return segments_->batch_.ids.empty(); }

   private:
    friend class Segments;
    explicit Iterator(Segments& segments) : segments_(&segments) {}
    Segments* segments_;
  };
  /// Receives the first batch of the epoch, or of what remains of it after `break` or `load_state`.
  Iterator begin() {
    advance();
    return Iterator(*this);
  }
  /// The end of the epoch. When the iteration has come to it, the next epoch begins.
  End end() const { return {}; }

  /// The present epoch, from 0.
  std::int64_t epoch() const { return epoch_; }
  /// The number of batches that were received in the present epoch.
  std::int64_t position() const { return position_; }
  /// The number of steps of all sequences that have a target, or without targets of all; an epoch gives each once.
  std::int64_t steps() const;
  /// Goes to the beginning of an epoch. Throws: Error for a negative one.
  void start_epoch(std::int64_t epoch, Location where = Location::here());

  /// The seed, the epoch and the position of each stream: a few numbers, whatever the size of the data. States that are
  /// carried between batches are to be saved beside it.
  std::vector<NamedTensor> state(Location where = Location::here()) const;
  /// Continues from what `state()` gave: the next iteration gives the batches of the epoch that had not been received.
  /// Throws: Error for a state of other options or of other sequences, and for a name that is missing or unknown;
  /// ShapeError or DTypeError for a tensor that does not fit.
  void load_state(std::span<const NamedTensor> state, Location where = Location::here());
  /// Continues from what `state()` gave: the next iteration gives the batches of the epoch that had not been received.
  /// Throws: Error for a state of other options or of other sequences, and for a name that is missing or unknown;
  /// ShapeError or DTypeError for a tensor that does not fit.
  void load_state(const std::vector<NamedTensor>& state, Location where = Location::here()) {
    load_state(std::span<const NamedTensor>(state), where);
  }

 private:
  // The sequence that a stream is in, by its place in the epoch's order (−1: none), and the next step of it.
  struct Stream {
    std::int64_t place = -1, step = 0;
  };
  std::int64_t length(std::int64_t id) const;
  void advance();

  std::vector<Tensor> sequences_;
  SegmentOptions options_;
  std::int64_t epoch_ = 0, position_ = 0;
  std::int64_t next_ = 0;  // the place in the epoch's order of the first sequence that no stream has taken
  std::vector<Stream> streams_;
  SegmentBatch batch_;
};

/// A long sequence x (T, …) as `count` successive parts (⌊T / count⌋, …), views of x, for Segments of as many streams;
/// the remainder at the end is left out.
/// Throws: ShapeError unless T is at least `count`; Error for a count below 1.
std::vector<Tensor> parallel_parts(const Tensor& x, std::int64_t count, Location where = Location::here());

}  // namespace reel::data
