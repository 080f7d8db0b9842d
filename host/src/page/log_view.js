// Shows the messages of a conversation. Changes during an answer are drawn at intervals, which grow
// if drawing is slow.

import {path_of, version_of} from "./conversation.js";
import {by_id, icon_button} from "./dom.js";
import {message_view} from "./message_view.js";

const near_end = 80;       // pixels
const shortest_turn = 40;  // milliseconds
const turns_per_draw = 4;  // least interval, in multiples of a draw's time

export class log_view {
  constructor(actions) {
    this.actions = actions;
    this.place = by_id("log-place");
    this.list = by_id("log");
    this.views = [];
    this.conversation = null;
    this.timer = 0;
    this.cost = 0;
    this.follows = true;
    this.jump = icon_button("down", "To the end", () => this.to_end(), {id: "jump", hidden: true});
    by_id("jump-place").append(this.jump);
    this.place.addEventListener("scroll", () => this.look_at_scroll(), {passive: true});
  }

  look_at_scroll() {
    const {scrollTop, scrollHeight, clientHeight} = this.place;
    this.follows = scrollHeight - scrollTop - clientHeight < near_end;
    this.jump.hidden = this.follows;
  }

  to_end() {
    this.follows = true;
    this.place.scrollTop = this.place.scrollHeight;
    this.jump.hidden = true;
  }

  // Keeps the elements of messages that are shown already, with what the reader opened in them.
  show(conversation) {
    const is_other = conversation !== this.conversation;
    this.conversation = conversation;
    const path = path_of(conversation);
    let same = 0;
    while (!is_other && same < path.length && this.views[same]?.node.id === path[same].id) ++same;
    for (const view of this.views.splice(same)) view.item.remove();
    for (const node of path.slice(same)) {
      const view = new message_view(node, this.actions);
      this.views.push(view);
      this.list.append(view.item);
    }
    this.draw_all(path);
    this.go_on(shortest_turn);
    if (is_other || this.follows) this.to_end();
  }

  draw_all(path) {
    path.forEach((node, i) => {
      this.views[i].update(node, version_of(this.conversation, node), i + 1 === path.length);
    });
  }

  view_of(node) { return this.views.find((view) => view.node.id === node.id); }

  // Draws `node` now.
  draw(node) {
    clearTimeout(this.timer);
    this.timer = 0;
    const view = this.view_of(node);
    if (!view) return;
    const begin = performance.now();
    view.update(node, version_of(this.conversation, node), view === this.views.at(-1));
    if (this.follows)
      this.place.scrollTop = this.place.scrollHeight;
    else
      this.jump.hidden = false;
    this.cost = performance.now() - begin;
    this.go_on(Math.max(shortest_turn, this.cost));
  }

  // Draws the next part of a long text.
  go_on(pause) {
    const view = this.views.find((one) => one.has_more);
    if (view && !this.timer) this.timer = setTimeout(() => this.draw(view.node), pause);
  }

  // Draws `node` at the next interval.
  draw_later(node) {
    if (this.timer) return;
    this.timer =
      setTimeout(() => this.draw(node), Math.max(shortest_turn, turns_per_draw * this.cost));
  }

  // After a change of versions, the same button gets the focus.
  focus_versions(node, action) {
    const buttons = [...(this.view_of(node)?.item.querySelectorAll(".versions button") ?? [])];
    const wanted = buttons.find((one) => one.dataset.action === action && !one.disabled);
    (wanted ?? buttons.find((one) => !one.disabled))?.focus();
  }
}
