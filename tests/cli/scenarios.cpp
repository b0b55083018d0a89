#include "tests/cli/scenarios.hpp"

#include "cli/text_file.hpp"
#include "kube/codec/yaml.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

namespace muster::cli::test {
namespace {

const std::string kFolder = MUSTER_SCENARIOS;

}  // namespace

std::vector<std::string> scenario_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().filename().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Scenario load_scenario(const std::string& file) {
  // The header is everything up to the first line `---`; the manifests stay the bytes they are.
  const std::string text = read_text(kFolder + "/" + file).value();
  const std::size_t end = text.find("\n---\n");
  Scenario scenario;
  const auto header = kube::parse_yaml(text.substr(0, end));
  if (!header || header->size() != 1) throw std::runtime_error(file + ": bad header");
  scenario.header = header->front();
  const kube::Json bases = scenario.header.get("base");
  for (std::size_t i = 0; i < bases.size(); ++i) {
    const std::string name(bases.at(i).string_or(""));
    scenario.texts.push_back({name, read_text(kFolder + "/base/" + name).value()});
  }
  const kube::Json raw = scenario.header.get("text");
  if (raw.is_string()) {
    scenario.texts.push_back({"input.yaml", std::string(raw.string_or(""))});
  } else if (end != std::string::npos) {
    scenario.texts.push_back({"input.yaml", text.substr(end + 5)});
  }
  return scenario;
}

}  // namespace muster::cli::test
