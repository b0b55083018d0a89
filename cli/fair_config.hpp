#pragma once
// `fairSharing` and `admissionFairSharing` of a Configuration.

#include "engine/options.hpp"
#include "kube/codec/reader.hpp"

namespace muster::cli {

/// `root` is the Configuration. In v1beta2 fair sharing is on when the field is there, in v1beta1
/// when it says `enable: true`; without a list of strategies both hold. Admission Fair Sharing is
/// on when its field is there.
void read_fair_sharing(const kube::Reader& root, bool v1beta1, engine::Options& options);

}  // namespace muster::cli
