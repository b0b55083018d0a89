#pragma once
// `muster serve`: threads, sockets, certificates and the engine, put together and taken apart in
// the order of docs/architecture.md.

#include "server/options.hpp"

namespace muster::server {

/// Runs until SIGTERM or SIGINT. The exit code: 0 after an orderly end, 1 when it could not start
/// or lost its lease (the cause is in the log and, for a failed start, on stderr).
[[nodiscard]] int serve(const Options& options);

}  // namespace muster::server
