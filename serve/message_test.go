package serve

import (
	"context"
	"encoding/binary"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/bitcnn/bitcnn/serve/internal/pb"
)

// messages are the calls of gRPC that take something.
var messages = []unary{
	called(grpcServer.ModelInfer), called(grpcServer.ModelReady), called(grpcServer.ModelMetadata),
	called(grpcServer.ModelConfig), called(grpcServer.ModelStatistics), called(grpcServer.RepositoryIndex),
	called(grpcServer.RepositoryModelLoad),
}

// unary is a call, with a maker of empty messages for it.
type unary struct {
	empty func() proto.Message
	call  func(g grpcServer, ctx context.Context, m proto.Message) error
}

func called[M, A any, P interface {
	*M
	proto.Message
}](call func(grpcServer, context.Context, P) (A, error)) unary {
	return unary{
		func() proto.Message { return P(new(M)) },
		func(g grpcServer, ctx context.Context, m proto.Message) error {
			_, err := call(g, ctx, m.(P))
			return err
		},
	}
}

// FuzzMessage: decoding takes no more memory than was counted before, and whatever comes as a
// message is answered or refused, never a fault of the server, and leaves nothing behind.
func FuzzMessage(f *testing.F) {
	s := newServer(f, Options{Memory: 64 << 20, Fixed: true}, "digits", "float", "counting")
	add := func(which int, m proto.Message) {
		b, err := proto.Marshal(m)
		require.NoError(f, err)
		f.Add(which, b)
	}
	floats := make([]float32, 24)
	floats[3] = float32(math.NaN())
	raw := make([]byte, 0, 96)
	for _, v := range floats {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	input := func(shape []int64, contents *pb.InferTensorContents) []*pb.ModelInferRequest_InferInputTensor {
		return []*pb.ModelInferRequest_InferInputTensor{{Name: "x", Datatype: "FP32", Shape: shape, Contents: contents}}
	}
	shape := []int64{1, 2, 4, 3}
	classes := map[string]*pb.InferParameter{
		"classification": {ParameterChoice: &pb.InferParameter_Int64Param{Int64Param: 2}},
	}
	add(0, &pb.ModelInferRequest{ModelName: "float", Inputs: input(shape, nil), RawInputContents: [][]byte{raw}})
	add(0, &pb.ModelInferRequest{ModelName: "float", Id: "7", Inputs: input(shape, &pb.InferTensorContents{Fp32Contents: floats}),
		Outputs: []*pb.ModelInferRequest_InferRequestedOutputTensor{{Name: "y", Parameters: classes}}, Parameters: classes})
	add(0, &pb.ModelInferRequest{ModelName: "digits", Inputs: []*pb.ModelInferRequest_InferInputTensor{
		{Name: "input", Datatype: "UINT8", Shape: []int64{1, 28, 28, 1}, Contents: &pb.InferTensorContents{UintContents: make([]uint32, 784)}}}})
	add(0, &pb.ModelInferRequest{ModelName: "counting", Inputs: []*pb.ModelInferRequest_InferInputTensor{
		{Name: "x", Datatype: "INT8", Shape: []int64{1, 4, 4, 1}, Contents: &pb.InferTensorContents{IntContents: make([]int32, 16)}}}})
	f.Add(0, append([]byte("\x0a\x05float"), 5<<3|2, 0, 5<<3|2, 0, 0x7a, 3, 1, 2, 3))
	add(1, &pb.ModelReadyRequest{Name: "digits", Version: "1"})
	add(2, &pb.ModelMetadataRequest{Name: "digits"})
	add(3, &pb.ModelConfigRequest{Name: "float"})
	add(4, &pb.ModelStatisticsRequest{})
	add(5, &pb.RepositoryIndexRequest{Ready: true})
	add(6, &pb.RepositoryModelLoadRequest{ModelName: "digits"})
	f.Fuzz(func(t *testing.T, which int, data []byte) {
		method := messages[uint(which)%uint(len(messages))]
		c := &call{s: s, client: "somebody", of: s.memory, largest: s.opts.MaxBody}
		b := c.body()
		b.bytes = data
		// The first message of a kind makes tables for it, once for the process.
		_ = proto.Unmarshal(data, method.empty())
		message := method.empty()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := c.decode(t.Context(), b, false, "", message)
		runtime.ReadMemStats(&after)
		// What the test and the error take is not the message's.
		if taken := int64(after.TotalAlloc - before.TotalAlloc); taken > b.hold.bytes+4<<10 {
			t.Errorf("decoding takes %d bytes, %d were counted", taken, b.hold.bytes)
		}
		if err == nil {
			err = method.call(grpcServer{s: s}, context.WithValue(t.Context(), bodyKey{}, b), message)
			if code := classified(err).code; err != nil && !slices.Contains([]codes.Code{
				codes.InvalidArgument, codes.NotFound, codes.ResourceExhausted, codes.PermissionDenied,
			}, code) {
				t.Errorf("%v: %v", code, err)
			}
		}
		b.free()
		if s.memory.taken() != 0 {
			t.Errorf("%d bytes are left", s.memory.taken())
		}
	})
}
