#include "cli/certs_command.hpp"

#include "certs/pem_files.hpp"
#include "cli/command.hpp"
#include "cli/text_file.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace muster::cli {
namespace {

struct IssueFlags {
  std::string directory;
  std::vector<std::string> names = {"localhost", "127.0.0.1"};
  std::int64_t days = 365;
};

Instant clock_now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return Instant{std::chrono::duration_cast<Duration>(since).count()};
}

bool is_ip(const std::string& name) {
  return name.find(':') != std::string::npos ||
         name.find_first_not_of("0123456789.") == std::string::npos;
}

Result<void> write_pair(const std::string& stem, const certs::KeyPair& pair) {
  auto written =
      certs::write_pem_file(stem + ".crt", pair.certificate_pem, certs::FileKind::kPublic);
  if (!written) return written;
  return certs::write_pem_file(stem + ".key", pair.key_pem, certs::FileKind::kPrivateKey);
}

/// The CA that is there; a new one only where there is none, since clients trust it by its bytes.
Result<certs::KeyPair> find_or_issue_ca(const std::string& directory, certs::Validity validity) {
  const std::string stem = directory + "/ca";
  std::error_code error;
  if (std::filesystem::exists(stem + ".crt", error)) {
    return certs::load_pair(stem + ".crt", stem + ".key");
  }
  auto ca = certs::issue_ca({"muster-ca", validity});
  if (!ca) return ca;
  if (auto written = write_pair(stem, *ca); !written) return fail(written.error());
  return ca;
}

Result<void> issue(const IssueFlags& flags) {
  std::error_code error;
  std::filesystem::create_directories(flags.directory, error);
  if (error) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: {}", flags.directory, error.message()));
  }
  // A minute back: other machines' clocks are behind.
  const Instant from = clock_now() - std::chrono::minutes(1);
  const certs::Validity validity{from, from + std::chrono::hours(24 * flags.days)};
  const certs::Validity of_ca{from, from + std::chrono::hours(24 * 10 * flags.days)};
  const auto ca = find_or_issue_ca(flags.directory, of_ca);
  if (!ca) return fail(ca.error());

  certs::LeafRequest server{.common_name = "muster", .validity = validity};
  for (const std::string& name : flags.names) {
    (is_ip(name) ? server.ip_addresses : server.dns_names).push_back(name);
  }
  const certs::LeafRequest client{
      .common_name = "kube-scheduler", .usage = certs::Usage::kClient, .validity = validity};
  const auto make = [&](const char* stem, const certs::LeafRequest& request) -> Result<void> {
    const auto pair = certs::issue_leaf(*ca, request);
    if (!pair) return fail(pair.error());
    return write_pair(flags.directory + stem, *pair);
  };
  if (auto made = make("/tls", server); !made) return made;
  return make("/client", client);
}

int run_issue(const IssueFlags& flags) {
  if (const auto done = issue(flags); !done) return refuse("certs", done.error());
  return print_report(
      fmt::format("{0}/ca.crt, {0}/tls.crt, {0}/client.crt and their keys\n", flags.directory));
}

/// False when one of them is not valid now.
int run_show(const std::vector<std::string>& files) {
  const Instant now = clock_now();
  std::string report;
  bool valid = true;
  for (const std::string& file : files) {
    const auto text = read_text(file);
    if (!text) return refuse("certs", text.error());
    const auto info = certs::inspect(*text);
    if (!info) return refuse("certs", info.error().with_context(file));
    std::vector<std::string> names = info->dns_names;
    names.insert(names.end(), info->ip_addresses.begin(), info->ip_addresses.end());
    const bool current = info->not_before <= now && now < info->not_after;
    valid = valid && current;
    report += fmt::format("{}: {}{}, serial {}, {} to {}{}{}\n", file, info->common_name,
                          info->is_ca ? " (CA)" : "", info->serial_hex,
                          format_rfc3339(info->not_before), format_rfc3339(info->not_after),
                          names.empty() ? "" : fmt::format(", for {}", fmt::join(names, " ")),
                          current ? "" : ", NOT VALID NOW");
  }
  const int printed = print_report(report);
  if (printed != kExitOk || valid) return printed;
  return refuse("certs", Error{ErrorCode::kInternal, "a certificate is not valid now"});
}

}  // namespace

void register_certs(CLI::App& app, std::function<int()>& action) {
  CLI::App* command = app.add_subcommand("certs", "Make or look at certificates");
  command->require_subcommand(1);

  CLI::App* issue_command = command->add_subcommand(
      "issue", "Make a CA (unless there is one), a server and a client certificate");
  const auto flags = std::make_shared<IssueFlags>();
  issue_command->add_option("--dir", flags->directory, "Where to put them")
      ->required()
      ->type_name("DIR");
  issue_command
      ->add_option("--name", flags->names,
                   "DNS name or IP address of the server, may be given several times (default: "
                   "localhost and 127.0.0.1)")
      ->type_name("NAME");
  issue_command
      ->add_option("--days", flags->days, "Days that the certificates are valid (default: 365)")
      ->check(CLI::Range(1, 36'500))
      ->type_name("N");
  issue_command->callback([&action, flags] { action = [flags] { return run_issue(*flags); }; });

  CLI::App* show_command = command->add_subcommand(
      "show", "Print what certificates say; exit 1 if one is not valid now");
  const auto files = std::make_shared<std::vector<std::string>>();
  show_command->add_option("file", *files, "PEM files")->required()->type_name("FILE");
  show_command->callback([&action, files] { action = [files] { return run_show(*files); }; });
}

}  // namespace muster::cli
