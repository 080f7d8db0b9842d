// The list of kept conversations: opens, deletes, exports and imports them.

import {confirm} from "./dialogs.js";
import {by_id, element, icon_button, toast} from "./dom.js";
import {text_nodes} from "./text.js";

const largest_file = 20 * 1024 * 1024;
const when = new Intl.DateTimeFormat("en-GB", {dateStyle: "medium", timeStyle: "short"});

function save_file(name, text) {
  const url = URL.createObjectURL(new Blob([text], {type: "application/json"}));
  const link = element("a", {href: url, download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

export class history_view {
  constructor(chat) {
    this.chat = chat;
    this.list = by_id("conversations");
    const file = element("input", {
      type: "file",
      accept: "application/json,.json",
      class: "unseen",
      tabindex: "-1",
      "aria-label": "File of conversations",
      id: "import-file"
    });
    file.addEventListener("change", () => this.read(file));
    by_id("history-foot")
      .append(icon_button("save", "Export all to a file", () => this.write()),
        icon_button("up", "Import from a file", () => file.click()), file,
        icon_button("bin", "Delete all conversations", () => this.forget_all()));
  }

  show() {
    const open = this.chat.conversation.id;
    const all = this.chat.store.list();
    const had_focus = this.list.contains(document.activeElement);
    this.list.replaceChildren(...all.map((one) => this.item(one, one.id === open)));
    if (had_focus) this.list.querySelector(".open button, button")?.focus();
    if (!all.length) this.list.append(element("li", {class: "none", text: "No conversations yet"}));
  }

  item({id, title, changed}, is_open) {
    const name = title || "Untitled";
    const open = () => {
      document.body.classList.remove("shows-history");
      this.chat.open(id);
    };
    return element("li", {class: is_open ? "open" : null},
      element("button", {
        type: "button",
        class: "conversation",
        title: when.format(changed),
        "aria-current": is_open ? "true" : null,
        on: {click: open},
      },
        element("bdi", {}, ...text_nodes(name))),
      icon_button("bin", `Delete "${name}"`, () => this.forget(id, name)));
  }

  async forget(id, name) {
    if (await confirm(`Delete "${name}"?`, "It cannot be brought back.", "Delete")) {
      this.chat.forget(id);
      this.list.querySelector("button")?.focus();
    }
  }

  async forget_all() {
    const n = this.chat.store.list().length;
    if (n &&
      await confirm(
        `Delete all ${n} conversations?`, "They cannot be brought back.", "Delete all")) {
      this.chat.forget_all();
    }
  }

  write() {
    const day = new Date().toISOString().slice(0, 10);
    save_file(`bitnet-conversations-${day}.json`, this.chat.store.export_text());
  }

  async read(input) {
    const [file] = input.files;
    input.value = "";
    if (!file) return;
    try {
      if (file.size > largest_file) throw new Error("The file is larger than 20 MiB.");
      const n = this.chat.store.import_text(await file.text());
      toast(n === 1 ? "1 conversation was added." : `${n} conversations were added.`);
    } catch (error) { toast(error.message); }
    this.show();
  }
}
