// Uses the page as a person would, and leaves what it saw in the frame around it.
const seen = {errors: window.failures};
const rows = () => [...document.querySelectorAll("#table tbody tr")].map((row) => row.cells[0].textContent);
const head = (title) => [...document.querySelectorAll("#table thead button")].find((b) => b.textContent.startsWith(title));
const pick = (id, value) => { byId(id).value = value; byId(id).dispatchEvent(new Event("change")); };
const lines = (id) => document.querySelectorAll(`#${id} > svg > path`).length;
const texts = (what) => [...document.querySelectorAll(what)].map((each) => each.textContent);
const click = (what) => what.dispatchEvent(new MouseEvent("click", {bubbles: true}));
addEventListener("load", () => {
  seen.title = byId("title").textContent;
  seen.speeds = [...byId("speed").options].map((option) => option.value);
  seen.rows = rows();
  seen.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  seen.legend = texts("#curves .legend li"); seen.axis = texts("#curves text.y"); seen.bands = document.querySelectorAll("#curves .band").length;
  seen.sides = texts("#h-sides ~ details > summary");
  seen.curves = lines("curves"); seen.pareto = lines("pareto"); seen.exits = lines("exits");
  click(head("AVG")); seen.best = rows(); seen.sorted = head("AVG").parentElement.getAttribute("aria-sort");
  click(head("AVG")); seen.worst = rows();
  pick("speed", "3"); seen.fast = rows(); seen.heading = byId("h-table").textContent;
  pick("speed", "2"); pick("task", "average"); seen.mean = lines("curves");
  pick("task", "both");
  const svg = document.querySelector("#curves svg");
  svg.dispatchEvent(new KeyboardEvent("keydown", {key: "End"}));
  seen.tip = document.querySelector("#curves .tip").textContent;
  svg.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape"}));
  seen.hidden = document.querySelector("#curves .tip").hidden;
  svg.dispatchEvent(new PointerEvent("pointermove", {clientX: 60, clientY: 60}));
  seen.hover = document.querySelector("#curves .tip").textContent;
  click(document.querySelector('[data-axis="flops"]')); seen.note = byId("pareto-note").textContent;
  const timed = document.querySelector('[data-axis="milliseconds"]');
  if (timed) {
    pick("task", data.latency.task); click(timed);
    const chart = document.querySelector("#pareto svg"); seen.times = [];
    for (const key of ["Home", "End"]) { chart?.dispatchEvent(new KeyboardEvent("keydown", {key})); seen.times.push(document.querySelector("#pareto .tip")?.textContent); }
    seen.timed = [timed.textContent, byId("pareto-note").textContent];
  }
  click(byId("none")); seen.empty = [rows().length, byId("curves").textContent];
  const box = document.querySelector('#methods input[value="de3"]'); box.click(); seen.one = rows();
  click(byId("theme")); seen.theme = document.documentElement.dataset.theme;
  seen.unnamed = [...document.querySelectorAll("button, select, input")].filter(
    (each) => !(each.textContent.trim() || each.closest("label"))).length;
  const out = parent.document.createElement("pre"); out.id = "seen"; out.textContent = JSON.stringify(seen);
  parent.document.body.append(out);
});
