//go:build !wasm

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A collector that the environment names gets the spans of requests, the last ones as the server
// ends; one that cannot be reached is logged, and harms no request.
func TestServeExportsTraces(t *testing.T) {
	spans := make(chan string, 100)
	service := make(chan string, 100)
	c := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request collector.ExportTraceServiceRequest
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		for _, resource := range request.ResourceSpans {
			for _, a := range resource.Resource.Attributes {
				if a.Key == "service.name" {
					service <- a.Value.GetStringValue()
				}
			}
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					spans <- span.Name
				}
			}
		}
	}))
	defer c.Close()
	for _, at := range []struct{ endpoint, name string }{{c.URL, "bcnn"}, {c.URL, "cameras"}, {"http://127.0.0.1:1", ""}} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", at.endpoint)
		t.Setenv("OTEL_SERVICE_NAME", "")
		if at.name == "cameras" {
			t.Setenv("OTEL_SERVICE_NAME", at.name)
		}
		log, address, stop := serveCommand(t, "digits", "--device", "cpu", "--http", "127.0.0.1:0", "--grpc", "")
		r, err := http.Get("http://" + address("http") + "/v2/models/digits")
		require.NoError(t, err)
		r.Body.Close()
		require.Equal(t, 200, r.StatusCode)
		require.Equal(t, exitOK, stop(), "%s", log)
		if at.name == "" {
			require.Contains(t, log.String(), "msg=traces")
			continue
		}
		require.Equal(t, "GET /v2/models/{model}", <-spans)
		require.Equal(t, at.name, <-service)
	}
}

// A collector that does not answer is not waited for any longer than requests are.
func TestTracesEndWithTheDrain(t *testing.T) {
	c := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer c.Close()
	defer c.CloseClientConnections() // Close waits for the request, which the exporter keeps for 10 s
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	log, address, stop := serveCommand(t, "digits", "--device", "cpu", "--http", "127.0.0.1:0", "--grpc", "", "--drain", "50ms")
	r, err := http.Get("http://" + address("http") + "/v2/models/digits")
	require.NoError(t, err)
	r.Body.Close()
	require.Equal(t, exitOK, stop(), "%s", log)
	require.Contains(t, log.String(), "context canceled")
	require.NotContains(t, log.String(), "deadline exceeded")
}
