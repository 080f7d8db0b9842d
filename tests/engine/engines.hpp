#pragma once
// Engines of small models on the cpu backend, whole or cut into parts, for tests over the modules
// that sessions are made of.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/model/small_hybrid.hpp"
#include "../demo_model.hpp"
#include "../scratch_folder.hpp"
#include "engine/split.hpp"
#include "one_thread.hpp"
#include "plugin/loading/backend.hpp"
#include "sequence/session.hpp"

namespace bitnet::test {

using ids = std::vector<int32_t>;
using floats = std::vector<float>;

// The layers with which parts begin, the first of them aside; 0: behind the embedding.
using cuts = std::vector<uint32_t>;

class engines : public testing::Test {
 protected:
  select::choice copy_of(const char* file, const char* name) {
    auto b = need(plugin::backend::load(file, name, BITNET_PURPOSE_LOAD, host_));
    bitnet_device_info info{};
    info.struct_size = sizeof info;
    bitnet_error err = plugin::blank_error();
    if (b->table().device_info(b->table().self, 0, &info, &err) != BITNET_OK)
      throw std::runtime_error(err.message);
    return {std::move(b), 0, info, ""};
  }
  void SetUp() override { cpu_ = copy_of(BITNET_CPU_PLUGIN, "cpu"); }

  void load(const std::string& file) { model_.emplace(need(model::model::load(file, {}))); }
  void load(const tests::gguf_builder& b) {
    load(scratch_.write("small.gguf", tests::as_text(b.build())));
  }
  // Every architecture whose layers differ in what they keep, and the demo model.
  void each_model(const std::function<void()>& check) {
    const std::pair<const char*, std::function<void()>> all[] = {
        {"demo", [&] { load(test::demo_model()); }},
        {"qwen35", [&] { load(tests::small_hybrid()); }},
        {"gemma3",
         [&] {
           auto b = tests::small_model("gemma3", "llama", 7, tests::lively_embedding());
           load(b.u32("gemma3.attention.sliding_window", 5));
         }},
        {"minicpm",
         [&] { load(tests::small_model("minicpm", "gpt2", 2, tests::lively_embedding())); }},
    };
    for (const auto& [name, make] : all) {
      if (std::string_view(name) == "demo" && test::demo_model().empty()) continue;
      SCOPED_TRACE(name);
      make();
      check();
    }
  }
  [[nodiscard]] uint32_t n_layers() const { return model_->shape().n_layers; }

  engine::placement placed(const cuts& at) {
    engine::placement out;
    uint32_t first = 0;
    for (std::size_t i = 0; i <= at.size(); ++i) {
      const bool last = i == at.size();
      auto p = need(engine::part::open(cpu_, *model_));
      p->take({.first = first,
               .last = last ? n_layers() : at[i],
               .embedding = i == 0,
               .lm_head = last});
      out.parts.push_back(std::move(p));
      if (!last) first = at[i];
    }
    out.main = at.size();
    return out;
  }
  std::shared_ptr<engine::engine> on(engine::placement where,
                                     const engine::kv_budget& budget = {}) {
    return need(engine::engine::open(std::move(where), *model_, {}, nullptr, budget));
  }
  std::shared_ptr<engine::engine> cut(const cuts& at, const engine::kv_budget& budget = {}) {
    return on(placed(at), budget);
  }
  static engine::session_options wanted() {
    engine::session_options o;
    o.n_context = 256;
    o.n_batch = 32;
    o.deterministic = true;
    return o;
  }
  std::unique_ptr<sequence::session> open(const std::shared_ptr<engine::engine>& e,
                                          const engine::session_options& o = wanted()) {
    return need(sequence::session::open(e, o, 0));
  }

  [[nodiscard]] ids many(std::size_t n) const {
    ids out;
    for (std::size_t i = 0; i < n; ++i)
      out.push_back(static_cast<int32_t>((3 + i * 7) % model_->shape().n_vocab));
    return out;
  }

  one_thread host_;
  test::scratch_folder scratch_;
  select::choice cpu_;
  std::optional<model::model> model_;
};

// With a small model some of whose layers keep states, and the others keys.
class hybrid_engines : public engines {
 protected:
  void SetUp() override {
    engines::SetUp();
    load(tests::small_hybrid());
  }
};

}  // namespace bitnet::test
