// Makes elements. Text of models and users only becomes text nodes; nothing here parses HTML.

// fields: attributes, and `text`, `class`, and `on` with listeners by event. An attribute or a
// child that is undefined, null or false is left out.
export function element(tag, fields = {}, ...inside) {
  const {on, text, dir, ...attributes} = fields;
  const out = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    out.setAttribute(name, value === true ? "" : String(value));
  }
  for (const [event, call] of Object.entries(on ?? {})) out.addEventListener(event, call);
  if (text !== undefined) out.textContent = text;
  out.append(...inside.filter((one) => one !== null && one !== undefined && one !== false));
  // Set last: with dir=auto a browser determines the direction again for each added child.
  if (dir) out.dir = dir;
  return out;
}

export function by_id(id) { return document.getElementById(id); }

// Paths in a square of 24 by 24.
const strokes = {
  menu: "M4 6h16M4 12h16M4 18h16",
  plus: "M12 5v14M5 12h14",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  gear: "M4 7h10M18 7h2M4 17h2M10 17h10M14 4.5v5M10 14.5v5",
  chip: "M7 7h10v10H7zM10 3v4M14 3v4M10 17v4M14 17v4M3 10h4M3 14h4M17 10h4M17 14h4",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2" +
    "M5 19l2-2M17 7l2-2",
  moon: "M20 14.5A8.5 8.5 0 1 1 9.5 4a7 7 0 0 0 10.5 10.5z",
  auto: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 3v18M12 8h8M12 12h9M12 16h8",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  again: "M20 12a8 8 0 1 1-2.5-5.8M20 3v4h-4",
  left: "M15 5l-7 7 7 7",
  right: "M9 5l7 7-7 7",
  down: "M12 5v14M6 13l6 6 6-6",
  bin: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10 11v5M14 11v5",
  close: "M6 6l12 12M18 6L6 18",
  keys: "M3 7h18v10H3zM7 11h.01M11 11h.01M15 11h.01M8 14h8",
  up: "M12 15V4M7 9l5-5 5 5M4 20h16",
  save: "M12 4v11M7 10l5 5 5-5M4 20h16",
};

export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const out = document.createElementNS(space, "svg");
  out.setAttribute("viewBox", "0 0 24 24");
  out.setAttribute("class", "icon");
  out.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", strokes[name]);
  out.append(path);
  return out;
}

// A button that shows an icon; its label is read by screen readers and shown as a tooltip.
export function icon_button(name, label, call, fields = {}) {
  const more = {type: "button", class: "icon-button", "aria-label": label, title: label, ...fields};
  return element("button", {...more, on: {click: call}}, icon(name));
}

// Makes a screen reader say `text`.
export function announce(text) {
  by_id("announcer").replaceChildren(element("p", {text: text.slice(0, 4000)}));
}

let ending = 0;
// Shows `text` at the bottom for some seconds.
export function toast(text) {
  const place = by_id("toast");
  place.textContent = text;
  place.hidden = false;
  clearTimeout(ending);
  ending = setTimeout(() => {
    place.hidden = true;
  }, 6000);
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied.");
  } catch {
    toast("The browser does not let this page copy. Select the text and copy it yourself.");
  }
}
