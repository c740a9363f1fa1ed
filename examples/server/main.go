// Server says what is on a photo, over HTTP, with any model that classifies images:
//
//	go run ./examples/server model.onnx
//	curl --data-binary @photo.jpg localhost:8080
//
// It is a beginning for services of one's own: what it takes is bounded, it counts and measures,
// and at SIGTERM it answers the requests that it has. Where the protocol of Triton and KServe will
// do, bcnn serve is such a server without a line of code.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/vision"
)

const (
	maxPhoto   = 16 << 20         // bytes
	maxPhotos  = 64               // at the same time; further ones are turned away
	maxTime    = 10 * time.Second // for a photo, and for reading it
	drainTime  = 20 * time.Second // for requests in progress at the end
	mostLikely = 3                // classes in an answer
)

func main() {
	address := flag.String("address", "localhost:8080", "address to listen on")
	device := flag.String("device", "", "device, such as cpu or cuda:0; the best one if empty")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx, *address, flag.Arg(0), *device); err != nil {
		slog.Error(err.Error())
		os.Exit(1)
	}
}

func start(ctx context.Context, address, model, device string) error {
	s, err := newService(ctx, model, device)
	if err != nil {
		return err
	}
	defer s.session.Close()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	slog.Info("listening", "address", l.Addr(), "device", s.session.Device().ID)
	return s.serve(ctx, l)
}

type service struct {
	session    *bitcnn.Session
	classifier *vision.Classifier
	metrics    *metrics
	places     chan struct{} // of photos in progress
}

func newService(ctx context.Context, file, device string) (*service, error) {
	model, err := bitcnn.Load(ctx, file, bitcnn.LoadOptions{}) // any format
	if err != nil {
		return nil, err
	}
	s := &service{metrics: newMetrics(), places: make(chan struct{}, maxPhotos)}
	s.session, err = bitcnn.Open(ctx, model, bitcnn.Options{Device: device, Observe: s.metrics.observe})
	if err != nil {
		return nil, err
	}
	if s.classifier, err = vision.NewClassifier(s.session, vision.Options{}); err != nil {
		s.session.Close()
		return nil, err
	}
	return s, nil
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{$}", s.classify)
	mux.HandleFunc("GET /healthy", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "yes\n") })
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
	return mux
}

// serve answers requests until the context ends, and then those that are in progress.
func (s *service) serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: maxTime,
		ReadTimeout:       maxTime,
		WriteTimeout:      3 * maxTime, // from the header on
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	return server.Shutdown(drain)
}

// classify answers a photo. Any number of goroutines may do so.
func (s *service) classify(w http.ResponseWriter, r *http.Request) {
	select {
	case s.places <- struct{}{}: // before the body is read: it bounds the memory, too
		defer func() { <-s.places }()
	default:
		w.Header().Set("Retry-After", "1")
		s.fail(w, http.StatusTooManyRequests, errors.New("too many photos at the same time"))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPhoto))
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		s.fail(w, http.StatusRequestEntityTooLarge, err)
		return
	} else if err != nil {
		s.fail(w, http.StatusBadRequest, err)
		return
	}
	photo, err := s.classifier.Preprocessing().Decode(r.Context(), bytes.NewReader(body)) // JPEG, PNG, GIF, BMP or WebP
	if err != nil {
		s.fail(w, http.StatusBadRequest, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxTime)
	defer cancel()
	result, err := s.classifier.Classify(ctx, photo)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		s.fail(w, http.StatusGatewayTimeout, err)
	case err != nil:
		s.fail(w, http.StatusInternalServerError, err)
	default:
		s.answer(w, http.StatusOK, result.Top(mostLikely)) // labels with their probabilities
	}
}

func (s *service) fail(w http.ResponseWriter, status int, err error) {
	if status >= http.StatusInternalServerError {
		slog.Error("photo not classified", "error", err)
	}
	s.answer(w, status, map[string]string{"error": err.Error()})
}

func (s *service) answer(w http.ResponseWriter, status int, v any) {
	s.metrics.answered(status)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// Whoever does not read the answer does not miss it.
	_ = json.NewEncoder(w).Encode(v)
}
