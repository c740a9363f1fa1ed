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
	files, err := pages(read)
	require.NoError(t, err)
	for _, name := range []string{
		"performance.md", "photos.md", "when-one-bit-pays.md", "images/engines.svg", "images/photos.svg", "images/one-bit.svg",
	} {
		require.Contains(t, files, "docs/"+name)
	}
	for name, want := range files {
		got, err := read(name)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "%s: run go run ./bench/figures", name)
		require.NotContains(t, string(got), `fill=""`, "%s: a kind without a colour", name)
	}
}

func TestRefused(t *testing.T) {
	const first = "<!-- bench/figures/engines.json, by go run ./bench/figures -->\n"
	whole := func(string) ([]byte, error) { return []byte(first + "<!-- end -->\n"), nil }
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
		_, err := speed([]byte(test.data), test.read)
		require.ErrorContains(t, err, test.want, name)
	}
	_, err := accuracy([]byte(`{"sets": [{"photos": 1}]}`), whole)
	require.ErrorContains(t, err, `photos.json: json: unknown field "photos"`)
	_, err = accuracy([]byte(`{}`), whole)
	require.ErrorContains(t, err, "docs/photos.md has no table")
	_, err = oneBit([]byte(`{"rows": [{"bit": 1}]}`), whole)
	require.ErrorContains(t, err, `one_bit.json: json: unknown field "bit"`)
	_, err = oneBit([]byte(`{}`), whole)
	require.ErrorContains(t, err, "docs/when-one-bit-pays.md has no table")
	table := (&figures{Engines: []string{"e", "f"}, Rows: []row{{"n", "m", map[string]string{"e": "1 ¹"}}}, Notes: []string{"¹ N."}}).table()
	require.Equal(t, "| n | m | 1 ¹ | – |", strings.Split(table, "\n")[2])
}
