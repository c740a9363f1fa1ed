//go:build !wasm

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/text"
	"github.com/bitcnn/bitcnn/serve"
)

// server is a run of serve.
type server struct {
	env               *environment
	opts              serve.Options
	http, grpc, pprof string // addresses; empty: none
	certificate, key  string
	tokens            string
	drain             time.Duration
	bodyMiB           int
	verbose, logJSON  bool
	level             string
}

func newServe(env *environment) *cobra.Command {
	s := &server{env: env, bodyMiB: 32, drain: 10 * time.Second}
	o := &s.opts
	o.Session.MaxBatch, o.MaxRequests, o.MaxConnections, o.Timeout = 16, 256, 1024, 30*time.Second
	cmd := &cobra.Command{
		Use:   "serve [[NAME=]MODEL...]",
		Short: "Serve models over HTTP and gRPC, with a web page",
		Long: `Serve models with the Open Inference Protocol, version 2, for clients of Triton and
KServe: over HTTP below /v2, and over gRPC. / is a web page, /metrics is for
Prometheus, and POST /v2/models/NAME/classify takes a photo.

A model takes the name of its file, without the extension, or that of NAME=MODEL,
where MODEL may also be a folder with one model in it. By default, digits and
vehiclenet are served. Changed files are reloaded after one second without further
changes; if that fails, the previous model keeps serving.

The server listens on this machine only, unless --http and --grpc say otherwise;
then consider --tls-cert and --token-file. OTEL_EXPORTER_OTLP_ENDPOINT names a
collector for traces. SIGTERM and SIGINT let requests in progress finish. See
docs/serving.md for the rest.`,
		Example: `  bcnn serve
  bcnn serve cars=/mnt/models
  bcnn serve model.onnx --http 0.0.0.0:8000 --grpc 0.0.0.0:8001 --token-file tokens.txt
  curl --data-binary @photo.jpg localhost:8000/v2/models/vehiclenet/classify`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.verbose && cmd.Flags().Changed("log-level") {
				return usagef("--verbose is --log-level debug: give one of them")
			}
			return s.run(cmd.Context(), args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.http, "http", "127.0.0.1:8000", `address of HTTP; "" for none`)
	f.StringVar(&s.grpc, "grpc", "127.0.0.1:8001", `address of gRPC; "" for none`)
	f.StringVar(&s.pprof, "pprof", "", "address of Go's profiles, for developers (default none)")
	f.StringVar(&o.Folder, "models", "", "folder to watch for models (*.bcnn, *.onnx, *.tflite, *.xml with *.bin, *.cfg with *.weights, or Triton's NAME/VERSION/model.*)")
	f.BoolVar(&o.Fixed, "fixed", false, "do not let clients load or unload models")
	backgroundFlag(cmd, &o.Background)
	deviceFlag(cmd, &o.Session.Device)
	threadsFlag(cmd, &o.Session.Threads, "CPU threads of each model")
	intVar(cmd, &o.Session.Parallel, "parallel", 0, maxThreads,
		"concurrent runs per model; 0 means as many as threads, 1 on GPUs")
	intVar(cmd, &o.Session.MaxBatch, "batch", 1, maxBatch,
		"maximum number of images per request and per device run")
	durationFlag(cmd, &o.Session.BatchDelay, "batch-delay", 0, time.Minute,
		"how long to wait for further requests to batch together, such as 200us; for GPUs")
	intVar(cmd, &s.bodyMiB, "max-body", 1, 2047, "maximum size of a request, in MiB")
	sizeFlag(cmd, &o.Memory, "memory", 16<<20, 1<<40,
		"maximum memory of all requests, such as 512MiB, three quarters of it for one address; beyond it they get 429 (default a quarter of what the process may use, up to 2GiB)")
	intVar(cmd, &o.MaxRequests, "max-requests", 1, 1<<20, "maximum number of requests in progress and waiting, three quarters of them from one address; beyond it they get 429")
	intVar(cmd, &o.MaxConnections, "max-connections", 1, 1<<20,
		"maximum number of connections; beyond it the longest-idle one is closed")
	durationFlag(cmd, &o.Timeout, "timeout", time.Millisecond, 24*time.Hour,
		"maximum time of a request, and of reading it")
	durationFlag(cmd, &s.drain, "drain", time.Millisecond, 24*time.Hour, "how long to wait for requests in progress at the end")
	f.StringVar(&s.certificate, "tls-cert", "", "certificate file (PEM), with --tls-key")
	f.StringVar(&s.key, "tls-key", "", "private key file (PEM)")
	f.StringVar(&s.tokens, "token-file", "", "file with bearer tokens, one per line; requests must carry one of them")
	f.BoolVar(&s.logJSON, "log-json", false, "log as JSON")
	f.StringVar(&s.level, "log-level", "info", "lowest level that is logged: debug (every request), info, warn or error")
	f.BoolVarP(&s.verbose, "verbose", "v", false, "same as --log-level debug")
	return cmd
}

// maxTokenFile bounds files of tokens, certificates and keys.
const maxTokenFile = 1 << 20

func (s *server) run(ctx context.Context, models []string) error {
	if err := s.check(); err != nil {
		return err
	}
	log := s.logger()
	s.opts.Load, s.opts.Logger, s.opts.MaxBody = loadModel, log, int64(s.bodyMiB)<<20
	if s.tokens != "" {
		var err error
		if s.opts.Tokens, err = readTokens(s.tokens); err != nil {
			return err
		}
	}
	l := serve.Listeners{Drain: s.drain}
	if s.certificate != "" {
		var err error
		if l.TLS, err = loadTLS(s.certificate, s.key); err != nil {
			return err
		}
	}
	traces, flush, err := exportTraces(ctx, s.drain, log)
	if err != nil {
		return err
	}
	defer flush()
	s.opts.Traces = traces
	server, err := serve.New(s.opts)
	if err != nil {
		return err
	}
	givenUp := false
	defer func() {
		// It waits for requests in progress. Whoever has not ended by now ends with the process.
		if !givenUp {
			server.Close()
		}
	}()
	if err := s.load(ctx, server, models); err != nil {
		return err
	}
	stop, err := s.listen(ctx, log, &l)
	if err != nil {
		return err
	}
	defer stop()
	extendGrace(s.drain)
	bounded, unbound := context.WithCancel(ctx)
	defer unbound()
	go boundHeap(bounded, server.Memory)
	err = server.Serve(ctx, l)
	givenUp = errors.Is(err, context.DeadlineExceeded)
	return err
}

// readTokens reads the tokens of a file, one a line. One with a space in it would be several by
// the rules of Authorization, and is most likely a comment.
func readTokens(file string) ([]string, error) {
	content, err := files.ReadText(file, maxTokenFile)
	if err != nil {
		return nil, err
	}
	var tokens []string
	line := 0
	for l := range strings.Lines(content) {
		line++
		token := strings.TrimSpace(l)
		switch {
		case token == "":
		case strings.ContainsFunc(token, unicode.IsSpace):
			return nil, files.Name(file, fmt.Errorf("line %d contains a space: want one token per line", line))
		default:
			tokens = append(tokens, token)
		}
	}
	if len(tokens) == 0 {
		return nil, files.Name(file, errors.New("it contains no token"))
	}
	return tokens, nil
}

func (s *server) check() error {
	switch {
	case s.http == "" && s.grpc == "":
		return usagef("serve needs --http or --grpc")
	case (s.certificate == "") != (s.key == ""):
		return usagef("--tls-cert and --tls-key go together")
	case s.opts.Session.BatchDelay > 0 && s.opts.Session.MaxBatch < 2:
		return usagef("--batch-delay makes batches, but --batch allows one image only")
	}
	if _, ok := levels[s.level]; !ok {
		return usagef("--log-level is %s, want debug, info, warn or error", text.Quote(s.level))
	}
	return nil
}

// levels are those of --log-level.
var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

func (s *server) logger() *slog.Logger {
	o := &slog.HandlerOptions{Level: levels[s.level]}
	if s.verbose {
		o.Level = slog.LevelDebug
	}
	if s.logJSON {
		return slog.New(slog.NewJSONHandler(s.env.stderr, o))
	}
	return slog.New(slog.NewTextHandler(s.env.stderr, o))
}

// load loads what the command line names. What is wrong there ends the command; a folder may
// have files that are no models, and they have been logged.
func (s *server) load(ctx context.Context, server *serve.Server, models []string) error {
	if len(models) == 0 && s.opts.Folder == "" {
		models = []string{"digits", "vehiclenet"}
	}
	for _, argument := range models {
		name, source, err := nameOf(argument)
		if err != nil {
			return err
		}
		if err := server.Add(ctx, name, source); err != nil {
			return err
		}
	}
	if s.opts.Folder == "" {
		return nil
	}
	if err := server.AddFolder(ctx); err != nil && !server.Ready() {
		return fmt.Errorf("none of the models in %s can be loaded: %w", text.Escape(s.opts.Folder), err)
	}
	return ctx.Err()
}

// nameOf returns what a model of the command line is called, and what it is loaded from: MODEL or
// NAME=MODEL. What has a separator of paths before the = is a path.
func nameOf(argument string) (name, source string, err error) {
	name, source, named := strings.Cut(argument, "=")
	if !named || strings.ContainsAny(name, `/\`) {
		base := filepath.Base(argument)
		return strings.TrimSuffix(base, filepath.Ext(base)), argument, nil
	}
	if name == "" || source == "" {
		return "", "", usagef("%s: want NAME=MODEL", text.Escape(argument))
	}
	// Models that are inside win over folders, as they do over files.
	if info, err := os.Stat(source); err != nil || !info.IsDir() || slices.Contains(builtIn(), source) {
		return name, source, nil
	}
	source, err = serve.FindModel(source)
	return name, source, err
}

// listen opens the addresses, and serves profiles until stop.
func (s *server) listen(ctx context.Context, log *slog.Logger, l *serve.Listeners) (stop func(), err error) {
	var open []net.Listener
	stop = func() {
		for _, o := range open {
			o.Close()
		}
	}
	var config net.ListenConfig
	listen := func(what, address string) net.Listener {
		if address == "" || err != nil {
			return nil
		}
		o, failed := config.Listen(ctx, "tcp", address)
		if failed != nil {
			err = fmt.Errorf("--%s %s: %w", what, text.Escape(address), failed)
			return nil
		}
		open = append(open, o)
		log.Info("listening", "protocol", what, "address", o.Addr().String(), "tls", l.TLS != nil && what != "pprof")
		// Profiles need no token, whoever asks.
		if host, _, _ := net.SplitHostPort(o.Addr().String()); !net.ParseIP(host).IsLoopback() && (len(s.opts.Tokens) == 0 || what == "pprof") {
			log.Warn("other machines can send requests without a token", "protocol", what)
		}
		return o
	}
	l.HTTP, l.GRPC = listen("http", s.http), listen("grpc", s.grpc)
	profiles := listen("pprof", s.pprof)
	if err != nil {
		stop()
		return nil, err
	}
	if profiles != nil {
		go serveProfiles(profiles, log)
	}
	return stop, nil
}

func serveProfiles(l net.Listener, log *slog.Logger) {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	err := (&http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}).Serve(l)
	log.Debug("profiles", "end", err)
}

func loadTLS(certificate, key string) (*tls.Config, error) {
	c, err := files.ReadAll(certificate, maxTokenFile)
	if err != nil {
		return nil, err
	}
	k, err := files.ReadAll(key, maxTokenFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(c, k)
	if err != nil {
		return nil, files.Name(certificate, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}
