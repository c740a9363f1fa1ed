package npy

import (
	"archive/zip"
	"bytes"
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
	single func() (*Reader, error)
	parts  map[string]*zip.File
	at     io.ReaderAt // an .npz file
	size   int64       // bytes
}

// Open looks at a file of size bytes; which of the two kinds it is shows by its content.
func Open(r io.ReaderAt, size int64) (*File, error) {
	head := make([]byte, min(size, int64(len(magic))))
	if _, err := r.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case string(head) == magic:
		return &File{names: []string{""}, single: func() (*Reader, error) {
			return newReader(source{Reader: io.NewSectionReader(r, 0, size), size: size, known: size, at: r})
		}}, nil
	case !strings.HasPrefix(string(head), zipMagic):
		return nil, errKind
	}
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not a valid .npz file: %w", err)
	}
	f := &File{parts: map[string]*zip.File{}, at: r, size: size}
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

const zipMagic = "PK"

var errKind = errors.New("neither an .npy nor an .npz file")

// OpenStream looks at what comes one byte after the other. An .npy file can be read once, as
// it comes. An .npz file, which has its directory at the end, is read as a whole and may have
// at most MaxBuffered bytes.
func OpenStream(r io.Reader) (*File, error) {
	head := make([]byte, len(magic))
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	head = head[:n]
	r = io.MultiReader(bytes.NewReader(head), r)
	switch {
	case string(head) == magic:
		read := false
		return &File{names: []string{""}, single: func() (*Reader, error) {
			if read {
				return nil, errors.New("it can be read only once")
			}
			read = true
			return newReader(source{Reader: r, size: -1})
		}}, nil
	case !strings.HasPrefix(string(head), zipMagic):
		return nil, errKind
	}
	data, err := io.ReadAll(io.LimitReader(r, MaxBuffered+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxBuffered {
		return nil, fmt.Errorf("more than %d bytes of an .npz file, which is read as a whole where it is no file; an .npy file may have any size", MaxBuffered)
	}
	return Open(bytes.NewReader(data), int64(len(data)))
}

// Names lists the arrays in the order of the file.
func (f *File) Names() []string { return slices.Clone(f.names) }

// Array reads the header of the array of a name; the error names it. A name that is not
// there is fs.ErrNotExist. The caller closes the reader.
func (f *File) Array(name string) (*Reader, error) {
	if !slices.Contains(f.names, name) {
		return nil, fmt.Errorf("array %s: %w", text.Quote(name), fs.ErrNotExist)
	}
	if f.single != nil {
		return f.single()
	}
	r, err := f.part(f.parts[name])
	if err != nil {
		return nil, fmt.Errorf("array %s: %w", text.Quote(name), err)
	}
	r.name = name
	return r, nil
}

// Read reads an array as a whole, which takes at most MaxBytes.
func (f *File) Read(name string) (*Array, error) {
	r, err := f.Array(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.Next(max(r.rows, 1))
}

// part reads the header of a member of an .npz file.
func (f *File) part(part *zip.File) (*Reader, error) {
	from, err := part.Open()
	if err != nil {
		return nil, err
	}
	s := source{Reader: from, size: int64(part.UncompressedSize64)}
	if part.Method == zip.Store {
		start, err := part.DataOffset()
		if err != nil {
			return nil, err
		}
		// What the directory says has been checked against nothing.
		s.known = min(s.size, f.size)
		s.at = io.NewSectionReader(f.at, start, s.size)
	}
	r, err := newReader(s)
	if err == nil && r.all != nil && s.at != nil {
		_, err = io.Copy(io.Discard, from) // for the checksum: it is not read in the order of the file
	}
	if err != nil {
		from.Close()
		return nil, err
	}
	r.closer = from
	return r, nil
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
