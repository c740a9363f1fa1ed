package serve

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
)

// headerID is the header by which a client says what it calls a request, and is told what the log
// calls it.
const headerID = "X-Request-ID"

// identity is what the log says of a request.
type identity struct{ id, model string }

type identityKey struct{}

// identityOf returns what is known of the request of a context; nil if it has none.
func identityOf(ctx context.Context) *identity {
	a, _ := ctx.Value(identityKey{}).(*identity)
	return a
}

// identify adds a request to a context, by the headers of its client.
func identify(ctx context.Context, given, traceparent string) (context.Context, *identity) {
	a := &identity{id: requestID(ctx, given, traceparent)}
	return context.WithValue(ctx, identityKey{}, a), a
}

// requestID is what a client calls a request if that fits into any log, or its trace, or a new name.
func requestID(ctx context.Context, given, traceparent string) string {
	if goodID(given) {
		return given
	}
	if id := trace.SpanContextFromContext(ctx).TraceID(); id.IsValid() {
		return id.String()
	}
	// version-trace-parent-flags, of W3C Trace Context
	if parts := strings.SplitN(traceparent, "-", 5); len(parts) >= 4 {
		if id, err := trace.TraceIDFromHex(parts[1]); err == nil {
			return id.String()
		}
	}
	var b [16]byte
	binary.NativeEndian.PutUint64(b[:], rand.Uint64())
	binary.NativeEndian.PutUint64(b[8:], rand.Uint64())
	return hex.EncodeToString(b[:])
}

// goodID reports whether an id is short and of characters that no log and no header escapes.
func goodID(id string) bool {
	const most = 128
	other := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.:/+@~", r))
	}
	return id != "" && len(id) <= most && !strings.ContainsFunc(id, other)
}

// withID is a handler of a log that adds the ids of requests.
type withID struct{ slog.Handler }

// Handle implements slog.Handler.
func (h withID) Handle(ctx context.Context, r slog.Record) error {
	if a := identityOf(ctx); a != nil {
		r = r.Clone()
		r.AddAttrs(slog.String("request_id", a.id))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h withID) WithAttrs(attrs []slog.Attr) slog.Handler { return withID{h.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (h withID) WithGroup(name string) slog.Handler { return withID{h.Handler.WithGroup(name)} }

// identified gives each request an id, which its answer has as a header.
func identified(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, a := identify(r.Context(), r.Header.Get(headerID), r.Header.Get("traceparent"))
		w.Header().Set(headerID, a.id)
		inner := r.WithContext(ctx)
		h.ServeHTTP(w, inner)
		r.Pattern = inner.Pattern // traces are called by it
	})
}

// answeredWith keeps what was answered.
type answeredWith struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (a *answeredWith) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (a *answeredWith) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// logHTTP logs a request that has been answered.
func (s *Server) logHTTP(r *http.Request, status int, began time.Time) {
	s.log.DebugContext(r.Context(), "request", "method", r.Method, "path", brief(r.URL.Path), "model",
		brief(r.PathValue("model")), "from", r.RemoteAddr, "status", status, "took", time.Since(began))
}

// call gives a call of gRPC an id, which its answer has as a header. end logs it.
func (s *Server) call(ctx context.Context) (_ context.Context, end func(error)) {
	began := time.Now()
	first := func(key string) string {
		if values := metadata.ValueFromIncomingContext(ctx, key); len(values) > 0 {
			return values[0]
		}
		return ""
	}
	ctx, a := identify(ctx, first(headerID), first("traceparent"))
	_ = grpc.SetHeader(ctx, metadata.Pairs(headerID, a.id)) // it fails where the client is gone
	return ctx, func(err error) { s.logCall(ctx, a.model, began, err) }
}

// named is a stream with the identity of its call.
type named struct {
	grpc.ServerStream
	ctx context.Context
}

func (n named) Context() context.Context { return n.ctx }

// logCall logs a call of gRPC about a model, or a message on a stream.
func (s *Server) logCall(ctx context.Context, model string, began time.Time, err error) {
	code := codes.OK
	if err != nil {
		s.missing(ctx, model, err)
		code = classified(err).GRPCStatus().Code()
	}
	if s.log.Enabled(ctx, slog.LevelDebug) {
		method, _ := grpc.Method(ctx)
		s.log.DebugContext(ctx, "request", "method", method, "model", brief(model), "code", code, "took", time.Since(began))
	}
}
