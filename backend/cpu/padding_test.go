package cpu

import (
	"fmt"
	"testing"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
)

// TestWindowsOfPadding has images that are smaller than the padding around them, so that of some taps no
// output reads the image, with strides that step over it, and dilation.
func TestWindowsOfPadding(t *testing.T) {
	all := []int{3, 64, 100}
	if testing.Short() {
		all = all[:2]
	}
	forEach(t, func(t *testing.T, opts backend.Options) {
		for _, size := range [][2]int{{1, 1}, {1, 3}, {2, 1}, {3, 2}} {
			for _, w := range []bcnn.Window{
				{KH: 3, KW: 3, Pad: bcnn.Padding{Top: 3, Left: 3, Bottom: 3, Right: 3}},
				{KH: 5, KW: 2, Pad: bcnn.Padding{Top: 4, Left: 5}},
				{KH: 1, KW: 4, Pad: bcnn.Padding{Left: 7, Right: 1}},
				{KH: 3, KW: 3, StrideH: 3, StrideW: 4, Pad: bcnn.Padding{Top: 1, Left: 5, Bottom: 4, Right: 2}},
				{KH: 2, KW: 3, DilationH: 3, DilationW: 4, Pad: bcnn.Padding{Top: 3, Left: 8, Bottom: 3, Right: 8}},
				{KH: 3, KW: 3, Pad: bcnn.Padding{Bottom: 4, Right: 6}},
			} {
				for _, channels := range all {
					t.Run(fmt.Sprintf("%dx%dx%d/%+v", size[0], size[1], channels, w), func(t *testing.T) {
						p := newPlanner(1, input(bcnn.Float32, size[0], size[1], channels))
						p.sign()
						p.conv(convOptions{window: w, out: 64, padValue: -1})
						requireReference(t, p, opts)
						p = newPlanner(1, input(bcnn.Float32, size[0], size[1], channels))
						p.sign()
						p.conv(convOptions{window: w, out: 20, padValue: 1, float: true})
						requireReference(t, p, opts)
						p = newPlanner(1, input(bcnn.Uint8, size[0], size[1], channels))
						p.conv(convOptions{window: w, out: 64, float: true})
						requireReference(t, p, opts)
					})
				}
			}
		}
	})
}
