"""A second verifier of receipts, written only from docs/reference/receipts.md and receipt.schema.json.

It shares no code with the program: ed25519 is that of RFC 8032, the schema is read as JSON Schema, and
the sums are hashlib's. `python3 receipts.py KEY.pub.pem RECEIPT...` prints what it finds.
"""

import base64
import binascii
import hashlib
import json
import math
import os
import re
import sys

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "reference",
                      "receipt.schema.json")
PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:bitnet:inference-receipt:v1"
MOST_SHAPE_FINDINGS = 64


class Unreadable(Exception):
    """It is no receipt at all."""


# ---- ed25519, RFC 8032, section 5.1 -----------------------------------------------------------------

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def multiply(scalar, point):
    out = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            out = add(out, point)
        point, scalar = add(point, point), scalar >> 1
    return out


def x_of(y, sign):
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    if square == 0:
        return None if sign else 0
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P:
        return None
    return P - x if x & 1 != sign else x


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE = (x_of(BASE_Y, 0), BASE_Y, 1, x_of(BASE_Y, 0) * BASE_Y % P)


def point_in(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    x = x_of(y, sign)
    return None if x is None else (x, y, 1, x * y % P)


def is_signed_by(message, key, signature):
    """Whether the owner of the key (32 bytes) has signed the message."""
    if len(key) != 32 or len(signature) != 64:
        return False
    owner, r = point_in(key), point_in(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if owner is None or r is None or s >= ORDER:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ORDER
    left, right = multiply(s, BASE), add(r, multiply(h, owner))
    return (left[0] * right[2] - right[0] * left[2]) % P == 0 and (left[1] * right[2] - right[1] * left[2]) % P == 0


def key_in(pem):
    """The last 32 bytes of the DER of a public key, RFC 8410."""
    body = "".join(line for line in pem.splitlines() if not line.startswith("-----"))
    der = base64.b64decode(body)
    if len(der) != 44 or der[:12] != bytes.fromhex("302a300506032b6570032100"):
        raise ValueError("no public ed25519 key")
    return der[12:]


# ---- reading ----------------------------------------------------------------------------------------

def without_repeats(pairs):
    out = dict(pairs)
    if len(out) != len(pairs):
        raise Unreadable("a member is there twice")
    return out


def read_object(text):
    try:
        out = json.loads(text, object_pairs_hook=without_repeats,
                         parse_constant=lambda word: (_ for _ in ()).throw(Unreadable(word)))
    except (ValueError, RecursionError) as e:
        raise Unreadable(str(e)) from e
    if not isinstance(out, dict):
        raise Unreadable("no object")
    return out


def decoded(text):
    try:
        out = base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error) as e:
        raise Unreadable(str(e)) from e
    if base64.b64encode(out).decode() != text:
        raise Unreadable("other base64 than is written")
    return out


# ---- the schema, as far as ours goes ----------------------------------------------------------------

TYPES = {"string": lambda v: isinstance(v, str), "boolean": lambda v: isinstance(v, bool),
         "null": lambda v: v is None, "array": lambda v: isinstance(v, list),
         "object": lambda v: isinstance(v, dict),
         "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
         "integer": lambda v: isinstance(v, int) and not isinstance(v, bool)}


def fits(value, schema):
    """The keywords that a value alone decides; not those of its members."""
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(TYPES[name](value) for name in types):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"].replace("$", r"\Z"), value):
            return False
        if len(value) > schema.get("maxLength", len(value)):
            return False
    if TYPES["number"](value):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            return False
    return not isinstance(value, list) or len(value) <= schema.get("maxItems", len(value))


def shape_errors(value, schema, path, required=()):
    for name, of in schema.get("properties", {}).items():
        field = f"{path}.{name}" if path else name
        if name not in value:
            if name in schema.get("required", ()) or name in required:
                yield field
            continue
        member = value[name]
        items = of.get("items", {})
        plain = "properties" not in items and items.get("type") != "object"
        if not fits(member, of) or (isinstance(member, list)
                                    and not all(fits(e, items) if plain else isinstance(e, dict) for e in member)):
            yield field
        elif isinstance(member, dict):
            yield from shape_errors(member, of, field)
        elif isinstance(member, list) and not plain:
            for i, element in enumerate(member):
                yield from shape_errors(element, items, f"{field}[{i}]")


def check_shape(predicate):
    with open(SCHEMA, encoding="utf-8") as file:
        schema = json.load(file)
    late = schema["allOf"][0]["then"]["required"] if predicate.get("status") == "ok" else ()
    return list(shape_errors(predicate, schema, "", late))[:MOST_SHAPE_FINDINGS]


# ---- rules ------------------------------------------------------------------------------------------

class Judge:
    def __init__(self, predicate):
        self.p, self.found = predicate, []

    def reject(self, rule, field, level="error"):
        self.found.append((level, rule, field))

    def require(self, rule, holds, field):
        if not holds:
            self.reject(rule, field)
        return holds

    # What the model is.
    def subject(self, subject):
        model = self.p.get("model")
        if not isinstance(model, dict):
            self.require("subject", isinstance(subject, list) and len(subject) == 1, "subject")
            return
        files = model["files"]
        if not self.require("subject", files, "model.files"):
            return
        by_name = {file["name"]: file["sha256"] for file in files}
        whole = hashlib.sha256(b"".join(bytes.fromhex(by_name[name]) for name in
                                        sorted(by_name, key=lambda n: n.encode()))).hexdigest()
        self.require("subject", model["digest"] == whole, "model.digest")
        self.require("subject", self.p["model_sha"] == files[0]["sha256"], "model_sha")
        wanted = [(model["name"], model["digest"])] + [(f["name"], f["sha256"]) for f in files]
        wanted = [{"name": name, "digest": {"sha256": digest}} for name, digest in wanted]
        for i, one in enumerate(wanted):
            if not isinstance(subject, list) or i >= len(subject) or subject[i] != one:
                self.reject("subject", f"subject[{i}]")
                return
        self.require("subject", len(subject) == len(wanted), f"subject[{len(wanted)}]")

    def covered(self):
        out = dict.fromkeys(("ops_total", "ops_on_selected", "ops_elsewhere", "fused", "optimised", "reference",
                             "unlisted"), 0)
        for row in self.p["kernel_stats"]:
            out["ops_total"] += row["calls"]
            out["ops_on_selected" if row["device"] == self.p["selection"].get("device", "")
                else "ops_elsewhere"] += row["calls"]
            level = row.get("level")
            out[level if level in ("fused", "optimised", "reference") else "unlisted"] += row["calls"]
        return out

    def path(self):
        ran = False
        for row in self.p["kernel_stats"]:
            if row["calls"] == 0:
                continue
            ran = True
            fake = row["place"] < len(self.p["devices"]) and self.p["devices"][row["place"]]["fake"]
            if fake or "mock" in "".join(c.lower() if c.isascii() else c for c in row["id"]):
                return "mock"
        return "real" if ran else "none"

    def row(self, i, row):
        devices, field = self.p["devices"], f"kernel_stats[{i}]"
        if not self.require("counters", row["place"] < len(devices), field + ".place"):
            return False
        for name in ("backend", "device"):
            if not self.require("counters", row[name] == devices[row["place"]][name], f"{field}.{name}"):
                return False
        return self.require("counters", row["calls"] != 0, field + ".calls")

    def device(self, i, device):
        plugins, field = self.p["plugins"], f"devices[{i}]"
        return (self.require("counters", device["place"] == i, field + ".place")
                and self.require("counters", device["plugin"] < len(plugins)
                                 and plugins[device["plugin"]]["name"] == device["backend"], field + ".plugin")
                and self.require("counters", device["device"].startswith(device["backend"] + ":"),
                                 field + ".device"))

    def counters(self):
        if not all(self.row(i, row) for i, row in enumerate(self.p["kernel_stats"])):
            return
        all(self.device(i, device) for i, device in enumerate(self.p["devices"]))
        ids = list(dict.fromkeys(row["id"] for row in self.p["kernel_stats"]))
        self.require("counters", self.p["kernels"] == ids, "kernels")
        for name, value in self.covered().items():
            if not self.require("counters", self.p["coverage"][name] == value, f"coverage.{name}"):
                break
        self.require("counters", self.p["compute_path"] == self.path(), "compute_path")

    def selection(self):
        p, s = self.p, self.p["selection"]
        self.require("selection", p["status"] != "failed", "status")
        self.require("selection", (p["status"] == "failed") == ("failure" in p), "failure")
        if p["status"] == "failed":
            return
        self.require("selection", s.get("fake") is not True, "selection.fake")
        for i, device in enumerate(p["devices"]):
            self.require("selection", not device["fake"], f"devices[{i}].fake")
        self.require("selection", p["compute_path"] == "real", "compute_path")
        self.require("selection", p["backend"] == s["selected"], "backend")
        self.require("selection", s.get("device", "").startswith(s["selected"] + ":"), "selection.device")
        self.require("selection", s["selected"] in s["detected"], "selection.detected")
        line = f"requested={s['requested']} detected=[{','.join(s['detected'])}] selected={s['selected']}"
        self.require("selection", p["backend_summary"] == line, "backend_summary")
        drivers = [d.get("driver_version") for d in p["devices"] if d["device"] == s.get("device", "")]
        self.require("selection", p["driver_version"] == (drivers[-1] if drivers else None), "driver_version")
        self.executed()

    def executed(self):
        p = self.p
        selected = p["selection"].get("device", "")
        moves = p.get("moves", [])
        known = {selected, *(part["device"] for part in p.get("parts", [])),
                 *(move[end] for move in moves for end in ("from", "to"))}
        for i, row in enumerate(p["kernel_stats"]):
            if not self.require("selection", row["device"] in known, f"kernel_stats[{i}].device"):
                return
        self.require("selection", self.covered()["ops_on_selected"] or moves, "selection.device")

    def tokens(self, what, sum_name):
        of = self.p[what]
        self.require("answer", of["sha256"] == self.p[sum_name], sum_name)
        if "ids" not in of:
            return
        if not self.require("answer", len(of["ids"]) == of["tokens"], f"{what}.ids"):
            return
        text = bytes.fromhex(self.p["salt"]) + what.encode() + b"\n"
        text += b"".join(token.to_bytes(4, "little") for token in of["ids"])
        self.require("answer", hashlib.sha256(text).hexdigest() == of["sha256"], f"{what}.ids")

    def answer(self):
        p = self.p
        if p["status"] == "failed":
            return
        self.tokens("prompt", "prompt_sha256")
        self.tokens("output", "output_token_sha256")
        times, n = p["timings"], p["tokens_generated"]
        self.require("answer", p["output"]["tokens"] == n, "tokens_generated")
        self.require("answer", times["generated_tokens"] == n, "timings.generated_tokens")
        self.require("answer", times["prompt_tokens"] <= p["prompt"]["tokens"], "timings.prompt_tokens")
        rate = n * 1000 / times["generate_ms"] if n and times["generate_ms"] > 0 else 0
        for name in ("tokens_per_second", "tokens_per_sec"):
            self.require("answer", math.isclose(p[name], rate, rel_tol=1e-6), name)
        self.require("answer", times["wall_ms"] + 1 >= times["prompt_ms"] + times["generate_ms"],
                     "timings.wall_ms")
        self.shares(p.get("batch", {}))

    def shares(self, batch):
        """Of a request whose steps others shared."""
        if "step_tokens" not in batch and "mean_sequences" not in batch:
            return
        own, all_of_it = batch["tokens"], batch.get("step_tokens", 0)
        most, mean = batch["sequences"], batch.get("mean_sequences", 0)
        self.require("answer", own <= all_of_it, "batch.tokens")
        self.require("answer", batch["steps"] <= own, "batch.steps")
        self.require("answer", most > 1 or own == all_of_it, "batch.step_tokens")
        self.require("answer", mean <= most and (mean >= 1 or own == 0), "batch.mean_sequences")

    def gates(self):
        for i, gate in enumerate(self.p["gates"]):
            holds = {"min-": gate["measured"] >= gate["limit"], "max-": gate["measured"] <= gate["limit"]}
            if gate["name"][:4] in holds:
                self.require("gates", gate["passed"] == holds[gate["name"][:4]], f"gates[{i}].passed")
            if not gate["passed"]:
                self.reject("gates", f"gates[{i}].passed", "gate")

    def names(self):
        """Of the ancestor's, which follow from the selected device."""
        selected = [d for d in self.p["devices"] if d["device"] == self.p["selection"].get("device", "")]
        driver = selected[-1].get("driver_version", "") if selected else ""
        arch = selected[-1].get("arch", "") if selected else ""
        version = re.match(r"CUDA ([0-9.]*)", driver)
        wanted = {"cuda_version": version[1] if version else None,
                  "sm_arch": arch if arch.startswith("sm_") else None}
        for name, value in wanted.items():
            self.require("names", name not in self.p or self.p[name] == value, name)

    def files(self, model):
        for i, plugin in enumerate(self.p["plugins"]):
            if not os.path.isabs(plugin["path"]) or not os.path.isfile(plugin["path"]):
                self.reject("plugin", f"plugins[{i}].sha256", "note")
            else:
                self.require("plugin", sum_of(plugin["path"]) == plugin["sha256"], f"plugins[{i}].sha256")
        if model is not None:
            for i, file in enumerate(self.p.get("model", {}).get("files", [])):
                self.require("model", sum_of(model) == file["sha256"], f"model.files[{i}].sha256")


def sum_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def check_signatures(envelope, payload, keys, allow_unsigned):
    signatures = envelope["signatures"]
    if not signatures:
        return [("note" if allow_unsigned else "error", "signature", "signatures")]
    message = f"DSSEv1 {len(envelope['payloadType'].encode())} {envelope['payloadType']} {len(payload)} ".encode()
    message += payload
    for one in signatures:
        for key in keys:
            if one.get("keyid") == key.hex() and is_signed_by(message, key, decoded(one["sig"])):
                return []
    known = signatures[0].get("keyid") in [key.hex() for key in keys]
    return [("error", "signature", "signatures[0].sig" if known else "signatures[0].keyid")]


def judge(text, keys, allow_unsigned=False, model=None, gpu=False, fused=None):
    """[(level, rule, field)] of a receipt's bytes; `keys` are public keys of 32 bytes."""
    envelope = read_object(text)
    if not all(isinstance(envelope.get(name), str) for name in ("payloadType", "payload")):
        raise Unreadable("no envelope")
    if not isinstance(envelope.get("signatures"), list):
        raise Unreadable("no signatures")
    payload = decoded(envelope["payload"])
    for one in envelope["signatures"]:
        if not isinstance(one, dict) or not isinstance(one.get("sig"), str):
            raise Unreadable("no signature")
        decoded(one["sig"])
    statement = read_object(payload)
    found = check_signatures(envelope, payload, keys, allow_unsigned)
    frame = [field for field, is_so in (("payloadType", envelope["payloadType"] == PAYLOAD_TYPE),
                                        ("_type", statement.get("_type") == STATEMENT_TYPE),
                                        ("predicateType", statement.get("predicateType") == PREDICATE_TYPE))
             if not is_so]
    predicate = statement.get("predicate")
    if not frame and not isinstance(predicate, dict):
        frame = ["predicate"]
    if frame:
        return found + [("error", "statement", field) for field in frame]
    if wrong := check_shape(predicate):
        return found + [("error", "schema", field) for field in wrong]
    of = Judge(predicate)
    of.subject(statement.get("subject"))
    for rules in (of.counters, of.selection, of.answer, of.gates):
        rules()
    of.files(model)
    classes = {predicate["devices"][row["place"]]["class"] for row in predicate["kernel_stats"]
               if row["place"] < len(predicate["devices"])}
    if gpu and "gpu" not in classes:
        of.reject("gpu-kernels", "kernel_stats", "gate")
    covered = of.covered()
    if fused is not None and 100 * covered["fused"] < fused * max(covered["ops_total"], 1):
        of.reject("fused", "coverage.fused", "gate")
    found += of.found
    if not any(level == "error" for level, _, _ in found):
        of.found = []
        of.names()
        found += of.found
    return found


def main():
    with open(sys.argv[1], encoding="ascii") as file:
        keys = [key_in(file.read())]
    bad = False
    for path in sys.argv[2:]:
        with open(path, "rb") as file:
            for level, rule, field in judge(file.read(), keys):
                bad = bad or level == "error"
                print(f"{path}: {level} {rule}: {field}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
