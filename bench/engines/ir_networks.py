#!/usr/bin/env python3
"""Lets bcnn take turns with OpenVINO on networks in OpenVINO's own format, one thread each.

OpenVINO runs a file as it comes, in which case it may compute float32 layers in bfloat16, and held to
float32, which is what bcnn computes. The outputs are compared but for those of detectors, of which bcnn
has what comes before the boxes. Times are of the shortest
runs: processor time of OpenVINO, of bcnn that of the clock.

    ir_networks.py [--bcnn bin/bcnn] [--isa avx2] [--rounds 20] MODEL.xml...

OpenVINO is held to an instruction set by ONEDNN_MAX_CPU_ISA in the environment, such as AVX2.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time

import numpy as np
import openvino as ov


def requests(path):
    """OpenVINO on one thread, as the file comes and in float32: infer requests by name, an image, and whether it gives boxes."""
    core, made = ov.Core(), {}
    for name, hint in {"OpenVINO": {}, "OpenVINO in float32": {"INFERENCE_PRECISION_HINT": "f32"}}.items():
        model = core.read_model(path)
        compiled = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, **hint})
        made[name] = compiled.create_infer_request()
        image = np.random.default_rng(0).integers(0, 256, list(model.input(0).shape)).astype(np.float32)
        made[name].set_input_tensor(ov.Tensor(image))
    boxes = any(op.get_type_name() == "DetectionOutput" for op in model.get_ops())
    return made, image, boxes


def difference(bcnn, path, image, request):
    """The largest difference of the first output, and the largest value of that."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(os.path.join(folder, "x.npy"), image)
        subprocess.run([bcnn, "run", "--model", path, "--input", os.path.join(folder, "x.npy"), "--output", os.path.join(folder, "y.npy")],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ours = np.load(os.path.join(folder, "y.npy"))
    theirs = request.get_output_tensor(0).data
    return np.abs(ours.reshape(-1) - theirs.reshape(-1)).max(), np.abs(theirs).max()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", nargs="+", help=".xml files, with .bin files beside them")
    p.add_argument("--bcnn", default="bin/bcnn")
    p.add_argument("--isa", default="", help="instruction set of bcnn")
    p.add_argument("--rounds", type=int, default=5, help="how often the engines take turns")
    args = p.parse_args()
    isa = ["--isa", args.isa] if args.isa else []
    for path in args.models:
        runs, image, boxes = requests(path)
        best = dict.fromkeys(["bcnn", *runs], float("inf"))
        for _ in range(args.rounds):
            out = subprocess.run([args.bcnn, "bench", "-d", "cpu", "--threads", "1", "--json", "--runs", "30", *isa, "--model", path],
                                 check=True, capture_output=True, text=True).stdout
            best["bcnn"] = min(best["bcnn"], json.loads(out.splitlines()[0])["min_us"] / 1e3)
            for engine, request in runs.items():
                for _ in range(20):
                    start = time.process_time()
                    request.infer()
                    best[engine] = min(best[engine], 1e3 * (time.process_time() - start))
        line = f"{os.path.basename(path)}: " + ", ".join(f"{e} {t:.2f} ms" for e, t in best.items())
        if not boxes:
            line += "; largest difference {:.3g} of {:.3g}".format(*difference(args.bcnn, path, image, runs["OpenVINO in float32"]))
        print(line, flush=True)


if __name__ == "__main__":
    main()
