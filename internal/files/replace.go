package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
)

// temporary is the form of the names of temporary files. They are short
// whatever the target is called, and nothing else is called so.
var temporary = regexp.MustCompile(`^\.bcnn-[0-9a-f]{16}\.tmp$`)

// errLocked says that another process holds the lock of a file.
var errLocked = errors.New("locked")

func temporaryName() string { return fmt.Sprintf(".bcnn-%016x.tmp", rand.Uint64()) }

// Replace puts what write writes in the place of the file at path, or makes it.
// The file changes at once or, after an error, not at all: the data goes to a
// temporary file in the same folder, to the disk, and under its name.
//
// The file keeps its mode, and its owner and group where that is permitted; a
// new one has the mode that the umask leaves. A symbolic link is replaced, not
// followed. Whatever is there that is neither is an error. Errors name the file.
//
// What a killed process has left in the folder is removed. A temporary file is
// locked while its process lives.
func Replace(path string, write func(w io.Writer) error) error {
	return Name(path, replace(path, write))
}

// Replaceable returns the error that Replace would have before it writes anything, as far as that can be
// told without a file, so that nobody computes for long what cannot be kept. It names the file.
func Replaceable(path string) error {
	_, err := replaced(path)
	if err == nil {
		// The last slash makes what is no folder an error.
		_, err = os.Stat(filepath.Dir(path) + string(filepath.Separator))
	}
	return Name(path, bare(err))
}

// replaced returns what Replace takes the place of, nil for nothing that matters.
func replaced(path string) (fs.FileInfo, error) {
	old, err := os.Lstat(path)
	switch {
	case err != nil || old.Mode()&fs.ModeSymlink != 0:
		return nil, nil // creating the temporary file says what is wrong, if anything
	case old.IsDir():
		return nil, syscall.EISDIR
	case !old.Mode().IsRegular():
		return nil, ErrNotRegular
	}
	return old, nil
}

func replace(path string, write func(w io.Writer) error) (err error) {
	old, err := replaced(path)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o666)
	if old != nil {
		mode = 0o600 // until it is that of the old one
	}
	dir := filepath.Dir(path)
	sweep(dir)
	f, err := create(dir, mode)
	if err != nil {
		return bare(err)
	}
	defer func() {
		f.Close()
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if err := write(bareWriter{f}); err != nil {
		return err
	}
	if old != nil {
		if err := adopt(f, old); err != nil {
			return bare(err)
		}
	}
	if err := f.Sync(); err != nil {
		return bare(err)
	}
	return bare(rename(f, path))
}

// create makes a temporary file and locks it.
func create(dir string, mode fs.FileMode) (*os.File, error) {
	for range 100 {
		name := filepath.Join(dir, temporaryName())
		f, err := openFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return nil, err
		}
		// Whoever sweeps may have been there before the lock. Where the file
		// system knows no locks, nobody sweeps.
		if !errors.Is(lock(f), errLocked) && inPlace(f) {
			return f, nil
		}
		f.Close()
	}
	return nil, errors.New("temporary files vanish from the folder")
}

// sweep removes the temporary files of a folder that no process has locked.
func sweep(dir string) {
	d, err := os.OpenFile(dir, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(1024)
		for _, name := range names {
			if temporary.MatchString(name) {
				removeAbandoned(filepath.Join(dir, name))
			}
		}
		if err != nil {
			return
		}
	}
}

// removeAbandoned removes a temporary file if nobody holds its lock.
func removeAbandoned(path string) {
	f, err := Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	if lock(f.f) == nil && inPlace(f.f) {
		os.Remove(path)
	}
}

// inPlace reports whether an open file is still what its name means.
func inPlace(f *os.File) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(open, named)
}

// bareWriter takes the name of the temporary file out of errors.
type bareWriter struct{ f *os.File }

func (w bareWriter) Write(b []byte) (int, error) {
	n, err := w.f.Write(b)
	return n, bare(err)
}
