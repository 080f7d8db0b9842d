// Sends requests to the page's own server, with the user's key, and turns failures into errors.

import {event_reader} from "./events.js";

const base = new URL("..", import.meta.url);
const key_name = {
  api: "bitnet.key",
  admin: "bitnet.admin-key"
};

// `status` 0: there was no answer. `retry_after`: seconds, or null. `kind`: "broken": a stream
// ended early; "malformed": the answer is not a stream; "refused": the server gave the reason.
export class api_error extends Error {
  constructor(message, {status = 0, retry_after = null, kind = "refused"} = {}) {
    super(String(message).slice(0, 2000));
    Object.assign(this, {status, retry_after, kind});
  }
}

// ---- keys, which last as long as the tab -------------------------------------------------------

export function key_of(kind) {
  try {
    return sessionStorage.getItem(key_name[kind]) ?? "";
  } catch { return ""; }
}

export function set_key(kind, key) {
  try {
    if (key)
      sessionStorage.setItem(key_name[kind], key);
    else
      sessionStorage.removeItem(key_name[kind]);
  } catch {
    // Without storage the key is asked for again.
  }
}

let ask_for_key = async () => "";
let asked = {};  // open questions, by kind of key

// `call` receives the kind of key and whether one was rejected; it returns a key, or "" for none.
export function ask_keys_by(call) { ask_for_key = call; }

async function new_key(kind, was_rejected) {
  asked[kind] ??= ask_for_key(kind, was_rejected).finally(() => {
    delete asked[kind];
  });
  const key = (await asked[kind]).trim();
  if (/[^\x21-\x7e]/.test(key)) {
    throw new api_error("A key has visible ASCII characters alone; this one has others.");
  }
  set_key(kind, key);
  return key;
}

// ---- requests ----------------------------------------------------------------------------------

async function error_of(answer) {
  let message = "";
  try {
    message = (await answer.json()).error.message;
  } catch {
    // The answer is not from the server itself, but from a proxy, for example.
  }
  const seconds = parseInt(answer.headers.get("Retry-After") ?? "", 10);
  return new api_error(message || `The server answered ${answer.status} ${answer.statusText}`, {
    status: answer.status,
    retry_after: Number.isFinite(seconds) ? seconds : null,
  });
}

async function send(path, {method, body, signal, kind, quiet}) {
  for (let given = key_of(kind), is_first = true;; is_first = false) {
    const headers = body === undefined ? {} : {"Content-Type": "application/json"};
    if (given) headers.Authorization = `Bearer ${given}`;
    let answer;
    try {
      answer = await fetch(new URL(path, base), {
        method,
        headers,
        signal,
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
        body: body === undefined ? undefined : JSON.stringify(body),
      });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new api_error("The server cannot be reached. Is it running?", {kind: "broken"});
    }
    if (answer.status !== 401 || quiet) return answer;
    const now = key_of(kind);
    // Another request may have received a key meanwhile.
    given = is_first && now !== given ? now : await new_key(kind, given !== "");
    if (!given) return answer;
  }
}

// Returns the answer's JSON, or its text. `quiet`: a missing key is an error instead of a question.
export async function ask(path, {method = "GET", body, signal, kind = "api", quiet = false} = {}) {
  const answer = await send(path, {method, body, signal, kind, quiet});
  if (!answer.ok) throw await error_of(answer);
  const text = await answer.text();
  if (!(answer.headers.get("Content-Type") ?? "").startsWith("application/json")) return text;
  try {
    return JSON.parse(text);
  } catch { throw new api_error("The server's answer is no JSON.", {kind: "malformed"}); }
}

function parsed(data) {
  let out = null;
  try {
    out = JSON.parse(data);
  } catch {
    // reported below
  }
  if (typeof out !== "object" || out === null) {
    throw new api_error("The server sent an event that is no JSON object.", {kind: "malformed"});
  }
  if (out.error) throw new api_error(out.error.message ?? "The server reported an error.");
  return out;
}

async function* texts_of(stream) {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const {done, value} = await reader.read();
      if (done) return;
      yield decoder.decode(value, {stream: true});
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new api_error("The connection broke off.", {kind: "broken"});
  } finally { reader.cancel().catch(() => {}); }
}

// Yields the chunks of an answer as they come, as arrays of objects.
export async function* chat(body, signal) {
  const answer = await send("v1/chat/completions", {method: "POST", body, signal, kind: "api"});
  if (!answer.ok) throw await error_of(answer);
  if (!(answer.headers.get("Content-Type") ?? "").startsWith("text/event-stream")) {
    throw new api_error("The server's answer is no stream of events.", {kind: "malformed"});
  }
  const events = new event_reader();
  for await (const text of texts_of(answer.body)) {
    const out = [];
    for (const data of events.take(text)) {
      if (data.trim() === "[DONE]") {
        if (out.length) yield out;
        return;
      }
      try {
        out.push(parsed(data));
      } catch (error) {
        if (out.length) yield out;
        throw error;
      }
    }
    if (out.length) yield out;
  }
  throw new api_error("The stream ended before the answer did.", {kind: "broken"});
}
