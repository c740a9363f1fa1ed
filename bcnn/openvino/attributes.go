package openvino

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/text"
)

// maxSide is the largest number of a window, and maxValues the most values of a tensor, as bcnn
// has them.
const (
	maxSide   = 1 << 16
	maxValues = 1 << 28
)

// attributes are those of a layer, and remember which were read. What is none of what is asked
// for fails: see package try.
type attributes struct {
	list map[string]string
	read map[string]bool
}

func newAttributes(list map[string]string) *attributes {
	return &attributes{list, make(map[string]bool, len(list))}
}

// checkRead fails if an attribute was not read, which could change what the layer computes.
func (a *attributes) checkRead() {
	least := ""
	for name := range a.list {
		if !a.read[name] && (least == "" || name < least) {
			least = name
		}
	}
	if least != "" {
		try.Failf("its attribute %s, %s, is not supported", text.Escape(short(least)), text.Quote(short(a.list[least])))
	}
}

func (a *attributes) fail(name, want string) {
	if _, ok := a.list[name]; !ok {
		try.Failf("its attribute %s is missing, want %s", name, want)
	}
	try.Failf("its attribute %s is %s, want %s", name, text.Quote(short(a.list[name])), want)
}

// ignore marks attributes that change nothing.
func (a *attributes) ignore(names ...string) {
	for _, name := range names {
		a.read[name] = true
	}
}

// text returns an attribute, or what it is by default.
func (a *attributes) text(name, otherwise string) string {
	a.read[name] = true
	if v, ok := a.list[name]; ok {
		return strings.TrimSpace(v)
	}
	return otherwise
}

// only demands that an attribute, if it is there, is one of some words.
func (a *attributes) only(name string, words ...string) {
	v := a.text(name, words[0])
	for _, w := range words {
		if v == w {
			return
		}
	}
	a.fail(name, strings.Join(words, " or "))
}

func (a *attributes) flag(name string, otherwise bool) bool {
	switch a.text(name, "") {
	case "true", "True", "1":
		return true
	case "false", "False", "0":
		return false
	case "":
		if _, ok := a.list[name]; !ok {
			return otherwise
		}
	}
	a.fail(name, "true or false")
	return false
}

// integer returns a number from least to most; one that has no default must be there.
func (a *attributes) integer(name string, otherwise string, least, most int) int {
	v, err := strconv.Atoi(a.text(name, otherwise))
	if err != nil || v < least || v > most {
		a.fail(name, fmt.Sprintf("a number from %d to %d", least, most))
	}
	return v
}

func (a *attributes) number(name, otherwise string) float32 {
	v, err := strconv.ParseFloat(a.text(name, otherwise), 32)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		a.fail(name, "a finite number")
	}
	return float32(v)
}

// numbers returns a list such as "1,2", which may be empty.
func (a *attributes) numbers(name string, least, most int) []int {
	s := a.text(name, "")
	if s == "" {
		return nil
	}
	parts := strings.SplitN(s, ",", maxDims+1)
	list := make([]int, len(parts))
	for i, part := range parts {
		v, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || v < least || v > most || i == maxDims {
			a.fail(name, fmt.Sprintf("at most %d numbers from %d to %d", maxDims, least, most))
		}
		list[i] = v
	}
	return list
}

// pair returns the two numbers of an attribute. Without a default they must be there.
func (a *attributes) pair(name string, least int, otherwise ...int) (int, int) {
	list := a.numbers(name, least, maxSide)
	if len(list) == 0 && len(otherwise) > 0 {
		return otherwise[0], otherwise[0]
	}
	if len(list) != 2 {
		a.fail(name, fmt.Sprintf("two numbers from %d to %d: one-dimensional and three-dimensional windows are not supported", least, maxSide))
	}
	return list[0], list[1]
}

// window returns strides, dilations and padding of a window of a size over an image.
func (a *attributes) window(kh, kw int, in bcnn.Shape, dilated bool) bcnn.Window {
	w := bcnn.Window{KH: kh, KW: kw, DilationH: 1, DilationW: 1}
	if kh < 1 || kw < 1 || kh > maxSide || kw > maxSide {
		try.Failf("a kernel of %d×%d, want 1 to %d rows and columns", kh, kw, maxSide)
	}
	w.StrideH, w.StrideW = a.pair("strides", 1, 1)
	if dilated {
		w.DilationH, w.DilationW = a.pair("dilations", 1, 1)
	}
	top, left := a.pair("pads_begin", 0, 0)
	bottom, right := a.pair("pads_end", 0, 0)
	switch auto := a.text("auto_pad", "explicit"); auto {
	case "explicit", "notset":
		w.Pad = bcnn.Padding{Top: top, Left: left, Bottom: bottom, Right: right}
	case "valid":
	case "same_upper", "same_lower":
		lower := auto == "same_lower"
		w.Pad.Top, w.Pad.Bottom = same(in.H, kh, w.StrideH, w.DilationH, lower)
		w.Pad.Left, w.Pad.Right = same(in.W, kw, w.StrideW, w.DilationW, lower)
	default:
		a.fail("auto_pad", "explicit, valid, same_upper or same_lower")
	}
	return w
}

// same returns the padding with which a side of a size gives ⌈size/stride⌉ positions. Of an odd
// number the larger half is behind, or with lower in front.
func same(size, kernel, stride, dilation int, lower bool) (begin, end int) {
	out := (size + stride - 1) / stride
	all := max(0, (out-1)*stride+(kernel-1)*dilation+1-size)
	if begin = all / 2; lower {
		begin = all - begin
	}
	return begin, all - begin
}
