#pragma once
// `kind: List` documents and typed lists taken apart.

#include "kube/codec/json.hpp"

#include <string>
#include <vector>

namespace muster::kube {

struct ListedObject {
  std::string place;  ///< `items[3]`; empty for a document that is no list.
  Json object;
};

/// The objects of a document: itself, or the items of a list (of lists, too). Items of a typed list
/// (`PodList`) that lack kind and apiVersion, as the API server sends them, get the list's.
[[nodiscard]] Result<std::vector<ListedObject>> split_list(const Json& document);

}  // namespace muster::kube
