package jpeg

import (
	"image"
	"image/color"

	"github.com/bitcnn/bitcnn/internal/num"
)

// subsampling returns how the chroma is subsampled, if image.YCbCr can say it.
func (d *Decoder) subsampling() (image.YCbCrSubsampleRatio, bool) {
	y, cb, cr := d.components[0], d.components[1], d.components[2]
	if y.h != d.maxH || y.v != d.maxV || cb.h != cr.h || cb.v != cr.v || y.h%cb.h != 0 || y.v%cb.v != 0 {
		return 0, false
	}
	switch [2]int{y.h / cb.h, y.v / cb.v} {
	case [2]int{1, 1}:
		return image.YCbCrSubsampleRatio444, true
	case [2]int{1, 2}:
		return image.YCbCrSubsampleRatio440, true
	case [2]int{2, 1}:
		return image.YCbCrSubsampleRatio422, true
	case [2]int{2, 2}:
		return image.YCbCrSubsampleRatio420, true
	case [2]int{4, 1}:
		return image.YCbCrSubsampleRatio411, true
	case [2]int{4, 2}:
		return image.YCbCrSubsampleRatio410, true
	}
	return 0, false
}

// isRGB reports whether three components are no luma and chroma, as image/jpeg and libjpeg do.
func (d *Decoder) isRGB() bool {
	c := d.components
	switch {
	case len(c) != 3 || d.jfif:
		return false
	case d.adobe && d.colours == 0:
		return true
	}
	return c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B'
}

// image puts the components together.
func (d *Decoder) image() (image.Image, error) {
	size := image.Rect(0, 0, num.CeilDiv(d.width, d.scale), num.CeilDiv(d.height, d.scale))
	first := d.components[0]
	switch {
	case len(d.components) == 1:
		return &image.Gray{Pix: first.pix, Stride: first.stride, Rect: size}, nil
	case len(d.components) == 4:
		return d.cmyk(size)
	case d.isRGB():
		img := image.NewRGBA(size)
		return img, d.rows(size, func(y int, values [][]byte) {
			to := img.Pix[y*img.Stride:]
			for x := range size.Max.X {
				to[4*x], to[4*x+1], to[4*x+2], to[4*x+3] = values[0][x], values[1][x], values[2][x], 255
			}
		})
	}
	cb, cr := d.components[1], d.components[2]
	if ratio, ok := d.subsampling(); ok {
		return &image.YCbCr{Y: first.pix, Cb: cb.pix, Cr: cr.pix, YStride: first.stride, CStride: cb.stride, SubsampleRatio: ratio, Rect: size}, nil
	}
	img := image.NewYCbCr(size, image.YCbCrSubsampleRatio444)
	return img, d.rows(size, func(y int, values [][]byte) {
		copy(img.Y[y*img.YStride:], values[0])
		copy(img.Cb[y*img.CStride:], values[1])
		copy(img.Cr[y*img.CStride:], values[2])
	})
}

// cmyk puts four components together. Adobe's are stored inverted, and its luma and chroma are
// those of the colours that the three inks leave.
func (d *Decoder) cmyk(size image.Rectangle) (image.Image, error) {
	img := image.NewCMYK(size)
	return img, d.rows(size, func(y int, values [][]byte) {
		to := img.Pix[y*img.Stride:]
		for x := range size.Max.X {
			a, b, c, k := values[0][x], values[1][x], values[2][x], values[3][x]
			switch {
			case !d.adobe:
			case d.colours == 0:
				a, b, c, k = 255-a, 255-b, 255-c, 255-k
			default:
				a, b, c = color.YCbCrToRGB(a, b, c)
				k = 255 - k
			}
			to[4*x], to[4*x+1], to[4*x+2], to[4*x+3] = a, b, c, k
		}
	})
}

// rows hands on the rows of the image, a value of each component for each pixel: those that are
// subsampled are repeated.
func (d *Decoder) rows(size image.Rectangle, put func(y int, values [][]byte)) error {
	values := make([][]byte, len(d.components))
	repeated := make([]byte, len(values)*size.Max.X)
	for y := range size.Max.Y {
		if err := d.source.stop(); err != nil {
			return err
		}
		for i := range values {
			c := &d.components[i]
			from := c.pix[y*c.v/d.maxV*c.stride:][:c.stride]
			if c.h == d.maxH {
				values[i] = from[:size.Max.X]
				continue
			}
			values[i] = repeated[i*size.Max.X:][:size.Max.X]
			for x := range values[i] {
				values[i][x] = from[x*c.h/d.maxH]
			}
		}
		put(y, values)
	}
	return nil
}
