#pragma once

#include <string_view>

#include "../../core/modules/module_table.h"

namespace reel::detail {

/// A request of a browser.
struct ServedRequest {
  std::string_view method, path, host, body;  ///< "GET", "/TOKEN/data", "127.0.0.1:8080"
};

/// Answers requests, on threads of the server.
struct RequestHandler {
  void* object;
  /// Decides by a request's line alone, before more of it is read: 200, or the status with which it is refused.
  int (*admit)(void* object, std::string_view method, std::string_view path) noexcept;
  /// Appends the answer's body, and sets its MIME type to a text that is never freed. Returns the status, such as 200.
  int (*handle)(void* object, const ServedRequest& request, ByteSink body, const char*& type) noexcept;
};

/// A server that listens.
struct OpenServer;

/// The functions of libreel_serve.so.
struct ServeTable {
  static constexpr ModuleName module = {"reel_serve", "sessions that serve a page", "libstdc++6", 2};

  /// Listens on 127.0.0.1, at a port or, for 0, at any free one, and sets `port` to it. Null after a message.
  OpenServer* (*open)(int& port, RequestHandler handler, ModuleMessage& message) noexcept;
  /// Ends the server. Requests that are being answered get their answers, but no client is waited for.
  void (*close)(OpenServer* server) noexcept;
};

}  // namespace reel::detail
