#include <reel/dist/group.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <reel/no_record.h>
#include <reel/ops.h>

#include "../core/foreign_memory.h"
#include "../core/op_error.h"
#include "../core/storage.h"
#include "../ops/if_needed.h"
#include "device_collectives.h"
#include "mpi.h"
#include "shared_memory.h"
#include "signals.h"

namespace reel::dist {

using namespace detail;

namespace {

// The largest number of elements of one transfer.
constexpr std::int64_t most_at_once = INT_MAX / 2;

// Each launcher sets one of these; without one, to start MPI takes half a second and a helper process.
bool started_by_launcher() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"})
    if (std::getenv(name)) return true;
  return false;
}

bool is_running() {
  int initialised = 0, finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  return initialised && !finalised;
}

void finalise() {
  if (is_running()) MPI_Finalize();
}

// Throws: Error with MPI's own sentence.
void check(const char* function, int code, Location where) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail<Error>(function, where, "MPI says: {}", std::string_view(text, static_cast<std::size_t>(length)));
}

// The sums that have begun in shared memory. All that waits for anything lets them proceed, since other ranks wait for
// this one's part of them.
std::vector<std::shared_ptr<SharedMemory>>& sums_in_progress() {
  static std::vector<std::shared_ptr<SharedMemory>> all;
  return all;
}

void proceed_with_sums() {
  std::erase_if(sums_in_progress(), [](const std::shared_ptr<SharedMemory>& memory) { return memory->proceed(); });
}

// Waits until `complete` returns true. Where a signal waits for a step of all ranks that does not come, since one of them
// is gone, this process ends: mpirun has sent it.
template <class Complete>
void wait_until(Complete complete) {
  using Clock = std::chrono::steady_clock;
  constexpr int tests_between_looks = 1000;
  constexpr std::chrono::seconds patience(2);
  std::optional<Clock::time_point> held_since;
  for (int tests = 1; !complete(); ++tests) {
    proceed_with_sums();
    if (tests % tests_between_looks != 0) continue;
    std::array<bool, 3> held = held_signals();
    if (!held[0] && !held[1] && !held[2]) continue;
    if (!held_since) held_since = Clock::now();
    if (Clock::now() - *held_since > patience) std::_Exit(128 + end_signals()[held[0] ? 0 : held[1] ? 1 : 2]);
  }
}

bool test(const char* function, std::span<MPI_Request> requests, Location where) {
  int complete = 0;
  check(function, MPI_Testall(static_cast<int>(requests.size()), requests.data(), &complete, MPI_STATUSES_IGNORE),
        where);
  return complete != 0;
}

void wait_for(const char* function, std::vector<MPI_Request> requests, Location where) {
  wait_until([&] { return test(function, requests, where); });
}

MPI_Datatype type_of(const char* function, DType dtype, Location where) {
  switch (dtype) {
    case DType::f32: return MPI_FLOAT;
    case DType::f64: return MPI_DOUBLE;
    case DType::i32: return MPI_INT32_T;
    case DType::i64: return MPI_INT64_T;
    case DType::u8: return MPI_UINT8_T;
    case DType::i8: return MPI_INT8_T;
    case DType::i16: return MPI_INT16_T;
    default: fail<DTypeError>(function, where, "{} cannot be reduced over ranks; convert it first", name_of(dtype));
  }
}

MPI_Op op_of(Reduction reduction) {
  return reduction == Reduction::sum ? MPI_SUM : reduction == Reduction::min ? MPI_MIN : MPI_MAX;
}

void check_contiguous(const char* function, const Tensor& x, Location where) {
  if (!x.body(where).contiguous)
    fail<ShapeError>(function, where, "{} is not contiguous and would be overwritten in part; pass a copy",
                     describe(x));
}

// The elements of a contiguous tensor on the CPU, which are marked as overwritten.
char* overwritten(Tensor& x, Location where) {
  x.body().storage->overwritten(where);
  return static_cast<char*>(x.body().data);
}

// Starts to reduce a contiguous tensor on the CPU.
std::vector<MPI_Request> start(MPI_Comm communicator, Tensor& x, MPI_Datatype type, MPI_Op op, Location where) {
  std::vector<MPI_Request> requests;
  char* bytes = overwritten(x, where);
  auto element = static_cast<std::int64_t>(size_of(x.dtype()));
  for (std::int64_t begin = 0; begin < x.numel(); begin += most_at_once) {
    requests.push_back(MPI_REQUEST_NULL);
    auto count = static_cast<int>(std::min(most_at_once, x.numel() - begin));
    check("all_reduce",
          MPI_Iallreduce(MPI_IN_PLACE, bytes + begin * element, count, type, op, communicator, &requests.back()),
          where);
  }
  return requests;
}

// A row of a tensor as an MPI type, so that counts are of rows.
class RowType {
 public:
  explicit RowType(std::int64_t bytes) {
    MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &type_);
    MPI_Type_commit(&type_);
  }
  ~RowType() { MPI_Type_free(&type_); }
  RowType(const RowType&) = delete;
  RowType& operator=(const RowType&) = delete;
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_;
};

std::int64_t row_bytes(const char* function, const Tensor& x, Location where) {
  if (x.rank() == 0) fail<ShapeError>(function, where, "{} has no rows to exchange; give it an axis", describe(x));
  std::int64_t bytes = static_cast<std::int64_t>(size_of(x.dtype()));
  for (int axis = 1; axis < x.rank(); ++axis) bytes *= x.size(axis);
  if (bytes > INT_MAX) fail<ShapeError>(function, where, "a row of {} has more than 2 GiB", describe(x));
  return bytes;
}

// Counts and where the rows of each rank start, in MPI's integers. Throws: ShapeError for more than they can hold.
struct Layout {
  std::vector<int> counts, starts;
  std::int64_t rows = 0;

  Layout(const char* function, const std::vector<std::int64_t>& all, Location where) {
    for (std::int64_t count : all) {
      starts.push_back(static_cast<int>(rows));
      rows += count;
      if (rows > INT_MAX) fail<ShapeError>(function, where, "there are {} rows or more, and at most 2³¹ − 1", rows);
      counts.push_back(static_cast<int>(count));
    }
  }
};

Tensor with_rows(const Tensor& like, std::int64_t rows) {
  Shape shape = like.shape();
  shape[0] = rows;
  return zeros(shape, {.dtype = like.dtype(), .device = cpu});
}

}  // namespace

struct Group::State {
  MPI_Comm communicator = MPI_COMM_NULL;  // null: one process
  int rank = 0, size = 1;
  int exceptions = std::uncaught_exceptions();
  std::vector<std::weak_ptr<SharedMemory>> shared;  // of the tensors that reduction_buffer has made
  std::unique_ptr<DeviceCollectives> on_devices;
  bool looked_for_devices = false;

  ~State() {
    if (size > 1 && std::uncaught_exceptions() > exceptions && is_running())
      end_all("an exception has ended this rank, and with it all others", 1);
    on_devices.reset();
    if (communicator != MPI_COMM_NULL && is_running()) MPI_Comm_free(&communicator);
  }
  [[noreturn]] void end_all(const std::string& sentence, int status) const {
    std::fflush(stdout);
    std::fprintf(stderr, "rank %d of %d: %s\n", rank, size, sentence.c_str());
    std::fflush(stderr);
    if (size > 1 && is_running()) MPI_Abort(MPI_COMM_WORLD, status);
    std::_Exit(status);
  }
  // NCCL's functions for a tensor's device; null: through the CPU.
  DeviceCollectives* devices(const Tensor& x, Location where) {
    if (x.device() == cpu) return nullptr;
    if (!looked_for_devices) {
      looked_for_devices = true;
      on_devices = open_device_collectives(rank, size, [&](void* bytes, std::size_t count) {
        check("dist::Group", MPI_Bcast(bytes, static_cast<int>(count), MPI_BYTE, 0, communicator), where);
      });
    }
    return on_devices.get();
  }
  // The memory that a tensor fills; null if it has memory of its own.
  std::shared_ptr<SharedMemory> shared_by(const Tensor& x) const {
    for (const std::weak_ptr<SharedMemory>& one : shared)
      if (std::shared_ptr<SharedMemory> memory = one.lock();
          memory && memory->own() == x.body().data &&
          memory->bytes() == static_cast<std::size_t>(x.numel()) * size_of(x.dtype()))
        return memory;
    return nullptr;
  }
};

struct PendingReduction::State {
  std::vector<MPI_Request> requests;
  std::shared_ptr<SharedMemory> shared;  // null: MPI adds
  MPI_Comm communicator = MPI_COMM_NULL;
  Tensor reduced;  // kept until it is complete

  bool test() {
    if (!shared) return dist::test("dist::Group", requests, {});
    if (shared->proceed()) return true;
    // MPI moves data of other reductions only while it is called, and yields the processor.
    int arrived = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator, &arrived, MPI_STATUS_IGNORE);
    return false;
  }
};

bool PendingReduction::test() {
  if (state_ && state_->test()) state_.reset();
  return !state_;
}

void PendingReduction::wait() {
  wait_until([&] { return test(); });
}

Group::Group(Location where) {
  // One state for all handles: while `run` holds one, an exception can propagate to it.
  static std::weak_ptr<State> world;
  state_ = world.lock();
  if (state_) return;
  world = state_ = std::make_shared<State>();
  int initialised = 0, finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  if (finalised) fail<Error>("dist::Group", where, "MPI is finalised already; make groups before the program ends");
  if (!initialised) {
    if (!started_by_launcher()) return;
    int provided = 0;
    check("dist::Group", MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), where);
    std::atexit(finalise);
  }
  check("dist::Group", MPI_Comm_dup(MPI_COMM_WORLD, &state_->communicator), where);
  MPI_Comm_rank(state_->communicator, &state_->rank);
  MPI_Comm_size(state_->communicator, &state_->size);
}

int Group::rank() const { return state_->rank; }
int Group::size() const { return state_->size; }
void Group::abort(const std::string& sentence, int status) const { state_->end_all(sentence, status); }

void Group::barrier() const {
  if (size() == 1) return;
  MPI_Request request;
  check("barrier", MPI_Ibarrier(state_->communicator, &request), {});
  wait_for("barrier", std::vector{request}, {});
}

void Group::broadcast(Tensor& x, int root, Location where) const {
  if (root < 0 || root >= size()) fail<Error>("broadcast", where, "there is no rank {} among {}", root, size());
  check_contiguous("broadcast", x, where);
  if (size() == 1) return;
  NoRecord pause;
  if (DeviceCollectives* devices = state_->devices(x, where)) return devices->broadcast(x, root);
  if (x.device() != cpu) {
    Tensor copied = to(x, cpu);
    broadcast(copied, root, where);
    copy_(Destination(x, where), copied);
    return;
  }
  char* bytes = overwritten(x, where);
  std::int64_t count = x.numel() * static_cast<std::int64_t>(size_of(x.dtype()));
  for (std::int64_t begin = 0; begin < count; begin += most_at_once) {
    MPI_Request request;
    check("broadcast",
          MPI_Ibcast(bytes + begin, static_cast<int>(std::min(most_at_once, count - begin)), MPI_BYTE, root,
                     state_->communicator, &request),
          where);
    wait_for("broadcast", std::vector{request}, where);
  }
}

void Group::broadcast(std::string& text, int root, Location where) const {
  Tensor length = tensor({std::ssize(text)});
  broadcast(length, root, where);
  text.resize(static_cast<std::size_t>(length.item<std::int64_t>()));
  if (text.empty()) return;
  Tensor bytes = tensor(std::vector<unsigned char>(text.begin(), text.end()));
  broadcast(bytes, root, where);
  std::vector<unsigned char> read = bytes.to_vector<unsigned char>();
  text.assign(read.begin(), read.end());
}

void Group::all_reduce(Tensor& x, Reduction reduction, Location where) const {
  check_contiguous("all_reduce", x, where);
  NoRecord pause;
  if (x.dtype() == DType::f16 || x.dtype() == DType::bf16) {
    Tensor exact = to(x, DType::f32);
    all_reduce(exact, reduction, where);
    copy_(Destination(x, where), to(exact, x.dtype()));
    return;
  }
  MPI_Datatype type = type_of("all_reduce", x.dtype(), where);
  if (size() == 1) return;
  if (DeviceCollectives* devices = state_->devices(x, where); devices && reduction == Reduction::sum)
    return devices->all_reduce(x);
  if (x.device() != cpu) {
    Tensor copied = to(x, cpu);
    all_reduce(copied, reduction, where);
    copy_(Destination(x, where), copied);
    return;
  }
  wait_for("all_reduce", start(state_->communicator, x, type, op_of(reduction), where), where);
}

PendingReduction Group::start_all_reduce(Tensor& x, Location where) const {
  check_contiguous("start_all_reduce", x, where);
  MPI_Datatype type = type_of("start_all_reduce", x.dtype(), where);
  PendingReduction pending;
  if (size() == 1) return pending;
  if (x.device() != cpu) {
    // NCCL's run in the device's order; through the CPU nothing can be computed meanwhile.
    all_reduce(x, Reduction::sum, where);
    return pending;
  }
  pending.state_ = std::make_shared<PendingReduction::State>();
  pending.state_->reduced = x;
  if (std::shared_ptr<SharedMemory> memory = state_->shared_by(x)) {
    overwritten(x, where);
    memory->begin(x.dtype());
    sums_in_progress().push_back(memory);
    pending.state_->communicator = state_->communicator;
    pending.state_->shared = std::move(memory);
  } else {
    pending.state_->requests = start(state_->communicator, x, type, MPI_SUM, where);
  }
  return pending;
}

Tensor Group::reduction_buffer(std::int64_t elements, DType dtype, Location where) const {
  if (elements < 0) fail<ShapeError>("reduction_buffer", where, "a buffer cannot have {} elements", elements);
  if (dtype != DType::f32 && dtype != DType::f64)
    fail<DTypeError>("reduction_buffer", where, "a buffer of {} cannot be reduced; choose f32 or f64", name_of(dtype));
  std::shared_ptr<SharedMemory> memory;
  if (size() > 1)
    memory = SharedMemory::make(state_->communicator, static_cast<std::size_t>(elements) * size_of(dtype));
  if (!memory) return zeros({elements}, {.dtype = dtype, .device = cpu});
  std::erase_if(state_->shared, [](const std::weak_ptr<SharedMemory>& one) { return one.expired(); });
  state_->shared.push_back(memory);
  auto owner = std::make_unique<std::shared_ptr<SharedMemory>>(memory);
  ForeignMemory foreign{.data = memory->own(), .bytes = memory->bytes(), .owner = owner.get()};
  foreign.release = [](void* held) {
    std::unique_ptr<std::shared_ptr<SharedMemory>>(static_cast<std::shared_ptr<SharedMemory>*>(held));
  };
  Tensor buffer = adopt_memory(foreign, memory->own(), {elements}, {1}, dtype, "reduction_buffer", where);
  static_cast<void>(owner.release());  // the tensor's
  return buffer;
}

Tensor Group::all_gatherv(const Arg& x) const {
  Location where = x.location();
  const Tensor& given = tensor_of("all_gatherv", x);
  std::int64_t bytes = row_bytes("all_gatherv", given, where);
  NoRecord pause;
  Tensor own = contiguous_if_needed(to(given, cpu));
  if (size() == 1) return to(copy(own), given.device());
  std::vector<std::int64_t> counts(static_cast<std::size_t>(size()));
  std::int64_t rows = own.size(0);
  MPI_Request request;
  check("all_gatherv",
        MPI_Iallgather(&rows, 1, MPI_INT64_T, counts.data(), 1, MPI_INT64_T, state_->communicator, &request), where);
  wait_for("all_gatherv", std::vector{request}, where);
  Layout layout("all_gatherv", counts, where);
  Tensor all = with_rows(own, layout.rows);
  if (bytes == 0) return to(all, given.device());
  RowType type(bytes);
  check("all_gatherv",
        MPI_Iallgatherv(own.body().data, static_cast<int>(rows), type.get(), all.body().data, layout.counts.data(),
                        layout.starts.data(), type.get(), state_->communicator, &request),
        where);
  wait_for("all_gatherv", std::vector{request}, where);
  return to(all, given.device());
}

Exchanged Group::alltoallv(const Arg& x, const std::vector<std::int64_t>& counts) const {
  Location where = x.location();
  const Tensor& given = tensor_of("alltoallv", x);
  std::int64_t bytes = row_bytes("alltoallv", given, where);
  bool fits = std::ssize(counts) == size() && std::ranges::all_of(counts, [](std::int64_t n) { return n >= 0; });
  if (!fits || std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) != given.size(0))
    fail<ShapeError>("alltoallv", where, "the {} counts are not the rows of {} for each of {} ranks", counts.size(),
                     describe(given), size());
  NoRecord pause;
  Tensor own = contiguous_if_needed(to(given, cpu));
  if (size() == 1) return {to(copy(own), given.device()), counts};
  Exchanged received;
  received.counts.resize(counts.size());
  MPI_Request request;
  check("alltoallv",
        MPI_Ialltoall(counts.data(), 1, MPI_INT64_T, received.counts.data(), 1, MPI_INT64_T, state_->communicator,
                      &request),
        where);
  wait_for("alltoallv", std::vector{request}, where);
  Layout sends("alltoallv", counts, where), receives("alltoallv", received.counts, where);
  received.rows = with_rows(own, receives.rows);
  if (bytes > 0) {
    RowType type(bytes);
    check(
        "alltoallv",
        MPI_Ialltoallv(own.body().data, sends.counts.data(), sends.starts.data(), type.get(), received.rows.body().data,
                       receives.counts.data(), receives.starts.data(), type.get(), state_->communicator, &request),
        where);
    wait_for("alltoallv", std::vector{request}, where);
  }
  received.rows = to(received.rows, given.device());
  return received;
}

}  // namespace reel::dist
