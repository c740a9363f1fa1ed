package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

func write(t *testing.T, path, content string) string {
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

// once requires that an error names the file, and names it once. Where the error is one of the
// system, which has other words on each, the cause is that one; nil is any.
func once(t *testing.T, err error, path string, want any) {
	t.Helper()
	require.Error(t, err)
	switch want := want.(type) {
	case error:
		require.ErrorIs(t, err, want)
		text, named := strings.CutPrefix(err.Error(), path+": ")
		require.True(t, named, err)
		require.True(t, path == "" || !strings.Contains(text, path), err)
	case nil: // any
		require.ErrorContains(t, err, path+": ")
	default:
		require.EqualError(t, err, fmt.Sprintf("%s: %s", path, want))
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "a"), "content")
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	for name, open := range map[string]func(t *testing.T) (*File, error){
		"file": func(*testing.T) (*File, error) { return Open(path) },
		"link": func(t *testing.T) (*File, error) {
			link := filepath.Join(dir, "link")
			testenv.Symlink(t, path, link)
			return Open(link)
		},
		"folder": func(*testing.T) (*File, error) { return OpenIn(root, "a") },
	} {
		t.Run(name, func(t *testing.T) {
			f, err := open(t)
			require.NoError(t, err)
			require.Equal(t, int64(7), f.Size())
			part := make([]byte, 3)
			_, err = f.ReadAt(part, 4)
			require.NoError(t, err)
			require.Equal(t, "ent", string(part))
			all, err := io.ReadAll(f)
			require.NoError(t, err)
			require.Equal(t, "content", string(all))
			info, err := fs.File(f).Stat()
			require.NoError(t, err)
			require.Equal(t, int64(7), info.Size())
			require.NoError(t, f.Close())
			_, err = f.Stat()
			require.Error(t, err)
			require.NotContains(t, err.Error(), path)
			_, err = f.Read(part)
			require.Equal(t, fs.ErrClosed, err)
			_, err = f.ReadAt(part, 0)
			require.Equal(t, fs.ErrClosed, err)
		})
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	absent := filepath.Join(dir, "absent")
	_, err := Open(absent)
	once(t, err, absent, fs.ErrNotExist)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Open(dir)
	once(t, err, dir, "is a directory")
	_, err = Open("")
	once(t, err, "", fs.ErrNotExist)

	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	_, err = OpenIn(root, "absent")
	once(t, err, "absent", fs.ErrNotExist)
	_, err = OpenIn(root, ".")
	once(t, err, ".", "is a directory")
	_, err = OpenIn(root, "../x")
	require.ErrorContains(t, err, "../x: ")
}

func TestReadAll(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "a"), "content")
	for _, limit := range []int64{7, 8, 1 << 40} {
		data, err := ReadAll(path, limit)
		require.NoError(t, err)
		require.Equal(t, "content", string(data))
	}
	_, err := ReadAll(path, 6)
	once(t, err, path, "7 bytes, at most 6 are read")
	_, err = ReadAll(path+"x", 6)
	once(t, err, path+"x", fs.ErrNotExist)
	empty := write(t, path, "")
	data, err := ReadAll(empty, 0)
	require.NoError(t, err)
	require.Empty(t, data)
}

// A file may be longer than it said: it has grown, or is one of /proc.
func TestReadAllOfAFileThatGrew(t *testing.T) {
	f, err := Open(write(t, filepath.Join(t.TempDir(), "a"), "content"))
	require.NoError(t, err)
	defer f.Close()
	f.size = 0
	_, err = readAll(f, f.size, 6)
	require.EqualError(t, err, "more than 6 bytes")
}

func TestName(t *testing.T) {
	require.NoError(t, Name("a", nil))
	cause := errors.New("broken")
	for _, err := range []error{
		Name("a", cause),
		Name("a", Name("a", cause)),
		Name("a", &fs.PathError{Op: "read", Path: "a", Err: cause}),
		Name("a", &os.LinkError{Op: "rename", Old: "b", New: "a", Err: cause}),
		Name("a", os.NewSyscallError("flock", cause)),
	} {
		require.EqualError(t, err, "a: broken")
		require.ErrorIs(t, err, cause)
	}
	require.EqualError(t, Name("a", Name("b", cause)), "a: b: broken")
	require.EqualError(t, Name("a", fmt.Errorf("x: %w", Name("a", cause))), "x: a: broken")
	require.EqualError(t, Name("a\n\x1b[2J\xff", cause), `a\n\x1b[2J\xff: broken`)
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", strings.Repeat("n", 244) + ".bcnn", strings.Repeat("n", 255)} {
		path := filepath.Join(dir, name)
		for _, content := range []string{"first", "", "the second"} {
			require.NoError(t, Replace(path, func(w io.Writer) error {
				_, err := io.WriteString(w, content)
				return err
			}))
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, content, string(got))
		}
	}
	require.Len(t, list(t, dir), 3)
}

func list(t *testing.T, dir string) []string {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// After an error everything is as it was, and the error speaks of the target.
func TestReplaceErrors(t *testing.T) {
	dir := t.TempDir()
	full := errors.New("no space left on device")
	write(t, filepath.Join(dir, "old"), "content")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	tooLong := strings.Repeat("n", 256)
	for _, c := range []struct {
		name  string
		want  any
		write func(w io.Writer) error
	}{
		{"old", "no space left on device", func(io.Writer) error { return full }},
		{"new", "no space left on device", func(io.Writer) error { return full }},
		{"new", "half: no space left on device", func(w io.Writer) error {
			_, err := w.Write(make([]byte, 1000))
			require.NoError(t, err)
			return fmt.Errorf("half: %w", full)
		}},
		{"folder", "is a directory", nil},
		{"absent/new", fs.ErrNotExist, nil},
		{"old/new", notFolder, nil},
		{tooLong, tooLongName, func(io.Writer) error { return nil }},
	} {
		path := filepath.Join(dir, c.name)
		once(t, Replace(path, c.write), path, c.want)
		if c.write == nil { // the place is at fault
			once(t, Replaceable(path), path, c.want)
		} else if c.name != tooLong {
			require.NoError(t, Replaceable(path))
		}
		require.Equal(t, []string{"folder", "old"}, list(t, dir))
	}
	content, err := os.ReadFile(filepath.Join(dir, "old"))
	require.NoError(t, err)
	require.Equal(t, "content", string(content))
}

// What writing itself reports does not name the temporary file.
func TestWriterOfReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	var late io.Writer
	require.NoError(t, Replace(path, func(w io.Writer) error { late = w; return nil }))
	_, err := late.Write([]byte("x"))
	require.Equal(t, fs.ErrClosed, err)
}

func TestReplaceManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	done := make(chan error)
	const writers, rounds = 8, 20
	for i := range writers {
		content := bytes.Repeat([]byte{byte('a' + i)}, 10_000)
		go func() {
			var err error
			for range rounds {
				err = errors.Join(err, Replace(filepath.Join(dir, "shared"), func(w io.Writer) error {
					_, err := w.Write(content)
					return err
				}))
			}
			done <- err
		}()
	}
	for range writers {
		require.NoError(t, <-done)
	}
	require.Equal(t, []string{"shared"}, list(t, dir))
	got, err := ReadAll(filepath.Join(dir, "shared"), 10_000)
	require.NoError(t, err)
	require.Equal(t, bytes.Repeat(got[:1], 10_000), got)
}

func TestReadText(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ data, want, err string }{
		"UTF-8":                      {"ü\n", "ü\n", ""},
		"UTF-8 with a mark":          {"\ufeffü\r\n", "ü\r\n", ""},
		"UTF-16, little-endian":      {"\xff\xfe\xfc\x00\r\x00\n\x00", "ü\r\n", ""},
		"UTF-16, big-endian":         {"\xfe\xff\x00\xfc\x00\n", "ü\n", ""},
		"Windows-1252":               {"\xfc\n", "", "invalid UTF-8"},
		"nothing":                    {"", "", ""},
		"more than there may be":     {strings.Repeat("a", 101), "", "101 bytes, at most 100 are read"},
		"a letter that is cut short": {"a\xc3", "", "invalid UTF-8"},
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		require.NoError(t, os.WriteFile(path, []byte(c.data), 0o644))
		text, err := ReadText(path, 100)
		if c.err != "" {
			require.ErrorContains(t, err, path+": ", name)
			require.ErrorContains(t, err, c.err, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.want, text, name)
	}
}
