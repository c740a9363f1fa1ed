"""Makes precision.json: boxes on images that a seed draws, and what pycocotools 2.0 measures of them.

    pip install pycocotools
    python precision.py
"""

import contextlib
import io
import json

import numpy
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

rng = numpy.random.default_rng(7)
images = [{"id": 10 + i, "file_name": f"{i}.jpg", "width": 640, "height": 480} for i in range(12)]
categories = [{"id": 3, "name": "cat"}, {"id": 5, "name": "dog"}, {"id": 9, "name": "none"}, {"id": 90, "name": "car"}]
annotations, results = [], []
for image in images:
    for category in (3, 5, 90):
        for _ in range(rng.integers(0, 6)):
            x, y, w, h = (round(float(v), 2) for v in (*rng.uniform(0, 400, 2), *rng.uniform(5, 200, 2)))
            crowd = int(rng.random() < 0.15)
            annotations.append({"id": len(annotations) + 1, "image_id": image["id"], "category_id": category,
                                "bbox": [x, y, w, h], "area": w * h, "iscrowd": crowd})
            for _ in range(rng.integers(0, 4 if crowd else 3)):  # near it
                dx, dy, dw, dh = (float(v) for v in rng.normal(0, 0.12, 4))
                box = numpy.float32([x + dx * w, y + dy * h, w * (1 + dw), h * (1 + dh)])
                results.append({"image_id": image["id"], "category_id": category, "bbox": box.tolist(),
                                "score": float(numpy.float32(round(float(rng.random()), 1)))})  # many are equal
        for _ in range(rng.integers(0, 3)):
            box = numpy.float32([*rng.uniform(0, 400, 2), *rng.uniform(5, 200, 2)])
            results.append({"image_id": image["id"], "category_id": category, "bbox": box.tolist(),
                            "score": float(numpy.float32(rng.random()))})
truth = {"images": images, "annotations": annotations, "categories": categories}
with contextlib.redirect_stdout(io.StringIO()):
    coco = COCO()
    coco.dataset = truth
    coco.createIndex()
    e = COCOeval(coco, coco.loadRes(results), "bbox")
    e.evaluate()
    e.accumulate()
    e.summarize()
precision = e.eval["precision"][:, :, :, 0, 2]  # thresholds, recalls, categories; all areas, 100 boxes
want = {"ap": e.stats[0], "ap50": e.stats[1], "ap75": e.stats[2], "classes": {
    c["name"]: {"ap": float(precision[:, :, k].mean()), "ap50": float(precision[0, :, k].mean()), "ap75": float(precision[5, :, k].mean())}
    for k, c in enumerate(categories) if c["id"] != 9}}
with open("precision.json", "w") as f:
    json.dump({"truth": truth, "results": results, "want": want}, f, separators=(",", ":"))
    f.write("\n")
