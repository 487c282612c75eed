#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <reel/debug/recorded_run.h>
#include <reel/io/safetensors.h>

#include "../../core/context.h"
#include "../../core/op_error.h"
#include "../../core/printable.h"
#include "../../core/storage.h"
#include "../../io/file.h"
#include "../recording/format.h"
#include "../recording/zero_units.h"
#include "recording_summary.h"

namespace reel::debug {

using namespace detail;

namespace {

constexpr const char* read_name = "RecordedRun::read";
// The largest number in a segment that Recording writes: the sum of two does not overflow.
constexpr std::int64_t most_number = std::numeric_limits<std::int64_t>::max() / 2;
constexpr std::uint64_t least_segment_bytes = std::uint64_t{1} << 16, most_segment_bytes = std::uint64_t{1} << 24;

// Reads one recording into a run.
class RecordingReader {
 public:
  RecordingReader(const std::string& path, Location where)
      : path_(path), where_(where), file_(read_name, path, where) {}

  RecordedRun read() {
    for (std::uint64_t segment : segments()) read_segment(segment);
    add_running();
    std::ranges::stable_sort(ops_, {}, &RecordedOp::id);
    // The oldest are the ones that are overwritten.
    std::uint64_t dropped = ops_.empty() ? 0 : ops_.front().id - 1;
    for (RecordedOp& op : ops_)
      if (run_.ops().empty() || run_.ops().back().id != op.id) run_.add(std::move(op));
    for (const Name& name : names_) run_.rename(name.id, name.text);
    run_.describe(program_, is_complete_, dropped);
    return std::move(run_);
  }

  RecordingSummary summarise() {
    RecordingSummary summary;
    counted_ = &summary;
    for (std::uint64_t segment : segments()) {
      read_segment(segment);
      names_.clear();
      run_ = RecordedRun();
    }
    add_running();
    summary.dropped = first_ == 0 ? 0 : first_ - 1;
    summary.program = printable(program_);
    summary.is_complete = is_complete_;
    return summary;
  }

 private:
  struct Name {
    TensorId id;
    std::string_view text;
  };

  void read_running(std::string_view header) {
    RecordReader running(header.substr(running_op_offset));
    has_running_ = running.fixed<std::uint64_t>() == 1 && !is_complete_;
    running_line_ = std::max(0, running.fixed<std::int32_t>());
    std::size_t op = running.byte(), file = running.byte();
    running_op_ = running.take(std::min(op, most_running_op_bytes));
    running_file_ = header.substr(running_op_offset + running_op_file, file);
  }
  // Adds the op in which the process died.
  void add_running() {
    if (!has_running_) return;
    RecordedOp op;
    op.id = last_id_ + 1;
    op.step = last_step_;
    op.op = run_.intern(running_op_);
    op.file = run_.intern(running_file_);
    op.line = running_line_;
    op.error = run_.intern("the op began but did not end: its process died in it, or still runs");
    add(std::move(op));
  }

  // The offsets of the segments in the order in which they were begun.
  std::vector<std::uint64_t> segments() {
    read_header();
    struct Segment {
      std::uint64_t sequence, offset;
    };
    std::vector<Segment> segments;
    std::uint64_t offset = recording_header_bytes;
    for (std::uint64_t i = 0; i < segment_count_ && offset + segment_header_bytes <= file_.size();
         ++i, offset += segment_bytes_)
      if (std::uint64_t sequence = word(offset); sequence != 0) segments.push_back({sequence, offset});
    std::ranges::sort(segments, {}, &Segment::sequence);
    std::vector<std::uint64_t> offsets;
    for (const Segment& segment : segments) offsets.push_back(segment.offset);
    return offsets;
  }

  [[noreturn]] void refuse(std::string_view reason) const {
    fail<io::FileError>(read_name, where_, "'{}' {}", printable(path_), reason);
  }
  std::uint64_t word(std::uint64_t offset) const {
    std::uint64_t value = 0;
    file_.read(offset, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  std::string bytes(std::uint64_t offset, std::uint64_t count) const {
    std::string text(count, '\0');
    file_.read(offset, std::as_writable_bytes(std::span(text)));
    return text;
  }

  void read_header() {
    if (file_.size() < recording_header_bytes) refuse("is no recording: it is shorter than the header of one");
    std::string text = bytes(0, recording_header_bytes);
    RecordReader header(text);
    if (header.take(recording_magic.size()) != recording_magic) refuse("is no recording: it does not begin as one");
    segment_bytes_ = header.fixed<std::uint64_t>();
    segment_count_ = header.fixed<std::uint64_t>();
    is_complete_ = header.fixed<std::uint64_t>() == 1;
    program_ = header.take(header.fixed<std::uint32_t>());
    read_running(text);
    if (header.failed() || segment_bytes_ < least_segment_bytes || segment_bytes_ > most_segment_bytes)
      refuse("is a damaged recording: its header is not that of one");
  }

  void read_segment(std::uint64_t offset) {
    std::uint64_t count = word(offset + 8);
    std::uint64_t most = std::min(segment_bytes_, file_.size() - offset) - segment_header_bytes;
    // The rest of a record beyond the end of a file that was cut is lost.
    std::string text = bytes(offset + segment_header_bytes, std::min(count, most));
    RecordReader records(text);
    texts_.assign(1, std::string_view());
    while (!records.empty()) {
      std::uint8_t type = records.byte();
      RecordReader record(records.take(records.varint()));
      if (records.failed()) {
        if (count > most) return;
        refuse("is a damaged recording: a record goes beyond its segment");
      }
      read_record(static_cast<RecordType>(type), record);
    }
  }

  void read_record(RecordType type, RecordReader& record) {
    switch (type) {
      case RecordType::text: texts_.push_back(run_.intern(record.take(record.size()))); break;
      case RecordType::op: add(read_op(record)); break;
      case RecordType::update: {
        std::int64_t step = number(record);
        std::string_view name = text(record);
        auto weight = record.fixed<double>(), gradient = record.fixed<double>(), change = record.fixed<double>();
        run_.add_update({step, name, weight, gradient, change});
        break;
      }
      case RecordType::name: {
        std::uint64_t op = record.varint();
        auto output = static_cast<std::uint32_t>(record.varint());
        names_.push_back({{op, output}, text(record)});
        break;
      }
      case RecordType::source: {
        std::string_view file = text(record);
        if (!counted_) run_.add_source(file, record.take(record.size()));
        break;
      }
    }
    if (record.failed()) refuse("is a damaged recording: a record is shorter than what it holds");
  }

  void add(RecordedOp op) {
    if (op.id > last_id_) {
      last_id_ = op.id;
      last_step_ = op.step;
    }
    if (!counted_) {
      ops_.push_back(std::move(op));
      return;
    }
    ++counted_->ops;
    ++counted_->kinds[name_of(op.kind)];
    first_ = first_ == 0 ? op.id : std::min(first_, op.id);
    counted_->steps = std::max(counted_->steps, op.step + 1);
    counted_->errors += !op.error.empty();
    for (const RecordedTensor& output : op.outputs)
      counted_->anomalies += output.has_statistics && output.statistics.nans + output.statistics.infinities > 0;
  }

  std::string_view text(RecordReader& record) {
    std::uint64_t index = record.varint();
    if (index >= texts_.size()) refuse("is a damaged recording: a text that is not there is named");
    return texts_[index];
  }

  std::int64_t number(RecordReader& record, std::int64_t most = most_number) const {
    std::uint64_t number = record.varint();
    if (number > static_cast<std::uint64_t>(most)) refuse("is a damaged recording: a number is too large");
    return static_cast<std::int64_t>(number);
  }

  RecordedOp read_op(RecordReader& record) {
    RecordedOp op;
    op.id = static_cast<std::uint64_t>(number(record));
    std::uint64_t kind = record.varint();
    if (op.id == 0 || kind > 3) refuse("is a damaged recording: an op has a kind or an id that does not exist");
    op.kind = static_cast<OpKind>(kind);
    for (std::string_view* one : {&op.op, &op.file, &op.module, &op.notes, &op.error}) *one = text(record);
    op.line = static_cast<int>(number(record, std::numeric_limits<int>::max()));
    for (std::int64_t* one : {&op.step, &op.start, &op.duration}) *one = number(record);
    op.thread = static_cast<std::uint32_t>(record.varint());
    op.forward = record.varint();
    std::uint64_t inputs = record.varint();
    if (inputs > record.size() / 2) refuse("is a damaged recording: an op has more inputs than its record holds");
    op.inputs.reserve(inputs);
    for (std::uint64_t i = 0; i < inputs; ++i) {
      std::uint64_t id = record.varint();
      op.inputs.push_back({id, static_cast<std::uint32_t>(record.varint())});
    }
    std::uint64_t outputs = record.varint();
    if (outputs > record.size() / 5) refuse("is a damaged recording: an op has more outputs than its record holds");
    op.outputs.reserve(outputs);
    for (std::uint64_t i = 0; i < outputs; ++i) op.outputs.push_back(read_tensor(record));
    return op;
  }

  RecordedTensor read_tensor(RecordReader& record) {
    RecordedTensor tensor;
    std::uint8_t dtype = record.byte();
    if (dtype >= dtype_count) refuse("is a damaged recording: a dtype does not exist");
    tensor.dtype = static_cast<DType>(dtype);
    bool on_cpu = record.byte() == 0;
    std::uint64_t index = record.varint();
    if (index > 255) refuse("is a damaged recording: a device does not exist");
    tensor.device = on_cpu ? cpu : Device{Device::Type::cuda, static_cast<std::uint8_t>(index)};
    tensor.name = text(record);
    tensor.shape = read_shape(record);
    std::uint8_t flags = record.byte();
    tensor.has_statistics = flags & has_statistics_flag;
    if (tensor.has_statistics) {
      RecordedStatistics& statistics = tensor.statistics;
      for (double* number : {&statistics.min, &statistics.max, &statistics.mean, &statistics.norm})
        *number = record.fixed<double>();
      std::int64_t left = tensor.shape.numel();
      for (std::int64_t* count : {&statistics.nans, &statistics.infinities, &statistics.zeros}) {
        *count = static_cast<std::int64_t>(record.varint());
        if (*count < 0 || *count > left) refuse("is a damaged recording: a tensor has more elements than it has");
        left -= *count;
      }
    }
    if (flags & has_fingerprint_flag) tensor.fingerprint = record.fixed<std::uint64_t>();
    if (flags & has_values_flag) {
      std::string_view elements = record.take(record.varint());
      if (elements.size() != tensor.bytes()) refuse("is a damaged recording: values are not those of their shape");
      tensor.values = allocate(context(), {tensor.shape, tensor.dtype, cpu}, read_name, where_);
      elements.copy(tensor.values.body().as<char>(), elements.size());
    }
    if (flags & has_zero_units_flag) tensor.zero_units = read_units(record, tensor.shape);
    return tensor;
  }

  std::vector<std::int32_t> read_units(RecordReader& record, const Shape& shape) const {
    std::uint64_t count = record.varint();
    int axis = unit_axis(shape);
    auto units = axis < 0 ? 0 : static_cast<std::uint64_t>(shape[axis]);
    if (count > std::min(record.size(), units) || units > most_units)
      refuse("is a damaged recording: a tensor has more units that are zero than it has units");
    std::vector<std::int32_t> zero(count);
    std::uint64_t next = 0;  // the index after the last one
    for (std::int32_t& unit : zero) {
      std::uint64_t distance = record.varint();
      if (distance == 0 || distance > units - next) refuse("is a damaged recording: a unit does not exist");
      next += distance;
      unit = static_cast<std::int32_t>(next - 1);
    }
    return zero;
  }

  Shape read_shape(RecordReader& record) const {
    std::uint64_t rank = record.varint();
    if (rank > max_rank) refuse("is a damaged recording: a tensor has too many axes");
    Shape shape;
    std::int64_t numel = 1;
    for (std::uint64_t axis = 0; axis < rank; ++axis) {
      std::uint64_t size = record.varint();
      if (size > static_cast<std::uint64_t>(most_elements)) refuse("is a damaged recording: an axis is too long");
      shape.push_back(static_cast<std::int64_t>(size));
      if (size != 0 && numel > most_elements / static_cast<std::int64_t>(size))
        refuse("is a damaged recording: a tensor is too large");
      numel *= size == 0 ? 1 : static_cast<std::int64_t>(size);
    }
    return shape;
  }

  const std::string& path_;
  Location where_;
  io::Reader file_;
  std::uint64_t segment_bytes_ = 0, segment_count_ = 0;
  bool is_complete_ = false;
  std::string program_;
  RecordedRun run_;
  bool has_running_ = false;
  std::string running_op_, running_file_;
  std::int32_t running_line_ = 0;
  std::uint64_t last_id_ = 0;
  std::int64_t last_step_ = 0;
  std::vector<RecordedOp> ops_;
  RecordingSummary* counted_ = nullptr;  // counts ops in place of keeping them
  std::uint64_t first_ = 0;              // the smallest id of those that were counted
  std::vector<Name> names_;
  std::vector<std::string_view> texts_;
};

}  // namespace

RecordingSummary summarise_recording(const std::string& file, Location where) {
  return RecordingReader(file, where).summarise();
}

RecordedRun RecordedRun::read(const std::string& file, Location where) { return RecordingReader(file, where).read(); }

}  // namespace reel::debug
