"use strict";
// The page: what is chosen, and the four views of it.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const names = data.methods.map((method) => method.name);
const looks = Object.fromEntries(names.map((name) => [name, lookOf(data.looks[name])]));
const ranked = new Set(data.methods.filter((method) => method.ranked).map((method) => method.name));
const withdrawn = new Set(data.methods.filter((method) => method.withdrawn).map((method) => method.name));
const uneven = new Set(data.uneven);
const tasks = data.tasks.filter((task) => Object.keys(data.exits[task.name] || {}).length);
const speeds = data.speeds.map(String); // not the keys of an object: those that look like integers come first
const AVERAGE = "average";
const chosen = {
  speed: speeds.includes("2") ? "2" : speeds[0],
  task: tasks[0].name,
  methods: new Set(names),
  tasks: new Set(tasks.map((task) => task.name)),
  axis: "layers",
  sort: { column: null, down: true },
};
const AXES = {
  layers: { label: "mean layers executed", text: short },
  flops: { label: "GFLOPs per text", text: short },
  milliseconds: { label: "milliseconds per text, predicted (of models of one speed: measured)", text: short },
};

function start() {
  const { done, of, missing } = data.progress;
  byId("facts").textContent =
    `${done} of ${of} trainings finished. Backbone ${data.backbone}. ${data.machines.join("; ")}. ${data.date.slice(0, 10)}.`;
  options(byId("speed"), speeds, (speed) => `${speed}x`, "speed");
  options(byId("task"), [...tasks.map((task) => task.name), AVERAGE], (name) => name, "task");
  boxes(byId("methods"), names, (name) => [swatch(looks[name]), name]);
  boxes(byId("tasks"), tasks.map((task) => task.name), (name) => [name]);
  for (const [id, keep] of [["all", names], ["none", []]]) {
    byId(id).addEventListener("click", () => {
      chosen.methods = new Set(keep);
      for (const box of byId("methods").querySelectorAll("input")) box.checked = keep.includes(box.value);
      draw();
    });
  }
  for (const axis of Object.keys(AXES).filter((name) => name !== "milliseconds" || data.latency)) {
    const button = node("button", { type: "button", "aria-pressed": String(axis === chosen.axis), "data-axis": axis }, AXES[axis].label);
    button.addEventListener("click", () => {
      chosen.axis = axis;
      for (const each of byId("axes").children) each.setAttribute("aria-pressed", String(each.dataset.axis === axis));
      draw();
    });
    byId("axes").append(button);
  }
  byId("missing").hidden = !missing.length;
  byId("missing").querySelector("summary").textContent = `${missing.length} trainings are missing`;
  byId("missing").querySelector("ul").append(...missing.map((label) => node("li", {}, label)));
  theme(matchMedia("(prefers-color-scheme: dark)").matches);
  byId("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme !== "dark"));
  let wait = 0;
  addEventListener("resize", () => { clearTimeout(wait); wait = setTimeout(draw, 120); });
  draw();
}

function theme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  byId("theme").setAttribute("aria-pressed", String(dark));
}

function options(select, values, text, key) {
  select.append(...values.map((value) => node("option", { value, selected: value === chosen[key] }, text(value))));
  select.addEventListener("change", () => { chosen[key] = select.value; draw(); });
}

function boxes(place, values, content) {
  const key = place.id;
  for (const value of values) {
    const box = node("input", { type: "checkbox", value, checked: true });
    box.addEventListener("change", () => { chosen[key][box.checked ? "add" : "delete"](value); draw(); });
    place.append(node("label", {}, box, ...content(value)));
  }
}

const shown = () => names.filter((name) => chosen.methods.has(name));
const series = (name, points, more) => ({ name, points, look: looks[name], bold: name === data.chosen, ...more });

function draw() {
  byId("at").textContent = chosen.speed;
  drawTable();
  drawCurves();
  drawPareto();
  drawExits();
}

// ---- table

function columns() {
  const at = chosen.speed;
  const kept = tasks.filter((task) => chosen.tasks.has(task.name));
  const found = kept.map((task) => ({
    title: task.name,
    value: (name) => data.scores[at][task.name]?.[name]?.mean,
    alike: comparable(task.name),
    cell: (name) => scoreCell(data.scores[at][task.name]?.[name], task, name),
  }));
  const average = data.averages[at].methods, ranks = data.ranks[at].methods;
  found.push({ title: "AVG", value: (name) => average[name], cell: (name) => text(average[name], percent) });
  found.push({ title: "rank", up: true, value: (name) => ranks[name], cell: (name) => text(ranks[name], (r) => r.toFixed(2)) });
  return found;
}

const text = (value, format) => [value === undefined ? "-" : format(value)];

function scoreCell(score, task, name) {
  if (!score) return ["-"];
  const cells = [task.metrics.map((metric) => percent(score.each[metric])).join("/")];
  if (score.sd !== null) cells.push(node("small", {}, ` ±${percent(score.sd)}`));
  if (score.n < mostSeeds(task.name)) cells.push(node("small", {}, ` [n = ${score.n}]`));
  cells.push(mark(data.tests[chosen.speed][name]?.tasks[task.name]));
  return cells;
}

// * the chosen method is above, † it is below
function mark(test) {
  if (!test || test.p_holm === null || test.p_holm === undefined || test.p_holm >= data.significant_below) return "";
  return test.difference > 0 ? "*" : "†";
}

const scoresOf = (task) => Object.entries(data.scores[chosen.speed][task] || {});
const mostSeeds = (task) => Math.max(...scoresOf(task).map(([, score]) => score.n));

// Means may be compared that are over the same seeds; of several sets the largest counts, as in the tables.
function comparable(task) {
  const sets = new Map();
  for (const [name, score] of scoresOf(task).filter(([each]) => ranked.has(each))) {
    const key = Object.keys(score.values).sort().join(" ");
    sets.set(key, [...(sets.get(key) || []), name]);
  }
  const size = (key) => key.split(" ").length;
  const [most] = [...sets].sort(([a, x], [b, y]) => size(b) - size(a) || y.length - x.length);
  return new Set(most && most[1].length > 1 ? most[1] : []);
}

function drawTable() {
  const shownColumns = columns();
  const rows = shown().filter((name) => (ranked.has(name) || withdrawn.has(name)) && shownColumns.some((column) => column.value(name) !== undefined));
  const by = shownColumns.find((column) => column.title === chosen.sort.column);
  if (by) rows.sort((a, b) => (chosen.sort.down ? -1 : 1) * compare(by.value(a), by.value(b), chosen.sort.down));
  const head = node("tr", {}, node("th", { scope: "col" }, "method"));
  for (const column of shownColumns) head.append(header(column));
  const body = node("tbody");
  for (const name of rows) {
    const row = node("tr", name === data.chosen ? { class: "chosen" } : {}, node("th", { scope: "row", title: summary(name) }, called(name)));
    for (const column of shownColumns) row.append(node("td", { class: placed(column, name, rows) }, ...column.cell(name)));
    body.append(row);
  }
  byId("table").replaceChildren(node("caption", { hidden: true }, "Scores in percent"), node("thead", {}, head), body);
  const complete = data.complete_tasks.join(", ") || "no task yet";
  byId("table-note").textContent =
    `Bold: best of those shown. AVG and rank are over the tasks that all methods have finished: ${complete}. ` +
    `A method that does not reach ${chosen.speed}x has no score here.`;
}

const called = (name) => name + (uneven.has(name) ? "‡" : "") + (withdrawn.has(name) ? " (withdrawn)" : "");
const summary = (name) => data.methods.find((method) => method.name === name).summary;

function compare(a, b, down) {
  const last = down ? -Infinity : Infinity; // what has no value goes to the end
  return (a ?? last) - (b ?? last) || 0;
}

function header(column) {
  const active = chosen.sort.column === column.title;
  const button = node("button", { type: "button" }, column.title + (active ? (chosen.sort.down ? " ▾" : " ▴") : ""));
  button.addEventListener("click", () => {
    chosen.sort = { column: column.title, down: active ? !chosen.sort.down : !column.up };
    drawTable();
    [...byId("table").querySelectorAll("thead button")].find((each) => each.textContent.startsWith(column.title)).focus();
  });
  const sorted = active ? (chosen.sort.down ? "descending" : "ascending") : "none";
  return node("th", { scope: "col", "aria-sort": sorted }, button);
}

function placed(column, name, rows) {
  const sign = column.up ? -1 : 1;
  if (column.alike && !column.alike.has(name)) return "";
  const alike = rows.filter((row) => !column.alike || column.alike.has(row));
  const levels = [...new Set(alike.map((row) => column.value(row)).filter((v) => v !== undefined))].sort((a, b) => sign * (b - a));
  return ["best", "second"][levels.indexOf(column.value(name))] || "";
}

// ---- charts

const metricOf = (task) => (task === AVERAGE ? "mean score" : data.tasks.find((each) => each.name === task).metric);

// task -> value, or the mean over the finished tasks; undefined where one of them has none
function overTasks(of) {
  if (chosen.task !== AVERAGE) return of(chosen.task);
  const values = data.complete_tasks.map(of);
  if (!values.length || values.some((value) => value === undefined)) return undefined;
  return values.reduce((a, b) => a + b, 0) / values.length;
}

function drawCurves() {
  const lines = [];
  for (const name of shown()) {
    const curves = (chosen.task === AVERAGE ? data.complete_tasks : [chosen.task]).map((task) => data.curves[task][name]);
    const tables = curves.map((curve) => curve && new Map(curve.layer_speedup.map((at, i) => [at, curve.score[i]])));
    if (tables.length && tables.every(Boolean)) {
      const at = [...tables[0].keys()].filter((speed) => tables.every((table) => table.has(speed)));
      const points = at.map((speed) => [speed, tables.reduce((sum, table) => sum + table.get(speed), 0) / tables.length]);
      lines.push(series(name, points, { line: true, band: bandOf(name, curves) }));
    }
    const score = overTasks((task) => data.points[task][name]?.mean);
    const speed = overTasks((task) => data.points[task][name]?.layer_speedup);
    if (score !== undefined) lines.push(series(name, [[speed, score]], { marks: true }));
  }
  drawChart(byId("curves"), lines, { xLabel: "layer speed-up", yLabel: metricOf(chosen.task), xText: (v) => short(+v.toFixed(2)) });
}

// ± deviation over seeds, of one task, where it can still be seen: of the chosen method, or of few lines
function bandOf(name, curves) {
  const [curve] = curves;
  if (curves.length > 1 || !curve.sd || (name !== data.chosen && chosen.methods.size > 6)) return undefined;
  return curve.layer_speedup.map((at, i) => [at, curve.score[i] - curve.sd[i], curve.score[i] + curve.sd[i]]);
}

function costOf(name, key, speed) {
  const base = overTasks((task) => data.base_depth[task]);
  if (chosen.axis === "layers") return base / speed;
  if (chosen.axis === "flops") {
    const found = overTasks((task) => data.flops[task][name]?.[key]);
    return found === undefined ? undefined : found / 1e9;
  }
  return data.latency.task === chosen.task ? data.latency.measured[name]?.[key] ?? data.latency.predicted[name]?.[key] : undefined;
}

// A predicted time never goes without saying so.
function toldOf(name, key) {
  if (chosen.axis !== "milliseconds") return "";
  return data.latency.measured[name]?.[key] === undefined ? "predicted" : "measured";
}

function drawPareto() {
  const found = [];
  for (const name of shown().filter((each) => ranked.has(each))) {
    const own = overTasks((task) => data.points[task][name]?.mean);
    const keys = own === undefined ? speeds : ["own"];
    for (const key of keys) {
      const score = own === undefined ? overTasks((task) => data.scores[key][task]?.[name]?.mean) : own;
      const speed = own === undefined ? +key : overTasks((task) => data.points[task][name]?.layer_speedup);
      const cost = score === undefined ? undefined : costOf(name, key, speed);
      if (cost !== undefined) found.push({ name, cost, score, told: toldOf(name, key) });
    }
  }
  const beaten = (a) => found.some((b) => b.name !== a.name && b.cost <= a.cost * 1.0001 && b.score >= a.score && (b.score > a.score || b.cost < a.cost * 0.9999));
  for (const each of found) each.dominated = beaten(each);
  const lines = shown().map((name) => series(name, found.filter((each) => each.name === name).map((each) => [each.cost, each.score, each.dominated, each.told]), { line: true, marks: true })).filter((each) => each.points.length);
  const axis = AXES[chosen.axis];
  drawChart(byId("pareto"), lines, { xLabel: axis.label, yLabel: metricOf(chosen.task), xText: axis.text });
  const everywhere = lines.filter((each) => each.points.every((p) => p[2])).map((each) => each.name);
  const where = chosen.axis === "milliseconds" ? ` Times of models with exits are predicted from their profiles, those of models of one speed were measured: ${data.latency.task}, seed ${data.latency.seed}, ${data.latency.machine}.` : "";
  byId("pareto-note").textContent =
    `Hollow: another method scores at least as well for no more. ` +
    (everywhere.length ? `Dominated at every speed: ${everywhere.join(", ")}.` : "No method is dominated at every speed.") + where;
}

function drawExits() {
  const lines = [];
  for (const name of shown()) {
    const layers = Object.keys((chosen.task === AVERAGE ? data.exits[data.complete_tasks[0]] : data.exits[chosen.task])?.[name] || {});
    const points = layers.map((layer) => [+layer, overTasks((task) => data.exits[task][name]?.[layer])]).filter((p) => p[1] !== undefined);
    if (points.length) lines.push(series(name, points, { line: points.length > 1, marks: true }));
  }
  const every = [...new Set(lines.flatMap((line) => line.points.map((p) => p[0])))].sort((a, b) => a - b);
  drawChart(byId("exits"), lines, { xLabel: "exit layer", yLabel: metricOf(chosen.task), xTicks: every, xText: String });
}

start();
