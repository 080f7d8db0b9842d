// Models come when they are named and go when others need their memory: with models of the test,
// which count how many of them there are.
#include "models/model_table.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>

#include "../scratch_folder.hpp"
#include "models/model_folder.hpp"

namespace bitnet::host {
namespace {

using namespace std::chrono_literals;
using kind = model_rejection::kind;

constexpr uint64_t unit = 1 << 20;

class counted_model final : public loaded_model {
 public:
  counted_model(std::string name, uint64_t bytes, std::atomic<int>& alive, std::thread::id loop)
      : name_(std::move(name)), bytes_(bytes), alive_(alive), loop_(loop) {
    ++alive_;
  }
  ~counted_model() override { --alive_; }
  void leave_loop() override {
    if (left_.exchange(true)) return;
    EXPECT_EQ(std::this_thread::get_id(), loop_);
  }
  [[nodiscard]] uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool left() const { return left_; }

 private:
  std::string name_;
  uint64_t bytes_;
  std::atomic<int>& alive_;
  std::thread::id loop_;
  std::atomic<bool> left_ = false;
};

// The loop on a thread of its own, and models of 4, 4, 4 and 40 units.
class table : public testing::Test {
 protected:
  void start(model_table_options how) {
    how.models.insert(how.models.begin(),
                      {{"a", "/a"}, {"b", "/b"}, {"c", "/c"}, {"huge", "/huge"}, {"bad", "/bad"}});
    loop_ = std::thread([this] { io_.run(); });
    table_ = std::make_unique<model_table>(
        io_, std::move(how),
        model_loader{.measure = [](const model_source& one) { return measure(one); },
                     .load = [this](const model_source& one, uint64_t kv) { return load(one, kv); },
                     .on_note = [](const std::string&) {}});
  }
  void TearDown() override {
    end();
    EXPECT_EQ(n_alive_, 0);
  }
  void end() {
    if (!table_) return;
    in_loop([&] { table_->end(); });
    keep_.reset();
    loop_.join();
    table_.reset();
    io_.restart();
    io_.poll();  // what the table gave up
  }
  void in_loop(const std::function<void()>& call) {
    std::promise<void> done;
    boost::asio::post(io_, [&] {
      call();
      done.set_value();
    });
    done.get_future().wait();
  }
  // Waits for it.
  model_found get(const std::string& name) { return ask(name).get(); }
  std::future<model_found> ask(const std::string& name, bool by_admin = false) {
    auto promise = std::make_shared<std::promise<model_found>>();
    auto later = [promise](model_found found) { promise->set_value(std::move(found)); };
    auto now = by_admin ? table_->load(name, later) : table_->want(name, later);
    if (now) promise->set_value(*std::move(now));
    return promise->get_future();
  }
  std::string name_of(const model_found& found) {
    return found ? static_cast<const counted_model&>(**found).name() : "!" + found.error().message;
  }
  std::string states() {
    std::string out;
    for (const model_row& row : table_->list()) out += "ulLUf"[static_cast<std::size_t>(row.state)];
    return out;
  }
  // Waits for what another thread does, at most a minute.
  static bool comes(const auto& condition) {
    for (int i = 0; i < 60'000 && !condition(); ++i) std::this_thread::sleep_for(1ms);
    return condition();
  }
  bool becomes(const std::string& wanted) {
    return comes([&] { return states() == wanted; });
  }

  std::atomic<int> n_alive_{0}, n_begun_{0}, n_loads_{0}, most_alive_{0};
  std::atomic<uint64_t> last_kv_{0};
  std::mutex gate_;  // held by a test: loads wait
  std::unique_ptr<model_table> table_;

 private:
  static result<model_need> measure(const model_source& one) {
    if (one.name == "bad") return fail(exit_code::model, "the file is cut off");
    return model_need{.weights = (one.name == "huge" ? 40 : 3) * unit,
                      .least_kv = unit,
                      .most_kv = 100 * unit,
                      .free = 10 * unit};
  }
  result<std::unique_ptr<loaded_model>> load(const model_source& one, uint64_t kv) {
    ++n_begun_;
    const std::lock_guard wait(gate_);
    ++n_loads_;
    last_kv_ = kv;
    auto out = std::make_unique<counted_model>(one.name, 3 * unit + kv, n_alive_, loop_.get_id());
    most_alive_ = std::max<int>(most_alive_, n_alive_);
    return out;
  }

  boost::asio::io_context io_;
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> keep_{
      boost::asio::make_work_guard(io_)};
  std::thread loop_;
};

TEST_F(table, loads_a_model_when_it_is_named_and_keeps_it) {
  start({.most_loaded = 2});
  EXPECT_EQ(states(), "uuuuu");
  EXPECT_EQ(name_of(get("b")), "b");
  EXPECT_EQ(name_of(get("b")), "b");
  EXPECT_EQ(n_loads_, 1);
  EXPECT_EQ(states(), "uLuuu");
  EXPECT_EQ(name_of(get("")), "a") << "the first, where no name is given";
  EXPECT_EQ(table_->loaded()->bytes(), table_->loaded("a")->bytes());
  EXPECT_EQ(table_->loaded("c"), nullptr);
}

TEST_F(table, has_the_model_go_that_was_used_the_longest_ago) {
  start({.most_loaded = 2, .memory = 100 * unit});
  for (const char* name : {"a", "b", "a", "c"}) EXPECT_EQ(name_of(get(name)), name);
  EXPECT_TRUE(becomes("LuLuu")) << states();
  EXPECT_EQ(n_alive_, 2);
  EXPECT_EQ(most_alive_, 2) << "a model is closed before another one is loaded";
}

TEST_F(table, counts_memory_before_it_loads) {
  start({.most_loaded = 0, .kv_bytes = unit});  // 10 units are free, each takes 4
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(name_of(get(name)), name);
  EXPECT_TRUE(becomes("uLLuu")) << states();
  EXPECT_EQ(most_alive_, 2);
  const auto no = get("huge");
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().what, kind::no_room);
  EXPECT_TRUE(no.error().message.contains("40 MiB")) << no.error().message;
  EXPECT_TRUE(no.error().message.contains("10 MiB")) << no.error().message;
  EXPECT_EQ(states(), "uLLfu") << "nothing went for a model that never has room";
  const auto again = get("huge");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().what, kind::no_room) << "the same reason while it is not tried again";
}

TEST_F(table, leaves_half_of_what_is_left_to_the_next_model) {
  start({.memory = 43 * unit});
  EXPECT_TRUE(get("a"));
  EXPECT_EQ(last_kv_, 20 * unit);  // (43 - 3) / 2
  EXPECT_TRUE(get("b"));
  EXPECT_EQ(last_kv_, (43 - 23 - 3) * unit / 2);
}

TEST_F(table, lets_requests_of_a_model_that_goes_end_first) {
  start({.most_loaded = 1});
  auto used = get("a");
  ASSERT_TRUE(used);
  auto next = ask("b");
  ASSERT_TRUE(comes([&] { return states() == "UluuU" || states() == "Uluuu"; })) << states();
  EXPECT_EQ(next.wait_for(20ms), std::future_status::timeout) << "a request still runs";
  auto after = ask("a");  // waits until b has been loaded, and goes again
  EXPECT_FALSE(static_cast<const counted_model&>(**used).left());
  used = std::unexpected(model_rejection{});
  auto b = next.get();
  EXPECT_EQ(name_of(b), "b");
  EXPECT_EQ(after.wait_for(20ms), std::future_status::timeout);
  b = std::unexpected(model_rejection{});
  EXPECT_EQ(name_of(after.get()), "a");
  EXPECT_EQ(n_loads_, 3);
  EXPECT_EQ(most_alive_, 1);
}

TEST_F(table, gives_all_requests_that_wait_the_same_load) {
  start({});
  std::vector<std::future<model_found>> all;
  {
    const std::lock_guard hold(gate_);
    for (int i = 0; i < 50; ++i) all.push_back(ask("a"));
    EXPECT_EQ(all.back().wait_for(10ms), std::future_status::timeout);
  }
  for (auto& one : all) EXPECT_EQ(name_of(one.get()), "a");
  EXPECT_EQ(n_loads_, 1);
}

TEST_F(table, says_why_there_is_no_such_model) {
  start({});
  const auto unknown = get("x\n");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().what, kind::unknown);
  EXPECT_TRUE(unknown.error().message.contains("'a', 'b'")) << unknown.error().message;
  const auto bad = get("bad");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().what, kind::failed);
  EXPECT_EQ(bad.error().message, "the file is cut off");
  EXPECT_EQ(bad.error().exit_code, exit_code::model);
  EXPECT_EQ(states(), "uuuuf");
  EXPECT_EQ(table_->list()[4].error, "the file is cut off");
  EXPECT_EQ(name_of(get("bad")), "!the file is cut off") << "without reading it again";
  EXPECT_EQ(get("bad").error().exit_code, exit_code::model);
}

TEST_F(table, loads_and_unloads_as_an_administrator_asks) {
  start({.loads_on_demand = false});
  EXPECT_EQ(get("a").error().what, kind::not_loaded);
  EXPECT_EQ(name_of(ask("a", true).get()), "a");
  EXPECT_EQ(name_of(get("a")), "a");
  EXPECT_TRUE(table_->unload("a"));
  EXPECT_TRUE(becomes("uuuuu")) << states();
  EXPECT_TRUE(table_->unload("a")) << "it is not loaded, as was asked";
  EXPECT_EQ(table_->unload("x").error().what, kind::unknown);
  EXPECT_TRUE(comes([&] { return n_alive_ == 0; })) << n_alive_;
}

TEST_F(table, forgets_what_waits_when_it_ends) {
  start({});
  std::future<model_found> never;
  {
    const std::lock_guard hold(gate_);
    never = ask("a");
    ASSERT_TRUE(comes([&] { return n_begun_ == 1; }));
    in_loop([&] { table_->end(); });
  }
  EXPECT_THROW(never.get(), std::future_error) << "its receiver is gone";
  EXPECT_EQ(get("a").error().what, kind::busy);
}

// Threads that want models in turn, more than there is room for: each gets the one that it named.
TEST_F(table, serves_many_threads_with_room_for_two) {
  start({.most_loaded = 2, .memory = 1000 * unit});
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t)
    all.emplace_back([this, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string name(1, static_cast<char>('a' + (t + i * (t + 1)) % 3));
        EXPECT_EQ(name_of(get(name)), name);
      }
    });
  for (auto& one : all) one.join();
  EXPECT_LE(most_alive_, 2);
}

// ---- folders -----------------------------------------------------------------------------------

TEST(model_folder, has_files_and_folders_of_models) {
  const test::scratch_folder folder;
  const auto write = [&](const std::string& name) {
    std::filesystem::create_directories((folder.path() / name).parent_path());
    std::ofstream(folder.path() / name) << "x";
  };
  for (const char* name :
       {"one.gguf", "notes.txt", "two/model.gguf", "many/1.gguf", "many/2.gguf", "hf/config.json"})
    write(name);
  std::filesystem::create_directory(folder.path() / "empty");
  const auto found = models_in(folder.path().string());
  ASSERT_TRUE(found);
  std::string names;
  for (const model_source& one : *found) names += one.name + " ";
  EXPECT_EQ(names, "hf one two ");
  EXPECT_EQ((*found)[2].file, (folder.path() / "two/model.gguf").string());
  EXPECT_EQ((*found)[0].file, (folder.path() / "hf").string());
  EXPECT_TRUE(models_in("/no/such").error().message.contains("--models-dir"));
}

TEST_F(table, sees_files_that_come_and_go) {
  const test::scratch_folder folder;
  std::ofstream(folder.path() / "x.gguf") << "x";
  start({.folder = folder.path().string(), .memory = 1000 * unit});
  EXPECT_EQ(states(), "uuuuuu");
  EXPECT_EQ(name_of(get("x")), "x");
  std::ofstream(folder.path() / "y.gguf") << "x";
  std::filesystem::last_write_time(folder.path(), std::filesystem::file_time_type::clock::now());
  EXPECT_EQ(name_of(get("y")), "y");
  std::filesystem::remove(folder.path() / "x.gguf");
  std::filesystem::last_write_time(folder.path(),
                                   std::filesystem::file_time_type::clock::now() + 1s);
  EXPECT_EQ(table_->list().size(), 7U) << "x is loaded";
}

}  // namespace
}  // namespace bitnet::host
