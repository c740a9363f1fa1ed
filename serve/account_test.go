package serve

import (
	"context"

	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/bitcnn/bitcnn/serve/internal/pb"
)

func TestAccount(t *testing.T) {
	a := newAccount("bytes are taken", "memory", 100, newMetrics())
	require.NoError(t, a.take("a", 75))
	err := a.take("a", 1)
	require.ErrorContains(t, err, "75 bytes are taken from your address; 1 more would exceed its limit of 75")
	require.Equal(t, codes.ResourceExhausted, classified(err).code)
	require.NoError(t, a.take("b", 25), "others get what is left")
	require.ErrorContains(t, a.take("c", 1), "100 bytes are taken; 1 more would exceed the limit of 100")
	a.give("b", 25)
	h := hold{of: a, client: "c"}
	require.ErrorIs(t, h.take(76), errBody, "no waiting helps")
	require.NoError(t, h.take(20))
	h.free()
	h.free()
	a.give("a", 75)
	require.Zero(t, a.taken())
	require.Empty(t, a.clients)
	require.NoError(t, a.take("a", 75))
	require.Error(t, a.take("b", 1<<62))
	require.Error(t, a.take("b", 1<<63-1))
}

func TestClients(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[2001:db8:1:2:3:4:5:6]:1": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80": "fe80::/64", "@": "@", "": "", "[::1]:8000": "::/64",
	} {
		require.Equal(t, want, clientOf(address), address)
	}
}

// The client who has the fewest turns is next.
func TestTurns(t *testing.T) {
	turns := newTurns(2)
	require.NoError(t, turns.wait(t.Context(), "a"))
	require.NoError(t, turns.wait(t.Context(), "a"))
	var order []string
	var mu sync.Mutex
	var all sync.WaitGroup
	waiting := func() int {
		turns.mu.Lock()
		defer turns.mu.Unlock()
		return len(turns.waiting)
	}
	for i, client := range []string{"a", "a", "a", "b"} {
		all.Go(func() {
			if turns.wait(t.Context(), client) != nil {
				return
			}
			mu.Lock()
			order = append(order, client)
			mu.Unlock()
			turns.done(client)
		})
		for waiting() <= i {
			runtime.Gosched()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { gone <- turns.wait(ctx, "c") }()
	for waiting() < 5 {
		runtime.Gosched()
	}
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	require.ErrorIs(t, turns.wait(ctx, "c"), context.Canceled)
	turns.done("a")
	all.Wait()
	turns.done("a")
	require.Equal(t, "b a a a", strings.Join(order, " "))
	require.Equal(t, 2, turns.free)
	require.Empty(t, turns.working)
}

// What a message is reckoned to take is no less than what it takes.
func TestDecodedBytes(t *testing.T) {
	input := func(c *pb.InferTensorContents) *pb.ModelInferRequest {
		return &pb.ModelInferRequest{Inputs: []*pb.ModelInferRequest_InferInputTensor{{Contents: c}}}
	}
	many := &pb.ModelInferRequest{}
	for range 100_000 {
		many.Inputs = append(many.Inputs, &pb.ModelInferRequest_InferInputTensor{})
	}
	raw := &pb.ModelInferRequest{RawInputContents: make([][]byte, 100_000)}
	parameters := &pb.RepositoryModelLoadRequest{Parameters: map[string]*pb.ModelRepositoryParameter{}}
	for i := range 10_000 {
		parameters.Parameters[strings.Repeat("x", i%100)+string(rune(i))] = &pb.ModelRepositoryParameter{}
	}
	shapes := &pb.ModelInferRequest{Inputs: []*pb.ModelInferRequest_InferInputTensor{{Shape: make([]int64, 1_000_000)}}}
	for name, m := range map[string]proto.Message{
		"inputs": many, "raw": raw, "parameters": parameters, "shape": shapes,
		"bool":     input(&pb.InferTensorContents{BoolContents: make([]bool, 1_000_000)}),
		"int64":    input(&pb.InferTensorContents{Int64Contents: make([]int64, 1_000_000)}),
		"fp32":     input(&pb.InferTensorContents{Fp32Contents: make([]float32, 1_000_000)}),
		"bytes":    input(&pb.InferTensorContents{BytesContents: make([][]byte, 100_000)}),
		"raw data": &pb.ModelInferRequest{RawInputContents: [][]byte{make([]byte, 1<<20)}},
		"id":       &pb.ModelInferRequest{Id: strings.Repeat("x", 1<<20)},
	} {
		b, err := proto.Marshal(m)
		require.NoError(t, err)
		into := m.ProtoReflect().New().Interface()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.NoError(t, proto.Unmarshal(b, into))
		runtime.ReadMemStats(&after)
		reckoned := decodedBytes(m.ProtoReflect().Descriptor(), b)
		require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), reckoned+64<<10, name)
		runtime.KeepAlive(into)
	}
	require.Positive(t, decodedBytes((&pb.ModelInferRequest{}).ProtoReflect().Descriptor(), []byte{0xff, 0xff}))
}
