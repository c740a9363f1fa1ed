package vision

import (
	"image"
	"image/color"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

func TestFillTakesThePhotoAsItIsWhereNoScalingIsNeeded(t *testing.T) {
	for _, c := range []struct{ w, h, x, y int }{
		{96, 96, 0, 0}, {100, 100, 2, 2}, {100, 140, 2, 22}, {151, 100, 27, 2},
	} {
		img := noise(c.w, c.h)
		dst := pixels(t, img, rgb96)
		for y := range 96 {
			for x := range 96 {
				require.Equal(t, at(img, c.x+x, c.y+y), dst[(y*96+x)*3:][:3], "%d×%d: %d, %d", c.w, c.h, x, y)
			}
		}
	}
}

func TestFillOfOtherSizes(t *testing.T) {
	plain := color.NRGBA{R: 10, G: 200, B: 90, A: 255}
	for _, size := range []image.Point{{1, 1}, {1, 3000}, {3000, 1}, {7, 5}, {640, 480}, {33, 2000}} {
		for _, in := range []bcnn.Input{rgb96,
			{Shape: bcnn.Shape{H: 96, W: 96, C: 3}, DType: bcnn.Uint8},
			{Shape: bcnn.Shape{H: 20, W: 50, C: 3}, DType: bcnn.Uint8},
			{Shape: bcnn.Shape{H: 20, W: 50, C: 3}, DType: bcnn.Uint8, Resize: 60},
		} {
			img := image.NewNRGBA(image.Rectangle{Min: image.Pt(-3, 5), Max: image.Pt(-3, 5).Add(size)})
			for i := 0; i < len(img.Pix); i += 4 {
				copy(img.Pix[i:], []uint8{plain.R, plain.G, plain.B, plain.A})
			}
			dst := pixels(t, img, in)
			for i := 0; i < len(dst); i += 3 {
				require.Equal(t, []uint8{plain.R, plain.G, plain.B}, dst[i:i+3], "%v to %v", size, in.Shape)
			}
		}
	}
}

func TestFillScalesInProportionAndCropsTheCentre(t *testing.T) {
	// Left half black, right half white, at twice the size: the edge stays in
	// the middle, and a line near the border is cropped.
	img := image.NewGray(image.Rect(0, 0, 400, 200))
	for y := range 200 {
		for x := 200; x < 400; x++ {
			img.SetGray(x, y, color.Gray{255})
		}
	}
	in := bcnn.Input{Shape: bcnn.Shape{H: 96, W: 96, C: 1}, DType: bcnn.Uint8, Resize: 100}
	dst := pixels(t, img, in)
	for y := range 96 {
		for x := range 96 {
			switch {
			case x < 47:
				require.EqualValues(t, 0, dst[y*96+x])
			case x >= 49:
				require.EqualValues(t, 255, dst[y*96+x])
			}
		}
	}
}

func TestFillRefusesWhatDoesNotFit(t *testing.T) {
	good := Preprocessing{Input: rgb96}
	batch := bcnn.NewTensor(bcnn.Uint8, 2, rgb96.Shape)
	floats := good
	floats.Input.DType = bcnn.Float32
	var none *image.RGBA
	for _, c := range []struct {
		want  string
		p     func(p *Preprocessing)
		batch bcnn.Tensor
		i     int
		img   image.Image
	}{
		{want: "bits of 96×96×3, not an image", p: func(p *Preprocessing) { p.Input.DType = bcnn.Bits }},
		{want: "uint8 of 96×96×2, not an image", p: func(p *Preprocessing) { p.Input.Shape.C = 2 }},
		{want: "an input of 0×96×3", p: func(p *Preprocessing) { p.Input.Shape.H = 0 }},
		{want: "resized to -1", p: func(p *Preprocessing) { p.Input.Resize = -1 }},
		{want: "mean and scale are for networks that read float32", p: func(p *Preprocessing) { p.Scale = []float32{2} }},
		{want: "mean has 2 values, want 1 or 3", p: func(p *Preprocessing) { *p = floats; p.Mean = []float32{1, 2} }},
		{want: "scale +Inf is not a finite number", p: func(p *Preprocessing) { *p = floats; p.Scale = []float32{float32(math.Inf(1))} }},
		{want: "tensor is uint8 96×96×3, want float32 96×96×3", p: func(p *Preprocessing) { *p = floats }},
		{want: "tensor is uint8 2×2×3", batch: bcnn.NewTensor(bcnn.Uint8, 1, bcnn.Shape{H: 2, W: 2, C: 3})},
		{want: "image 2 of a batch of 2", i: 2},
		{want: "image -1 of a batch of 2", i: -1},
		{want: "the image is empty", img: image.NewGray(image.Rectangle{})},
		{want: "the image has 2000000000×2000000000 pixels", img: image.NewUniform(color.White)},
		{want: "the image is nil", img: none},
	} {
		p := good
		if c.p != nil {
			c.p(&p)
		}
		if c.batch.N == 0 {
			c.batch = batch
		}
		if c.img == nil {
			c.img = noise(96, 96)
		}
		require.ErrorContains(t, p.Fill(t.Context(), c.batch, c.i, c.img), c.want)
	}
	require.ErrorContains(t, good.Fill(t.Context(), batch, 0, nil), "the image is nil")
}

// Every image has its place in the batch.
func TestFillOfABatch(t *testing.T) {
	batch := bcnn.NewTensor(bcnn.Uint8, 3, grey.Shape)
	for i := range 3 {
		require.NoError(t, Preprocessing{Input: grey}.Fill(t.Context(), batch, i, noise(40+i, 50)))
	}
	for i := range 3 {
		size := grey.Shape.Values()
		require.Equal(t, pixels(t, noise(40+i, 50), grey), batch.U8[i*size:(i+1)*size])
	}
}

func TestFillOfFloats(t *testing.T) {
	img := noise(60, 50)
	for _, c := range []struct {
		channels    int
		mean, scale []float32
		want        func(x uint8, c int) float32
	}{
		{3, nil, nil, func(x uint8, c int) float32 { return float32(x) }},
		{1, nil, nil, func(x uint8, c int) float32 { return float32(x) }},
		{3, []float32{127.5}, nil, func(x uint8, c int) float32 { return float32(x) - 127.5 }},
		{3, []float32{1, 2, 3}, []float32{0.1}, func(x uint8, c int) float32 { return (float32(x) - float32(c+1)) * 0.1 }},
		{3, nil, []float32{0.5, -1, 7}, func(x uint8, c int) float32 { return float32(x) * []float32{0.5, -1, 7}[c] }},
		{1, []float32{33.3}, []float32{1 / 78.6}, func(x uint8, c int) float32 { return (float32(x) - 33.3) * (1 / 78.6) }},
	} {
		in := bcnn.Input{Shape: bcnn.Shape{H: 20, W: 30, C: c.channels}, DType: bcnn.Float32}
		batch := bcnn.NewTensor(bcnn.Float32, 2, in.Shape)
		require.NoError(t, Preprocessing{Input: in, Mean: c.mean, Scale: c.scale}.Fill(t.Context(), batch, 1, img))
		asBytes := in
		asBytes.DType = bcnn.Uint8
		for i, x := range pixels(t, img, asBytes) {
			require.Equal(t, c.want(x, i%c.channels), batch.F32[in.Shape.Values()+i])
		}
	}
}
