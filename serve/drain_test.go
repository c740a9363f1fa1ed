package serve

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/serve/internal/pb"
)

// At the end requests in progress are answered, new ones find nobody, and the server says in
// time that it is no longer ready.
func TestDrain(t *testing.T) {
	s := gated(t, Options{})
	url, wire, end := serving(t, s, Listeners{})
	health := grpc_health_v1.NewHealthClient(connect(t, wire))
	ok, err := health.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, ok.Status)
	running := question(t, url)
	<-theGate.begun
	ended := make(chan error)
	go func() { ended <- end() }()
	require.Eventually(t, func() bool { return !s.Ready() }, time.Minute, time.Millisecond)
	select {
	case err := <-ended:
		require.Fail(t, "it has not waited", "%v", err)
	case <-time.After(20 * time.Millisecond):
	}
	theGate.open <- struct{}{}
	(<-running).decode(t, &object{})
	require.NoError(t, <-ended)
	_, err = net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.Error(t, err)

	// What takes too long is given up.
	s = gated(t, Options{})
	url, _, end = serving(t, s, Listeners{Drain: 10 * time.Millisecond})
	running = question(t, url)
	<-theGate.begun
	require.ErrorIs(t, end(), context.DeadlineExceeded)
	require.Equal(t, -1, (<-running).status)
}

// Connections that say nothing are not waited for at the end.
func TestDrainOfSilentConnections(t *testing.T) {
	for _, of := range []string{"http", "grpc"} {
		s := newServer(t, Options{}, "digits")
		// Package net/http would wait for 5 seconds, that of gRPC for headTime.
		url, wire, end := serving(t, s, Listeners{Drain: 4 * time.Second})
		for range 3 {
			raw(t, map[string]string{"http": url, "grpc": "http://" + wire}[of], "")
		}
		fine(t, url)
		_, err := grpc_health_v1.NewHealthClient(connect(t, wire)).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		require.NoError(t, err)
		require.NoError(t, end(), of)
	}
}

// readTwice tells when a connection is read from for the second time.
type readTwice struct {
	net.Listener
	second chan struct{}
}

func (l readTwice) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &readTwiceConn{c, l.second, 0}, err
}

type readTwiceConn struct {
	net.Conn
	second chan struct{}
	reads  int
}

func (c *readTwiceConn) Read(b []byte) (int, error) {
	if c.reads++; c.reads == 2 {
		c.second <- struct{}{}
	}
	return c.Conn.Read(b)
}

// Whatever does not end is not waited for any longer than the drain.
func TestDrainEnds(t *testing.T) {
	dir := t.TempDir()
	saveModel(t, "digits", filepath.Join(dir, "a.bcnn"))
	for _, by := range []string{"http", "grpc", "watch", "handshake"} {
		begun, open := make(chan struct{}, 1), make(chan struct{})
		s, _ := logging(t, Options{Folder: dir, Load: func(ctx context.Context, source string) (*bitcnn.Model, error) {
			begun <- struct{}{}
			<-open // a driver that cannot be called off
			return loadTest(context.WithoutCancel(ctx), source)
		}})
		second := make(chan struct{}, 8)
		url, wire, end := serving(t, s, Listeners{HTTP: listen(t), GRPC: readTwice{listen(t), second}, Drain: 10 * time.Millisecond})
		switch by {
		case "http":
			go func() {
				if r, err := http.Post(url+"/v2/repository/models/a/load", "", nil); err == nil {
					r.Body.Close()
				}
			}()
		case "grpc":
			client := pb.NewGRPCInferenceServiceClient(connect(t, wire))
			go func() {
				_, _ = client.RepositoryModelLoad(context.Background(), &pb.RepositoryModelLoadRequest{ModelName: "a"})
			}()
		case "handshake":
			raw(t, "http://"+wire, "PRI * HTTP")
			<-second
			begun <- struct{}{}
		}
		<-begun // "watch" finds the file by itself
		require.ErrorIs(t, end(), context.DeadlineExceeded, by)
		close(open)
	}
}
