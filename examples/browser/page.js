// The page: a text is answered while it is typed, and each exit shows what it said.

import { clear, makeRows, percent, showExits } from "./exits.js";
import { checkBrowser, fetched, libraries, threads } from "./loading.js";
import { OneFile } from "./one-file.js";
import { Rule } from "./rule.js";

const PAUSE = 120; // milliseconds without a key before a text is answered
const OWN = "(own)"; // the point of who moves the slider

const part = (name) => document.getElementById(name);

async function start() {
  checkBrowser();
  const using = threads();
  const { ort, Tokenizer } = await libraries(using.count);
  say("Loading the model");
  const [model, tokenizer] = await Promise.all([
    fetched("model.onnx", (share) => share && (part("loaded").value = share)),
    fetched("tokenizer.json"),
  ]);
  const bytes = model.length;
  say("Preparing the model");
  part("loaded").removeAttribute("value");
  const classifier = await OneFile.open(ort, Tokenizer, model, tokenizer);
  if (!classifier.records)
    throw new Error(
      "This model does not say what its exits said. Write it again with: " +
        "de3 export MODEL --one-file FILE --record --no-defaults",
    );
  await new Page(classifier).begin();
  part("facts").textContent = facts(classifier, bytes, using).join(" · ");
  document.body.dataset.state = "ready";
}

function facts({ told, checked }, bytes, { count, why }) {
  const found = [
    told.source.model,
    `${told.layers} layers`,
    told.precision,
    `${(bytes / 1e6).toFixed(1)} MB`,
    count === 1 ? `1 thread${why ? ` (${why})` : ""}` : `${count} threads`,
  ];
  return checked ? found : [...found, "tokenizer not compared (neither https nor localhost)"];
}

function say(doing) {
  part("doing").textContent = doing;
}

function fail(error) {
  part("failed").textContent = error.message;
  document.body.dataset.state = "failed";
}

class Page {
  constructor(classifier) {
    this.classifier = classifier;
    this.rule = new Rule(classifier.told);
    this.rows = makeRows(part("exits"), classifier.told);
    this.busy = false;
    this.waiting = null;
  }

  async begin() {
    const { points, default_point: usual } = this.classifier.told;
    part("point").append(...Object.keys(points).map((name) => new Option(name)));
    Object.assign(part("number"), {
      min: this.rule.low,
      max: this.rule.high,
      step: this.rule.step,
    });
    document.body.dataset.comparison = this.rule.comparison;
    this.#listen();
    this.#choose(usual);
    part("text").value = part("given").querySelector(".samples button").textContent;
    await this.classifier.answer(part("text").value, points[usual]); // the first one is slow
    await this.#answer();
  }

  #listen() {
    part("given").addEventListener("input", () => this.#answerSoon());
    part("given").addEventListener("submit", (event) => event.preventDefault());
    for (const sample of part("given").querySelectorAll(".samples button"))
      sample.addEventListener("click", () => {
        part("text").value = sample.textContent;
        this.#answer();
      });
    part("point").addEventListener("change", (event) => {
      this.#choose(event.target.value);
      this.#answer();
    });
    part("number").addEventListener("input", (event) => {
      this.#set(this.rule.moved(this.numbers, Number(event.target.value)));
      if (part("point").value !== OWN) this.#ownPoint();
      this.#answer();
    });
  }

  #choose(point) {
    part("point").querySelector("[data-own]")?.remove();
    part("point").value = point;
    this.#set(this.classifier.told.points[point]);
    part("number").value = this.numbers[this.rule.number];
  }

  #ownPoint() {
    const own = new Option(OWN);
    own.dataset.own = "";
    part("point").append(own);
    part("point").value = OWN;
  }

  #set(numbers) {
    this.numbers = numbers;
    const words = this.rule.told(numbers);
    part("signal").textContent = this.rule.heading(numbers);
    part("chosen").textContent = words;
    part("number").setAttribute("aria-valuetext", words);
    const place = this.rule.share(numbers[this.rule.number]);
    document.body.style.setProperty("--limit", place);
  }

  #answerSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#answer(), PAUSE);
  }

  /** One text after the other; of those that come meanwhile, the last. */
  async #answer() {
    this.waiting = { text: part("text").value.trim(), pair: part("pair").value.trim() || null };
    if (this.busy) return;
    this.busy = true;
    try {
      while (this.waiting) {
        const given = this.waiting;
        this.waiting = null;
        await this.#one(given);
      }
    } catch (error) {
      fail(error);
    } finally {
      this.busy = false;
    }
  }

  async #one({ text, pair }) {
    if (!text) return this.#empty();
    const { numbers, classifier } = this;
    const answer = await classifier.answer(text, numbers, pair);
    this.#show(answer, numbers);
    part("whole").textContent = "";
    if (this.waiting || answer.layer === classifier.told.layers) return;
    const whole = await classifier.answer(text, classifier.told.points.full, pair);
    if (!this.waiting) this.#compare(answer, whole);
  }

  #empty() {
    clear(this.rows);
    part("label").textContent = "…";
    part("left").textContent = "Type a text, or take one of these.";
    part("whole").textContent = "";
  }

  #show(answer, numbers) {
    const { layers, max_length: longest } = this.classifier.told;
    showExits(this.rows, answer, this.rule, numbers);
    const label = part("label");
    label.textContent = `${answer.label} ${percent(answer.probability)}`;
    label.style.setProperty("--class", `var(--class-${answer.class % 6})`);
    const cut = answer.cut ? `, cut to ${longest} tokens` : "";
    part("left").textContent =
      `${answer.layer} of ${layers} layers, ${answer.milliseconds.toFixed(1)} ms${cut}`;
  }

  #compare(answer, whole) {
    const same = answer.label === whole.label ? "the same answer" : `it says ${whole.label}`;
    part("whole").textContent =
      `All ${this.classifier.told.layers} layers: ${whole.milliseconds.toFixed(1)} ms, ${same}`;
  }
}

try {
  await start();
} catch (error) {
  fail(error);
}
