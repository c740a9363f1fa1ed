// Package chart draws charts of horizontal bars as SVG and PNG. It measures the
// texts with the font that PNG is drawn with, so that none of them is cut.
//
// gonum.org/v1/plot could draw the same, but its canvases link PDF, TeX and fonts
// of several megabytes into the command.
package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/internal/text"
)

// Chart is a list of panels of bars, all on one scale.
type Chart struct {
	Title  string
	Axis   string  // what the lengths are, with their unit
	Least  float64 // where the axis ends, if no bar is longer
	Mark   string  // what the marks of bars are; empty where there are none
	Ticks  bool    // marks are ticks at the edges of bars, not lines across them
	Panels []Panel
	Footer []string // lines below the panels
}

// Panel is a group of bars with an axis below it.
type Panel struct {
	Title string // may be empty
	Bars  []Bar
}

// Bar is a bar of parts that follow each other.
type Bar struct {
	Label, Note string // before and behind the bar
	Parts       []Part
	Mark        float64 // length at which a line crosses the bar, if positive
}

// Part is a part of a bar. The legend names the kind of each colour, such as #4477aa.
type Part struct {
	Length float64
	Kind   string
	Colour string
}

func (b Bar) end() float64 {
	sum := 0.0
	for _, p := range b.Parts {
		sum += p.Length
	}
	return max(sum, b.Mark)
}

// scale returns the end of a chart's axis and the distance of its ticks, which
// is 1, 2 or 5 times a power of ten.
func (c Chart) scale() (end, step float64) {
	end = c.Least
	for _, p := range c.Panels {
		for _, b := range p.Bars {
			end = max(end, b.end())
		}
	}
	if !(end > 0) {
		end = 1
	}
	const ticks = 5
	step = math.Pow(10, math.Floor(math.Log10(end/ticks)))
	for _, factor := range []float64{2, 2.5, 2} { // 2, 5, 10 times
		if end/step > ticks+1 {
			step *= factor
		}
	}
	return math.Ceil(end/step-1e-9) * step, step
}

// Sizes in pixels.
const (
	fontSize  = 12
	titleSize = 15
	row       = 20 // height of a line
	gap       = 8
	barWidth  = 440
	tick      = 4
)

// maxLine is the number of characters after which labels and titles go on in
// another line.
const maxLine = 100

// Palette are colours of kinds, which colour-blind readers tell apart.
var Palette = []string{
	"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#882255", "#ddaa33", "#117733", "#000000",
}

const (
	black = "#000000"
	grey  = "#dddddd"
	white = "#ffffff"
)

// drawing is what both formats draw: rectangles first, then texts.
type drawing struct {
	width, height float64
	rects         []rectangle
	texts         []line
}

type rectangle struct {
	x, y, w, h float64
	colour     string
}

// line is a line of text whose base line begins at x, y.
type line struct {
	x, y, width, size float64
	text              string
}

func (d *drawing) rect(x, y, w, h float64, colour string) {
	d.rects = append(d.rects, rectangle{x, y, w, h, colour})
	d.width, d.height = max(d.width, x+w+gap), max(d.height, y+h+gap)
}

// put writes a line, aligned at x: 0 begins there, 1 ends there, 0.5 is centred.
func (d *drawing) put(x, y, align, size float64, s string) {
	if s == "" {
		return
	}
	w := width(s, size)
	d.texts = append(d.texts, line{x - align*w, y + row*0.7, w, size, s})
	d.width, d.height = max(d.width, x-align*w+w+gap), max(d.height, y+row+gap)
}

// layout places the charts one below the other.
func layout(charts []Chart) *drawing {
	var kinds []Part // one of each
	left := 0.0
	for _, c := range charts {
		for _, p := range c.Panels {
			for _, b := range p.Bars {
				for _, s := range wrap(b.Label) {
					left = max(left, width(s, fontSize))
				}
				for _, part := range b.Parts {
					if !slices.ContainsFunc(kinds, func(k Part) bool { return k.Kind == part.Kind }) {
						kinds = append(kinds, part)
					}
				}
			}
		}
		for _, n := range c.ticks() { // the first is centred under the start of the bars
			left = max(left, width(n.label, fontSize)/2)
		}
	}
	left += 2 * gap

	d := &drawing{}
	y := d.legend(kinds, charts)
	for _, c := range charts {
		y += gap
		for _, s := range wrap(c.Title) {
			d.put(gap, y, 0, titleSize, s)
			y += row
		}
		for _, p := range c.Panels {
			y = d.panel(c, p, left, y)
		}
		for _, f := range c.Footer {
			for _, s := range wrap(f) {
				y += gap / 2
				d.put(gap, y, 0, fontSize, s)
				y += row
			}
		}
	}
	d.height = max(d.height, y)
	return d
}

// legend writes what the colours and the marks are, in lines of about the width
// of a chart, and returns where it ends.
func (d *drawing) legend(kinds []Part, charts []Chart) float64 {
	x, y := float64(gap), float64(gap)
	entry := func(name string, swatch func()) {
		next := x + row + width(name, fontSize) + 2*gap
		if next > 2*barWidth && x > gap {
			next -= x - gap
			x, y = gap, y+row
		}
		swatch()
		d.put(x+row-2, y, 0, fontSize, clean(name))
		x = next
	}
	for _, kind := range kinds {
		entry(kind.Kind, func() { d.rect(x, y+4, 12, 12, kind.Colour) })
	}
	var marks []string
	for _, c := range charts {
		if c.Mark != "" && !slices.Contains(marks, c.Mark) {
			marks = append(marks, c.Mark)
			entry(c.Mark, func() { d.mark(c, x+6, y) })
		}
	}
	return y + row
}

// panel draws a panel with its axis and returns where it ends.
func (d *drawing) panel(c Chart, p Panel, left, y float64) float64 {
	y += gap / 2
	for _, s := range wrap(p.Title) {
		d.put(gap, y, 0, fontSize, s)
		y += row
	}
	end, _ := c.scale()
	pixels := barWidth / end
	top, height := y, 0
	for _, b := range p.Bars {
		height += max(1, len(wrap(b.Label)))
	}
	bottom := top + float64(height*row)
	for _, n := range c.ticks() {
		d.rect(left+n.at*pixels, top, 1, bottom-top+tick, grey)
		d.put(left+n.at*pixels, bottom+tick-2, 0.5, fontSize, n.label)
	}
	for _, b := range p.Bars {
		lines := wrap(b.Label)
		for i, s := range lines {
			d.put(left-gap, y+float64(i*row), 1, fontSize, s)
		}
		x := left
		for i, part := range b.Parts {
			w := part.Length * pixels
			d.rect(x, y+3, w, row-6, part.Colour)
			if i > 0 && w > 2 { // parts of one colour stay apart
				d.rect(x, y+3, 0.5, row-6, white)
			}
			x += w
		}
		if b.Mark > 0 {
			d.mark(c, left+b.Mark*pixels, y)
		}
		d.put(left+barWidth+gap, y, 0, fontSize, clean(b.Note))
		y += float64(max(1, len(lines)) * row)
	}
	d.rect(left, top, 1, bottom-top, black)
	d.put(left+barWidth+2*gap+width("0", fontSize)*4, bottom+tick-2, 0, fontSize, clean(c.Axis))
	return bottom + tick + row
}

// mark draws a mark of a bar whose line begins at y.
func (d *drawing) mark(c Chart, x, y float64) {
	const edge = 5
	if !c.Ticks {
		d.rect(x-1, y+1, 2, row-2, black)
		return
	}
	d.rect(x-1, y+1, 2, edge, black)
	d.rect(x-1, y+row-1-edge, 2, edge, black)
}

type number struct {
	at    float64
	label string
}

// ticks returns the numbers below the axis.
func (c Chart) ticks() []number {
	end, step := c.scale()
	var list []number
	for i := 0; float64(i)*step <= end*(1+1e-9); i++ {
		list = append(list, number{float64(i) * step, fmt.Sprintf("%.6g", float64(i)*step)})
	}
	return list
}

// clean returns a text in one line of what prints.
func clean(s string) string { return text.Escape(s) }

// wrap breaks a text into lines, behind a + or a space where there is one.
func wrap(s string) []string {
	var lines []string
	rest := []rune(clean(s))
	for len(rest) > maxLine {
		at := maxLine
		for i := maxLine; i > maxLine/2; i-- {
			if strings.ContainsRune("+ ", rest[i-1]) {
				at = i
				break
			}
		}
		lines, rest = append(lines, string(rest[:at])), rest[at:]
	}
	if len(rest) > 0 {
		lines = append(lines, string(rest))
	}
	return lines
}
