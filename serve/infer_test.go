package serve

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/serve/internal/pb"
	"github.com/bitcnn/bitcnn/serve/internal/tensor"
	"github.com/bitcnn/bitcnn/vision"
)

// asked is a batch for a model, as clients send it, and what Session.Run says to it.
type asked struct {
	model, input, output, datatype string
	dims                           []int // behind the batch
	numbers                        []float64
	raw                            []byte // of the input
	want                           []byte // of the output
	wantJSON                       []float32
}

func (a asked) shape(n int) []int64 {
	shape := []int64{int64(n)}
	for _, d := range a.dims {
		shape = append(shape, int64(d))
	}
	return shape
}

// askedOf draws a batch. The order of the elements, and what they stand for, is written out here
// a second time.
func askedOf(t *testing.T, model string, n int, rng *rand.Rand) asked {
	net, err := loadTest(t.Context(), model)
	require.NoError(t, err)
	s, err := bitcnn.Open(t.Context(), net, bitcnn.Options{Device: "cpu", MaxBatch: 16})
	require.NoError(t, err)
	defer s.Close()
	in := bitcnn.NewTensor(s.Inputs()[0].DType, n, s.Inputs()[0].Shape)
	a := asked{model: model}
	switch model {
	case "digits":
		a.input, a.output, a.datatype, a.dims = "input", "output", "UINT8", []int{28, 28, 1}
		for i := range in.U8 {
			in.U8[i] = uint8(rng.Uint32())
			a.numbers = append(a.numbers, float64(in.U8[i]))
		}
		a.raw = slices.Clone(in.U8)
	case "float":
		a.input, a.output, a.datatype, a.dims = "x", "y", "FP32", []int{2, 4, 3}
		var first []float32
		for image := range n {
			for c := range 2 {
				for pixel := range 12 {
					v := float32(rng.NormFloat64())
					first = append(first, v)
					in.F32[(image*12+pixel)*2+c] = v
				}
			}
		}
		for _, v := range first {
			a.numbers = append(a.numbers, float64(v))
		}
		a.raw = little(first)
	case "counting":
		a.input, a.output, a.datatype, a.dims = "x", "n", "INT8", []int{4, 4, 1}
		for i := range in.U8 {
			in.U8[i] = uint8(rng.Uint32())
			a.numbers = append(a.numbers, float64(in.U8[i])-128)
			a.raw = append(a.raw, in.U8[i]-128)
		}
	}
	out, err := s.Predict(t.Context(), in)
	require.NoError(t, err)
	for _, v := range out[0].F32 {
		a.wantJSON = append(a.wantJSON, v)
		if model == "counting" {
			a.want = binary.LittleEndian.AppendUint64(a.want, uint64(int64(v)))
		} else {
			a.want = binary.LittleEndian.AppendUint32(a.want, math.Float32bits(v))
		}
	}
	return a
}

// nested makes arrays within arrays of numbers.
func nested(numbers []float64, shape []int64) any {
	if len(shape) == 1 {
		return numbers
	}
	var rows []any
	per := len(numbers) / int(shape[0])
	for i := range int(shape[0]) {
		rows = append(rows, nested(numbers[i*per:(i+1)*per], shape[1:]))
	}
	return rows
}

// Over HTTP and gRPC, in every form that a protocol has, answers are the bits of Session.Run,
// with batches of callers or without.
func TestInfer(t *testing.T) {
	for _, delay := range []time.Duration{0, 100 * time.Microsecond} {
		s := newServer(t, Options{Session: bitcnn.Options{BatchDelay: delay}}, "digits", "float", "counting")
		url, client := overWeb(t, s), overWire(t, s)
		rng := rand.New(rand.NewPCG(3, 4))
		for _, model := range []string{"digits", "float", "counting"} {
			for _, n := range []int{1, 3, 16} {
				a := askedOf(t, model, n, rng)
				t.Run(fmt.Sprintf("%v/%s/%d", delay, model, n), func(t *testing.T) {
					a.overHTTP(t, url, n)
					a.overGRPC(t, client, n)
				})
			}
		}
	}
}

func (a asked) overHTTP(t *testing.T, url string, n int) {
	path := url + "/v2/models/" + a.model + "/infer"
	input := func() object {
		return object{"name": a.input, "datatype": a.datatype, "shape": a.shape(n)}
	}
	for _, data := range []any{a.numbers, nested(a.numbers, a.shape(n))} {
		in := input()
		in["data"] = data
		var answer struct {
			ID      string
			Outputs []struct {
				Name, Datatype string
				Shape          []int64
				Data           []float32
			}
		}
		post(t, path, object{"id": "5", "inputs": []any{in}, "outputs": []any{object{"name": a.output}}}).decode(t, &answer)
		require.Equal(t, "5", answer.ID)
		require.Equal(t, a.output, answer.Outputs[0].Name)
		require.Equal(t, a.wantJSON, answer.Outputs[0].Data)
		require.Equal(t, int64(n), answer.Outputs[0].Shape[0])
	}
	require.Equal(t, a.want, inferBinary(t, url, a.model, input(), a.raw))
	require.Equal(t, a.want, inferBinary(t, url, a.model+"/versions/1", input(), a.raw))
	r := post(t, path, a.raw, headerLength, "0") // no JSON at all
	require.Equal(t, http.StatusOK, r.status, "%s", r.body)
	length, err := strconv.Atoi(r.header.Get(headerLength))
	require.NoError(t, err)
	require.Equal(t, a.want, r.body[length:])
}

func (a asked) overGRPC(t *testing.T, client pb.GRPCInferenceServiceClient, n int) {
	c := &pb.InferTensorContents{}
	for _, v := range a.numbers {
		switch a.datatype {
		case "UINT8":
			c.UintContents = append(c.UintContents, uint32(v))
		case "INT8":
			c.IntContents = append(c.IntContents, int32(v))
		case "FP32":
			c.Fp32Contents = append(c.Fp32Contents, float32(v))
		}
	}
	input := pb.ModelInferRequest_InferInputTensor{Name: a.input, Datatype: a.datatype, Shape: a.shape(n)}
	typed := &pb.ModelInferRequest{ModelName: a.model, Id: "9", Inputs: []*pb.ModelInferRequest_InferInputTensor{
		{Name: a.input, Datatype: a.datatype, Shape: a.shape(n), Contents: c},
	}}
	raw := &pb.ModelInferRequest{ModelName: a.model, Id: "9", ModelVersion: "1", RawInputContents: [][]byte{a.raw},
		Inputs: []*pb.ModelInferRequest_InferInputTensor{&input}}
	stream, err := client.ModelStreamInfer(t.Context())
	require.NoError(t, err)
	for _, r := range []*pb.ModelInferRequest{typed, raw} {
		answer, err := client.ModelInfer(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, "9", answer.Id)
		require.Equal(t, a.output, answer.Outputs[0].Name)
		require.Equal(t, [][]byte{a.want}, answer.RawOutputContents)
		require.NoError(t, stream.Send(r))
		streamed, err := stream.Recv()
		require.NoError(t, err)
		require.Empty(t, streamed.ErrorMessage)
		require.Equal(t, [][]byte{a.want}, streamed.InferResponse.RawOutputContents)
	}
	require.NoError(t, stream.CloseSend())
}

// What is wrong is said with what was given and what is wanted, the same over both protocols.
func TestWrongRequests(t *testing.T) {
	s := newServer(t, Options{}, "digits", "float", "sum")
	url, client := overWeb(t, s), overWire(t, s)
	image := make([]byte, 784)
	type input struct {
		name, datatype string
		shape          []int64
		data           []byte
	}
	good := input{"input", "UINT8", []int64{1, 28, 28, 1}, image}
	for _, c := range []struct {
		inputs []input
		output string
		fault  string
	}{
		{nil, "", `input "input" is missing: UINT8 of N×28×28×1`},
		{[]input{{"wrong", "UINT8", good.shape, image}}, "", `the model "digits" has no input "wrong"; it has "input"`},
		{[]input{good, good}, "", "the request has 2 inputs, want at most 1"},
		{[]input{{"input", "FP32", good.shape, image}}, "", `input "input" has datatype "FP32", want UINT8`},
		{[]input{{"input", "", good.shape, image}}, "", `input "input" has datatype "", want UINT8`},
		{[]input{{"input", "UINT8", []int64{1, 1, 28, 28}, image}}, "", `has the shape [1,1,28,28], want N×28×28×1`},
		{[]input{{"input", "UINT8", []int64{28, 28, 1}, image}}, "", `has the shape [28,28,1], want N×28×28×1`},
		{[]input{{"input", "UINT8", nil, image}}, "", `has the shape [], want N×28×28×1`},
		{[]input{{"input", "UINT8", make([]int64, 60), image}}, "", `0,0,…], want N×28×28×1`},
		{[]input{{"input", "UINT8", []int64{17, 28, 28, 1}, image}}, "", "has a batch of 17 images, want 1 to 16"},
		{[]input{{"input", "UINT8", []int64{0, 28, 28, 1}, nil}}, "", "has a batch of 0 images, want 1 to 16"},
		{[]input{{"input", "UINT8", []int64{-1, 28, 28, 1}, image}}, "", "has a batch of -1 images"},
		{[]input{{"input", "UINT8", []int64{math.MaxInt64, 28, 28, 1}, image}}, "", "images, want 1 to 16"},
		{[]input{{"input", "UINT8", good.shape, image[:783]}}, "",
			"783 bytes of data, the shape [1,28,28,1] of UINT8 has 784"},
		{[]input{{"input", "UINT8", good.shape, make([]byte, 785)}}, "", "785 bytes of data"},
		{[]input{{"input", "UINT8", good.shape, nil}}, "", "0 bytes of data"},
		{[]input{good}, "none", `has no output "none"; it has "output"`},
	} {
		request := &pb.ModelInferRequest{ModelName: "digits"}
		var inputs []any
		var data []byte
		for _, in := range c.inputs {
			request.Inputs = append(request.Inputs, &pb.ModelInferRequest_InferInputTensor{Name: in.name,
				Datatype: in.datatype, Shape: in.shape})
			request.RawInputContents = append(request.RawInputContents, in.data)
			inputs = append(inputs, object{"name": in.name, "datatype": in.datatype, "shape": in.shape,
				"parameters": object{"binary_data_size": len(in.data)}})
			data = append(data, in.data...)
		}
		body := object{"inputs": inputs}
		if c.output != "" {
			body["outputs"] = []any{object{"name": c.output}}
			request.Outputs = []*pb.ModelInferRequest_InferRequestedOutputTensor{{Name: c.output}}
		}
		header, err := json.Marshal(body)
		require.NoError(t, err)
		post(t, url+"/v2/models/digits/infer", append(header, data...), headerLength, fmt.Sprint(len(header))).
			fails(t, http.StatusBadRequest, c.fault)
		_, err = client.ModelInfer(t.Context(), request)
		require.Equal(t, codes.InvalidArgument, status.Code(err), c.fault)
		require.Contains(t, status.Convert(err).Message(), c.fault)
	}
	part := object{"name": "a", "datatype": "FP32", "shape": []int{1, 3}, "data": []int{1, 2, 3}}
	post(t, url+"/v2/models/sum/infer", object{"inputs": []any{part, part}}).fails(t, 400, `input "a" is given twice`)
	post(t, url+"/v2/models/digits/infer", []byte("{}"), headerLength, "-1").fails(t, 400,
		`is "-1", want a number of bytes`)
	post(t, url+"/v2/models/digits/infer", []byte("{}"), headerLength, "99").fails(t, 400, "the JSON has 99 bytes")
	for _, c := range []struct {
		model string
		size  int
		fault string
	}{
		{"digits", 0, "0 bytes of data without JSON; want a multiple of 784, the bytes of N×28×28×1 of UINT8"},
		{"digits", 785, "785 bytes of data without JSON"},
		{"digits", 17 * 784, "has a batch of 17 images, want 1 to 16"},
		{"float", 95, "want a multiple of 96, the bytes of N×2×4×3 of FP32"},
		{"sum", 24, `data without JSON is for models with one input; "sum" has "a", "b"`},
	} {
		post(t, url+"/v2/models/"+c.model+"/infer", make([]byte, c.size), headerLength, "0").fails(t, 400, c.fault)
	}
	post(t, url+"/v2/models/none/infer", []byte("{}")).fails(t, 404, `there is no model "none"`)

	one := &pb.ModelInferRequest_InferInputTensor{Name: "input", Datatype: "UINT8", Shape: good.shape}
	for words, r := range map[string]*pb.ModelInferRequest{
		"2 elements in raw_input_contents, and 1 inputs": {
			Inputs: []*pb.ModelInferRequest_InferInputTensor{one}, RawInputContents: [][]byte{image, image}},
		"both contents and raw_input_contents": {RawInputContents: [][]byte{image},
			Inputs: []*pb.ModelInferRequest_InferInputTensor{
				{Name: "input", Datatype: "UINT8", Shape: good.shape,
					Contents: &pb.InferTensorContents{UintContents: []uint32{1}}}}},
		"element 1 is 256, which UINT8 cannot hold": {Inputs: []*pb.ModelInferRequest_InferInputTensor{
			{Name: "input", Datatype: "UINT8", Shape: good.shape, Contents: &pb.InferTensorContents{UintContents: []uint32{1,
				256}}}}},
		"shared memory is not supported": {Inputs: []*pb.ModelInferRequest_InferInputTensor{{Name: "input",
			Parameters: map[string]*pb.InferParameter{"shared_memory_region": {}}}}},
	} {
		r.ModelName = "digits"
		_, err := client.ModelInfer(t.Context(), r)
		require.Equal(t, codes.InvalidArgument, status.Code(err))
		require.Contains(t, err.Error(), words)
	}
	_, err := client.ModelInfer(t.Context(), &pb.ModelInferRequest{ModelName: "none"})
	require.Equal(t, codes.NotFound, status.Code(err))

	// A NaN goes in and comes out as binary data, and JSON has none.
	nan := little(slices.Repeat([]float32{float32(math.NaN())}, 24))
	in := object{"name": "x", "datatype": "FP32", "shape": []int{1, 2, 4, 3}}
	require.Len(t, inferBinary(t, url, "float", in, nan), 12)
	header, err := json.Marshal(object{"inputs": []any{in}})
	require.NoError(t, err)
	post(t, url+"/v2/models/float/infer", append(header, nan...), headerLength, fmt.Sprint(len(header))).
		fails(t, http.StatusBadRequest, `output "y" has NaN, which JSON cannot hold: ask for binary data`)
	classes := object{"name": "y", "parameters": object{"classification": 1}}
	header, err = json.Marshal(object{"inputs": []any{in}, "outputs": []any{classes}})
	require.NoError(t, err)
	post(t, url+"/v2/models/float/infer", append(header, nan...), headerLength, fmt.Sprint(len(header))).
		fails(t, http.StatusBadRequest, `output "y" has NaN, not the scores of classes: request its values`)
}

// Classes are those of package vision, in Triton's form.
func TestClassification(t *testing.T) {
	s := newServer(t, Options{}, "digits")
	url, client := overWeb(t, s), overWire(t, s)
	a := askedOf(t, "digits", 2, rand.New(rand.NewPCG(5, 6)))
	logits := a.wantJSON
	var want []string
	for i := range 2 {
		of := logits[10*i : 10*i+10]
		for _, c := range vision.TopK(of, nil, 3) {
			want = append(want, fmt.Sprintf("%f:%d:%d", of[c.Index], c.Index, c.Index))
		}
	}
	var answer struct {
		Outputs []struct {
			Datatype string
			Shape    []int
			Data     []string
		}
	}
	in := object{"name": "input", "datatype": "UINT8", "shape": []int{2, 28, 28, 1}, "data": a.numbers}
	out := object{"name": "output", "parameters": object{"classification": 3}}
	post(t, url+"/v2/models/digits/infer", object{"inputs": []any{in}, "outputs": []any{out}}).decode(t, &answer)
	require.Equal(t, "BYTES", answer.Outputs[0].Datatype)
	require.Equal(t, []int{2, 3}, answer.Outputs[0].Shape)
	require.Equal(t, want, answer.Outputs[0].Data)

	r, err := client.ModelInfer(t.Context(), &pb.ModelInferRequest{
		ModelName: "digits", RawInputContents: [][]byte{a.raw},
		Inputs: []*pb.ModelInferRequest_InferInputTensor{{Name: "input", Datatype: "UINT8", Shape: a.shape(2)}},
		Outputs: []*pb.ModelInferRequest_InferRequestedOutputTensor{{Name: "output",
			Parameters: map[string]*pb.InferParameter{
				"classification": {ParameterChoice: &pb.InferParameter_Int64Param{Int64Param: 3}}}}},
	})
	require.NoError(t, err)
	got, err := tensor.Strings(r.RawOutputContents[0])
	require.NoError(t, err)
	require.Equal(t, want, got)
	out["parameters"] = object{"classification": -1}
	post(t, url+"/v2/models/digits/infer", object{"inputs": []any{in}, "outputs": []any{out}}).fails(t, 400, "-1 classes")
	out["parameters"] = object{}
	post(t, url+"/v2/models/digits/infer", object{"inputs": []any{in}, "outputs": []any{out, out}}).fails(t, 400,
		"the request has 2 outputs, want at most 1")
}

// Many clients at the same time get their own answers, and statistics and metrics count them.
func TestManyClients(t *testing.T) {
	s := newServer(t, Options{Session: bitcnn.Options{BatchDelay: 200 * time.Microsecond, MaxBatch: 8}}, "digits")
	url := overWeb(t, s)
	const clients, each = 8, 20
	var wg sync.WaitGroup
	questions := make([]asked, clients)
	for i := range questions {
		questions[i] = askedOf(t, "digits", 1+i%3, rand.New(rand.NewPCG(uint64(i), 7)))
	}
	images := 0
	for i, a := range questions {
		images += each * (1 + i%3)
		wg.Go(func() {
			for range each {
				in := object{"name": "input", "datatype": "UINT8", "shape": a.shape(1 + i%3)}
				if got := inferBinary(t, url, "digits", in, a.raw); !slices.Equal(got, a.want) {
					t.Errorf("client %d has another answer", i)
				}
			}
		})
	}
	wg.Wait()
	post(t, url+"/v2/models/digits/infer", []byte("{}")).fails(t, 400, "is missing")
	var statistics struct {
		Models []struct {
			Name           string
			InferenceCount int                                `json:"inference_count"`
			ExecutionCount int                                `json:"execution_count"`
			Stats          map[string]struct{ Count, Ns int } `json:"inference_stats"`
			Batches        []struct {
				Size  int                     `json:"batch_size"`
				Infer struct{ Count, Ns int } `json:"compute_infer"`
			} `json:"batch_stats"`
		} `json:"model_stats"`
	}
	get(t, url+"/v2/models/stats").decode(t, &statistics)
	of := statistics.Models[0]
	require.Equal(t, images, of.InferenceCount)
	require.Equal(t, clients*each, of.Stats["success"].Count)
	require.Equal(t, clients*each, of.Stats["queue"].Count)
	require.Equal(t, 1, of.Stats["fail"].Count)
	runs, inBatches := 0, 0
	for _, b := range of.Batches {
		runs += b.Infer.Count
		inBatches += b.Infer.Count * b.Size
	}
	require.Equal(t, of.ExecutionCount, runs)
	require.Equal(t, images, inBatches)
	text := string(get(t, url+"/metrics").body)
	for _, line := range []string{
		fmt.Sprintf(`bcnn_images_total{model="digits"} %d`, images),
		fmt.Sprintf(`bcnn_batch_images_sum{model="digits"} %d`, images),
		fmt.Sprintf(`bcnn_batch_images_count{model="digits"} %d`, runs),
		fmt.Sprintf(`bcnn_request_seconds_count{model="digits",protocol="http"} %d`, clients*each+1),
		`bcnn_request_failures_total{code="InvalidArgument",model="digits",protocol="http"} 1`,
		`bcnn_requests_in_progress 0`, `bcnn_model_info{device="cpu",model="digits"`, "go_goroutines", "bcnn_device_memory_bytes",
	} {
		require.True(t, strings.Contains(text, line), line)
	}
}
