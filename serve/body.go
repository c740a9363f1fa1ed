package serve

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/bitcnn/bitcnn/internal/text"
)

// firstBuffer is the memory that a body gets first. Small bodies need no more, and these are
// used again.
const firstBuffer = 32 << 10

var firstBuffers = sync.Pool{New: func() any { return new([firstBuffer]byte) }}

// body is a body that was read, with all the memory that its request takes.
type body struct {
	hold
	bytes []byte
	first *[firstBuffer]byte // which bytes are a part of if they are few
}

// free gives the memory back: the bytes must not be used any more.
func (b *body) free() {
	b.hold.free()
	if b.first != nil {
		firstBuffers.Put(b.first)
		b.first = nil
	}
}

// newBody returns an empty body for what a client sends.
func (s *Server) newBody(client string) *body { return &body{hold: hold{of: s.memory, client: client}} }

// read reads a body of at most limit bytes. Memory is taken as the bytes come, so that whoever only
// claims to send many takes none. grow, if it is not nil, is called once, when they are no longer
// few. On an error the body has been freed.
func (b *body) read(r io.Reader, limit int64, grow func() error) error {
	err := b.take(firstBuffer)
	if err == nil {
		b.first = firstBuffers.Get().(*[firstBuffer]byte)
		b.bytes = b.first[:0]
	}
	for err == nil {
		if len(b.bytes) == cap(b.bytes) {
			if grow != nil && len(b.bytes) == firstBuffer {
				if err = grow(); err != nil {
					break
				}
			}
			if err = b.take(int64(cap(b.bytes))); err != nil {
				break
			}
			b.bytes = append(make([]byte, 0, 2*cap(b.bytes)), b.bytes...)
		}
		var n int
		n, err = r.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		if int64(len(b.bytes)) > limit {
			err = badf("%w: more than %d bytes", errBody, limit)
		}
	}
	if err != io.EOF {
		b.free()
		return err
	}
	return nil
}

// within ends reading with a context, and reads little at a time, so that it ends soon.
type within struct {
	context.Context
	io.Reader
}

func (w within) Read(b []byte) (int, error) {
	const little = 4 << 10
	if err := w.Err(); err != nil {
		return 0, err
	}
	return w.Reader.Read(b[:min(len(b), little)])
}

// body reads the body of a request, uncompressed, of at most limit bytes. The caller frees it.
func (s *Server) body(w http.ResponseWriter, r *http.Request, limit int64) (*body, error) {
	var inflate func(io.Reader) (io.Reader, error)
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		inflate = func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }
	case "deflate":
		inflate = func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }
	default:
		return nil, badf("the body cannot be read: the encoding %s, want gzip or deflate", text.Quote(encoding))
	}
	if r.ContentLength > limit {
		return nil, badf("%w: %d bytes, at most %d are read", errBody, r.ContentLength, limit)
	}
	b := s.newBody(clientOf(r.RemoteAddr))
	if err := b.read(http.MaxBytesReader(w, r.Body, limit), limit, nil); err != nil {
		return nil, bodyError(err)
	}
	if inflate == nil {
		return b, nil
	}
	defer b.free()
	return s.inflated(r.Context(), b, inflate, limit)
}

// inflated makes a body of a compressed one. What is not small, before or after, takes its turn: many
// bytes may become none.
func (s *Server) inflated(ctx context.Context, from *body, inflate func(io.Reader) (io.Reader, error),
	limit int64) (*body, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	working := false
	turn := func() error {
		if working {
			return nil
		}
		err := s.long.wait(ctx, from.client)
		working = err == nil
		return err
	}
	defer func() {
		if working {
			s.long.done(from.client)
		}
	}()
	if len(from.bytes) > firstBuffer {
		if err := turn(); err != nil {
			return nil, err
		}
	}
	r, err := inflate(within{ctx, bytes.NewReader(from.bytes)})
	if err != nil {
		return nil, bodyError(err)
	}
	b := s.newBody(from.client)
	if err := b.read(within{ctx, r}, limit, turn); err != nil {
		return nil, bodyError(err)
	}
	return b, nil
}

// bodyError says what an error in reading a body is.
func bodyError(err error) error {
	var large *http.MaxBytesError
	var f failure
	var network *net.OpError
	switch {
	case errors.As(err, &f), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &large):
		return badf("%w: at most %d bytes are read", errBody, large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return failure{codes.DeadlineExceeded, errors.New("timeout while reading the body")}
	case errors.As(err, &network): // it names addresses
		return failure{codes.Canceled, errors.New("the client disconnected")}
	}
	return badf("the body cannot be read: %w", err)
}
