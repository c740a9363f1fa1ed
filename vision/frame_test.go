package vision

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// What the input shows of a photo: by each way to fit it.
func TestFrame(t *testing.T) {
	input := func(w, h, resize int, fit bcnn.Fit) Preprocessing {
		in := bcnn.Input{Shape: bcnn.Shape{H: h, W: w, C: 3}, DType: bcnn.Uint8, Resize: resize}
		if fit != bcnn.FitCrop {
			in.Photo = &bcnn.Photo{Fit: fit}
		}
		return Preprocessing{Input: in}
	}
	for _, c := range []struct {
		p    Preprocessing
		w, h int
		want Frame
	}{
		{input(10, 10, 0, bcnn.FitCrop), 40, 20, Frame{X: 10, W: 20, H: 20}},
		{input(10, 10, 20, bcnn.FitCrop), 40, 20, Frame{X: 15, Y: 5, W: 10, H: 10}},
		{input(10, 10, 0, bcnn.FitStretch), 40, 20, Frame{W: 40, H: 20}},
		{input(40, 40, 0, bcnn.FitLetterbox), 40, 20, Frame{Y: -10, W: 40, H: 40}},
		{input(40, 40, 0, bcnn.FitLetterbox), 10, 20, Frame{X: -5, W: 20, H: 20}},
		{input(40, 20, 0, bcnn.FitLetterbox), 40, 20, Frame{W: 40, H: 20}},
		{input(10, 10, 0, bcnn.FitLetterbox), 1000, 1, Frame{Y: -4, W: 1000, H: 10}},
		{input(1, 1, 0, bcnn.FitLetterbox), 7, 5, Frame{W: 7, H: 5}},
	} {
		f, err := c.p.Frame(image.NewGray(image.Rect(3, 4, 3+c.w, 4+c.h)))
		require.NoError(t, err)
		c.want.Size = image.Pt(c.w, c.h)
		require.Equal(t, c.want, f, "%v %v", c.p.Input, c.w)
	}
	_, err := input(10, 10, 0, "x").Frame(image.NewGray(image.Rect(0, 0, 1, 1)))
	require.ErrorContains(t, err, `fitted by "x"`)
	_, err = input(10, 10, 0, bcnn.FitStretch).Frame(nil)
	require.ErrorContains(t, err, "the image is nil")
}

// A photo that is decoded at a smaller scale, or turned, keeps its size in the frame.
func TestFrameOfScaledPhoto(t *testing.T) {
	data := encodeJPEG(t, photo(405, 333))
	for _, fit := range []bcnn.Fit{bcnn.FitStretch, bcnn.FitLetterbox} {
		p := Preprocessing{Input: bcnn.Input{Shape: bcnn.Shape{H: 20, W: 20, C: 3}, DType: bcnn.Uint8, Photo: &bcnn.Photo{Fit: fit}}}
		for _, o := range []uint16{1, 6} {
			want := image.Pt(405, 333)
			file := withOrientation(data, binary.BigEndian, o)
			if o == 6 {
				want = image.Pt(333, 405)
			}
			img, err := p.Decode(t.Context(), bytes.NewReader(file))
			require.NoError(t, err)
			require.Less(t, img.Bounds().Dx(), 210)
			require.Equal(t, want, Size(img))
			f, err := p.Frame(img)
			require.NoError(t, err)
			require.Equal(t, want, f.Size)
			if fit == bcnn.FitStretch {
				require.InDelta(t, want.X, f.W, 1e-9)
				require.InDelta(t, want.Y, f.H, 1e-9)
				continue
			}
			require.InDelta(t, 405, min(f.W, f.H), 1e-9)
			require.InDelta(t, f.W/2+f.X, float64(want.X)/2, 12) // borders are whole pixels of the input
		}
	}
	require.Equal(t, image.Pt(5, 6), Size(image.NewGray(image.Rect(1, 1, 6, 7))))
}

// The pixels of an input: stretched, between borders, and in the order of channels.
func TestFitsAndChannels(t *testing.T) {
	img := image.NewNRGBA(image.Rect(0, 0, 2, 1))
	img.SetNRGBA(0, 0, color.NRGBA{10, 20, 30, 255})
	img.SetNRGBA(1, 0, color.NRGBA{200, 100, 50, 255})
	in := bcnn.Input{Shape: bcnn.Shape{H: 2, W: 2, C: 3}, DType: bcnn.Uint8, Photo: &bcnn.Photo{Fit: bcnn.FitStretch}}
	require.Equal(t, []uint8{10, 20, 30, 200, 100, 50, 10, 20, 30, 200, 100, 50}, pixels(t, img, in))
	in.Photo = &bcnn.Photo{Fit: bcnn.FitStretch, BGR: true}
	require.Equal(t, []uint8{30, 20, 10, 50, 100, 200, 30, 20, 10, 50, 100, 200}, pixels(t, img, in))
	const g = bcnn.LetterboxGrey
	in.Shape, in.Photo = bcnn.Shape{H: 3, W: 2, C: 3}, &bcnn.Photo{Fit: bcnn.FitLetterbox, BGR: true}
	require.Equal(t, []uint8{g, g, g, g, g, g, 30, 20, 10, 50, 100, 200, g, g, g, g, g, g}, pixels(t, img, in))
	in.Photo = &bcnn.Photo{Fit: bcnn.FitLetterbox, Grey: 7, Corner: true}
	require.Equal(t, []uint8{10, 20, 30, 200, 100, 50, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}, pixels(t, img, in))
	// The first row of a photo that is turned is its first column.
	turned := &oriented{img: img, orientation: 6}
	in.Shape = bcnn.Shape{H: 2, W: 3, C: 1}
	in.Photo = &bcnn.Photo{Fit: bcnn.FitLetterbox}
	dark, light := bcnn.Luma(10, 20, 30), bcnn.Luma(200, 100, 50)
	require.Equal(t, []uint8{g, dark, g, g, light, g}, pixels(t, turned, in))

	// Mean and scale are those of the model, where the options have none.
	s, d := squares(1, []float32{0}, 0.9)
	s.input.DType, s.input.Photo = bcnn.Float32, &bcnn.Photo{Fit: bcnn.FitStretch, Scale: []float32{0.5}}
	det, err := newDetector(s, d, DetectorOptions{})
	require.NoError(t, err)
	require.Equal(t, []float32{0.5}, det.Preprocessing().Scale)
	det, err = newDetector(s, d, DetectorOptions{Options: Options{Mean: []float32{3}}})
	require.NoError(t, err)
	require.Nil(t, det.Preprocessing().Scale)
	det, err = newDetector(s, d, DetectorOptions{Options: Options{Photo: &bcnn.Photo{}}})
	require.NoError(t, err)
	require.Nil(t, det.Preprocessing().Scale)

	// Where the model says nothing, the options must.
	s.input.Photo = nil
	_, err = newDetector(s, d, DetectorOptions{})
	require.ErrorContains(t, err, "reads float32 and does not describe how photos become that")
	for _, o := range []Options{{Mean: []float32{3}}, {Scale: []float32{1}}, {Photo: &bcnn.Photo{}}} {
		_, err = newDetector(s, d, DetectorOptions{Options: o})
		require.NoError(t, err)
	}
	s.input.DType = bcnn.Uint8
	_, err = newDetector(s, d, DetectorOptions{})
	require.NoError(t, err)
}
