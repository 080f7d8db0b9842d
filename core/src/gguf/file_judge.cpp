#include "gguf/file_judge.hpp"

#include <utility>

namespace bitnet::gguf {
namespace {

thread_local file_judge* judge_of_thread = nullptr;

}  // namespace

file_judge::scope::scope(file_judge* judge) : before_(std::exchange(judge_of_thread, judge)) {}

file_judge::scope::~scope() {
  judge_of_thread = before_;
}

file_judge* file_judge::current() {
  return judge_of_thread;
}

}  // namespace bitnet::gguf
