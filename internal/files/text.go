package files

import (
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// ReadText is ReadAll for a text that a person may have written: UTF-8, or what its byte order
// mark says, as editors and shells of Windows write it. The text is UTF-8 without a mark.
func ReadText(path string, limit int64) (string, error) {
	data, err := ReadAll(path, limit)
	if err != nil {
		return "", err
	}
	text, _, err := transform.Bytes(unicode.BOMOverride(encoding.UTF8Validator), data)
	return string(text), Name(path, err)
}
