#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <reel/detail/immovable.h>
#include <reel/logging/figure.h>
#include <reel/named_tensor.h>

namespace reel {
class Tape;
}

namespace reel::logging {

/// Options of a Writer.
struct WriterOptions {
  /// Whether TensorBoard's event files are written. Default true.
  bool events = true;
  /// Whether scalars are appended to `scalars.csv`, with the columns step, wall_time, run, tag and value. Default
  /// false.
  bool csv = false;
  /// Whether scalars, histograms, texts and hyper-parameters are appended to `log.jsonl`, one JSON object a line. NaN
  /// and ±∞, which JSON lacks, are the strings "NaN", "Infinity" and "-Infinity". Default false.
  bool json = false;
  /// The most seconds for which logged records wait in memory before a later call hands them to the system; 0: each call
  /// does, which takes microseconds. A process that is killed loses what waits. At least 0, default 1.
  double flush_seconds = 1;
  /// For a run that continues from a checkpoint: the first step that it makes again. Records of earlier runs for this step
  /// and later ones are no longer shown, as `Writer::purge` says. Default: none, all of it stays.
  std::optional<std::int64_t> purge_step = {};
};

/// A number with the name of the curve that it belongs to.
struct NamedScalar {
  std::string name;  ///< the name
  double value;      ///< the number
};

/// The value of a hyper-parameter: true or false, a number, or a text.
class HyperParameter {
 public:
  /// The kind of the value.
  enum class Kind : std::uint8_t { boolean, number, text };

  /// True or false, or a number of any type.
  template <class T>
    requires std::is_arithmetic_v<T>
  HyperParameter(T value)
      : kind_(std::is_same_v<T, bool> ? Kind::boolean : Kind::number), number_(static_cast<double>(value)) {}
  /// A text.
  HyperParameter(std::string text) : kind_(Kind::text), text_(std::move(text)) {}
  /// A text.
  HyperParameter(const char* text) : kind_(Kind::text), text_(text) {}

  /// The kind of the value.
  Kind kind() const { return kind_; }
  /// The number; 0 or 1 for false or true; meaningless for a text.
  double number() const { return number_; }
  /// The text; empty for the others.
  const std::string& text() const { return text_; }

 private:
  Kind kind_;
  double number_ = 0;
  std::string text_;
};

/// A hyper-parameter with its name.
struct NamedHyperParameter {
  std::string name;      ///< such as "learning_rate"
  HyperParameter value;  ///< its value in this run
};

/// Writes logs of a run to a folder: for TensorBoard, for `logging::plot`, and as CSV or JSON lines for other programs.
///
///     logging::Writer log("runs/first", {.csv = true});
///     for (int step = 0; step < 100; ++step) log.scalar("loss", 1.0 / (1 + step), step);
///     log.text("notes", "A *first* run.", 100);
///
/// Each Writer makes an event file of its own, so that a run that is started again in its folder continues the curves:
/// give `.purge_step` if it repeats steps. Files are valid at any moment: a process that is killed, even by SIGKILL,
/// leaves whole records but for the last, which readers skip. There is no other process, no thread and no network.
///
/// A tag names a curve: UTF-8 without control characters, not empty; parts before a `/` group curves. Times are those
/// of the call. All functions may be called by several threads.
///
/// A log that cannot be written, because the disk is full, say, is an error of the call that finds it, since a log that
/// ends without a word is worse. Records that could not be written wait, and the next call tries again.
/// Source: the formats are TensorFlow's event.proto, summary.proto and TFRecord.
class Writer : detail::Immovable {
 public:
  /// Opens the files in a folder, which is created if it does not exist.
  /// Throws: FileError if the folder cannot be created, or a file in it cannot be written or is a symbolic link; Error
  /// for options out of range.
  explicit Writer(const std::string& directory, const WriterOptions& options = {}, Location where = Location::here());
  /// Writes what waits and closes the files. Errors are ignored: call `flush` to see them.
  ~Writer();

  /// Logs a number. Event files hold it as f32, where numbers beyond ±3.4e38 become ±∞; the other files as f64. NaN and
  /// ±∞ are logged as such.
  /// Throws: Error for a tag that is not allowed; FileError if the log cannot be written.
  void scalar(std::string_view tag, double value, std::int64_t step, Location where = Location::here());
  /// Logs several numbers for one chart: `log.scalars("loss", {{"train", a}, {"validation", b}}, step)`. Each name is
  /// that of a sub-folder with an event file of its own, which TensorBoard shows as a run; each has the tag.
  /// Throws: Error for a tag that is not allowed, and for a name that is no name of a folder; FileError if the log
  /// cannot be written.
  void scalars(std::string_view tag, const std::vector<NamedScalar>& values, std::int64_t step,
               Location where = Location::here());
  /// Logs the distribution of the elements of a tensor of any dtype, on any device. Elements that are NaN or ±∞ belong
  /// to no bucket: if there are any, their number is logged as the scalar "TAG/not_finite".
  /// Throws: Error for a tag that is not allowed, and for an undefined tensor; FileError if the log cannot be written.
  void histogram(std::string_view tag, const Tensor& values, std::int64_t step, Location where = Location::here());
  /// Logs a text in Markdown, UTF-8.
  /// Throws: Error for a tag that is not allowed, and for a text that is not UTF-8; FileError if the log cannot be
  /// written.
  void text(std::string_view tag, std::string_view markdown, std::int64_t step, Location where = Location::here());
  /// Logs the hyper-parameters of a run and the metrics that runs are compared by, for TensorBoard's table of
  /// hyper-parameters; each metric is logged as a scalar under its name, too.
  /// Throws: Error for a name that is not allowed as a tag, or a text that is not UTF-8; FileError if the log cannot be
  /// written.
  void hyper_parameters(const std::vector<NamedHyperParameter>& parameters,
                        const std::vector<NamedScalar>& metrics = {}, std::int64_t step = 0,
                        Location where = Location::here());

  /// Logs a picture (C, H, W), or several (N, C, H, W) as one picture, a grid: with 1 channel (grey), 2 (grey and
  /// alpha), 3 (RGB) or 4 (RGB and alpha), of u8 in [0, 255], bool, or floating in [0, 1], beyond which values are cut
  /// off. It is stored as PNG.
  /// Throws: Error for a tag that is not allowed, and for an undefined tensor; ShapeError and DTypeError for a tensor
  /// that is no picture; FileError if the log cannot be written, or libreel_files.so is missing.
  void image(std::string_view tag, const Tensor& picture, std::int64_t step, Location where = Location::here());
  /// Logs curves, drawn as a picture of the size that the plot gives:
  ///
  ///     logging::Writer log("runs/figures");
  ///     log.figure("norms", {.title = "Gradient norms", .curves = {{"W", {}, {0.5, 0.25, 0.125}}}, .log_y = true}, 10);
  ///
  /// Throws: Error for a tag that is not allowed, sizes out of range, and a curve whose x and y differ in length;
  /// FileError if the log cannot be written, or libreel_figure.so or libreel_files.so is missing.
  void figure(std::string_view tag, const LinePlot& plot, std::int64_t step, Location where = Location::here());
  /// Logs a matrix, drawn as a picture whose colours are its values.
  /// Throws: Error for a tag that is not allowed, sizes out of range, undefined values and labels that do not fit;
  /// ShapeError unless the values are a matrix; FileError if the log cannot be written, or libreel_figure.so or
  /// libreel_files.so is missing.
  void figure(std::string_view tag, const HeatMap& map, std::int64_t step, Location where = Location::here());
  /// Logs vectors for TensorBoard's embedding projector, in place of those that have been logged under this tag.
  /// matrix: (N, D), of any dtype; labels: one for each row, or none; sprite: pictures (N, C, H, W) of the rows as
  /// `image` takes them, or undefined. The files are in the sub-folder "projector", listed in projector_config.pbtxt.
  /// Throws: Error for a tag that is not allowed, and for labels or pictures that do not fit; ShapeError unless the
  /// values are a matrix; FileError if a file cannot be read or written, or libreel_files.so is missing.
  void embedding(std::string_view tag, const Tensor& matrix, const std::vector<std::string>& labels = {},
                 const Tensor& sprite = {}, Location where = Location::here());
  /// Logs the graph of the entries that this thread's tapes have now: a node for each op, parameter and watched tensor,
  /// with shapes and the line that called the op. Names of parameters, such as `model.named_parameters()` gives them,
  /// are their nodes' names. A run has one graph: the last.
  /// Throws: TapeError for a tape of another thread, and for one without entries, as after its backward pass; FileError
  /// if the log cannot be written.
  void graph(const Tape& tape, const std::vector<NamedTensor>& names = {}, Location where = Location::here());

  /// Declares that the run continues at a step: what has been logged of this step and later ones, by this Writer or by
  /// earlier ones in the folder, is no longer shown; what earlier Writers have logged by `scalars` is shown until this
  /// one logs under its name. Hyper-parameters stay. The CSV and JSON files are rewritten without it.
  /// Throws: FileError if a file cannot be read or written.
  void purge(std::int64_t step, Location where = Location::here());
  /// Hands what waits to the system. Throws: FileError if it cannot be written.
  void flush(Location where = Location::here());
  /// The folder.
  const std::string& directory() const;

 private:
  class Files;
  std::unique_ptr<Files> files_;
};

}  // namespace reel::logging
