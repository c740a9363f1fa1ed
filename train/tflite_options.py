"""Writes the options of TensorFlow Lite's built-in operators that the importer knows, from the
schema in the ai-edge-litert package, to bcnn/tflite/options.tsv: a line for each operator. With
an argument it writes the other tables of a file, with which a test compares those of the code.

    pip install --no-deps ai-edge-litert==2.3.0 flatbuffers numpy
    python tflite_options.py > ../bcnn/tflite/options.tsv
    python tflite_options.py tables > ../bcnn/tflite/internal/schema/testdata/tables.tsv

A line has the operator, the number that its options table has in the union BuiltinOptions, the
name of the table, and its fields as slot:name:type:default. Operators without a table have
0 and "-". The type of a field is that of its bytes: bool, int8, int32, float32 and others, or
offset, which is a vector, a string or a table.
"""

import importlib.metadata
import inspect
import re
import sys

from ai_edge_litert import schema_py_generated as schema

VERSION = "2.3.0"

# The table of each operator as TensorFlow Lite reads it (flatbuffer_conversions.cc): that of
# its name, or another one.
NAMED = """ABS ADD ADD_N ARG_MAX ARG_MIN BATCH_TO_SPACE_ND BROADCAST_TO CAST CONCATENATION CONV_2D DENSIFY DEPTHWISE_CONV_2D
DEPTH_TO_SPACE DEQUANTIZE DIV EQUAL EXP EXPAND_DIMS FILL FULLY_CONNECTED GATHER GELU GREATER GREATER_EQUAL
HARD_SWISH LEAKY_RELU LESS LESS_EQUAL LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOG_SOFTMAX MIRROR_PAD MUL NEG
NOT_EQUAL PACK PAD PADV2 QUANTIZE RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR SELECT SELECT_V2 SHAPE SIGN
SLICE SOFTMAX SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPLIT SPLIT_V SQUARE SQUARED_DIFFERENCE TILE SQUEEZE STRIDED_SLICE
SUB TRANSPOSE TRANSPOSE_CONV""".split()
OTHER = {
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "MEAN": "ReducerOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "REDUCE_MAX": "ReducerOptions",
    "REDUCE_MIN": "ReducerOptions",
    "REDUCE_PROD": "ReducerOptions",
    "SUM": "ReducerOptions",
}
TABLES = "Buffer Model Operator OperatorCode QuantizationParameters SignatureDef SubGraph Tensor".split()
NONE = "CEIL ELU FLOOR LOGISTIC PRELU RELU RELU6 RELU_N1_TO_1 ROUND RSQRT SQRT TANH".split()

SLOT = re.compile(r"builder\.Prepend(\w+)Slot\((\d+), (.*), (\S+)\)$")
TYPES = {"UOffsetTRelative": "offset"}


def table_of(operator):
    """The name of a table in the union, in the case in which the schema has it."""
    wanted = operator.replace("_", "").lower() + "options"
    (name,) = [n for n in vars(schema.BuiltinOptions) if n.lower() == wanted]
    return name


def fields(table):
    """The fields of a table: the functions that write them have all there is to know."""
    found = {}
    for name, function in vars(schema).items():
        if not name.startswith(table + "Add") or not callable(function):
            continue
        field = list(inspect.signature(function).parameters)[1]
        kind, slot, _, default = SLOT.search(inspect.getsource(function).strip()).groups()
        name = re.sub("[A-Z]|(?<=Options)2", lambda m: "_" + m[0].lower(), field)
        found[int(slot)] = name, TYPES.get(kind, kind.lower()), float(default)
    for slot, (name, kind, default) in sorted(found.items()):
        yield f"{slot}:{name}:{kind}:{default:g}"


def main():
    installed = importlib.metadata.version("ai-edge-litert")
    if installed != VERSION:
        raise SystemExit(f"ai-edge-litert {installed} is installed, want {VERSION}")
    if sys.argv[1:] == ["tables"]:
        print("# Made by train/tflite_options.py of ai-edge-litert", installed)
        for table in TABLES:
            print(table, *fields(table), sep="\t")
        return
    tables = {**{o: table_of(o) for o in NAMED}, **OTHER, **{o: None for o in NONE}}
    print("# Made by train/tflite_options.py of ai-edge-litert", installed)
    for operator, table in sorted(tables.items()):
        assert hasattr(schema.BuiltinOperator, operator), operator
        number = getattr(schema.BuiltinOptions, table) if table else 0
        print(operator, number, table or "-", *(fields(table) if table else ()), sep="\t")


main()
