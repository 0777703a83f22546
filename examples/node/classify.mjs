// Answer a stream of texts in Node, with onnxruntime-node.
//
//     npm ci
//     node classify.mjs MODEL.onnx [POINT] < texts.txt
//
// MODEL.onnx is what `de3 export MODEL --one-file MODEL.onnx --no-defaults` wrote, with
// tokenizer.json beside it; POINT is one of its points, by default its own. A line of standard input
// is a text, or two with a tab between them for a model of text pairs. A line of output is its
// answer: label, probability and exit layer.

import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

import { Tokenizer } from "@huggingface/tokenizers";
import * as ort from "onnxruntime-node";

import { OneFile } from "../browser/one-file.js";

async function main(path, point) {
  const beside = join(dirname(path), "tokenizer.json");
  const [model, tokenizer] = await Promise.all([readFile(path), readFile(beside)]);
  const classifier = await OneFile.open(ort, Tokenizer, model, tokenizer);
  const { points, default_point: usual } = classifier.told;
  const numbers = points[point ?? usual];
  if (!numbers)
    throw new Error(`There is no point "${point}"; there are: ${Object.keys(points).join(", ")}.`);
  for await (const line of createInterface({ input: process.stdin })) {
    if (!line.trim()) continue;
    const [text, pair = null] = line.split("\t");
    const { label, probability, layer } = await classifier.answer(text, numbers, pair);
    console.log(`${label}\t${probability.toFixed(4)}\t${layer}`);
  }
}

if (process.argv.length < 3 || process.argv.length > 4) {
  console.error("Use: node classify.mjs MODEL.onnx [POINT] < texts.txt");
  process.exitCode = 2;
} else {
  await main(...process.argv.slice(2)).catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}
