"""packaging/deploy/kubernetes: what its numbers promise each other, what a restricted namespace asks for, and schemas.

The schemas of Kubernetes' own kinds are those of the package kubernetes-validate. Those of PodMonitor, HTTPRoute and
InferencePool are of no package: of these the members are compared with what is written here, from their references.
"""

import glob
import os
import re
import subprocess
import sys
import unittest

import cluster
import support

cluster.use_packages()
try:
    import yaml
except ImportError:
    yaml = None

FOLDER = os.path.join(cluster.SOURCE, "packaging", "deploy", "kubernetes")
APP = {"app.kubernetes.io/name": "bitnet"}

# {member: of what}; a list has one entry for all of its items, and None is any value.
FOREIGN = {
    "PodMonitor": ("monitoring.coreos.com/v1", {
        "selector": {"matchLabels": None}, "podMetricsEndpoints": [{"port": str, "path": str, "interval": str}]}),
    "InferencePool": ("inference.networking.k8s.io/v1", {
        "selector": {"matchLabels": None}, "targetPorts": [{"number": int}],
        "endpointPickerRef": {"name": str, "port": {"number": int}, "failureMode": ("FailOpen", "FailClose")}}),
    "HTTPRoute": ("gateway.networking.k8s.io/v1", {
        "parentRefs": [{"name": str}], "rules": [{
            "matches": [{"path": {"type": ("Exact", "PathPrefix", "RegularExpression"), "value": str}}],
            "backendRefs": [{"group": str, "kind": str, "name": str}], "timeouts": {"request": str}}]})}


def load(*path):
    with open(os.path.join(FOLDER, *path), encoding="utf-8") as file:
        return yaml.safe_load(file)


def all_files():
    return sorted(glob.glob(os.path.join(FOLDER, "*", "*.yaml")))


@unittest.skipIf(yaml is None, "there is no PyYAML; pip install -r tests/deploy/requirements.txt")
class Kubernetes(unittest.TestCase):
    def container(self):
        spec = load("base", "deployment.yaml")["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        return spec, container

    def option(self, name):
        (value,) = [x.partition("=")[2] for x in self.container()[1]["args"] if x.startswith(f"--{name}=")]
        return value

    def test_a_pod_has_time_to_end(self):
        """The grace period begins with preStop; SIGTERM comes behind it."""
        spec, container = self.container()
        pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
        drain, grace = int(self.option("drain-timeout")), spec["terminationGracePeriodSeconds"]
        self.assertGreater(grace, pause + drain)
        ready = container["readinessProbe"]
        self.assertGreater(pause, ready["periodSeconds"] * ready["failureThreshold"], "others learn that it ends")

    def test_probes_ask_for_what_they_mean(self):
        container = self.container()[1]
        paths = {name: container[name]["httpGet"]["path"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
        self.assertEqual(paths, {"startupProbe": "/ready", "readinessProbe": "/ready", "livenessProbe": "/health"})
        self.assertGreaterEqual(container["startupProbe"]["periodSeconds"] * container["startupProbe"]["failureThreshold"],
                                300, "a large model takes minutes")
        (port,) = container["ports"]
        self.assertEqual((port["name"], str(port["containerPort"])), ("http", self.option("port")))
        for name in paths:
            self.assertEqual(container[name]["httpGet"]["port"], "http")

    def test_a_restricted_namespace_takes_the_pod(self):
        """The rules of the standard `restricted`."""
        spec, container = self.container()
        of_pod, own = spec["securityContext"], container["securityContext"]
        self.assertEqual((of_pod["runAsNonRoot"], of_pod["seccompProfile"]["type"]), (True, "RuntimeDefault"))
        self.assertGreater(of_pod["runAsUser"], 0)
        self.assertEqual((own["allowPrivilegeEscalation"], own["capabilities"]), (False, {"drop": ["ALL"]}))
        self.assertTrue(own["readOnlyRootFilesystem"])
        self.assertFalse(spec["automountServiceAccountToken"])
        for name in ("hostNetwork", "hostPID", "hostIPC"):
            self.assertNotIn(name, spec)
        self.assertEqual([set(x) for x in spec["volumes"]], [{"name", "emptyDir"}])

    def test_parts_name_each_other(self):
        deployment = load("base", "deployment.yaml")
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        self.assertLessEqual(APP.items(), labels.items())
        for selector in (deployment["spec"]["selector"]["matchLabels"], load("base", "service.yaml")["spec"]["selector"],
                         load("base", "disruption-budget.yaml")["spec"]["selector"]["matchLabels"],
                         load("base", "network-policy.yaml")["spec"]["podSelector"]["matchLabels"],
                         load("monitoring", "pod-monitor.yaml")["spec"]["selector"]["matchLabels"],
                         load("gateway", "inference-pool.yaml")["spec"]["selector"]["matchLabels"]):
            self.assertEqual(selector, APP)
        pool = load("gateway", "inference-pool.yaml")
        self.assertEqual(str(pool["spec"]["targetPorts"][0]["number"]), self.option("port"))
        self.assertEqual(load("gateway", "http-route.yaml")["spec"]["rules"][0]["backendRefs"][0]["name"],
                         pool["metadata"]["name"])
        autoscaler = load("monitoring", "autoscaler.yaml")["spec"]
        self.assertEqual(autoscaler["scaleTargetRef"]["name"], deployment["metadata"]["name"])
        self.assertLessEqual(deployment["spec"]["replicas"], autoscaler["maxReplicas"])
        (rule,) = load("monitoring", "adapter-rule.yaml")
        self.assertEqual(rule["name"]["as"], autoscaler["metrics"][0]["pods"]["metric"]["name"])
        self.assertTrue(rule["seriesQuery"].startswith("vllm:num_requests_waiting{"))
        for folder in ("base", "monitoring", "gateway"):
            listed = load(folder, "kustomization.yaml")
            names = listed["resources"] + [y for x in listed.get("configMapGenerator", []) for y in x["files"]]
            there = {os.path.basename(x) for x in all_files() if os.path.dirname(x).endswith(folder)}
            self.assertEqual(set(names), there - {"kustomization.yaml", "adapter-rule.yaml"})

    def test_the_picker_reads_rows_that_there_are(self):
        picker = load("gateway", "picker.yaml")
        plugins = {x["type"]: x.get("parameters", {}) for x in picker["plugins"]}
        (engine,) = plugins["core-metrics-extractor"]["engineConfigs"]
        labels = load("base", "deployment.yaml")["spec"]["template"]["metadata"]["labels"]
        self.assertEqual(engine.pop("name"), labels["llm-d.ai/engine-type"])
        with open(os.path.join(cluster.SOURCE, "docs", "reference", "metrics.md"), encoding="utf-8") as file:
            rows = set(re.findall(r"^\| `([a-z0-9_:]+)` \| gauge", file.read(), re.M))
        self.assertEqual(len(engine), 5)
        for name in engine.values():
            self.assertIn(name, rows)
        used = {x["pluginRef"] for profile in picker["schedulingProfiles"] for x in profile["plugins"]}
        for source in picker["dataLayer"]["sources"]:
            used |= {source["pluginRef"], *(x["pluginRef"] for x in source["extractors"])}
        self.assertEqual(used, set(plugins))

    def compare(self, given, wanted, where):
        if isinstance(wanted, dict):
            self.assertEqual(set(given), set(wanted), where)
            for name, of in wanted.items():
                self.compare(given[name], of, f"{where}.{name}")
        elif isinstance(wanted, list):
            self.assertTrue(given, where)
            for one in given:
                self.compare(one, wanted[0], where + "[]")
        elif isinstance(wanted, tuple):
            self.assertIn(given, wanted, where)
        elif wanted is not None:
            self.assertIs(type(given), wanted, where)

    def test_kinds_of_others_have_their_members(self):
        seen = set()
        for path in all_files():
            given = load(path)
            if not isinstance(given, dict) or given.get("kind") not in FOREIGN:
                continue
            version, wanted = FOREIGN[given["kind"]]
            self.assertEqual(given["apiVersion"], version)
            self.compare(given["spec"], wanted, given["kind"])
            seen.add(given["kind"])
        self.assertEqual(seen, set(FOREIGN))

    def test_schemas_of_kubernetes(self):
        try:
            import kubernetes_validate  # noqa: F401
        except ImportError:
            self.skipTest("there is no kubernetes-validate; pip install -r tests/deploy/requirements.txt")
        files = [x for x in all_files() if isinstance(load(x), dict) and "metadata" in load(x)
                 and load(x)["kind"] not in FOREIGN]
        self.assertEqual(len(files), 5)
        done = subprocess.run([sys.executable, "-m", "kubernetes_validate", "--strict", *files],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual((done.stdout + done.stderr).count("passed"), len(files), done.stdout + done.stderr)

    @support.needs_backend
    def test_the_program_takes_the_options(self):
        args = [x for x in self.container()[1]["args"] if not x.startswith(("--host", "--port"))]
        done = subprocess.run([support.PROGRAM, *args, "--host=127.0.0.1", "--port=0", "-m", "nosuch.gguf"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 3, done.stderr)  # all but the model is right
        self.assertIn("nosuch.gguf", done.stderr)


if __name__ == "__main__":
    support.main()
