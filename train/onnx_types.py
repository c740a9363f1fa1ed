"""Writes the types that the operators of ONNX take, from the schemas of the onnx package, to
bcnn/onnx/types.tsv: a line for each operator and each operator set that changed them.

    python onnx_types.py > ../bcnn/onnx/types.tsv

A line has the operator, the operator set since which it holds, and its inputs, each with the
name of its type and behind the first use of a name the types that it may stand for, as
numbers of TensorProto.DataType. "*" behind the last input says that it is repeated; "-" is an
input of no single tensor type, such as a sequence.
"""

import onnx
from onnx import TensorProto, defs

NUMBERS = {f"tensor({name.lower()})": number for name, number in TensorProto.DataType.items()}
NUMBERS["tensor(float)"] = TensorProto.FLOAT


def inputs(schema):
    constraints = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    seen = set()
    for value in schema.inputs:
        names = constraints.get(value.type_str, [value.type_str])
        numbers = sorted(NUMBERS[n] for n in names if n in NUMBERS)
        if len(numbers) < len(names):
            yield "-"
            continue
        label = value.type_str if value.type_str in constraints else "of"
        if label == "of" or label not in seen:
            seen.add(label)
            label += ":" + ",".join(map(str, numbers))
        if value.option == defs.OpSchema.FormalParameterOption.Variadic:
            if not value.is_homogeneous:
                label = "-"
            label += "*"
        yield label


def main():
    lines = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.inputs and not schema.deprecated:
            lines[schema.name, schema.since_version] = "\t".join(inputs(schema))
    print("# Made by train/onnx_types.py of onnx", onnx.__version__)
    before = None, None
    for (name, since), types in sorted(lines.items()):
        if before != (name, types):
            print(name, since, types, sep="\t")
        before = name, types


main()
