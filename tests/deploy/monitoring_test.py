"""packaging/deploy's alerts and board name rows that the server has, and the alerts fire when they should."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import cluster
import support

DEPLOY = os.path.join(cluster.SOURCE, "packaging", "deploy")
PROMETHEUS = os.path.join(DEPLOY, "prometheus")
# Words of Prometheus' own.
OWN = {"up"}


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def rows():
    """{name: (type, labels)} of the reference, which cli.metrics compares with a server."""
    page = read(cluster.SOURCE, "docs", "reference", "metrics.md")
    return {name: (kind, set(re.findall(r"`(\w+)`", labels)) | {"instance", "job", "model_name", "engine", "le"})
            for name, kind, labels in re.findall(r"^\| `([a-z0-9_:]+)` \| (\w+) \| (.*?) \|", page, re.M)}


def named(expression):
    """[(name, labels that are compared)] of the rows that an expression names."""
    found = re.findall(r"\b((?:vllm:|bitnet_|process_)[a-z0-9_]+|up)\b(?:\{(.*?)\})?", expression)
    return [(name, re.findall(r"(\w+) *[=!]~?", labels)) for name, labels in found]


class Monitoring(unittest.TestCase):
    def check(self, expression, known):
        names = named(expression)
        self.assertTrue(names, expression)
        for name, labels in names:
            if name in OWN:
                continue
            plain = re.sub("_(bucket|sum|count)$", "", name) if name not in known else name
            self.assertIn(plain, known, expression)
            kind, has = known[plain]
            self.assertEqual(name != plain, kind == "histogram", f"{name} is a {kind}")
            self.assertLessEqual(set(labels), has, expression)
            if kind == "counter" and "/" not in expression:
                self.assertRegex(expression, rf"(rate|increase)\({re.escape(name)}", "of a counter its growth counts")

    def test_the_board_names_rows_that_there_are(self):
        board = json.loads(read(DEPLOY, "grafana", "bitnet.json"))
        known, used = rows(), set()
        self.assertEqual(len({x["id"] for x in board["panels"]}), len(board["panels"]))
        for panel in board["panels"]:
            for target in panel["targets"]:
                self.check(target["expr"], known)
                used.update(re.sub("_(bucket|sum|count)$", "", x) for x, _ in named(target["expr"]))
                self.assertIn("$instance", target["expr"])
        self.assertGreater(len(used), 25)
        places = [(x["gridPos"]["x"], x["gridPos"]["y"]) for x in board["panels"]]
        self.assertEqual(len(set(places)), len(places))

    def test_alerts_name_rows_that_there_are(self):
        text, known = read(PROMETHEUS, "alerts.yaml"), rows()
        alerts = re.findall(r"- alert: (\w+)\n +expr: (?:>-\n)?(.*?)\n +(?:for|labels):", text, re.S)
        self.assertEqual([x for x, _ in alerts], re.findall(r"alert: (\w+)", text))
        for _, expression in alerts:
            self.check(expression, known)
        tested = re.findall(r"alertname: (\w+)", read(PROMETHEUS, "alerts-test.yaml"))
        self.assertEqual(tested, [x for x, _ in alerts])

    def promtool(self, *words):
        if not shutil.which("promtool"):
            self.skipTest("there is no promtool; apt-get install prometheus")
        done = subprocess.run(["promtool", *words], cwd=PROMETHEUS, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_promtool_takes_the_alerts(self):
        self.promtool("check", "rules", "alerts.yaml")
        self.promtool("check", "config", "prometheus.yaml")

    def test_alerts_fire_when_they_should(self):
        self.promtool("test", "rules", "alerts-test.yaml")


@support.needs_backend
class Scrape(unittest.TestCase):
    def test_prometheus_takes_what_the_server_gives(self):
        if not shutil.which("prometheus"):
            self.skipTest("there is no prometheus; apt-get install prometheus")
        with tempfile.TemporaryDirectory(prefix="bitnet-deploy-", ignore_cleanup_errors=True) as home:
            replica = cluster.Replica(home, ("127.0.0.1", cluster.free_port()), None)
            replica.start()
            self.addCleanup(replica.end, signal.SIGKILL)
            at = cluster.free_port()
            text = read(PROMETHEUS, "prometheus.yaml").replace("scrape_interval: 15s", "scrape_interval: 1s")
            text = re.sub(r"targets: \[.*\]", f'targets: ["127.0.0.1:{replica.address[1]}"]', text)
            with open(os.path.join(home, "prometheus.yml"), "w", encoding="utf-8") as file:
                file.write(text.replace("alerts.yaml", os.path.join(PROMETHEUS, "alerts.yaml")))
            process = subprocess.Popen(
                ["prometheus", f"--config.file={home}/prometheus.yml", f"--storage.tsdb.path={home}/data",
                 f"--web.listen-address=127.0.0.1:{at}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)

            def value(query):
                try:
                    answer = cluster.ask(("127.0.0.1", at), "GET", f"/api/v1/query?query={query}")[1]
                    return [x["value"][1] for x in json.loads(answer)["data"]["result"]]
                except (OSError, ValueError, KeyError):
                    return None

            cluster.wait_for(lambda: value("up") == ["1"], "it is scraped")
            names = json.loads(cluster.ask(("127.0.0.1", at), "GET", "/api/v1/label/__name__/values")[1])["data"]
            # Without a value there is no row yet.
            late = {"bitnet_requests_refused_total", "vllm:spec_decode_num_accepted_tokens_per_pos_total"}
            want = {x + ("_count" if kind == "histogram" else "") for x, (kind, _) in rows().items()} - late
            self.assertEqual(sorted(want - set(names)), [])
            self.assertEqual(value("vllm:num_requests_running"), ["0"])


if __name__ == "__main__":
    support.main()
