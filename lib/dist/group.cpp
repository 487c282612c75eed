#include <reel/dist/group.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <string_view>
#include <thread>
#include <utility>

#include <reel/no_record.h>
#include <reel/ops.h>

#include "../core/fail.h"
#include "../core/foreign_memory.h"
#include "../core/storage.h"
#include "../ops/if_needed.h"
#include "agreement.h"
#include "device_collectives.h"
#include "mpi.h"
#include "shared_memory.h"

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

// Lasts from the first Group to the end of the program: where no Group is left, others may still wait for this rank.
// Null: this process alone.
std::unique_ptr<Agreement>& agreement() {
  static std::unique_ptr<Agreement> one;
  return one;
}

// Throws: Error with MPI's own sentence.
void check(const char* function, int code, Location where) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail<Error>(function, where, "MPI says: {}", std::string_view(text, static_cast<std::size_t>(length)));
}

int rank_of_this() { return agreement() ? agreement()->rank() : 0; }
int number_of_ranks() { return agreement() ? agreement()->size() : 1; }

[[noreturn]] void end_all(const std::string& sentence, int status) {
  std::fflush(stdout);
  std::fprintf(stderr, "rank %d of %d: %s\n", rank_of_this(), number_of_ranks(), sentence.c_str());
  std::fflush(stderr);
  if (number_of_ranks() > 1 && is_running()) {
    if (agreement()->announce_abort())
      std::this_thread::sleep_for(std::chrono::seconds(1));
    else
      MPI_Abort(MPI_COMM_WORLD, status);
  }
  std::_Exit(status);
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

template <class Complete>
void wait_until(const char* op, Location where, Complete complete) {
  constexpr int tests_between_looks = 1000;
  for (int tests = 1; !complete(); ++tests) {
    proceed_with_sums();
    if (tests % tests_between_looks == 0) agreement()->watch(op, where);
  }
}

// An exchange that this rank has begun, and the requests that move its elements.
struct Running {
  explicit Running(const Exchange& exchange)
      : op(exchange.op), where(exchange.where), number((run_delayed(context()), agreement()->begin(exchange))) {}

  bool test() {
    int complete = 0;
    bool agreed = agreement()->reached(number);
    if (failure == MPI_SUCCESS)
      failure = MPI_Testall(static_cast<int>(requests.size()), requests.data(), &complete, MPI_STATUSES_IGNORE);
    if (!agreed) return false;  // unlike exchanges make MPI fail, and what ranks disagree on says why
    check(op, failure, where);
    return complete != 0;
  }
  void wait() {
    wait_until(op, where, [&] { return test(); });
  }
  // Waits for a call that has returned this code and filled the newest request.
  void wait_for(int code) {
    check(op, code, where);
    wait();
  }
  MPI_Request* add() { return &requests.emplace_back(MPI_REQUEST_NULL); }

  const char* op;
  Location where;
  std::int64_t number;
  std::vector<MPI_Request> requests;
  int failure = MPI_SUCCESS;
};

// Ranks that wait for one which ends get an error, and time to say so.
void finalise() {
  if (!is_running()) return;
  constexpr std::chrono::microseconds pause(100);  // others may still compute for long
  try {
    Running end({"the end of the program", {}});
    for (; !end.test(); std::this_thread::sleep_for(pause)) {
      proceed_with_sums();
      agreement()->watch(end.op, end.where);
    }
  } catch (const std::exception& error) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    end_all(error.what(), 1);
  }
  MPI_Finalize();
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
    fail<ShapeError>(function, where, "{} is not contiguous; pass contiguous(x)", describe(x));
}

// The elements of a contiguous tensor on the CPU, which are marked as overwritten.
char* overwritten(Tensor& x, Location where) {
  x.body().storage->overwritten(where);
  return static_cast<char*>(x.body().data);
}

// Starts to reduce a contiguous tensor on the CPU.
void start(Running& running, MPI_Comm communicator, Tensor& x, MPI_Datatype type, MPI_Op op) {
  char* bytes = overwritten(x, running.where);
  auto element = static_cast<std::int64_t>(size_of(x.dtype()));
  for (std::int64_t begin = 0; begin < x.numel(); begin += most_at_once) {
    auto count = static_cast<int>(std::min(most_at_once, x.numel() - begin));
    check("all_reduce",
          MPI_Iallreduce(MPI_IN_PLACE, bytes + begin * element, count, type, op, communicator, running.add()),
          running.where);
  }
}

// A row of a tensor as an MPI type, so that counts are of rows.
class RowType : detail::Immovable {
 public:
  explicit RowType(std::int64_t bytes) {
    MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &type_);
    MPI_Type_commit(&type_);
  }
  ~RowType() { MPI_Type_free(&type_); }
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
  int exceptions = std::uncaught_exceptions();
  std::vector<std::weak_ptr<SharedMemory>> shared;  // of the tensors that reduction_buffer has made
  std::unique_ptr<DeviceCollectives> on_devices;
  bool looked_for_devices = false;

  ~State() {
    if (number_of_ranks() > 1 && std::uncaught_exceptions() > exceptions && is_running())
      end_all("an exception has ended this rank, and with it all others", 1);
  }
  // NCCL's functions for a tensor's device; null: through the CPU.
  DeviceCollectives* devices(const Tensor& x, Running& running) {
    if (x.device() == cpu) return nullptr;
    running.wait();  // until all ranks are here: what follows cannot be given up
    if (!looked_for_devices) {
      looked_for_devices = true;
      on_devices = open_device_collectives(rank_of_this(), number_of_ranks(), [&](void* bytes, std::size_t count) {
        check("dist::Group", MPI_Bcast(bytes, static_cast<int>(count), MPI_BYTE, 0, agreement()->communicator()),
              running.where);
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
  Running running;
  std::shared_ptr<SharedMemory> shared;  // null: MPI adds
  Tensor reduced;
  bool is_complete = false;

  ~State() {
    // Until it is complete, MPI writes there, at the end of the program, too.
    static auto& kept = *std::make_unique<std::vector<Tensor>>().release();
    if (!is_complete) kept.push_back(std::move(reduced));
  }
  bool test() {
    bool added = !shared || shared->proceed();
    if ((is_complete = running.test() && added)) return true;
    // MPI moves data of other reductions only while it is called, and yields the processor.
    int arrived = 0;
    if (shared) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, agreement()->communicator(), &arrived, MPI_STATUS_IGNORE);
    return false;
  }
};

bool PendingReduction::test() {
  if (state_ && state_->test()) state_.reset();
  return !state_;
}

void PendingReduction::wait() {
  if (state_) wait_until(state_->running.op, state_->running.where, [&] { return test(); });
}

Group::Group(Location where) {
  // One state for all handles: while `run` holds one, an exception can propagate to it.
  static std::weak_ptr<State> shared;
  state_ = shared.lock();
  if (state_) return;
  shared = state_ = std::make_shared<State>();
  int initialised = 0, finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  if (finalised) fail<Error>("dist::Group", where, "MPI is finalised already; make groups before the program ends");
  if (!initialised && !started_by_launcher()) return;
  if (!agreement()) {
    int provided = 0;
    sums_in_progress();  // exists longer than what is called at exit
    if (!initialised) {
      check("dist::Group", MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), where);
      // Unlike exchanges, which MPI refuses, are told of in a sentence.
      MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
      std::atexit(finalise);
    }
    agreement() = std::make_unique<Agreement>(where);
  }
}

int Group::rank() const { return rank_of_this(); }
int Group::size() const { return number_of_ranks(); }
void Group::abort(const std::string& sentence, int status) const { end_all(sentence, status); }

void Group::barrier(Location where) const {
  if (size() > 1) Running({"barrier", where}).wait();  // all ranks have come to it
}

void Group::broadcast(Tensor& x, int root, Location where) const {
  if (root < 0 || root >= size()) fail<Error>("broadcast", where, "there is no rank {} among {}", root, size());
  check_contiguous("broadcast", x, where);
  if (size() == 1) return;
  NoRecord pause;
  Running running({"broadcast", where, x.dtype(), x.shape(), false, root});
  if (DeviceCollectives* devices = state_->devices(x, running)) return devices->broadcast(x, root);
  Tensor copied = to_if_needed(x, cpu);
  char* bytes = overwritten(copied, where);
  std::int64_t count = x.numel() * static_cast<std::int64_t>(size_of(x.dtype()));
  for (std::int64_t begin = 0; begin < count; begin += most_at_once) {
    auto part = static_cast<int>(std::min(most_at_once, count - begin));
    running.wait_for(MPI_Ibcast(bytes + begin, part, MPI_BYTE, root, agreement()->communicator(), running.add()));
  }
  running.wait();
  if (x.device() != cpu) copy_(Destination(x, where), copied);
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
  bool is_half = x.dtype() == DType::f16 || x.dtype() == DType::bf16;
  MPI_Datatype type = type_of("all_reduce", is_half ? DType::f32 : x.dtype(), where);
  if (size() == 1) return;
  bool sums = reduction == Reduction::sum;
  const char* op = sums ? "all_reduce" : reduction == Reduction::min ? "all_reduce (min)" : "all_reduce (max)";
  Running running({op, where, x.dtype(), x.shape()});
  Tensor reduced = is_half ? to(x, DType::f32) : x;
  if (DeviceCollectives* devices = sums ? state_->devices(x, running) : nullptr) {
    devices->all_reduce(reduced);
  } else {
    reduced = to_if_needed(reduced, cpu);
    start(running, agreement()->communicator(), reduced, type, op_of(reduction));
    running.wait();
  }
  if (is_half || reduced.device() != x.device()) copy_(Destination(x, where), to(reduced, x.dtype()));
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
  std::shared_ptr<SharedMemory> memory = state_->shared_by(x);
  const char* op = memory ? "start_all_reduce in shared memory" : "start_all_reduce";
  pending.state_.reset(new PendingReduction::State{Running({op, where, x.dtype(), x.shape()}), memory, x});
  if (memory) {
    overwritten(x, where);
    memory->begin(x.dtype());
    sums_in_progress().push_back(std::move(memory));
  } else {
    start(pending.state_->running, agreement()->communicator(), x, type, MPI_SUM);
  }
  return pending;
}

Tensor Group::reduction_buffer(std::int64_t elements, DType dtype, Location where) const {
  if (elements < 0) fail<ShapeError>("reduction_buffer", where, "a buffer cannot have {} elements", elements);
  if (dtype != DType::f32 && dtype != DType::f64)
    fail<DTypeError>("reduction_buffer", where, "a buffer of {} cannot be reduced; choose f32 or f64", name_of(dtype));
  std::shared_ptr<SharedMemory> memory;
  if (size() > 1) {
    Running({"reduction_buffer", where, dtype, {elements}}).wait();
    memory = SharedMemory::make(agreement()->communicator(), static_cast<std::size_t>(elements) * size_of(dtype));
  }
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
  Running running({"all_gatherv", where, own.dtype(), own.shape(), true});
  running.wait_for(
      MPI_Iallgather(&rows, 1, MPI_INT64_T, counts.data(), 1, MPI_INT64_T, agreement()->communicator(), running.add()));
  Layout layout("all_gatherv", counts, where);
  Tensor all = with_rows(own, layout.rows);
  if (bytes == 0) return to(all, given.device());
  RowType type(bytes);
  running.wait_for(MPI_Iallgatherv(own.body().data, static_cast<int>(rows), type.get(), all.body().data,
                                   layout.counts.data(), layout.starts.data(), type.get(), agreement()->communicator(),
                                   running.add()));
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
  Running running({"alltoallv", where, own.dtype(), own.shape(), true});
  running.wait_for(MPI_Ialltoall(counts.data(), 1, MPI_INT64_T, received.counts.data(), 1, MPI_INT64_T,
                                 agreement()->communicator(), running.add()));
  Layout sends("alltoallv", counts, where), receives("alltoallv", received.counts, where);
  received.rows = with_rows(own, receives.rows);
  if (bytes > 0) {
    RowType type(bytes);
    running.wait_for(MPI_Ialltoallv(own.body().data, sends.counts.data(), sends.starts.data(), type.get(),
                                    received.rows.body().data, receives.counts.data(), receives.starts.data(),
                                    type.get(), agreement()->communicator(), running.add()));
  }
  received.rows = to(received.rows, given.device());
  return received;
}

}  // namespace reel::dist
