#include "server/certificates.hpp"

#include "base/log.hpp"
#include "certs/pem_files.hpp"
#include "kube/codec/base64.hpp"
#include "server/blocking_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace muster::server {
namespace {

constexpr Duration kDay = std::chrono::hours(24);
/// The CA outlives many leaves; a leaf lives a year and is renewed after two thirds of it.
constexpr Duration kCaLife = kDay * 3650;
constexpr Duration kLeafLife = kDay * 365;
/// Clocks of other machines may be behind ours.
constexpr Duration kClockSkew = std::chrono::minutes(10);

/// All that we issue.
struct Issued {
  certs::KeyPair ca;
  certs::KeyPair server;
  certs::KeyPair client;
};

Result<certs::KeyPair> make_ca(Instant now) {
  return certs::issue_ca({"muster-ca", {now - kClockSkew, now + kCaLife}});
}

Result<certs::KeyPair> make_server(const certs::KeyPair& ca, const CertificateNames& names,
                                   Instant now) {
  certs::LeafRequest request;
  request.common_name = "muster";
  request.dns_names = names.dns_names;
  request.ip_addresses = names.ip_addresses;
  request.usage = certs::Usage::kServer;
  request.validity = {now - kClockSkew, now + kLeafLife};
  return certs::issue_leaf(ca, request);
}

Result<certs::KeyPair> make_client(const certs::KeyPair& ca, Instant now) {
  certs::LeafRequest request;
  request.common_name = "muster-extender-client";
  request.usage = certs::Usage::kClient;
  request.validity = {now - kClockSkew, now + kLeafLife};
  return certs::issue_leaf(ca, request);
}

bool covers(const std::vector<std::string>& have, const std::vector<std::string>& want) {
  return std::all_of(want.begin(), want.end(), [&](const std::string& name) {
    return std::find(have.begin(), have.end(), name) != have.end();
  });
}

/// Usable as it is: its own CA's, young enough, with all names.
bool good_leaf(const certs::KeyPair& leaf, const std::string& ca_pem, const CertificateNames* names,
               Instant now) {
  if (!certs::check_pair(leaf) || !certs::check_issued_by(leaf.certificate_pem, ca_pem)) {
    return false;
  }
  const auto info = certs::inspect(leaf.certificate_pem);
  if (!info || certs::needs_renewal(*info, now)) return false;
  return names == nullptr || (covers(info->dns_names, names->dns_names) &&
                              covers(info->ip_addresses, names->ip_addresses));
}

bool good_ca(const certs::KeyPair& ca, Instant now) {
  if (!certs::check_pair(ca)) return false;
  const auto info = certs::inspect(ca.certificate_pem);
  return info && info->is_ca && !certs::needs_renewal(*info, now);
}

/// Fills in what is missing or spent; `changed` says whether anything was made.
Result<Issued> complete(Issued have, const CertificateNames& names, Instant now, bool& changed) {
  changed = false;
  if (!good_ca(have.ca, now)) {
    auto ca = make_ca(now);
    if (!ca) return fail(ca.error());
    have.ca = *ca;
    changed = true;
  }
  if (!good_leaf(have.server, have.ca.certificate_pem, &names, now)) {
    auto server = make_server(have.ca, names, now);
    if (!server) return fail(server.error());
    have.server = *server;
    changed = true;
  }
  if (!good_leaf(have.client, have.ca.certificate_pem, nullptr, now)) {
    auto client = make_client(have.ca, now);
    if (!client) return fail(client.error());
    have.client = *client;
    changed = true;
  }
  return have;
}

Certificates from_issued(const Issued& issued) {
  return Certificates{issued.ca.certificate_pem, issued.ca.certificate_pem, issued.server};
}

/// Empty when a file is missing or the two do not belong together (a crash came between them).
certs::KeyPair load_or_empty(const std::string& base) {
  auto pair = certs::load_pair(base + ".crt", base + ".key");
  if (pair) return *pair;
  if (pair.error().code != ErrorCode::kNotFound) {
    log::warning("{}; it is made anew", pair.error().message);
  }
  return certs::KeyPair{};
}

Result<void> write_pair(const std::string& base, const certs::KeyPair& pair) {
  // The key first: whoever sees the certificate finds its key.
  auto written = certs::write_pem_file(base + ".key", pair.key_pem, certs::FileKind::kPrivateKey);
  if (!written) return written;
  return certs::write_pem_file(base + ".crt", pair.certificate_pem, certs::FileKind::kPublic);
}

Result<Certificates> read_given(const std::string& folder) {
  auto pair = certs::load_pair(folder + "/tls.crt", folder + "/tls.key");
  if (!pair) return fail(pair.error());
  auto ca = certs::read_pem_file(folder + "/ca.crt");
  if (!ca) return fail(ca.error().with_context("beside tls.crt its CA is wanted"));
  return Certificates{*ca, *ca, *pair};
}

// ---------------------------------------------------------------- Secrets

constexpr const char* kOwnSecret = "muster-certs";
constexpr const char* kClientSecret = "muster-extender-client";

std::string secret_path(const std::string& ns, const std::string& name) {
  return fmt::format("/api/v1/namespaces/{}/secrets{}{}", ns, name.empty() ? "" : "/", name);
}

Result<std::string> secret_value(const kube::Json& secret, const char* key) {
  const kube::Json value = secret.get("data").get(key);
  if (!value.is_string()) return std::string();
  return kube::base64_decode(value.string_or(""));
}

Result<certs::KeyPair> secret_pair(const kube::Json& secret, const char* certificate,
                                   const char* key) {
  auto certificate_pem = secret_value(secret, certificate);
  if (!certificate_pem) return fail(certificate_pem.error());
  auto key_pem = secret_value(secret, key);
  if (!key_pem) return fail(key_pem.error());
  return certs::KeyPair{*certificate_pem, *key_pem};
}

kube::Json secret_object(const std::string& ns, const char* name, const kube::Json& data,
                         const kube::Json& existing) {
  const kube::Json version = existing.get("metadata").get("resourceVersion");
  return kube::Json::object({{"apiVersion", kube::Json::string("v1")},
                             {"kind", kube::Json::string("Secret")},
                             {"metadata", kube::Json::object({{"name", kube::Json::string(name)},
                                                              {"namespace", kube::Json::string(ns)},
                                                              {"resourceVersion", version}})},
                             {"type", kube::Json::string("Opaque")},
                             {"data", data}});
}

kube::Json encoded(const std::string& pem) {
  return kube::Json::string(kube::base64_encode(pem));
}

/// Absent when it does not exist.
Result<kube::Json> read_secret(kube::ApiClient& client, const std::string& ns, const char* name) {
  auto secret = call_and_wait(client, {kube::HttpMethod::kGet, secret_path(ns, name)});
  if (!secret && secret.error().code == ErrorCode::kNotFound) return kube::Json();
  return secret;
}

Result<void> write_secret(kube::ApiClient& client, const std::string& ns, const char* name,
                          const kube::Json& object, bool exists) {
  kube::HttpCall call;
  call.method = exists ? kube::HttpMethod::kPut : kube::HttpMethod::kPost;
  call.path_and_query = secret_path(ns, exists ? name : "");
  call.body = object.dump();
  auto written = call_and_wait(client, std::move(call));
  if (!written) return fail(written.error());
  return {};
}

}  // namespace

CertificateNames server_names(const std::string& ns, const std::vector<std::string>& hosts) {
  CertificateNames names;
  names.dns_names = {"localhost"};
  for (const char* service : {"muster-webhook", "muster-extender", "muster-api"}) {
    names.dns_names.push_back(fmt::format("{}.{}.svc", service, ns));
    names.dns_names.push_back(fmt::format("{}.{}.svc.cluster.local", service, ns));
  }
  names.ip_addresses = {"127.0.0.1", "::1"};
  for (const std::string& host : hosts) {
    const bool any = host == "0.0.0.0" || host == "::";
    const bool known = std::find(names.ip_addresses.begin(), names.ip_addresses.end(), host) !=
                       names.ip_addresses.end();
    if (!any && !known) names.ip_addresses.push_back(host);
  }
  return names;
}

Result<Certificates> certificates_from_folder(const std::string& folder,
                                              const CertificateNames& names, Instant now) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(folder + "/tls.crt", error)) return read_given(folder);
  fs::create_directories(folder, error);
  if (error) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: cannot be made: {}", folder, error.message()));
  }
  Issued have;
  for (const auto& [name, pair] : {std::pair{"ca", &have.ca}, std::pair{"server", &have.server},
                                   std::pair{"client", &have.client}}) {
    *pair = load_or_empty(folder + "/" + name);
  }
  bool changed = false;
  auto issued = complete(have, names, now, changed);
  if (!issued) return fail(issued.error());
  if (changed) {
    log::info("certificates made in {}", folder);
    for (const auto& [name, pair] :
         {std::pair{"ca", &issued->ca}, std::pair{"server", &issued->server},
          std::pair{"client", &issued->client}}) {
      auto written = write_pair(folder + "/" + name, *pair);
      if (!written) return fail(written.error());
    }
  }
  return from_issued(*issued);
}

Result<Certificates> certificates_from_secrets(kube::ApiClient& client, const std::string& ns,
                                               const CertificateNames& names, Instant now) {
  // A conflict means that another replica was faster: read what it wrote.
  for (int attempt = 0; attempt < 5; ++attempt) {
    auto own = read_secret(client, ns, kOwnSecret);
    if (!own) return fail(own.error());
    auto extender = read_secret(client, ns, kClientSecret);
    if (!extender) return fail(extender.error());

    Issued have;
    for (const auto& [secret, certificate, key, pair] :
         {std::tuple{&*own, "ca.crt", "ca.key", &have.ca},
          std::tuple{&*own, "tls.crt", "tls.key", &have.server},
          std::tuple{&*extender, "tls.crt", "tls.key", &have.client}}) {
      auto read = secret_pair(*secret, certificate, key);
      if (!read) return fail(read.error().with_context("Secret " + ns));
      *pair = *read;
    }
    bool changed = false;
    auto issued = complete(have, names, now, changed);
    if (!issued) return fail(issued.error());
    if (!changed) return from_issued(*issued);

    const kube::Json own_data =
        kube::Json::object({{"ca.crt", encoded(issued->ca.certificate_pem)},
                            {"ca.key", encoded(issued->ca.key_pem)},
                            {"tls.crt", encoded(issued->server.certificate_pem)},
                            {"tls.key", encoded(issued->server.key_pem)}});
    auto written = write_secret(client, ns, kOwnSecret,
                                secret_object(ns, kOwnSecret, own_data, *own), own->present());
    if (written) {
      const kube::Json data =
          kube::Json::object({{"ca.crt", encoded(issued->ca.certificate_pem)},
                              {"tls.crt", encoded(issued->client.certificate_pem)},
                              {"tls.key", encoded(issued->client.key_pem)}});
      written =
          write_secret(client, ns, kClientSecret, secret_object(ns, kClientSecret, data, *extender),
                       extender->present());
    }
    if (written) return from_issued(*issued);
    if (written.error().code != ErrorCode::kConflict) return fail(written.error());
  }
  return fail(ErrorCode::kConflict,
              fmt::format("Secret {}/{}: changed under our hands five times", ns, kOwnSecret));
}

}  // namespace muster::server
