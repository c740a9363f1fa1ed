package serve

import (
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	// The codec that others are given to.
	_ "google.golang.org/grpc/encoding/proto"
)

// answered is an answer of gRPC whose memory is counted until its client has taken it. It is the
// pool that its buffer goes back to.
type answered struct {
	message proto.Message
	size    int
	hold    hold
	conn    *conn
	late    *time.Timer
	once    sync.Once
}

// answer counts an answer. Small ones, and those on foreign listeners, where nothing tells that a
// connection has been closed, are counted with their call alone.
func (c *call) answer(message any) (any, error) {
	const small = 4 << 10
	m, ok := message.(proto.Message)
	if !ok || c.conn == nil {
		return message, nil
	}
	size := proto.Size(m)
	if size <= small {
		return message, nil
	}
	a := &answered{message: m, size: size, hold: hold{of: c.s.memory, client: c.client}, conn: c.conn}
	if err := a.hold.take(int64(size)); err != nil {
		return nil, err
	}
	// gRPC waits for clients that do not read as long as they like.
	a.late = time.AfterFunc(2*c.s.opts.Timeout, func() { c.conn.Close() })
	c.conn.keep(a)
	return a, nil
}

// Get implements mem.BufferPool: nobody asks for memory.
func (a *answered) Get(length int) *[]byte {
	b := make([]byte, length)
	return &b
}

// Put implements mem.BufferPool: the answer has been sent, or is no longer needed.
func (a *answered) Put(*[]byte) {
	a.conn.drop(a)
	a.release()
}

func (a *answered) release() {
	a.once.Do(func() {
		a.late.Stop()
		a.hold.free()
	})
}

// codec is gRPC's, but for answers that are counted.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	a, ok := v.(*answered)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	b, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, 0, a.size), a.message)
	if err != nil {
		a.Put(nil)
		return nil, fmt.Errorf("the answer: %w", err)
	}
	a.message = nil
	return mem.BufferSlice{mem.NewBuffer(&b, a)}, nil
}

// decodedBytes bounds the memory that a message takes once it is decoded: two bytes of one may be
// a structure of hundreds. What is broken is for the decoder to tell.
func decodedBytes(desc protoreflect.MessageDescriptor, b []byte) int64 {
	// An element of a list or a map, and of anything else, with the lists before they grew.
	const structure, slot = 512, 160
	total := int64(structure)
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return total
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return total
		}
		value := b[:n]
		b = b[n:]
		field := desc.Fields().ByNumber(number)
		switch {
		case field == nil:
			total += 2 * int64(8+n) // kept as it is, in a slice that grows
		case kind != protowire.BytesType:
			total += slot
		case field.Message() != nil:
			content, _ := protowire.ConsumeBytes(value)
			total += decodedBytes(field.Message(), content)
		case field.IsPacked() || field.IsList() && field.Kind() != protoreflect.BytesKind && field.Kind() != protoreflect.StringKind:
			total += slot + 16*int64(n) // a byte may be a number of 8, in a slice that grows
		default:
			total += slot + int64(n)
		}
	}
	return total
}
