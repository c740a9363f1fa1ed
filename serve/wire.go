package serve

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"github.com/bitcnn/bitcnn/internal/text"
)

// What a call of gRPC takes before its message is read: a goroutine, and what may come of the
// message unasked.
const (
	windowBytes = 64 << 10
	callBytes   = windowBytes + 16<<10
	checkBytes  = 16 << 20 // of all calls for the health, and of all that watch it
	maxWatches  = 4        // calls of Health.Watch on a connection
)

// call is a call of gRPC, from its header on.
type call struct {
	s       *Server
	client  string
	of      *account           // that its messages are counted in
	largest int64              // message
	conn    *conn              // nil if the listener is not of Serve
	cancel  context.CancelFunc // ends the reading of a message
	refused error              // why nothing of it is read
}

type callKey struct{}

// body returns an empty body for a message.
func (c *call) body() *body { return &body{hold: hold{of: c.of, client: c.client}} }

// callOf returns the call of a context; nil if tapped has not seen it.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// tapped looks at the header of a call, before anything else of it is read: at its token, and
// whether there is memory for it. It returns no error: where a tap does, gRPC keeps the timer of the
// call for as long as its client likes.
func (s *Server) tapped(ctx context.Context, info *tap.Info) (context.Context, error) {
	c := &call{s: s, of: s.memory, largest: s.opts.MaxBody}
	if c.refused = c.admit(ctx, info); c.refused == nil {
		ctx, c.cancel = context.WithCancel(ctx)
	}
	return context.WithValue(ctx, callKey{}, c), nil
}

// admit checks the token of a call, and takes memory for it until its context ends.
func (c *call) admit(ctx context.Context, info *tap.Info) error {
	if err := c.s.checkToken(info.FullMethodName, info.Header.Get("authorization")); err != nil {
		return err
	}
	if p, ok := peer.FromContext(ctx); ok {
		c.client = clientOf(p.Addr.String())
		if a, ok := p.Addr.(address); ok {
			c.conn = a.conn
		}
	}
	watch := info.FullMethodName == watchMethod && c.conn != nil
	if openCalls[info.FullMethodName] {
		// The health may be asked for whatever others do, and whoever watches it, without a token and for
		// as long as they like, takes nothing from others.
		c.largest, c.of = smallBody, c.s.checks
		if watch {
			c.of = c.s.watches
		}
	}
	h := &hold{of: c.of, client: c.client}
	bytes := int64(callBytes)
	for _, values := range info.Header {
		for _, v := range values {
			bytes += int64(64 + len(v))
		}
	}
	if err := h.take(bytes); err != nil {
		return err
	}
	if watch && c.conn.watches.Add(1) > maxWatches {
		c.conn.watches.Add(-1)
		h.free()
		return failf(codes.ResourceExhausted, "the health is already watched %d times on this connection, the limit",
			maxWatches)
	}
	// The context ends with the call, whatever ends that.
	context.AfterFunc(ctx, func() {
		if watch {
			c.conn.watches.Add(-1)
		}
		h.free()
	})
	return nil
}

// wire is the stream of a call as gRPC itself reads it. Reading it here, piece by piece, is the
// only way to count a message before all of it is there.
type wire interface {
	RecvCompress() string
	ReadMessageHeader(header []byte) error
	Read(n int) (mem.BufferSlice, error)
}

// receive reads a message. The time for it begins with the call, or on streams with the message.
func (c *call) receive(ctx context.Context, b *body, stream bool, message any) error {
	w, ok := grpc.ServerTransportStreamFromContext(ctx).(wire)
	m, is := message.(proto.Message)
	if !ok || !is {
		return failf(codes.Internal, "a message of %T on a stream that cannot be read", message)
	}
	var late *time.Timer
	begin := func() { late = time.AfterFunc(c.s.opts.Timeout, c.cancel) }
	if !stream {
		begin()
	}
	var header [5]byte
	err := w.ReadMessageHeader(header[:])
	if err == nil {
		if stream {
			begin()
		}
		err = c.readMessage(w, b, int64(binary.BigEndian.Uint32(header[1:])))
	}
	if late != nil && !late.Stop() && !isFailure(err) {
		return failf(codes.DeadlineExceeded, "timeout while reading the message")
	}
	if err != nil {
		return err
	}
	return c.decode(ctx, b, header[0] != 0, w.RecvCompress(), m)
}

func isFailure(err error) bool {
	var f failure
	return errors.As(err, &f)
}

// readMessage reads the bytes of a message into b. As much is asked for as has come: memory is
// taken for no more than that.
func (c *call) readMessage(w wire, b *body, length int64) error {
	if length > c.largest {
		return badf("%w: a message of %d bytes, at most %d are read", errBody, length, c.largest)
	}
	const least, most = windowBytes, 1 << 20
	for left := int(length); left > 0; {
		piece := min(left, max(least, len(b.bytes)), most)
		// What comes, and where it is put.
		more := int64(piece)
		if len(b.bytes)+piece > cap(b.bytes) {
			grown := min(int(length), 2*cap(b.bytes)+piece)
			more += int64(grown - cap(b.bytes))
			if err := b.take(more); err != nil {
				return err
			}
			b.bytes = append(make([]byte, 0, grown), b.bytes...)
		} else if err := b.take(more); err != nil {
			return err
		}
		parts, err := w.Read(piece)
		if err != nil {
			return err
		}
		for _, part := range parts {
			b.bytes = append(b.bytes, part.ReadOnlyData()...)
		}
		parts.Free()
		b.give(int64(piece))
		left -= piece
	}
	return nil
}

// decode makes a message of the bytes of b. What is large takes its turn.
func (c *call) decode(ctx context.Context, b *body, compressed bool, name string, message proto.Message) error {
	if compressed {
		z := encoding.GetCompressor(name)
		if z == nil {
			return failf(codes.Unimplemented, "a message that is compressed as %s", text.Quote(name))
		}
		plain, err := c.s.inflated(ctx, b, z.Decompress, c.largest)
		if err != nil {
			return err
		}
		b.free()
		*b = *plain
	}
	const large = 256 << 10
	if len(b.bytes) > large {
		ctx, cancel := context.WithTimeout(ctx, c.s.opts.Timeout)
		defer cancel()
		if err := c.s.long.wait(ctx, c.client); err != nil {
			return err
		}
		defer c.s.long.done(c.client)
	}
	if err := b.take(decodedBytes(message.ProtoReflect().Descriptor(), b.bytes)); err != nil {
		return err
	}
	if err := proto.Unmarshal(b.bytes, message); err != nil {
		return badf("the message cannot be read: %w", err)
	}
	return nil
}

// counted registers services whose messages are read and written with an account of their memory.
type counted struct {
	grpc.ServiceRegistrar
	s *Server
}

// RegisterService implements grpc.ServiceRegistrar.
func (r counted) RegisterService(desc *grpc.ServiceDesc, service any) {
	d := *desc
	d.Methods, d.Streams = nil, nil
	for _, m := range desc.Methods {
		handler := m.Handler
		m.Handler = func(service any, ctx context.Context, dec func(any) error,
			i grpc.UnaryServerInterceptor) (_ any, err error) {
			ctx, end := r.s.call(ctx)
			defer func() { end(err) }()
			c := callOf(ctx)
			if c == nil {
				return handler(service, ctx, dec, i)
			}
			if c.refused != nil {
				return nil, classified(c.refused).GRPCStatus().Err()
			}
			b := c.body()
			defer b.free()
			ctx = context.WithValue(ctx, bodyKey{}, b)
			answer, err := handler(service, ctx, func(message any) error {
				err := c.receive(ctx, b, false, message)
				if errors.Is(err, io.EOF) {
					return badf("the call has no message")
				}
				return wireError(err)
			}, i)
			if err != nil {
				return nil, err
			}
			return c.answer(answer)
		}
		d.Methods = append(d.Methods, m)
	}
	for _, m := range desc.Streams {
		handler := m.Handler
		m.Handler = func(service any, stream grpc.ServerStream) error {
			c := callOf(stream.Context())
			if c == nil {
				return handler(service, stream)
			}
			if c.refused != nil {
				return classified(c.refused).GRPCStatus().Err()
			}
			b := c.body()
			defer b.free()
			return handler(service, &countedStream{stream, c, b, context.WithValue(stream.Context(), bodyKey{}, b)})
		}
		d.Streams = append(d.Streams, m)
	}
	r.ServiceRegistrar.RegisterService(&d, service)
}

type bodyKey struct{}

// bodyOf returns the memory of a call of gRPC, and what ends its use. Calls that nobody has tapped
// have one of their own.
func (s *Server) bodyOf(ctx context.Context) (*body, func()) {
	if b, ok := ctx.Value(bodyKey{}).(*body); ok {
		return b, func() {}
	}
	b := s.newBody("")
	return b, b.free
}

// wireError is an error in reading as a status: those of gRPC have one.
func wireError(err error) error {
	var f failure
	if errors.As(err, &f) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return classified(err).GRPCStatus().Err()
	}
	return err
}

// countedStream is a stream whose messages are counted, each until the next.
type countedStream struct {
	grpc.ServerStream
	*call
	body *body
	ctx  context.Context
}

func (s *countedStream) Context() context.Context { return s.ctx }

func (s *countedStream) RecvMsg(message any) error {
	s.body.free()
	s.body.bytes = nil
	return wireError(s.receive(s.ctx, s.body, true, message))
}

func (s *countedStream) SendMsg(message any) error {
	a, err := s.answer(message)
	if err != nil {
		return classified(err).GRPCStatus().Err()
	}
	return s.ServerStream.SendMsg(a)
}
