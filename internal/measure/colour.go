package measure

import (
	"fmt"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/chart"
)

// kinds are those of parts of bars. Each has its colour, whatever else a chart shows, so that
// charts beside each other agree. New ones come last.
var kinds = append([]string{
	"conv, binary", "conv, 8-bit", "dense, binary", "dense, 8-bit", "maxpool", "binarize", wholeRuns,
	"affine", "sign", "add", "avgpool", "quantize", "table", "concat", "flatten", "matmul, binary", "matmul, float32",
	"channels", "pixels", "resample", "topk", "transpose", "mul", "min", "max", "mask",
	"conv, float32", "dense, float32",
}, otherBits()...)

// otherBits are the kinds of integers of other numbers of bits.
func otherBits() (list []string) {
	for bits := plan.Binary + 1; bits <= 16; bits++ {
		for _, kind := range []string{"conv", "dense"} {
			if bits != 8 {
				list = append(list, StepTime{Kind: kind, Precision: bits}.kindOf())
			}
		}
	}
	return list
}

// wholeRuns is the kind of what is no step.
const wholeRuns = "mean of the whole runs"

// unknown is the colour of kinds of another version.
const unknown = "#bbbbbb"

// colourOf returns the colour of a kind.
func colourOf(kind string) string {
	i := slices.Index(kinds, kind)
	switch {
	case i < 0:
		return unknown
	case i < len(chart.Palette):
		return chart.Palette[i]
	}
	// Hues a golden section apart, lighter in each second kind.
	hue := math.Mod(float64(i)*0.618034, 1)
	light := 0.35 + 0.25*float64(i%2)
	var rgb [3]int
	for c := range rgb {
		at := math.Mod(hue*6+float64(4*(3-c)%6), 6) // of a channel on its way up and down
		rgb[c] = int(255 * (light + 0.3*(min(max(2-math.Abs(at-3), 0), 1)-0.5)))
	}
	return fmt.Sprintf("#%02x%02x%02x", rgb[0], rgb[1], rgb[2])
}

// part returns a part of a bar in the colour of its kind.
func part(length float64, kind string) chart.Part {
	return chart.Part{Length: length, Kind: kind, Colour: colourOf(kind)}
}
