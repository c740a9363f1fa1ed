package files

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestOpenFS(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "content")
	for name, fsys := range map[string]fs.FS{"folder": os.DirFS(dir), "memory": fstest.MapFS{"a": {Data: []byte("content")}}} {
		t.Run(name, func(t *testing.T) {
			f, size, err := OpenFS(fsys, "a")
			require.NoError(t, err)
			require.Equal(t, int64(7), size)
			all, err := io.ReadAll(f)
			require.NoError(t, err)
			require.Equal(t, "content", string(all))
			require.NoError(t, f.Close())
			all, err = ReadAllFS(fsys, "a", 7)
			require.NoError(t, err)
			require.Equal(t, "content", string(all))
			_, err = ReadAllFS(fsys, "a", 6)
			once(t, err, "a", "7 bytes, at most 6 are read")
			_, err = ReadAllFS(fsys, "absent", 6)
			require.ErrorIs(t, err, fs.ErrNotExist)

			_, _, err = OpenFS(fsys, "absent")
			require.ErrorIs(t, err, fs.ErrNotExist)
			require.ErrorContains(t, err, "absent: ")
			_, _, err = OpenFS(fsys, ".")
			once(t, err, ".", "is a directory")
			_, _, err = OpenFS(fsys, "/a")
			require.ErrorContains(t, err, "/a: ")
		})
	}
	_, _, err := OpenFS(nil, "a")
	require.EqualError(t, err, "a: there is no file system")
}
