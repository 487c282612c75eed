#include "agreement.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <string_view>
#include <thread>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../core/context.h"
#include "../core/fail.h"

namespace reel::detail {

namespace {

// How long a rank that has to end waits for what others say, or for its launcher to end it.
constexpr std::chrono::seconds patience(2);

// A number that is equal for processes of one machine and one space of process numbers.
std::int64_t process_space() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  struct stat space {};
  if (boot.empty() || ::stat("/proc/self/ns/pid", &space) != 0) return 0;
  return static_cast<std::int64_t>(std::hash<std::string>()(boot + std::to_string(space.st_ino))) | 1;
}

}  // namespace

std::string Exchange::to_string() const {
  std::string text = op;
  if (dtype) text += fmt::format(" of {} {}", reel::to_string(shape), name_of(*dtype));
  if (root >= 0) text += fmt::format(" from rank {}", root);
  if (where.file) text += " at " + reel::to_string(where);
  return text;
}

std::int64_t Exchange::signature() const {
  std::array<std::int64_t, max_rank + 4> numbers{root, dtype ? static_cast<std::int64_t>(*dtype) : -1, shape.rank()};
  std::copy(shape.begin() + (any_rows ? 1 : 0), shape.end(), numbers.begin() + 3);
  std::hash<std::string_view> hash;
  std::string_view bytes(reinterpret_cast<const char*>(numbers.data()), sizeof numbers);
  return static_cast<std::int64_t>(hash(op) * 31 + hash(bytes));
}

Agreement::Agreement(Location where) {
  for (MPI_Comm* made : {&communicator_, &after_refusal_, &exchanges_})
    if (MPI_Comm_dup(MPI_COMM_WORLD, made) != MPI_SUCCESS)
      fail<Error>("dist::Group", where, "MPI cannot make a communicator");
  MPI_Comm_rank(communicator_, &rank_);
  MPI_Comm_size(communicator_, &size_);
  find_neighbours();
}

void Agreement::find_neighbours() {
  std::array<std::int64_t, 2> own{::getpid(), process_space()};
  std::vector<std::array<std::int64_t, 2>> all(static_cast<std::size_t>(size_));
  MPI_Allgather(own.data(), 2, MPI_INT64_T, all.data(), 2, MPI_INT64_T, communicator_);
  for (const auto& [process, space] : all) {
    bool neighbour = process != own[0] && space == own[1] && space != 0;
    // It stays the process that it is, also when the system gives its number to another one.
    int file = neighbour ? static_cast<int>(::syscall(SYS_pidfd_open, process, 0)) : -1;
    processes_.push_back({.fd = file, .events = POLLIN, .revents = 0});
  }
}

std::int64_t Agreement::begin(Exchange exchange) {
  if (!refusal_.empty()) fail<Error>(exchange.op, exchange.where, "{}", refusal_);
  exchange.where = context().call_site(exchange.where);
  std::int64_t signature = exchange.signature();
  Check& check = checks_.emplace_back(Check{exchange, {signature, ~signature}, MPI_REQUEST_NULL});
  MPI_Iallreduce(MPI_IN_PLACE, check.bounds.data(), 2, MPI_INT64_T, MPI_MAX, communicator_, &check.request);
  return ++begun_;
}

bool Agreement::reached(std::int64_t number) {
  for (int complete = 1; !checks_.empty(); checks_.pop_front()) {
    Check& first = checks_.front();
    MPI_Test(&first.request, &complete, MPI_STATUS_IGNORE);
    if (!complete) break;
    if (first.bounds[0] != ~first.bounds[1]) refuse(first.exchange);
  }
  return begun_ - std::ssize(checks_) >= number;
}

// All ranks stop at one exchange, the first on which they do not agree, and tell each other theirs.
void Agreement::refuse(const Exchange& own) {
  statements_.resize(static_cast<std::size_t>(size_));
  Statement mine{own.signature(), {}};
  own.to_string().copy(mine.text.data(), mine.text.size() - 1);
  MPI_Request request;
  MPI_Iallgather(&mine, sizeof mine, MPI_BYTE, statements_.data(), sizeof mine, MPI_BYTE, after_refusal_, &request);
  auto until = std::chrono::steady_clock::now() + patience;
  for (int complete = 0; !complete && std::chrono::steady_clock::now() < until;)
    MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
  auto other = std::ranges::find_if(
      statements_, [&](const Statement& one) { return one.text[0] != 0 && one.signature != mine.signature; });
  std::string others = "another rank has begun something else";
  if (other != statements_.end())
    others = fmt::format("rank {} has come to {}", other - statements_.begin(), other->text.data());
  refusal_ = fmt::format(
      "{}, and this rank, {}, to {}; all ranks have to call the same functions in one order, with equal shapes and "
      "dtypes",
      others, rank_, own.to_string());
  fail<Error>(own.op, own.where, "{}", refusal_);
}

void Agreement::watch(const char* op, Location where) {
  if (::poll(processes_.data(), processes_.size(), 0) <= 0) return;
  if (is_abort_announced()) std::this_thread::sleep_for(patience);
  auto gone = std::ranges::find_if(processes_, [](const pollfd& process) { return process.revents != 0; });
  refusal_ = fmt::format("the process of rank {} has ended, and this rank, {}, waits for it", gone - processes_.begin(),
                         rank_);
  fail<Error>(op, where, "{}", refusal_);
}

bool Agreement::is_abort_announced() const {
  int announced = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, 0, communicator_, &announced, MPI_STATUS_IGNORE);
  return announced != 0;
}

bool Agreement::announce_abort() const {
  MPI_Request ignored;
  for (int other = 0; other < size_; ++other)
    if (other != rank_) MPI_Isend(nullptr, 0, MPI_BYTE, other, 0, communicator_, &ignored);
  if (rank_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the first rank need not wait
  return is_abort_announced();
}

}  // namespace reel::detail
