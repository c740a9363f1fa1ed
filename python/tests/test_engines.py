"""Ray and Spark with local workers: their outputs are those of one process."""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bitcnn

IMAGES = 600
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore"),
]


def images() -> NDArray[np.uint8]:
    rng = np.random.default_rng(1)
    return rng.integers(0, 256, (IMAGES, 28, 28, 1), np.uint8)


def expected() -> NDArray[np.float32]:
    """By one process, in which nothing is forked: engines start their own."""
    with bitcnn.load("digits", device="cpu", max_batch=32) as model:
        return model(images())


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    # Workers find the package where this process has it.
    path = os.pathsep.join(p for p in sys.path if p)
    ray.init(
        num_cpus=4,
        include_dashboard=False,
        configure_logging=False,
        log_to_driver=False,
        object_store_memory=100 << 20,
        runtime_env={"env_vars": {"PYTHONPATH": path}},
    )
    yield ray
    ray.shutdown()


def ray_rows(ray: Any, predictor: type, **more: Any) -> list[dict[str, Any]]:
    rows = [{"id": i, "image": x} for i, x in enumerate(images())]
    dataset = ray.data.from_items(rows, override_num_blocks=24).map_batches(
        predictor,
        fn_constructor_args=("digits",),
        fn_constructor_kwargs={"column": "image", "output": "scores", "device": "cpu", "threads": 1, "max_batch": 16},
        concurrency=4,
        batch_size=25,
        **more,
    )
    taken: list[dict[str, Any]] = sorted(dataset.take_all(), key=lambda row: row["id"])
    return taken


def check(rows: list[dict[str, Any]]) -> None:
    assert [row["id"] for row in rows] == list(range(IMAGES))
    assert np.array_equal(np.stack([row["scores"] for row in rows]), expected())


def test_ray(ray: Any) -> None:
    from bitcnn.ray import Predictor

    check(ray_rows(ray, Predictor))


def test_ray_when_a_worker_dies(ray: Any, tmp_path: Path) -> None:
    from bitcnn.ray import Predictor

    mark = str(tmp_path / "killed")
    pids = tmp_path / "pids"
    pids.mkdir()
    folder = str(pids)

    class Dying(Predictor):
        """One of all workers is killed in the middle of its work."""

        calls = 0

        def __call__(self, batch: Any) -> dict[str, Any]:
            self.calls += 1
            (Path(folder) / str(os.getpid())).touch()
            if self.calls == 2:
                try:
                    os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
                    os.kill(os.getpid(), signal.SIGKILL)
                except FileExistsError:
                    pass  # another one was it
            return super().__call__(batch)

    check(ray_rows(ray, Dying))
    assert Path(mark).exists()
    assert len(list(pids.iterdir())) >= 2  # others have gone on


def test_ray_example(ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ray.is_initialized()  # or the program would start another one
    root = Path(__file__).parents[2]
    monkeypatch.setattr(sys, "argv", ["digits.py", str(root / "internal" / "samples"), str(tmp_path / "results")])
    runpy.run_path(str(root / "examples" / "ray" / "digits.py"), run_name="__main__")
    lines = [line for file in (tmp_path / "results").iterdir() for line in file.read_text().splitlines()]
    assert {Path(row["path"]).name: row["label"] for row in map(json.loads, lines)} == {
        f"digit-{i}.png": str(i) for i in range(10)
    }
    assert len(lines) == 10


def test_spark() -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    from bitcnn.spark import predict_udf

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    spark = (
        SparkSession.builder.master("local[4]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "64")
        .getOrCreate()
    )
    try:
        spark.sparkContext.setLogLevel("ERROR")
        rows = [(i, [int(v) for v in x.ravel()]) for i, x in enumerate(images())]
        frame = spark.createDataFrame(rows, "id int, image array<short>").repartition(8)
        predict = predict_udf("digits", device="cpu", threads=1, max_batch=16)
        result = frame.select("id", predict("image").alias("scores")).collect()
        check([{"id": r["id"], "scores": np.array(r["scores"], np.float32)} for r in sorted(result)])
    finally:
        spark.stop()


def test_columns() -> None:
    from bitcnn.ray import Predictor

    predictor = Predictor("digits", device="cpu", threads=1)
    x = images()[:3]
    out = predictor({"input": x, "name": ["a", "b", "c"]})
    assert out["name"] == ["a", "b", "c"]
    assert np.array_equal(out["output"], expected()[:3])
    flat = predictor({"input": np.array([*x.reshape(3, -1).astype(np.int64)])})
    assert np.array_equal(flat["output"], expected()[:3])
    assert predictor({"input": x[:0]})["output"].shape == (0, 10)
    with pytest.raises(KeyError, match="no column 'input'; the batch has image"):
        predictor({"image": x})
    with pytest.raises(TypeError, match="float64"):
        predictor({"input": x + 0.5})
