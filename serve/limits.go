package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"
)

// limits bound what requests take together.
type limits struct {
	maxRequests, maxBuffered int64
	requests, buffered       atomic.Int64
	metrics                  *metrics
}

// begin admits a request, which ends with end.
func (l *limits) begin() error {
	if n := l.requests.Add(1); n > l.maxRequests {
		l.requests.Add(-1)
		l.metrics.rejected.WithLabelValues("requests").Inc()
		return failf(codes.ResourceExhausted, "%d requests are in progress or wait, which are all that may", l.maxRequests)
	}
	l.metrics.progress.Inc()
	return nil
}

func (l *limits) end() {
	l.requests.Add(-1)
	l.metrics.progress.Dec()
}

// firstBuffer is the memory that a body gets first. Small bodies need no more, and these are
// used again.
const firstBuffer = 32 << 10

var firstBuffers = sync.Pool{New: func() any { return new([firstBuffer]byte) }}

// body is a body that was read.
type body struct {
	bytes    []byte
	buffered int64
	first    *[firstBuffer]byte // which bytes are a part of if they are few
	limits   *limits
}

// free gives the memory back: the bytes must not be used any more.
func (b *body) free() {
	b.limits.buffered.Add(-b.buffered)
	firstBuffers.Put(b.first)
}

// take takes memory for n more bytes.
func (b *body) take(n int64) error {
	if b.limits.buffered.Add(n) > b.limits.maxBuffered {
		b.limits.buffered.Add(-n)
		b.limits.metrics.rejected.WithLabelValues("memory").Inc()
		return failf(codes.ResourceExhausted, "the bodies of requests take %d bytes, which are all that they may",
			b.limits.maxBuffered)
	}
	b.buffered += n
	return nil
}

// read reads a body of at most limit bytes; size is that which it is said to have, or -1.
// Memory is taken as the bytes come, so that whoever only claims to send many takes none.
func (l *limits) read(r io.Reader, size, limit int64) (*body, error) {
	if size > limit {
		return nil, badf("%w: %d bytes, at most %d are read", errBody, size, limit)
	}
	b := &body{limits: l, first: firstBuffers.Get().(*[firstBuffer]byte)}
	b.bytes = b.first[:0]
	err := b.take(firstBuffer)
	for err == nil {
		if len(b.bytes) == cap(b.bytes) {
			if err = b.take(int64(cap(b.bytes))); err != nil {
				break
			}
			b.bytes = append(make([]byte, 0, 2*cap(b.bytes)), b.bytes...)
		}
		var n int
		n, err = r.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		if int64(len(b.bytes)) > limit {
			err = badf("%w: more than the %d bytes that are read", errBody, limit)
		}
	}
	if err != io.EOF {
		b.free()
		return nil, err
	}
	return b, nil
}

// tokens are the hashes of bearer tokens: comparing those says nothing of the tokens.
type tokens [][sha256.Size]byte

func newTokens(list []string) tokens {
	var t tokens
	for _, s := range list {
		t = append(t, sha256.Sum256([]byte(s)))
	}
	return t
}

// check checks the header of a request that authorises it.
func (t tokens) check(authorization string) error {
	if len(t) == 0 {
		return nil
	}
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return failure{codes.Unauthenticated, fmt.Errorf("the request has no bearer token")}
	}
	given, found := sha256.Sum256([]byte(token)), 0
	for _, want := range t {
		found |= subtle.ConstantTimeCompare(given[:], want[:])
	}
	if found == 0 {
		return failure{codes.Unauthenticated, fmt.Errorf("the bearer token is not known")}
	}
	return nil
}
