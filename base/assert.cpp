#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace muster {

void assertion_failed(const char* condition, const std::string& message,
                      std::source_location where) {
  // Straight to stderr: the log sink may be part of what is broken.
  fmt::print(stderr, "{}:{}: assertion `{}` failed: {}\n", where.file_name(), where.line(),
             condition, message);
  std::fflush(stderr);
  std::abort();
}

}  // namespace muster
