package serve

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/serve/internal/pb"
)

// channelsFirst is a network that was imported from a file with the channels first: x is
// N×2×4×3 of float32, y has three outputs.
func channelsFirst() *bitcnn.Model {
	n := &bitcnn.Model{Name: "float", Inputs: []bcnn.Input{{
		Shape: bcnn.Shape{H: 4, W: 3, C: 2}, DType: bcnn.Float32,
		Source: &bcnn.Source{Name: "x", Dims: []int{2, 4, 3}, ChannelsFirst: true},
	}}}
	rng := rand.New(rand.NewPCG(1, 2))
	w := make([]float32, 3*24)
	for i := range w {
		w[i] = float32(rng.NormFloat64())
	}
	n.Append("flatten", bcnn.Flatten{})
	n.Append("dense", bcnn.Dense{Out: 3, Weights: bcnn.Weights{F32: w}})
	n.Layers[1].Source = &bcnn.Source{Name: "y", Dims: []int{3}}
	return n
}

// sumOfTwo has two inputs, of three numbers each, and their sum.
func sumOfTwo() *bitcnn.Model {
	three := func(name string) bcnn.Input {
		return bcnn.Input{
			Shape: bcnn.Shape{H: 1, W: 1, C: 3}, DType: bcnn.Float32, Source: &bcnn.Source{Name: name, Dims: []int{3}},
		}
	}
	return &bitcnn.Model{
		Name: "sum", Inputs: []bcnn.Input{three("a"), three("b")},
		Layers: []bcnn.Layer{{Name: "sum", Op: bcnn.Add{}, Inputs: []int{-1, -2}}},
	}
}

// counting tells light from dark images of 4×4 pixels. Its arrays are of int8, 128 less than
// the bytes, and of int64.
func counting() *bitcnn.Model {
	n := &bitcnn.Model{
		Name: "counting", Labels: []string{"light", "dark"},
		Inputs: []bcnn.Input{{
			Shape: bcnn.Shape{H: 4, W: 4, C: 1}, DType: bcnn.Uint8,
			Source: &bcnn.Source{Name: "x", Dims: []int{4, 4, 1}, Type: bcnn.SourceInt8, Offset: -128},
		}},
	}
	n.Append("grey", bcnn.Binarize{Scheme: bcnn.SchemeGrey, Thresholds: []int32{128}})
	n.Append("count", bcnn.Dense{Out: 2, Weights: bcnn.Weights{Bits: []uint64{0xffff, 0}}})
	n.Layers[1].Source = &bcnn.Source{Name: "n", Dims: []int{2}, Type: bcnn.SourceInt64}
	return n
}

// loadTest loads the networks above and those of the module, and files.
func loadTest(ctx context.Context, source string) (*bitcnn.Model, error) {
	switch source {
	case "float":
		return channelsFirst(), nil
	case "counting":
		return counting(), nil
	case "sum":
		return sumOfTwo(), nil
	case "wide":
		wide := sumOfTwo()
		for i := range wide.Inputs {
			wide.Inputs[i].Shape.C, wide.Inputs[i].Source.Dims = 4096, []int{4096}
		}
		return wide, nil
	case "digits":
		return bitcnn.Bundled(source)
	}
	return bitcnn.Load(ctx, source, bitcnn.LoadOptions{})
}

func newServer(t testing.TB, o Options, models ...string) *Server {
	o.Load = loadTest
	if o.Session.Device == "" {
		o.Session.Device = "cpu"
	}
	s, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for _, m := range models {
		require.NoError(t, s.Add(t.Context(), m, m))
	}
	return s
}

// overWeb starts what answers over HTTP.
func overWeb(t testing.TB, s *Server) string {
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	return web.URL
}

// overWire starts what answers over gRPC.
func overWire(t testing.TB, s *Server) pb.GRPCInferenceServiceClient {
	server := grpc.NewServer(s.GRPCOptions()...)
	s.RegisterGRPC(server)
	l := listen(t)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return pb.NewGRPCInferenceServiceClient(connect(t, l.Addr().String()))
}

func connect(t testing.TB, address string) *grpc.ClientConn {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func listen(t testing.TB) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

// reply is a response over HTTP.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func ask(t testing.TB, method, url string, body []byte, headers ...string) reply {
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return reply{response.StatusCode, response.Header, got}
}

// record answers a request without a network.
func record(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func get(t testing.TB, url string) reply { return ask(t, http.MethodGet, url, nil) }

func post(t testing.TB, url string, body any, headers ...string) reply {
	b, ok := body.([]byte)
	if !ok {
		var err error
		b, err = json.Marshal(body)
		require.NoError(t, err)
	}
	return ask(t, http.MethodPost, url, b, headers...)
}

// fails requires a status and words of the error.
func (r reply) fails(t testing.TB, status int, words string) {
	t.Helper()
	var answer struct{ Error string }
	require.NoError(t, json.Unmarshal(r.body, &answer), "%s", r.body)
	require.Equal(t, status, r.status, answer.Error)
	require.Contains(t, answer.Error, words)
}

func (r reply) decode(t testing.TB, v any) {
	t.Helper()
	require.Equal(t, http.StatusOK, r.status, "%s", r.body)
	require.NoError(t, json.Unmarshal(r.body, v), "%s", r.body)
}

// object is any JSON.
type object = map[string]any

// inferBinary asks over HTTP with binary data, and returns those of the output.
func inferBinary(t testing.TB, url, model string, input object, data []byte) []byte {
	input["parameters"] = object{"binary_data_size": len(data)}
	header, err := json.Marshal(object{"inputs": []any{input}, "parameters": object{"binary_data_output": true}})
	require.NoError(t, err)
	r := post(t, url+"/v2/models/"+model+"/infer", append(header, data...), headerLength, strconv.Itoa(len(header)))
	require.Equal(t, http.StatusOK, r.status, "%s", r.body)
	length, err := strconv.Atoi(r.header.Get(headerLength))
	require.NoError(t, err)
	return r.body[length:]
}

// gate is a device that says when a run has begun and waits until it may end, once it is shut.
type gate struct {
	mu    sync.Mutex
	shut  bool
	begun chan struct{}
	open  chan struct{}
	fault any // what a run panics with
}

func (g *gate) Name() string                      { return "gate" }
func (g *gate) Devices() ([]driver.Device, error) { return []driver.Device{g}, nil }
func (g *gate) Explain() []driver.Choice          { return nil }
func (g *gate) Close() error                      { return nil }
func (g *gate) Read(int, bcnn.Tensor) error       { return nil }

func (g *gate) Info() driver.Info {
	return driver.Info{ID: "gate:0", Name: "gate", Kind: driver.Emulated, Detail: "test", MaxBatch: 1000}
}

func (g *gate) Compile(context.Context, *plan.Plan, driver.Config) (driver.Engine, error) {
	return g, nil
}

func (g *gate) Run(ctx context.Context, out, _ []bcnn.Tensor) error {
	g.mu.Lock()
	shut, fault := g.shut, g.fault
	g.mu.Unlock()
	if fault != nil {
		panic(fault)
	}
	if shut {
		g.begun <- struct{}{}
		select {
		case <-g.open:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for i := range out[0].F32 {
		out[0].F32[i] = float32(i)
	}
	return nil
}

func (g *gate) RunSteps(ctx context.Context, out, in []bcnn.Tensor, _ func(int, time.Duration) error) error {
	return g.Run(ctx, out, in)
}

// set shuts the gate or opens it, and sets what runs panic with.
func (g *gate) set(shut bool, fault any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut, g.fault = shut, fault
}

var theGate = &gate{begun: make(chan struct{}, 100), open: make(chan struct{})}

var registerGate = sync.OnceFunc(func() { backend.Register(theGate) })

// gated is a server on the gate, which is shut until the end of the test.
func gated(t *testing.T, o Options) *Server {
	registerGate()
	o.Session.Device = "gate"
	theGate.set(false, nil)
	s := newServer(t, o, "digits")
	theGate.set(true, nil)
	t.Cleanup(func() { theGate.set(false, nil) })
	return s
}

// question asks digits for an image of noise in the background.
func question(t *testing.T, url string) (answer chan reply) {
	answer = make(chan reply, 1)
	go func() {
		r, err := http.Post(url+"/v2/models/digits/infer", "application/json", strings.NewReader(imageJSON))
		if err != nil {
			answer <- reply{status: -1, body: []byte(err.Error())}
			return
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			b = []byte(err.Error())
		}
		answer <- reply{r.StatusCode, r.Header, b}
	}()
	return answer
}

// imageJSON is a request for digits.
var imageJSON = `{"inputs":[{"name":"input","datatype":"UINT8","shape":[1,28,28,1],"data":[` +
	strings.TrimSuffix(strings.Repeat("7,", 784), ",") + `]}]}`

func TestMetadata(t *testing.T) {
	s := newServer(t, Options{Session: bitcnn.Options{MaxBatch: 8, BatchDelay: time.Millisecond}}, "digits", "float",
		"counting")
	url := overWeb(t, s)
	var answer object
	get(t, url+"/v2").decode(t, &answer)
	require.Equal(t, "bitcnn", answer["name"])
	require.Contains(t, answer["extensions"], "binary_tensor_data")
	for path, want := range map[string]string{
		"/v2/health/live":                    `{"live":true}`,
		"/v2/health/ready":                   `{"ready":true}`,
		"/v2/models/digits/ready":            `{"name":"digits","ready":true}`,
		"/v2/models/digits/versions/1/ready": `{"name":"digits","ready":true}`,
		"/v2/models/float": `{"inputs":[{"name":"x","datatype":"FP32","shape":[-1,2,4,3]}],"name":"float",` +
			`"outputs":[{"name":"y","datatype":"FP32","shape":[-1,3]}],"platform":"bitcnn_bcnn","versions":["1"]}`,
		"/v2/models/counting": `{"inputs":[{"name":"x","datatype":"INT8","shape":[-1,4,4,1]}],"name":"counting",` +
			`"outputs":[{"name":"n","datatype":"INT64","shape":[-1,2]}],"platform":"bitcnn_bcnn","versions":["1"]}`,
		"/v2/models/float/config": `{"backend":"bitcnn","default_model_filename":"","dynamic_batching":{"max_queue_delay_microseconds":1000,` +
			`"preferred_batch_size":[],"preserve_ordering":false},"instance_group":[],"model_warmup":[],"parameters":{},` +
			`"input":[{"data_type":"TYPE_FP32","dims":[2,4,3],"format":"FORMAT_NCHW","name":"x"}],"max_batch_size":8,` +
			`"name":"float","output":[{"data_type":"TYPE_FP32","dims":[3],"label_filename":"","name":"y"}],"platform":"bitcnn_bcnn"}`,
	} {
		r := get(t, url+path)
		require.Equal(t, http.StatusOK, r.status, path)
		require.JSONEq(t, want, string(r.body), path)
	}
	for path, words := range map[string]string{
		"/v2/models/nosuch":                  `there is no model "nosuch"`,
		"/v2/models/nosuch/ready":            `there is no model "nosuch"`,
		"/v2/models/nosuch/config":           `there is no model "nosuch"`,
		"/v2/models/nosuch/stats":            `there is no model "nosuch"`,
		"/v2/models/digits/versions/2":       `has no version "2", only 1`,
		"/v2/models/digits/versions/2/ready": `has no version "2", only 1`,
	} {
		get(t, url+path).fails(t, http.StatusNotFound, words)
	}
	client := overWire(t, s)
	metadata, err := client.ModelMetadata(t.Context(), &pb.ModelMetadataRequest{Name: "float"})
	require.NoError(t, err)
	require.Equal(t, []int64{-1, 2, 4, 3}, metadata.Inputs[0].Shape)
	require.Equal(t, "y", metadata.Outputs[0].Name)
	config, err := client.ModelConfig(t.Context(), &pb.ModelConfigRequest{Name: "digits", Version: "1"})
	require.NoError(t, err)
	require.Equal(t, pb.DataType_TYPE_UINT8, config.Config.Input[0].DataType)
	require.Equal(t, pb.ModelInput_FORMAT_NHWC, config.Config.Input[0].Format)
	ready, err := client.ModelReady(t.Context(), &pb.ModelReadyRequest{Name: "digits"})
	require.NoError(t, err)
	require.True(t, ready.Ready)
}

func TestOptions(t *testing.T) {
	for words, o := range map[string]Options{
		"MaxBody is -1":                   {MaxBody: -1},
		"must not be negative":            {MaxRequests: -1},
		"an empty token":                  {Tokens: []string{"a", ""}},
		"Session.Observe is the server's": {Session: bitcnn.Options{Observe: func(bitcnn.Observation) {}}},
	} {
		_, err := New(o)
		require.ErrorContains(t, err, words)
	}
	s := newServer(t, Options{}, "digits")
	require.ErrorContains(t, s.Add(t.Context(), "", "digits"), "needs a name")
	require.ErrorContains(t, s.Add(t.Context(), "digits", "float"), `two models are called "digits": digits and float`)
	err := s.Add(t.Context(), "none", "/no/such/file")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "/no/such/file: ")
	require.True(t, s.Ready(), "one model is there")
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Add(t.Context(), "more", "digits"), bitcnn.ErrClosed)
	require.False(t, s.Ready())
	require.ErrorContains(t, s.Serve(t.Context(), Listeners{}), "no address to listen on")
}

// little is the elements of numbers, little-endian.
func little[T any](values []T) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		panic(err)
	}
	return b
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
	}{
		{badf("x"), 400}, {badf("%w", errBody), 413}, {context.Canceled, 499}, {context.DeadlineExceeded, 504},
		{fmt.Errorf("run: %w", bitcnn.ErrClosed), 503}, {fmt.Errorf("run: %w", bitcnn.ErrShape), 400}, {errors.New("x"), 500},
	} {
		require.Equal(t, c.status, classified(c.err).httpStatus(), c.err)
	}
}
