// Package serve answers requests for inferences over the network, by the Open Inference
// Protocol, version 2, as clients of Triton and KServe speak it: over HTTP, with JSON and
// binary tensors, and over gRPC. It also takes photos as they are, and has a page for
// browsers and metrics for Prometheus. Everything runs on sessions of package bitcnn.
//
//	s, err := serve.New(serve.Options{})
//	defer s.Close()
//	err = s.Add(ctx, "digits", "digits.bcnn")
//	err = s.Serve(ctx, serve.Listeners{HTTP: listener}) // until ctx ends
//
// A program with an HTTP server of its own takes Handler, one with a gRPC server RegisterGRPC.
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/trace"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/vision"
)

// platform is what models are, in metadata: the project and the format.
const platform = "bitcnn_bcnn"

// Options are the options of New. The zero value is good.
type Options struct {
	// Session has the options of the sessions of all models. MaxBatch is the number of images
	// of a request at the most; 0 means 16 here. Observe is the server's own.
	Session bitcnn.Options
	// Load reads the model of a source that Add was given; nil means bitcnn.Load of a file.
	Load func(ctx context.Context, source string) (*bitcnn.Model, error)
	// Folder, if it is not empty, is a folder of models: files in it that end in .bcnn, .onnx or
	// .tflite, by their names without that, graphs of OpenVINO (.xml with .bin beside it) and
	// descriptions of Darknet (.cfg with .weights), and folders as Triton has them,
	// NAME/VERSION/model.onnx. AddFolder loads them. Beside the files, NAME.pbtxt, or in the folders,
	// config.pbtxt, may have settings of a model, which take the place of those of Session.
	Folder string
	// Background is what lies under transparent pixels of pictures, R, G and B; black if it is
	// not set.
	Background [3]uint8
	// Fixed says that clients may not load and unload models.
	Fixed bool
	// MaxBody is the size in bytes of a request at the most, uncompressed; 0 means 32 MiB.
	MaxBody int64
	// MaxRequests is the number of requests for models that are in progress or wait, at the
	// most; 0 means 256. Further ones are turned away at once. One address gets three quarters.
	MaxRequests int
	// Memory is the memory in bytes that requests take together, at the most: messages as they
	// come, what they become, pictures, and answers. One address gets three quarters of it. 0 means
	// a quarter of the memory that the process may use, up to 2 GiB.
	Memory int64
	// MaxConnections is the number of connections of Serve at the most, of HTTP and of gRPC
	// each; 0 means 1024. For a further one the connection is closed that was silent for the
	// longest time.
	MaxConnections int
	// Timeout bounds the time of a request, that of reading it apart, and that of reading it;
	// 0 means 30 seconds.
	Timeout time.Duration
	// Tokens, if there are any, are bearer tokens of which a request must bring one. The
	// health of the server may be asked for without.
	Tokens []string
	// Logger gets what happens: models that come and go, the beginning and the end of Serve as
	// Info, models that clients ask for in vain as Warn, errors of the server as Error, requests as
	// Debug. What a request is the cause of has its request_id. nil means none.
	Logger *slog.Logger
	// Traces gets a span of OpenTelemetry for each request, and in it one for the inference. nil
	// means none.
	Traces trace.TracerProvider
}

func (o Options) withDefaults() (Options, error) {
	o.Session.MaxBatch = cmp.Or(o.Session.MaxBatch, 16)
	o.MaxBody = cmp.Or(o.MaxBody, 32<<20)
	o.MaxRequests = cmp.Or(o.MaxRequests, 256)
	o.Memory = cmp.Or(o.Memory, defaultMemory())
	o.MaxConnections = cmp.Or(o.MaxConnections, 1024)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	switch {
	case o.MaxBody < 0 || o.MaxBody > maxMessage:
		return o, fmt.Errorf("MaxBody is %d, want 0 to %d bytes", o.MaxBody, maxMessage)
	case o.MaxRequests < 0 || o.Memory < 0 || o.MaxConnections < 0 || o.Timeout < 0:
		return o, errors.New("MaxRequests, Memory, MaxConnections and Timeout must not be negative")
	case o.Session.Observe != nil:
		return o, errors.New("Session.Observe is the server's own")
	}
	for _, t := range o.Tokens {
		if t == "" {
			return o, errors.New("an empty token")
		}
	}
	if o.Load == nil {
		o.Load = func(ctx context.Context, source string) (*bitcnn.Model, error) {
			return bitcnn.Load(ctx, source, bitcnn.LoadOptions{})
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// maxMessage bounds MaxBody: gRPC has the length of a message in 31 bits.
const maxMessage = 1<<31 - 1

// Server has models and answers requests for them. It is safe for any number of goroutines.
type Server struct {
	opts       Options
	log        *slog.Logger
	repository repository
	metrics    *metrics
	memory     *account // bytes
	requests   *account // for models, in progress or waiting
	checks     *account // bytes of calls for the health over gRPC, which need nothing of memory
	watches    *account // bytes of calls that watch it
	heads      *account // bytes of heads of requests of HTTP
	reports    *account // bytes of answers of HTTP about all models
	reporting  *turns   // for making them
	brief      *turns   // for pictures that take little memory
	long       *turns   // for what takes long: large pictures, what is inflated or decoded
	tokens     tokens
	strange    seldom        // names of models that are not there, and have been logged
	draining   atomic.Bool   // no longer ready
	profiling  chan struct{} // has an element while steps are measured
}

// New makes a server without models.
func New(opts Options) (*Server, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{
		opts: opts, log: slog.New(withID{opts.Logger.Handler()}), tokens: newTokens(opts.Tokens), profiling: make(chan struct{}, 1),
		metrics: newMetrics(
			collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), deviceCollector{},
		),
	}
	s.memory = newAccount("bytes of memory are taken by requests", byMemory, opts.Memory, s.metrics)
	s.requests = newAccount("requests are in progress or waiting", byRequests, int64(opts.MaxRequests), s.metrics)
	s.checks = newAccount("bytes of memory are taken by health checks", byHealth, checkBytes, s.metrics)
	s.watches = newAccount("bytes of memory are taken by health watchers", byHealth, checkBytes, s.metrics)
	s.reports = newAccount("bytes of memory are taken by answers about all models", byMemory, reportBytes, s.metrics)
	s.heads = newAccount("bytes of memory are taken by request headers", byHeads, headsBytes, s.metrics)
	s.metrics.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "bcnn_request_memory_bytes", Help: "Memory that requests take.",
	}, func() float64 { return float64(s.memory.taken()) }))
	threads := cmp.Or(opts.Session.Threads, runtime.GOMAXPROCS(0))
	s.brief, s.long, s.reporting = newTurns(threads), newTurns(threads), newTurns(threads)
	s.repository = repository{
		load: opts.Load, session: opts.Session, folder: opts.Folder, log: s.log, metrics: s.metrics,
		photos:  vision.Options{Background: opts.Background, Limits: vision.Limits{Overrun: maxOverrun}},
		entries: map[string]*entry{},
	}
	return s, nil
}

// Memory returns the bytes of memory that requests have now, and Options.Memory.
func (s *Server) Memory() (taken, most int64) {
	return s.memory.taken() + s.heads.taken() + s.reports.taken(), s.memory.most
}

// Close unloads all models, when the requests for them have been answered.
func (s *Server) Close() error {
	s.draining.Store(true)
	return s.repository.close()
}

// Add loads the model of a source by a name, and keeps both: a client may unload it and load
// it again, and where the source is a file, Reload loads it again when that has changed.
func (s *Server) Add(ctx context.Context, name, source string) error {
	return s.repository.add(ctx, name, source)
}

// AddFolder loads the models of Options.Folder that are not there yet. Models that cannot be
// loaded are listed in the index with the reason, and are errors here; others are loaded.
func (s *Server) AddFolder(ctx context.Context) error { return s.repository.addFolder(ctx) }

// load loads a model for a client, who takes turns with others that need the processor for long.
func (s *Server) load(ctx context.Context, client, name string) error {
	if err := s.long.wait(ctx, client); err != nil {
		return err
	}
	defer s.long.done(client)
	return s.repository.loadNamed(ctx, name)
}

// Ready reports whether the server can be asked: false before a model is loaded, and after Serve
// was told to end. A model that cannot be loaded does not keep others from being asked.
func (s *Server) Ready() bool { return !s.draining.Load() && s.repository.ready() }

// Reload looks once at the files of models: those that have changed since they were loaded are
// loaded anew, and new ones of the folder, if they are the same as at the look before, so that
// no file is read while it is written. Requests go to the old model until the new one is there;
// if that cannot be loaded, the old one stays, and the index has the reason. Serve calls this
// once a second.
func (s *Server) Reload(ctx context.Context) error { return s.repository.look(ctx) }
