package jpeg

import (
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// libjpeg decodes as Pillow does, in a process of Python.
type libjpeg struct {
	in  io.Writer
	out io.Reader
}

func newLibjpeg(f *testing.F) *libjpeg {
	if err := exec.Command("python3", "-c", "import PIL.Image").Run(); err != nil {
		testenv.Absent(f, "pillow", fmt.Errorf("python3 with Pillow decodes by libjpeg: %w", err))
	}
	python := exec.Command("python3", "testdata/libjpeg.py")
	in, err := python.StdinPipe()
	require.NoError(f, err)
	out, err := python.StdoutPipe()
	require.NoError(f, err)
	require.NoError(f, python.Start())
	f.Cleanup(func() {
		in.Close()
		_ = python.Wait()
	})
	return &libjpeg{in, out}
}

// decode returns the components of a file, interleaved and with those that are subsampled
// interpolated; none for what is not read.
func (l *libjpeg) decode(t *testing.T, data []byte) (size image.Point, components int, values []byte) {
	_, err := l.in.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(data))), data...))
	require.NoError(t, err)
	var head [3]uint32
	require.NoError(t, binary.Read(l.out, binary.LittleEndian, &head))
	size, components = image.Pt(int(head[0]), int(head[1])), int(head[2])
	values = make([]byte, size.X*size.Y*components)
	_, err = io.ReadFull(l.out, values)
	require.NoError(t, err)
	return size, components, values
}

// FuzzLibjpeg: random coefficients in every way of coding have the values that libjpeg gives them,
// but for its rounding of the transform, by 1. Of components that are subsampled nothing is
// compared, as libjpeg interpolates them.
func FuzzLibjpeg(f *testing.F) {
	other := newLibjpeg(f)
	for k := range kinds {
		f.Add(uint8(k), uint8(9), uint8(17), uint64(k), uint8(k))
		f.Add(uint8(k), uint8(33), uint8(7), uint64(k), uint8(7*k))
	}
	f.Fuzz(func(t *testing.T, which, w, h uint8, seed uint64, coding uint8) {
		kind := kinds[int(which)%len(kinds)]
		if len(kind.sampling) == 4 {
			return // which Pillow inverts or not, by the segments
		}
		frame := []byte{startOfFrame0, startOfFrame1, startOfFrame2}[coding%3]
		m := made{
			w: 1 + int(w)%80, h: 1 + int(h)%80, sampling: kind.sampling, ids: kind.ids, segments: kind.segments,
			frame: frame, apart: coding/3%2 == 1, restart: []int{0, 1, 3, 7}[coding/6%4], script: usual,
		}
		m.draw(seed)
		if rng := rand.New(rand.NewPCG(seed, 2)); rng.IntN(2) == 0 { // few bits, as of cameras
			for i := range m.quantised {
				m.quantised[i] = byte(1 + rng.IntN(1+i/8))
			}
		}
		data := m.encode()
		img, err := decode(data, 1)
		require.NoError(t, err)
		size, components, values := other.decode(t, data)
		if kind.name == "3×1, 2×1, 1×1" {
			return // libjpeg reads no samplings of which one does not divide the other
		}
		if components == 0 {
			t.Fatalf("libjpeg does not read %s, %d×%d, frame %x, apart %v, restart %d", kind.name, m.w, m.h, frame, m.apart, m.restart)
		}
		require.Equal(t, size, img.Bounds().Size())
		require.Len(t, m.sampling, components)
		most := slices.MaxFunc(m.sampling, func(a, b byte) int { return int(a>>4)*int(a&15) - int(b>>4)*int(b&15) })
		for i, s := range m.sampling {
			if s != most || int(s>>4) != m.maxH || int(s&15) != m.maxV {
				continue
			}
			for y := range m.h {
				for x := range m.w {
					got, want := valueOf(img.At(x, y), i), values[(y*m.w+x)*components+i]
					if d := int(got) - int(want); d < -1 || d > 1 {
						t.Fatalf("%s, frame %x, (%d, %d), component %d: %d, libjpeg has %d", kind.name, frame, x, y, i, got, want)
					}
				}
			}
		}
	})
}

func valueOf(c color.Color, i int) byte {
	switch c := c.(type) {
	case color.Gray:
		return c.Y
	case color.YCbCr:
		return []byte{c.Y, c.Cb, c.Cr}[i]
	case color.RGBA:
		return []byte{c.R, c.G, c.B}[i]
	}
	panic(fmt.Sprintf("a colour %T", c))
}
