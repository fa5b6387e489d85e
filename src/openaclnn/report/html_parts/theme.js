// SPDX-License-Identifier: Apache-2.0
// The button that changes the theme; without scripts it stays hidden.

const theme = document.getElementById("theme");
const THEMES = ["system", "light", "dark"];
theme.hidden = false;
theme.addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme || "system") + 1) % 3];
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  theme.textContent = `Theme: ${next}`;
});
