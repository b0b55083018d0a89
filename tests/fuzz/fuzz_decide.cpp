// `muster decide`: any text is refused with a reason or decided, and what was decided can be read
// again.

#include "cli/decide.hpp"
#include "tests/fuzz/fuzz.hpp"

#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using muster::cli::ReportFormat;
  using muster::fuzz::require;
  const std::string text(muster::fuzz::as_text(data, size));
  const auto decide = [](const std::string& input, ReportFormat format) {
    muster::cli::DecideOptions options;
    options.format = format;
    auto manifests = muster::cli::parse_manifests({{"input.yaml", input}});
    if (!manifests) {
      return muster::Result<muster::cli::DecideResult>(muster::fail(manifests.error()));
    }
    return muster::cli::decide(*std::move(manifests), options);
  };
  const auto json = decide(text, ReportFormat::kJson);
  if (!json) {
    require(!json.error().message.empty());
    return 0;
  }
  require(muster::kube::Json::parse(json->report).has_value());
  const auto yaml = decide(text, ReportFormat::kYaml);
  require(yaml.has_value());
  // Only what lists and Workloads wrap around an object may be too much when it is read again.
  const auto again = decide(yaml->report, ReportFormat::kTable);
  require(again.has_value() || again.error().code == muster::ErrorCode::kTooLarge);
  return 0;
}
