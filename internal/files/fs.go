package files

import (
	"errors"
	"io/fs"
)

// OpenFS is Open for a file of a file system that the caller brings, such as an
// embed.FS, with its size. One that does not implement fs.StatFS opens files to
// look at them.
func OpenFS(fsys fs.FS, path string) (fs.File, int64, error) {
	if fsys == nil {
		return nil, 0, Name(path, errors.New("there is no file system"))
	}
	info, err := fs.Stat(fsys, path)
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		return nil, 0, Name(path, err)
	}
	f, err := fsys.Open(path)
	if err != nil {
		return nil, 0, Name(path, err)
	}
	if info, err = f.Stat(); err == nil {
		err = regular(info)
	}
	if err != nil {
		f.Close()
		return nil, 0, Name(path, err)
	}
	return f, info.Size(), nil
}

// ReadAllFS is ReadAll for a file of a file system that the caller brings.
func ReadAllFS(fsys fs.FS, path string, limit int64) ([]byte, error) {
	f, size, err := OpenFS(fsys, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := readAll(f, size, limit)
	return data, Name(path, err)
}
