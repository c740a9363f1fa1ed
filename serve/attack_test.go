package serve

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/bitcnn/bitcnn/serve/internal/pb"
)

// serving starts Serve, and returns the addresses and what ends it.
func serving(t *testing.T, s *Server, l Listeners) (url, wire string, end func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	if l.HTTP == nil {
		l.HTTP, l.GRPC = listen(t), listen(t)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	var result *error
	end = func() error {
		if result == nil {
			cancel()
			err := <-ended
			result = &err
		}
		return *result
	}
	t.Cleanup(func() { _ = end() })
	return "http://" + l.HTTP.Addr().String(), l.GRPC.Addr().String(), end
}

// fine requires that others are answered.
func fine(t *testing.T, url string) {
	t.Helper()
	post(t, url+"/v2/models/digits/infer", []byte(imageJSON)).decode(t, &object{})
}

// raw sends bytes on a connection of its own.
func raw(t *testing.T, url, text string) net.Conn {
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	_, err = io.WriteString(c, text)
	require.NoError(t, err)
	return c
}

// closed waits until the server closes a connection.
func closed(t *testing.T, c net.Conn) {
	require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err := io.Copy(io.Discard, c)
	if ne, ok := err.(net.Error); ok {
		require.False(t, ne.Timeout(), "still open")
	}
}

// Headers and bodies that come slowly take nobody's place, and end with their time.
func TestSlowLoris(t *testing.T) {
	s := newServer(t, Options{MaxRequests: 2, Timeout: 300 * time.Millisecond}, "digits")
	url, _, _ := serving(t, s, Listeners{})
	var slow []net.Conn
	for i := range 20 {
		text := "POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\n"
		if i%2 == 0 {
			text += "Content-Length: 30000000\r\n\r\n{"
		}
		slow = append(slow, raw(t, url, text))
	}
	fine(t, url)
	require.Less(t, s.memory.taken(), int64(20*firstBuffer+1), "no memory for what is only claimed")
	for _, c := range slow {
		closed(t, c)
	}
	fine(t, url)
	require.Zero(t, s.memory.taken())
	require.Zero(t, s.requests.taken())
}

func TestOversized(t *testing.T) {
	s := newServer(t, Options{MaxBody: 100_000}, "digits")
	url, wire, _ := serving(t, s, Listeners{})
	path := url + "/v2/models/digits/infer"
	big := bytes.Repeat([]byte(" "), 100_001)
	post(t, path, big).fails(t, http.StatusRequestEntityTooLarge, "too large: 100001 bytes, at most 100000 are read")
	// Without a length.
	r, err := http.Post(path, "application/json", struct{ io.Reader }{bytes.NewReader(big)})
	require.NoError(t, err)
	r.Body.Close()
	require.Equal(t, http.StatusRequestEntityTooLarge, r.StatusCode)
	// A megabyte of zeros, of which a thousand bytes are sent.
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, err = z.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	post(t, path, bomb.Bytes(), "Content-Encoding", "gzip").fails(t, http.StatusRequestEntityTooLarge,
		"more than 100000 bytes")
	post(t, path, []byte("this is no gzip"), "Content-Encoding", "gzip").fails(t, 400, "gzip: invalid header")
	post(t, path, []byte("this is no zlib"), "Content-Encoding", "deflate").fails(t, 400, "zlib: invalid header")
	post(t, path, []byte("x"), "Content-Encoding", "br").fails(t, 400, `the encoding "br", want gzip or deflate`)
	r, err = http.Get(url + "/v2?" + strings.Repeat("x", 2*headBytes))
	require.NoError(t, err)
	r.Body.Close()
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, r.StatusCode)

	client := pb.NewGRPCInferenceServiceClient(connect(t, wire))
	_, err = client.ModelInfer(t.Context(), &pb.ModelInferRequest{ModelName: "digits", RawInputContents: [][]byte{big}})
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	fine(t, url)
	require.Zero(t, s.memory.taken())
}

// Bodies that end too early, and requests that are no HTTP, harm nobody.
func TestTruncated(t *testing.T) {
	s := newServer(t, Options{}, "digits")
	url, wire, _ := serving(t, s, Listeners{})
	for _, text := range []string{
		"POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n" + imageJSON[:100],
		"POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"inp",
		"POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n" + headerLength + ": 9999999999999999999\r\n\r\n{}",
		"\x16\x03\x01\x00\xa5\x01\x00\x00", "GET / HTTP/9.9\r\n\r\n", "\x00\x00\x00",
	} {
		for _, to := range []string{url, wire} {
			c := raw(t, to, text)
			c.(*net.TCPConn).CloseWrite() // an error where the server has ended the connection first
			closed(t, c)
		}
	}
	fine(t, url)
	require.Zero(t, s.memory.taken())
	require.Zero(t, s.requests.taken())
}

// Many connections that do nothing make room for those that ask.
func TestIdleConnections(t *testing.T) {
	const most, idle = 50, 400
	s := newServer(t, Options{}, "digits")
	bounded := []*listener{newListener(listen(t), most, s.metrics), newListener(listen(t), most, s.metrics)}
	url, wire, _ := serving(t, s, Listeners{HTTP: bounded[0], GRPC: bounded[1]})
	for i := range idle {
		raw(t, url, "")
		raw(t, wire, "")
		if i%100 == 0 {
			fine(t, url)
		}
	}
	fine(t, url)
	client := pb.NewGRPCInferenceServiceClient(connect(t, wire))
	_, err := client.ServerLive(t.Context(), &pb.ServerLiveRequest{}, grpc.WaitForReady(true))
	require.NoError(t, err)
	for _, l := range bounded {
		l.mu.Lock()
		require.LessOrEqual(t, len(l.conns), most)
		l.mu.Unlock()
	}
	require.NotContains(t, string(get(t, url+"/metrics").body), `bcnn_rejected_total{reason="connections"} 0`)

	// Connections that have said something are not idle for a second.
	for range most {
		raw(t, url, "GET /v2 HTTP/1.1\r\n")
	}
	spoke := func() (n int) {
		bounded[0].mu.Lock()
		defer bounded[0].mu.Unlock()
		for c := range bounded[0].conns {
			if c.spoke.Load() {
				n++
			}
		}
		return n
	}
	require.Eventually(t, func() bool { return spoke() == most }, time.Minute, time.Millisecond)
	closed(t, raw(t, url, ""))
	bounded[0].mu.Lock()
	for c := range bounded[0].conns {
		c.used.Store(time.Now().Add(-time.Minute).UnixNano())
	}
	bounded[0].mu.Unlock()
	fine(t, url)
}

// A client that goes away while its request waits leaves nothing behind.
func TestVanishingClient(t *testing.T) {
	s := gated(t, Options{})
	url, wire, _ := serving(t, s, Listeners{})
	c := raw(t, url, fmt.Sprintf("POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s",
		len(imageJSON), imageJSON))
	<-theGate.begun
	require.NoError(t, c.Close())
	ctx, cancel := context.WithCancel(t.Context())
	client := pb.NewGRPCInferenceServiceClient(connect(t, wire))
	gone := make(chan error)
	go func() {
		_, err := client.ModelInfer(ctx, &pb.ModelInferRequest{
			ModelName: "digits", RawInputContents: [][]byte{make([]byte, 784)},
			Inputs: []*pb.ModelInferRequest_InferInputTensor{{Name: "input", Datatype: "UINT8", Shape: []int64{1, 28, 28, 1}}},
		})
		gone <- err
	}()
	<-theGate.begun // the device was free again
	cancel()
	require.Equal(t, codes.Canceled, status.Code(<-gone))
	require.Eventually(t, func() bool { return s.requests.taken() == 0 }, time.Minute, time.Millisecond)
	theGate.set(false, nil)
	fine(t, url)
}

// A model that is unloaded, or loaded anew, while it runs: who asked before gets an answer.
func TestUnloadWhileRunning(t *testing.T) {
	for _, what := range []string{"unload", "load"} {
		s := gated(t, Options{})
		url := overWeb(t, s)
		running := question(t, url)
		<-theGate.begun
		if what == "load" {
			theGate.set(false, nil) // for the first run of the new session
		}
		post(t, url+"/v2/repository/models/digits/"+what, []byte{}).decode(t, &object{})
		if what == "unload" {
			post(t, url+"/v2/models/digits/infer", []byte(imageJSON)).fails(t, 503, "it was unloaded")
		} else {
			fine(t, url)
		}
		require.Empty(t, running)
		theGate.open <- struct{}{}
		(<-running).decode(t, &object{})
	}
}

// As many requests as may be are in progress: one more is turned away at once.
func TestBusy(t *testing.T) {
	s := gated(t, Options{MaxRequests: 3})
	url, wire, _ := serving(t, s, Listeners{})
	var running []chan reply
	for range 3 {
		running = append(running, question(t, url))
	}
	<-theGate.begun
	require.Eventually(t, func() bool { return s.requests.taken() == 3 }, time.Minute, time.Millisecond)
	r := post(t, url+"/v2/models/digits/infer", []byte(imageJSON))
	r.fails(t, http.StatusTooManyRequests, "3 requests are in progress or waiting")
	require.Equal(t, "1", r.header.Get("Retry-After"))
	_, err := pb.NewGRPCInferenceServiceClient(connect(t, wire)).ModelInfer(t.Context(),
		&pb.ModelInferRequest{ModelName: "digits"})
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Equal(t, http.StatusOK, get(t, url+"/v2/health/ready").status, "it is busy, not ill")
	for i, answer := range running {
		if i > 0 {
			<-theGate.begun
		}
		theGate.open <- struct{}{}
		_ = answer
	}
	for _, answer := range running {
		(<-answer).decode(t, &object{})
	}
}

// Bodies together take no more memory than they may.
func TestBuffered(t *testing.T) {
	s := newServer(t, Options{Memory: 1 << 20}, "digits")
	url := overWeb(t, s)
	require.NoError(t, s.memory.take("somebody", 3<<18))
	require.NoError(t, s.memory.take("another", 1<<18))
	post(t, url+"/v2/models/digits/infer", []byte(imageJSON)).fails(t, http.StatusTooManyRequests,
		"1048576 bytes of memory are taken by requests; 32768 more would exceed the limit of 1048576")
	require.Equal(t, 200, get(t, url+"/v2/health/ready").status, "it is busy, not ill")
	require.Equal(t, 200, get(t, url+"/metrics").status)
	s.memory.give("somebody", 3<<18)
	s.memory.give("another", 1<<18)
	fine(t, url)
	require.Zero(t, s.memory.taken())
}

func TestTimeout(t *testing.T) {
	s := gated(t, Options{Timeout: 50 * time.Millisecond})
	url := overWeb(t, s)
	(<-question(t, url)).fails(t, http.StatusGatewayTimeout, "the request timed out")
	<-theGate.begun
	theGate.set(false, nil)
	fine(t, url)
}

// A fault in a run is an error of its request alone.
func TestPanic(t *testing.T) {
	s := gated(t, Options{})
	url, client := overWeb(t, s), overWire(t, s)
	theGate.set(false, "broken")
	post(t, url+"/v2/models/digits/infer", []byte(imageJSON)).fails(t, http.StatusInternalServerError,
		"internal error: broken")
	_, err := client.ModelInfer(t.Context(), &pb.ModelInferRequest{
		ModelName: "digits", RawInputContents: [][]byte{make([]byte, 784)},
		Inputs: []*pb.ModelInferRequest_InferInputTensor{{Name: "input", Datatype: "UINT8", Shape: []int64{1, 28, 28, 1}}},
	})
	require.Equal(t, codes.Internal, status.Code(err))
	theGate.set(false, nil)
	fine(t, url)
	require.Zero(t, s.requests.taken())
}

func TestTokens(t *testing.T) {
	s := newServer(t, Options{Tokens: []string{"first", "second"}}, "digits")
	url, wire, _ := serving(t, s, Listeners{})
	client := pb.NewGRPCInferenceServiceClient(connect(t, wire))
	for _, path := range []string{"/v2", "/v2/models/digits", "/v2/models/digits/ready", "/metrics", "/page/models"} {
		get(t, url+path).fails(t, http.StatusUnauthorized, "no bearer token")
		ask(t, "GET", url+path, nil, "Authorization", "Bearer wrong").fails(t, http.StatusUnauthorized, "invalid bearer token")
		ask(t, "GET", url+path, nil, "Authorization", "Basic second").fails(t, http.StatusUnauthorized, "no bearer token")
		require.Equal(t, 200, ask(t, "GET", url+path, nil, "Authorization", "bearer second").status)
	}
	for _, path := range []string{"/v2/models/digits/infer", "/v2/models/digits/classify",
		"/v2/repository/models/digits/unload"} {
		post(t, url+path, []byte(imageJSON)).fails(t, http.StatusUnauthorized, "no bearer token")
	}
	for _, path := range []string{"/v2/health/live", "/v2/health/ready", "/", "/page.js"} {
		require.Equal(t, 200, get(t, url+path).status, "%s is open", path)
	}
	_, err := client.ServerReady(t.Context(), &pb.ServerReadyRequest{})
	require.NoError(t, err)
	_, err = client.ServerMetadata(t.Context(), &pb.ServerMetadataRequest{})
	require.Equal(t, codes.Unauthenticated, status.Code(err))
	stream, err := client.ModelStreamInfer(t.Context())
	require.NoError(t, err)
	_, err = stream.Recv()
	require.Equal(t, codes.Unauthenticated, status.Code(err))
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer first")
	_, err = client.ServerMetadata(ctx, &pb.ServerMetadataRequest{})
	require.NoError(t, err)
}

func TestTLS(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	s := newServer(t, Options{}, "digits")
	url, wire, _ := serving(t, s, Listeners{TLS: web.TLS})
	r, err := web.Client().Get("https://" + strings.TrimPrefix(url, "http://") + "/v2/health/ready")
	require.NoError(t, err)
	r.Body.Close()
	require.Equal(t, 200, r.StatusCode)
	roots := web.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	conn, err := grpc.NewClient(wire, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots})))
	require.NoError(t, err)
	defer conn.Close()
	live, err := pb.NewGRPCInferenceServiceClient(conn).ServerLive(t.Context(), &pb.ServerLiveRequest{})
	require.NoError(t, err)
	require.True(t, live.Live)
	c := raw(t, url, "GET /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n")
	line, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "400 Bad Request")
}

// After all that, no goroutine is left.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 3 {
		s := newServer(t, Options{}, "digits")
		url, _, end := serving(t, s, Listeners{})
		fine(t, url)
		http.DefaultClient.CloseIdleConnections()
		require.NoError(t, end())
		require.NoError(t, s.Close())
	}
	for range 6000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	stacks := make([]byte, 1<<20)
	t.Fatalf("goroutines are left:\n%s", stacks[:runtime.Stack(stacks, true)])
}
