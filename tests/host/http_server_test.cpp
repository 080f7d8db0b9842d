// The server over loopback, by a client that sends exactly what it is given: keep-alive,
// pipelining, bodies, streams, methods, keys, pages of browsers, the end, UNIX sockets, TLS.
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>

#include "../scratch_folder.hpp"
#include "http_fixture.hpp"

namespace bitnet::host::http {
namespace {

TEST_F(http_server, answers_one_request_after_the_other_on_a_connection) {
  start(with(small_limits()));
  raw_client client(port_);
  for (int i = 0; i < 3; ++i) {
    client.send(get_hello);
    const std::string got = client.read_answer();
    EXPECT_TRUE(begins(got, "HTTP/1.1 200 OK\r\n") && got.ends_with("\r\n\r\nhello a")) << got;
    EXPECT_TRUE(has(got, "X-Request-Id: ") && has(got, "Date: ")) << got;
  }
  client.send("GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(has(client.read_to_end(), "Connection: close\r\n"));
  EXPECT_TRUE(client.has_ended() && !client.was_reset());
}

TEST_F(http_server, answers_pipelined_requests_in_order) {
  start(with(small_limits()));
  raw_client client(port_);
  std::string all;
  for (int i = 0; i < 20; ++i)
    all += "GET /hello?" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n";
  client.send(all);
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(client.read_answer().ends_with("\r\n\r\nhello " + std::to_string(i)));
}

TEST_F(http_server, reads_bodies_by_length_and_by_chunks_in_pieces) {
  start(with(small_limits()));
  raw_client client(port_);
  // The client is slow, so that the server reads each piece before the next one comes. Nothing
  // reports that it has read one.
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
  std::this_thread::sleep_for(30ms);
  client.send("cde");
  EXPECT_TRUE(client.read_answer().ends_with("\r\n\r\nabcde"));
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r");
  std::this_thread::sleep_for(30ms);
  client.send("\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_TRUE(client.read_answer().ends_with("\r\n\r\nabcde"));
  client.send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  EXPECT_TRUE(client.read_answer().ends_with("\r\n\r\nok"));
}

TEST_F(http_server, streams_events_as_chunks) {
  start(with(small_limits()));
  raw_client client(port_);
  client.send("GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string got = client.read_until("\r\n0\r\n\r\n");
  EXPECT_TRUE(has(got, "Transfer-Encoding: chunked\r\n") &&
              has(got, "Content-Type: text/event-stream\r\n"));
  EXPECT_TRUE(
      got.ends_with("9\r\ndata: 0\n\n\r\n9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n"))
      << got;
  client.send("GET /events HTTP/1.0\r\n\r\n");  // without chunks, to the connection's end
  EXPECT_TRUE(client.read_to_end().ends_with("\r\n\r\ndata: 0\n\ndata: 1\n\ndata: 2\n\n"));
  EXPECT_TRUE(client.has_ended());
}

TEST_F(http_server, pings_a_stream_of_events_without_events) {
  start(with(small_limits()));
  raw_client client(port_);
  client.send("GET /silent HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(has(client.read_until(": ping\n\n"), ": ping\n\n"));
}

// Each end that a client can come to, while its answer is computed and while it is streamed.
// A byte now and then does not make a head's time longer.
TEST_F(http_server, answers_methods_and_paths) {
  start(with(small_limits()));
  raw_client client(port_);
  client.send("HEAD /hello HTTP/1.1\r\nHost: x\r\n\r\nGET /none HTTP/1.1\r\nHost: x\r\n\r\n");
  std::string got = client.read_until("\r\n\r\n");
  EXPECT_TRUE(begins(got, "HTTP/1.1 200 ") && has(got, "Content-Length: 6\r\n")) << got;
  got = client.read_answer();
  EXPECT_TRUE(begins(got, "HTTP/1.1 404 ") && has(got, "/openapi.json")) << got;
  client.send("DELETE /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  got = client.read_answer();
  EXPECT_TRUE(begins(got, "HTTP/1.1 405 ") && has(got, "Allow: GET, HEAD, OPTIONS\r\n")) << got;
  client.send("OPTIONS /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  got = client.read_answer();
  EXPECT_TRUE(begins(got, "HTTP/1.1 204 ") && has(got, "Allow: POST, OPTIONS\r\n")) << got;
  client.send("GET /open/a%20b HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(client.read_answer().ends_with("\r\n\r\na b"));
  client.send("GET /throw HTTP/1.1\r\nHost: x\r\n\r\n");
  got = client.read_answer();
  EXPECT_TRUE(begins(got, "HTTP/1.1 500 ") && !has(got, "on purpose")) << got;
}

TEST_F(http_server, gives_requests_an_id_and_takes_one_of_theirs) {
  start(with(small_limits()));
  raw_client client(port_);
  client.send("GET /hello HTTP/1.1\r\nHost: x\r\nX-Request-Id: abc-1\r\n\r\n");
  EXPECT_TRUE(has(client.read_answer(), "X-Request-Id: abc-1\r\n"));
  client.send("GET /hello HTTP/1.1\r\nHost: x\r\nX-Request-Id: a b;<\r\n\r\n");
  EXPECT_FALSE(has(client.read_answer(), "a b;<"));
}

TEST_F(http_server, asks_for_a_key) {
  policy rules = with(small_limits());
  ASSERT_TRUE(rules.keys.add("key-1") && rules.keys.add("key-2"));
  start(std::move(rules));
  const struct {
    std::string_view field;
    std::string_view status;
  } rows[] = {{"Authorization: Bearer key-1", "HTTP/1.1 200 "},
              {"authorization: bearer key-2", "HTTP/1.1 200 "},
              {"X-Api-Key: key-2", "HTTP/1.1 200 "},
              {"X-Api-Key: key-", "HTTP/1.1 401 "},
              {"X-Api-Key: key-12", "HTTP/1.1 401 "},
              {"X-Api-Key:", "HTTP/1.1 401 "},
              {"Authorization: Basic key-1", "HTTP/1.1 401 "},
              {"Accept: */*", "HTTP/1.1 401 "}};
  for (const auto& row : rows) {
    raw_client client(port_);
    client.send("GET /hello HTTP/1.1\r\nHost: x\r\n" + std::string(row.field) + "\r\n\r\n");
    EXPECT_TRUE(begins(client.read_answer(), row.status)) << row.field;
  }
  raw_client open(port_);
  open.send("GET /open/x HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(begins(open.read_answer(), "HTTP/1.1 200 "));
  api_keys others;
  ASSERT_TRUE(others.add("key-3"));
  on_io([&] { server_->set_keys(others, {}); });
  open.send("GET /hello HTTP/1.1\r\nHost: x\r\nX-Api-Key: key-1\r\n\r\n");
  EXPECT_TRUE(begins(open.read_answer(), "HTTP/1.1 401 "));
}

TEST_F(http_server, rejects_pages_that_are_not_listed) {
  policy rules = with(small_limits());
  ASSERT_TRUE(rules.origins.add("https://good.example"));
  EXPECT_FALSE(rules.origins.add("good.example/path"));
  start(std::move(rules));
  raw_client client(port_);
  client.send("GET /hello HTTP/1.1\r\nHost: x\r\nOrigin: https://bad.example\r\n\r\n");
  std::string got = client.read_answer();
  EXPECT_TRUE(begins(got, "HTTP/1.1 403 ") && !has(got, "Allow-Origin")) << got;
  client.send("GET /hello HTTP/1.1\r\nHost: x\r\nOrigin: https://good.example\r\n\r\n");
  got = client.read_answer();
  EXPECT_TRUE(begins(got, "HTTP/1.1 200 ")) << got;
  EXPECT_TRUE(has(got, "Access-Control-Allow-Origin: https://good.example\r\n")) << got;
  EXPECT_FALSE(has(got, "Allow-Credentials")) << got;
  client.send(
      "OPTIONS /echo HTTP/1.1\r\nHost: x\r\nOrigin: https://good.example\r\n"
      "Access-Control-Request-Method: POST\r\n\r\n");
  got = client.read_answer();
  EXPECT_TRUE(has(got, "Access-Control-Allow-Methods: POST, OPTIONS\r\n")) << got;
}

TEST_F(http_server, ends_in_order) {
  start(with(small_limits()));
  raw_client idle(port_), busy(port_);
  idle.send(get_hello);
  (void)idle.read_answer();
  busy.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(becomes([&] { return n_waiting_ == 1; }));
  on_io([&] { server_->stop(); });
  EXPECT_EQ(idle.read_to_end(), "");
  EXPECT_TRUE(idle.has_ended());
  EXPECT_FALSE(raw_client(port_).connected());
  EXPECT_EQ(n_gone_, 0);
  on_io([&] { server_->abort(); });
  EXPECT_EQ(n_gone_, 1);
}

TEST_F(http_server, listens_on_a_unix_socket_of_its_user) {
  const test::scratch_folder folder;
  const std::string path = (folder.path() / "socket").string();
  start(with(small_limits()), {.host = "", .unix_path = path});
  struct stat about{};
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0600U);
  raw_client client(path);
  client.send(get_hello);
  EXPECT_TRUE(client.read_answer().ends_with("hello a"));
  boost::asio::io_context other;
  const auto second = server::open(other, {}, {.host = "", .unix_path = path}, {});
  ASSERT_FALSE(second);
  EXPECT_TRUE(has(second.error().message, "another process listens there"));
}

TEST(http_listening, rejects_other_machines_without_a_key) {
  boost::asio::io_context io;
  const auto opened = server::open(io, {}, {.host = "0.0.0.0", .port = 0}, {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().exit_code, exit_code::usage);
  EXPECT_TRUE(has(opened.error().message, "--allow-unauthenticated"));
  policy with_key;
  ASSERT_TRUE(with_key.keys.add("k"));
  EXPECT_TRUE(server::open(io, std::move(with_key), {.host = "0.0.0.0", .port = 0}, {}));
  EXPECT_TRUE(
      server::open(io, {}, {.host = "0.0.0.0", .port = 0, .allow_unauthenticated = true}, {}));
}

TEST(http_listening, takes_sockets_that_the_process_was_given) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(::listen(fd, 8), 0);
  boost::asio::io_context io;
  policy rules;
  rules.routes.add({.method = "GET", .paths = {"/"}, .summary = "", .handle = [&](auto& given) {
                      given->reply({.body = "inherited"});
                    }});
  auto opened = server::open(io, std::move(rules), {.host = "", .inherited = {fd}}, {});
  ASSERT_TRUE(opened) << opened.error().message;
  raw_client client((*opened)->port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  io.run_for(300ms);
  EXPECT_TRUE(client.read_until("inherited").ends_with("inherited"));
}

TEST(http_listening, reads_what_systemd_says_of_sockets) {
  const std::string mine = std::to_string(::getpid());
  EXPECT_TRUE(inherited_sockets("", "")->empty());
  EXPECT_TRUE(inherited_sockets("1", "2")->empty()) << "of another process";
  EXPECT_TRUE(inherited_sockets(mine, "0")->empty());
  for (const char* wrong : {"", "-1", "x", "65", "1x"})
    EXPECT_FALSE(inherited_sockets(mine, wrong)) << wrong;
}

// ---- TLS ---------------------------------------------------------------------------------------

void write_certificate(const std::filesystem::path& folder) {
  EVP_PKEY* key = EVP_RSA_gen(2048);
  X509* certificate = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_sign(certificate, key, EVP_sha256());
  FILE* file = std::fopen((folder / "key.pem").c_str(), "w");
  PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  file = std::fopen((folder / "cert.pem").c_str(), "w");
  PEM_write_X509(file, certificate);
  std::fclose(file);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

TEST_F(http_server, speaks_tls) {
  const test::scratch_folder folder;
  write_certificate(folder.path());
  start(with(small_limits()), {.certificate_file = (folder.path() / "cert.pem").string(),
                               .key_file = (folder.path() / "key.pem").string()});
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  {
    raw_client client(port_);
    SSL* ssl = SSL_new(context);
    SSL_set_fd(ssl, client.fd());
    ASSERT_EQ(SSL_connect(ssl), 1);
    for (const std::string_view ask : {get_hello, std::string_view("GET /events HTTP/1.0\r\n\r\n")})
      ASSERT_GT(SSL_write(ssl, ask.data(), static_cast<int>(ask.size())), 0);
    std::string got;
    std::array<char, 4096> part{};
    int n = 0;
    while ((n = SSL_read(ssl, part.data(), part.size())) > 0)
      got.append(part.data(), static_cast<std::size_t>(n));
    EXPECT_TRUE(has(got, "\r\n\r\nhello aHTTP/1.1 200 ") || has(got, "hello aHTTP/1.0 200 "))
        << got;
    EXPECT_TRUE(got.ends_with("data: 2\n\n")) << got;
    EXPECT_EQ(SSL_get_error(ssl, n), SSL_ERROR_ZERO_RETURN);  // the end was said, not cut
    SSL_free(ssl);
  }
  {
    raw_client client(port_);
    SSL* ssl = SSL_new(context);
    SSL_set_fd(ssl, client.fd());
    ASSERT_EQ(SSL_connect(ssl), 1);
    constexpr std::string_view ask = "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n";
    ASSERT_GT(SSL_write(ssl, ask.data(), static_cast<int>(ask.size())), 0);
    EXPECT_TRUE(becomes([&] { return n_waiting_ == 1; }));
    client.reset();
    EXPECT_TRUE(becomes([&] { return n_gone_ == 1; }));
    SSL_free(ssl);
  }
  raw_client plain(port_);
  plain.send(get_hello);
  EXPECT_FALSE(has(plain.read_to_end(), "hello"));
  SSL_CTX_free(context);
  boost::asio::io_context io;
  const auto half = server::open(
      io, {}, {.port = 0, .certificate_file = (folder.path() / "cert.pem").string()}, {});
  ASSERT_FALSE(half);
  EXPECT_TRUE(has(half.error().message, "--ssl-key-file"));
}

}  // namespace
}  // namespace bitnet::host::http
