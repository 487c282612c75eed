#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <reel/data/source.h>
#include <reel/detail/active_note.h>
#include <reel/detail/immovable.h>

namespace reel::debug {

/// The scope that `note` opens. Lives on the stack only.
class [[nodiscard]] Note : private detail::ActiveNote, detail::Immovable {
 public:
  /// A value of a note: a number, a text, or where data was read from.
  using Value = std::variant<std::int64_t, double, std::string, data::Source, std::vector<data::Source>>;

  /// Opens the scope: see `note`.
  Note(const char* key, Value value);
  /// Closes the scope.
  ~Note();
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

 private:
  Value value_;
};

/// `auto note = debug::note("t", t);`: while the scope lives, errors of this thread's ops, anomalies and recordings say
/// "t = 31". Scopes nest: "epoch = 2, t = 31". An example of `batch_map` has the notes that were active where it was
/// started, and its own. The text is only made when it is shown. `key` must outlive the scope, as a literal does.
inline Note note(const char* key, std::integral auto value) { return {key, static_cast<std::int64_t>(value)}; }
/// `auto note = debug::note("rate", rate);`: while the scope lives, errors of this thread's ops, anomalies and
/// recordings say "rate = 0.1". `key` must outlive the scope, as a literal does.
inline Note note(const char* key, std::floating_point auto value) { return {key, static_cast<double>(value)}; }
/// `auto note = debug::note("phase", "dev");`: while the scope lives, errors of this thread's ops, anomalies and
/// recordings say "phase = dev". `key` must outlive the scope, as a literal does.
inline Note note(const char* key, std::string value) { return {key, std::move(value)}; }
/// `auto note = debug::note("example", source);`: while the scope lives, errors of this thread's ops, anomalies and
/// recordings say from which line of a file the example was read: "example = tweets.tsv:45". `key` must outlive the
/// scope, as a literal does.
inline Note note(const char* key, data::Source source) { return {key, std::move(source)}; }
/// `auto note = debug::note("examples", loader.sources());`: while the scope lives, errors of this thread's ops,
/// anomalies and recordings say from which lines of files a batch was read: "examples = tweets.tsv:45, tweets.tsv:9".
/// `key` must outlive the scope, as a literal does.
inline Note note(const char* key, std::vector<data::Source> sources) { return {key, std::move(sources)}; }

}  // namespace reel::debug
