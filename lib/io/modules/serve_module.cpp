#include <fcntl.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <reel/detail/immovable.h>

#include "serve_table.h"

namespace reel::detail {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t most_connections = 64;
constexpr std::size_t most_line_bytes = 1 << 10, most_header_bytes = 16 << 10, most_body_bytes = 64 << 10;
constexpr std::size_t most_discarded_bytes = 256 << 10;
// An answer may be megabytes for a forwarded port, and only the client with the token gets one.
constexpr std::chrono::seconds most_to_ask{5}, most_to_answer{30};
constexpr std::chrono::milliseconds most_wait_at_end{200}, pause_without_descriptors{50};

// The server's threads must not run the program's signal handlers.
class SignalsBlocked : Immovable {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &mask_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &mask_, nullptr); }

 private:
  sigset_t mask_ = {};
};

bool append_to(void* object, const void* bytes, std::size_t count) noexcept {
  try {
    static_cast<std::string*>(object)->append(static_cast<const char*>(bytes), count);
    return true;
  } catch (...) {
    return false;
  }
}

// One request and its answer.
struct Connection : std::enable_shared_from_this<Connection> {
  Connection(OpenServer& server, tcp::socket accepted);
  void close();
  void limit_time(std::chrono::seconds most);
  void read_line();
  void check_line(std::string_view line);
  void read_request();
  void ask_program();
  void send(unsigned status, const char* type, std::string body);
  void discard_rest();

  OpenServer& server;
  tcp::socket socket;
  asio::steady_timer timer;
  boost::beast::flat_buffer buffer{most_line_bytes + most_header_bytes};
  http::request_parser<http::string_body> parser;
  http::response<http::string_body> response;
  std::size_t discarded_bytes = 0;
  bool is_admitted = false;  // from the moment when the token was shown until the answer is sent
};

}  // namespace

// Everything but `close` and the work of `workers` runs on the thread of `context`.
struct OpenServer {
  OpenServer(int port, RequestHandler handler);
  void run() noexcept;
  void accept_next();
  void add(tcp::socket socket);
  bool close_oldest_unadmitted();
  void close();

  const RequestHandler handler;
  asio::io_context context{1};
  asio::thread_pool workers{4};  // wait for the program's answers
  tcp::acceptor acceptor{context};
  asio::steady_timer pause{context};
  std::vector<std::shared_ptr<Connection>> connections;  // the oldest first
  bool is_ending = false;
  std::future<void> ended;
};

OpenServer::OpenServer(int port, RequestHandler handler) : handler(handler) {
  acceptor.open(tcp::v4());
  fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  acceptor.set_option(tcp::acceptor::reuse_address(true));
  acceptor.bind(tcp::endpoint(asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port)));
  acceptor.listen();
  accept_next();
  ended = std::async(std::launch::async, [this] { run(); });
}

void OpenServer::run() noexcept {
  for (;;) try {
      context.run();
      return;
    } catch (const std::exception&) {  // Without memory a connection is left to its time limit.
    }
}

void OpenServer::accept_next() {
  acceptor.async_accept([this](error_code error, tcp::socket socket) {
    if (is_ending) return;
    // Without a free descriptor a retry would spin.
    if (error && !close_oldest_unadmitted()) {
      pause.expires_after(pause_without_descriptors);
      return pause.async_wait([this](error_code) { accept_next(); });
    }
    accept_next();
    if (!error) add(std::move(socket));
  });
}

void OpenServer::add(tcp::socket socket) {
  fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
  if (connections.size() >= most_connections && !close_oldest_unadmitted()) return;
  connections.push_back(std::make_shared<Connection>(*this, std::move(socket)));
  connections.back()->limit_time(most_to_ask);
  connections.back()->read_line();
}

bool OpenServer::close_oldest_unadmitted() {
  auto oldest = std::find_if(connections.begin(), connections.end(), [](const auto& one) { return !one->is_admitted; });
  if (oldest == connections.end()) return false;
  std::shared_ptr<Connection>(*oldest)->close();
  return true;
}

// Answers that are on their way may arrive, but no client is waited for.
void OpenServer::close() {
  workers.join();
  asio::post(context, [this] {
    is_ending = true;
    error_code ignored;
    static_cast<void>(acceptor.close(ignored));
    pause.cancel();
    while (close_oldest_unadmitted()) {
    }
  });
  if (ended.wait_for(most_wait_at_end) != std::future_status::ready) context.stop();
  ended.get();
}

namespace {

Connection::Connection(OpenServer& server, tcp::socket accepted)
    : server(server), socket(std::move(accepted)), timer(server.context) {
  parser.header_limit(most_header_bytes);
  parser.body_limit(most_body_bytes);
}

void Connection::close() {
  error_code ignored;
  static_cast<void>(socket.close(ignored));
  timer.cancel();
  is_admitted = false;
  std::erase_if(server.connections, [this](const auto& one) { return one.get() == this; });
}

void Connection::limit_time(std::chrono::seconds most) {
  timer.expires_after(most);
  timer.async_wait([self = shared_from_this()](error_code error) {
    if (!error) self->close();
  });
}

// Beast looks at a request's line once all headers have come, if the line comes in pieces.
void Connection::read_line() {
  auto read = [this, self = shared_from_this()](error_code error, std::size_t count) {
    if (error) return close();
    buffer.commit(count);
    std::string_view text(static_cast<const char*>(buffer.data().data()), buffer.size());
    std::size_t end = text.find("\r\n");
    if (end == std::string_view::npos && text.size() < most_line_bytes) return read_line();
    check_line(end == std::string_view::npos ? std::string_view() : text.substr(0, end));
  };
  socket.async_read_some(buffer.prepare(most_line_bytes - buffer.size()), std::move(read));
}

void Connection::check_line(std::string_view line) {
  std::string_view method = line.substr(0, line.find(' '));
  std::string_view path = line.substr(std::min(method.size() + 1, line.size()));
  int status = server.handler.admit(server.handler.object, method, path.substr(0, path.find(' ')));
  if (status != 200) return send(static_cast<unsigned>(status), "text/plain", "There is no such page.\n");
  is_admitted = true;
  read_request();
}

void Connection::read_request() {
  http::async_read(socket, buffer, parser, [this, self = shared_from_this()](error_code error, std::size_t) {
    if (error == http::error::body_limit) return send(413, "text/plain", "The body is too long.\n");
    if (error) return send(400, "text/plain", "This is no request.\n");
    for (http::field field : {http::field::transfer_encoding, http::field::content_encoding})
      if (parser.get().count(field) > 0) return send(415, "text/plain", "The body is encoded.\n");
    limit_time(most_to_answer);
    ask_program();
  });
}

void Connection::ask_program() {
  // The guard keeps the server's thread from ending before it has the answer.
  auto ask = [this, self = shared_from_this(), guard = asio::make_work_guard(server.context)] {
    try {
      auto text = [](boost::beast::string_view word) { return std::string_view(word.data(), word.size()); };
      const auto& request = parser.get();
      std::string body;
      const char* type = "text/plain";
      int status = server.handler.handle(
          server.handler.object,
          {text(request.method_string()), text(request.target()), text(request[http::field::host]), request.body()},
          {&body, append_to}, type);
      asio::post(server.context, [this, self, status, type, body = std::move(body)]() mutable {
        send(static_cast<unsigned>(status), type, std::move(body));
      });
    } catch (const std::bad_alloc&) {  // The connection is left to its time limit.
    }
  };
  asio::post(server.workers, std::move(ask));
}

void Connection::send(unsigned status, const char* type, std::string body) {
  response.result(status);
  response.set(http::field::content_type, type);
  response.set(http::field::cache_control, "no-store");
  response.set("Referrer-Policy", "no-referrer");
  response.set("X-Content-Type-Options", "nosniff");
  response.set(http::field::x_frame_options, "DENY");
  response.keep_alive(false);
  response.body() = std::move(body);
  response.prepare_payload();
  http::async_write(socket, response, [this, self = shared_from_this()](error_code error, std::size_t) {
    if (error || server.is_ending) return close();
    is_admitted = false;
    static_cast<void>(socket.shutdown(tcp::socket::shutdown_send, error));
    discard_rest();
  });
}

// A socket that is closed with bytes unread resets the connection, and the client would lose the answer.
void Connection::discard_rest() {
  buffer.clear();
  auto read = [this, self = shared_from_this()](error_code error, std::size_t count) {
    discarded_bytes += count;
    error || discarded_bytes > most_discarded_bytes ? close() : discard_rest();
  };
  socket.async_read_some(buffer.prepare(buffer.max_size()), std::move(read));
}

OpenServer* open_server(int& port, RequestHandler handler, ModuleMessage& message) noexcept {
  try {
    SignalsBlocked blocked;
    auto open = std::make_unique<OpenServer>(port, handler);
    port = open->acceptor.local_endpoint().port();
    return open.release();
  } catch (const std::exception& error) {
    std::snprintf(message.text, sizeof message.text, "port %d of 127.0.0.1 cannot be opened: %s", port, error.what());
    return nullptr;
  }
}

void close_server(OpenServer* server) noexcept {
  std::unique_ptr<OpenServer> closed(server);
  closed->close();
}

}  // namespace
}  // namespace reel::detail

extern "C" [[gnu::visibility("default")]] const void* reel_module_table(std::uint32_t version,
                                                                        std::size_t bytes) noexcept {
  using namespace reel::detail;
  static const ServeTable table{open_server, close_server};
  return table_if_compatible(table, version, bytes);
}
