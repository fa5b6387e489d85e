// SPDX-License-Identifier: Apache-2.0
// What the other files build with: the data of the page, elements, numbers, curves.

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
  let steps = size / 2 ** exponent - 1 + exponent + bias; // a subnormal has field 0
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
