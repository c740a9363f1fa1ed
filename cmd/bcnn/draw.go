package main

import (
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"

	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/text"
	"github.com/bitcnn/bitcnn/vision"
)

// drawer writes photos with the boxes that were found on them.
type drawer struct {
	file   string // for one photo, or the newest of a stream
	folder string
	taken  map[string]bool // names in the folder
}

// newDrawer returns a drawer for the photos of sources.
func newDrawer(path string, sources []source) (*drawer, error) {
	if strings.EqualFold(filepath.Ext(path), ".png") {
		if len(sources) != 1 {
			return nil, usagef("--draw %s is for one photo, but there are %d: name a folder", text.Escape(path), len(sources))
		}
		return &drawer{file: path}, files.Replaceable(path)
	}
	if ext := filepath.Ext(path); ext != "" && ext != "." {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			return nil, usagef("--draw %s: want a .png file or a folder", text.Escape(path))
		}
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, files.Name(path, err)
	}
	return &drawer{folder: path, taken: map[string]bool{}}, nil
}

// write writes a photo with its boxes.
func (d *drawer) write(file string, photo image.Image, found vision.Detections) error {
	path := d.file
	if path == "" {
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		if file == standardInput {
			name = "stdin"
		}
		unique := name
		for n := 2; d.taken[unique]; n++ {
			unique = fmt.Sprintf("%s-%d", name, n)
		}
		d.taken[unique] = true
		path = filepath.Join(d.folder, unique+".png")
	}
	if onto, err := os.Stat(path); err == nil {
		if from, err := os.Stat(file); err == nil && os.SameFile(onto, from) {
			return fmt.Errorf("--draw would replace the photo itself, %s: name another file or folder", text.Escape(path))
		}
	}
	picture := drawn(photo, found)
	return files.Replace(path, func(w io.Writer) error { return png.Encode(w, picture) })
}

// colours are those of boxes, by class: they differ also for those who see few colours (Okabe and Ito,
// "Color Universal Design", 2008).
var colours = []color.RGBA{
	{0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xf0, 0xe4, 0x42, 0xff},
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
}

// drawn returns a photo with its boxes, whose lines and letters are as large as the photo is. The best box is on
// top.
func drawn(photo image.Image, found vision.Detections) *image.RGBA {
	b := photo.Bounds()
	out := image.NewRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	draw.Draw(out, out.Bounds(), photo, b.Min, draw.Src)
	scale := max(1, min(b.Dx(), b.Dy())/400)
	line := 2 * scale
	shrunk := func(v float32, size, full int) int {
		return int(math.Round(float64(v) * float64(size) / float64(full)))
	}
	for i := len(found.Boxes) - 1; i >= 0; i-- {
		box := found.Boxes[i]
		c := colours[box.Index%len(colours)]
		r := image.Rect(
			shrunk(box.X0, b.Dx(), found.Width), shrunk(box.Y0, b.Dy(), found.Height),
			shrunk(box.X1, b.Dx(), found.Width), shrunk(box.Y1, b.Dy(), found.Height))
		for _, side := range []image.Rectangle{
			{r.Min, image.Pt(r.Max.X, r.Min.Y+line)}, {image.Pt(r.Min.X, r.Max.Y-line), r.Max},
			{r.Min, image.Pt(r.Min.X+line, r.Max.Y)}, {image.Pt(r.Max.X-line, r.Min.Y), r.Max},
		} {
			draw.Draw(out, side.Intersect(r), image.NewUniform(c), image.Point{}, draw.Src)
		}
		write(out, r.Min, fmt.Sprintf("%s %.2f", box.Label, box.Score), c, scale)
	}
	return out
}

// write writes letters in a bar of a colour: above a place if there is room, else below.
func write(out *image.RGBA, at image.Point, label string, c color.RGBA, scale int) {
	face := basicfont.Face7x13
	const margin, most = 2, 64 // letters
	if letters := []rune(label); len(letters) > most {
		label = string(letters[:most])
	}
	small := image.NewAlpha(image.Rect(0, 0, font.MeasureString(face, label).Ceil()+2*margin, face.Height+2*margin))
	(&font.Drawer{
		Dst: small, Src: image.Opaque, Face: face, Dot: fixed.P(margin, margin+face.Ascent),
	}).DrawString(label)
	size := small.Bounds().Size().Mul(scale)
	if at.Y -= size.Y; at.Y < 0 {
		at.Y += size.Y
	}
	at.X = max(0, min(at.X, out.Bounds().Dx()-size.X))
	for y := range size.Y {
		for x := range size.X {
			p := at.Add(image.Pt(x, y))
			if !p.In(out.Bounds()) {
				continue
			}
			pixel := c
			if small.AlphaAt(x/scale, y/scale).A > 0 {
				pixel = color.RGBA{A: 0xff}
			}
			out.SetRGBA(p.X, p.Y, pixel)
		}
	}
}

// writeJSON writes a value to a file.
func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return files.Replace(path, func(w io.Writer) error {
		_, err := w.Write(append(b, '\n'))
		return err
	})
}
