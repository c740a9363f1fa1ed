"""Operators on floats, value by value."""

import numpy as np

from .draw import limited, operator, power

TABLES = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions",
          "MAXIMUM": "MaximumMinimumOptions", "MINIMUM": "MaximumMinimumOptions"}

JOINED = {"ADD", "SUB", "MUL", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV", "LceBconv2d", "DEQUANTIZE"}


def traits(t):
    return dict(step=t.step, bound=t.bound, once=t.once, zeroed=t.zeroed)


@operator(6, "RELU", "RELU6", "RELU_N1_TO_1")
def relu(d, name):
    i = d.pick(test=d.calm)
    t = d.tensor(i)
    bound = limited(t.bound, {"RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}[name])
    d.emit(name, [i], t.dims, step=t.step, bound=bound, once=t.once, zeroed=t.zeroed)


@operator(3, "ABS", "NEG")
def unary(d, name):
    i = d.pick(test=d.calm)
    d.emit(name, [i], d.tensor(i).dims, name.capitalize() + "Options", **traits(d.tensor(i)))


@operator(4, "SIGN")
def sign(d, name):
    i = d.pick(test=d.signed)
    d.emit(name, [i], d.tensor(i).dims, "SignOptions", step=1.0, bound=1.0)


@operator(3, "ROUND", "FLOOR", "CEIL")
def rounding(d, name):
    i = d.pick(test=d.comparable)
    t = d.tensor(i)
    d.emit(name, [i], t.dims, step=max(1.0, t.step), bound=np.ceil(t.bound) + 1)


def constant_of(d, i, make, full=0.06):
    """A constant beside a tensor: one number, one for each channel, or one for each value."""
    dims = d.tensor(i).dims
    shapes = [[], [1], [1] * len(dims), dims[-1:], dims[-1:], [1] * (len(dims) - 1) + dims[-1:]]
    shape = dims if d.chance(full) else d.choice(shapes)
    data = make(tuple(shape))
    if d.chance(0.1):  # of one value, as converters expand it
        data = np.full(shape, np.ravel(data)[0] if data.size else 0, np.float32)
    return data


def with_constant(d, name, i, data, act=0, swap=False):
    """Emits a binary operator of a tensor and a constant. None where it does not fit exact mode."""
    t, known = d.tensor(i), {}
    c = float(np.abs(data).max()) if data.size else 0.0
    if d.exact:
        step = grid_of(data)
        if name in ("MAXIMUM", "MINIMUM"):
            known = dict(step=min(t.step, step), bound=max(t.bound, c), once=t.once and not t.step)
        elif t.step == 0:
            known = {}
        elif name in ("ADD", "SUB"):
            known = dict(step=min(t.step, step), bound=t.bound + c)
        elif name == "MUL" and step * 2.0**16 > c:
            known = dict(step=t.step * step, bound=t.bound * c)
        elif name == "MUL" and not shifted(d, i):
            known = dict(step=0.0, bound=t.bound * c, once=True)
        elif name == "DIV" and not swap and all(power(abs(x)) for x in data.flat):
            known = dict(step=t.step / c, bound=t.bound / float(np.abs(data).min()))
        d.need(known)
        known["bound"] = limited(known["bound"], act)
        if known.get("once"):
            known["step"] = 0.0
    k = d.constant(data)
    fields = {"FusedActivationFunction": act} if "FusedActivationFunction" and name not in ("MAXIMUM", "MINIMUM") else {}
    inputs = [k, i] if swap else [i, k]
    dims = list(np.broadcast_shapes(tuple(t.dims), data.shape))
    return d.emit(name, inputs, dims, TABLES[name], fields, **known)


def shifted(d, i):
    """Whether something was added or multiplied on the way to a tensor, which a factor may be joined with: bcnn rounds that once."""
    o = d.g.maker(i)
    return o is not None and (o.name in JOINED or any(shifted(d, k) for k in o.inputs if k >= 0))


def grid_of(data):
    """The largest power of two of which all numbers are multiples."""
    list_ = [x for x in np.abs(np.ravel(data)).astype(np.float64) if x]
    if not list_:
        return 1.0
    step = 2.0 ** np.floor(np.log2(min(list_)))
    while any(x % step for x in list_):
        step /= 2
    return float(step)


@operator(14, "ADD constant", "SUB constant", "MUL constant", "MAXIMUM constant", "MINIMUM constant")
def constants(d, name):
    name = name.split()[0]
    limits = name in ("MAXIMUM", "MINIMUM")
    i = d.pick(test=d.comparable if limits else d.grid(16))
    make = d.numbers
    if name == "MUL":
        make = d.factors
        if d.exact and d.chance(0.15):  # a product that is rounded once
            def make(shape):
                return np.float32(d.r.uniform(0.01, 1.5, shape) * d.choice([1, 1, -1]))
    with_constant(d, name, i, np.float32(constant_of(d, i, make)), 0 if limits else d.activation(), d.chance(0.3))


@operator(0.3, "DIV constant")
def division(d, name):
    i = d.pick(test=d.grid(16))
    with_constant(d, "DIV", i, np.float32(constant_of(d, i, lambda shape: d.r.choice([0.5, 2, 4, -1], shape))), d.activation())


@operator(5, "ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")
def binary(d, name):
    """Operators on two computed tensors, of which one may be repeated."""
    test = d.comparable if name[0] == "M" and name != "MUL" else d.grid(4)
    i = d.pick(test=test)
    t = d.tensor(i)
    j = d.pick(test=lambda o: test(o) and (o.dims == t.dims or o.dims == [t.dims[0], *[1] * (len(t.dims) - 2), t.dims[-1]] and name == "MUL"))
    o, known, act = d.tensor(j), {}, 0
    if name in ("MAXIMUM", "MINIMUM"):
        known = dict(step=min(t.step, o.step), bound=max(t.bound, o.bound), once=d.exact and not (t.step and o.step))
    else:
        act = d.activation()
        if d.exact:
            d.need(name != "MUL" or t.bound * o.bound / (t.step * o.step) <= 2.0**22)
            known = dict(step=t.step * o.step, bound=t.bound * o.bound) if name == "MUL" else dict(step=min(t.step, o.step), bound=t.bound + o.bound)
            known["bound"] = limited(known["bound"], act)
    inputs = [j, i] if d.chance(0.3) else [i, j]
    d.emit(name, inputs, t.dims, TABLES[name], {"FusedActivationFunction": act} if act else {}, **known)


@operator(6, "stairs")
def stairs(d, name):
    """Whole numbers of a few levels as DoReFa and its kin make them: a factor, limits, a rounding, limits, a factor."""
    i = d.pick(test=d.grid(64))
    start = i
    if d.chance(0.3):
        i = with_constant(d, "ADD", i, np.float32(d.choice([0.5, 0.25, -0.5, 1.0])).reshape(d.choice([(), (1,)])))
    if d.chance(0.5):
        f = d.choice([1.0, 2.0, 3.0, 7.0, 15.0, 0.5, 255.0, 3.0] if d.chance(0.7) else [1 / 3, 0.1, 2.5, 1.2])
        i = with_constant(d, "MUL", i, np.float32(f).reshape(d.choice([(), (1,)])), swap=d.chance(0.2))
    for place in ("before", "round", "behind"):
        if place == "round":
            t = d.tensor(i)
            i = d.emit(d.choice(["ROUND", "FLOOR", "CEIL"]), [i], t.dims, step=max(1.0, t.step), bound=np.ceil(t.bound) + 1)
            continue
        if d.chance(0.25):
            continue
        t = d.tensor(i)
        kind = d.choice(["relu6", "relu", "clip", "clip", "clip", "relu1"])
        if kind == "clip":
            whole = d.chance(0.7)
            lo = d.choice([0, 0, -1, -2, 1, -7]) + (0 if whole else d.choice([0.5, -0.25, 0.125]))
            hi = lo + d.choice([1, 2, 3, 7, 15, 0, -1]) + (0 if whole else d.choice([0, 0.5, 0.25]))
            pair = [("MAXIMUM", lo), ("MINIMUM", hi)]
            for op, x in pair if d.chance(0.5) else pair[::-1]:
                if d.chance(0.9):
                    i = with_constant(d, op, i, np.float32(x).reshape(d.choice([(), (1,)])), swap=d.chance(0.3))
        else:
            op = {"relu6": "RELU6", "relu": "RELU", "relu1": "RELU_N1_TO_1"}[kind]
            i = d.emit(op, [i], t.dims, step=t.step, bound=limited(t.bound, {"RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}[op]), once=t.once)
    if d.chance(0.5):
        f = d.choice([1.0, 0.5, 0.25, 2.0, -1.0, 0.125]) if d.exact else d.choice([1 / 3, 1 / 7, 1 / 15, 0.1, 0.5, -0.3, 1 / 255])
        i = with_constant(d, "MUL", i, np.float32(f).reshape(d.choice([(), (1,)])), d.activation(0.15), d.chance(0.2))
    d.need(i != start)


@operator(2, "LEAKY_RELU", "PRELU")
def slopes(d, name):
    i = d.pick(test=d.grid(64))
    t = d.tensor(i)
    if name == "LEAKY_RELU":
        alpha = float(d.choice([0.25, 0.5, 2.0, -0.5, 0.0]) if d.exact else d.choice([0.1, 0.3, 1.5, -0.2]))
        d.emit(name, [i], t.dims, "LeakyReluOptions", {"Alpha": alpha}, step=t.step * 0.25, bound=t.bound * 2)
        return
    d.need(len(t.dims) == 4)
    shape = d.choice([(t.dims[-1],), (1, 1, t.dims[-1]), (1, 1, 1)])
    data = d.factors(shape)
    d.emit(name, [i, d.constant(data)], t.dims, step=t.step * grid_of(data), bound=t.bound * max(1.0, float(np.abs(data).max())))


@operator(2, "ELU", "GELU", "HARD_SWISH", "LOGISTIC", "TANH", "EXP")
def functions(d, name):
    """Functions, whose values are no multiples of anything: in exact mode they end a graph."""
    i = d.pick(test=d.calm)
    t = d.tensor(i)
    d.need(not d.exact or d.chance(0.3))
    d.need(name != "EXP" or not d.exact or t.bound < 20)
    table = {"GELU": "GeluOptions", "HARD_SWISH": "HardSwishOptions", "EXP": "ExpOptions"}.get(name)
    d.emit(name, [i], t.dims, table, {"Approximate": d.chance(0.5)} if name == "GELU" else {})


@operator(1, "L2_NORMALIZATION")
def l2_normalization(d, name):
    """Of exact numbers: it makes large numbers of the roundings of what is almost 0."""
    i = d.pick(test=d.calm)
    d.need(d.exact and d.chance(0.3))
    d.emit(name, [i], d.tensor(i).dims, "L2NormOptions", {}, bound=1.0)


@operator(1, "SOFTMAX", "LOG_SOFTMAX")
def softmax(d, name):
    i = d.pick(test=d.calm)
    if name == "SOFTMAX":
        d.emit(name, [i], d.tensor(i).dims, "SoftmaxOptions", {"Beta": float(d.choice([1.0, 1.0, 0.5, 2.0]))})
    else:
        d.emit(name, [i], d.tensor(i).dims, "LogSoftmaxOptions")


@operator(0.3, "SELECT")
def select(d, name):
    """GREATER and SELECT between two constants."""
    i = d.pick(test=d.comparable)
    t = d.tensor(i)
    k = d.emit("GREATER", [i, d.constant(d.numbers(()))], t.dims, "GreaterOptions", dtype="bool")
    x, y = d.constant(np.full(t.dims, 1, np.float32)), d.constant(np.full(t.dims, -1, np.float32))
    d.emit("SELECT", [k, x, y], t.dims, "SelectOptions", step=1.0, bound=1.0)


@operator(0.6, "ARG_MAX", "ARG_MIN")
def arg(d, name):
    i = d.pick(test=d.comparable)
    t = d.tensor(i)
    d.emit(name, [i, d.ints(d.choice([-1, len(t.dims) - 1]))], t.dims[:-1], name.title().replace("_", "") + "Options", {"OutputType": 2}, dtype="int32")
