// SPDX-License-Identifier: Apache-2.0
// Shows the cases behind a cell of the matrix. The address says what is shown: #/elu/FLOAT is a
// cell, #/elu/FLOAT/3 its fourth case. All words of the data become text, never HTML.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const groups = new Map(data.groups.map((group) => [`${group.op}/${group.dtype}`, group]));
  const detail = document.getElementById("detail");
  const [PASSED, FAILED, LEFT_OUT] = [0, 1, 2];
  const STATUS = ["passed", "failed", "left out"];
  const SIGN = ["✓", "✕", "–"];
  const VERDICT = ["good", "bad", "none"];
  const PAGE = 50; // cases that are shown at once
  const SVG = "http://www.w3.org/2000/svg";

  // ---- elements ----

  function fill(made, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value !== false && value != null) made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.flat(2).filter((child) => child != null && child !== false));
    return made;
  }
  const el = (tag, attributes, ...children) =>
    fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) =>
    fill(document.createElementNS(SVG, tag), attributes, children);
  const count = (n) => n.toLocaleString("en");
  const sign = (status) => el("span", { class: "sign", "aria-hidden": "true" }, SIGN[status] + " ");
  let ids = 0;
  const fresh = () => `e${++ids}`;

  // ---- numbers ----

  const number = (value) => (typeof value === "string" ? (value === "nan" ? NaN : Infinity) : value);
  function figure(value) {
    if (value === Infinity) return "∞";
    if (value === 0) return "0";
    if (value >= 1e5 || value < 1e-3) return value.toExponential(1).replace(".0e", "e").replace("e+", "e");
    return String(Number(value.toPrecision(4)));
  }
  const inUnit = (value, unit) => `${figure(value)} ${unit === "ulp" ? "ulp" : "of what is allowed"}`;

  // A dtype: bits of its exponent and fraction, and how many bits a bin drops (profile.py).
  const FORMATS = {
    FLOAT: [8, 23, 22], BFLOAT16: [8, 7, 6], FLOAT16: [5, 10, 6], DOUBLE: [11, 52, 53],
  };
  /** The value at a place of the axis, which counts bins from 0; -b stands for the negative one. */
  function valueAt(dtype, place) {
    const [bits, fraction, shift] = FORMATS[dtype];
    const steps = Math.abs(place) * 2 ** (shift - fraction);
    const field = Math.floor(steps);
    const bias = 2 ** (bits - 1) - 1;
    if (field >= 2 ** bits - 1) return Math.sign(place) * Infinity;
    const value = field ? (1 + steps - field) * 2 ** (field - bias) : steps * 2 ** (1 - bias);
    return Math.sign(place) * value;
  }
  function placeOf(dtype, value) {
    const [bits, fraction, shift] = FORMATS[dtype];
    const bias = 2 ** (bits - 1) - 1;
    const size = Math.abs(value);
    let exponent = Math.max(Math.floor(Math.log2(size)), 1 - bias);
    let steps = size / 2 ** exponent - 1 + exponent + bias; // a denormal has field 0
    if (size === 0) steps = 0;
    return Math.sign(value) * steps * 2 ** (fraction - shift);
  }

  const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const VALUE = Object.fromEntries([...DIGITS].map((digit, i) => [digit, i]));
  /** What profile.py wrote: calls take(bin, distance) for each. */
  function read(text, take) {
    if (!text) return;
    const colon = text.indexOf(":");
    let bin = Number(text.slice(0, colon)) - 1;
    const two = (i) => VALUE[text[i]] * 64 + VALUE[text[i + 1]];
    for (let i = colon + 1; i < text.length; ) {
      let steps = VALUE[text[i++]];
      if (steps === 63) {
        steps = two(i);
        i += 2;
      }
      bin += steps + 1;
      const level = two(i);
      i += 2;
      take(bin, level === 4095 ? Infinity : level <= 2048 ? level / 2048 : 2 ** ((level - 2048) / 32));
    }
  }

  // ---- what several cases have in common ----

  /** The histogram and the curves of results: { name, unit, limit, counts, mismatches, inputs }. */
  function gathered(results, name) {
    const whole = { name, unit: "ulp", limit: null, counts: data.labels.map(() => 0), inputs: new Map() };
    whole.mismatches = {};
    for (const [result, place] of results) {
      for (const i of result.profiles || []) {
        const profile = data.profiles[i];
        if (profile.name !== name) continue;
        whole.unit = profile.unit;
        whole.limit = profile.limit == null ? whole.limit : Math.max(whole.limit, profile.limit);
        profile.counts.forEach((n, k) => (whole.counts[k] += n));
        for (const [kind, n] of Object.entries(profile.mismatches || {}))
          whole.mismatches[kind] = (whole.mismatches[kind] || 0) + n;
        for (const [input, [dtype, text, nan]] of Object.entries(profile.curves)) {
          if (!whole.inputs.has(input)) whole.inputs.set(input, { dtype, bins: new Map(), nan: null });
          const curve = whole.inputs.get(input);
          if (curve.dtype !== dtype) continue;
          read(text, (bin, distance) => {
            const known = curve.bins.get(bin);
            if (!known || known[0] < distance) curve.bins.set(bin, [distance, place]);
          });
          if (nan != null && (!curve.nan || curve.nan[0] < number(nan))) curve.nan = [number(nan), place];
        }
      }
    }
    return whole;
  }
  const outputs = (results) => [
    ...new Set(results.flatMap(([result]) => (result.profiles || []).map((i) => data.profiles[i].name))),
  ];

  // ---- the histogram ----

  function histogram(whole) {
    const total = whole.counts.reduce((sum, n) => sum + n, 0);
    const upper = data.labels.map((label) => (/^<= /.test(label) ? Number(label.slice(3)) : NaN));
    const rows = whole.counts.map((n, i) => {
      if (!n) return null;
      const label = data.labels[i];
      const under = i ? upper[i - 1] || (upper[i] === 1 ? 0.5 : 1024) : 0;
      const special = label === "special";
      const bad = whole.unit === "ulp" && i > 1 && (special || (whole.limit != null && under >= whole.limit));
      const share = (100 * n) / total;
      const width = `width: ${Math.max(share, 0.01)}%`;
      return el("tr", { class: bad ? "bad" : null },
        el("th", { scope: "row" }, bad ? sign(FAILED) : null, label.replace("<=", "≤")),
        el("td", { class: "number right" }, count(n)),
        el("td", { class: "number right" }, share >= 99.995 ? "100 %" : share < 0.01 ? "< 0.01 %" : `${Number(share.toPrecision(3))} %`),
        el("td", { class: "bar", "aria-hidden": "true" }, el("div", { style: width })));
    });
    const notes = Object.entries(whole.mismatches).map(([kind, n]) => el("li", null, `${count(n)} × ${kind}`));
    return el("div", null,
      el("table", { class: "histogram" },
        el("caption", null, `Distance from the formula in ulp, ${count(total)} elements`),
        el("thead", { hidden: true }, el("tr", null, ...["ulp", "elements", "share"].map((h) => el("th", { scope: "col" }, h)))),
        el("tbody", null, rows)),
      el("p", { class: "count" }, "exact: the value of the formula; rounded: as near as rounding comes"),
      notes.length ? el("ul", { class: "count" }, notes) : null);
  }

  // ---- the error against an input ----

  const plain = (value) => {
    if (!Number.isFinite(value)) return value < 0 ? "-∞" : "∞";
    if (value === 0) return "0";
    const size = Math.abs(value);
    return size >= 1e-3 && size < 1e4 ? String(Number(value.toPrecision(3))) : value.toExponential(0).replace("e+", "e");
  };

  /** Places for labels: 0, ±1 and powers of ten, those first that say most, none too close. */
  function ticks(dtype, low, high, x) {
    const [bits] = FORMATS[dtype];
    const most = Math.floor(Math.log10(2) * 2 ** (bits - 1));
    const wanted = [0, 1, -1];
    for (const step of [100, 50, 30, 20, 10, 5, 4, 3, 2, 1])
      for (let k = step; k <= most; k += step) wanted.push(10 ** k, -(10 ** k), 10 ** -k, -(10 ** -k));
    for (const v of [2, 5, 0.5, 0.2]) wanted.push(v, -v);
    const found = [];
    for (const value of new Set(wanted)) {
      const place = placeOf(dtype, value);
      if (place < low || place > high) continue;
      const at = x(place);
      if (found.every((other) => Math.abs(other.at - at) > 52)) found.push({ at, value });
    }
    return found;
  }

  function chart(whole, input, open) {
    const curve = whole.inputs.get(input);
    const bins = [...curve.bins.keys()].sort((a, b) => a - b);
    const of = input === "result" ? "the result" : input;
    const readout = el("p", { class: "readout", "aria-live": "polite" });
    const worst = bins.reduce((best, bin) => (best == null || curve.bins.get(bin)[0] > curve.bins.get(best)[0] ? bin : best), null);
    const range = (bin) => {
      const [from, to] = [bin, bin + 1].map((place) => plain(valueAt(curve.dtype, place)));
      return `${from} to ${bin === -1 ? "-0" : to}`;
    };
    const told = (bin) => {
      const [distance, place] = curve.bins.get(bin);
      return `${of} from ${range(bin)}: ${inUnit(distance, whole.unit)}` + (place == null ? "" : `, case ${place + 1}`);
    };
    const title = `Greatest distance by ${of}, in ${whole.unit === "ulp" ? "ulp" : "shares of what is allowed"}`;
    const box = el("div", {
      class: "chart", tabindex: "0", role: "group",
      "aria-label": `${title}. ${worst == null ? "" : `The worst is ${told(worst)}. `}The arrow keys read it value by value.`,
    });
    let cursor = null;
    let move = () => {};
    function select(i) {
      cursor = Math.max(0, Math.min(bins.length - 1, i));
      readout.textContent = told(bins[cursor]);
      move(bins[cursor]);
    }
    box.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: 20, PageDown: -20 }[event.key];
      if (step && bins.length) select(cursor == null ? bins.indexOf(worst) : cursor + step);
      else if (event.key === "Home") select(0);
      else if (event.key === "End") select(bins.length - 1);
      else if (event.key === "Enter" && cursor != null && open) open(curve.bins.get(bins[cursor])[1]);
      else return;
      event.preventDefault();
    });

    function draw() {
      const wide = Math.max(box.clientWidth, 240);
      const aside = curve.nan ? 44 : 0; // NaN has a place of its own
      const [left, right, top, bottom, high] = [44, 10 + aside, 22, 26, 240];
      const [low, end] = bins.length ? [bins[0], bins[bins.length - 1] + 1] : [0, 1];
      const x = (place) => left + ((place - low) / (end - low)) * (wide - left - right);
      const all = bins.map((bin) => curve.bins.get(bin)[0]).concat(curve.nan ? [curve.nan[0]] : []);
      const finite = all.filter(Number.isFinite);
      const infinite = finite.length < all.length;
      const greatest = Math.max(whole.limit || 0, ...finite, 2 ** -6);
      const linear = greatest <= 4 * Math.max(whole.limit || 1, 1);
      const floor = 2 ** -4;
      const scale = linear
        ? (v) => v / (greatest * 1.08)
        : (v) => Math.log2(Math.max(v, floor) / floor) / Math.log2((greatest * 1.3) / floor);
      const ground = high - bottom;
      const roof = top + (infinite ? 18 : 0);
      const y = (v) => (v === Infinity ? top : ground - scale(v) * (ground - roof));
      const step = linear ? [0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1, 2].find((s) => greatest / s <= 5) : 0;
      const levels = linear
        ? Array.from({ length: Math.floor(greatest / step) + 1 }, (_, i) => Number((i * step).toPrecision(6)))
        : Array.from({ length: 40 }, (_, i) => 10 ** i).filter((v) => v <= greatest);
      const every = linear ? 1 : Math.ceil(levels.length / 6);
      const dots = [];
      const over = [];
      const points = bins.map((bin) => [x(bin + 0.5), curve.bins.get(bin)[0]]);
      if (curve.nan) points.push([wide - 22, curve.nan[0]]);
      for (const [across, distance] of points) {
        const at = `${across.toFixed(1)} ${y(distance).toFixed(1)}`;
        const beyond = distance === Infinity || (whole.limit != null && distance > whole.limit * 1.0005 + 2 ** -11);
        if (beyond) over.push(`M${at}m-3-3l6 6m0-6l-6 6`);
        else dots.push(`M${at}h0`);
      }
      const mark = svg("line", { class: "cursor", y1: top, y2: ground, visibility: "hidden" });
      move = (bin) => {
        const at = x(bin + 0.5).toFixed(1);
        fill(mark, { x1: at, x2: at, visibility: "visible" }, []);
      };
      const limit = whole.limit;
      box.replaceChildren(svg("svg", { viewBox: `0 0 ${wide} ${high}`, "aria-hidden": "true" },
        levels.filter((_, i) => i % every === 0).map((v) => [
          svg("line", { class: "grid", x1: left, x2: wide - right, y1: y(v), y2: y(v) }),
          svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, figure(v)),
        ]),
        infinite ? svg("text", { x: left - 6, y: top + 4, "text-anchor": "end" }, "special") : null,
        ticks(curve.dtype, low, end, x).map(({ at, value }) => [
          svg("line", { class: "grid", x1: at, x2: at, y1: ground, y2: ground + 4 }),
          svg("text", { x: at, y: high - 6, "text-anchor": "middle" }, plain(value)),
        ]),
        curve.nan ? svg("text", { x: wide - 22, y: high - 6, "text-anchor": "middle" }, "NaN") : null,
        limit ? svg("line", { class: "limit", x1: left, x2: wide - right, y1: y(limit), y2: y(limit) }) : null,
        limit ? svg("text", { x: wide - right, y: y(limit) - 5, "text-anchor": "end" }, `allowed: ${figure(limit)}`) : null,
        svg("path", { class: "dots", d: dots.join("") }),
        svg("path", { class: "over", d: over.join("") }),
        mark));
      const nearest = (event) => {
        const place = low + ((event.clientX - box.getBoundingClientRect().left - left) / (wide - left - right)) * (end - low) - 0.5;
        return bins.reduce((best, bin, i) => (Math.abs(bin - place) < Math.abs(bins[best] - place) ? i : best), 0);
      };
      box.onpointermove = (event) => bins.length && select(nearest(event));
      box.onclick = (event) => open && bins.length && open(curve.bins.get(bins[nearest(event)])[1]);
      if (cursor != null) move(bins[cursor]);
    }
    new ResizeObserver(() => requestAnimationFrame(draw)).observe(box);
    const ranked = () => bins.slice().sort((a, b) => curve.bins.get(b)[0] - curve.bins.get(a)[0]).slice(0, 10);
    const table = el("details", { ontoggle: () => table.lastChild.tagName === "TABLE" || table.append(
      el("table", { class: "worst" },
        el("thead", null, el("tr", null, el("th", { scope: "col" }, of), el("th", { scope: "col" }, "distance"))),
        el("tbody", null, ranked().map((bin) => el("tr", null, el("td", null, range(bin)), el("td", null, inUnit(curve.bins.get(bin)[0], whole.unit))))))) },
      el("summary", null, "The ten worst ranges"));
    const nan = curve.nan ? `NaN: ${inUnit(curve.nan[0], whole.unit)}` : "";
    readout.textContent = [worst == null ? "" : told(worst), nan].filter(Boolean).join("; ");
    return el("figure", null, el("figcaption", null, title), box, readout, table);
  }

  /** A select for several words, nothing for one. */
  function choice(label, words, value, change) {
    if (words.length < 2) return null;
    const select = el("select", { onchange: () => change(select.value) },
      words.map((word) => el("option", { selected: word === value }, word)));
    return el("label", null, label, select);
  }

  /** Histogram and chart of results, with a choice of output and input. */
  function panels(results, open) {
    const names = outputs(results);
    if (!names.length) return null;
    const held = el("div");
    function show(name, wanted) {
      const whole = gathered(results, name);
      const inputs = [...whole.inputs.keys()];
      const input = inputs.includes(wanted) ? wanted : inputs[inputs.length - 1];
      const controls = [
        choice("Output", names, name, (chosen) => show(chosen, input)),
        choice("Against", inputs, input, (chosen) => show(name, chosen)),
      ].filter(Boolean);
      held.replaceChildren(
        ...(controls.length ? [el("div", { class: "controls" }, controls)] : []),
        el("div", { class: "panels" }, histogram(whole), chart(whole, input, open)));
    }
    show(names[0], null);
    return held;
  }

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
      }, `Case ${i + 1}`);
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
      history.replaceState(null, "", `#/${key}/${i}`);
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
      charts.replaceChildren(panels(usual, openCase) || el("p", { class: "hint" }, "No case has results that can be compared."));
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

  // ---- the address, the matrix, the theme ----

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
    const place = found[3] == null ? null : Number(found[3]);
    group(chosen, place != null && place < chosen.cases.length ? place : null);
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

  const theme = document.getElementById("theme");
  const THEMES = ["system", "light", "dark"];
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme || "system") + 1) % 3];
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    theme.textContent = `Theme: ${next}`;
  });
  route();
})();
