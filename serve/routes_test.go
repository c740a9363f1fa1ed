package serve

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever is asked for, an error is JSON, and says what the path takes.
func TestLost(t *testing.T) {
	s := newServer(t, Options{}, "digits")
	url := overWeb(t, s)
	for _, c := range []struct {
		method, path string
		status       int
		allow, words string
	}{
		{"GET", "/v2/models/digits/classify", 405, "POST", `the method is \"GET\", want POST`},
		{"GET", "/v2/models/digits/versions/1/infer", 405, "POST", "want POST"},
		{"GET", "/v2/repository/index", 405, "POST", "want POST"},
		{"OPTIONS", "/v2/models/digits/infer", 405, "POST", "want POST"},
		{"BREW", "/v2/models/digits/infer", 405, "POST", "want POST"},
		{"POST", "/v2/models", 405, "GET, HEAD", "want GET, HEAD"},
		{"POST", "/v2/models/digits", 405, "GET, HEAD", "want GET, HEAD"},
		{"DELETE", "/v2/health/ready", 405, "GET, HEAD", "want GET, HEAD"},
		{"POST", "/", 405, "GET, HEAD", "want GET, HEAD"},
		{"PUT", "/page.js", 405, "GET, HEAD", "want GET, HEAD"},
		{"POST", "/metrics", 405, "GET, HEAD", "want GET, HEAD"},
		{"GET", "/healthz", 404, "", `nothing at \"/healthz\"`},
		{"GET", "/page.go", 404, "", "nothing at"},
		{"GET", "/samples/none.png", 404, "", "nothing at"},
		{"GET", "/v2/models/", 404, "", "nothing at"},
		{"POST", "/v2/models/digits/", 404, "", "nothing at"},
		{"GET", "/v2/models/digits/trace/setting", 404, "", "nothing at"},
		{"POST", "/v2/systemsharedmemory/status", 404, "", "nothing at"},
		{"GET", "/v2/../v2", 404, "", "nothing at"},
		{"POST", "//v2//models", 404, "", "nothing at"},
		{"GET", "/%00%ff", 404, "", "nothing at"},
	} {
		r := ask(t, c.method, url+c.path, nil)
		what := c.method + " " + c.path
		require.Equal(t, c.status, r.status, what)
		require.Equal(t, "application/json", r.header.Get("Content-Type"), what)
		require.Equal(t, c.allow, r.header.Get("Allow"), what)
		require.Contains(t, string(r.body), c.words, what)
		r.fails(t, c.status, "")
	}
	require.Equal(t, 404, ask(t, "HEAD", url+"/none", nil).status)
	for _, path := range []string{"/", "/page.css", "/page.js", "/server.js", "/samples/digit-7.png"} {
		require.Equal(t, 200, ask(t, "HEAD", url+path, nil).status, path)
	}
}

// What has no path of its own is answered by the server, too, and not by net/http.
func TestLostWithoutPath(t *testing.T) {
	h := newServer(t, Options{}).Handler()
	for _, path := range []string{"*", ""} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, "http://x/", http.NoBody)
		require.NoError(t, err)
		r.URL.Path, r.RequestURI = path, path
		w := record(h, r)
		require.Equal(t, 404, w.Code)
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	}
}

func TestListOfModels(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "bad.bcnn"), []byte("rubbish"), 0o600))
	s := newServer(t, Options{Folder: folder}, "float", "digits")
	url := overWeb(t, s)
	require.Error(t, s.AddFolder(t.Context()))
	var index []indexed
	post(t, url+"/v2/repository/index", []byte{}).decode(t, &index)
	var answer struct {
		Models []string
		Index  []indexed
	}
	get(t, url+"/v2/models").decode(t, &answer)
	require.Equal(t, []string{"bad", "digits", "float"}, answer.Models)
	require.Equal(t, index, answer.Index)
	require.Equal(t, stateUnavailable, answer.Index[0].State)
	require.True(t, strings.HasSuffix(answer.Index[0].Reason, "file"), answer.Index[0].Reason)
	none := get(t, overWeb(t, newServer(t, Options{}))+"/v2/models")
	require.JSONEq(t, `{"models":[],"index":[]}`, string(none.body))
}
