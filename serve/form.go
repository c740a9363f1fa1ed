package serve

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/textproto"
	"strings"

	"github.com/bitcnn/bitcnn/internal/text"
)

// Bounds of forms. A browser or curl needs a fraction of them.
const (
	mostParts     = 32
	mostPartHead  = 4 << 10 // bytes of the header of a part
	mostDelimiter = 70      // characters, by RFC 2046
)

// pictureOf returns the picture in a body: the one file of a form, or all of it.
//
// Package mime/multipart would copy parts, and take megabytes for their headers before it says no:
// memory that nobody counts. This returns a part of the body, which is there already.
func pictureOf(contentType string, body []byte) ([]byte, error) {
	if media, _, _ := strings.Cut(contentType, ";"); !strings.EqualFold(strings.TrimSpace(media), "multipart/form-data") {
		return body, nil
	}
	_, parameters, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, badf("the form cannot be read: the header Content-Type: %w", err)
	}
	boundary := parameters["boundary"]
	if boundary == "" || len(boundary) > mostDelimiter {
		return nil, badf("the form cannot be read: a boundary of %d characters, want 1 to %d", len(boundary), mostDelimiter)
	}
	picture, err := fileOf(body, []byte("--"+boundary))
	if err != nil {
		return nil, badf("the form cannot be read: %w", err)
	}
	return picture, nil
}

// fileOf returns the content of the one file of a form.
func fileOf(form, delimiter []byte) ([]byte, error) {
	content, rest, last, err := partContent(form, delimiter)
	if err != nil {
		return nil, err
	}
	if len(content) > 0 {
		return nil, fmt.Errorf("it does not begin with the line %s", text.Quote(string(delimiter)))
	}
	var picture []byte
	files, fields := 0, 0
	for part := 1; !last; part++ {
		if part > mostParts {
			return nil, fmt.Errorf("more than %d parts", mostParts)
		}
		file := false
		if file, rest, err = partHead(rest); err == nil {
			content, rest, last, err = partContent(rest, delimiter)
		}
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", part, err)
		}
		switch {
		case !file:
			fields++
		case files > 0:
			return nil, fmt.Errorf("part %d is a second file, want one picture", part)
		default:
			files, picture = 1, content
		}
	}
	if files == 0 {
		return nil, fmt.Errorf("no file among %d fields, want one picture, such as curl -F image=@photo.jpg sends", fields)
	}
	return picture, nil
}

// partContent returns what is before the next delimiter, and what is behind that.
func partContent(form, delimiter []byte) (content, rest []byte, last bool, err error) {
	if after, ok := bytes.CutPrefix(form, delimiter); ok && delimits(after) {
		rest, last, err = delimiterEnd(after)
		return nil, rest, last, err
	}
	line := append([]byte("\r\n"), delimiter...)
	for from := 0; ; {
		i := bytes.Index(form[from:], line)
		if i < 0 {
			return nil, nil, false, fmt.Errorf("the line %s is missing", text.Quote(string(delimiter)))
		}
		at := from + i
		from = at + len(line)
		if delimits(form[from:]) {
			rest, last, err = delimiterEnd(form[from:])
			return form[:at], rest, last, err
		}
	}
}

// delimits reports whether what stands before these bytes is a delimiter, and not the beginning of
// a longer word.
func delimits(after []byte) bool {
	return len(after) == 0 || strings.IndexByte(" \t\r\n-", after[0]) >= 0
}

// delimiterEnd reads the end of the line of a delimiter, or of the form.
func delimiterEnd(after []byte) (rest []byte, last bool, err error) {
	after, last = bytes.CutPrefix(after, []byte("--"))
	after = bytes.TrimLeft(after, " \t")
	rest, ok := bytes.CutPrefix(after, []byte("\r\n"))
	if !ok && (!last || len(after) > 0) {
		return nil, false, fmt.Errorf("unexpected text after a delimiter: %s", text.Quote(string(after[:min(len(after), 16)])))
	}
	return rest, last, nil
}

// partHead reads the header of a part, which says whether it is a file.
func partHead(form []byte) (file bool, rest []byte, err error) {
	const end = "\r\n\r\n"
	i := bytes.Index(form[:min(len(form), mostPartHead)], []byte(end))
	if i < 0 {
		return false, nil, fmt.Errorf("a header without an end within %d bytes", mostPartHead)
	}
	head, rest := form[:i+len(end)], form[i+len(end):]
	// Where a line ends with LF alone, package textproto may see the end of the header before.
	if bytes.Count(head, []byte("\n")) != bytes.Count(head, []byte("\r\n")) {
		return false, nil, errors.New("a line of the header ends with LF, want CR LF")
	}
	header, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(head))).ReadMIMEHeader()
	if err != nil {
		return false, nil, fmt.Errorf("the header: %w", err)
	}
	switch encoding := strings.ToLower(header.Get("Content-Transfer-Encoding")); encoding {
	case "", "binary", "8bit", "7bit":
	default:
		return false, nil, fmt.Errorf("the encoding %s, want binary", text.Quote(encoding))
	}
	disposition, parameters, err := mime.ParseMediaType(header.Get("Content-Disposition"))
	if err != nil || disposition != "form-data" {
		return false, nil, fmt.Errorf("the header Content-Disposition is %s, want form-data",
			text.Quote(header.Get("Content-Disposition")))
	}
	_, file = parameters["filename"]
	return file, rest, nil
}
