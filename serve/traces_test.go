package serve

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/metadata"

	"github.com/bitcnn/bitcnn/serve/internal/pb"
)

// Each request has a span within that of its client, and the model's work one within that.
func TestTraces(t *testing.T) {
	seen := tracetest.NewInMemoryExporter()
	s := newServer(t, Options{Traces: sdk.NewTracerProvider(sdk.WithSyncer(seen))}, "digits")
	url, client := overWeb(t, s), overWire(t, s)
	const (
		trace  = "0af7651916cd43dd8448eb211c80319c"
		parent = "00-" + trace + "-b7ad6b7169203331-01"
	)
	a := askedOf(t, "digits", 1, rand.New(rand.NewPCG(1, 1)))
	input := object{"name": "input", "datatype": "UINT8", "shape": []int{1, 28, 28, 1}, "data": a.numbers}
	digit, err := os.ReadFile("../internal/samples/digit-7.png")
	require.NoError(t, err)

	// spans are those that have ended since the last call, by their names, the last to end first.
	spans := func(n int) tracetest.SpanStubs {
		// The span of a request ends behind its answer.
		require.Eventually(t, func() bool { return len(seen.GetSpans()) == n }, time.Minute, time.Millisecond)
		all := seen.GetSpans()
		seen.Reset()
		slices.Reverse(all)
		for _, span := range all {
			require.Equal(t, trace, span.SpanContext.TraceID().String(), span.Name)
		}
		require.Equal(t, "b7ad6b7169203331", all[0].Parent.SpanID().String())
		return all
	}
	within := func(all tracetest.SpanStubs, request, work string) {
		t.Helper()
		require.Equal(t, request, all[0].Name)
		require.Equal(t, work, all[1].Name)
		require.Equal(t, all[0].SpanContext.SpanID(), all[1].Parent.SpanID())
		require.Contains(t, all[1].Attributes, attribute.String("bcnn.model", "digits"))
		require.Contains(t, all[1].Attributes, attribute.String("bcnn.device", "cpu"))
	}

	require.Equal(t, 200, post(t, url+"/v2/models/digits/infer", object{"inputs": []any{input}}, "traceparent", parent).status)
	within(spans(2), "POST /v2/models/{model}/infer", "inference")
	require.Equal(t, 200, post(t, url+"/v2/models/digits/classify", digit, "traceparent", parent).status)
	within(spans(2), "POST /v2/models/{model}/classify", "classification")
	require.Equal(t, 400, post(t, url+"/v2/models/digits/classify", []byte("rubbish"), "traceparent", parent).status)
	wrong := spans(2)
	within(wrong, "POST /v2/models/{model}/classify", "classification")
	require.Equal(t, codes.Error, wrong[1].Status.Code)

	_, err = client.ModelInfer(metadata.AppendToOutgoingContext(t.Context(), "traceparent", parent), &pb.ModelInferRequest{
		ModelName: "digits", RawInputContents: [][]byte{a.raw},
		Inputs: []*pb.ModelInferRequest_InferInputTensor{{Name: "input", Datatype: "UINT8", Shape: a.shape(1)}},
	})
	require.NoError(t, err)
	within(spans(2), "inference.GRPCInferenceService/ModelInfer", "inference")

	// A client that does not want to be traced is not.
	require.Equal(t, 200, post(t, url+"/v2/models/digits/infer", object{"inputs": []any{input}},
		"traceparent", parent[:len(parent)-1]+"0").status)
	require.Equal(t, 200, get(t, url+"/v2/health/live").status)
	require.Eventually(t, func() bool { return len(seen.GetSpans()) == 1 }, time.Minute, time.Millisecond)
	require.Equal(t, "GET /v2/health/live", seen.GetSpans()[0].Name)
}
