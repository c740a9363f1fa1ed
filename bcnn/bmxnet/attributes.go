package bmxnet

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/text"
)

// maxSide is the largest number of a window, as bcnn has it.
const maxSide = 1 << 16

// attributes are those of a node. What is none of what is asked for fails: see package try.
type attributes map[string]string

func (n *node) attributes() attributes { return n.attrs }

func (a attributes) fail(name, want string) {
	try.Failf("%s is %s, want %s", name, text.Quote(a[name]), want)
}

// text returns an attribute, or what it is by default.
func (a attributes) text(name, otherwise string) string {
	if v, ok := a[name]; ok && v != "None" {
		return v
	}
	return otherwise
}

func (a attributes) flag(name string, otherwise bool) bool {
	switch a.text(name, "") {
	case "":
		return otherwise
	case "True", "true", "1":
		return true
	case "False", "false", "0":
		return false
	}
	a.fail(name, "True or False")
	return otherwise
}

// integer returns a number from least to most.
func (a attributes) integer(name string, otherwise, least, most int) int {
	s := a.text(name, "")
	if s == "" {
		return otherwise
	}
	v, err := strconv.Atoi(strings.TrimSuffix(s, "L"))
	if err != nil || v < least || v > most {
		a.fail(name, fmt.Sprintf("a number from %d to %d", least, most))
	}
	return v
}

func (a attributes) number(name string, otherwise float64) float32 {
	s := a.text(name, "")
	if s == "" {
		return float32(otherwise)
	}
	v, err := strconv.ParseFloat(s, 32)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		a.fail(name, "a number")
	}
	return float32(v)
}

// list returns numbers such as (3, 3), nil if there are none.
func (a attributes) list(name string, least, most int) []int {
	s := strings.TrimSpace(a.text(name, ""))
	if s == "" {
		return nil
	}
	inner := strings.Trim(s, "()[]")
	var out []int
	for part := range strings.SplitSeq(inner, ",") {
		part = strings.TrimSuffix(strings.TrimSpace(part), "L")
		if part == "" && len(out) > 0 || inner == "" {
			continue
		}
		v, err := strconv.Atoi(part)
		if err != nil || v < least || v > most || len(out) == maxDims {
			a.fail(name, fmt.Sprintf("numbers from %d to %d", least, most))
		}
		out = append(out, v)
	}
	return out
}

// pair returns the two numbers of an attribute, or twice what they are by default.
func (a attributes) pair(name string, otherwise, least int) (int, int) {
	switch v := a.list(name, least, maxSide); len(v) {
	case 0:
		return otherwise, otherwise
	case 2:
		return v[0], v[1]
	}
	a.fail(name, "two numbers: one-dimensional and three-dimensional layers are not supported")
	return otherwise, otherwise
}

// window returns the window of a convolution or a pool.
func (a attributes) window() bcnn.Window {
	var w bcnn.Window
	w.KH, w.KW = a.pair("kernel", 0, 1)
	w.StrideH, w.StrideW = a.pair("stride", 1, 1)
	w.DilationH, w.DilationW = a.pair("dilate", 1, 1)
	w.Pad.Top, w.Pad.Left = a.pair("pad", 0, 0)
	w.Pad.Bottom, w.Pad.Right = w.Pad.Top, w.Pad.Left
	return w
}

// nchw demands the layout that all else here is written for.
func (a attributes) nchw() {
	if l := a.text("layout", "NCHW"); l != "NCHW" {
		a.fail("layout", "NCHW")
	}
}
