package serve

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"strings"
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

// firstBuffer is the memory of a body whose size is not known, and that of a small one.
const firstBuffer = 64 << 10

// read reads a body of at most limit bytes; size is that which it is said to have, or -1.
// Memory is taken as the bytes come, so that whoever only claims to send many takes none. The
// caller frees what was buffered.
func (l *limits) read(r io.Reader, size, limit int64) (body []byte, buffered int64, err error) {
	if size > limit {
		return nil, 0, badf("%w: %d bytes, at most %d are read", errBody, size, limit)
	}
	if size < 0 || size > firstBuffer {
		size = firstBuffer
	}
	take := func(n int64) error {
		if l.buffered.Add(n) > l.maxBuffered {
			l.buffered.Add(-n)
			l.metrics.rejected.WithLabelValues("memory").Inc()
			return failf(codes.ResourceExhausted, "the bodies of requests take %d bytes, which are all that they may", l.maxBuffered)
		}
		buffered += n
		return nil
	}
	if err := take(size + bytes.MinRead); err != nil {
		return nil, buffered, err
	}
	body = make([]byte, 0, size+bytes.MinRead)
	for {
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > limit:
			return nil, buffered, badf("%w: more than the %d bytes that are read", errBody, limit)
		case err == io.EOF:
			return body, buffered, nil
		case err != nil:
			return nil, buffered, err
		}
		if len(body) == cap(body) {
			more := int64(cap(body))
			if err := take(more); err != nil {
				return nil, buffered, err
			}
			body = append(make([]byte, 0, 2*more), body...)
		}
	}
}

func (l *limits) free(buffered int64) { l.buffered.Add(-buffered) }

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
