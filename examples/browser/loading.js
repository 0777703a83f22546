// What has to be there before the page can answer: a browser that can, the libraries, the files.

// A WebAssembly module with one SIMD instruction: valid where the browser has them.
const SIMD = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 9, 1, 7, 0, 65, 0, 253, 15, 26,
  11,
];
const LIBRARIES = new URL("node_modules/", import.meta.url).href;
const MOST_THREADS = 4;

/** Throws with what the browser lacks. */
export function checkBrowser() {
  if (typeof WebAssembly !== "object")
    throw new Error("This browser has no WebAssembly, or it is switched off.");
  if (!WebAssembly.validate(Uint8Array.from(SIMD)))
    throw new Error(
      "This browser's WebAssembly has no SIMD instructions. Those of Chrome and Edge 91, " +
        "Firefox 89 and Safari 16.4 or later have them.",
    );
}

/** How many threads there may be, and why it is one where it is. */
export function threads() {
  const wanted = new URLSearchParams(location.search).get("threads");
  if (wanted !== null && !/^[1-9]\d?$/.test(wanted))
    throw new Error(`?threads= takes a number from 1 to 99, and got "${wanted}".`);
  if (!globalThis.crossOriginIsolated)
    return { count: 1, why: "the server does not send the headers that threads need" };
  const usual = Math.min(navigator.hardwareConcurrency ?? 1, MOST_THREADS);
  return { count: Number(wanted ?? usual), why: null };
}

/** onnxruntime-web and the tokenizer, as npm installed them. */
export async function libraries(count) {
  const ort = await library("onnxruntime-web/dist/ort.wasm.min.mjs");
  const { Tokenizer } = await library("@huggingface/tokenizers/dist/tokenizers.min.mjs");
  ort.env.wasm.wasmPaths = `${LIBRARIES}onnxruntime-web/dist/`;
  ort.env.wasm.numThreads = count;
  ort.env.wasm.proxy = true; // in a worker, so that the page never stands still
  return { ort, Tokenizer };
}

async function library(path) {
  try {
    return await import(LIBRARIES + path);
  } catch (error) {
    throw new Error(
      `The library node_modules/${path} could not be loaded. Run "npm ci" in the folder of this ` +
        `page. (${error.message})`,
    );
  }
}

/** The bytes of a file; `progress` hears which part of it is there, undefined if nobody knows. */
export async function fetched(name, progress = () => {}) {
  const answer = await fetch(name).catch((error) => {
    throw new Error(`${name} could not be fetched: ${error.message}`);
  });
  if (answer.status === 404)
    throw new Error(
      `There is no ${name} beside this page. Serve one with: python serve.py MODEL.onnx`,
    );
  if (!answer.ok) throw new Error(`${name} could not be fetched: ${answer.status}.`);
  const size = Number(answer.headers.get("Content-Length"));
  const parts = [];
  let bytes = 0;
  for await (const part of read(answer.body)) {
    parts.push(part);
    bytes += part.length;
    progress(size ? bytes / size : undefined);
  }
  return joined(parts, bytes);
}

/** The parts of a stream. Safari's streams cannot be iterated over. */
async function* read(stream) {
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

function joined(parts, bytes) {
  const whole = new Uint8Array(bytes);
  let place = 0;
  for (const part of parts) {
    whole.set(part, place);
    place += part.length;
  }
  return whole;
}
