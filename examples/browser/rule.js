// The rule of a model as the page shows it: one number that a slider moves, and what stays.

// Signals that are high where the model is sure; all others are low there.
const RISING = ["max_probability", "certainty"];
// The ends of a signal without bounds are far away: it is shown within nearer ones.
const ENDS = { raw_energy: [-20, 20] };
const USUAL_ENDS = [0, 1];
const NEVER = 1e6; // of layers in a row, and of thresholds: beyond all that a model has

/** What the slider moves: the threshold, or how many exits have to agree where there is none. */
export class Rule {
  constructor(told) {
    const counted = /^patience(?:\((\w+)\))?$/.exec(told.rule);
    this.signal = counted ? (counted[1] ?? null) : told.rule;
    this.number = this.signal === null ? "patience" : "threshold";
    this.depth = told.layers;
    [this.comparison, [this.low, this.high]] =
      this.signal === null
        ? [">=", [0, told.exit_layers.length]]
        : [RISING.includes(this.signal) ? ">" : "<", ENDS[this.signal] ?? USUAL_ENDS];
  }

  /** What the signal is called; EDR without its distances is entropy. */
  name(numbers) {
    if (this.signal === null) return "exits in a row that agree";
    if (this.signal === "edr") return numbers.lambda === 0 ? "entropy" : "EDR";
    return this.signal.replaceAll("_", " ");
  }

  /** The same as the head of a column. */
  heading(numbers) {
    if (this.signal === null) return "Exits in a row that agree";
    return `How ${this.comparison === "<" ? "unsure" : "sure"} it is (${this.name(numbers)})`;
  }

  get step() {
    return this.signal === null ? 1 : (this.high - this.low) / 500;
  }

  /** Where a value lies between the ends, from 0 to 1. */
  share(value) {
    const part = (value - this.low) / (this.high - this.low);
    return Math.min(1, Math.max(0, part));
  }

  passes(signal, numbers) {
    const limit = numbers[this.number];
    if (this.comparison === "<") return signal < limit;
    return this.comparison === ">" ? signal > limit : signal >= limit;
  }

  /** The numbers with another one where the slider is. */
  moved(numbers, value) {
    return { ...numbers, [this.number]: this.signal === null ? Math.max(1, value) : value };
  }

  /** The numbers in words. */
  told(numbers) {
    const limit = numbers[this.number];
    const most = numbers.max_layers < this.depth ? `${numbers.max_layers} layers` : null;
    if (this.#isNever(limit)) return `runs ${most ?? "all layers"}`;
    const words = [`leaves at ${this.name(numbers)} ${this.comparison} ${shown(limit)}`];
    if (numbers.lambda) words.push(`λ ${shown(numbers.lambda)}`);
    if (this.signal !== null && numbers.patience > 1)
      words.push(`${numbers.patience} exits in a row`);
    if (most !== null) words.push(`${most} at most`);
    return words.join(", ");
  }

  /** Whether nothing meets the condition: how a model writes full depth. */
  #isNever(limit) {
    const outside = this.comparison === "<" ? limit < this.low : limit > this.high;
    return outside || Math.abs(limit) >= NEVER;
  }
}

/** A number in three digits. */
export function shown(value) {
  return String(Number(value.toPrecision(3)));
}
