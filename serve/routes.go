package serve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc/codes"

	"github.com/bitcnn/bitcnn/internal/text"
)

// handler answers a request or returns why not.
type handler func(w http.ResponseWriter, r *http.Request) error

// Handler returns what answers the requests over HTTP: those of the protocol below /v2, images
// at /v2/models/NAME/classify and /v2/models/NAME/detect, metrics at /metrics and the page at /.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	open := func(pattern string, h handler) { mux.Handle(pattern, s.answer(h)) }
	guarded := func(pattern string, h handler) {
		open(pattern, func(w http.ResponseWriter, r *http.Request) error {
			if err := s.tokens.check(r.Header.Get("Authorization")); err != nil {
				w.Header().Set("WWW-Authenticate", "Bearer")
				return err
			}
			return h(w, r)
		})
	}
	// Of a model, with its version or without.
	ofModel := func(method, path string, h handler) {
		guarded(method+" /v2/models/{model}"+path, h)
		guarded(method+" /v2/models/{model}/versions/{version}"+path, h)
	}
	open("GET /v2/health/live", func(w http.ResponseWriter, _ *http.Request) error {
		return writeJSON(w, http.StatusOK, map[string]bool{"live": true})
	})
	open("GET /v2/health/ready", func(w http.ResponseWriter, _ *http.Request) error {
		return writeReady(w, s.Ready(), map[string]any{"ready": s.Ready()})
	})
	guarded("GET /v2", s.getMetadata)
	guarded("GET /v2/{$}", s.getMetadata)
	ofModel("GET", "", s.getModel)
	ofModel("GET", "/ready", s.getModelReady)
	ofModel("GET", "/config", s.getConfig)
	ofModel("GET", "/stats", s.getStatistics)
	guarded("GET /v2/models", s.report(s.getModels))
	guarded("GET /v2/models/stats", s.report(s.getStatistics))
	ofModel("POST", "/infer", s.postInfer)
	ofModel("POST", "/classify", s.postClassify)
	ofModel("POST", "/detect", s.postDetect)
	ofModel("POST", "/profile", s.postProfile)
	guarded("POST /v2/repository/index", s.report(s.postIndex))
	guarded("POST /v2/repository/models/{model}/load", s.postLoad)
	guarded("POST /v2/repository/models/{model}/unload", s.postUnload)
	prometheus := promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{
		// Each writer of gzip takes 800 kB, and a hundred models have half of that as text.
		DisableCompression: true,
	})
	guarded("GET /metrics", s.report(func(w http.ResponseWriter, r *http.Request) error {
		prometheus.ServeHTTP(w, r)
		return nil
	}))
	guarded("GET /page/models", s.report(s.getPageModels))
	page := pageHandler()
	for _, pattern := range pagePatterns() {
		open(pattern, func(w http.ResponseWriter, r *http.Request) error {
			page.ServeHTTP(w, r)
			return nil
		})
	}
	astray := s.answer(func(w http.ResponseWriter, r *http.Request) error { return lost(mux, w, r) })
	mux.Handle("/", astray)
	foreign := http.NewCrossOriginProtection()
	return tracedHTTP(identified(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if err := cmp.Or(s.checkHost(r), foreign.Check(r)); err != nil {
			s.answer(func(http.ResponseWriter, *http.Request) error { return failure{codes.PermissionDenied, err} }).ServeHTTP(w, r)
			return
		}
		// The multiplexer would answer by itself who asks for what is above, or for no path.
		if !clean(r.URL.Path) {
			astray.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})), s.opts.Traces)
}

// clean reports whether a path is one that the multiplexer looks up as it is.
func clean(p string) bool {
	return p == "/" || strings.HasPrefix(p, "/") && path.Clean(p) == strings.TrimSuffix(p, "/")
}

// lost says that there is nothing at a path, or that it wants another method.
func lost(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) error {
	var allowed []string
	if clean(r.URL.Path) {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			other := *r
			other.Method = method
			if _, pattern := mux.Handler(&other); pattern != "" && pattern != "/" {
				allowed = append(allowed, method)
			}
		}
	}
	if len(allowed) == 0 {
		return failf(codes.NotFound, "there is nothing at %s", text.Quote(r.URL.Path))
	}
	methods := strings.Join(allowed, ", ")
	w.Header().Set("Allow", methods)
	return failf(codes.Unimplemented, "the method is %s, want %s at %s", text.Quote(r.Method), methods, text.Quote(r.URL.Path))
}

// checkHost refuses requests by another name than that of this machine, where nothing but the
// address keeps others away: a page that a browser has loaded by the name of a stranger's server
// may read what comes from this one, once that name leads here.
func (s *Server) checkHost(r *http.Request) error {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil || len(s.tokens) > 0 || !loopback(local.String()) || r.Host == "" {
		return nil
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") || loopback(host) {
		return nil
	}
	return fmt.Errorf("the host is %s, want localhost: without tokens, only this machine may send requests", text.Quote(host))
}

// loopback reports whether an address, with a port or without, is one of this machine alone.
func loopback(address string) bool {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	return net.ParseIP(strings.Trim(address, "[]")).IsLoopback()
}

// answer makes a handler of net/http: errors are written as the protocol has them, and a panic
// is an error of the server, which it survives.
func (s *Server) answer(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		logs := s.log.Enabled(r.Context(), slog.LevelDebug) // what is logged takes memory, logged or not
		given := &answeredWith{w, http.StatusOK}
		if logs {
			w = given
		}
		err := func() (err error) {
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("internal error: %v", p)
					s.log.ErrorContext(r.Context(), "panic", "path", brief(r.URL.Path), "panic", p, "stack", string(debug.Stack()))
				}
			}()
			return h(w, r)
		}()
		if err != nil {
			f := classified(err)
			code := f.httpStatus()
			given.status = code
			s.missing(r.Context(), r.PathValue("model"), err)
			if code == http.StatusTooManyRequests {
				w.Header().Set("Retry-After", "1")
			}
			if code == http.StatusRequestEntityTooLarge {
				w.Header().Set("Connection", "close") // the rest of the body is not read
			}
			if f.code == codes.Internal { // others are no fault of the server
				s.log.ErrorContext(r.Context(), "request failed", "path", brief(r.URL.Path), "from", r.RemoteAddr, "error", f)
			}
			if f.code != codes.Canceled { // the client is still there
				_ = writeJSON(w, code, map[string]string{"error": f.Error()})
			}
		}
		if logs {
			s.logHTTP(r, given.status, began)
		}
	})
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeBody(w, status, b)
}

func writeBody(w http.ResponseWriter, status int, body []byte) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, err := w.Write(body)
	return clientGone(err)
}

// clientGone says of an error in writing what it means.
func clientGone(err error) error {
	if err != nil {
		return failure{codes.Canceled, err}
	}
	return nil
}

func writeReady(w http.ResponseWriter, ready bool, v any) error {
	status := http.StatusOK
	if !ready {
		status = http.StatusServiceUnavailable
	}
	return writeJSON(w, status, v)
}
