#include "cli/command.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace muster::cli {

std::string one_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    line.push_back(byte < 0x20 || byte == 0x7F ? ' ' : c);
  }
  return line;
}

int refuse(std::string_view command, const Error& error) {
  fmt::print(stderr, "muster {}: {}\n", command, one_line(error.message));
  return error.code == ErrorCode::kInternal ? kExitRefused : kExitBadInput;
}

void print_warning(std::string_view command, std::string_view warning) {
  fmt::print(stderr, "muster {}: warning: {}\n", command, one_line(warning));
}

void print_note(std::string_view command, std::string_view note) {
  fmt::print(stderr, "muster {}: note: {}\n", command, one_line(note));
}

int print_report(std::string_view report) {
  const bool whole = std::fwrite(report.data(), 1, report.size(), stdout) == report.size();
  if (whole && std::fflush(stdout) == 0) return kExitOk;
  fmt::print(stderr, "muster: the report could not be written\n");
  return kExitRefused;
}

}  // namespace muster::cli
