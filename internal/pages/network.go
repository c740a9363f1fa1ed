package pages

import (
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// Network is a network as a device executes it.
type Network struct {
	Title string
	About []string
	Steps []Step
	Edges []string // paths between the steps
}

// Step is a step of the drawing. Its block is the wider the more values come out of it.
type Step struct {
	Name, Kind, Output, Kernel string
	From                       []int          // the steps whose outputs it reads, −1 for the input
	Values                     int            // of its output
	Precision                  plan.Precision // 0 where it multiplies nothing
	Work                       int64          // multiplications
	Micros, Share              float64

	index int
}

// The places of a drawing, in pixels.
const (
	rowHeight  = 50
	top        = 12
	blockLeft  = 90
	blockMost  = 120
	textLeft   = blockLeft + blockMost + 16
	outputLeft = textLeft + 330
	shareLeft  = outputLeft + 170
	shareMost  = 120
	width      = shareLeft + shareMost + 210 // what the page shows without a scrollbar

	// Characters that there is room for.
	nameLength   = 36
	kernelLength = 120
)

func (n *Network) Width() int  { return width }
func (n *Network) Height() int { return top + rowHeight*len(n.Steps) + 8 }

// Write writes the page, completely or not at all.
func (n *Network) Write(path string) error {
	n.Edges = nil
	for i := range n.Steps {
		s := &n.Steps[i]
		s.index = i
		for _, from := range s.From {
			n.Edges = append(n.Edges, edge(from, i))
		}
	}
	return write(path, "network", n)
}

// edge draws the way of a tensor: straight to the next step, else around those between.
func edge(from, to int) string {
	x := blockLeft + blockMost/2
	below, above := top+rowHeight*from+24, top+rowHeight*to
	if from == to-1 {
		return fmt.Sprintf("M%d %dV%d", x, below, above)
	}
	out := max(8, blockLeft-14-6*(to-from))
	from24, to12 := below-12, above+12
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", blockLeft, from24, out, from24, out, to12, blockLeft, to12)
}

func (s Step) Y() int     { return top + rowHeight*s.index }
func (s Step) TextY() int { return s.Y() + 17 }

// KernelY is the place of the kernel, which has a line of its own.
func (s Step) KernelY() int { return s.Y() + 34 }

// Width grows with the logarithm of the values.
func (s Step) Width() int {
	return min(blockMost, 14+int(6*math.Log2(float64(max(1, s.Values)))))
}

func (s Step) X() int          { return blockLeft + (blockMost-s.Width())/2 }
func (s Step) TextX() int      { return textLeft }
func (s Step) OutputX() int    { return outputLeft }
func (s Step) ShareX() int     { return shareLeft }
func (s Step) ShareWidth() int { return int(math.Round(shareMost * s.Share)) }
func (s Step) ShareTextX() int { return shareLeft + s.ShareWidth() + 8 }

// Percent is the share of the time.
func (s Step) Percent() float64 { return 100 * s.Share }

// Class is the colour.
func (s Step) Class() string {
	switch {
	case s.Precision == 0:
		return "other"
	case s.Precision == plan.Binary:
		return "binary"
	case s.Precision == plan.Float:
		return "float"
	}
	return "integer"
}

// Short is the name, cut to what there is room for.
func (s Step) Short() string { return cut(s.Name, nameLength) }

// ShortKernel is the kernel, cut to the width of the drawing.
func (s Step) ShortKernel() string { return cut(s.Kernel, kernelLength) }

func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// Time is the time of the step.
func (s Step) Time() string {
	if s.Micros < 1000 {
		return fmt.Sprintf("%.3g µs", s.Micros)
	}
	return fmt.Sprintf("%.3g ms", s.Micros/1000)
}

// Multiplications says how many there are, and of what precision; "" for none.
func (s Step) Multiplications() string {
	switch {
	case s.Work == 0:
		return ""
	case s.Work < 1e6:
		return fmt.Sprintf("%.3gk %v", float64(s.Work)/1e3, s.Precision)
	case s.Work < 1e9:
		return fmt.Sprintf("%.3gM %v", float64(s.Work)/1e6, s.Precision)
	}
	return fmt.Sprintf("%.3gG %v", float64(s.Work)/1e9, s.Precision)
}
