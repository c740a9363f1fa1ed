package vision

import (
	"bytes"
	"context"
	"image"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// ending is a context that ends when it has been asked for its error so many times.
type ending struct {
	context.Context
	left int
}

func (e *ending) Err() error {
	if e.left--; e.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// Wherever in the work the context ends, nothing more is done, and its error is that of decoding:
// the file is not called broken.
func TestDecodeEndsWithTheContext(t *testing.T) {
	for _, c := range flats(t, 120, 80) {
		for _, p := range []Preprocessing{reading(80, 120, 3, 0), reading(9, 9, 3, 0)} {
			whole := &ending{t.Context(), math.MaxInt}
			_, err := p.Decode(whole, bytes.NewReader(c.data))
			require.NoError(t, err, c.name)
			asked := math.MaxInt - whole.left
			require.Greater(t, asked, 1, c.name)
			for n := range asked {
				ctx := &ending{t.Context(), n}
				_, err := p.Decode(ctx, bytes.NewReader(c.data))
				require.Equal(t, context.DeadlineExceeded, err, "%s, after %d", c.name, n)
				require.LessOrEqual(t, ctx.left, -1)
			}
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	nothing := &counted{}
	_, err := Decode(ended, nothing)
	require.Equal(t, context.Canceled, err)
	_, err = NewDecoder(nothing).Decode(ended)
	require.Equal(t, context.Canceled, err)
	_, err = reading(9, 9, 3, 0).DecodeBytes(ended, nothing)
	require.Equal(t, context.Canceled, err)
	require.Zero(t, nothing.reads, "nothing is read any more")
}

// counted counts its reads.
type counted struct{ reads int }

func (c *counted) Read([]byte) (int, error) { c.reads++; return 0, io.EOF }

// What decoding takes is known from the beginning of a file, at the scale that it will have, and
// learning it takes nothing of that size.
func TestDecodeBytes(t *testing.T) {
	for _, c := range flats(t, 1200, 900) {
		for _, p := range []Preprocessing{reading(900, 1200, 3, 0), reading(50, 50, 3, 60)} {
			var size int64
			used := allocated(func() {
				var err error
				size, err = p.DecodeBytes(t.Context(), bytes.NewReader(c.data))
				require.NoError(t, err)
			})
			require.LessOrEqual(t, used, int64(512<<10), c.name)
			used = allocated(func() {
				_, err := p.Decode(t.Context(), bytes.NewReader(c.data))
				require.NoError(t, err)
			})
			require.LessOrEqual(t, used, size, c.name)
			p.Limits = Limits{Bytes: size}
			_, err := p.Decode(t.Context(), bytes.NewReader(c.data))
			require.NoError(t, err, c.name)
			for _, less := range []Limits{{Bytes: size - 1}, {Pixels: 1200*900 - 1}} {
				p.Limits = less
				_, want := p.DecodeBytes(t.Context(), bytes.NewReader(c.data))
				require.ErrorContains(t, want, "are accepted", c.name)
				_, err := p.Decode(t.Context(), bytes.NewReader(c.data))
				require.Equal(t, want, err)
			}
		}
	}
	_, err := reading(9, 9, 3, 0).DecodeBytes(t.Context(), bytes.NewReader([]byte("no image")))
	require.ErrorContains(t, err, "unsupported image format")
	_, err = reading(9, 9, 2, 0).DecodeBytes(t.Context(), bytes.NewReader(nil))
	require.ErrorContains(t, err, "not an image")
}

// Limits are never greater than the constants, whose zero value they are.
func TestLimits(t *testing.T) {
	require.Equal(t, int64(MaxPixels), Limits{}.pixels())
	require.Equal(t, int64(MaxBytes), Limits{}.bytes())
	require.Equal(t, int64(MaxPixels), Limits{Pixels: math.MaxInt64}.pixels())
	require.Equal(t, int64(MaxBytes), Limits{Bytes: math.MaxInt64}.bytes())
	require.Equal(t, int64(1), Limits{Pixels: 1}.pixels())
	require.Equal(t, int64(-1), Limits{Bytes: -1}.bytes())
}

// Of what fails late nothing is decoded a second time.
func TestBrokenTakesNoMore(t *testing.T) {
	f := flatJPEG{w: 1500, h: 1500, sampling: []byte{0x11, 0x11, 0x11}, progressive: true}
	data := f.encode()
	broken := append(bytes.Clone(data[:len(data)-2]), 0xff, 0xd8)
	for _, p := range []Preprocessing{reading(1500, 1500, 3, 0), reading(100, 100, 3, 0)} {
		size, err := p.DecodeBytes(t.Context(), bytes.NewReader(broken))
		require.NoError(t, err)
		used := allocated(func() {
			var img image.Image
			img, err = p.Decode(t.Context(), bytes.NewReader(append(broken, make([]byte, 4<<20)...)))
			require.Nil(t, img)
		})
		require.ErrorContains(t, err, "broken image")
		require.LessOrEqual(t, used, size+9<<20, "and the bytes behind")
	}
}

// Fill ends with the context, too, within a row; so does what is as large as the input.
func TestFillEndsWithTheContext(t *testing.T) {
	for _, img := range []image.Image{noise(40, 300), image.NewGray(image.Rect(0, 0, 40, 300))} {
		for _, p := range []Preprocessing{reading(300, 40, 3, 0), reading(9, 7, 1, 0)} {
			in := bcnn.NewTensor(bcnn.Uint8, 1, p.Input.Shape)
			whole := &ending{t.Context(), math.MaxInt}
			require.NoError(t, p.Fill(whole, in, 0, img))
			asked := math.MaxInt - whole.left
			require.GreaterOrEqual(t, asked, 51, "the rows that are seen")
			for n := range asked {
				ctx := &ending{t.Context(), n}
				require.Equal(t, context.DeadlineExceeded, p.Fill(ctx, in, 0, img))
				require.GreaterOrEqual(t, ctx.left, -2, "it is asked once more, by Fill itself")
			}
		}
	}
}
