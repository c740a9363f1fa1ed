package serve

import (
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/bitcnn/bitcnn/serve/internal/pb"
)

// debugging is logging with every request.
func debugging(t *testing.T, o Options) (*Server, *logged) {
	log := &logged{}
	o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return newServer(t, o, "digits"), log
}

// lines returns those of a log with these words.
func (l *logged) lines(words ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for line := range strings.Lines(l.text.String()) {
		has := true
		for _, w := range words {
			has = has && strings.Contains(line, w)
		}
		if has {
			found = append(found, line)
		}
	}
	return found
}

func TestRequestID(t *testing.T) {
	const trace = "0af7651916cd43dd8448eb211c80319c"
	made := regexp.MustCompile("^[0-9a-f]{32}$")
	for _, c := range []struct{ given, traceparent, want string }{
		{"abc-1_2.3:4/5+6@7~8", "", "abc-1_2.3:4/5+6@7~8"},
		{strings.Repeat("x", 128), "", strings.Repeat("x", 128)},
		{strings.Repeat("x", 129), "", ""},
		{"a b", "", ""}, {"a\nlevel=ERROR", "", ""}, {"é", "", ""}, {"a\"b", "", ""}, {"\xff", "", ""}, {"", "", ""},
		{"mine", "00-" + trace + "-b7ad6b7169203331-01", "mine"},
		{"", "00-" + trace + "-b7ad6b7169203331-01", trace},
		{"a b", "cc-" + trace + "-b7ad6b7169203331-01-more-of-it", trace},
		{"", "00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01", ""},
		{"", "00-" + trace[1:] + "-b7ad6b7169203331-01", ""},
		{"", trace, ""}, {"", "00-\n-x-01", ""},
	} {
		got := requestID(t.Context(), c.given, c.traceparent)
		if c.want == "" {
			require.Regexp(t, made, got, c.given+c.traceparent)
			continue
		}
		require.Equal(t, c.want, got)
	}
	require.NotEqual(t, requestID(t.Context(), "", ""), requestID(t.Context(), "", ""))
}

// Each request over HTTP is answered with its id, and has a line of the log.
func TestLogOfHTTP(t *testing.T) {
	s, log := debugging(t, Options{})
	url := overWeb(t, s)
	for i, c := range []struct {
		method, path, model, status string
		body                        []byte
	}{
		{"POST", "/v2/models/digits/infer", "digits", "200", []byte(imageJSON)},
		{"POST", "/v2/models/digits/infer", "digits", "400", []byte("{")},
		{"POST", "/v2/models/none/versions/1/classify", "none", "404", nil},
		{"GET", "/v2/models/digits/classify", `""`, "405", nil},
		{"GET", "/v2/health/live", `""`, "200", nil},
		{"GET", "/page.js", `""`, "200", nil},
		{"GET", "/none", `""`, "404", nil},
		{"GET", "/v2/../none", `""`, "404", nil},
		{"POST", "/v2/repository/models/digits/unload", "digits", "200", nil},
		{"GET", "/v2/models/digits/ready", "digits", "503", nil},
		{"POST", "/v2/repository/models/digits/load", "digits", "200", nil},
	} {
		id := "id-" + string(rune('a'+i))
		r := ask(t, c.method, url+c.path, c.body, headerID, id)
		require.Equal(t, id, r.header.Get(headerID), c.path)
		require.Equal(t, c.status, strconv.Itoa(r.status), c.path)
		// A line is written behind the answer.
		request := func() []string { return log.lines("level=DEBUG msg=request method="+c.method, "request_id="+id) }
		require.Eventually(t, func() bool { return len(request()) == 1 }, time.Minute, time.Millisecond, c.path)
		require.Contains(t, request()[0], " path="+c.path+" model="+c.model+" from=127.0.0.1:", c.path)
		require.Contains(t, request()[0], " status="+c.status+" took=", c.path)
	}
	require.Len(t, log.lines("requested an unknown model", "model=none", "request_id=id-c"), 1)
	require.Len(t, log.lines(`msg="model unloaded" model=digits`, "request_id=id-i"), 1)
	require.Len(t, log.lines(`msg="model loaded" model=digits`, "request_id=id-k"), 1)
	long := ask(t, "GET", url+"/v2/models/"+strings.Repeat("m", 5000), nil)
	require.Equal(t, 404, long.status)
	require.Eventually(t, func() bool { return len(log.lines("msg=request", "status=404", "mmm…")) == 1 }, time.Minute,
		time.Millisecond)
	made := long.header.Get(headerID)
	require.Len(t, made, 32)
	require.Len(t, log.lines("requested an unknown model", "request_id="+made), 1)
}

// A fault is found by the id that its client was told.
func TestLogOfFaults(t *testing.T) {
	log := &logged{}
	s := gated(t, Options{Logger: slog.New(slog.NewJSONHandler(log, nil))})
	url, client := overWeb(t, s), overWire(t, s)
	theGate.set(false, "broken")
	post(t, url+"/v2/models/digits/infer", []byte(imageJSON), headerID, "web").fails(t, 500, "broken")
	require.NotEmpty(t, log.lines(`"level":"ERROR"`, `"request_id":"web"`))
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-request-id", "wire")
	_, err := client.ModelInfer(ctx, &pb.ModelInferRequest{ModelName: "digits", Inputs: []*pb.ModelInferRequest_InferInputTensor{{
		Name: "input", Datatype: "UINT8", Shape: []int64{1, 28, 28, 1},
	}}, RawInputContents: [][]byte{make([]byte, 784)}})
	require.Equal(t, codes.Internal, status.Code(err))
	require.NotEmpty(t, log.lines(`"level":"ERROR"`, `"request_id":"wire"`))
}

// Calls of gRPC have ids and lines like requests of HTTP, those that are refused, too.
func TestLogOfGRPC(t *testing.T) {
	s, log := debugging(t, Options{Tokens: []string{"secret"}})
	_, wire, _ := serving(t, s, Listeners{})
	conn := connect(t, wire)
	client := pb.NewGRPCInferenceServiceClient(conn)
	call := func(id string, headers ...string) (answered string, err error) {
		ctx := metadata.AppendToOutgoingContext(t.Context(), append([]string{"x-request-id", id}, headers...)...)
		var header metadata.MD
		_, err = client.ModelMetadata(ctx, &pb.ModelMetadataRequest{Name: "digits"}, grpc.Header(&header))
		require.Len(t, header.Get(headerID), 1)
		return header.Get(headerID)[0], err
	}
	line := func(id string, words ...string) {
		t.Helper()
		find := func() []string { return log.lines(append(words, "level=DEBUG msg=request", "request_id="+id)...) }
		require.Eventually(t, func() bool { return len(find()) == 1 }, time.Minute, time.Millisecond, "%v", words)
	}
	const metadataCall = "method=/inference.GRPCInferenceService/ModelMetadata"
	id, err := call("good", "authorization", "Bearer secret")
	require.NoError(t, err)
	require.Equal(t, "good", id)
	line("good", metadataCall, "model=digits", "code=OK")
	id, err = call("refused")
	require.Equal(t, codes.Unauthenticated, status.Code(err))
	require.Equal(t, "refused", id)
	line("refused", metadataCall, `model=""`, "code=Unauthenticated")
	id, _ = call("a b", "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", id)

	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-request-id", "stream", "authorization", "Bearer secret")
	stream, err := client.ModelStreamInfer(ctx)
	require.NoError(t, err)
	require.NoError(t, stream.Send(&pb.ModelInferRequest{ModelName: "none"}))
	_, err = stream.Recv()
	require.NoError(t, err)
	header, err := stream.Header()
	require.NoError(t, err)
	require.Equal(t, []string{"stream"}, header.Get(headerID))
	const streamCall = "method=/inference.GRPCInferenceService/ModelStreamInfer"
	line("stream", streamCall, "model=none", "code=NotFound")
	require.NoError(t, stream.CloseSend())
	line("stream", streamCall, `model=""`, "code=OK")

	_, err = grpc_health_v1.NewHealthClient(conn).Check(metadata.AppendToOutgoingContext(t.Context(), "x-request-id", "health"),
		&grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	line("health", "method=/grpc.health.v1.Health/Check", "code=OK")
}
