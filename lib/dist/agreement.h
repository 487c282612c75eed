#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>

#include <reel/dtype.h>
#include <reel/location.h>
#include <reel/shape.h>

#include "mpi.h"

namespace reel::detail {

/// A call in which all ranks take part: op, dtype, shape and root are equal on all of them.
struct Exchange {
  const char* op;
  Location where;
  std::optional<DType> dtype = {};  ///< none: no tensor is exchanged
  Shape shape = {};
  bool any_rows = false;  ///< whether the first size may differ from rank to rank
  int root = -1;          ///< −1: none

  /// The call and its line: "broadcast of (3,) f32 from rank 0 at train.cpp:12".
  std::string to_string() const;
  /// A hash of all that is equal on all ranks.
  std::int64_t signature() const;
};

/// Checks that all ranks begin equal exchanges in one order, and that none ends before the others, so that no rank waits
/// for what does not come or adds up unlike numbers.
class Agreement {
 public:
  /// To be called by all ranks; it lasts as long as the program, and nothing of MPI is freed. Throws: Error with MPI's
  /// sentence.
  explicit Agreement(Location where);

  /// Tells the other ranks what this one begins, without waiting, and returns the number of the exchange.
  /// Throws: Error after an exchange that ranks did not agree on.
  std::int64_t begin(Exchange exchange);
  /// True once all ranks have begun this exchange and those before it. Does not wait.
  /// Throws: Error if another rank has begun something else, or has come to the end of its program.
  bool reached(std::int64_t number);
  /// Looks for processes of this machine that have ended without a word. Throws: Error if there is one.
  void watch(const char* op, Location where);
  /// Keeps the other ranks from complaining about the end of this one, which has said why it ends all. Returns true if
  /// another one has said so before: Open MPI may hang where two end all at once.
  bool announce_abort() const;

  /// The ranks, for exchanges alone.
  MPI_Comm communicator() const { return exchanges_; }
  /// The number of this rank.
  int rank() const { return rank_; }
  /// The number of ranks.
  int size() const { return size_; }

 private:
  struct Check {
    Exchange exchange;
    std::array<std::int64_t, 2> bounds;  // the largest signature of all ranks, and the largest complement of one
    MPI_Request request;
  };
  struct Statement {
    std::int64_t signature;
    std::array<char, 504> text;
  };

  void find_neighbours();
  bool is_abort_announced() const;
  [[noreturn]] void refuse(const Exchange& own);

  // Each for collectives that all ranks begin in one order.
  MPI_Comm communicator_, after_refusal_, exchanges_;
  int rank_ = 0, size_ = 1;
  std::int64_t begun_ = 0;
  std::deque<Check> checks_;           // of exchanges that some rank may not have begun
  std::vector<Statement> statements_;  // kept while MPI may write there
  std::vector<pollfd> processes_;      // of each rank; −1 for this one and those that this machine does not have
  std::string refusal_;                // after a disagreement
};

}  // namespace reel::detail
