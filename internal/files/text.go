package files

import (
	"os"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// ReadText is ReadAll for a text that a person may have written: UTF-8, or what its byte order
// mark says, as editors and shells of Windows write it. The text is UTF-8 without a mark.
func ReadText(path string, limit int64) (string, error) {
	f, err := Open(path)
	return readText(f, path, limit, err)
}

// ReadTextIn is ReadText for a file below a folder, which no link leads out of.
func ReadTextIn(root *os.Root, path string, limit int64) (string, error) {
	f, err := OpenIn(root, path)
	return readText(f, path, limit, err)
}

// readText reads a file that has been opened, if it has.
func readText(f *File, path string, limit int64, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := readAll(f, f.size, limit)
	if err != nil {
		return "", Name(path, err)
	}
	text, _, err := transform.Bytes(unicode.BOMOverride(encoding.UTF8Validator), data)
	return string(text), Name(path, err)
}
