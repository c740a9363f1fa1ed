package serve

import (
	"io/fs"
	"net/http"
	"strings"

	"github.com/bitcnn/bitcnn/internal/samples"
	"github.com/bitcnn/bitcnn/serve/internal/picture"
	"github.com/bitcnn/bitcnn/serve/page"
)

// pageFiles are what the page consists of, by the folder that they are in.
var pageFiles = map[string]fs.ReadDirFS{"/": page.Files, "/samples/": samples.Digits}

// pagePatterns are the files of the page, and / for the first of them.
func pagePatterns() []string {
	patterns := []string{"GET /{$}"}
	for folder, files := range pageFiles {
		list, err := files.ReadDir(".")
		if err != nil {
			panic(err) // they are a part of the program
		}
		for _, file := range list {
			patterns = append(patterns, "GET "+folder+file.Name())
		}
	}
	return patterns
}

// pageHandler serves the page. Nothing of it comes from elsewhere, and nothing else may be
// loaded by it.
func pageHandler() http.Handler {
	mux := http.NewServeMux()
	for folder, files := range pageFiles {
		mux.Handle(folder, http.StripPrefix(strings.TrimSuffix(folder, "/"), http.FileServerFS(files)))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; img-src 'self' blob: data:; frame-ancestors 'none'")
		h.Set("Cache-Control", "no-cache")
		mux.ServeHTTP(w, r)
	})
}

// getPageModels lists the models that are loaded, for the page.
func (s *Server) getPageModels(w http.ResponseWriter, _ *http.Request) error {
	list := []picture.Model{}
	for _, e := range s.repository.list() {
		m, err := s.repository.acquire(e.name, "")
		if err != nil {
			continue // it is not loaded
		}
		list = append(list, m.describe())
		m.release()
	}
	return writeJSON(w, http.StatusOK, list)
}
