// Light or dark theme, or the system's choice.

import {icon, icon_button} from "./dom.js";

const order = ["auto", "light", "dark"];
const icons = {
  auto: "auto",
  light: "sun",
  dark: "moon"
};
const labels = {
  auto: "Colours: as the system",
  light: "Colours: light",
  dark: "Colours: dark"
};

export function theme_button(settings) {
  const show = () => {
    const theme = order.includes(settings.values.theme) ? settings.values.theme : "auto";
    document.documentElement.dataset.theme = theme;
    button.replaceChildren(icon(icons[theme]));
    button.title = labels[theme];
    button.setAttribute("aria-label", labels[theme]);
  };
  const button = icon_button("auto", "Colours", () => {
    settings.set("theme", order[(order.indexOf(settings.values.theme) + 1) % order.length]);
    show();
  }, {id: "theme"});
  show();
  return button;
}
