package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/vision"
)

const (
	digits = "../../models/digits.bcnn"
	seven  = "../../internal/samples/digit-7.png"
)

// started serves digits until stop, which returns what serve does.
func started(t *testing.T) (s *service, url string, stop func() error) {
	s, err := newService(t.Context(), digits, "cpu")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.session.Close()) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx, l) }()
	return s, "http://" + l.Addr().String(), func() error {
		cancel()
		return <-ended
	}
}

func ask(t *testing.T, method, url string, body io.Reader) (status int, answer string) {
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(b)
}

func TestServer(t *testing.T) {
	s, url, stop := started(t)
	photo, err := os.ReadFile(seven)
	require.NoError(t, err)
	status, answer := ask(t, "POST", url, bytes.NewReader(photo))
	require.Equal(t, 200, status, answer)
	var top []vision.Class
	require.NoError(t, json.Unmarshal([]byte(answer), &top))
	require.Len(t, top, mostLikely)
	require.Equal(t, "7", top[0].Label)
	require.Greater(t, top[0].Probability, top[1].Probability)

	for _, c := range []struct {
		method, path string
		body         io.Reader
		status       int
		says         string
	}{
		{"POST", "/", bytes.NewReader(photo[:len(photo)/2]), 400, "broken image"},
		{"POST", "/", bytes.NewReader([]byte("no image")), 400, "error"},
		{"POST", "/", bytes.NewReader(make([]byte, maxPhoto+1)), 413, "too large"},
		{"POST", "/", struct{ io.Reader }{bytes.NewReader(make([]byte, maxPhoto+1))}, 413, "too large"}, // of no known length
		{"GET", "/", nil, 405, ""},
		{"GET", "/healthy", nil, 200, "yes"},
		{"POST", "/elsewhere", nil, 404, ""},
	} {
		status, answer := ask(t, c.method, url+c.path, c.body)
		require.Equal(t, c.status, status, answer)
		require.Contains(t, answer, c.says)
	}

	for range maxPhotos {
		s.places <- struct{}{}
	}
	status, answer = ask(t, "POST", url, bytes.NewReader(photo))
	require.Equal(t, 429, status, answer)
	for range maxPhotos {
		<-s.places
	}

	_, text := ask(t, "GET", url+"/metrics", nil)
	for _, line := range []string{
		`photos_total{status="200"} 1`, `photos_total{status="400"} 2`, `photos_total{status="413"} 2`, `photos_total{status="429"} 1`,
		`photo_waiting_seconds_count 1`, `photo_running_seconds_count 1`,
	} {
		require.Contains(t, text, line+"\n")
	}
	require.NoError(t, stop())
}

// A request that is in progress at the end is answered, and no further one is taken.
func TestEnd(t *testing.T) {
	s, url, stop := started(t)
	photo, err := os.ReadFile(seven)
	require.NoError(t, err)
	body, rest := io.Pipe()
	type outcome struct {
		status int
		answer string
	}
	answered := make(chan outcome, 1)
	go func() {
		status, answer := ask(t, "POST", url, body)
		answered <- outcome{status, answer}
	}()
	_, err = rest.Write(photo[:100])
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(s.places) == 1 }, time.Minute, time.Millisecond)

	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", url[len("http://"):])
		if err == nil {
			c.Close()
		}
		return err != nil
	}, time.Minute, time.Millisecond)
	_, err = rest.Write(photo[100:])
	require.NoError(t, err)
	require.NoError(t, rest.Close())
	o := <-answered
	require.Equal(t, 200, o.status, o.answer)
	require.Contains(t, o.answer, `"label":"7"`)
	require.NoError(t, <-ended)
}

func TestWrongModel(t *testing.T) {
	require.ErrorContains(t, start(t.Context(), "127.0.0.1:0", "main.go", "cpu"), "main.go: ")
	require.ErrorContains(t, start(t.Context(), "127.0.0.1:nowhere", digits, "cpu"), "nowhere")
}
