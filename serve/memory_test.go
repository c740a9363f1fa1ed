package serve

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"image"
	"image/png"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"github.com/bitcnn/bitcnn/serve/internal/pb"
	"github.com/bitcnn/bitcnn/serve/internal/picture"
)

// gzipped compresses.
func gzipped(t *testing.T, text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := io.WriteString(z, text)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.Bytes()
}

// blank is a PNG of one colour.
func blank(t *testing.T, w, h int) []byte {
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, image.NewRGBA(image.Rect(0, 0, w, h))))
	return b.Bytes()
}

// nothingLeft requires that all has been given back.
func nothingLeft(t *testing.T, s *Server) {
	t.Helper()
	require.Eventually(t, func() bool {
		return s.memory.taken() == 0 && s.requests.taken() == 0 && s.checks.taken() == 0 && s.watches.taken() == 0 &&
			s.heads.taken() == 0 && s.reports.taken() == 0
	}, time.Minute, time.Millisecond)
}

// A few bytes that would be many are refused before they are.
func TestAmplification(t *testing.T) {
	s := newServer(t, Options{Memory: 16 << 20, MaxBody: 8 << 20}, "digits")
	url := overWeb(t, s)
	inputs := gzipped(t, `{"inputs":[`+strings.Repeat(`{},`, 1_000_000)+`{}]}`)
	post(t, url+"/v2/models/digits/infer", inputs, "Content-Encoding", "gzip").fails(t, http.StatusRequestEntityTooLarge,
		"more than 1269760 bytes")
	id := `{"id":"` + strings.Repeat("x", 1_000_000) + `","inputs":[]}`
	post(t, url+"/v2/models/digits/infer", gzipped(t, id), "Content-Encoding", "gzip").fails(t, 400,
		"more than 65536 bytes of JSON that are no data")
	few := `{"inputs":[` + strings.Repeat(`{},`, 100_000) + `{}]}`
	post(t, url+"/v2/models/digits/infer", []byte(few)).fails(t, 400, "the request has 100001 inputs, want at most 1")
	post(t, url+"/v2/repository/models/digits/load", bytes.Repeat([]byte(" "), smallBody+1)).fails(t, 413, "at most 65536")
	post(t, url+"/v2/models/digits/classify", blank(t, 2048, 2048)).fails(t, http.StatusRequestEntityTooLarge,
		"bytes of memory, one address gets 12582912")
	require.NoError(t, s.memory.take("somebody", 9<<20))
	post(t, url+"/v2/models/digits/classify", blank(t, 1500, 1500)).fails(t, http.StatusTooManyRequests, "would exceed the limit")
	s.memory.give("somebody", 9<<20)
	require.Equal(t, 200, post(t, url+"/v2/models/digits/classify", blank(t, 1500, 1500)).status)
	fine(t, url)
	nothingLeft(t, s)
	require.NotContains(t, string(get(t, url+"/metrics").body), `bcnn_rejected_total{reason="memory"} 0`)
}

// As many pictures are decoded as there are threads; others wait as long as their time and their
// clients.
func TestPicturesTakeTurns(t *testing.T) {
	s := newServer(t, Options{Timeout: 50 * time.Millisecond}, "digits")
	url := overWeb(t, s)
	large, small := blank(t, 1500, 1500), blank(t, 28, 28)
	threads := s.long.free
	for range threads {
		require.NoError(t, s.long.wait(t.Context(), "somebody"))
	}
	post(t, url+"/v2/models/digits/classify", large).fails(t, http.StatusGatewayTimeout, "the request timed out")
	require.Equal(t, 200, post(t, url+"/v2/models/digits/classify", small).status, "small ones do not wait for large ones")
	// So does what takes long to inflate, though nothing comes of it, and to read as JSON.
	nothing := bytes.Repeat(gzipped(t, ""), firstBuffer/20)
	post(t, url+"/v2/models/digits/classify", nothing, "Content-Encoding", "gzip").fails(t, http.StatusGatewayTimeout, "the request timed out")
	json := []byte(imageJSON + strings.Repeat(" ", largeJSON))
	post(t, url+"/v2/models/digits/infer", json).fails(t, http.StatusGatewayTimeout, "the request timed out")
	require.Empty(t, s.long.waiting)
	for range threads {
		s.long.done("somebody")
	}
	patient := overWeb(t, newServer(t, Options{}, "digits"))
	post(t, patient+"/v2/models/digits/classify", nothing, "Content-Encoding", "gzip").fails(t, 400, "cannot read this image")
	require.Equal(t, 200, post(t, patient+"/v2/models/digits/infer", json).status)
	require.Equal(t, threads, s.long.free)
	nothingLeft(t, s)
}

// ending is a context that ends when it has been looked at so often.
type ending struct {
	context.Context
	looks atomic.Int32
}

func (e *ending) Err() error {
	if e.looks.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

func TestDecodingEndsWithItsContext(t *testing.T) {
	s := newServer(t, Options{}, "digits")
	m, err := s.repository.acquire("digits", "")
	require.NoError(t, err)
	defer m.release()
	data := blank(t, 1500, 1500)
	ctx := &ending{Context: t.Context()}
	ctx.looks.Store(8)
	_, err = picture.Decode(ctx, m.classifier.Preprocessing(), data)
	require.ErrorIs(t, err, context.Canceled)
	require.Greater(t, ctx.looks.Load(), int32(-8), "it looks no more once it has ended")
}

// A WebP that would be decoded for longer than a request may go on behind its end is refused by
// its header.
func TestLongWebPs(t *testing.T) {
	s := newServer(t, Options{}, "digits")
	url := overWeb(t, s)
	lossless := func(w, h int) []byte { // of one colour
		b := []byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x00\x88\x88\x08\x00\x00\x00\x00\x00\x00")
		binary.LittleEndian.PutUint32(b[21:], uint32(w-1)|uint32(h-1)<<14)
		return b
	}
	require.Equal(t, 200, post(t, url+"/v2/models/digits/classify", lossless(1250, 1250)).status)
	post(t, url+"/v2/models/digits/classify", lossless(4000, 3000)).fails(t, http.StatusBadRequest,
		"decoding the 4000×3000 pixels of a WebP cannot be stopped for up to 384ms, at most 100ms are accepted: make it smaller, or a JPEG or PNG")
	nothingLeft(t, s)
}

// rawCodec sends bytes as they are.
type rawCodec struct{}

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}
func (rawCodec) Unmarshal(mem.BufferSlice, any) error { return nil }
func (rawCodec) Name() string                         { return "proto" }

// Messages of gRPC are counted as they come and before they are decoded, and not even read without
// a token.
func TestMessagesAreCounted(t *testing.T) {
	s := newServer(t, Options{Memory: 64 << 20}, "digits")
	_, wire, _ := serving(t, s, Listeners{})
	conn := connect(t, wire)
	infer := func(message []byte) error {
		var answer any
		return conn.Invoke(t.Context(), pb.GRPCInferenceService_ModelInfer_FullMethodName, message, &answer,
			grpc.ForceCodecV2(rawCodec{}))
	}
	empty := bytes.Repeat([]byte{5<<3 | 2, 0}, 1_000_000) // inputs
	err := infer(empty)
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Contains(t, err.Error(), "bytes of memory, one address gets 50331648")
	require.Equal(t, codes.NotFound, status.Code(infer(empty[:2000])))
	named := append([]byte{1<<3 | 2, 6}, "digits"...)
	err = infer(append(named, empty[:2000]...))
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.Contains(t, err.Error(), "the request has 1000 inputs, want at most 1")
	require.Equal(t, codes.InvalidArgument, status.Code(infer([]byte{0xff})))
	err = infer(append(append(named, 3<<3|2, 0x80, 0x10), bytes.Repeat([]byte("x"), 2048)...))
	require.Contains(t, err.Error(), "the id has 2048 bytes, want at most 1024")
	nothingLeft(t, s)

	// All that there is has been taken: health is answered, and nothing else.
	require.NoError(t, s.memory.take("somebody", 48<<20))
	require.NoError(t, s.memory.take("another", 16<<20))
	require.Equal(t, codes.ResourceExhausted, status.Code(infer(nil)))
	client := pb.NewGRPCInferenceServiceClient(conn)
	ready, err := client.ServerReady(t.Context(), &pb.ServerReadyRequest{})
	require.NoError(t, err)
	require.True(t, ready.Ready)
	_, err = grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	s.memory.give("somebody", 48<<20)
	s.memory.give("another", 16<<20)

	guarded := newServer(t, Options{Tokens: []string{"secret"}}, "digits")
	_, wire, _ = serving(t, guarded, Listeners{})
	conn = connect(t, wire)
	require.Equal(t, codes.Unauthenticated, status.Code(infer(empty)))
	require.Zero(t, guarded.memory.taken())
}

// frames speaks HTTP/2 as a client that does what it likes.
type frames struct {
	*http2.Framer
	conn net.Conn
}

func newFrames(t *testing.T, wire string, settings ...http2.Setting) frames {
	c, err := net.Dial("tcp", wire)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	_, err = io.WriteString(c, http2.ClientPreface)
	require.NoError(t, err)
	f := frames{http2.NewFramer(c, c), c}
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	require.NoError(t, f.WriteSettings(settings...))
	return f
}

// call begins a call, with so many bytes of its message.
func (f frames) call(t *testing.T, id uint32, method string, length uint32, part []byte, end bool) {
	var header bytes.Buffer
	e := hpack.NewEncoder(&header)
	for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "localhost"},
		{"content-type", "application/grpc"}, {"te", "trailers"}} {
		require.NoError(t, e.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}))
	}
	require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: header.Bytes(), EndHeaders: true}))
	require.NoError(t, f.WriteData(id, end, append(binary.BigEndian.AppendUint32([]byte{0}, length), part...)))
}

// statuses reads the frames until calls end, and returns the statuses of calls.
func (f frames) statuses(t *testing.T, calls ...uint32) map[uint32]string {
	require.NoError(t, f.conn.SetReadDeadline(time.Now().Add(time.Minute)))
	seen := map[uint32]string{}
	for _, id := range calls {
		for seen[id] == "" {
			frame, err := f.ReadFrame()
			require.NoError(t, err)
			if h, ok := frame.(*http2.MetaHeadersFrame); ok && h.StreamEnded() {
				for _, field := range h.Fields {
					if field.Name == "grpc-status" {
						seen[h.StreamID] = field.Value
					}
				}
			}
		}
	}
	return seen
}

// A message that does not come takes what has come of it, for as long as --timeout.
func TestSlowMessages(t *testing.T) {
	s := newServer(t, Options{Timeout: 300 * time.Millisecond}, "digits")
	url, wire, _ := serving(t, s, Listeners{})
	var all []frames
	for range 4 {
		f := newFrames(t, wire)
		for i := range uint32(10) {
			method := pb.GRPCInferenceService_ModelInfer_FullMethodName
			if i%2 == 1 {
				method = pb.GRPCInferenceService_ModelStreamInfer_FullMethodName
			}
			f.call(t, 2*i+1, method, 31<<20, make([]byte, 1000), false)
		}
		all = append(all, f)
	}
	// The first piece of each message, and where it is put.
	require.Eventually(t, func() bool { return s.memory.taken() > 40*callBytes }, time.Minute, time.Millisecond)
	require.Less(t, s.memory.taken(), int64(40*(callBytes+4*windowBytes)))
	fine(t, url)
	for _, f := range all {
		seen := f.statuses(t, 1, 3)
		require.Equal(t, "4", seen[1], "DEADLINE_EXCEEDED")
		require.Equal(t, "4", seen[3], "of a stream, too")
	}
	nothingLeft(t, s)
}

// What is refused is refused where its call ends as others do: gRPC keeps the timers of calls that a
// tap refuses.
func TestTapReturnsNoError(t *testing.T) {
	s := newServer(t, Options{Tokens: []string{"secret"}}, "digits")
	ctx, err := s.tapped(t.Context(), &tap.Info{FullMethodName: pb.GRPCInferenceService_ModelInfer_FullMethodName})
	require.NoError(t, err)
	require.ErrorContains(t, callOf(ctx).refused, "no bearer token")
	require.Zero(t, s.memory.taken())
}

// Few calls watch the health on a connection, and all end with it. They take nothing of what requests may.
func TestWatches(t *testing.T) {
	s := newServer(t, Options{Tokens: []string{"secret"}}, "digits")
	_, wire, _ := serving(t, s, Listeners{})
	conn := connect(t, wire)
	watch := func() error {
		w, err := grpc_health_v1.NewHealthClient(conn).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		require.NoError(t, err)
		_, err = w.Recv()
		return err
	}
	for range maxWatches {
		require.NoError(t, watch())
	}
	require.Equal(t, codes.ResourceExhausted, status.Code(watch()))
	require.Zero(t, s.memory.taken())
	require.Greater(t, s.watches.taken(), int64(maxWatches*callBytes-1))
	require.NoError(t, conn.Close())
	nothingLeft(t, s)
	conn = connect(t, wire)
	require.NoError(t, watch())
}

// An answer is counted until its client has taken it, or is gone.
func TestAnswersAreCounted(t *testing.T) {
	s := newServer(t, Options{}, "wide")
	_, wire, _ := serving(t, s, Listeners{})
	data, err := proto.Marshal(&pb.ModelInferRequest{
		ModelName: "wide", RawInputContents: [][]byte{make([]byte, 4*4096), make([]byte, 4*4096)},
		Inputs: []*pb.ModelInferRequest_InferInputTensor{
			{Name: "a", Datatype: "FP32", Shape: []int64{1, 4096}}, {Name: "b", Datatype: "FP32", Shape: []int64{1, 4096}},
		},
	})
	require.NoError(t, err)
	f := newFrames(t, wire, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}) // it reads nothing
	for i := range uint32(3) {
		require.NoError(t, f.WriteWindowUpdate(0, 1)) // none for the stream
		f.call(t, 2*i+1, pb.GRPCInferenceService_ModelInfer_FullMethodName, uint32(len(data)), data[:10000], false)
		require.NoError(t, f.WriteData(2*i+1, false, data[10000:20000]))
		require.NoError(t, f.WriteData(2*i+1, true, data[20000:]))
	}
	require.Eventually(t, func() bool {
		taken := s.memory.taken()
		return s.requests.taken() == 0 && taken >= 3*4*4096 && taken < 3*5*4096
	}, time.Minute, time.Millisecond)
	require.NoError(t, f.WriteWindowUpdate(1, 1<<20))
	require.Equal(t, "0", f.statuses(t, 1)[1])
	require.Eventually(t, func() bool { return s.memory.taken() < 3*4*4096 }, time.Minute, time.Millisecond)
	require.NoError(t, f.conn.Close())
	nothingLeft(t, s)
}

// One client who has all connections makes room for another.
func TestGreedyConnections(t *testing.T) {
	const most = 8
	l := newListener(nil, most, newMetrics())
	from := func(client string) *conn {
		here, there := net.Pipe()
		t.Cleanup(func() { there.Close() })
		c := &conn{Conn: here, of: l, client: client}
		c.spoke.Store(true)
		c.used.Store(time.Now().Add(time.Hour).UnixNano()) // busy
		return c
	}
	for range most {
		require.True(t, l.admit(from("a")))
	}
	require.False(t, l.admit(from("a")))
	for range most / 2 {
		require.True(t, l.admit(from("b")))
	}
	require.False(t, l.admit(from("b")), "it has half of them")
	require.True(t, l.admit(from("c")))
	require.Len(t, l.conns, most)
}

// A connection that has just been opened is not closed for one of those who have many, before it could
// say anything.
func TestNewConnectionsMakeNoRoom(t *testing.T) {
	const most = 8
	l := newListener(nil, most, newMetrics())
	from := func(client string, spoke bool, used time.Time) *conn {
		here, there := net.Pipe()
		t.Cleanup(func() { there.Close() })
		c := &conn{Conn: here, of: l, client: client}
		c.spoke.Store(spoke)
		c.used.Store(used.UnixNano())
		return c
	}
	now := time.Now().Add(time.Hour)
	idle := from("a", true, now.Add(-2*time.Hour))
	require.True(t, l.admit(idle))
	for range most - 2 {
		require.True(t, l.admit(from("a", true, now)))
	}
	fresh := from("b", false, now)
	require.True(t, l.admit(fresh))
	require.True(t, l.admit(from("a", false, now)), "in the place of the idle one")
	require.NotContains(t, l.conns, idle)
	require.False(t, l.admit(from("a", false, now)))
	require.True(t, l.admit(from("c", false, now)))
	require.Contains(t, l.conns, fresh)
}

// The default is a part of the memory of the machine.
func TestDefaultMemory(t *testing.T) {
	require.LessOrEqual(t, defaultMemory(), int64(2<<30))
	require.Positive(t, defaultMemory())
	taken, most := newServer(t, Options{}).Memory()
	require.Zero(t, taken)
	require.Equal(t, defaultMemory(), most)
}
