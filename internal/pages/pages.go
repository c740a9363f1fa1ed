// Package pages writes what commands have found out as pages for a browser: one file each, with
// its pictures inside and nothing from elsewhere.
package pages

import (
	"bytes"
	"context"
	"embed"
	"encoding/base64"
	"html/template"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/text"
	"github.com/bitcnn/bitcnn/vision"
)

//go:embed *.html
var sources embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"count": text.Count,
}).ParseFS(sources, "*.html"))

// write writes the page of a template, completely or not at all.
func write(path, name string, data any) error {
	return files.Replace(path, func(w io.Writer) error { return templates.ExecuteTemplate(w, name, data) })
}

// thumbnailSide is the length of the longer side of a thumbnail.
const thumbnailSide = 160

// Thumbnail returns a small picture of a photo, as a data: URL. Photos that are smaller keep
// their pixels.
func Thumbnail(ctx context.Context, img image.Image) (template.URL, error) {
	size := img.Bounds().Size()
	small := max(size.X, size.Y) <= thumbnailSide
	if !small {
		longer := max(size.X, size.Y)
		size.X, size.Y = max(1, size.X*thumbnailSide/longer), max(1, size.Y*thumbnailSide/longer)
	}
	p := vision.Preprocessing{Input: bcnn.Input{Shape: bcnn.Shape{H: size.Y, W: size.X, C: 3}, DType: bcnn.Uint8}}
	pixels := bcnn.NewTensor(bcnn.Uint8, 1, p.Input.Shape)
	if err := p.Fill(ctx, pixels, 0, img); err != nil {
		return "", err
	}
	out := image.NewNRGBA(image.Rectangle{Max: size})
	for i := range size.X * size.Y {
		copy(out.Pix[4*i:], pixels.U8[3*i:3*i+3])
		out.Pix[4*i+3] = 0xff
	}
	var b strings.Builder
	encode, kind := func(w io.Writer) error { return jpeg.Encode(w, out, &jpeg.Options{Quality: 80}) }, "image/jpeg"
	if small && size.X*size.Y <= 64*64 { // enlarged by the browser, pixel by pixel
		encode, kind = func(w io.Writer) error { return png.Encode(w, out) }, "image/png"
	}
	b.WriteString("data:" + kind + ";base64,")
	var picture bytes.Buffer
	if err := encode(&picture); err != nil {
		return "", err
	}
	b.WriteString(base64.StdEncoding.EncodeToString(picture.Bytes()))
	return template.URL(b.String()), nil //nolint:gosec // it was made here
}

// Answer is a class with its probability in percent.
type Answer struct {
	Label   string
	Percent float64
}

// Answers are the classes for a page.
func Answers(classes []vision.Class) []Answer {
	list := make([]Answer, len(classes))
	for i, c := range classes {
		list[i] = Answer{c.Label, 100 * float64(c.Probability)}
	}
	return list
}
