// The table of exits: a row for each, with what it said of the text.

import { shown } from "./rule.js";

/** Makes the rows, which `showExits` fills; all stay, so that nothing jumps while one types. */
export function makeRows(body, told) {
  const rows = told.exit_layers.map((layer) => {
    const row = body.insertRow();
    const name = document.createElement("th");
    name.scope = "row";
    name.textContent = layer;
    row.append(name);
    for (const kind of ["said", "sure"]) {
      const cell = row.insertCell();
      cell.className = kind;
      cell.append(made("div", "track"), made("div", "words"));
      cell.firstChild.append(made("div", "bar"));
    }
    row.querySelector(".sure").prepend(made("div", "limit"));
    return row;
  });
  clear(rows);
  return rows;
}

/** No text, so no exit has said anything. */
export function clear(rows) {
  for (const row of rows) fill(row, "none", { said: "", sure: "" });
}

/** Shows an answer; exits behind the one that gave it have not run. */
export function showExits(rows, answer, rule, numbers) {
  rows.forEach((row, place) => {
    const exit = answer.exits[place];
    if (!exit) return fill(row, "skipped", { said: "not run", sure: "" });
    const last = exit.layer === answer.layer;
    row.style.setProperty("--class", `var(--class-${exit.class % 6})`);
    row.style.setProperty("--probability", exit.probability);
    const sure = rule.passes(exit.signal, numbers);
    row.style.setProperty("--signal", rule.share(exit.signal));
    row.classList.toggle("passes", sure);
    row.classList.toggle("unasked", Number.isNaN(exit.signal));
    fill(row, last ? "left" : "passed", {
      said: `${exit.label} ${percent(exit.probability)}`,
      sure: reason(exit.signal, sure, last),
    });
  });
}

function reason(signal, sure, last) {
  if (Number.isNaN(signal)) return "the last layer";
  if (last) return `${shown(signal)}, ${sure ? "leaves here" : "no further layer allowed"}`;
  return `${shown(signal)}, ${sure ? "sure, but goes on" : "goes on"}`;
}

function fill(row, state, words) {
  row.dataset.state = state;
  for (const [kind, text] of Object.entries(words))
    row.querySelector(`.${kind} .words`).textContent = text;
}

export function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

function made(tag, kind) {
  const element = document.createElement(tag);
  element.className = kind;
  return element;
}
