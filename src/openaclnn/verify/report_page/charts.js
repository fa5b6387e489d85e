// SPDX-License-Identifier: Apache-2.0
// What results have in common, as a histogram and a chart of the error against an input.

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
      el("thead", { class: "heard" }, el("tr", null, ...["ulp", "elements", "share"].map((h) => el("th", { scope: "col" }, h)))),
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

function chart(whole, input, open, numberOf) {
  const curve = whole.inputs.get(input);
  const bins = [...curve.bins.keys()].sort((a, b) => a - b);
  const of = input === "result" ? "the result" : input;
  const readout = el("p", { class: "readout", "aria-live": "polite" });
  const worst = bins.reduce((best, bin) => (best == null || curve.bins.get(bin)[0] > curve.bins.get(best)[0] ? bin : best), null);
  const range = (bin) => {
    const [from, to] = [bin, bin + 1].map((place) => plain(valueAt(curve.dtype, place)));
    return `${from} to ${bin === -1 ? "-0" : to}`;
  };
  const label = (bin) => {
    const [distance, place] = curve.bins.get(bin);
    return `${of} from ${range(bin)}: ${inUnit(distance, whole.unit)}` + (place == null ? "" : `, case ${numberOf ? numberOf(place) : place}`);
  };
  const title = `Greatest distance by ${of}, in ${whole.unit === "ulp" ? "ulp" : "shares of what is allowed"}`;
  const box = el("div", {
    class: "chart", tabindex: "0", role: "application", "aria-roledescription": "chart",
    "aria-label": `${title}. ${worst == null ? "" : `The worst is ${label(worst)}. `}The arrow keys go through the ranges of the input.`,
  });
  let cursor = null;
  let move = () => {};
  function select(i) {
    cursor = Math.max(0, Math.min(bins.length - 1, i));
    readout.textContent = label(bins[cursor]);
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
    const aside = curve.nan ? 44 : 0; // NaN has its own place
    const [left, right, top, bottom, high] = [44, 10 + aside, 22, 26, 240];
    const [low, end] = bins.length ? [bins[0], bins[bins.length - 1] + 1] : [0, 1];
    const x = (place) => left + ((place - low) / (end - low)) * (wide - left - right);
    const all = bins.map((bin) => curve.bins.get(bin)[0]).concat(curve.nan ? [curve.nan[0]] : []);
    const finite = all.filter(Number.isFinite);
    const infinite = finite.length < all.length;
    const greatest = Math.max(whole.limit || 0, ...finite) || 1; // all exact: an axis to 1
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
  readout.textContent = [worst == null ? "" : label(worst), nan].filter(Boolean).join("; ");
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
function panels(results, open, numberOf) {
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
      el("div", { class: "panels" }, histogram(whole), chart(whole, input, open, numberOf)));
  }
  show(names[0], null);
  return held;
}
