// SPDX-License-Identifier: Apache-2.0
// The cases behind a cell of the matrix, and what is inside one.

// ---- a case ----

function worstTable(result) {
  if (!result.worst) return null;
  const names = Object.keys(result.worst[0][1]);
  return el("div", { class: "scroll" }, el("table", { class: "worst" },
    el("thead", null, el("tr", null, ["index", ...names, "expected", "got", "ulp"].map((h) => el("th", { scope: "col" }, h)))),
    el("tbody", null, result.worst.map(([index, given, due, got, ulp]) => el("tr", { class: "mono" },
      [`[${index.join(", ")}]`, ...names.map((name) => given[name]), due, got, figure(number(ulp))].map((text) => el("td", null, text)))))));
}

function command(text) {
  const code = el("code", null, text);
  const button = el("button", { type: "button", onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      getSelection().selectAllChildren(code);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  } }, "Copy");
  return el("div", { class: "command" }, code, button);
}
const quoted = (id) => (/^[\w@%+=:,./-]+$/.test(id) ? id : `'${id.replaceAll("'", `'"'"'`)}'`);

function caseBody(one) {
  const facts = [["id", one.id], ["shape", one.shape], ["layout", one.layout], ["values", one.values], ["attributes", one.attributes], ["with", one.note]];
  return el("div", null,
    el("dl", { class: "facts-list" }, facts.filter(([, value]) => value).map(([name, value]) => el("div", null, el("dt", null, name), el("dd", null, value)))),
    one.results.map((result) => el("div", { class: `result ${VERDICT[result.status]}` },
      el("h3", { class: VERDICT[result.status] }, sign(result.status), `${result.by.map((i) => data.providers[i]).join(", ")}: ${STATUS[result.status]}${result.kind ? `, ${result.kind}` : ""}`),
      result.sentence ? el("p", null, result.sentence) : null,
      panels([[result, null]], null),
      result.worst ? el("h3", null, result.worst.length > 1 ? "Worst elements" : "Worst element") : null,
      worstTable(result),
      result.by.map((i) => command(`${data.commands[data.providers[i]]} ${quoted(one.id)}`)))));
}

// ---- a cell of the matrix ----

function group(chosen, place) {
  const key = `${chosen.op}/${chosen.dtype}`;
  const state = { by: "all", failed: false, text: "", shown: PAGE };
  const row = data.operators[chosen.op];
  const summary = chosen.cases.map((one, i) => {
    const text = [one.id, one.shape, one.layout, one.values, one.attributes, one.note, ...one.results.map((r) => `${r.kind || ""} ${r.sentence || ""}`)].join(" ");
    return { one, i, text: text.toLowerCase() };
  });
  const by = (one) => one.results.filter((r) => state.by === "all" || r.by.some((i) => data.providers[i] === state.by));
  const heading = el("h2", { id: "detail-title", tabindex: "-1" }, `${chosen.op} ${chosen.dtype}`);
  const charts = el("div");
  const body = el("tbody");
  const status = el("span", { class: "count", role: "status" });
  const more = el("button", { type: "button", onclick: () => { state.shown += 4 * PAGE; list(); } });
  const opened = new Set(place == null ? [] : [place]);

  function list() {
    const words = state.text.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [];
    for (const { one, i, text } of summary) {
      const results = by(one);
      if (!results.length || !words.every((word) => text.includes(word))) continue;
      const verdict = Math.min(...results.map((r) => (r.status === FAILED ? -1 : r.status)));
      if (state.failed && verdict !== -1) continue;
      const worst = results.reduce((best, r) => (r.unit && (!best || number(r.error) > number(best.error)) ? r : best), null);
      found.push({ one, i, verdict, worst, distance: worst ? number(worst.error) : -1 });
    }
    found.sort((a, b) => (opened.has(b.i) && b.i === place) - (opened.has(a.i) && a.i === place) || a.verdict - b.verdict || b.distance - a.distance || a.i - b.i);
    const shown = found.slice(0, state.shown);
    body.replaceChildren(...shown.flatMap(caseRows));
    status.textContent = `${count(found.length)} of ${count(chosen.cases.length)} cases`;
    more.hidden = shown.length === found.length;
    more.textContent = `Show more (${count(found.length - shown.length)} left)`;
  }

  function caseRows({ one, i, verdict, worst }) {
    const status = verdict === -1 ? FAILED : verdict;
    const id = fresh();
    const held = el("td", { colspan: "6" });
    const below = el("tr", { class: "more", id, hidden: true }, held);
    function toggle(open) {
      button.setAttribute("aria-expanded", String(open));
      below.hidden = !open;
      if (open) opened.add(i);
      else opened.delete(i);
      if (open && !held.firstChild) held.append(caseBody({ ...one, results: by(one) }));
    }
    const button = el("button", {
      type: "button", class: "open", "aria-expanded": "false", "aria-controls": id, "data-case": i,
      onclick: () => toggle(button.getAttribute("aria-expanded") !== "true"),
    }, `Case ${one.number}`);
    if (opened.has(i)) toggle(true);
    const kinds = [...new Set(one.results.map((r) => r.kind).filter(Boolean))].join(", ");
    return [
      el("tr", null,
        el("td", null, button),
        el("td", { class: `verdict ${VERDICT[status]}` }, sign(status), status === FAILED ? kinds || "failed" : STATUS[status]),
        el("td", { class: "number right nowrap" }, worst ? inUnit(number(worst.error), worst.unit).replace(" of what is allowed", " of bound") : "–"),
        el("td", null, one.values, one.note ? el("small", null, one.note) : null),
        el("td", { class: "wide mono" }, one.shape, el("small", null, one.layout)),
        el("td", { class: "wide mono" }, one.attributes || "")),
      below,
    ];
  }

  function openCase(i) {
    if (i == null) return;
    history.replaceState(null, "", `#/${key}/${chosen.cases[i].number}`);
    place = i;
    opened.add(i);
    state.text = filter.value = "";
    list();
    focusCase(i);
  }
  function focusCase(i) {
    const button = body.querySelector(`[data-case="${i}"]`);
    if (button) {
      button.focus({ preventScroll: true });
      button.scrollIntoView({ block: "start" });
    }
  }
  function redraw() {
    // Outputs of other dtypes have other units: they would hide the rest.
    const usual = chosen.cases.flatMap((one, i) => (one.note ? [] : by(one).map((result) => [result, i])));
    charts.replaceChildren(panels(usual, openCase, (i) => chosen.cases[i].number) || el("p", { class: "hint" }, "No case has results that can be compared."));
    list();
  }
  const filter = el("input", { type: "search", placeholder: "special strided", oninput: () => { state.text = filter.value; state.shown = PAGE; list(); } });
  const failures = chosen.cases.some((one) => one.results.some((r) => r.status === FAILED));
  const onlyFailed = el("input", { type: "checkbox", onchange: () => { state.failed = onlyFailed.checked; list(); } });

  detail.replaceChildren(
    el("div", { class: "title" }, heading, el("a", { href: "#matrix", onclick: (event) => { event.preventDefault(); close(); } }, "Back to the matrix")),
    el("p", { class: "formula" }, `${row.name}: `, el("code", null, row.formula)),
    data.providers.length > 1 ? el("div", { class: "controls" }, choice("Provider", ["all", ...data.providers], "all", (word) => { state.by = word; redraw(); })) : "",
    charts,
    el("div", { class: "controls" }, el("h3", null, "Cases"), el("label", null, "Filter", filter),
      failures ? el("label", null, onlyFailed, " failed only") : null, status),
    el("div", { class: "scroll" }, el("table", { class: "cases", "aria-labelledby": "detail-title" },
      el("thead", null, el("tr", null,
        el("th", { scope: "col" }, "case"), el("th", { scope: "col" }, "verdict"), el("th", { scope: "col", class: "right" }, "worst"), el("th", { scope: "col" }, "values"),
        el("th", { scope: "col", class: "wide" }, "shape, layout"), el("th", { scope: "col", class: "wide" }, "attributes"))),
      body)),
    el("p", null, more));
  detail.setAttribute("aria-labelledby", "detail-title");
  detail.hidden = false;
  redraw();
  if (place != null) focusCase(place);
  else {
    heading.focus({ preventScroll: true });
    detail.scrollIntoView({ block: "start" });
  }
}
