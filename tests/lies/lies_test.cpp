// Each wrong answer is rejected with the slot's name, or corrected and reported; nothing crashes.

#include <fenv.h>
#include <signal.h>
#include <sys/stat.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "../reload/yard.hpp"

namespace bitnet::test {
namespace {

const std::string prompt = "Once upon a time there was a";

// A runtime with the liar, its setting, and what was logged.
class lying {
 public:
  lying(const yard& y, const std::string& lie) {
    const std::string folder = y.manifests(), setting = "liar.lie=" + lie;
    const char* const folders[] = {folder.c_str()};
    const char* const settings[] = {setting.c_str()};
    bitnet_runtime_options o;
    bitnet_runtime_defaults(&o, sizeof o);
    o.probe_wait_ms = 60'000;
    o.device = "liar";
    o.n_threads = 2;
    o.poll = 0;
    o.manifest_dirs = folders;
    o.n_manifest_dirs = 1;
    o.backend_params = settings;
    o.n_backend_params = 1;
    o.log_user = &log;
    o.log = [](void* to, uint32_t, const char* line) {
      *static_cast<std::string*>(to) += std::string(line) + "\n";
    };
    cache_ = (std::filesystem::path(folder) / "packed").string();
    bitnet_model_options m;
    bitnet_model_defaults(&m, sizeof m);
    m.pack_cache = cache_.c_str();
    bitnet_error e = blank();
    if (const auto s = bitnet_runtime_open(&o, &runtime_, &e); s != BITNET_OK)
      throw failed_call(s, e);
    if (const auto s = bitnet_model_open(runtime_, demo_model().c_str(), &m, &model_, &e);
        s != BITNET_OK) {
      bitnet_runtime_close(runtime_);
      throw failed_call(s, e);
    }
  }
  lying(const lying&) = delete;
  lying& operator=(const lying&) = delete;
  ~lying() {
    bitnet_session_close(session_);
    bitnet_model_close(model_);
    bitnet_runtime_close(runtime_);
  }
  // What comes after the prompt, and what the session reports of it.
  std::string generate(int32_t n) {
    bitnet_error e = blank();
    const auto options = usual();
    if (const auto s = bitnet_session_open(model_, &options, &session_, &e); s != BITNET_OK)
      throw failed_call(s, e);
    bitnet_token ids[64];
    uint64_t count = 0;
    bitnet_tokenize(model_, {prompt.data(), prompt.size()}, BITNET_TOKENIZE_MODEL_BOS, ids, 64,
                    &count, &e);
    bitnet_sampling sampling;
    bitnet_sampling_defaults(&sampling, sizeof sampling);
    sampling.temperature = 0;
    std::string out;
    bitnet_generation g{};
    g.struct_size = sizeof g;
    g.max_tokens = n;
    g.sampling = &sampling;
    g.text_user = &out;
    g.text = [](void* to, bitnet_str piece) {
      static_cast<std::string*>(to)->append(piece.data, piece.size);
      return int32_t{0};
    };
    bitnet_generation_result r{};
    r.struct_size = sizeof r;
    if (const auto s = bitnet_generate(session_, ids, count, &g, &r, &e); s != BITNET_OK)
      throw failed_call(s, e);
    char text[16384];
    uint64_t needed = 0;
    if (const auto s = bitnet_session_report(session_, text, sizeof text, &needed, nullptr);
        s != BITNET_OK)
      throw std::runtime_error("the report is rejected with status " + std::to_string(s));
    report = nlohmann::json::parse(text, text + needed);
    return out;
  }
  // What the runtime says of the liar's device.
  nlohmann::json device() {
    char text[65536];
    uint64_t needed = 0;
    if (const auto s = bitnet_runtime_report(runtime_, text, sizeof text, &needed, nullptr);
        s != BITNET_OK)
      throw std::runtime_error("the report is rejected with status " + std::to_string(s));
    return nlohmann::json::parse(text, text + needed).at("backends").at(0).at("devices").at(0);
  }
  std::string log;
  nlohmann::json report;

 private:
  std::string cache_;
  bitnet_runtime* runtime_ = nullptr;
  bitnet_model* model_ = nullptr;
  bitnet_session* session_ = nullptr;
};

class lies : public testing::Test {
 protected:
  void SetUp() override {
    if (demo_model().empty()) GTEST_SKIP() << "no demo model in models/";
    setenv("BITNET_STEP_TIMEOUT", "1", 1);
    yard_.install("liar", read(BITNET_LIAR));
    yard_.describe("liar");
  }
  yard yard_;
};

struct row {
  const char* lie;
  const char* says;
};

TEST_F(lies, are_rejected_by_name) {
  const row rows[] = {
      {"device-null", "device_open() succeeds and gives no handle"},
      {"weights-null", "weights_create() succeeds and gives no handle"},
      {"pool-null", "kv_pool_create() succeeds and gives no handle"},
      {"program-null", "program_build() succeeds and gives no handle"},
      {"queue-null", "queue_create() succeeds and gives no handle"},
      {"buffer-null", "buffer_create() succeeds and gives no handle"},
      {"buffer-same", "buffer_create() gives a handle that it has given before"},
      {"map-null", "buffer_map() succeeds and gives no address"},
      {"map-odd", "buffer_map() gives an address without the alignment"},
      {"map-moves", "buffer_map() gives another address"},
      {"map-same", "buffer_map() gives two buffers the same memory"},
      {"plan-blank", "weight_plan() gives no layout_id"},
      {"plan-endless", "weight_plan() gives a layout_id without an end"},
      {"plan-alignment", "weight_plan() takes the caller's memory, with an alignment"},
      {"plan-nothing", "weight_plan() neither takes"},
      {"plan-size", "weight_plan() changes struct_size"},
      {"binding-null", "program_bind() succeeds and gives no handle"},
      {"levels", "graph_query() gives a level that there is not"},
      {"estimate-size", "graph_query() changes struct_size"},
      {"packed-null", "query_interface() gives an interface with a NULL slot"},
      {"poll-behind", "queue_poll() says that the step is not done"},
      {"silent", "queue_wait() succeeds and writes no logits"},
      {"list-few", "queue_wait() lists fewer of the largest logits than asked"},
      {"list-outside", "queue_wait() lists a logit of an id that is not in the vocabulary"},
  };
  for (const row& r : rows) {
    SCOPED_TRACE(r.lie);
    try {
      lying one(yard_, r.lie);
      one.generate(8);
      ADD_FAILURE() << "nothing was rejected";
    } catch (const failed_call& e) {
      EXPECT_EQ(e.status, BITNET_REJECTED) << e.what();
      EXPECT_NE(std::string(e.what()).find(r.says), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("backend liar"), std::string::npos) << e.what();
    }
  }
}

TEST_F(lies, of_a_token_that_is_listed_twice_end_the_generation) {
  lying one(yard_, "list-twice");
  try {
    one.generate(8);
    ADD_FAILURE() << "nothing was rejected";
  } catch (const failed_call& e) {
    EXPECT_EQ(e.status, BITNET_INTERNAL) << e.what();
    EXPECT_NE(std::string(e.what()).find("expected 2 different tokens"), std::string::npos)
        << e.what();
  }
}

TEST_F(lies, about_what_ran_are_rejected_in_the_report) {
  for (const char* lie : {"stats-many", "stats-endless"}) {
    SCOPED_TRACE(lie);
    lying one(yard_, lie);
    try {
      one.generate(8);
      ADD_FAILURE() << "nothing was rejected";
    } catch (const std::runtime_error& e) {
      EXPECT_NE(std::string(e.what()).find("status 13"), std::string::npos) << e.what();
    }
  }
}

TEST_F(lies, about_what_a_device_does_are_rejected_in_words_and_the_run_goes_on) {
  const std::string undisturbed = lying(yard_, "status-null").generate(8);
  const row rows[] = {
      {"status-free", "device_status() reports more free memory than there is"},
      {"status-none", "device_status() reports a memory of 0 bytes"},
      {"status-pool", "device_status() reports that more of its pool is used than it has"},
      {"status-load", "device_status() reports a utilisation of more than 100 percent"},
      {"status-cold", "device_status() reports a temperature that no device has"},
      {"status-slow", "device_status() reports a reason for being slow"},
      {"status-health", "device_status() reports a health that there is not"},
      {"status-must", "device_status() reports something that has to be understood"},
      {"status-reserved", "device_status() sets a reserved member"},
      {"status-size", "device_status() changes struct_size"},
      {"status-throws", "device_status() lets an exception out"},
      {"status-fails", "device_status() failed: the device fell off (vulkan -4)"},
  };
  for (const row& r : rows) {
    SCOPED_TRACE(r.lie);
    lying one(yard_, r.lie);
    EXPECT_EQ(one.generate(8), undisturbed);
    for (const nlohmann::json& status :
         {one.report.at("device_status"), one.device().at("status")}) {
      EXPECT_EQ(status.at("refused").get<std::string>().find(r.says), 0u) << status;
      EXPECT_EQ(status.at("asked"), "now");
      EXPECT_EQ(status.size(), 2u) << "nothing that was rejected is shown: " << status;
    }
  }
}

TEST_F(lies, what_a_device_does_is_reported_and_the_rest_left_out) {
  const nlohmann::json expected = {
      {"asked", "now"},    {"memory_total_bytes", 1000}, {"memory_free_bytes", 400},
      {"pool_bytes", 300}, {"pool_used_bytes", 200},     {"utilisation_percent", 0},
      {"health", "good"},  {"throttled", {"heat"}},      {"temperature_millicelsius", -5000}};
  for (const char* lie : {"none", "status-hint"}) {
    SCOPED_TRACE(lie);
    lying one(yard_, lie);
    one.generate(1);
    EXPECT_EQ(one.report.at("device_status"), expected);
    EXPECT_EQ(one.device().at("status"), expected);
  }
  for (const char* lie : {"status-null", "status-unsupported"}) {
    SCOPED_TRACE(lie);
    lying one(yard_, lie);
    one.generate(1);
    EXPECT_FALSE(one.report.contains("device_status"));
    EXPECT_FALSE(one.device().contains("status"));
  }
}

TEST_F(lies, an_error_says_where_it_comes_from) {
  const struct {
    const char* lie;
    const char* domain;
    const char* says;
  } rows[] = {{"fails", "vulkan", "the device fell off (vulkan -4)"},
              {"fails-endless", "\\x1b[31mendless", "(\\x1b[31mendless.... -4)"},
              {"fails-nameless", "", "the device fell off (code -4)"}};
  for (const auto& r : rows) {
    SCOPED_TRACE(r.lie);
    try {
      lying one(yard_, r.lie);
      one.generate(8);
      ADD_FAILURE() << "nothing failed";
    } catch (const failed_call& e) {
      EXPECT_EQ(e.status, BITNET_INTERNAL) << e.what();
      EXPECT_EQ(e.error.native_code, -4);
      EXPECT_STREQ(e.error.domain, r.domain);
      EXPECT_NE(std::string(e.what()).find(r.says), std::string::npos) << e.what();
    }
  }
}

TEST_F(lies, that_can_be_put_right_change_no_text) {
  const std::string undisturbed = lying(yard_, "none").generate(40);
  ASSERT_GT(undisturbed.size(), 40U);
  const row rows[] = {
      {"rounds-up", "changed the floating-point modes"},
      {"blocks-signals", "changed the blocked signals"},
      {"moves-folder", "changed the working folder"},
      {"opens-modes", "changed the mask of modes"},
      {"tuning-null", ""},
  };
  const auto folder = std::filesystem::current_path();
  const mode_t mask = umask(022);
  for (const row& r : rows) {
    SCOPED_TRACE(r.lie);
    {
      lying one(yard_, r.lie);
      EXPECT_EQ(one.generate(40), undisturbed);
      const auto at = one.log.find(r.says);
      ASSERT_NE(at, std::string::npos) << one.log;
      if (*r.says == 0) continue;
      EXPECT_EQ(one.log.find(r.says, at + 1), std::string::npos) << "reported once: " << one.log;
    }
    EXPECT_EQ(fegetround(), FE_TONEAREST);
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    EXPECT_EQ(sigismember(&blocked, SIGTERM), 0);
    EXPECT_EQ(std::filesystem::current_path(), folder);
    EXPECT_EQ(umask(022), mode_t{022});
  }
  umask(mask);
}

TEST_F(lies, a_step_that_never_ends_is_given_up) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    lying one(yard_, "hangs");
    one.generate(8);
    ADD_FAILURE() << "it ended";
  } catch (const failed_call& e) {
    EXPECT_EQ(e.status, BITNET_TIMEOUT) << e.what();
    EXPECT_NE(std::string(e.what()).find("BITNET_STEP_TIMEOUT"), std::string::npos) << e.what();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

}  // namespace
}  // namespace bitnet::test
