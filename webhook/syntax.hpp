#pragma once
// The API's spelling rules that both queueing objects and jobs must keep: label keys and values,
// names, quantities. Source: apimachinery's validation package.

#include "base/quantity.hpp"
#include "kube/codec/json.hpp"
#include "webhook/field_error.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace muster::webhook {

/// `example.com/name` or `name`: an optional DNS prefix, then up to 63 letters, digits, `-_.`.
[[nodiscard]] bool is_qualified_name(std::string_view text);
/// Empty, or like the name part of a key.
[[nodiscard]] bool is_label_value(std::string_view text);
/// Lower-case letters, digits, `-` and `.`; at most 253.
[[nodiscard]] bool is_dns_subdomain(std::string_view text);

/// A quantity as JSON writes it (a string or a number); adds an error when it is none or negative.
std::optional<Quantity> check_quantity(const kube::Json& value, const std::string& path,
                                       FieldErrors& errors);
void check_label_key(std::string_view key, const std::string& path, FieldErrors& errors);
/// Every key and value of a map of labels.
void check_labels(const kube::Json& labels, const std::string& path, FieldErrors& errors);
/// Keys only: annotation values are free.
void check_annotations(const kube::Json& annotations, const std::string& path, FieldErrors& errors);

/// muster.dev/preemptible, min-runtime, checkpoint-grace, last-checkpoint: where they stand they
/// must be readable. `metadata` is an object's or a template's.
void check_muster_metadata(const kube::Json& metadata, const std::string& path,
                           FieldErrors& errors);
/// preemptible, min-runtime and checkpoint-grace are terms of the admission: who holds quota by
/// them (borrowed, perhaps) may not better them afterwards. `why` says what to do instead.
void check_same_protection(const kube::Json& before, const kube::Json& now, const std::string& why,
                           FieldErrors& errors);

}  // namespace muster::webhook
