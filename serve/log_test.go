package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/serve/internal/pb"
)

// interrupted is a cause as the command has it.
type interrupted struct{ os.Signal }

func (interrupted) Error() string { return "interrupted" }

// The log says what was begun with which limits, why it ends, and how it has ended.
func TestLogOfStartAndEnd(t *testing.T) {
	for why, cause := range map[string]error{
		`"stopped by the program"`: nil, `"interrupted: interrupt"`: interrupted{os.Interrupt}, `"lost the lease"`: errors.New("lost the lease"),
	} {
		s, log := logging(t, Options{Memory: 1 << 20, MaxRequests: 7})
		require.NoError(t, s.Add(t.Context(), "digits", "digits"))
		require.Equal(t, 1, log.count(`msg="model loaded" model=digits version=1 source=digits device=cpu max_batch=16`))
		ctx, cancel := context.WithCancelCause(t.Context())
		l := listen(t)
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx, Listeners{HTTP: l}) }()
		require.Equal(t, 200, get(t, "http://"+l.Addr().String()+"/v2/health/live").status)
		cancel(cause)
		require.NoError(t, <-ended)
		require.Equal(t, 1, log.count("level=INFO msg=serving version="))
		require.Equal(t, 1, log.count(fmt.Sprintf("http=%s grpc=none tls=false tokens=0 models=1 memory_bytes=1048576 ", l.Addr())))
		require.Equal(t, 1, log.count("max_body_bytes=33554432 max_requests=7 max_connections=1024 max_batch=16 timeout=30s drain=10s"))
		require.Equal(t, 1, log.count("level=INFO msg=draining why="+why+" requests=0 at_most=10s"), why)
		require.Equal(t, 1, log.count(`level=INFO msg=stopped took=`))
		require.Equal(t, 1, log.count(`why="all requests have been answered"`))
	}
}

// A listener that fails is an error, and so are requests that take too long at the end.
func TestLogOfBadEnds(t *testing.T) {
	s, log := logging(t, Options{})
	l := listen(t)
	require.NoError(t, l.Close())
	require.ErrorIs(t, s.Serve(t.Context(), Listeners{HTTP: l}), net.ErrClosed)
	require.Equal(t, 1, log.count(`level=ERROR msg=draining why="a listener failed: `))
	require.Equal(t, 1, log.count("level=ERROR msg=stopped "))

	s, log = logging(t, Options{})
	l = listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, Listeners{HTTP: l, Drain: time.Millisecond}) }()
	require.Equal(t, 200, get(t, "http://"+l.Addr().String()+"/v2/health/live").status)
	require.NoError(t, s.requests.take("x", 1))
	c := raw(t, "http://"+l.Addr().String(), "POST /v2/models/none/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
	defer c.Close()
	require.Eventually(t, func() bool { n, _ := s.Memory(); return n > 0 }, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.DeadlineExceeded)
	require.Equal(t, 1, log.count("msg=draining why=\"stopped by the program\" requests=1 at_most=1ms"))
	require.Equal(t, 1, log.count("level=ERROR msg=stopped "))
	require.Equal(t, 1, log.count("requests_given_up=1"))
}

// Who asks for models that are not there fills no log.
func TestLogOfMissingModels(t *testing.T) {
	s, log := logging(t, Options{})
	url, client := overWeb(t, s), overWire(t, s)
	require.NoError(t, s.Add(t.Context(), "digits", "digits"))
	post(t, url+"/v2/repository/models/digits/unload", []byte{}).decode(t, &object{})
	for range 3 {
		get(t, url+"/v2/models/none").fails(t, 404, "no model")
		post(t, url+"/v2/models/none/infer", []byte(imageJSON)).fails(t, 404, "no model")
		post(t, url+"/v2/models/digits/infer", []byte(imageJSON)).fails(t, 503, "unloaded")
		require.Equal(t, 503, get(t, url+"/v2/models/digits/ready").status)
		_, err := client.ModelInfer(t.Context(), &pb.ModelInferRequest{ModelName: "none"})
		require.Error(t, err)
		_, err = client.ModelMetadata(t.Context(), &pb.ModelMetadataRequest{Name: "other"})
		require.Error(t, err)
		stream, err := client.ModelStreamInfer(t.Context())
		require.NoError(t, err)
		require.NoError(t, stream.Send(&pb.ModelInferRequest{ModelName: "streamed"}))
		answer, err := stream.Recv()
		require.NoError(t, err)
		require.NotEmpty(t, answer.ErrorMessage)
		require.NoError(t, stream.CloseSend())
		get(t, url+"/none").fails(t, 404, "nothing at")
	}
	const line = `level=WARN msg="a client requested an unknown model" model=`
	for _, name := range []string{"none", "digits", "other", "streamed"} {
		require.Equal(t, 1, log.count(line+name+" "), name)
	}
	require.Equal(t, 4, log.count("level=WARN"))
	for i := range 2 * seldomNames {
		get(t, fmt.Sprintf("%s/v2/models/m%d", url, i)).fails(t, 404, "no model")
	}
	require.Equal(t, seldomNames, log.count(line))
}

func TestSeldom(t *testing.T) {
	var s seldom
	now := time.Unix(1000, 0)
	for i := range seldomNames {
		require.True(t, s.first(fmt.Sprint(i), now))
	}
	require.False(t, s.first("0", now.Add(seldomEvery-1)))
	require.False(t, s.first("more", now.Add(seldomEvery-1)), "as many as there may be")
	require.True(t, s.first("0", now.Add(seldomEvery)))
	require.True(t, s.first("more", now.Add(seldomEvery)), "the others are forgotten")
	require.Len(t, s.seen, 2)
	require.False(t, s.first("more", now.Add(seldomEvery)))
}
