"""A user-defined function of pandas for PySpark.

>>> predict = bitcnn.spark.predict_udf("model.onnx", threads=1)  # doctest: +SKIP
>>> frame.withColumn("scores", predict("image"))  # doctest: +SKIP

Spark runs the tasks of a worker that dies on others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.pandas.functions import pandas_udf

from ._batches import Predictor
from ._load import Source


def predict_udf(source: Source, **options: Any) -> Any:
    """A function of a column of images, arrays of numbers in the order of the model, that
    gives the values of the model's output as arrays of floats.

    ``source`` and ``options`` are those of ``bitcnn.load``; a file must be there on every
    machine, and bytes are sent to each. Each task loads the model once.
    """
    if isinstance(source, bytearray | memoryview):
        source = bytes(source)

    def predict(columns: Iterator[pd.Series]) -> Iterator[pd.Series]:
        predictor = Predictor(source, column="x", output="y", **options)
        with predictor.model:
            for column in columns:
                scores = predictor({"x": column.to_numpy()})["y"]
                yield pd.Series([row.ravel() for row in scores])

    # The annotations of predict are text here, which pandas_udf cannot read.
    predict.__annotations__ = {"columns": Iterator[pd.Series], "return": Iterator[pd.Series]}
    udf: Any = pandas_udf  # its types know functions of series only
    return udf(predict, returnType="array<float>")
