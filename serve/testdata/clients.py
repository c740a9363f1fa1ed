"""Asks a running `bcnn serve` by tritonclient (HTTP and gRPC, sync and asyncio) and by KServe's
client, and compares every answer with what `bcnn run` has computed.

usage: clients.py triton|kserve HTTP GRPC IMAGES.npy EXPECTED.npy
Each client has the messages of the protocol under the same name, so that one process cannot
load both. The server has the model digits, IMAGES are N×28×28×1 bytes and EXPECTED its outputs.
"""

import asyncio
import gzip
import json
import sys
import urllib.request

import httpx
import numpy as np

who, http, grpc, images_file, expected_file = sys.argv[1:]
if who == "triton":
    import tritonclient.grpc as triton_grpc
    import tritonclient.grpc.aio as triton_grpc_aio
    import tritonclient.http as triton_http
    import tritonclient.http.aio as triton_http_aio
    from google.protobuf.json_format import MessageToDict
    from tritonclient.utils import InferenceServerException
else:
    from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig

images, expected = np.load(images_file), np.load(expected_file)
MODEL = "digits"


def equal(got, want=expected):
    np.testing.assert_array_equal(np.asarray(got, np.float32).reshape(want.shape), want)


def refused(call, *words):
    try:
        call()
    except InferenceServerException as e:
        assert all(w in str(e) for w in words), e
    else:
        raise AssertionError("not refused")


def describe(client, as_dict):
    """What both clients of Triton can ask about the server and its models."""
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready(MODEL)
    assert client.is_model_ready(MODEL, "1")
    assert as_dict(client.get_server_metadata())["name"] == "bitcnn"
    metadata = as_dict(client.get_model_metadata(MODEL))
    assert metadata["inputs"][0]["name"] == "input" and metadata["inputs"][0]["datatype"] == "UINT8"
    assert [int(d) for d in metadata["inputs"][0]["shape"]] == [-1, 28, 28, 1], metadata
    config = as_dict(client.get_model_config(MODEL))
    config = config.get("config", config)
    assert config["max_batch_size"] == 16 and config["input"][0]["data_type"] == "TYPE_UINT8", config
    index = as_dict(client.get_model_repository_index())
    index = index.get("models", index) if isinstance(index, dict) else index
    assert [m["state"] for m in index if m["name"] == MODEL] == ["READY"]
    stats = as_dict(client.get_inference_statistics(MODEL))["model_stats"][0]
    assert stats["name"] == MODEL and int(stats["inference_count"]) >= 0
    client.unload_model(MODEL)
    assert not client.is_model_ready(MODEL)
    client.load_model(MODEL)
    assert client.is_model_ready(MODEL)
    refused(lambda: client.get_model_metadata("nosuch"), "no model", "nosuch")
    refused(lambda: client.load_model("../../etc/passwd"), "no model")


def tensors(module, binary, **more):
    inputs = [module.InferInput("input", list(images.shape), "UINT8")]
    if module is triton_grpc:
        inputs[0].set_data_from_numpy(images)
        return inputs, [module.InferRequestedOutput("output", **more)]
    inputs[0].set_data_from_numpy(images, binary_data=binary)
    return inputs, [module.InferRequestedOutput("output", binary_data=binary, **more)]


def classes(result):
    """The index of the likeliest class of each image, of strings value:index:label."""
    text = lambda s: s.decode() if isinstance(s, bytes) else s  # str where it came as JSON
    return [int(text(row[0]).split(":")[1]) for row in result.as_numpy("output")]


def triton_by_http():
    client = triton_http.InferenceServerClient(http)
    describe(client, lambda answer: answer)
    for binary in (True, False):
        inputs, outputs = tensors(triton_http, binary)
        result = client.infer(MODEL, inputs, outputs=outputs, request_id="7")
        equal(result.as_numpy("output"))
        assert result.get_response()["id"] == "7"
        equal(client.infer(MODEL, inputs, model_version="1").as_numpy("output"))
        for algorithm in ("gzip", "deflate"):
            equal(client.infer(MODEL, inputs, outputs=outputs, request_compression_algorithm=algorithm,
                               response_compression_algorithm=algorithm).as_numpy("output"))
        inputs, outputs = tensors(triton_http, binary, class_count=3)
        assert classes(client.infer(MODEL, inputs, outputs=outputs)) == list(expected.argmax(1))
    wrong = triton_http.InferInput("input", [1, 28, 28, 1], "FP32")
    wrong.set_data_from_numpy(np.zeros((1, 28, 28, 1), np.float32))
    refused(lambda: client.infer(MODEL, [wrong]), "FP32", "UINT8")
    equal(client.async_infer(MODEL, tensors(triton_http, True)[0]).get_result().as_numpy("output"))
    client.close()


def triton_by_grpc():
    client = triton_grpc.InferenceServerClient(grpc)
    describe(client, lambda answer: MessageToDict(answer, preserving_proto_field_name=True,
                                                  always_print_fields_with_no_presence=True))
    inputs, outputs = tensors(triton_grpc, True)
    result = client.infer(MODEL, inputs, outputs=outputs, request_id="8")
    equal(result.as_numpy("output"))
    assert result.get_response().id == "8"
    inputs, outputs = tensors(triton_grpc, True, class_count=2)
    assert classes(client.infer(MODEL, inputs, outputs=outputs)) == list(expected.argmax(1))
    wrong = triton_grpc.InferInput("input", [1, 28, 28], "UINT8")
    wrong.set_data_from_numpy(np.zeros((1, 28, 28), np.uint8))
    refused(lambda: client.infer(MODEL, [wrong]), "[1,28,28]", "N×28×28×1")

    answers = []
    client.start_stream(lambda result, error: answers.append((result, error)))
    for i in range(3):
        client.async_stream_infer(MODEL if i != 1 else "nosuch", tensors(triton_grpc, True)[0], request_id=str(i))
    client.stop_stream()
    assert len(answers) == 3 and answers[1][1] is not None and "nosuch" in str(answers[1][1])
    equal(answers[0][0].as_numpy("output"))
    equal(answers[2][0].as_numpy("output"))
    client.close()


async def by_asyncio():
    async with triton_http_aio.InferenceServerClient(http) as client:
        inputs = [triton_http_aio.InferInput("input", list(images.shape), "UINT8")]
        inputs[0].set_data_from_numpy(images)
        for result in await asyncio.gather(*(client.infer(MODEL, inputs) for _ in range(16))):
            equal(result.as_numpy("output"))
    async with triton_grpc_aio.InferenceServerClient(grpc) as client:
        inputs, _ = tensors(triton_grpc, True)
        for result in await asyncio.gather(*(client.infer(MODEL, inputs) for _ in range(16))):
            equal(result.as_numpy("output"))


async def kserve_clients():
    def request(binary):
        x = InferInput("input", list(images.shape), "UINT8")
        x.set_data_from_numpy(images, binary_data=binary)
        return InferRequest(model_name=MODEL, infer_inputs=[x])

    client = InferenceRESTClient(RESTConfig(protocol="v2"))
    base = "http://" + http
    assert await client.is_server_live(base) and await client.is_server_ready(base)
    assert await client.is_model_ready(base, MODEL)
    for binary in (True, False):
        answer = await client.infer(base, request(binary), model_name=MODEL)
        equal(answer.outputs[0].as_numpy())
    try:
        await client.infer(base, request(True), model_name="nosuch")
        raise AssertionError("not refused")
    except httpx.HTTPStatusError as e:
        assert e.response.status_code == 404
    client = InferenceGRPCClient(grpc)
    assert await client.is_server_live() and await client.is_server_ready() and await client.is_model_ready(MODEL)
    for binary in (True, False):
        answer = await client.infer(request(binary))
        equal(answer.outputs[0].as_numpy())
    await client.close()


def plain_http():
    """What curl would send."""
    body = json.dumps({"inputs": [{"name": "input", "datatype": "UINT8", "shape": list(images.shape), "data": images.tolist()}]})
    r = urllib.request.Request(f"http://{http}/v2/models/{MODEL}/infer", gzip.compress(body.encode()),
                               {"Content-Encoding": "gzip", "Content-Type": "application/json"})
    equal(json.load(urllib.request.urlopen(r))["outputs"][0]["data"])


checks = {
    "triton": {
        "plain HTTP": plain_http,
        "tritonclient.http": triton_by_http,
        "tritonclient.grpc": triton_by_grpc,
        "tritonclient with asyncio": lambda: asyncio.run(by_asyncio()),
    },
    "kserve": {"kserve": lambda: asyncio.run(kserve_clients())},
}
for name, check in checks[who].items():
    check()
    print(f"{name}: equal to bcnn run", flush=True)
