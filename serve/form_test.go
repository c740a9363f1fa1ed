package serve

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"net/textproto"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/serve/internal/picture"
)

// formPart is a part of a form: a file if it has the name of one.
type formPart struct{ field, file, content string }

func form(t testing.TB, parts ...formPart) (contentType string, body []byte) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range parts {
		var part io.Writer
		var err error
		if p.file != "" {
			part, err = w.CreateFormFile(p.field, p.file)
		} else {
			part, err = w.CreateFormField(p.field)
		}
		require.NoError(t, err)
		_, err = io.WriteString(part, p.content)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return w.FormDataContentType(), b.Bytes()
}

// The one file of a form is classified as the same bytes are without a form.
func TestClassifyForm(t *testing.T) {
	s := newServer(t, Options{}, "digits")
	url := overWeb(t, s) + "/v2/models/digits"
	seven, err := os.ReadFile("../internal/samples/digit-7.png")
	require.NoError(t, err)
	image := formPart{"image", "digit-7.png", string(seven)}
	var want, got picture.Answer
	post(t, url+"/classify?top=3", seven).decode(t, &want)
	for _, parts := range [][]formPart{
		{image}, {{"text", "", "x"}, image, {"more", "", ""}},
	} {
		contentType, body := form(t, parts...)
		post(t, url+"/classify?top=3", body, "Content-Type", contentType).decode(t, &got)
		require.Equal(t, want.Logits, got.Logits)
		require.Equal(t, want.Top, got.Top)
		var small bytes.Buffer
		z := gzip.NewWriter(&small)
		_, err := z.Write(body)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		post(t, url+"/classify?top=3", small.Bytes(), "Content-Type", contentType, "Content-Encoding", "gzip").decode(t, &got)
		require.Equal(t, want.Logits, got.Logits)
		require.Equal(t, 200, post(t, url+"/profile", body, "Content-Type", contentType).status)
	}
	many := make([]formPart, mostParts+1)
	for i := range many {
		many[i] = formPart{"x", "", "y"}
	}
	long := []formPart{{strings.Repeat("x", mostPartHead), "a.png", string(seven)}}
	for words, parts := range map[string][]formPart{
		"no file among 0 fields":               {},
		"no file among 1 fields":               {{"image", "", string(seven)}},
		"part 3 is a second file":              {image, {"x", "", ""}, image},
		"more than 32 parts":                   many,
		"part 1: a header without an end with": long,
		"unsupported image format":             {{"image", "x.png", "no image"}},
	} {
		contentType, body := form(t, parts...)
		post(t, url+"/classify", body, "Content-Type", contentType).fails(t, 400, words)
	}
	taken, _ := s.Memory()
	require.Zero(t, taken)
}

// What forms take is what their bytes take: the budget of a request holds for them, too.
func TestFormIsCounted(t *testing.T) {
	url := overWeb(t, newServer(t, Options{MaxBody: 64 << 10, Memory: 1 << 20}, "digits"))
	contentType, body := form(t, formPart{"image", "x.png", strings.Repeat("x", 65<<10)})
	post(t, url+"/v2/models/digits/classify", body, "Content-Type", contentType).fails(t, 413, "too large")
	url = overWeb(t, newServer(t, Options{Memory: 64 << 10}, "digits"))
	post(t, url+"/v2/models/digits/classify", body, "Content-Type", contentType).fails(t, 413, "of memory")
}

func TestPictureOf(t *testing.T) {
	const multi = "multipart/form-data; boundary=b"
	file := func(content string) string {
		return "--b\r\nContent-Disposition: form-data; name=a; filename=f\r\n\r\n" + content
	}
	for _, c := range []struct{ contentType, body, want, words string }{
		{"", "x", "x", ""},
		{"image/png", "x", "x", ""},
		{"application/x-www-form-urlencoded", "x", "x", ""},
		{multi, file("x\r\n--b--"), "x", ""},
		{"Multipart/Form-Data ; boundary=b", file("x\r\n--b--"), "x", ""},
		{multi, file("x\r\n--b-- \r\nafter"), "x", ""},
		{multi, file("--b--\r\n"), "", ""},
		{multi, file("\r\n--b--\r\n"), "", ""},
		{multi, file("x\r\n--bc\r\n-b\n--b\r\n--b \r\nContent-Disposition: form-data\r\n\r\n\r\n--b--"),
			"x\r\n--bc\r\n-b\n--b", ""},
		{multi, "\r\n" + file("x\r\n--b--"), "x", ""},
		{multi, "before\r\n" + file("x\r\n--b--"), "", "does not begin with the line"},
		{multi, file("x\r\n--b-"), "", `after a delimiter: "-"`},
		{multi, file("x\r\n--b--y"), "", `after a delimiter: "y"`},
		{multi, file("x\r\n--b\nX"), "", `after a delimiter: "\nX"`},
		{multi, "", "", "is missing"},
		{multi, "--b--", "", "no file among 0"},
		{multi, "--b", "", "after a delimiter"},
		{multi, file("x"), "", "part 1: the line"},
		{multi, file("x\r\n--b\r\n"), "", "part 2: a header without an end"},
		{multi, "--b\r\n\r\nx\r\n--b--", "", "a header without an end"},
		{multi, "--b\r\nX: y\r\n\r\nx\r\n--b--", "", "Content-Disposition is"},
		{multi, "--b\r\nContent-Disposition: form-data; filename=f\n\r\n\r\nx\r\n--b--", "", "part 1: a line of the header ends with LF"},
		{multi, "--b\r\nno header\r\n\r\nx\r\n--b--", "", "part 1: the header"},
		{multi, strings.Replace(file("x\r\n--b--"), "\r\n\r\n", "\r\nContent-Transfer-Encoding: base64\r\n\r\n", 1), "", `the encoding "base64"`},
		{"multipart/form-data", file("x\r\n--b--"), "", "a boundary of 0 characters"},
		{"multipart/form-data; boundary=" + strings.Repeat("b", 71), "", "", "a boundary of 71 characters"},
		{"multipart/form-data; boundary", "", "", "the header Content-Type"},
	} {
		got, err := pictureOf(c.contentType, []byte(c.body))
		if c.words != "" {
			require.ErrorContains(t, err, c.words, c.body)
			require.Equal(t, 400, classified(err).httpStatus())
			continue
		}
		require.NoError(t, err, c.body)
		require.Equal(t, c.want, string(got), c.body)
	}
}

// asMultipart requires that a form is refused, or read as package mime/multipart reads it.
func asMultipart(t *testing.T, boundary string, body []byte) (read bool) {
	contentType := mime.FormatMediaType("multipart/form-data", map[string]string{"boundary": boundary})
	if contentType == "" {
		return false
	}
	got, err := pictureOf(contentType, body)
	if err != nil {
		require.Equal(t, 400, classified(err).httpStatus())
		return false
	}
	want, err := readForm(body, boundary)
	require.NoError(t, err, "%q", body)
	require.Equal(t, string(want), string(got), "%q", body)
	return true
}

func FuzzForm(f *testing.F) {
	_, body := form(f, formPart{"text", "", "x"}, formPart{"image", "a.png", "\x89PNG\r\n\r\n--"})
	boundary, _, _ := strings.Cut(string(body[2:]), "\r\n")
	f.Add(boundary, body)
	f.Add("b", []byte("--b\r\nContent-Disposition: form-data; filename=f\r\n\r\nx\r\n--bc\r\n--b--"))
	f.Add("b", []byte("--b \r\nContent-Disposition: form-data; filename=\r\n\r\n\r\n--b--"))
	f.Fuzz(func(t *testing.T, boundary string, body []byte) { asMultipart(t, boundary, body) })
}

// Random forms of what forms are made of.
func TestRandomForms(t *testing.T) {
	pieces := []string{
		"--b", "--b", "--b", "\r\n", "\r\n", "\r\n", "\r\n--b\r\n", "\r\n--b--", "--", "-", " ", "\t", "\n", "\r", "b", "x", "",
		"Content-Disposition: form-data; filename=f\r\n\r\n", "Content-Disposition: form-data; name=f\r\n\r\n",
		"Content-Disposition: form-data; filename=f", "Content-Type: a/b\r\n",
	}
	rng, read := rand.New(rand.NewPCG(3, 4)), 0
	for range 200_000 {
		body := ""
		if rng.IntN(4) > 0 {
			body = "--b\r\nContent-Disposition: form-data; filename=f\r\n\r\n"
		}
		for range rng.IntN(12) {
			body += pieces[rng.IntN(len(pieces))]
		}
		if asMultipart(t, "b", []byte(body)) {
			read++
		}
	}
	require.Greater(t, read, 10_000)
}

// readForm returns the one file of a form, as package mime/multipart reads it.
func readForm(body []byte, boundary string) (file []byte, err error) {
	r, files := multipart.NewReader(bytes.NewReader(body), boundary), 0
	for {
		part, err := r.NextRawPart()
		if errors.Is(err, io.EOF) && files == 1 {
			return file, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		if isFile(part.Header) {
			files, file = files+1, content
		}
	}
}

func isFile(header textproto.MIMEHeader) bool {
	_, parameters, err := mime.ParseMediaType(header.Get("Content-Disposition"))
	_, named := parameters["filename"]
	return err == nil && named
}
