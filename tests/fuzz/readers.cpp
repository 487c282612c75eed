#include "readers.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include <reel/data/conll.h>
#include <reel/data/csv.h>
#include <reel/data/idx.h>
#include <reel/data/trees.h>
#include <reel/reel.h>

#include <debug/profile/slices.h>
#include <debug/recorded_run/recording_summary.h>
#include <debug/report/op_columns.h>
#include <debug/report/run_json.h>
#include <logging/plot/event_reader.h>

#include "../debug/recording_of_records.h"
#include "allocation_watch.h"

using namespace reel;

namespace reel_fuzz {

namespace {

// A folder for the file that is read, in memory if the system has one there.
class MemoryFolder {
 public:
  MemoryFolder() {
    std::string name = std::filesystem::exists("/dev/shm") ? "/dev/shm/reel_fuzz_XXXXXX" : "/tmp/reel_fuzz_XXXXXX";
    if (!mkdtemp(name.data())) throw std::runtime_error("no folder for the input");
    path_ = name;
  }
  ~MemoryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;
  std::string file(const char* ending) const { return path_ + "/input" + ending; }

 private:
  std::string path_;
};

void put(const std::string& path, std::span<const unsigned char> bytes) {
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) throw std::runtime_error("cannot write " + path);
  ssize_t written = write(file, bytes.data(), bytes.size());
  close(file);
  if (written != static_cast<ssize_t>(bytes.size())) throw std::runtime_error("cannot write " + path);
}

// Reads the elements, too: they may be in a mapped file.
void use(const io::Contents& contents) {
  for (const NamedTensor& named : contents.tensors)
    if (named.tensor.numel() < 10'000) (void)(named.tensor == named.tensor);
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The file's bytes are the records of a segment, so that none is spent on the header of a recording.
debug::RecordedRun run_of(const std::string& path, std::string_view records) {
  std::ofstream(path, std::ios::binary) << reel_test::recording_with(records);
  return debug::RecordedRun::read(path);
}

void report_on(const std::string& path) {
  debug::RecordedRun run = run_of(path, bytes_of(path));
  debug::summarise_recording(path);
  debug::json_of(run, "run", {});
  to_string(
      debug::diff(run, run_of(path, bytes_of(path).substr(reel::debug::recording_header_bytes)), {.tolerance = 1}));
  debug::write_trace(debug::slices_of(run), run.program(), path + ".json", {});
  debug::write_trace(debug::slices_of(run), run.program(), path + ".trace", {});
}

// With room for few values and units.
void put_into_columns(const std::string& path) {
  debug::RecordedRun run = run_of(path, bytes_of(path));
  debug::PageTexts texts;
  debug::OpColumns columns(texts, 64);
  for (const debug::RecordedOp& op : run.ops()) columns.add(op);
  debug::Json members;
  columns.move_to(members);
  debug::updates_json(run.updates(), texts);
  debug::histograms_json(run);
}

// The commands are the lines behind the last NUL. They are no files' but the user's, who may write a regular expression
// that takes forever.
void debug_by_commands(const std::string& path) {
  std::string bytes = bytes_of(path), commands = bytes.substr(bytes.rfind('\0') + 1);
  debug::RecordedRun run = run_of(path, std::string_view(bytes).substr(0, bytes.size() - commands.size()));
  debug::Debugger debugger(run, {.output = [](std::string_view) {}});
  std::istringstream lines(commands);
  for (std::string line; std::getline(lines, line);)
    if (line.find("-n") == line.npos) {
      debugger.completions(line);
      debugger.execute(line);
    }
}

// An array and its copy in another layout.
constexpr std::size_t of_elements = 2;
// A std::string, or a node of a JSON document or a tree, for each character, in a vector that doubles its size.
constexpr std::size_t of_text = 256;
// Allocations of HDF5's own library are not limited.
constexpr std::size_t not_limited = 0;
// libFLAC believes the length of a block of metadata, which has 24 bits, and silence is any number of samples in a few bytes.
constexpr std::size_t of_flac = std::size_t{1} << 25, most_samples = 1 << 20;
// The buffer of a trace, which is written in pieces; a list of units has 4 bytes for each of at most 4,096.
constexpr std::size_t of_page = 1 << 21;
// The largest ratio of deflate.
constexpr std::size_t decompressed = 1032;
// libzip makes a list of as many members as an archive's end claims, at most 65,535 of 32 bytes, before it reads them.
constexpr std::size_t list_of_members = 1 << 21;

constexpr std::array all_readers{
    FuzzedReader{"safetensors", ".safetensors", [](const std::string& path) { use(io::load(path)); }, of_text},
    FuzzedReader{"index", ".safetensors.index.json", [](const std::string& path) { use(io::load(path)); }, of_text},
    FuzzedReader{"npy", ".npy",
                 [](const std::string& path) {
                   use({{{"x", io::load_npy(path, {.widen = true})}}, {}});
                 },
                 of_elements},
    FuzzedReader{"npz", ".npz",
                 [](const std::string& path) { use(io::load_npz(path, {.most_decompressed_bytes = 1 << 20})); },
                 of_elements* decompressed, list_of_members},
    FuzzedReader{"pytorch", ".pt", [](const std::string& path) { use(io::load_pytorch(path)); }, of_text,
                 list_of_members},
    FuzzedReader{"hdf5", ".h5", [](const std::string& path) { use(io::load_hdf5(path)); }, not_limited},
    FuzzedReader{"image", ".png",
                 [](const std::string& path) {
                   use({{{"x", io::read_image(path)}}, {}});
                 },
                 of_elements* decompressed},
    FuzzedReader{"audio", ".wav",
                 [](const std::string& path) {
                   use({{{"x", io::read_audio(path, {.most_samples = most_samples}).samples}}, {}});
                 },
                 of_elements, of_flac},
    FuzzedReader{"idx", ".idx",
                 [](const std::string& path) {
                   use({{{"x", data::read_idx(path)}}, {}});
                 },
                 of_elements},
    FuzzedReader{"csv", ".csv", [](const std::string& path) { data::read_csv(path); }, of_text},
    FuzzedReader{"conll", ".conll", [](const std::string& path) { data::read_conll(path); }, of_text},
    FuzzedReader{"trees", ".txt", [](const std::string& path) { data::read_trees(path); }, of_text},
    FuzzedReader{"lines", ".txt", [](const std::string& path) { data::read_lines(path); }, of_text},
    FuzzedReader{"event", ".tfevents",
                 [](const std::string& path) {
                   logging::read_events(
                       path, [](const logging::LoggedEvent&) {}, Location::here());
                 },
                 of_elements},
    FuzzedReader{"recording", ".reel", [](const std::string& path) { debug::RecordedRun::read(path); }, of_text},
    FuzzedReader{"report", ".reel", report_on, of_text, of_page},
    FuzzedReader{"columns", ".reel", put_into_columns, of_text, of_page},
    FuzzedReader{"debugger", ".reel", debug_by_commands, of_text, of_page},
};

}  // namespace

std::span<const FuzzedReader> readers() { return all_readers; }

void read_bytes(const FuzzedReader& reader, std::span<const unsigned char> bytes) {
  static const MemoryFolder folder;
  std::string path = folder.file(reader.ending);
  put(path, bytes);
  AllocationWatch watch;
  try {
    reader.read(path);
  } catch (const MemoryError&) {
    throw;
  } catch (const Error&) {
    // refused
  }
  bool is_gzip = bytes.size() > 1 && bytes[0] == 0x1f && bytes[1] == 0x8b;
  std::size_t most = reader.allocated_besides + bytes.size() * reader.allocated_per_byte * (is_gzip ? decompressed : 1);
  if (reader.allocated_per_byte > 0 && watch.largest() > most)
    throw std::runtime_error(fmt::format("{} bytes are allocated at once for a file of {}, more than {}",
                                         watch.largest(), bytes.size(), most));
}

}  // namespace reel_fuzz
