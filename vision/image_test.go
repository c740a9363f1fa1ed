package vision

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

var rgb96 = bcnn.Input{Shape: bcnn.Shape{H: 96, W: 96, C: 3}, DType: bcnn.Uint8, Resize: 100}

func noise(w, h int) *image.NRGBA {
	rng := rand.New(rand.NewPCG(uint64(w), uint64(h)))
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range img.Pix {
		img.Pix[i] = uint8(rng.Uint32())
		if i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	return img
}

// at is the colour of a pixel as image/color defines it.
func at(img image.Image, x, y int) []uint8 {
	r, g, b, _ := img.At(img.Bounds().Min.X+x, img.Bounds().Min.Y+y).RGBA()
	return []uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)}
}

func TestPixelsTakesThePhotoAsItIsWhereNoScalingIsNeeded(t *testing.T) {
	for _, c := range []struct{ w, h, x, y int }{
		{96, 96, 0, 0}, {100, 100, 2, 2}, {100, 140, 2, 22}, {151, 100, 27, 2},
	} {
		img := noise(c.w, c.h)
		dst := make([]uint8, 96*96*3)
		require.NoError(t, Pixels(dst, img, rgb96))
		for y := range 96 {
			for x := range 96 {
				require.Equal(t, at(img, c.x+x, c.y+y), dst[(y*96+x)*3:][:3], "%d×%d: %d, %d", c.w, c.h, x, y)
			}
		}
	}
}

func TestPixelsOfOtherSizes(t *testing.T) {
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
			dst := make([]uint8, in.Shape.Values())
			require.NoError(t, Pixels(dst, img, in))
			for i := 0; i < len(dst); i += 3 {
				require.Equal(t, []uint8{plain.R, plain.G, plain.B}, dst[i:i+3], "%v to %v", size, in.Shape)
			}
		}
	}
}

func TestPixelsScalesInProportionAndCropsTheCentre(t *testing.T) {
	// Left half black, right half white, at twice the size: the edge stays in
	// the middle, and a line near the border is cropped.
	img := image.NewGray(image.Rect(0, 0, 400, 200))
	for y := range 200 {
		for x := 200; x < 400; x++ {
			img.SetGray(x, y, color.Gray{255})
		}
	}
	dst := make([]uint8, 96*96)
	in := bcnn.Input{Shape: bcnn.Shape{H: 96, W: 96, C: 1}, DType: bcnn.Uint8, Resize: 100}
	require.NoError(t, Pixels(dst, img, in))
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

func TestPixelsOfEveryColourModel(t *testing.T) {
	src := noise(96, 96)
	models := map[string]image.Image{"nrgba": src}
	rect := src.Rect
	ycc := image.NewYCbCr(rect, image.YCbCrSubsampleRatio420)
	for _, p := range [][]uint8{ycc.Y, ycc.Cb, ycc.Cr} {
		copy(p, src.Pix)
	}
	models["ycbcr"] = ycc
	cmyk := image.NewCMYK(rect)
	copy(cmyk.Pix, src.Pix[1:])
	models["cmyk"] = cmyk
	paletted := image.NewPaletted(rect, color.Palette{color.Black, color.White, color.RGBA{R: 9, G: 7, B: 200, A: 255}, color.Transparent})
	gray, gray16, deep := image.NewGray(rect), image.NewGray16(rect), image.NewNRGBA64(rect)
	clear := image.NewNRGBA(rect)
	for i := range 96 * 96 {
		paletted.Pix[i] = src.Pix[4*i] % 4
		gray.Pix[i] = src.Pix[4*i]
	}
	copy(gray16.Pix, src.Pix)
	copy(deep.Pix, src.Pix)
	copy(clear.Pix, src.Pix)
	for i := 3; i < len(clear.Pix); i += 4 {
		clear.Pix[i] = clear.Pix[i-1]
	}
	models["paletted"], models["gray"], models["gray16"], models["nrgba64"], models["transparent"] = paletted, gray, gray16, deep, clear
	for name, img := range models {
		t.Run(name, func(t *testing.T) {
			dst := make([]uint8, 96*96*3)
			require.NoError(t, Pixels(dst, img, rgb96))
			luma := make([]uint8, 96*96)
			grey := rgb96
			grey.Shape.C = 1
			require.NoError(t, Pixels(luma, img, grey))
			for y := range 96 {
				for x := range 96 {
					i := y*96 + x
					require.Equal(t, at(img, x, y), dst[3*i:3*i+3], "%d, %d", x, y)
					require.Equal(t, bcnn.Luma(dst[3*i], dst[3*i+1], dst[3*i+2]), luma[i])
				}
			}
		})
	}
}

func TestPixelsRefusesWhatDoesNotFit(t *testing.T) {
	img := noise(96, 96)
	require.ErrorContains(t, Pixels(make([]uint8, 5), img, rgb96), "5 bytes")
	require.ErrorContains(t, Pixels(make([]uint8, 96*96*3), image.NewGray(image.Rectangle{}), rgb96), "empty")
	require.ErrorContains(t, Pixels(nil, img, bcnn.Input{Shape: rgb96.Shape, DType: bcnn.Float32}), "float32")
	require.ErrorContains(t, Pixels(nil, img, bcnn.Input{Shape: bcnn.Shape{H: 2, W: 2, C: 2}, DType: bcnn.Uint8}), "2×2×2")
}

func write(t *testing.T, name string, data []byte) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, data, 0o644))
	return path
}

func encodePNG(t *testing.T, img image.Image) []byte {
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, img))
	return b.Bytes()
}

func encodeJPEG(t *testing.T, img image.Image) []byte {
	var b bytes.Buffer
	require.NoError(t, jpeg.Encode(&b, img, &jpeg.Options{Quality: 100}))
	return b.Bytes()
}

func TestDecode(t *testing.T) {
	src := noise(9, 7)
	img, err := Decode(write(t, "a.png", encodePNG(t, src)))
	require.NoError(t, err)
	for y := range 7 {
		for x := range 9 {
			require.Equal(t, at(src, x, y), at(img, x, y))
		}
	}
	img, err = Decode(write(t, "a.jpg", encodeJPEG(t, src)))
	require.NoError(t, err)
	require.Equal(t, image.Rect(0, 0, 9, 7), img.Bounds())
	var b bytes.Buffer
	require.NoError(t, gif.Encode(&b, src, nil))
	_, err = Decode(write(t, "a.gif", b.Bytes()))
	require.NoError(t, err)
}

func TestDecodeNamesTheFileAndTheCause(t *testing.T) {
	good := encodePNG(t, noise(9, 7))
	huge := bytes.Clone(good)
	binary.BigEndian.PutUint32(huge[16:], 1<<20)
	binary.BigEndian.PutUint32(huge[20:], 1<<20)
	binary.BigEndian.PutUint32(huge[29:], crc32.ChecksumIEEE(huge[12:29]))
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty.png", nil, "no image"},
		{"text.jpg", []byte("not a photo"), "no image of a known format"},
		{"short.png", good[:len(good)/2], "broken image"},
		{"short.jpg", encodeJPEG(t, noise(64, 64))[:900], "broken image"},
		{"huge.png", huge, "1048576×1048576 pixels"},
	} {
		_, err := Decode(write(t, c.name, c.data))
		require.ErrorContains(t, err, c.name)
		require.ErrorContains(t, err, c.want)
	}
	_, err := Decode(filepath.Join(t.TempDir(), "absent.jpg"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Decode(t.TempDir())
	require.Error(t, err)
}

// withOrientation puts an Exif segment behind the start of a JPEG.
func withOrientation(data []byte, order binary.AppendByteOrder, value uint16) []byte {
	exif := []byte("Exif\x00\x00II")
	if order == binary.BigEndian {
		exif = []byte("Exif\x00\x00MM")
	}
	exif = order.AppendUint16(exif, 42)
	exif = order.AppendUint32(exif, 8)
	exif = order.AppendUint16(exif, 2)
	for _, tag := range [][2]uint16{{0x0100, 5}, {0x0112, value}} {
		exif = order.AppendUint16(exif, tag[0])
		exif = order.AppendUint16(exif, 3)
		exif = order.AppendUint32(exif, 1)
		exif = order.AppendUint16(exif, tag[1])
		exif = order.AppendUint16(exif, 0)
	}
	out := append([]byte{}, data[:2]...)
	out = append(out, 0xff, 0xe1)
	out = binary.BigEndian.AppendUint16(out, uint16(len(exif)+2))
	return append(append(out, exif...), data[2:]...)
}

func TestDecodeTurnsPhotosUpright(t *testing.T) {
	// The photo as it should be seen: three grey levels in 24×16 pixels, told
	// apart by their corner.
	level := func(x, y, w, h int) uint8 {
		switch {
		case x < w/2 && y < h/2:
			return 250
		case x >= w/2 && y < h/2:
			return 120
		}
		return 10
	}
	const w, h = 32, 16
	// stored[o] maps a pixel of the file to the pixel that is seen, by the Exif
	// standard's description of row 0 and column 0.
	seen := map[uint16]func(x, y int) (int, int){
		1: func(x, y int) (int, int) { return x, y },
		2: func(x, y int) (int, int) { return w - 1 - x, y },
		3: func(x, y int) (int, int) { return w - 1 - x, h - 1 - y },
		4: func(x, y int) (int, int) { return x, h - 1 - y },
		5: func(x, y int) (int, int) { return y, x },
		6: func(x, y int) (int, int) { return w - 1 - y, x },
		7: func(x, y int) (int, int) { return w - 1 - y, h - 1 - x },
		8: func(x, y int) (int, int) { return y, h - 1 - x },
	}
	for o := uint16(1); o <= 8; o++ {
		size := image.Rect(0, 0, w, h)
		if o >= 5 {
			size = image.Rect(0, 0, h, w)
		}
		stored := image.NewGray(size)
		for y := range size.Dy() {
			for x := range size.Dx() {
				sx, sy := seen[o](x, y)
				stored.SetGray(x, y, color.Gray{level(sx, sy, w, h)})
			}
		}
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			img, err := Decode(write(t, "a.jpg", withOrientation(encodeJPEG(t, stored), order, o)))
			require.NoError(t, err)
			require.Equal(t, image.Pt(w, h), img.Bounds().Size(), "orientation %d", o)
			for _, p := range []image.Point{{4, 4}, {w - 5, 4}, {4, h - 5}, {w - 5, h - 5}} {
				require.InDelta(t, level(p.X, p.Y, w, h), at(img, p.X, p.Y)[0], 5, "orientation %d, %v", o, p)
			}
		}
	}
}

func FuzzOrientation(f *testing.F) {
	var b bytes.Buffer
	require.NoError(f, jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1)), nil))
	f.Add(withOrientation(b.Bytes()[:32], binary.LittleEndian, 6))
	f.Add([]byte{0xff, 0xd8, 0xff, 0xe1, 0, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		o := orientation(data)
		require.True(t, o >= 1 && o <= 8)
	})
}
