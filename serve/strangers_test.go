package serve

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/bitcnn/bitcnn/serve/internal/pb"
)

// Pages of strangers in a browser on this machine may neither change anything nor read.
func TestStrangePages(t *testing.T) {
	s := newServer(t, Options{}, "digits")
	url := overWeb(t, s)
	unload := url + "/v2/repository/models/digits/unload"
	ask(t, "POST", unload, nil, "Sec-Fetch-Site", "cross-site").fails(t, http.StatusForbidden, "cross-origin")
	ask(t, "POST", unload, nil, "Origin", "http://evil.example").fails(t, http.StatusForbidden, "cross-origin")
	ask(t, "POST", url+"/v2/models/digits/infer", []byte(imageJSON), "Origin", url).decode(t, &object{})
	as := func(s, host string) reply {
		r, err := http.NewRequestWithContext(t.Context(), "GET", s+"/page/models", nil)
		require.NoError(t, err)
		r.Host = host
		r.Header.Set("Authorization", "Bearer secret")
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return reply{response.StatusCode, response.Header, body}
	}
	for _, host := range []string{"localhost", "LOCALHOST:8000", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8000"} {
		require.Equal(t, 200, as(url, host).status, host)
	}
	for _, host := range []string{"evil.example", "evil.example:8000", "localhost.evil.example", "192.0.2.1", "[::2]:80"} {
		as(url, host).fails(t, http.StatusForbidden, "want localhost")
	}
	guarded := overWeb(t, newServer(t, Options{Tokens: []string{"secret"}}, "digits"))
	require.Equal(t, 200, as(guarded, "models.example").status, "a token keeps strangers away")
	for _, path := range []string{"/", "/none", "/v2", "/v2/health/live", "/v2/models/none", "/metrics", "/v2/../x"} {
		require.Equal(t, "nosniff", get(t, url+path).header.Get("X-Content-Type-Options"), path)
	}
}

// A body that comes too slowly gets the status of a time that is over, and no address.
func TestSlowBody(t *testing.T) {
	s := newServer(t, Options{Timeout: 100 * time.Millisecond}, "digits")
	url, _, _ := serving(t, s, Listeners{})
	c := raw(t, url, "POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
	var answer bytes.Buffer
	require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err := answer.ReadFrom(c)
	require.NoError(t, err)
	require.Contains(t, answer.String(), "504 Gateway Timeout")
	require.Contains(t, answer.String(), "timeout while reading the body")
	require.NotContains(t, answer.String(), "127.0.0.1")
}

// What clients ask for in vain is not a fault of the server.
func TestErrorsOfClientsAreNoErrors(t *testing.T) {
	s, log := logging(t, Options{})
	url := overWeb(t, s)
	require.NoError(t, s.Add(t.Context(), "digits", "digits"))
	post(t, url+"/v2/repository/models/digits/unload", []byte{}).decode(t, &object{})
	post(t, url+"/v2/models/digits/infer", []byte(imageJSON)).fails(t, 503, "unloaded")
	_, wire, _ := serving(t, s, Listeners{})
	stream, err := connect(t, wire).NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true},
		pb.GRPCInferenceService_ModelStreamInfer_FullMethodName, grpc.ForceCodecV2(rawCodec{}))
	require.NoError(t, err)
	require.NoError(t, stream.SendMsg([]byte{0xff}))
	require.Equal(t, codes.InvalidArgument, status.Code(stream.RecvMsg(nil)))
	require.Zero(t, log.count("level=ERROR"))
}

// No log has a control character that a client has sent, whatever its form.
func TestControlCharactersAreEscaped(t *testing.T) {
	log := &logged{}
	s := newServer(t, Options{Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	url := overWeb(t, s)
	post(t, url+"/v2/models/a%C2%9B31m%7F%1B%E2%80%AE/infer", []byte{}).fails(t, 404, "there is no model")
	require.Eventually(t, func() bool { return log.count(`"msg":"request"`) == 1 }, time.Minute, time.Millisecond)
	require.Equal(t, 1, log.count(`"model":"a\\u009b31m\\x7f\\x1b\\u202e","error"`))
	require.Equal(t, 1, log.count(`"path":"/v2/models/a\\u009b31m\\x7f\\x1b\\u202e/infer"`))
	for _, c := range "\u009b\x7f\x1b\u202e" {
		require.Zero(t, log.count(string(c)), "%U", c)
	}
}
