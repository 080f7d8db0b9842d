// The conversations that this browser keeps, in localStorage: one entry for each, and a bound for
// all.

import {checked_conversation, new_id} from "./conversation.js";

const prefix = "bitnet.conversation.";
const most_characters = 4000000;  // browsers give an origin about 5 million
const most_conversations = 200;
const format = "bitnet-conversations";

export class conversation_store {
  // `storage` as localStorage is; null: nothing is kept beyond the page.
  constructor(storage, {characters = most_characters, conversations = most_conversations} = {}) {
    this.storage = storage;
    this.bounds = {characters, conversations};
    this.texts = new Map();  // where there is no storage
  }

  keys() {
    if (!this.storage) return [...this.texts.keys()];
    const out = [];
    for (let i = 0; i < this.storage.length; ++i) {
      const key = this.storage.key(i);
      if (key.startsWith(prefix)) out.push(key);
    }
    return out;
  }

  read(key) { return this.storage ? this.storage.getItem(key) : this.texts.get(key) ?? null; }

  remove(id) {
    if (this.storage) this.storage.removeItem(prefix + id);
    this.texts.delete(prefix + id);
  }

  clear() {
    for (const key of this.keys()) this.remove(key.slice(prefix.length));
  }

  load(id) {
    const text = this.read(prefix + id);
    if (text === null) return null;
    try {
      return checked_conversation(JSON.parse(text));
    } catch {
      return null;  // of another version, or damaged
    }
  }

  // {id, title, changed, size} of each, what changed last first. Entries that cannot be read are
  // left.
  list() {
    const out = [];
    for (const key of this.keys()) {
      const found = this.load(key.slice(prefix.length));
      if (found) {
        const {title, changed} = found;
        out.push({id: key.slice(prefix.length), title, changed, size: this.read(key).length});
      }
    }
    return out.sort((a, b) => b.changed - a.changed);
  }

  put(key, text) {
    try {
      if (this.storage)
        this.storage.setItem(key, text);
      else
        this.texts.set(key, text);
      return true;
    } catch {
      return false;  // the browser gives less room
    }
  }

  // Makes room by removing what changed longest ago. {kept: false}: the conversation alone is
  // larger than the bound. `removed`: titles.
  save(conversation) {
    const text = JSON.stringify(conversation);
    const key = prefix + conversation.id;
    const removed = [];
    if (text.length > this.bounds.characters) return {kept: false, removed};
    const others = this.list().filter((one) => one.id !== conversation.id);
    let size = text.length + others.reduce((sum, one) => sum + one.size, 0);
    const drop_oldest = () => {
      const oldest = others.pop();
      size -= oldest.size;
      this.remove(oldest.id);
      removed.push(oldest.title);
    };
    while (others.length &&
      (size > this.bounds.characters || others.length >= this.bounds.conversations)) {
      drop_oldest();
    }
    while (!this.put(key, text)) {
      if (!others.length) return {kept: false, removed};
      drop_oldest();
    }
    return {kept: true, removed};
  }

  // ---- files -----------------------------------------------------------------------------------

  export_text() {
    const conversations = this.list().map((one) => this.load(one.id));
    return JSON.stringify({format, version: 1, conversations}, null, 1);
  }

  // How many were added. Throws where the file is none, and adds nothing then. One whose id is
  // taken by another content becomes a copy.
  import_text(text) {
    let file;
    try {
      file = JSON.parse(text);
    } catch (error) { throw new Error(`The file is no JSON: ${error.message}`); }
    if (file?.format !== format || !Array.isArray(file.conversations)) {
      throw new Error(`The file has no conversations: expected {"format": "${format}", ...}`);
    }
    if (file.version !== 1)
      throw new Error(`The file has version ${file.version}; this page reads version 1`);
    const all =
      file.conversations.map((one, i) => checked_conversation(one, `conversations[${i}]`));
    let n = 0;
    for (const one of all) {
      const there = this.read(prefix + one.id);
      if (there === JSON.stringify(one)) continue;
      if (there !== null) one.id = new_id();
      if (!this.save(one).kept)
        throw new Error(`There is no room for "${one.title}"; ${n} were added before it`);
      ++n;
    }
    return n;
  }
}

// localStorage, or null where the browser refuses it.
export function browser_storage() {
  try {
    localStorage.setItem("bitnet.test", "1");
    localStorage.removeItem("bitnet.test");
    return localStorage;
  } catch { return null; }
}
