// For tests: the answers of a model in Node, or the tokens alone, as one line of JSON.
//
//     node answers.mjs NODE_MODULES EXAMPLES < question.json

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, examples] = process.argv.slice(2);
const required = createRequire(join(modules, "x.js"));
const ours = (name) => import(pathToFileURL(join(examples, "browser", name)));
const { Tokenizer } = required("@huggingface/tokenizers");
const asked = JSON.parse(readFileSync(0, "utf8"));

async function tokens() {
  const { Tokens } = await ours("tokens.js");
  const file = JSON.parse(readFileSync(asked.tokenizer, "utf8"));
  const made = new Tokens(Tokenizer, file, asked.longest);
  return asked.texts.map(([text, pair]) => made.encode(text, pair));
}

async function answers() {
  const { OneFile } = await ours("one-file.js");
  const [model, tokenizer] = [asked.model, asked.tokenizer].map((path) => readFileSync(path));
  const ort = required("onnxruntime-node");
  const classifier = await OneFile.open(ort, Tokenizer, model, tokenizer);
  const found = [];
  for (const text of asked.texts) found.push(await classifier.answer(text, asked.numbers));
  return found;
}

console.log(JSON.stringify(await (asked.model ? answers() : tokens())));
