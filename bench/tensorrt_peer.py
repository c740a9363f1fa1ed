"""Times a network of an ONNX file in TensorRT, as trtexec does, by its Python wheel.

    python3 tensorrt_peer.py FILE.onnx [--fp16]

Needs tensorrt (10 or later) and torch with CUDA. Prints the time of a launch of the CUDA
graph, without transfers, in trtexec's words.
"""
import argparse
import statistics

import tensorrt
import torch

RUNS, WARM_UP = 1000, 200


def build(path, fp16):
    """Returns the engine for the network of a file."""
    logger = tensorrt.Logger(tensorrt.Logger.WARNING)
    builder = tensorrt.Builder(logger)
    network = builder.create_network(0)
    parser = tensorrt.OnnxParser(network, logger)
    if not parser.parse_from_file(path):
        raise SystemExit("\n".join(str(parser.get_error(i)) for i in range(parser.num_errors)))
    config = builder.create_builder_config()
    if fp16:
        config.set_flag(tensorrt.BuilderFlag.FP16)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise SystemExit(f"{path}: TensorRT builds no engine")
    return tensorrt.Runtime(logger).deserialize_cuda_engine(plan)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("file")
    arguments.add_argument("--fp16", action="store_true")
    options = arguments.parse_args()
    engine = build(options.file, options.fp16)
    context = engine.create_execution_context()
    types = {tensorrt.float32: torch.float32, tensorrt.float16: torch.float16, tensorrt.int8: torch.int8,
             tensorrt.uint8: torch.uint8, tensorrt.int32: torch.int32}
    tensors = []  # which must live
    for i in range(engine.num_io_tensors):
        name = engine.get_tensor_name(i)
        tensors.append(torch.zeros(tuple(engine.get_tensor_shape(name)), dtype=types[engine.get_tensor_dtype(name)], device="cuda"))
        context.set_tensor_address(name, tensors[-1].data_ptr())
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):  # what is made at the first run must not be recorded
            context.execute_async_v3(stream.cuda_stream)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        context.execute_async_v3(stream.cuda_stream)
    times = []
    with torch.cuda.stream(stream):
        for run in range(WARM_UP + RUNS):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            if run >= WARM_UP:
                times.append(begin.elapsed_time(end))
    print(f"GPU Compute Time: min = {min(times):.5f} ms, max = {max(times):.5f} ms, mean = {statistics.mean(times):.5f} ms, "
          f"median = {statistics.median(times):.5f} ms")


if __name__ == "__main__":
    main()
