// Splits a stream of server-sent events, in pieces of any size, into the data of its events.

const longest = 8 * 1024 * 1024;  // characters of one event

export class event_reader {
  constructor() {
    this.rest = "";
    this.scanned = 0;  // leading characters of `rest` without a newline
    this.data = [];
    this.n = 0;
  }

  // Returns the data of each event that ends in `text`. Throws if one is too long.
  take(text) {
    const out = [];
    this.rest += text;
    for (;;) {
      const found = /\r\n|\n|\r(?!$)/g;
      found.lastIndex = Math.max(0, this.scanned - 1);
      const end = found.exec(this.rest);
      if (!end) break;
      const line = this.rest.slice(0, end.index);
      this.rest = this.rest.slice(found.lastIndex);
      this.scanned = 0;
      if (this.line(line)) out.push(this.event());
    }
    this.scanned = this.rest.length;
    if (this.rest.length + this.n > longest) throw new Error("an event of the stream is too long");
    return out;
  }

  // Returns true if the event is complete.
  line(text) {
    if (text === "") return this.data.length > 0;
    if (!text.startsWith("data:")) return false;  // a comment, or an unused field
    const value = text.slice(text[5] === " " ? 6 : 5);
    this.data.push(value);
    this.n += value.length;
    return false;
  }

  event() {
    const out = this.data.join("\n");
    this.data = [];
    this.n = 0;
    return out;
  }
}
