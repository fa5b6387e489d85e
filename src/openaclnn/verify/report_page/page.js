// SPDX-License-Identifier: Apache-2.0
// The address says what is shown: #/elu/FLOAT is a cell, #/elu/FLOAT/3 its case of this number. The keys of
// the matrix.

// ---- the address, the matrix ----

const links = [...document.querySelectorAll("#matrix td a")];
let current = null;
function route() {
  const found = /^#\/([^/]+)\/([^/]+)(?:\/(\d+))?$/.exec(decodeURIComponent(location.hash));
  const chosen = found && groups.get(`${found[1]}/${found[2]}`);
  for (const link of links) link.removeAttribute("aria-current");
  if (!chosen) {
    detail.hidden = true;
    return;
  }
  current = links.find((link) => link.getAttribute("href") === `#/${found[1]}/${found[2]}`);
  if (current) current.setAttribute("aria-current", "true");
  const place = found[3] == null ? -1 : chosen.cases.findIndex((one) => one.number === Number(found[3]));
  group(chosen, place < 0 ? null : place);
}
function close() {
  history.pushState(null, "", location.pathname + location.search);
  route();
  (current || links[0]).focus();
}
addEventListener("hashchange", route);
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !detail.hidden && event.target.type !== "search") close();
});
document.getElementById("matrix").addEventListener("keydown", (event) => {
  const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  const cell = event.target.closest("td");
  if (!by || !cell) return;
  let row = cell.parentElement.rowIndex;
  let column = cell.cellIndex;
  const table = cell.closest("table");
  do {
    row += by[0];
    column += by[1];
    const link = table.rows[row]?.cells[column]?.querySelector("a");
    if (link) {
      link.focus();
      event.preventDefault();
      return;
    }
  } while (table.rows[row]?.cells[column]);
});

route();
