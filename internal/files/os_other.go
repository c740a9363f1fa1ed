//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package files

import (
	"errors"
	"io/fs"
	"os"
)

const withoutWaiting = 0

var openFile = os.OpenFile

// lock reports that there are no locks, so that nothing is swept.
func lock(*os.File) error { return errors.ErrUnsupported }

// adopt gives a file the mode of an old one.
func adopt(f *os.File, old fs.FileInfo) error { return f.Chmod(old.Mode().Perm()) }

// checkOwner knows no owners.
func checkOwner(fs.FileInfo) error { return nil }

// rename closes the file first: an open one may not be renamed everywhere.
func rename(f *os.File, path string) error {
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
