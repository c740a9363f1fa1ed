package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/internal/text"
)

// logStart says what answers from now on, where, and within which limits.
func (s *Server) logStart(l Listeners) {
	s.log.Info("serving", "version", bitcnn.Version(), "http", where(l.HTTP), "grpc", where(l.GRPC), "tls", l.TLS != nil,
		"tokens", len(s.tokens), "models", len(s.repository.index(true)), "memory_bytes", s.opts.Memory,
		"max_body_bytes", s.opts.MaxBody, "max_requests", s.opts.MaxRequests, "max_connections", s.opts.MaxConnections,
		"max_batch", s.opts.Session.MaxBatch, "timeout", s.opts.Timeout, "drain", l.drain())
}

func where(l net.Listener) string {
	if l == nil {
		return "none"
	}
	return l.Addr().String()
}

func (l Listeners) drain() time.Duration { return cmp.Or(l.Drain, 10*time.Second) }

// logDraining says why Serve comes to its end: the cause of its context, with the signal where it
// has one, or a listener that failed.
func (s *Server) logDraining(ctx context.Context, l Listeners, failed error) {
	log, why := s.log.Info, "stopped by the program"
	switch cause := context.Cause(ctx); {
	case failed != nil:
		log, why = s.log.Error, "a listener failed: "+failed.Error()
	case cause != nil && !errors.Is(cause, context.Canceled):
		why = cause.Error()
		if signal, ok := cause.(fmt.Stringer); ok {
			why += ": " + signal.String()
		}
	}
	log("draining", "why", why, "requests", s.requests.taken(), "at_most", l.drain())
}

// logStopped says how Serve has ended.
func (s *Server) logStopped(began time.Time, err error) {
	if err != nil {
		s.log.Error("stopped", "took", time.Since(began), "requests_given_up", s.requests.taken(), "error", err)
		return
	}
	s.log.Info("stopped", "took", time.Since(began), "why", "all requests have been answered")
}

// missing logs that a client has asked for a model that is not there. A client may do so as often
// as it likes, and by as many names: a name gets a line a minute, and so many names get one.
func (s *Server) missing(ctx context.Context, model string, err error) {
	if code := classified(err).code; model == "" || code != codes.NotFound && code != codes.Unavailable {
		return
	}
	if name := brief(model); s.strange.first(name, time.Now()) {
		s.log.WarnContext(ctx, "a client requested an unknown model", "model", name, "error", err)
	}
}

// brief is the beginning of what a client has sent, as long as a line of a log may show it. What does not
// print is escaped: JSON has control characters above 0x7e as they are.
func brief(s string) string {
	const most = 256
	if len(s) <= most {
		return text.Escape(s)
	}
	return text.Escape(strings.ToValidUTF8(s[:most], "")) + "…"
}

// seldom lets something happen once a minute for each of so many names.
type seldom struct {
	mu   sync.Mutex
	seen map[string]time.Time
}

const (
	seldomEvery = time.Minute
	seldomNames = 64
)

// first reports whether it may happen for a name now.
func (s *seldom) first(name string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, ok := s.seen[name]; ok && now.Sub(last) < seldomEvery {
		return false
	}
	if len(s.seen) >= seldomNames {
		for other, last := range s.seen {
			if now.Sub(last) >= seldomEvery {
				delete(s.seen, other)
			}
		}
	}
	if len(s.seen) >= seldomNames {
		return false
	}
	if s.seen == nil {
		s.seen = map[string]time.Time{}
	}
	s.seen[name] = now
	return true
}
