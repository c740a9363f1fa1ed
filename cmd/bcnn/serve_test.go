//go:build !wasm

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// messages is where a command logs while a test reads.
type messages struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (m *messages) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text.Write(b)
}

func (m *messages) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text.String()
}

// serveCommand runs serve until stop, which returns the exit code.
func serveCommand(t *testing.T, args ...string) (log *messages, address func(protocol string) string, stop func() int) {
	ctx, cancel := context.WithCancel(t.Context())
	log = &messages{}
	code := make(chan int, 1)
	go func() { code <- run(ctx, append([]string{"serve"}, args...), log, log) }()
	address = func(protocol string) string {
		said := regexp.MustCompile(`(?:msg=listening protocol=` + protocol + ` address=|"msg":"listening","protocol":"` + protocol + `","address":")([^\s"]+)`)
		require.Eventually(t, func() bool { return said.MatchString(log.String()) }, time.Minute, time.Millisecond, "%s", log)
		return said.FindStringSubmatch(log.String())[1]
	}
	return log, address, func() int {
		cancel()
		return <-code
	}
}

func TestServe(t *testing.T) {
	model := saveLightNet(t)
	folder := t.TempDir()
	data, err := os.ReadFile(model)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "other.bcnn"), data, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "bad.bcnn"), []byte("rubbish"), 0o644))
	tokens := writeFile(t, filepath.Join(t.TempDir(), "tokens"), "\ufeffsecret\r\n") // as an editor of Windows writes it
	log, address, stop := serveCommand(t, model, "digits", "--models", folder, "--device", "cpu",
		"--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--pprof", "127.0.0.1:0", "--token-file", tokens, "--verbose")
	ask := func(method, url, token string, body []byte) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer response.Body.Close()
		var b bytes.Buffer
		_, err = b.ReadFrom(response.Body)
		require.NoError(t, err)
		return response.StatusCode, b.String()
	}
	url := "http://" + address("http")
	image, err := os.ReadFile(writePNG(t, filepath.Join(t.TempDir(), "light.png"), lightImage(16)))
	require.NoError(t, err)
	for _, name := range []string{"light", "other"} {
		status, body := ask("POST", url+"/v2/models/"+name+"/classify", "secret", image)
		require.Equal(t, 200, status, body)
		var answer struct{ Label string }
		require.NoError(t, json.Unmarshal([]byte(body), &answer))
		require.Equal(t, "light", answer.Label)
	}
	status, _ := ask("POST", url+"/v2/models/light/classify", "wrong", image)
	require.Equal(t, 401, status)
	status, body := ask("GET", "http://"+address("pprof")+"/debug/pprof/", "", nil)
	require.Equal(t, 200, status)
	require.Contains(t, body, "goroutine")
	require.NotEmpty(t, address("grpc"))
	require.Contains(t, log.String(), "bad.bcnn")
	require.Contains(t, log.String(), "level=DEBUG msg=request method=POST path=/v2/models/light/classify")
	require.Equal(t, exitOK, stop(), "%s", log)
}

func TestServeUsage(t *testing.T) {
	model := saveLightNet(t)
	empty := writeFile(t, filepath.Join(t.TempDir(), "tokens"), " \n")
	spaced := writeFile(t, filepath.Join(t.TempDir(), "tokens"), "alpha\n\nbeta gamma\n")
	key := writeFile(t, filepath.Join(t.TempDir(), "key.pem"), "no key")
	folder := filepath.Dir(writeFile(t, filepath.Join(t.TempDir(), "bad.bcnn"), "rubbish"))
	for words, args := range map[string][]string{
		"needs --http or --grpc":        {"--http", "", "--grpc", ""},
		"go together":                   {"--tls-cert", "x"},
		"allows one image only":         {"--batch", "1", "--batch-delay", "1ms"},
		"want a whole number from 1 to": {"--max-requests", "0"},
		"unknown flag: --htpp":          {"--htpp", "x"},
		"want debug, info, warn or":     {"--log-level", "INFO"},
		"give one of them":              {"--log-level", "info", "-v"},
	} {
		require.Contains(t, fail(t, exitUsage, append([]string{"serve", model}, args...)...), words)
	}
	for words, args := range map[string][]string{
		"it contains no token":                   {"--token-file", empty},
		"line 3 contains a space":                {"--token-file", spaced},
		`the name "\xff" is not UTF-8`:           {"\xff=digits"},
		"tokens.none: " + syscall.ENOENT.Error(): {"--token-file", "tokens.none"},
		"failed to find any PEM data":            {"--tls-cert", key, "--tls-key", key},
		"--http 127.0.0.1:http:":                 {"--http", "127.0.0.1:http:"},
		"none of the models in " + folder:        {"--models", folder},
		"no such file or built-in model":         {"nosuch"},
	} {
		models := []string{model}
		if args[0] == "--models" || len(args) == 1 {
			models = nil
		}
		r := runCommand(t, append(append([]string{"serve", "--grpc", ""}, models...), args...)...)
		require.Equal(t, exitJob, r.code, "%s", r.stderr)
		lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
		require.Contains(t, lines[len(lines)-1], words)
	}
}

// The log says what is served, and how it ended; --log-level says how much else.
func TestServeLogLevel(t *testing.T) {
	const request = "level=DEBUG msg=request"
	for _, c := range []struct {
		args []string
		has  bool
	}{
		{nil, false}, {[]string{"--log-level", "info"}, false}, {[]string{"-v"}, true}, {[]string{"--log-level", "debug"}, true},
	} {
		log, address, stop := serveCommand(t, append([]string{saveLightNet(t), "--device", "cpu", "--http", "127.0.0.1:0",
			"--grpc", ""}, c.args...)...)
		r, err := http.Get("http://" + address("http") + "/v2/models/none")
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.Equal(t, exitOK, stop(), "%s", log)
		for _, words := range []string{
			`msg="model loaded" model=light`, "max_batch=16", "msg=serving version=", "msg=draining", "msg=stopped", "level=WARN",
		} {
			require.Contains(t, log.String(), words, c.args)
		}
		require.Equal(t, c.has, strings.Contains(log.String(), request), c.args)
	}
	for name, level := range levels {
		log := (&server{env: &environment{stderr: io.Discard}, level: name}).logger()
		require.True(t, log.Enabled(t.Context(), level), name)
		require.False(t, log.Enabled(t.Context(), level-1), name)
	}
}

// Profiles need no token, so that whoever offers them to others is warned.
func TestServeProfilesWarn(t *testing.T) {
	tokens := writeFile(t, filepath.Join(t.TempDir(), "tokens"), "secret\n")
	log, address, stop := serveCommand(t, saveLightNet(t), "--device", "cpu", "--http", "127.0.0.1:0", "--grpc", "",
		"--pprof", "0.0.0.0:0", "--token-file", tokens)
	address("pprof")
	require.Equal(t, exitOK, stop(), "%s", log)
	require.Contains(t, log.String(), `msg="other machines can send requests without a token" protocol=pprof`)
	require.NotContains(t, log.String(), "protocol=http\n")
}

// A model is called as NAME=MODEL says, where MODEL may be a folder with one file of any name.
func TestServeNames(t *testing.T) {
	model := saveLightNet(t)
	folder := t.TempDir()
	data, err := os.ReadFile(model)
	require.NoError(t, err)
	file := filepath.Join(folder, "as it was called=.bcnn")
	require.NoError(t, os.WriteFile(file, data, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "readme.txt"), data, 0o644))
	log, address, stop := serveCommand(t, "one="+model, "two="+folder, "three=digits", "four="+file, file, "--device", "cpu",
		"--http", "127.0.0.1:0", "--grpc", "")
	for name, outputs := range map[string]string{
		"one": "[-1,2]", "two": "[-1,2]", "three": "[-1,10]", "four": "[-1,2]", "as it was called=": "[-1,2]",
	} {
		r, err := http.Get("http://" + address("http") + "/v2/models/" + url.PathEscape(name))
		require.NoError(t, err)
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.Equal(t, 200, r.StatusCode, "%s", body)
		require.Contains(t, string(body), `"shape":`+outputs, name)
	}
	require.Equal(t, exitOK, stop(), "%s", log)

	require.NoError(t, os.WriteFile(filepath.Join(folder, "other.onnx"), data, 0o644))
	for _, c := range []struct {
		code   int
		models []string
		says   string
	}{
		{exitJob, []string{"x=" + folder}, `2 models found, such as "as it was called=.bcnn" and "other.onnx", want exactly one`},
		{exitJob, []string{"x=" + t.TempDir()}, "no model found, want exactly one file that ends in .bcnn, .onnx, .tflite"},
		{exitJob, []string{"x=nosuch"}, "nosuch: no such file or built-in model"},
		{exitJob, []string{"x=digits", "x=" + model}, `two models are called "x": digits and ` + model},
		{exitUsage, []string{"=digits"}, "=digits: want NAME=MODEL"},
		{exitUsage, []string{"x="}, "x=: want NAME=MODEL"},
	} {
		r := runCommand(t, append([]string{"serve", "--grpc", ""}, c.models...)...)
		require.Equal(t, c.code, r.code, "%s", r.stderr)
		lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
		require.Contains(t, lines[len(lines)-1], c.says)
	}
}
