package vision

import (
	"image"
	"image/color"
)

// orientation is the orientation of a photo as Exif numbers it, 1 to 8: what has
// to be done with the stored image so that it stands upright.
type orientation uint8

const asStored orientation = 1

// swaps reports whether rows become columns. Before that, the stored image is
// mirrored.
func (o orientation) swaps() bool { return o >= 5 }

func (o orientation) mirrorsX() bool { return o == 2 || o == 3 || o == 7 || o == 8 }
func (o orientation) mirrorsY() bool { return o == 3 || o == 4 || o == 6 || o == 7 }

// size returns the upright size of an image from the stored one, or the other
// way round.
func (o orientation) size(p image.Point) image.Point {
	if o.swaps() {
		return image.Pt(p.Y, p.X)
	}
	return p
}

func (o orientation) mirror(p, stored image.Point) image.Point {
	if o.mirrorsX() {
		p.X = stored.X - 1 - p.X
	}
	if o.mirrorsY() {
		p.Y = stored.Y - 1 - p.Y
	}
	return p
}

// upright returns where a pixel of a stored image of the given size is seen.
func (o orientation) upright(p, stored image.Point) image.Point {
	return o.size(o.mirror(p, stored))
}

// stored returns where in a stored image of the given size a pixel that is seen
// comes from.
func (o orientation) stored(p, stored image.Point) image.Point {
	return o.mirror(o.size(p), stored)
}

// oriented is an image that stands upright without having been turned.
type oriented struct {
	img         image.Image
	orientation orientation
	full        image.Point // upright size of the photo, of which the image may be a smaller version
}

func (o *oriented) ColorModel() color.Model { return o.img.ColorModel() }

func (o *oriented) Bounds() image.Rectangle {
	return image.Rectangle{Max: o.orientation.size(o.img.Bounds().Size())}
}

func (o *oriented) At(x, y int) color.Color {
	b := o.img.Bounds()
	p := o.orientation.stored(image.Pt(x, y), b.Size()).Add(b.Min)
	return o.img.At(p.X, p.Y)
}
