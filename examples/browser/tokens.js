// A text, or a pair of texts, as the token ids that the model reads: those of `de3 predict`.

// Where the JavaScript library splits words by ASCII alone, it is told to split them as the one that
// models are trained with does.
const WORD = ["Alphabetic", "Mark", "Decimal_Number", "Connector_Punctuation", "Join_Control"]
  .map((kind) => `\\p{${kind}}`)
  .join("");
const WORDS = {
  type: "Split",
  pattern: { Regex: `[${WORD}]+|[^${WORD}\\p{White_Space}]+` },
  behavior: "Removed",
  invert: true,
};

export class Tokens {
  /**
   * @param Tokenizer the class of @huggingface/tokenizers
   * @param file what is in tokenizer.json
   * @param longest how many tokens the model takes
   */
  constructor(Tokenizer, file, longest) {
    const split = unicodeWords(file.pre_tokenizer);
    this.tokenizer = new Tokenizer({ ...file, pre_tokenizer: split }, {});
    this.longest = longest;
    this.cutLeft = file.truncation?.direction === "Left";
    // JavaScript lowers a Σ at the end of a word to ς; the library that models are trained with
    // lowers each character for itself.
    this.lowersSigma = this.tokenizer.normalizer?.("ΑΣ").endsWith("ς") ?? false;
  }

  /** {ids, types, cut}: `cut` says whether the text was longer than the model takes. */
  encode(text, pair = null) {
    const parts = [text, pair].filter((part) => part !== null).map((part) => this.#pieces(part));
    const [first, second = null] = parts;
    const marks = this.#marked([], second && []).tokens.length;
    const kept = keptLengths(first.length, second?.length, this.longest - marks);
    const cut = parts.map((part, number) => this.#shortened(part, kept[number]));
    const { tokens, token_type_ids: types } = this.#marked(
      ...[...cut, null].slice(0, 2).map((part) => part && part.map((piece) => piece.token)),
    );
    const known = new Map(cut.flat().map((piece) => [piece.token, piece.id]));
    return {
      ids: tokens.map((token) => known.get(token) ?? this.tokenizer.token_to_id(token)),
      types: types ?? tokens.map(() => 0),
      cut: parts.some((part, number) => part.length > kept[number]),
    };
  }

  /** The pieces of a text without marks of beginning and end: [{token, id}]. */
  #pieces(text) {
    const given = this.lowersSigma ? text.replaceAll("Σ", "σ") : text;
    const { tokens, ids } = this.tokenizer.encode(given, { add_special_tokens: false });
    return tokens.map((token, place) => ({ token, id: ids[place] }));
  }

  /** With the marks that the model wants around and between texts. */
  #marked(first, second) {
    const marks = this.tokenizer.post_processor;
    return marks ? marks(first, second, true) : { tokens: [...first, ...(second ?? [])] };
  }

  #shortened(pieces, length) {
    return this.cutLeft ? pieces.slice(pieces.length - length) : pieces.slice(0, length);
  }
}

function unicodeWords(split) {
  if (split?.type === "Sequence")
    return { ...split, pretokenizers: split.pretokenizers.map(unicodeWords) };
  return split?.type === "Whitespace" ? WORDS : split;
}

/** How much stays of each text where both together may have so many tokens: the longer is cut. */
function keptLengths(first, second, most) {
  if (second === undefined) return [Math.min(first, most)];
  if (first + second <= most) return [first, second];
  const half = Math.floor(most / 2);
  const [short, long] = first <= second ? [first, second] : [second, first];
  const kept = short <= half ? [short, most - short] : [half, most - half];
  return first <= second ? kept : kept.reverse();
}
