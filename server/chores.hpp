#pragma once
// What a leader keeps in order on the API server beside its decisions: the caBundle of our webhook
// configurations, and the label that makes the extender's Service choose this pod.

#include "kube/client/api_client.hpp"
#include "kube/codec/json.hpp"

#include <memory>
#include <string>
#include <vector>

namespace muster::server {

/// The JSON Patch that puts `ca_pem` into every webhook of a configuration object; empty when all
/// have it. Each entry is tested by name, so that a configuration changed meanwhile is not damaged.
[[nodiscard]] std::string ca_bundle_patch(const kube::Json& configuration,
                                          const std::string& ca_pem);

/// Keeps the caBundle of the two configurations named `muster` equal to our CA: at once, then every
/// `period`. A configuration that does not exist is looked for again.
class CaBundleKeeper {
 public:
  CaBundleKeeper(kube::ApiClient& client, std::string ca_pem, Duration period);
  ~CaBundleKeeper();
  CaBundleKeeper(const CaBundleKeeper&) = delete;
  CaBundleKeeper& operator=(const CaBundleKeeper&) = delete;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// Puts `muster.dev/leader: "true"` on our pod and takes it from every other pod of the namespace.
void label_leader(kube::ApiClient& client, const std::string& ns, const std::string& pod);

}  // namespace muster::server
