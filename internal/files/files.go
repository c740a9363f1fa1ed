// Package files is the one place of the module that opens files: models,
// images, labels, data sets, caches. It opens regular files and nothing else, so
// that a named pipe does not wait for a writer and a device does not go on for
// ever, and it replaces files whole.
package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/bitcnn/bitcnn/internal/text"
)

// ErrNotRegular is wrapped by the error of opening a named pipe, a socket or a
// device. That of opening a folder wraps syscall.EISDIR.
var ErrNotRegular = errors.New("not a regular file")

// File is an open regular file: an fs.File and an io.ReaderAt. Errors of its
// methods do not name it, as those who decode what they read name it with Name.
type File struct {
	f    *os.File
	size int64
}

// Open opens a regular file for reading; a symbolic link counts as what it
// points to. The error names the file.
func Open(path string) (*File, error) {
	f, err := open(path, os.Stat, openFile)
	return f, Name(path, err)
}

// OpenIn is Open for a file below a folder, which no link leads out of.
func OpenIn(root *os.Root, path string) (*File, error) {
	f, err := open(path, root.Stat, root.OpenFile)
	return f, Name(path, err)
}

func open(path string, stat func(string) (fs.FileInfo, error), openFile func(string, int, fs.FileMode) (*os.File, error)) (*File, error) {
	// To open a device may already do something to it: look first.
	info, err := stat(path)
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		return nil, err
	}
	// Another file may have taken the place of that one: do not wait, and look
	// at what has been opened.
	f, err := openFile(path, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = regular(info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &File{f, info.Size()}, nil
}

func regular(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return syscall.EISDIR
	case !info.Mode().IsRegular():
		return ErrNotRegular
	}
	return nil
}

// Size returns the number of bytes that the file had when it was opened.
func (f *File) Size() int64 { return f.size }

func (f *File) Read(b []byte) (int, error) {
	n, err := f.f.Read(b)
	return n, bare(err)
}

func (f *File) ReadAt(b []byte, offset int64) (int, error) {
	n, err := f.f.ReadAt(b, offset)
	return n, bare(err)
}

func (f *File) Stat() (fs.FileInfo, error) {
	info, err := f.f.Stat()
	return info, bare(err)
}

func (f *File) Close() error { return bare(f.f.Close()) }

// ReadAll returns what is in a regular file. More than limit bytes are an error,
// and no more than that are read. Errors name the file.
func ReadAll(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := readAll(f, f.size, limit)
	return data, Name(path, err)
}

// readAll returns what is in a file of size bytes, or as many as it has become.
func readAll(f io.Reader, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, fmt.Errorf("%d bytes, at most %d are read", size, limit)
	}
	b := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	if _, err := b.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > limit { // it has grown, or its size is not known before
		return nil, fmt.Errorf("more than %d bytes", limit)
	}
	return b.Bytes(), nil
}

// Name puts the name of a file before an error that belongs to it, once: where
// package os has named it already, that goes. What does not print in the name is
// escaped. nil stays nil.
func Name(path string, err error) error {
	var named *fileError
	if err == nil || errors.As(err, &named) && named.path == path {
		return err
	}
	return &fileError{path, bare(err)}
}

type fileError struct {
	path string
	err  error
}

func (e *fileError) Error() string { return text.Escape(e.path) + ": " + e.err.Error() }

func (e *fileError) Unwrap() error { return e.err }

// bare takes away what package os puts around an error.
func bare(err error) error {
	switch e := err.(type) {
	case *fs.PathError:
		return e.Err
	case *os.LinkError:
		return e.Err
	case *os.SyscallError:
		return e.Err
	}
	return err
}
