package jpeg

import (
	"bytes"
	"image"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/num"
)

func files(t testing.TB) map[string][]byte {
	found := map[string][]byte{}
	names, err := filepath.Glob("testdata/*.jpg")
	require.NoError(t, err)
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		found[strings.TrimSuffix(filepath.Base(name), ".jpg")] = data
	}
	require.NotEmpty(t, found)
	return found
}

func goOn() error { return nil }

func decode(data []byte, scale int) (image.Image, error) {
	d, err := Open(bytes.NewReader(data), goOn)
	if err != nil {
		return nil, err
	}
	return d.Decode(scale)
}

// plane is a component with all its blocks.
type plane struct {
	pix           []byte
	stride, lines int
}

func planes(t *testing.T, img image.Image) []plane {
	switch img := img.(type) {
	case *image.Gray:
		return []plane{{img.Pix, img.Stride, len(img.Pix) / img.Stride}}
	case *image.YCbCr:
		return []plane{
			{img.Y, img.YStride, len(img.Y) / img.YStride},
			{img.Cb, img.CStride, len(img.Cb) / img.CStride},
			{img.Cr, img.CStride, len(img.Cr) / img.CStride},
		}
	}
	require.Fail(t, "an image of another type")
	return nil
}

// basis is the orthonormal DCT of n points.
func basis(n, u, x int) float64 {
	if u == 0 {
		return math.Sqrt(1 / float64(n))
	}
	return math.Sqrt(2/float64(n)) * math.Cos(float64(2*x+1)*float64(u)*math.Pi/float64(2*n))
}

// reduced computes the n×n pixels of a block from its 64, by the definition in float64.
func reduced(p plane, bx, by, n int) []float64 {
	out := make([]float64, n*n)
	for u := range n {
		for v := range n {
			f := 0.0
			for y := range 8 {
				for x := range 8 {
					f += (float64(p.pix[(8*by+y)*p.stride+8*bx+x]) - 128) * basis(8, v, y) * basis(8, u, x)
				}
			}
			for i := range out {
				out[i] += f * float64(n) / 8 * basis(n, v, i/n) * basis(n, u, i%n)
			}
		}
	}
	return out
}

// The images are those that the definition makes of the whole one, which is that of image/jpeg, but
// for the rounding of its pixels.
func TestDecode(t *testing.T) {
	for name, data := range files(t) {
		whole, err := decode(data, 1)
		require.NoError(t, err, name)
		if !strings.HasPrefix(name, "progressive") || !strings.HasSuffix(name, "restarts") {
			require.True(t, same(t, data, whole), "%s, which image/jpeg reads", name)
		}
		for _, scale := range []int{2, 4, 8} {
			img, err := decode(data, scale)
			require.NoError(t, err, name)
			size := whole.Bounds().Size()
			require.Equal(t, image.Pt((size.X+scale-1)/scale, (size.Y+scale-1)/scale), img.Bounds().Size(), name)
			if y, ok := whole.(*image.YCbCr); ok {
				require.Equal(t, y.SubsampleRatio, img.(*image.YCbCr).SubsampleRatio)
			}
			n, total, count := 8/scale, 0.0, 0
			first := planes(t, whole)[0]
			stride, lines := first.stride, first.lines
			for i, got := range planes(t, img) {
				want := planes(t, whole)[i]
				require.Equal(t, want.stride, got.stride*scale, name)
				require.Equal(t, want.lines, got.lines*scale, name)
				// Those that stand over are not all coded.
				for by := range (size.Y*want.lines/lines + 7) / 8 {
					for bx := range (size.X*want.stride/stride + 7) / 8 {
						for j, w := range reduced(want, bx, by, n) {
							d := float64(got.pix[(by*n+j/n)*got.stride+bx*n+j%n]) - 128 - w
							require.LessOrEqual(t, math.Abs(d), 2.0, "%s, 1/%d, component %d, block %d,%d", name, scale, i, bx, by)
							total, count = total+math.Abs(d), count+1
						}
					}
				}
			}
			require.Less(t, total/float64(count), 0.5, "%s, 1/%d", name, scale)
		}
	}
}

// Both orders of coding hold the same numbers.
func TestProgressive(t *testing.T) {
	all, compared := files(t), 0
	for name, data := range all {
		other, ok := strings.CutPrefix(name, "sequential")
		if !ok {
			continue
		}
		for _, scale := range []int{1, 2, 4, 8} {
			want, err := decode(data, scale)
			require.NoError(t, err)
			got, err := decode(all["progressive"+other], scale)
			require.NoError(t, err, other)
			require.Equal(t, want, got, "%s, 1/%d", other, scale)
			compared++
		}
	}
	require.NotZero(t, compared)
}

// Whatever is cut off or changed is an error or an image, never a crash; what is cut off is an error.
func TestBroken(t *testing.T) {
	for name, data := range files(t) {
		for n := range data {
			// Behind the headers one place in the scans is much like its neighbours.
			if testing.Short() && n > 1<<10 && n < len(data)-64 && n%37 != 0 {
				continue
			}
			_, err := decode(data[:n], 4)
			require.Error(t, err, "%s, %d bytes", name, n)
		}
	}
	_, err := decode(files(t)["optimised"], 3)
	require.ErrorContains(t, err, "a scale of 1/3")
}

func FuzzDecode(f *testing.F) {
	for _, data := range files(f) {
		for _, scale := range []byte{1, 2, 4, 8} {
			f.Add(data, scale)
		}
	}
	for k := range kinds {
		_, coded := filesOf(k, 17, 9, 1)
		for _, name := range sorted(coded) {
			f.Add(coded[name], byte(1))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, scale byte) {
		d, err := Open(bytes.NewReader(data), goOn)
		if err != nil || d.Size().X*d.Size().Y > 1<<16 { // image/jpeg takes seconds for many scans of a large one
			return
		}
		img, err := d.Decode(int(scale))
		if err == nil && d.scale == int(scale) {
			require.Equal(t, num.CeilDiv(d.width, int(scale)), img.Bounds().Dx())
			require.Equal(t, num.CeilDiv(d.height, int(scale)), img.Bounds().Dy())
		}
		// Of restarts in scans of one component image/jpeg may make other pixels, of what is broken as well:
		// libjpeg has those of this package.
		apart := len(d.components) > 1 && bytes.Contains(data, []byte{0xff, restartInterval}) &&
			bytes.Count(data, []byte{0xff, startOfScan}) > 1
		if err == nil && scale == 1 && !apart {
			same(t, data, img)
		}
	})
}
