package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/font"
)

const blue, red, green = "#4477aa", "#ee6677", "#228833"

var long = strings.Repeat("conv+", 50) + strings.Repeat("ü", 150)

func sample() []Chart {
	bars := func(lengths ...float64) []Bar {
		var list []Bar
		for i, n := range lengths {
			list = append(list, Bar{
				Label: fmt.Sprint("step ", i), Note: fmt.Sprint(n, " µs <&>"), Mark: n / 2,
				Parts: []Part{{n / 4, "conv", blue}, {3 * n / 4, "dense", red}},
			})
		}
		return list
	}
	return []Chart{
		{Title: "first", Axis: "µs", Mark: "half", Panels: []Panel{{Bars: bars(88, 0.5)}, {"second panel " + long, bars(3, 0)}}},
		{Title: "a\x1b[2J\nb", Axis: "%", Least: 100, Panels: []Panel{{Bars: []Bar{{Label: long, Note: long, Parts: []Part{{7, "pool", green}}}}}}},
	}
}

// Nothing is drawn outside of the picture, no text is lost, and no text lies on
// another.
func TestLayout(t *testing.T) {
	d := layout(sample())
	var words strings.Builder
	for _, r := range d.rects {
		require.True(t, r.x >= 0 && r.y >= 0 && r.w >= 0 && r.x+r.w <= d.width && r.y+r.h <= d.height, r)
	}
	for i, a := range d.texts {
		require.InDelta(t, width(a.text, a.size), a.width, 1e-9)
		require.True(t, a.x >= 0 && a.x+a.width <= d.width && a.y > a.size && a.y < d.height, a)
		for _, b := range d.texts[:i] {
			apart := a.x+a.width <= b.x || b.x+b.width <= a.x || a.y-b.y >= fontSize || b.y-a.y >= fontSize
			require.True(t, apart, "%v on %v", a, b)
		}
		words.WriteString(a.text)
	}
	for _, want := range []string{"half", "conv", "dense", "pool", "first", "step 1", "88 µs <&>", "µs", "%", long, `a\x1b[2J\nb`, "second panel " + long} {
		require.Contains(t, words.String(), want)
	}
}

// All bars of a chart are on the scale of the longest, and a kind has its colour.
func TestScale(t *testing.T) {
	d := layout(sample())
	widths := map[string][]float64{}
	for _, r := range d.rects {
		if r.h == row-6 && r.colour != white {
			widths[r.colour] = append(widths[r.colour], r.w)
		}
	}
	per := barWidth / 100.0 // the axis of 88 ends at 100
	conv, dense, pool := widths[blue], widths[red], widths[green]
	require.InDeltaSlice(t, []float64{22 * per, 0.125 * per, 0.75 * per, 0}, conv, 1e-9)
	require.InDeltaSlice(t, []float64{66 * per, 0.375 * per, 2.25 * per, 0}, dense, 1e-9)
	require.InDeltaSlice(t, []float64{7 * per}, pool, 1e-9)
}

// Two kinds of marks look different.
func TestMarks(t *testing.T) {
	heights := func(ticks bool) (list []float64) {
		for _, r := range layout([]Chart{{Mark: "m", Ticks: ticks, Panels: []Panel{{Bars: []Bar{{Mark: 5}}}}}}).rects {
			if r.colour == black && r.w == 2 {
				list = append(list, r.h)
			}
		}
		return list
	}
	require.Equal(t, []float64{row - 2, row - 2}, heights(false), "in the legend and on the bar")
	require.Equal(t, []float64{5, 5, 5, 5}, heights(true))
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		longest float64
		want    string
	}{
		{0, "0 0.2 0.4 0.6 0.8 1"},
		{1, "0 0.2 0.4 0.6 0.8 1"},
		{88, "0 20 40 60 80 100"},
		{100, "0 20 40 60 80 100"},
		{101, "0 20 40 60 80 100 120"},
		{0.00031, "0 0.0001 0.0002 0.0003 0.0004"},
		{4893, "0 1000 2000 3000 4000 5000"},
		{5.1e9, "0 1e+09 2e+09 3e+09 4e+09 5e+09 6e+09"},
	} {
		var labels []string
		for _, n := range (Chart{Panels: []Panel{{Bars: []Bar{{Parts: []Part{{Length: c.longest}}}}}}}).ticks() {
			labels = append(labels, n.label)
		}
		require.Equal(t, c.want, strings.Join(labels, " "), c.longest)
	}
}

func TestWrap(t *testing.T) {
	require.Empty(t, wrap(""))
	require.Equal(t, []string{"a b"}, wrap("a b"))
	require.Equal(t, []string{strings.Repeat("x", 60) + "+", strings.Repeat("y", 60)}, wrap(strings.Repeat("x", 60)+"+"+strings.Repeat("y", 60)))
	lines := wrap(long)
	require.Equal(t, long, strings.Join(lines, ""))
	for _, l := range lines {
		require.LessOrEqual(t, utf8.RuneCountInString(l), maxLine)
	}
}

func TestSVG(t *testing.T) {
	var b strings.Builder
	require.NoError(t, WriteSVG(&b, sample()))
	var svg struct {
		XMLName xml.Name  `xml:"svg"`
		Texts   []string  `xml:"text"`
		Rects   []xmlRect `xml:"rect"`
	}
	require.NoError(t, xml.Unmarshal([]byte(b.String()), &svg))
	d := layout(sample())
	require.Len(t, svg.Texts, len(d.texts))
	require.Len(t, svg.Rects, 1+len(d.rects))
	for i, text := range d.texts {
		require.Equal(t, text.text, svg.Texts[i])
	}
	require.Equal(t, blue, svg.Rects[1].Fill)
	full := errors.New("full")
	require.ErrorIs(t, WriteSVG(failing{full}, sample()), full)
	require.ErrorIs(t, WritePNG(failing{full}, sample()), full)
}

type xmlRect struct {
	Fill string `xml:"fill,attr"`
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// Every bar is there in its colour, and every text has left ink in its place.
func TestPNG(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, WritePNG(&b, sample()))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	d := layout(sample())
	require.Equal(t, image.Pt(int(d.width*pngScale), int(d.height*pngScale)), img.Bounds().Size())
	ink := func(x0, y0, x1, y1 float64, want color.Color) bool {
		for y := int(y0 * pngScale); y < int(y1*pngScale); y++ {
			for x := int(x0 * pngScale); x < int(x1*pngScale); x++ {
				if color.NRGBAModel.Convert(img.At(x, y)) == want {
					return true
				}
			}
		}
		return false
	}
	for _, r := range d.rects {
		if r.w >= 3 {
			require.True(t, ink(r.x, r.y, r.x+r.w, r.y+r.h, parse(r.colour)), r)
		}
	}
	for _, s := range d.texts {
		require.True(t, ink(s.x, s.y-s.size, s.x+s.width, s.y+2, color.NRGBA{A: 255}), s)
	}
	require.False(t, ink(0, 0, d.width, 1, color.NRGBA{A: 255}))
}

func TestPNGTooLarge(t *testing.T) {
	bars := make([]Bar, 3_000)
	for i := range bars {
		bars[i].Label = long
	}
	charts := []Chart{{Panels: []Panel{{Bars: bars}}}}
	require.ErrorIs(t, WritePNG(failing{}, charts), ErrTooLarge)
	var b bytes.Buffer
	require.NoError(t, WriteSVG(&b, charts))
}

// The font can be read, and has what tables and units are written with.
func TestFont(t *testing.T) {
	require.Positive(t, width("1", fontSize))
	withFace(fontSize, func(f font.Face) {
		for _, r := range "µ×→±%—–−üé" {
			a, ok := f.GlyphAdvance(r)
			require.True(t, ok && a > 0, "%c", r)
		}
	})
	for _, c := range []string{blue, red, green} {
		require.Equal(t, c, fmt.Sprintf("#%02x%02x%02x", parse(c).R, parse(c).G, parse(c).B))
	}
}
