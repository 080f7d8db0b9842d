// Parses the text format of Prometheus, which /metrics has.

const sample = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;
const escapes = {
  "\\n": "\n",
  "\\\"": "\"",
  "\\\\": "\\"
};

// Maps names to lists of {labels, value}.
export function parse_metrics(text) {
  const out = new Map();
  for (const line of text.split("\n")) {
    const found = sample.exec(line);
    if (!found) continue;
    const labels = {};
    for (const [, name, value] of (found[2] ?? "").matchAll(label)) {
      labels[name] = value.replace(/\\[n"\\]/g, (x) => escapes[x]);
    }
    if (!out.has(found[1])) out.set(found[1], []);
    out.get(found[1]).push({labels, value: Number(found[3].replace("Inf", "Infinity"))});
  }
  return out;
}

// The sum of a name's samples; undefined if there are none.
export function total_of(metrics, name) {
  return metrics.get(name)?.reduce((sum, one) => sum + one.value, 0);
}
