//go:build windows

package files

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/windows"
)

// What the system says of a file that is taken for a folder. A name that is too long is invalid
// on Windows, and not found under Wine.
var notFolder, tooLongName error = windows.ERROR_PATH_NOT_FOUND, nil

func saying(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// TestReplaceWhileItIsRead: who has the old file open reads on in it.
func TestReplaceWhileItIsRead(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "a"), "content")
	f, err := Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, Replace(path, saying("another")))
	old, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "content", string(old))
	now, err := ReadAll(path, 100)
	require.NoError(t, err)
	require.Equal(t, "another", string(now))
}

// openAlone opens a file as programs do that let nobody replace it meanwhile.
func openAlone(t *testing.T, path string) windows.Handle {
	name, err := windows.UTF16PtrFromString(path)
	require.NoError(t, err)
	h, err := windows.CreateFile(name, windows.GENERIC_READ, windows.FILE_SHARE_READ, nil, windows.OPEN_EXISTING, 0, 0)
	require.NoError(t, err)
	return h
}

// TestSharingViolation: a file that somebody holds is waited for, and in the end is as it was.
func TestSharingViolation(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "a"), "content")
	h := openAlone(t, path)
	time.AfterFunc(patience/10, func() { windows.CloseHandle(h) })
	require.NoError(t, Replace(path, saying("another")))

	h = openAlone(t, path)
	err := Replace(path, saying("a third"))
	require.NoError(t, windows.CloseHandle(h))
	require.ErrorContains(t, err, path+": ")
	require.Equal(t, []string{"a"}, list(t, filepath.Dir(path)))
	now, err := ReadAll(path, 100)
	require.NoError(t, err)
	require.Equal(t, "another", string(now))
}

// TestNames: devices are no files, whatever their folder, and names may be long, and of any
// letters.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	for _, device := range []string{"NUL", `\\.\NUL`, "CON"} {
		_, err := Open(device)
		require.Error(t, err, device)
		require.Error(t, Replace(device, saying("")), device)
	}
	deep := dir
	for range 8 {
		deep = filepath.Join(deep, strings.Repeat("n", 40))
	}
	for _, path := range []string{filepath.Join(dir, "ü 日本 ñ.bcnn"), filepath.Join(deep, "long"), filepath.Join(dir, "a b'c&d")} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, Replace(path, saying("content")), path)
		data, err := ReadAll(path, 100)
		require.NoError(t, err, path)
		require.Equal(t, "content", string(data))
	}
}

// TestReadOnly: the one mode that there is stays.
func TestReadOnly(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "a"), "content")
	f, err := create(filepath.Dir(path), 0o600)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, os.Chmod(path, 0o444))
	old, err := os.Lstat(path)
	require.NoError(t, err)
	require.NoError(t, adopt(f, old))
	info, err := os.Lstat(f.Name())
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o444), info.Mode().Perm())
	require.NoError(t, os.Chmod(path, 0o644))
	require.NoError(t, os.Chmod(f.Name(), 0o644))
}

// TestAbandoned: what nobody has locked any more goes, and nothing else.
func TestAbandoned(t *testing.T) {
	dir := t.TempDir()
	gone, err := create(dir, 0o600)
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	mine, err := create(dir, 0o600)
	require.NoError(t, err)
	defer mine.Close()
	again, err := openFile(mine.Name(), os.O_RDONLY, 0)
	require.NoError(t, err)
	require.Equal(t, errLocked, lock(again))
	require.NoError(t, again.Close())
	sweep(dir)
	require.Equal(t, []string{filepath.Base(mine.Name())}, list(t, dir))
}
