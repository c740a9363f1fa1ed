package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// The pages and charts are those of the figures.
func TestWritten(t *testing.T) {
	root := testenv.Root(t)
	read := func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(root, name)) }
	files, err := generate(engines, read)
	require.NoError(t, err)
	require.Contains(t, files, page)
	require.Contains(t, files, "docs/images/engines.svg")
	for name, want := range files {
		got, err := read(name)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "%s: run go run ./bench/figures", name)
	}
}

func TestRefused(t *testing.T) {
	whole := func(string) ([]byte, error) { return []byte(first + last), nil }
	gone := errors.New("gone")
	for name, test := range map[string]struct {
		data string
		read func(string) ([]byte, error)
		want string
	}{
		"unknown field": {`{"row": []}`, whole, "unknown field"},
		"no page":       {`{}`, func(string) ([]byte, error) { return nil, gone }, "gone"},
		"no place":      {`{}`, func(string) ([]byte, error) { return []byte(first), nil }, "no table between"},
		"no row":        {`{"charts": [{"machine": "m", "networks": ["n"]}]}`, whole, "no row has n on m"},
		"no number": {`{"engines": ["e"], "rows": [{"network": "n", "machine": "m", "ms": {"e": "1–2"}}],
			"charts": [{"machine": "m", "networks": ["n"]}]}`, whole, "is no number"},
	} {
		_, err := generate([]byte(test.data), test.read)
		require.ErrorContains(t, err, test.want, name)
	}
	table := (&figures{Engines: []string{"e", "f"}, Rows: []row{{"n", "m", map[string]string{"e": "1 ¹"}}}, Notes: []string{"¹ N."}}).table()
	require.Equal(t, "| n | m | 1 ¹ | – |", strings.Split(table, "\n")[2])
}
