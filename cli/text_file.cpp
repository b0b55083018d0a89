#include "cli/text_file.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>

namespace muster::cli {
namespace {

constexpr std::size_t kMaxBytes = 256U << 20U;

Result<std::string> read_stream(std::istream& in, const std::string& path) {
  std::string text;
  std::array<char, 1U << 16U> buffer{};
  while (in.read(buffer.data(), buffer.size()) || in.gcount() > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMaxBytes) {
      return fail(ErrorCode::kTooLarge, fmt::format("{}: more than {} bytes", path, kMaxBytes));
    }
  }
  if (in.bad()) return fail(ErrorCode::kInvalidArgument, fmt::format("{}: cannot be read", path));
  return text;
}

}  // namespace

Result<std::string> read_text(const std::string& path) {
  if (path == "-") return read_stream(std::cin, path);
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return fail(ErrorCode::kNotFound, fmt::format("{}: no such file", path));
  }
  if (std::filesystem::is_directory(status)) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("{}: is a directory", path));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(ErrorCode::kInvalidArgument, fmt::format("{}: cannot be opened", path));
  return read_stream(in, path);
}

}  // namespace muster::cli
