package jpeg

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	stdjpeg "image/jpeg"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// same requires the pixels that image/jpeg has, if it reads the file, and reports whether it does.
func same(t *testing.T, data []byte, got image.Image) bool {
	want, err := stdjpeg.Decode(bytes.NewReader(data))
	if err != nil {
		return false
	}
	require.Equal(t, want.Bounds(), got.Bounds())
	require.IsType(t, want, got)
	size := want.Bounds().Size()
	rows := func(a, b []byte, strideA, strideB, w, h int) {
		for y := range h {
			require.Equal(t, a[y*strideA:][:w], b[y*strideB:][:w], "row %d", y)
		}
	}
	switch want := want.(type) {
	case *image.Gray:
		rows(want.Pix, got.(*image.Gray).Pix, want.Stride, got.(*image.Gray).Stride, size.X, size.Y)
	case *image.RGBA:
		rows(want.Pix, got.(*image.RGBA).Pix, want.Stride, got.(*image.RGBA).Stride, 4*size.X, size.Y)
	case *image.CMYK:
		rows(want.Pix, got.(*image.CMYK).Pix, want.Stride, got.(*image.CMYK).Stride, 4*size.X, size.Y)
	case *image.YCbCr:
		got := got.(*image.YCbCr)
		require.Equal(t, want.SubsampleRatio, got.SubsampleRatio)
		rows(want.Y, got.Y, want.YStride, got.YStride, size.X, size.Y)
		last := want.COffset(size.X-1, size.Y-1)
		w, h := last%want.CStride+1, last/want.CStride+1
		rows(want.Cb, got.Cb, want.CStride, got.CStride, w, h)
		rows(want.Cr, got.Cr, want.CStride, got.CStride, w, h)
	default:
		require.Fail(t, "an image of another type")
	}
	return true
}

const (
	adobeRGB  = "\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"
	adobeYCC  = "\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x01"
	adobeYCCK = "\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x02"
	jfif      = "\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
)

// kinds are ways of coding; those that image/jpeg reads must have its pixels.
var kinds = []struct {
	name     string
	sampling []byte
	ids      string
	segments string
	standard bool
}{
	{"grey", []byte{0x11}, "", "", true},
	{"grey, sampled 2×2", []byte{0x22}, "", jfif, true},
	{"4:4:4", []byte{0x11, 0x11, 0x11}, "", jfif, true},
	{"4:4:0", []byte{0x12, 0x11, 0x11}, "", "", true},
	{"4:2:2", []byte{0x21, 0x11, 0x11}, "", adobeYCC, true},
	{"4:2:0", []byte{0x22, 0x11, 0x11}, "", "", true},
	{"4:1:1", []byte{0x41, 0x11, 0x11}, "", "", true},
	{"4:1:0", []byte{0x42, 0x11, 0x11}, "", "", true},
	{"4:4:4 of 2×1", []byte{0x21, 0x21, 0x21}, "", "", true},
	{"4:2:2 of 2×2", []byte{0x22, 0x12, 0x12}, "", "", true},
	{"RGB", []byte{0x11, 0x11, 0x11}, "", adobeRGB, true},
	{"RGB by names", []byte{0x21, 0x11, 0x11}, "RGB", "", true},
	{"names of RGB in JFIF", []byte{0x22, 0x11, 0x11}, "RGB", jfif, true},
	{"CMYK", []byte{0x11, 0x11, 0x11, 0x11}, "", adobeRGB, true},
	{"CMYK, subsampled", []byte{0x22, 0x11, 0x11, 0x22}, "", adobeRGB, true},
	{"YCCK", []byte{0x11, 0x11, 0x11, 0x11}, "", adobeYCCK, true},
	{"YCCK, subsampled", []byte{0x22, 0x11, 0x11, 0x22}, "", adobeYCCK, true},
	{"CMYK without Adobe", []byte{0x11, 0x11, 0x11, 0x11}, "", "", false},
	{"CMYK, sampled oddly", []byte{0x12, 0x11, 0x22, 0x21}, "", adobeRGB, false},
	{"2×2, 1×1, 1×2", []byte{0x22, 0x11, 0x12}, "", "", false},
	{"2×2, 2×1, 1×2", []byte{0x22, 0x21, 0x12}, "", "", false},
	{"3×1", []byte{0x31, 0x11, 0x11}, "", "", false},
	{"1×4", []byte{0x14, 0x11, 0x11}, "", "", false},
	{"1×1, 2×1, 1×1", []byte{0x11, 0x21, 0x11}, "", "", false},
	{"3×1, 2×1, 1×1", []byte{0x31, 0x21, 0x11}, "", "", false},
	{"RGB, sampled oddly", []byte{0x11, 0x22, 0x21}, "", adobeRGB, false},
}

// files of a kind: the same coefficients in several ways.
func filesOf(k int, w, h int, seed uint64) (m made, coded map[string][]byte) {
	kind := kinds[k]
	m = made{w: w, h: h, sampling: kind.sampling, ids: kind.ids, segments: kind.segments}
	m.draw(seed)
	coded = map[string][]byte{}
	for _, frame := range []byte{startOfFrame0, startOfFrame1, startOfFrame2} {
		for _, apart := range []bool{false, true} {
			for _, restart := range []int{0, 1, 3} {
				m.frame, m.apart, m.restart, m.script = frame, apart, restart, usual
				coded[fmt.Sprintf("%s %d×%d, frame %x, apart %v, restarts %d", kind.name, w, h, frame, apart, restart)] = m.encode()
			}
		}
	}
	return m, coded
}

// At full size the pixels are those of image/jpeg, for all that it reads, and those of the same
// coefficients in another way of coding for what it does not: samplings, and restarts in scans of
// one component (which it counts wrongly).
func TestStandard(t *testing.T) {
	sizes := []image.Point{{1, 1}, {9, 9}, {16, 16}, {17, 40}, {33, 7}, {70, 65}}
	read, alone := 0, 0
	for k, kind := range kinds {
		for i, size := range sizes {
			_, coded := filesOf(k, size.X, size.Y, uint64(100*k+i))
			var first image.Image
			for name, data := range coded {
				img, err := decode(data, 1)
				require.NoError(t, err, name)
				switch {
				case same(t, data, img):
					read++
				case kind.standard:
					require.NotContains(t, name, "apart false, restarts 0", "image/jpeg reads these")
					alone++
				}
				if first == nil {
					first = img
				}
				require.True(t, equalPixels(first, img), name)
				for _, scale := range []int{2, 4, 8} {
					_, err := decode(data, scale)
					require.NoError(t, err, name)
				}
			}
		}
	}
	require.Greater(t, read, 1000)
	require.Greater(t, alone, 100)
}

func sorted(m map[string][]byte) []string { return slices.Sorted(maps.Keys(m)) }

func equalPixels(a, b image.Image) bool {
	size := a.Bounds()
	for y := range size.Max.Y {
		for x := range size.Max.X {
			if a.At(x, y) != b.At(x, y) {
				return false
			}
		}
	}
	return a.Bounds() == b.Bounds()
}

// definition computes a pixel of a component from the coefficients, in float64.
func (m *made) definition(i, x, y int) float64 {
	h, v := int(m.sampling[i]>>4), int(m.sampling[i]&15)
	x, y = x*h/m.maxH, y*v/m.maxV
	b := &m.blocks[i][y/8*m.across[i]+x/8]
	sum := 128.0
	for k, c := range b {
		if c != 0 {
			place := int(zigzag[k])
			sum += float64(c) * float64(m.quantised[k]) * basis(8, place/8, y%8) * basis(8, place%8, x%8)
		}
	}
	return max(0, min(sum, 255))
}

// All samplings have the values of the definition, but for rounding: those of subsampled
// components are repeated.
func TestSamplings(t *testing.T) {
	for k, kind := range kinds {
		m, coded := filesOf(k, 37, 29, uint64(k))
		for name, data := range coded {
			if !strings.Contains(name, "apart false, restarts 3") {
				continue
			}
			img, err := decode(data, 1)
			require.NoError(t, err, name)
			for y := range m.h {
				for x := range m.w {
					var got []uint8
					switch c := img.At(x, y).(type) {
					case color.Gray:
						got = []uint8{c.Y}
					case color.YCbCr:
						got = []uint8{c.Y, c.Cb, c.Cr}
					case color.RGBA:
						got = []uint8{c.R, c.G, c.B}
					case color.CMYK:
						if kind.segments == adobeYCCK {
							got = []uint8{0, 0, 0, 255 - c.K}
						} else if got = []uint8{c.C, c.M, c.Y, c.K}; kind.segments != "" {
							for i := range got {
								got[i] = 255 - got[i]
							}
						}
					}
					require.Len(t, got, len(m.sampling))
					for i, v := range got {
						if kind.segments == adobeYCCK && i < 3 {
							continue // compared with image/jpeg
						}
						require.LessOrEqual(t, math.Abs(float64(v)-m.definition(i, x, y)), 1.0, "%s, (%d, %d), component %d", name, x, y, i)
					}
				}
			}
		}
	}
}

// What is changed at random and still read by image/jpeg is read, with its pixels; but for codes
// that no file may have, of which the tables of these have many.
func TestStandardMutated(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	both, only := 0, 0
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	for k, kind := range kinds {
		_, coded := filesOf(k, 40, 33, uint64(k))
		for _, name := range sorted(coded) {
			if !kind.standard || strings.Contains(name, "apart true") || strings.Contains(name, "frame c2") && !strings.Contains(name, "restarts 0") {
				continue
			}
			for range rounds {
				data := bytes.Clone(coded[name])
				for range 1 + rng.IntN(3) {
					data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
				}
				img, err := decode(data, 1)
				if err == nil && same(t, data, img) {
					both++
				} else if _, theirs := stdjpeg.Decode(bytes.NewReader(data)); err != nil && theirs == nil {
					only++ // ends of several blocks in a sequential file, or of more than there are
				}
			}
		}
	}
	require.Greater(t, both, 25*only)
	require.Greater(t, both, 200)
}
