"""What strangers put where a sensible value belongs, each under a name that a report can show."""

from __future__ import annotations

import pickle
from typing import Any

__all__ = ["ADDITIONS", "CHUNKS", "OUTSIDE", "VALUES", "Raw", "argument"]

OUTSIDE = "{outside}"  # stands for the folder of the canaries, which a case fills in


class Raw(str):
    """Text that goes into a document as it is, without quotes."""


class Planted:
    """What unpickling this does is noticed by the watch."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("import os; os.mkdir('executed')",)


FOREIGN = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}
VALUES: dict[str, Any] = {
    "null": None,
    "true": True,
    "false": False,
    "zero": 0,
    "one": 1,
    "two": 2,
    "three": 3,
    "minus one": -1,
    "million": 1_000_000,
    "billion": 10**9,
    "beyond 64 bits": 2**63,
    "huge": 10**30,
    "digits": Raw("9" * 5000),
    "half": 0.5,
    "tiny": 1e-300,
    "enormous": Raw("1e999"),
    "nan": Raw("NaN"),
    "infinity": Raw("Infinity"),
    "minus infinity": Raw("-Infinity"),
    "empty": "",
    "blank": " \t ",
    "word": "x",
    "number word": "3",
    "long": "x" * 100_000,
    "surrogate": "a\ud800b",
    "escape": "\x1b[31mred\x1b[0m\x07",
    "one byte escape": "\x9b31m\x7f",
    "lines": "a\nb\r\nc\x00d",
    "backwards": "abc\u202efed",
    "markup": "[/x][red]y[",
    "braces": "{0.__class__} %s {{7*7}} ${HOME}",
    "up": "../outside.onnx",
    "far up": "../../../../../../../../etc/passwd",
    "system file": "/etc/passwd",
    "canary": f"{OUTSIDE}/outside.onnx",
    "device": "/dev/zero",
    "link": "http://127.0.0.1:9/x",
    "file link": "file:///etc/passwd",
    "hub id": "someone/something",
    "home": "~/x",
    "here": ".",
    "code": "evil.Model",
    "auto map": FOREIGN,
    "list": [1, 2, 3],
    "empty list": [],
    "lists": [[[]]],
    "object": {"a": 1},
    "empty object": {},
    "numbers as keys": {"0": "a", "00": "b", "-1": "c"},
    "many": list(range(5000)),
    "deep": Raw("[" * 100_000 + "]" * 100_000),
    "deep object": Raw('{"a":' * 900 + "1" + "}" * 900),
    "layer(2)": "layer(2)",
    "a policy": "edr(lambda=1.0) < 0.2",
}
# Keys that a file has none of and that some library below may take as an order.
ADDITIONS: dict[str, Any] = {
    "auto_map": {**FOREIGN, "AutoTokenizer": ["evil.Tokenizer", "evil.Tokenizer"]},
    "trust_remote_code": True,
    "custom_pipelines": {"text-classification": {"impl": "evil.Pipeline"}},
    "model_type": "bert",
    "architectures": ["EvilModel"],
    "tokenizer_class": "EvilTokenizer",
    "_name_or_path": "/etc/passwd",
    "name_or_path": f"{OUTSIDE}/outside.json",
    "quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True},
    "dtype": "float8",
    "torch_dtype": "os.system",
    "_attn_implementation": "flash_attention_2",
    "attn_implementation": "someone/kernel",
    "task": "words",
    "chat_template": "{{ ''.__class__.__mro__ }}",
    "base_model_name_or_path": "../outside.json",
    "adapter": f"{OUTSIDE}/outside.json",
    "distributed_config": {"a": 1},
    "device_map": "auto",
    "": "no name",
    "\x1b[2J": "\x1b[2J",
    "__class__": "x",
    "format": 1,
    "version": 99,
}
CHUNKS: dict[str, bytes] = {
    "nothing": b"",
    "nul": b"\0" * 8,
    "ones": b"\xff" * 8,
    "escape": b"\x1b[2J\x1b]0;owned\x07",
    "escape written out": b"\\u001b[2J",
    "surrogate written out": b"\\ud800",
    "quote": b'"',
    "comma": b",",
    "tab": b"\t",
    "newline": b"\n",
    "blank lines": b"\n\n\n",
    "carriage": b"\r",
    "brace": b"{",
    "bracket": b"]",
    "minus": b"-",
    "digit": b"9",
    "digits": b"9" * 400,
    "utf-8 mark": b"\xef\xbb\xbf",
    "utf-16 mark": b"\xff\xfe",
    "half a character": b"\xe2\x82",
    "separator": "\u2028\x85".encode(),
    "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
    "parquet": b"PAR1",
    "zip": b"PK\x03\x04",
    "pickle": pickle.dumps(Planted(), protocol=2),
    "letters": b"a" * 300_000,
}


def argument(value: Any) -> str:
    """A value as a word of the command line, where there is no NUL."""
    text = value if isinstance(value, str) else str(value)
    # The system hands over bytes: half a surrogate there is a byte that is not UTF-8.
    return text.replace("\x00", "").replace("\ud800", "\udcff")[:100_000]
