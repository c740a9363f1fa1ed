"""What each operator of the importer takes, with the attributes that it cannot be without.

An operator that is computed has values of images as its first operand; FOLDED are those that an
importer only evaluates on constants. Old opsets have as attributes what new ones have as inputs.
"""

import numpy as np

CASES = {}
FOLDED = {"BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "CenterCropPad", "Compress", "CumSum", "EyeLike", "IsInf", "IsNaN",
          "Hardmax", "NonZero", "OneHot", "Range", "ReverseSequence", "Trilu", "Unique", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh",
          "Cosh", "Sinh", "Tan", "Scatter", "ScatterElements", "ScatterND", "GatherElements", "Shape", "Size", "ConstantOfShape", "Log", "Sin", "Cos"}


class Case:
    def __init__(self, inputs, outputs=1, **attributes):
        self.inputs, self.outputs, self.attributes = inputs, outputs, attributes


def of(*names):
    def register(f):
        CASES.update(dict.fromkeys(names, f))
        return f
    return register


def case(s):
    return CASES[s.op](s)


def shape(s, rank=None):
    rank = rank or s.choice(4, 4, 4, 2, 3)
    s.rank = rank
    return [s.batch, s.choice(2, 3, 4, 8)] + [s.choice(3, 4, 5) for _ in range(rank - 2)]


def rank(s):
    return getattr(s, "rank", 4)


def given(s, name, value):
    """An operand that old opsets have as an attribute: inputs and attributes that say so."""
    if name in s.schema.attributes:
        return [], {name: value}
    return [s.held(np.int64(value))], {}


def channels(d):
    return [d[1]] + [1] * (len(d) - 2)


@of("Abs", "Ceil", "Erf", "Exp", "Floor", "Identity", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Tanh", "Celu", "Elu",
    "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Selu", "Shrink", "Softplus", "Softsign", "Swish", "ThresholdedRelu",
    "Dropout", "Flatten", "GlobalAveragePool", "GlobalMaxPool", "LogSoftmax", "Softmax", "Hardmax", "LpNormalization",
    "MeanVarianceNormalization", "IsNaN", "NonZero", "Unique", "Shape", "Size", "Acosh", "Asinh", "Atan", "Cosh", "Sinh",
    "Tan", "Sin", "Cos", "Transpose", "GlobalLpPool")
def one(s):
    d = shape(s)
    if s.op.startswith("Global"):
        s.need(len(d) > 2)
    x = s.computed(d)
    if s.op in ("Floor", "Ceil", "Round") and not s.constant:
        return Case([s.node("Clip", x, s.held(np.float32(-2)), s.held(np.float32(3)))] if s.opset >= 11 else [s.node("Clip", x, min=-2.0, max=3.0)])
    return Case([x], s.choice(1, 3, 4) if s.op == "Unique" else 1)


@of("Acos", "Asin", "Atanh", "Log", "Sqrt", "IsInf")
def domain(s):
    d = shape(s)
    low, high = (0.125, 4) if s.op in ("Log", "Sqrt") else (-0.875, 0.875)
    a = s.np.uniform(low, high, d)
    if s.op == "IsInf":
        a[s.np.random(d) < 0.4] = np.inf
        a[s.np.random(d) < 0.4] = -np.inf
    return Case([s.computed(d, a)])


@of("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Mod", "PRelu", "Sum", "Mean")
def two(s):
    d = shape(s)
    c = s.np.choice(np.float32([0.5, 1, 2, 3, -1, -2]), s.choice((), tuple(channels(d)), tuple(d[1:])))
    x, c = s.computed(d), (s.computed(d, s.np.choice(np.float32([0.5, 1, 2, -1]), d)) if s.chance(0.2) and s.op != "PRelu" else s.held(c))
    return Case([x, c], **({"fmod": 1} if s.op == "Mod" else {}))


@of("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
def compared(s):
    d = shape(s)
    return Case([s.computed(d), s.held(np.float32(s.choice(0, 0.5, -1)))])


def truth(s, d):
    return s.node("Greater", s.computed(d), s.held(np.float32(0.5)))


@of("And", "Or", "Xor", "Not")
def logical(s):
    d = shape(s)
    b = truth(s, d)
    return Case([b] if s.op == "Not" else [b, s.held(s.np.random(channels(d)) < 0.5)])


@of("Where")
def where(s):
    d = shape(s)
    return Case([truth(s, d), s.held(np.float32(2)), s.held(np.float32(-1))])


@of("BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "BitShift")
def bitwise(s):
    t = s.choice(np.uint8, np.uint32, np.uint64) if s.op == "BitShift" else s.choice(np.int8, np.uint8, np.int32, np.int64)
    a, b = s.np.integers(0, 100, (2, 3)).astype(t), s.np.integers(0, 7, (2, 3)).astype(t)
    attributes = {"direction": s.choice("LEFT", "RIGHT")} if s.op == "BitShift" else {}
    return Case([s.held(a)] + ([] if s.op == "BitwiseNot" else [s.held(b)]), **attributes)


@of("ArgMax", "ArgMin")
def largest(s):
    return Case([s.computed(shape(s))], axis=1)


@of("TopK")
def top(s):
    d = shape(s)
    inputs, attributes = ([], {"k": 2}) if "k" in s.schema.attributes else ([s.held(np.int64([2]))], {})
    return Case([s.computed(d)] + inputs, s.choice(1, 2), axis=1, **attributes)


@of("AveragePool", "MaxPool", "LpPool")
def pool(s):
    d = shape(s, s.choice(3, 4, 4))
    return Case([s.computed(d)], kernel_shape=[s.choice(1, 2, 3) for _ in d[2:]])


@of("Conv", "ConvTranspose")
def conv(s):
    d = shape(s, s.choice(3, 4, 4))
    groups = s.choice(1, 1, 2) if d[1] % 2 == 0 else 1
    first, second = (4, d[1] // groups) if s.op == "Conv" else (d[1], 2)
    k = [s.choice(1, 2, 3) for _ in d[2:]]
    w = s.np.integers(-2, 3, [first, second] + k).astype(np.float32)
    inputs = [s.computed(d), s.held(w)]
    if s.chance(0.5):
        inputs.append(s.held(np.arange(4 if s.op == "Conv" else 2 * groups, dtype=np.float32)))
    return Case(inputs, **({"group": groups} if groups > 1 else {}), **({"kernel_shape": k} if s.chance(0.7) else {}))


@of("Gemm")
def gemm(s):
    x, b = s.computed([s.batch, 4]), s.np.integers(-2, 3, (4, 4)).astype(np.float32)
    s.rank = 2
    return Case([x, s.held(b)] + ([s.held(np.float32([1, 2, 3, -4]))] if s.opset < 11 or s.chance(0.6) else []))


@of("MatMul")
def matmul(s):
    d = shape(s)
    return Case([s.computed(d), s.held(s.np.integers(-2, 3, (d[-1], 3)).astype(np.float32))])


@of("Einsum")
def einsum(s):
    return Case([s.computed([s.batch, 3, 4]), s.held(s.np.integers(-2, 3, (4, 5)).astype(np.float32))], equation="nab,bk->nak")


@of("BatchNormalization")
def batch_norm(s):
    d = shape(s)
    return Case([s.computed(d)] + [s.held((np.arange(d[1]) % 4 + k).astype(np.float32)) for k in (1, 0, -1, 1)])


@of("InstanceNormalization", "GroupNormalization", "LayerNormalization", "RMSNormalization")
def norm(s):
    d = shape(s, s.choice(3, 4))
    groups = 2 if d[1] % 2 == 0 else 1
    size = [d[1]]
    attributes = {}
    if s.op == "GroupNormalization":
        attributes["num_groups"] = groups
        size = [groups] if s.opset < 21 else size
    elif s.op in ("LayerNormalization", "RMSNormalization"):
        axis = s.choice(1, len(d) - 1, -1)
        attributes["axis"], size = axis, d[axis:]
    inputs = [s.computed(d), s.held(s.np.choice(np.float32([0.5, 1, 2, -1]), size))]
    if s.op != "RMSNormalization":
        inputs.append(s.held(s.np.integers(-2, 3, size).astype(np.float32)))
    return Case(inputs, **attributes)


@of("LRN")
def lrn(s):
    return Case([s.computed(shape(s, 4))], size=s.choice(1, 3, 5))


@of("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare")
def reduce(s):
    d = shape(s)
    if s.op == "ReduceLogSum":
        x = s.computed(d, s.np.integers(1, 9, d))
    else:
        x = s.computed(d)
    axes = s.choice([1], [len(d) - 1], list(range(2, len(d))) or [1], [-1])
    inputs, attributes = given(s, "axes", axes) if s.chance(0.9) else ([], {})
    return Case([x] + inputs, **attributes)


@of("CumSum")
def cumulative(s):
    return Case([s.held(s.np.integers(-4, 5, (2, 3, 4)).astype(np.float32)), s.held(np.int64(s.choice(0, 1, 2, -1)))])


@of("Cast")
def cast(s):
    return Case([s.computed(shape(s))], to=s.choice(1, 10, 11))


@of("CastLike")
def cast_like(s):
    return Case([s.computed(shape(s)), s.held(np.zeros(1, s.choice(np.float32, np.float16, np.float64, np.int32)))])


@of("Clip")
def clip(s):
    x = s.computed(shape(s))
    if "min" in s.schema.attributes:
        return Case([x], min=-1.0, max=2.0)
    return Case([x, s.held(np.float32(-1)), s.held(np.float32(2))])


@of("Concat")
def concat(s):
    d = shape(s)
    return Case([s.computed(d), s.computed(d)], axis=s.choice(1, len(d) - 1, -1))


@of("DepthToSpace", "SpaceToDepth")
def space(s):
    d = [s.batch, 8, 4, 4]
    return Case([s.computed(d)], blocksize=2)


@of("Col2Im")
def col2im(s):
    return Case([s.computed([s.batch, 8, 9]), s.held(np.int64([4, 4])), s.held(np.int64([2, 2]))])


@of("QuantizeLinear")
def quantize(s):
    d = shape(s)
    many = s.opset >= 13 and s.chance(0.4)
    scale = np.full(d[1] if many else (), 0.5, np.float32)
    q = s.node("QuantizeLinear", s.computed(d), s.held(scale), s.held(np.zeros(scale.shape, np.int8))) if s.chance(0.2) else None
    if q:
        return Case([s.node("DequantizeLinear", q, s.held(scale), s.held(np.zeros(scale.shape, np.int8))), s.held(scale)])
    return Case([s.computed(d), s.held(scale)] + ([s.held(np.zeros(scale.shape, s.choice(np.int8, np.uint8)))] if s.chance(0.5) else []))


@of("DequantizeLinear")
def dequantize(s):
    d = shape(s)
    many = s.opset >= 13 and s.chance(0.4)
    scale = np.full(d[1] if many else (), 0.5, np.float32)
    zero = s.held(np.full(scale.shape, s.choice(0, 3), np.int8))
    return Case([s.node("QuantizeLinear", s.computed(d), s.held(scale), zero), s.held(scale), zero])


@of("Expand")
def expand(s):
    return Case([s.computed([s.batch, 1, 3]), s.held(np.int64([1, 4, 3]))])


@of("Tile")
def tile(s):
    return Case([s.computed([s.batch, 2, 3]), s.held(np.int64([1, 2, s.choice(1, 3)]))])


@of("Reshape")
def reshape(s):
    d = shape(s)
    return Case([s.computed(d), s.held(np.int64(s.choice([0, -1], [0, 0, -1], [-1] + d[1:], [0, 1] + d[1:])))])


@of("Squeeze")
def squeeze(s):
    x = s.computed([s.batch, 1, 3, 1] if s.chance(0.7) else [s.batch, 3, 1])
    inputs, attributes = given(s, "axes", s.choice([1], [-1], [3], [1, 3]))
    return Case([x] + inputs, **attributes)


@of("Unsqueeze")
def unsqueeze(s):
    x = s.computed(shape(s, s.choice(2, 3)))
    inputs, attributes = given(s, "axes", s.choice([1], [-1], [2], [1, 3]))
    return Case([x] + inputs, **attributes)


@of("Slice")
def part(s):
    x = s.computed(shape(s))
    a, b, axis = s.choice(0, 1, -2), s.choice(2, 100, -1), s.choice(1, -1)
    if s.opset < 10:
        return Case([x], starts=[a], ends=[b], axes=[abs(axis)])
    return Case([x] + [s.held(np.int64([v])) for v in (a, b, axis)] + ([s.held(np.int64([s.choice(1, 2)]))] if s.chance(0.4) else []))


@of("Split")
def split(s):
    d = [s.batch, 4, 4]
    s.rank = 3
    inputs, attributes = [], {}
    if s.chance(0.5):
        inputs, attributes = given(s, "split", [1, 3])
    elif "num_outputs" in s.schema.attributes:
        attributes = {"num_outputs": 2}
    return Case([s.computed(d)] + inputs, 2, axis=1, **attributes)


@of("Gather")
def gather(s):
    return Case([s.computed(shape(s)), s.held(np.int64(s.choice([0, 1], [1], [1, 0, 1])))], axis=1)


@of("GatherElements")
def gather_elements(s):
    return Case([s.held(s.np.integers(-4, 5, (2, 3)).astype(np.float32)), s.held(s.np.integers(0, 2, (2, 3)))])


@of("GatherND")
def gather_nd(s):
    if s.constant:
        return Case([s.computed([2, 3, 4]), s.held(np.int64([[0, 1], [1, 2]]))])
    return Case([s.computed([s.batch, 3, 4]), s.held(np.int64([[[0], [2]]] * s.batch))], batch_dims=1)


@of("Scatter", "ScatterElements")
def scatter(s):
    return Case([s.held(s.np.integers(-4, 5, (2, 3)).astype(np.float32)), s.held(s.np.permuted(np.int64([[0, 1, 2], [0, 1, 2]]), axis=1) % 2),
                 s.held(s.np.integers(-4, 5, (2, 3)).astype(np.float32))], axis=s.choice(0, 1))


@of("ScatterND")
def scatter_nd(s):
    return Case([s.held(s.np.integers(-4, 5, (4, 3)).astype(np.float32)), s.held(np.int64([[0], [2]])), s.held(np.ones((2, 3), np.float32))])


@of("Pad")
def pad(s):
    d = shape(s, 4)
    pads = [0, 0, 1, s.choice(0, 1, 2), 0, 0, 1, s.choice(0, 2)]
    inputs, attributes = given(s, "pads", pads)
    return Case([s.computed(d)] + inputs, **attributes)


@of("Resize")
def resize(s):
    d = shape(s, 4)
    scales = [1.0, 1.0] + [s.choice(2.0, 3.0, 0.5, 1.5) for _ in d[2:]]
    if s.opset < 11:
        return Case([s.computed(d), s.held(np.float32(scales))])
    x = s.computed(d)
    if s.chance(0.5):
        return Case([x, s.held(np.zeros(0, np.float32)), s.held(np.float32(scales))])
    return Case([x, s.held(np.zeros(0, np.float32)), s.held(np.zeros(0, np.float32)), s.held(np.int64(d[:2] + [s.choice(2, 4, 7), s.choice(3, 5, 8)]))])


@of("Upsample")
def upsample(s):
    scales = [1.0, 1.0, 2.0, s.choice(2.0, 3.0)]
    if "scales" in s.schema.attributes:
        return Case([s.computed(shape(s, 4))], scales=scales)
    return Case([s.computed(shape(s, 4)), s.held(np.float32(scales))])


@of("OneHot")
def one_hot(s):
    return Case([s.held(np.int64([0, 2, 1, -1])), s.held(np.int64(3)), s.held(np.float32([0.5, 2]))])


@of("Range")
def span(s):
    return Case([s.held(np.float32(v)) for v in (s.choice(0, -1), s.choice(5, 3.5), s.choice(1, 0.5, 2))])


@of("ConstantOfShape")
def constant_of_shape(s):
    return Case([s.held(np.int64([2, 3]))])


@of("EyeLike")
def eye(s):
    return Case([s.held(np.ones((3, 4), s.choice(np.float32, np.int32, np.int64)))])


@of("Trilu")
def triangle(s):
    return Case([s.held(s.np.integers(-4, 5, (3, 4)).astype(np.float32))] + ([s.held(np.int64(s.choice(-1, 1, 2)))] if s.chance(0.5) else []))


@of("Compress")
def compress(s):
    return Case([s.held(s.np.integers(-4, 5, (3, 4)).astype(np.float32)), s.held(np.array([True, False, True]))])


@of("CenterCropPad")
def center(s):
    return Case([s.held(s.np.integers(-4, 5, (3, 4)).astype(np.float32)), s.held(np.int64([s.choice(2, 5), s.choice(3, 4, 7)]))])


@of("ReverseSequence")
def reverse(s):
    return Case([s.held(s.np.integers(-4, 5, (3, 3)).astype(np.float32)), s.held(np.int64([1, 2, 3]))])


NAMES = sorted(CASES)
