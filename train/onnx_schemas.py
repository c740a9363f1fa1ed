"""Writes what the operators of ONNX and of QONNX take, from the schemas of the packages onnx and
qonnx, to bcnn/onnx/schemas.tsv: a line for each operator and each operator set that changed it.

    pip install onnx==1.23.2 qonnx==1.0.0
    python onnx_schemas.py > ../bcnn/onnx/schemas.tsv

A line has the operator, the operator set since which it holds, its inputs and its attributes.

Inputs have the name of their type and, behind the first use of a name, the types that it may stand
for, as numbers of TensorProto.DataType. "?" behind an input says that it may be left out, "*" that
it may be repeated; "-" is an input of no single tensor type, such as a sequence.

Attributes are "@name:type" and, if they have a default, "=value", as JSON. Types are numbers of
AttributeProto.AttributeType.

Operators of QONNX have the domain in front of their names, and no inputs: the package has no
schema of them.
"""

import json
import re

import onnx
from onnx import AttributeProto, TensorProto, defs, helper
import qonnx
from qonnx.custom_op import general

NUMBERS = {f"tensor({name.lower()})": number for name, number in TensorProto.DataType.items()}
NUMBERS["tensor(float)"] = TensorProto.FLOAT
QONNX = "qonnx.custom_op.general."
QONNX_TYPES = {"i": AttributeProto.INT, "f": AttributeProto.FLOAT, "s": AttributeProto.STRING, "ints": AttributeProto.INTS}


def inputs(schema):
    constraints = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    seen = set()
    for value in schema.inputs:
        names = constraints.get(value.type_str, [value.type_str])
        numbers = sorted(NUMBERS[n] for n in names if n in NUMBERS)
        if len(numbers) < len(names):
            label = "-"
        else:
            label = value.type_str if value.type_str in constraints else "of"
            if label == "of" or label not in seen:
                seen.add(label)
                label += ":" + ",".join(map(str, numbers))
        if value.option == defs.OpSchema.FormalParameterOption.Optional:
            label += "?"
        if value.option == defs.OpSchema.FormalParameterOption.Variadic:
            if not value.is_homogeneous:
                label = "-"
            label += "*"
        yield label


def attribute(name, number, default):
    if isinstance(default, bytes):
        default = default.decode()
    return f"@{name}:{number}" + ("" if default is None else "=" + json.dumps(default, ensure_ascii=True, separators=(",", ":")))


def attributes(schema):
    for a in sorted(schema.attributes.values(), key=lambda a: a.name):
        default = None
        if a.default_value.type:
            default = helper.get_attribute_value(a.default_value)
            if a.type.name.startswith("STRINGS"):
                default = [s.decode() for s in default]
            elif a.type.name.endswith("S"):
                default = list(default)
        yield attribute(a.name, getattr(AttributeProto, a.type.name), default)


def qonnx_operators():
    """Each operator with its version and its attributes."""
    for name in dir(general):
        kind = getattr(general, name)
        if not isinstance(kind, type) or not hasattr(kind, "get_nodeattr_types"):
            continue
        operator, _, version = re.fullmatch(r"(\w+?)(_v(\d+))?", name).groups()
        found = kind.get_nodeattr_types(kind.__new__(kind))
        # A required attribute has no default, whatever stands there.
        yield operator, int(version or 1), "\t".join(
            attribute(a, QONNX_TYPES[kind_of], None if required else default)
            for a, (kind_of, required, default, *_) in sorted(found.items()) if kind_of in QONNX_TYPES)


def main():
    lines = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and not schema.deprecated:
            lines[schema.name, schema.since_version] = "\t".join([*inputs(schema), *attributes(schema)])
    for name, version, found in qonnx_operators():
        lines[QONNX + name, version] = found
    print(f"# Made by train/onnx_schemas.py of onnx {onnx.__version__} and qonnx 1.0.0; newest operator set: {defs.onnx_opset_version()}")
    before = None, None
    for (name, since), fields in sorted(lines.items()):
        if before != (name, fields):
            print(name, since, fields, sep="\t")
        before = name, fields


main()
