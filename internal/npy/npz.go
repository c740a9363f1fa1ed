package npy

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/internal/text"
)

// Extensions of the names of files.
const (
	ExtensionNPY = ".npy"
	ExtensionNPZ = ".npz"
)

// File holds arrays that are yet to be read: those of an .npz file by their names, or
// the one of an .npy file, whose name is empty.
type File struct {
	names  []string
	single func() (*Array, error)
	parts  map[string]*zip.File
	size   int64 // bytes
}

// Open looks at a file of size bytes; which of the two kinds it is shows by its content.
func Open(r io.ReaderAt, size int64) (*File, error) {
	head := make([]byte, min(size, int64(len(magic))))
	if _, err := r.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case string(head) == magic:
		return &File{names: []string{""}, single: func() (*Array, error) {
			return read(io.NewSectionReader(r, 0, size), size)
		}}, nil
	case !strings.HasPrefix(string(head), "PK"):
		return nil, errors.New("neither an .npy nor an .npz file")
	}
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not a valid .npz file: %w", err)
	}
	f := &File{parts: map[string]*zip.File{}, size: size}
	for _, part := range z.File {
		name, ok := strings.CutSuffix(part.Name, ExtensionNPY)
		if !ok {
			continue
		}
		if f.parts[name] != nil {
			return nil, fmt.Errorf("two arrays have the name %s", text.Quote(name))
		}
		f.parts[name] = part
		f.names = append(f.names, name)
	}
	if len(f.names) == 0 {
		return nil, errors.New("a zip file without arrays (*.npy)")
	}
	return f, nil
}

// Names lists the arrays in the order of the file.
func (f *File) Names() []string { return slices.Clone(f.names) }

// Read reads the array of a name; the error names it. A name that is not there is
// fs.ErrNotExist.
func (f *File) Read(name string) (*Array, error) {
	if !slices.Contains(f.names, name) {
		return nil, fmt.Errorf("array %s: %w", text.Quote(name), fs.ErrNotExist)
	}
	if f.single != nil {
		return f.single()
	}
	a, err := f.readPart(f.parts[name])
	if err != nil {
		return nil, fmt.Errorf("array %s: %w", text.Quote(name), err)
	}
	return a, nil
}

func (f *File) readPart(part *zip.File) (*Array, error) {
	r, err := part.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	known := int64(0)
	if part.Method == zip.Store {
		known = f.size // what the directory says has been checked against nothing
	}
	return read(r, known)
}

// A Named array is one of an .npz file.
type Named struct {
	Name string
	*Array
}

// Write writes arrays as an .npz file, not compressed. The same arrays give the same
// bytes. Names are those of tensors, which may begin with a slash, but none leads out
// of a folder.
func Write(w io.Writer, arrays []Named) error {
	z := zip.NewWriter(w)
	for _, a := range arrays {
		if a.Name == "" || slices.Contains(strings.Split(a.Name, "/"), "..") {
			return fmt.Errorf("an array cannot be called %s in an .npz file", text.Quote(a.Name))
		}
		part, err := z.CreateHeader(&zip.FileHeader{Name: a.Name + ExtensionNPY, Method: zip.Store})
		if err != nil {
			return err
		}
		if err := a.write(part); err != nil {
			return err
		}
	}
	return z.Close()
}

// WriteOne writes an array as an .npy file.
func WriteOne(w io.Writer, a *Array) error { return a.write(w) }
