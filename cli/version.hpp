#pragma once
// `muster version` and `muster --version`.

#include <functional>

namespace CLI {
class App;
}

namespace muster::cli {

/// The release: `0.1.0`.
[[nodiscard]] const char* version();

void register_version(CLI::App& app, std::function<int()>& action);

}  // namespace muster::cli
