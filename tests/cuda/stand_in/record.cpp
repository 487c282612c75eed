#include "record.h"

namespace reel_test::stand_in {
namespace {

struct Record {
  Counts counts;
  std::map<std::string, std::pair<std::int64_t, std::string>> violations;  // the number of each, and the first subject
  std::string subject;
};

// Never destroyed: libraries make calls while the program ends.
Record& record() {
  static auto& made = *new Record;
  return made;
}

}  // namespace

std::recursive_mutex& mutex() {
  static auto& made = *new std::recursive_mutex;
  return made;
}

void count(const char* call) {
  std::lock_guard lock(mutex());
  ++record().counts[call];
}

void record_violation(std::string sentence) {
  std::lock_guard lock(mutex());
  auto& [number, subject] = record().violations[std::move(sentence)];
  if (number++ == 0) subject = record().subject;
}

Counts counts() {
  std::lock_guard lock(mutex());
  return record().counts;
}

void forget_counts() {
  std::lock_guard lock(mutex());
  record().counts.clear();
}

std::vector<std::string> take_violations() {
  std::lock_guard lock(mutex());
  std::vector<std::string> sentences;
  for (const auto& [sentence, seen] : record().violations)
    sentences.push_back(
        fmt::format("{} ({} times{})", sentence, seen.first, seen.second.empty() ? "" : ", first in " + seen.second));
  record().violations.clear();
  return sentences;
}

void set_subject(std::string subject) {
  std::lock_guard lock(mutex());
  record().subject = std::move(subject);
}

}  // namespace reel_test::stand_in
