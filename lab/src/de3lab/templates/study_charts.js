"use strict";
// Charts drawn as SVG at their real size, so that text stays legible on narrow screens.

const SVG = "http://www.w3.org/2000/svg";
const DASHES = ["", "7 3", "2 2", "9 3 2 3", "9 3 2 3 2 3", "13 4"];

function node(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name in made && typeof value !== "string") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function shape(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Colour, dash and marker come by number, the same as in all figures.
const lookOf = ({ colour, dash, marker }) => ({ colour: `var(--c${colour})`, dash: DASHES[dash], marker });

function markerPath(kind, x, y, r) {
  const p = (dx, dy) => `${(x + dx * r).toFixed(1)} ${(y + dy * r).toFixed(1)}`;
  const closed = (...corners) => `M${corners.join("L")}Z`;
  return [
    () => `M${p(-1, 0)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`,
    () => closed(p(-0.9, -0.9), p(0.9, -0.9), p(0.9, 0.9), p(-0.9, 0.9)),
    () => closed(p(0, -1.2), p(1.2, 0), p(0, 1.2), p(-1.2, 0)),
    () => closed(p(0, -1.2), p(1.1, 0.8), p(-1.1, 0.8)),
    () => closed(p(0, 1.2), p(1.1, -0.8), p(-1.1, -0.8)),
    () => closed(p(-1.2, 0), p(0.8, -1.1), p(0.8, 1.1)),
    () => closed(p(1.2, 0), p(-0.8, -1.1), p(-0.8, 1.1)),
    () => closed(...[[-0.4, -1.2], [0.4, -1.2], [0.4, -0.4], [1.2, -0.4], [1.2, 0.4], [0.4, 0.4], [0.4, 1.2], [-0.4, 1.2], [-0.4, 0.4], [-1.2, 0.4], [-1.2, -0.4], [-0.4, -0.4]].map(([a, b]) => p(a, b))),
    () => closed(...[...Array(10).keys()].map((k) => p(...[Math.sin, (a) => -Math.cos(a)].map((f) => (k % 2 ? 0.6 : 1.5) * f((k * Math.PI) / 5))))),
  ][kind]();
}

function marker(look, x, y, r, hollow) {
  return shape("path", {
    d: markerPath(look.marker, x, y, r),
    stroke: look.colour,
    "stroke-width": 1.6,
    fill: hollow ? "var(--paper)" : look.colour,
  });
}

function swatch(look) {
  const line = { x1: 1, y1: 7, x2: 33, y2: 7, stroke: look.colour, "stroke-width": 2.4, "stroke-dasharray": look.dash };
  return shape("svg", { viewBox: "0 0 34 14", "aria-hidden": "true" }, shape("line", line), marker(look, 17, 7, 3.6));
}

function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((k) => k * power).find((each) => each >= rough);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-6; at += step) found.push(at);
  return found;
}

const short = (value) => String(+value.toPrecision(4));
const percent = (value) => (100 * value).toFixed(1);

// series: [{name, look, bold, points: [[x, y, hollow, told]], line, marks, band: [[x, low, high]]}]
// options: xLabel, yLabel, xTicks, xText
function drawChart(place, series, options) {
  place.replaceChildren();
  const all = series.flatMap((each) => each.points);
  if (!all.length) {
    place.append(node("p", { class: "note" }, "Nothing to show for this choice."));
    return;
  }
  const width = Math.max(280, place.clientWidth || 640);
  const height = Math.round(Math.min(400, Math.max(260, width * 0.55)));
  const box = { left: 62, right: width - 12, top: 10, bottom: height - 42 };
  const [x0, x1] = padded(all.map((p) => p[0]), 0.03);
  const bands = series.flatMap((each) => (each.band || []).flatMap((b) => [b[1], b[2]]));
  const [y0, y1] = padded([...all.map((p) => p[1]), ...bands], 0.06);
  const sx = (v) => box.left + ((v - x0) / (x1 - x0)) * (box.right - box.left);
  const sy = (v) => box.bottom - ((v - y0) / (y1 - y0)) * (box.bottom - box.top);
  const names = series.map((each) => each.name).join(", ");
  const label = `${options.yLabel} against ${options.xLabel} of ${names}. Arrow keys read values.`;
  const root = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0, "aria-label": label });
  const xTicks = options.xTicks || ticks(x0, x1, width / 80);
  for (const at of xTicks) {
    root.append(shape("line", { class: "grid", x1: sx(at), x2: sx(at), y1: box.top, y2: box.bottom }));
    root.append(shape("text", { x: sx(at), y: box.bottom + 15, "text-anchor": "middle" }, (options.xText || short)(at)));
  }
  for (const at of ticks(y0, y1, 6)) {
    root.append(shape("line", { class: "grid", x1: box.left, x2: box.right, y1: sy(at), y2: sy(at) }));
    root.append(shape("text", { x: box.left - 5, y: sy(at) + 4, "text-anchor": "end" }, percent(at)));
  }
  root.append(shape("text", { x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, options.xLabel));
  const middle = (box.top + box.bottom) / 2;
  root.append(shape("text", { class: "y", x: 14, y: middle, "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` }, `${options.yLabel} (percent)`));
  for (const each of series.filter((other) => other.band)) {
    const there = each.band.map((b) => `${sx(b[0]).toFixed(1)} ${sy(b[2]).toFixed(1)}`);
    const back = [...each.band].reverse().map((b) => `${sx(b[0]).toFixed(1)} ${sy(b[1]).toFixed(1)}`);
    root.append(shape("polygon", { class: "band", points: [...there, ...back].join(" "), fill: each.look.colour }));
  }
  for (const each of series) {
    const path = each.points.map((p, i) => `${i ? "L" : "M"}${sx(p[0]).toFixed(1)} ${sy(p[1]).toFixed(1)}`).join("");
    const stroke = { d: path, fill: "none", stroke: each.look.colour, "stroke-width": each.bold ? 3 : 1.7, "stroke-dasharray": each.look.dash };
    if (each.line) root.append(shape("path", stroke));
    if (each.marks) for (const p of each.points) root.append(marker(each.look, sx(p[0]), sy(p[1]), each.bold ? 5 : 4, p[2]));
  }
  place.append(root, legend(series));
  listen(place, root, series, sx, box, options);
}

// Who is who: a name once, though a method may have a line and single points.
function legend(series) {
  const seen = new Map(series.map((each) => [each.name, each]));
  const list = node("ul", { class: "legend", "aria-label": "Legend" });
  for (const each of seen.values()) list.append(node("li", each.bold ? { class: "chosen" } : {}, swatch(each.look), each.name));
  return list;
}

function padded(values, share) {
  const low = Math.min(...values), high = Math.max(...values);
  const more = (high - low) * share || Math.abs(high) * share || 1;
  return [low - more, high + more];
}

// Pointer and arrow keys move a cursor over the distinct x values; a box lists the values there.
function listen(place, root, series, sx, box, options) {
  const stops = [...new Set(series.flatMap((each) => each.points.map((p) => p[0])))].sort((a, b) => a - b);
  const cursor = shape("line", { class: "cursor", y1: box.top, y2: box.bottom, visibility: "hidden" });
  const tip = node("div", { class: "tip", role: "status", hidden: true });
  root.append(cursor);
  place.append(tip);
  let at = -1;
  const hide = () => { tip.hidden = true; cursor.setAttribute("visibility", "hidden"); };
  const show = (index) => {
    at = Math.max(0, Math.min(stops.length - 1, index));
    const here = series.flatMap((each) => each.points.filter((p) => p[0] === stops[at]).map((p) => [each.name, p]));
    here.sort((a, b) => b[1][1] - a[1][1]);
    const lines = here.map(([name, p]) => `${percent(p[1])}  ${name}${p[3] ? ` (${p[3]})` : ""}${p[2] ? " (dominated)" : ""}`);
    tip.textContent = [`${options.xLabel}: ${(options.xText || short)(stops[at])}`, ...lines].join("\n");
    const x = sx(stops[at]);
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, x);
    cursor.setAttribute("visibility", "visible");
    tip.hidden = false;
    const left = x > (box.left + box.right) / 2;
    tip.style.left = left ? "auto" : `${x + 10}px`;
    tip.style.right = left ? `${place.clientWidth - x + 10}px` : "auto";
  };
  root.addEventListener("pointermove", (event) => {
    const x = event.clientX - root.getBoundingClientRect().left;
    const gaps = stops.map((stop) => Math.abs(sx(stop) - x));
    show(gaps.indexOf(Math.min(...gaps)));
  });
  root.addEventListener("pointerleave", hide);
  root.addEventListener("blur", hide);
  root.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: stops.length - 1 };
    if (event.key === "Escape") hide();
    if (!(event.key in moves)) return;
    event.preventDefault();
    show(moves[event.key]);
  });
}
