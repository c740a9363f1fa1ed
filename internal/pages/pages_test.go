package pages

import (
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/dataset"
)

func read(t *testing.T, path string) string {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotRegexp(t, regexp.MustCompile(`(src|href)="(https?:)?//|url\(`), string(b), "a page takes nothing from elsewhere")
	return string(b)
}

func flat(w, h int, c color.Color) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.Set(x, y, c)
		}
	}
	return img
}

func TestThumbnail(t *testing.T) {
	for _, c := range []struct {
		w, h, wantW, wantH int
		kind               string
	}{{28, 28, 28, 28, "png"}, {100, 100, 100, 100, "jpeg"}, {640, 320, 160, 80, "jpeg"}, {3, 4000, 1, 160, "jpeg"}} {
		url, err := Thumbnail(t.Context(), flat(c.w, c.h, color.NRGBA{200, 90, 30, 255}))
		require.NoError(t, err)
		data, ok := strings.CutPrefix(string(url), "data:image/"+c.kind+";base64,")
		require.True(t, ok, url[:40])
		b, err := base64.StdEncoding.DecodeString(data)
		require.NoError(t, err)
		img, kind, err := image.Decode(strings.NewReader(string(b)))
		require.NoError(t, err)
		require.Equal(t, c.kind, kind)
		require.Equal(t, image.Pt(c.wantW, c.wantH), img.Bounds().Size())
		r, g, _, _ := img.At(0, c.wantH/2).RGBA()
		require.InDelta(t, 200, r>>8, 4)
		require.InDelta(t, 90, g>>8, 4)
	}
	_, err := Thumbnail(t.Context(), image.NewGray(image.Rectangle{}))
	require.ErrorContains(t, err, "input of 0×0×3")
}

// The most doubtful photo comes first, what is strange in names does nothing, and a page of too
// many photos has the most doubtful of them.
func TestSheet(t *testing.T) {
	s := &Sheet{Title: "<b>net</b>", Device: "cpu", Broken: []string{"x.jpg: broken <i>image</i>"}}
	const all = 2*mostPhotos + 700
	for i := range all {
		certain := float64((i*7919)%all) / all * 100
		s.Add(Photo{
			File: fmt.Sprintf("photo %d <script>", i), Picture: "data:image/png;base64,AAAA",
			Answers: []Answer{{"a&b", 50 + certain/2}, {"c", 50 - certain/2}},
		})
	}
	path := filepath.Join(t.TempDir(), "sheet.html")
	require.NoError(t, s.Write(path))
	page := read(t, path)
	require.NotContains(t, page, "<script>")
	require.NotContains(t, page, "<b>net")
	require.Contains(t, page, "&lt;b&gt;net")
	require.Contains(t, page, "broken &lt;i&gt;image")
	require.Contains(t, page, "a&amp;b")
	require.Contains(t, page, "2700 photos on cpu, the most doubtful first. 1700 less doubtful photos not shown.")
	require.Equal(t, mostPhotos, strings.Count(page, "<figure>"))
	require.Less(t, strings.Index(page, "photo 0 &lt;"), strings.Index(page, "photo 1981 &lt;"))
	for i := 1; i < len(s.Photos); i++ {
		require.LessOrEqual(t, s.Photos[i-1].certainty(), s.Photos[i].certainty())
	}
	require.Less(t, s.Photos[mostPhotos-1].certainty(), 100.0*(mostPhotos+1)/all)
	require.ErrorContains(t, s.Write(filepath.Join(t.TempDir(), "none", "sheet.html")), "none")
}

func TestAccuracy(t *testing.T) {
	a := &Accuracy{
		Title: "net", Labels: []string{"cat", "<dog>"}, More: 3,
		Result:   &dataset.Evaluation{Correct: 90, Total: 100, Accuracy: 0.9, Confusion: [][]int{{60, 10}, {0, 30}}},
		Mistakes: []Mistake{{Photo{"x.jpg", "data:image/jpeg;base64,AAAA", []Answer{{"<dog>", 97}}}, "cat"}},
	}
	path := filepath.Join(t.TempDir(), "accuracy.html")
	require.NoError(t, a.Write(path))
	page := read(t, path)
	require.Contains(t, page, "Accuracy 90.00 % (86.59 to 92.62 within one standard error): 90 of 100 images.")
	require.Contains(t, page, "85.7 %")
	require.Contains(t, page, "&lt;dog&gt;")
	require.NotContains(t, page, "<dog>")
	require.Contains(t, page, "3 other mistakes not shown.")
	a.Result = &dataset.Evaluation{Correct: 3, Total: 3, Accuracy: 1, Confusion: [][]int{{3, 0}, {0, 0}}}
	require.InDelta(t, 75, a.Low(), 1e-9)
	require.InDelta(t, 100, a.High(), 1e-9)
	a.Mistakes = nil
	require.NoError(t, a.Write(path))
	require.NotContains(t, read(t, path), "mistakes")
}

func TestNetwork(t *testing.T) {
	n := &Network{Title: "net", About: []string{"one", "<two>"}, Steps: []Step{
		{Name: "first", Kind: "conv", Output: "4×4×8 bits", Values: 128, Precision: 8, Work: 1234, Micros: 3.25, Share: 0.75, Kernel: strings.Repeat("wide ", 30)},
		{Name: strings.Repeat("é", 50), Kind: "conv", Output: "4×4×8 bits", Values: 128, From: []int{0}, Precision: plan.Binary, Work: 2.5e9, Micros: 1500, Share: 0.2},
		{Name: "sum", Kind: "pointwise", Output: "1×1×1 float32", Values: 1, From: []int{1, 0}, Micros: 0.5, Share: 0.05},
	}}
	path := filepath.Join(t.TempDir(), "network.html")
	require.NoError(t, n.Write(path))
	require.NoError(t, n.Write(path)) // again the same
	require.LessOrEqual(t, n.Width(), 1060, "a page of 1100 pixels shows all of it")
	page := read(t, path)
	require.Equal(t, 3, strings.Count(page, "<path "))
	require.Equal(t, 6, strings.Count(page, "<rect "))
	for _, want := range []string{
		`class="integer"`, `class="binary"`, `class="other"`, "75.0 %", "3.25 µs, 1.23k 8-bit", "1.5 ms, 2.5G binary", "0.5 µs</tspan>",
		strings.Repeat("é", 35) + "…", "&lt;two&gt;", "<title>" + strings.Repeat("wide ", 30) + "</title>", strings.Repeat("wide ", 23) + "wide…</text>",
	} {
		require.Contains(t, page, want)
	}
}
