#pragma once
// `muster certs issue` and `muster certs show`: certificates by hand, for tests and for clusters
// where neither muster nor cert-manager shall make them.

#include <functional>

namespace CLI {
class App;
}

namespace muster::cli {

void register_certs(CLI::App& app, std::function<int()>& action);

}  // namespace muster::cli
