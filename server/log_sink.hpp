#pragma once
// Log lines as JSON on standard error, one object a line.

#include "base/log.hpp"

namespace muster::server {

/// Call once, before threads start.
void log_to_stderr(log::Level lowest);

}  // namespace muster::server
