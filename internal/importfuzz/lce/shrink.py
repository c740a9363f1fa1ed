"""Makes a graph in which an output is wrong smaller, as long as it stays wrong."""

import numpy as np

from .flat import encode
from .oracle import NotRun


def shrink(g, feed, outputs, wrong, oracle, most=400):
    """The smallest graph and feed found, first with these outputs alone. wrong tells whether (graph, feed) is still at fault."""
    tries = 0

    def better(h, x):
        nonlocal tries
        tries += 1
        return tries <= most and len(h.inputs) > 0 and len(h.operators) > 0 and wrong(h, x)

    best = keep(g, feed, outputs)
    if not better(*best):
        best = g, feed  # it takes several outputs
    again = True
    while again and tries < most:
        again = False
        for step in (earlier, cut, bypass, plain, images, calmer):
            for h, x in step(*best, oracle):
                if tries < most and better(h, x):
                    best, again = (h, x), True
                    break
    return best


def keep(g, feed, outputs):
    """A copy of a graph with these outputs and nothing that they do not depend on."""
    h = g.copy()
    h.outputs = list(outputs)
    names = {h.tensors[i].name: x for i, x in feed.items()}
    h.prune()
    return h, {i: names[h.tensors[i].name] for i in h.inputs}


def earlier(g, feed, oracle):
    """Tensors that are computed on the way as outputs."""
    for o in g.operators:
        for i in o.outputs:
            if g.outputs != [i]:
                yield keep(g, feed, [i])


def values_of(g, feed, oracle):
    """What the interpreter computes on the way, by index."""
    h = g.copy()
    h.outputs = [i for o in g.operators for i in o.outputs]
    parts, model, batch = [], encode(h), g.tensors[g.inputs[0]].dims[0]
    for k in range(len(feed[g.inputs[0]]) // batch):
        parts.append(oracle.run(model, [feed[i][k * batch:(k + 1) * batch] for i in g.inputs]))
    return dict(zip(h.outputs, (np.concatenate(p) for p in zip(*parts))))


def cut(g, feed, oracle):
    """Tensors that are computed on the way as inputs, with the values that the interpreter computes."""
    try:
        known = values_of(g, feed, oracle)
    except NotRun:
        return
    for o in reversed(g.operators):
        for i in o.outputs:
            if i in g.outputs or len(g.tensors[i].dims) < 2 or g.tensors[i].dtype not in ("float32", "int8", "int32"):
                continue
            h = g.copy()
            h.operators = [p for p in h.operators if i not in p.outputs or len(p.outputs) > 1]
            for p in h.operators:
                if i in p.outputs:
                    break
            else:
                h.inputs.append(i)
                yield keep(h, {**feed, i: known[i]}, g.outputs)


def bypass(g, feed, oracle):
    """Leaves an operator out whose output is as one of its inputs."""
    for k, o in enumerate(g.operators):
        t = g.tensors[o.outputs[0]]
        for i in o.inputs:
            s = g.tensors[i] if i >= 0 else None
            if s is None or s.data is not None or len(o.outputs) > 1 or (s.dims, s.dtype, s.scale, s.zero) != (t.dims, t.dtype, t.scale, t.zero):
                continue
            h = g.copy()
            del h.operators[k]
            for p in h.operators:
                p.inputs = [i if n == o.outputs[0] else n for n in p.inputs]
            h.outputs = [i if n == o.outputs[0] else n for n in h.outputs]
            if h.maker(h.outputs[0]) is not None:
                yield keep(h, feed, h.outputs)


def plain(g, feed, oracle):
    """Options and constants as they mostly are."""
    usual = {"FusedActivationFunction": 0, "fused_activation_function": 0}
    for k, o in enumerate(g.operators):
        for field, value in o.fields.items():
            if field in usual and value != usual[field]:
                h = g.copy()
                h.operators[k].fields[field] = usual[field]
                yield h, feed
        for n, i in enumerate(o.inputs):
            t = g.tensors[i] if i >= 0 else None
            if t is None or t.data is None or t.dtype not in ("float32", "int8") or t.data.size == 0:
                continue
            flat = t.data.ravel()
            for data in (np.ones_like(t.data), np.full_like(t.data, flat[0]), np.sign(t.data)):
                if not np.array_equal(data, t.data):
                    h = g.copy()
                    h.tensors[i].data = data
                    yield h, feed


def images(g, feed, oracle):
    """One batch of the file at a time."""
    batch = g.tensors[g.inputs[0]].dims[0]
    n = len(feed[g.inputs[0]]) // batch
    for k in range(n if n > 1 else 0):
        yield g, {i: x[k * batch:(k + 1) * batch] for i, x in feed.items()}


def calmer(g, feed, oracle):
    """Inputs of fewer different values."""
    for i, x in feed.items():
        t = g.tensors[i]
        if t.dtype == "int32":
            continue
        flat = np.unique(x)
        if len(flat) > 2:
            for values in (flat[:len(flat) // 2], flat[len(flat) // 2:]):
                yield g, {**feed, i: np.where(np.isin(x, values), x, values[0]).astype(x.dtype)}


