// The conversations that this browser keeps in localStorage: an entry per conversation, and a limit
// for all of them.

import {checked_conversation, new_id} from "./conversation.js";

const prefix = "bitnet.conversation.";
const most_characters = 4000000;  // browsers allow about 5 million per origin
const most_conversations = 200;
const format = "bitnet-conversations";

export class conversation_store {
  // `storage`: localStorage, or null to keep nothing beyond the page.
  constructor(storage, {characters = most_characters, conversations = most_conversations} = {}) {
    this.storage = storage;
    this.bounds = {characters, conversations};
    this.texts = new Map();  // used without storage
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
      return null;  // from another version, or damaged
    }
  }

  // Returns {id, title, changed, size} of each, the last changed first. Unreadable entries stay
  // stored.
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
      return false;  // the browser allows less
    }
  }

  // Makes room by removing the least recently changed ones. {kept: false}: the conversation alone
  // exceeds the limit. `removed`: titles.
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

  // Returns the number of added conversations. Throws and adds nothing if the text is not such a
  // file. A conversation whose id exists with other contents becomes a copy.
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
