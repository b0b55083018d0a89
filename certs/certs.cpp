#include "certs/certs.hpp"

#include "certs/openssl.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/pem.h>

#include <array>
#include <climits>
#include <ctime>

namespace muster::certs {
namespace {

constexpr int kSerialBits = 159;  // RFC 5280 4.1.2.2: positive and at most 20 octets.

Result<KeyPtr> generate_key() {
  KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return openssl_failure(ErrorCode::kInternal, "cannot generate a P-256 key");
  return key;
}

std::string take_text(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

Result<KeyPair> to_pem(X509* certificate, EVP_PKEY* key) {
  const BioPtr certificate_bio(BIO_new(BIO_s_mem()));
  const BioPtr key_bio(BIO_new(BIO_s_mem()));
  if (!certificate_bio || !key_bio || PEM_write_bio_X509(certificate_bio.get(), certificate) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return openssl_failure(ErrorCode::kInternal, "cannot write PEM");
  return KeyPair{take_text(certificate_bio.get()), take_text(key_bio.get())};
}

bool add_name_entry(X509_NAME* name, const char* field, const std::string& value) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(value.data());
  return value.size() <= INT_MAX &&
         X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, bytes,
                                    static_cast<int>(value.size()), -1, 0) == 1;
}

bool set_serial(X509* certificate) {
  const BigNumberPtr serial(BN_new());
  return serial && BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate)) != nullptr;
}

std::time_t whole_seconds(Instant at) {
  return at.us / 1'000'000;
}

bool set_validity(X509* certificate, const Validity& validity) {
  const TimePtr before(ASN1_TIME_set(nullptr, whole_seconds(validity.not_before)));
  const TimePtr after(ASN1_TIME_set(nullptr, whole_seconds(validity.not_after)));
  return before && after && X509_set1_notBefore(certificate, before.get()) == 1 &&
         X509_set1_notAfter(certificate, after.get()) == 1;
}

bool add_extension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context{};
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// What a CA and a leaf have in common; the caller adds the issuer, the rest and the signature.
Result<CertificatePtr> start_certificate(EVP_PKEY* key, const std::string& common_name,
                                         const std::vector<std::string>& organizations,
                                         const Validity& validity) {
  if (common_name.empty()) return fail(invalid_argument("certificate: the common name is empty"));
  if (validity.not_after <= validity.not_before)
    return fail(invalid_argument("certificate: not_after must be later than not_before"));
  CertificatePtr certificate(X509_new());
  bool ok = certificate && X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
            set_serial(certificate.get()) && set_validity(certificate.get(), validity) &&
            X509_set_pubkey(certificate.get(), key) == 1;
  if (ok) {
    X509_NAME* subject = X509_get_subject_name(certificate.get());
    for (const std::string& organization : organizations)
      ok = ok && add_name_entry(subject, "O", organization);
    ok = ok && add_name_entry(subject, "CN", common_name);
  }
  if (!ok) {
    return openssl_failure(ErrorCode::kInvalidArgument,
                           "certificate: cannot set subject \"" + common_name + "\"");
  }
  return certificate;
}

GENERAL_NAME* make_dns_name(const std::string& text) {
  ASN1_IA5STRING* value = ASN1_IA5STRING_new();
  GENERAL_NAME* name = GENERAL_NAME_new();
  if (value == nullptr || name == nullptr || text.size() > INT_MAX ||
      ASN1_STRING_set(value, text.data(), static_cast<int>(text.size())) != 1) {
    ASN1_IA5STRING_free(value);
    GENERAL_NAME_free(name);
    return nullptr;
  }
  GENERAL_NAME_set0_value(name, GEN_DNS, value);
  return name;
}

GENERAL_NAME* make_ip_name(const std::string& text) {
  ASN1_OCTET_STRING* value = a2i_IPADDRESS(text.c_str());
  GENERAL_NAME* name = GENERAL_NAME_new();
  if (value == nullptr || name == nullptr) {
    ASN1_OCTET_STRING_free(value);
    GENERAL_NAME_free(name);
    return nullptr;
  }
  GENERAL_NAME_set0_value(name, GEN_IPADD, value);
  return name;
}

bool append_name(GENERAL_NAMES* names, GENERAL_NAME* name) {
  if (name == nullptr) return false;
  if (sk_GENERAL_NAME_push(names, name) > 0) return true;
  GENERAL_NAME_free(name);
  return false;
}

Result<void> add_alternative_names(X509* certificate, const LeafRequest& request) {
  if (request.dns_names.empty() && request.ip_addresses.empty()) return {};
  const NamesPtr names(sk_GENERAL_NAME_new_null());
  if (!names) return openssl_failure(ErrorCode::kInternal, "out of memory");
  for (const std::string& dns : request.dns_names) {
    if (!append_name(names.get(), make_dns_name(dns)))
      return openssl_failure(ErrorCode::kInvalidArgument, "bad DNS name \"" + dns + "\"");
  }
  for (const std::string& ip : request.ip_addresses) {
    if (!append_name(names.get(), make_ip_name(ip)))
      return openssl_failure(ErrorCode::kInvalidArgument, "bad IP address \"" + ip + "\"");
  }
  if (X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, 0) != 1)
    return openssl_failure(ErrorCode::kInternal, "cannot add alternative names");
  return {};
}

std::string name_text(const ASN1_STRING* value) {
  const unsigned char* data = ASN1_STRING_get0_data(value);
  return {reinterpret_cast<const char*>(data), static_cast<std::size_t>(ASN1_STRING_length(value))};
}

std::string ip_text(const ASN1_OCTET_STRING* value) {
  const unsigned char* bytes = ASN1_STRING_get0_data(value);
  const int size = ASN1_STRING_length(value);
  char text[INET6_ADDRSTRLEN] = "";
  if (size == 4) {
    inet_ntop(AF_INET, bytes, text, sizeof text);
  } else if (size == 16) {
    inet_ntop(AF_INET6, bytes, text, sizeof text);
  }
  return text;
}

Result<Instant> to_instant(const ASN1_TIME* time) {
  std::tm broken_down{};
  if (ASN1_TIME_to_tm(time, &broken_down) != 1)
    return openssl_failure(ErrorCode::kInvalidArgument, "bad validity time");
  return Instant{static_cast<std::int64_t>(timegm(&broken_down)) * 1'000'000};
}

void read_alternative_names(const X509* certificate, CertificateInfo& info) {
  const NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    int type = 0;
    const void* value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), i), &type);
    if (type == GEN_DNS)
      info.dns_names.push_back(name_text(static_cast<const ASN1_STRING*>(value)));
    if (type == GEN_IPADD)
      info.ip_addresses.push_back(ip_text(static_cast<const ASN1_OCTET_STRING*>(value)));
  }
}

std::string common_name_of(const X509* certificate) {
  const X509_NAME* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return {};
  return name_text(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

}  // namespace

Result<KeyPair> issue_ca(const CaRequest& request) {
  Result<KeyPtr> key = generate_key();
  if (!key) return fail(key.error());
  Result<CertificatePtr> made =
      start_certificate(key->get(), request.common_name, {}, request.validity);
  if (!made) return fail(made.error());
  X509* certificate = made->get();
  if (X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) != 1 ||
      !add_extension(certificate, certificate, NID_basic_constraints,
                     "critical,CA:TRUE,pathlen:0") ||
      !add_extension(certificate, certificate, NID_key_usage,
                     "critical,keyCertSign,cRLSign,digitalSignature") ||
      !add_extension(certificate, certificate, NID_subject_key_identifier, "hash") ||
      X509_sign(certificate, key->get(), EVP_sha256()) == 0)
    return openssl_failure(ErrorCode::kInternal, "cannot sign the CA certificate");
  return to_pem(certificate, key->get());
}

Result<KeyPair> issue_leaf(const KeyPair& ca, const LeafRequest& request) {
  const Result<void> matching = check_pair(ca);
  if (!matching) return fail(matching.error().with_context("CA"));
  const Result<CertificatePtr> issuer = parse_certificate(ca.certificate_pem);
  const Result<KeyPtr> issuer_key = parse_key(ca.key_pem);
  if (!issuer || !issuer_key) return fail(ErrorCode::kInternal, "CA: changed while it was read");
  if (X509_check_ca(issuer->get()) == 0)
    return fail(invalid_argument("CA: the certificate is not one of a CA"));
  Result<KeyPtr> key = generate_key();
  if (!key) return fail(key.error());
  Result<CertificatePtr> made =
      start_certificate(key->get(), request.common_name, request.organizations, request.validity);
  if (!made) return fail(made.error());
  X509* certificate = made->get();
  const char* usage = request.usage == Usage::kServer ? "serverAuth" : "clientAuth";
  if (X509_set_issuer_name(certificate, X509_get_subject_name(issuer->get())) != 1 ||
      !add_extension(certificate, issuer->get(), NID_basic_constraints, "critical,CA:FALSE") ||
      !add_extension(certificate, issuer->get(), NID_key_usage, "critical,digitalSignature") ||
      !add_extension(certificate, issuer->get(), NID_ext_key_usage, usage) ||
      !add_extension(certificate, issuer->get(), NID_authority_key_identifier, "keyid"))
    return openssl_failure(ErrorCode::kInternal, "cannot build the certificate");
  const Result<void> named = add_alternative_names(certificate, request);
  if (!named) return fail(named.error().with_context("certificate " + request.common_name));
  if (X509_sign(certificate, issuer_key->get(), EVP_sha256()) == 0)
    return openssl_failure(ErrorCode::kInternal, "cannot sign the certificate");
  return to_pem(certificate, key->get());
}

Result<CertificateInfo> inspect(std::string_view pem) {
  const Result<CertificatePtr> parsed = parse_certificate(pem);
  if (!parsed) return fail(parsed.error());
  const X509* certificate = parsed->get();
  CertificateInfo info;
  info.common_name = common_name_of(certificate);
  const BigNumberPtr serial(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  if (!serial) return openssl_failure(ErrorCode::kInvalidArgument, "bad serial number");
  const TextPtr hex(BN_bn2hex(serial.get()));
  if (hex) info.serial_hex = hex.get();
  const Result<Instant> before = to_instant(X509_get0_notBefore(certificate));
  const Result<Instant> after = to_instant(X509_get0_notAfter(certificate));
  if (!before) return fail(before.error());
  if (!after) return fail(after.error());
  info.not_before = *before;
  info.not_after = *after;
  info.is_ca = X509_check_ca(parsed->get()) != 0;
  read_alternative_names(certificate, info);
  return info;
}

Result<void> check_pair(const KeyPair& pair) {
  const Result<CertificatePtr> certificate = parse_certificate(pair.certificate_pem);
  if (!certificate) return fail(certificate.error());
  const Result<KeyPtr> key = parse_key(pair.key_pem);
  if (!key) return fail(key.error());
  if (X509_check_private_key(certificate->get(), key->get()) != 1)
    return openssl_failure(ErrorCode::kInvalidArgument,
                           "the private key does not belong to the certificate");
  return {};
}

Result<void> check_issued_by(std::string_view leaf_pem, std::string_view ca_pem) {
  const Result<CertificatePtr> leaf = parse_certificate(leaf_pem);
  if (!leaf) return fail(leaf.error());
  const Result<CertificatePtr> ca = parse_certificate(ca_pem);
  if (!ca) return fail(ca.error().with_context("CA"));
  if (X509_check_issued(ca->get(), leaf->get()) != X509_V_OK ||
      X509_verify(leaf->get(), X509_get0_pubkey(ca->get())) != 1)
    return openssl_failure(ErrorCode::kInvalidArgument, "the certificate is not signed by this CA");
  return {};
}

bool needs_renewal(const CertificateInfo& info, Instant now) {
  const Duration lifetime = info.not_after - info.not_before;
  return now - info.not_before >= lifetime * 2 / 3;
}

}  // namespace muster::certs
