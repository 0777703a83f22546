// A model that `de3 export MODEL --one-file FILE` wrote, in a browser or in Node: a text in, the
// answer, the layer it was given at and what every exit said out.

import { metadata } from "./metadata.js";
import { Tokens } from "./tokens.js";

const FORMAT = "1";
const PREFIX = "de3bert.";
// What is written as JSON; all else is text.
const AS_JSON = ["labels", "points", "layers", "exit_layers", "max_length", "source"];
// The numbers of a rule are inputs of the model. The JavaScript runtimes know no inputs with a
// default, so that all of them have to be given.
const NUMBERS = { threshold: "float32", lambda: "float32", patience: "int64", max_layers: "int64" };

export class OneFile {
  /**
   * @param ort onnxruntime-web or onnxruntime-node
   * @param Tokenizer the class of @huggingface/tokenizers
   * @param model the bytes of the model file
   * @param tokenizer the bytes of tokenizer.json
   * @param options of the session
   */
  static async open(ort, Tokenizer, model, tokenizer, options = {}) {
    const told = readCard(model);
    const matches = await sameTokenizer(tokenizer, told.tokenizer_sha256);
    const file = readTokenizer(tokenizer);
    const tokens = new Tokens(Tokenizer, file, told.max_length);
    const session = await ort.InferenceSession.create(model, options);
    const needed = Object.keys(told.points[told.default_point]);
    if (needed.some((name) => !session.inputNames.includes(name)))
      throw new Error(
        "The numbers of this model's rule are built in, and JavaScript cannot change those. " +
          "Write it again with: de3 export MODEL --one-file FILE --record --no-defaults",
      );
    return new OneFile(ort, session, tokens, told, matches);
  }

  /** `told` is what the file says of itself; `checked`, whether the tokenizer was compared. */
  constructor(ort, session, tokens, told, checked) {
    Object.assign(this, { ort, session, tokens, told, checked });
    this.records = session.outputNames.includes("exit_signals");
  }

  /**
   * @param numbers of the rule: one of `told.points`, or others under the same names
   * @returns {layer, label, class, probability, logits, tokens, cut, milliseconds, exits}; `exits`
   *   has {layer, label, class, probability, logits, signal} of each exit that ran, and is null for
   *   a model without a record
   */
  async answer(text, numbers, pair = null) {
    const started = performance.now();
    const row = this.tokens.encode(text, pair);
    const out = await this.session.run(this.#feeds(row, numbers));
    const answer = this.#likeliest(out.logits.data);
    const milliseconds = performance.now() - started;
    const layer = Number(out.exit_layer.data[0]);
    const exits = this.records ? this.#exits(out, layer) : null;
    return { layer, ...answer, tokens: row.ids.length, cut: row.cut, milliseconds, exits };
  }

  #feeds(row, numbers) {
    const { Tensor } = this.ort;
    const whole = (values, shape) => new Tensor("int64", BigInt64Array.from(values, BigInt), shape);
    const feeds = { input_ids: whole(row.ids, [1, row.ids.length]) };
    if (this.session.inputNames.includes("token_type_ids"))
      feeds.token_type_ids = whole(row.types, [1, row.ids.length]);
    for (const [name, value] of Object.entries(numbers))
      feeds[name] =
        NUMBERS[name] === "int64" ? whole([value], []) : new Tensor("float32", [value], []);
    return feeds;
  }

  #exits(out, last) {
    const { labels, exit_layers: layers } = this.told;
    const ran = layers.filter((layer) => layer <= last);
    return ran.map((layer, place) => {
      const logits = out.exit_logits.data.slice(place * labels.length, (place + 1) * labels.length);
      return { layer, ...this.#likeliest(logits), signal: out.exit_signals.data[place] };
    });
  }

  #likeliest(logits) {
    const highest = Math.max(...logits);
    const parts = Array.from(logits, (logit) => Math.exp(logit - highest));
    const total = parts.reduce((sum, part) => sum + part);
    const place = logits.indexOf(highest);
    return {
      label: this.told.labels[place],
      class: place,
      probability: parts[place] / total,
      logits: Array.from(logits),
    };
  }
}

/** What the file says of itself, without the prefix of its names. */
function readCard(model) {
  const props = metadata(model);
  const format = props[`${PREFIX}format`];
  if (format !== FORMAT)
    throw new Error(
      `This is no model that de3bert wrote as one file (its format is ${format ?? "not given"}, ` +
        `read is ${FORMAT}). Write one with: de3 export MODEL --one-file FILE --record --no-defaults`,
    );
  const own = Object.entries(props).filter(([name]) => name.startsWith(PREFIX));
  const read = own.map(([name, text]) => [name.slice(PREFIX.length), text]);
  return Object.fromEntries(
    read.map(([name, text]) => [name, AS_JSON.includes(name) ? JSON.parse(text) : text]),
  );
}

function readTokenizer(bytes) {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch (error) {
    throw new Error(`The tokenizer.json could not be read: ${error.message}`);
  }
}

/** Throws for another model's tokenizer; false where the browser cannot tell. */
async function sameTokenizer(bytes, wanted) {
  if (!globalThis.crypto?.subtle) return false; // a page from neither https nor localhost
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const found = Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (found === wanted) return true;
  throw new Error(
    "This tokenizer.json is another model's. Take the one that was written beside the model: " +
      `${shortened(wanted)} is wanted (SHA-256), this is ${shortened(found)}.`,
  );
}

const shortened = (hash) => `${String(hash).slice(0, 12)}…`;
