package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
)

// Listeners are what Serve listens on. HTTP or GRPC may be nil.
type Listeners struct {
	HTTP, GRPC net.Listener
	// TLS, if it is not nil, is for both.
	TLS *tls.Config
	// Drain is how long Serve waits for requests in progress when its context ends; 0 means 10
	// seconds.
	Drain time.Duration
}

const (
	headTime  = 10 * time.Second // for the header of a request, or the handshake of gRPC
	idleTime  = 2 * time.Minute  // that a connection may be silent between requests
	lookEvery = time.Second
)

// Serve answers requests until the context ends, and looks for files of models that have
// changed. At the end it is no longer Ready, takes no more connections, and waits until the
// requests in progress have been answered; then it returns nil, or an error if they took too
// long. The listeners are closed. The models stay: see Close.
func (s *Server) Serve(ctx context.Context, l Listeners) error {
	if l.HTTP == nil && l.GRPC == nil {
		return errors.New("no address to listen on")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.draining.Store(false)
	failed := make(chan error, 2)
	var ends []func(context.Context) error
	if l.HTTP != nil {
		ends = append(ends, s.startHTTP(l, failed))
	}
	if l.GRPC != nil {
		ends = append(ends, s.startGRPC(l, failed))
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(ctx)
	}()
	s.logStart(l)
	var first error
	select {
	case <-ctx.Done():
	case first = <-failed:
	}
	began := time.Now()
	s.draining.Store(true)
	s.logDraining(ctx, l, first)
	cancel()
	ends = append(ends, func(ctx context.Context) error { // it may be loading
		select {
		case <-watched:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	drain, stop := context.WithTimeout(context.WithoutCancel(ctx), l.drain())
	defer stop()
	ended := make(chan error, len(ends))
	for _, end := range ends {
		go func() { ended <- end(drain) }()
	}
	for range ends {
		first = cmp.Or(first, <-ended)
	}
	s.logStopped(began, first)
	return first
}

// watch looks at the files of models.
func (s *Server) watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.lookOnce(ctx)
		}
	}
}

// lookOnce looks at the files. A panic is a fault of the server, which it survives.
func (s *Server) lookOnce(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("panic", "at", "looking for changed models", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	// Errors have been logged, and are in the index.
	_ = s.Reload(ctx)
}

// startHTTP returns what ends the server.
func (s *Server) startHTTP(l Listeners, failed chan<- error) func(context.Context) error {
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: min(headTime, s.opts.Timeout),
		ReadTimeout:       s.opts.Timeout,
		WriteTimeout:      2*s.opts.Timeout + headTime, // it begins with the header
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // of clients
	}
	countHeads(server)
	conns := newListener(l.HTTP, s.opts.MaxConnections, s.metrics)
	conns.heads = s.heads
	var listener net.Listener = conns
	if l.TLS != nil {
		config := l.TLS.Clone()
		config.NextProtos = []string{"http/1.1"}
		listener = tls.NewListener(conns, config)
	}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
	return func(ctx context.Context) error {
		conns.closeSilent()
		err := server.Shutdown(ctx)
		if err != nil {
			server.Close()
		}
		return err
	}
}

// startGRPC returns what ends the server.
func (s *Server) startGRPC(l Listeners, failed chan<- error) func(context.Context) error {
	options := append(s.GRPCOptions(),
		grpc.ConnectionTimeout(headTime),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTime, Time: idleTime, Timeout: headTime}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.MaxHeaderListSize(headBytes),
	)
	if l.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(l.TLS)))
	}
	server := grpc.NewServer(options...)
	s.RegisterGRPC(server)
	alive := health.NewServer()
	grpc_health_v1.RegisterHealthServer(counted{server, s}, alive)
	conns := newListener(l.GRPC, s.opts.MaxConnections, s.metrics)
	go func() {
		if err := server.Serve(conns); err != nil {
			failed <- err
		}
	}()
	return func(ctx context.Context) error {
		alive.Shutdown()
		conns.closeSilent()
		done := make(chan struct{})
		go func() {
			defer close(done)
			server.GracefulStop()
		}()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			conns.closeAll()
			go server.Stop() // it waits for handshakes, and may wait for calls
			return ctx.Err()
		}
	}
}
