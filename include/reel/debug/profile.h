#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <reel/location.h>

namespace reel::debug {

/// The key by which a profile groups calls into rows.
enum class ProfileBy : std::uint8_t { op, line, module };

/// One row of a profile: all calls of an op, of a line, or within a module.
struct ProfileRow {
  std::string name;                ///< the op, "file:line", or the path of the module
  std::int64_t calls = 0;          ///< forward calls
  std::int64_t forward = 0;        ///< nanoseconds of forward calls
  std::int64_t backward = 0;       ///< nanoseconds of their gradient functions, with the ops that these run
  std::size_t bytes = 0;           ///< bytes of the results that forward calls allocated
  std::size_t backward_bytes = 0;  ///< bytes of the results that ops within the gradient functions allocated
};

/// How long the profiled thread has waited.
struct ProfileWait {
  std::string reason;         ///< what it has waited for: "data::Loader", "other threads of a loop"
  std::int64_t count = 0;     ///< how often
  std::int64_t duration = 0;  ///< nanoseconds
};

/// Options of `Profile`.
struct ProfileOptions {
  /// Whether each op and each gradient is a range of NVTX, too, under which NVIDIA's Nsight Systems shows what it
  /// starts on a GPU: "matmul at model.cpp:31 in encoder". Default false.
  bool nvtx = false;
};

/// A scope that measures every op of this thread while it lives: time and bytes by op, line and module, forward and
/// backward, and the waiting for other threads and for a GPU. Calls that `batch_map` delays are measured as the group
/// that runs them; in a profile that an example opens, each of its calls with the time that it waits. The time of a GPU's ops is that of starting them.
class Profile : detail::Immovable {
 public:
  /// Begins to measure. Throws: DeviceError for `.nvtx` where the CUDA backend cannot be loaded; a GPU is not needed.
  explicit Profile(const ProfileOptions& options = {}, Location where = Location::here());
  /// Ends the scope.
  ~Profile();

  /// Ends measuring; the results stay.
  void stop();
  /// The rows, most time first.
  std::vector<ProfileRow> rows(ProfileBy by) const;
  /// The waiting by reasons, most time first: for batches of a `data::Loader`, a save of `train::Checkpoint`, the other
  /// threads of an op's loop, and a GPU. Waiting within an op is also in the op's time.
  std::vector<ProfileWait> waits() const;
  /// Nanoseconds from the beginning until `stop`, or until now.
  std::int64_t duration() const;
  /// The most bytes of tensors that this thread had at a time since it began, as memory_statistics() says at the end.
  std::size_t peak_bytes() const;
  /// Writes all calls as a trace, a slice each, forward calls linked with their gradients: in Perfetto's format, or,
  /// for a name that ends in `.json`, in Chrome's. Both open in ui.perfetto.dev.
  /// Throws: FileError if the file cannot be written.
  void trace(const std::string& file, Location where = Location::here()) const;
  /// Writes a flame graph as SVG: modules, lines and ops, as wide as their time.
  /// Throws: FileError if the file cannot be written.
  void flame_graph(const std::string& file, Location where = Location::here()) const;

 private:
  class Collector;
  std::unique_ptr<Collector> collector_;
};

/// The rows of a profile as a table, with shares of the measured time, the time that no op took, and waiting.
std::string to_string(const Profile& profile, ProfileBy by = ProfileBy::op);

}  // namespace reel::debug
