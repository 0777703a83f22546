// What an ONNX file says of itself (`metadata_props`), which onnxruntime-web does not give.

// Numbers of fields in onnx.proto: of ModelProto, and of the entries of its metadata.
const METADATA = 14;
const KEY = 1;
const VALUE = 2;

// How protocol buffers store a field.
const VARINT = 0;
const EIGHT_BYTES = 1;
const COUNTED = 2;
const FOUR_BYTES = 5;

/** The metadata of a model file, name -> text. */
export function metadata(bytes) {
  const found = {};
  for (const [field, content] of fields(bytes)) {
    if (field !== METADATA) continue;
    const entry = new Map(fields(content));
    found[text(entry.get(KEY))] = text(entry.get(VALUE));
  }
  return found;
}

/** The fields of a message that have a length, as [number, bytes]; others are stepped over. */
function* fields(bytes) {
  let place = 0;
  const number = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      if (place >= bytes.length || scale > 2 ** 63) throw new Error("This is no ONNX file.");
      const byte = bytes[place++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (place < bytes.length) {
    const tag = number();
    const kind = tag % 8;
    if (kind === VARINT) number();
    else if (kind === EIGHT_BYTES) place += 8;
    else if (kind === FOUR_BYTES) place += 4;
    else if (kind === COUNTED) {
      const length = number();
      if (place + length > bytes.length) throw new Error("This ONNX file is cut off.");
      yield [Math.floor(tag / 8), bytes.subarray(place, (place += length))];
    } else throw new Error("This is no ONNX file.");
  }
}

const text = (bytes) => new TextDecoder().decode(bytes ?? new Uint8Array());
