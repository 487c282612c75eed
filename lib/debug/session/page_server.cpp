#include "page_server.h"

#include <chrono>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <reel/error.h>
#include <reel/io/safetensors.h>

#include "../../core/modules/module.h"
#include "../../core/op_error.h"
#include "../../core/printable.h"
#include "../../core/threads/waiting.h"

namespace reel::debug {

namespace {

constexpr const char* session_name = "debug::Session";
constexpr std::chrono::seconds most_wait{2};
constexpr std::chrono::milliseconds between_interruptions{100};
constexpr std::size_t most_pending = 64;
constexpr const char* busy = R"({"state":"busy"})";
constexpr const char* ended = R"({"state":"ended"})";

// 128 bits from the system's source.
std::string random_token() {
  std::random_device source;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", source());
  return token;
}

// Takes as long for each wrong text, so that a token cannot be found letter by letter.
bool are_equal(std::string_view text, std::string_view token) {
  if (text.size() != token.size()) return false;
  int difference = 0;
  for (std::size_t i = 0; i < token.size(); ++i) difference |= text[i] ^ token[i];
  return difference == 0;
}

// "data" of "/TOKEN/data".
std::string_view behind_token(std::string_view path) {
  std::size_t end = path.find('/', 1);
  return end == std::string_view::npos ? std::string_view() : path.substr(end + 1);
}

// A page of another site, whose name the attacker lets point to 127.0.0.1, would send its own name.
bool is_local(std::string_view host) {
  std::string_view name = host.substr(0, host.rfind(':'));
  return name == "127.0.0.1" || name == "localhost";
}

}  // namespace

PageServer::PageServer(int port, Location where) : token_(random_token()) {
  if (port < 0 || port > 65535)
    detail::fail<Error>(session_name, where, ".port is {}; it must be 0, for any free one, to 65535", port);
  table_ = &detail::open_module<detail::ServeTable, io::FileError>(session_name, where);
  detail::RequestHandler handler{
      this,
      [](void* object, std::string_view method, std::string_view path) noexcept {
        return static_cast<PageServer*>(object)->admit(method, path);
      },
      [](void* object, const detail::ServedRequest& request, detail::ByteSink body, const char*& type) noexcept {
        try {
          PageAnswer answer = static_cast<PageServer*>(object)->answer_of(request);
          type = answer.type;
          return body.append(body.object, answer.text.data(), answer.text.size()) ? answer.status : 500;
        } catch (...) {  // without memory
          return 500;
        }
      }};
  detail::ModuleMessage message;
  server_ = table_->open(port, handler, message);
  if (!server_) detail::fail<Error>(session_name, where, "{}", detail::printable(message.text));
  address_ = fmt::format("http://127.0.0.1:{}/{}/", port, token_);
}

PageServer::~PageServer() {
  end();
  table_->close(server_);
}

int PageServer::admit(std::string_view method, std::string_view path) const noexcept {
  if (!path.starts_with('/') || !are_equal(path.substr(1, path.find('/', 1) - 1), token_)) return 404;
  std::string_view what = behind_token(path);
  return method == (what.empty() || what == "logs" ? "GET" : "POST") ? 200 : 405;
}

PageAnswer PageServer::answer_of(const detail::ServedRequest& request) {
  if (!is_local(request.host)) return {404, "text/plain", "There is no such page.\n"};
  return wait_for_program({std::string(behind_token(request.path)), std::string(request.body)});
}

PageAnswer PageServer::wait_for_program(PageRequest request) {
  std::unique_lock lock(mutex_);
  if (ended_) return {410, "application/json", ended};
  if (pending_.size() >= most_pending) return {503, "application/json", busy};
  // A command is carried out once the program comes to its next op.
  bool may_be_late = request.what == "command" || request.what == "watch";
  auto pending = std::make_shared<Pending>(Pending{std::move(request)});
  pending_.push_back(pending);
  waiting_.fetch_add(1, std::memory_order_relaxed);
  arrived_.notify_one();
  answered_.wait_for(lock, most_wait, [&] { return pending->done || ended_; });
  if (pending->done) return std::move(pending->answer);
  if (ended_) return {410, "application/json", ended};
  pending->abandoned = !may_be_late;
  return {may_be_late ? 202 : 503, "application/json", busy};
}

void PageServer::answer_front(std::unique_lock<std::mutex>& lock, const Answer& answer) {
  std::shared_ptr<Pending> next = std::move(pending_.front());
  pending_.pop_front();
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  if (next->abandoned) return;
  lock.unlock();
  PageAnswer found;
  try {
    found = answer(next->request);
  } catch (const Error& error) {
    found = {400, "text/plain", error.what()};
  } catch (const std::exception& error) {  // of a filter of the program's, or for want of memory
    found = {500, "text/plain", error.what()};
  }
  lock.lock();
  next->answer = std::move(found);
  next->done = true;
  answered_.notify_all();
}

void PageServer::answer_all(const Answer& answer) {
  std::unique_lock lock(mutex_);
  while (!pending_.empty()) answer_front(lock, answer);
}

void PageServer::answer_next(const Answer& answer) {
  std::unique_lock lock(mutex_);
  // A signal does not end the wait.
  while (!arrived_.wait_for(lock, between_interruptions, [&] { return !pending_.empty(); }))
    if (auto* interrupt = detail::throw_if_interrupted.load()) interrupt();
  answer_front(lock, answer);
}

void PageServer::end() noexcept {
  std::lock_guard lock(mutex_);
  ended_ = true;
  answered_.notify_all();
}

}  // namespace reel::debug
