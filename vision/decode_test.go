package vision

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/bmp"

	"github.com/bitcnn/bitcnn/bcnn"
)

func TestDecode(t *testing.T) {
	src := noise(9, 7)
	img, err := DecodeFile(t.Context(), write(t, "a.png", encodePNG(t, src)))
	require.NoError(t, err)
	for y := range 7 {
		for x := range 9 {
			require.Equal(t, at(src, x, y), at(img, x, y))
		}
	}
	img, err = DecodeFile(t.Context(), write(t, "a.jpg", encodeJPEG(t, src)))
	require.NoError(t, err)
	require.Equal(t, image.Rect(0, 0, 9, 7), img.Bounds())
	var b bytes.Buffer
	require.NoError(t, gif.Encode(&b, src, nil))
	_, err = DecodeFile(t.Context(), write(t, "a.gif", b.Bytes()))
	require.NoError(t, err)
}

func TestDecodeBMP(t *testing.T) {
	src := noise(9, 7)
	var b bytes.Buffer
	require.NoError(t, bmp.Encode(&b, src))
	img, err := DecodeFile(t.Context(), write(t, "a.bmp", b.Bytes()))
	require.NoError(t, err)
	for y := range 7 {
		for x := range 9 {
			require.Equal(t, at(src, x, y), at(img, x, y))
		}
	}
}

func TestDecodeNamesTheFileAndTheCause(t *testing.T) {
	good := encodePNG(t, noise(9, 7))
	huge := bytes.Clone(good)
	binary.BigEndian.PutUint32(huge[16:], 1<<14)
	binary.BigEndian.PutUint32(huge[20:], 1<<13)
	binary.BigEndian.PutUint32(huge[29:], crc32.ChecksumIEEE(huge[12:29]))
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty.png", nil, "unsupported image format"},
		{"text.jpg", []byte("not a photo"), "unsupported image format"},
		{"short.png", good[:len(good)/2], "broken image"},
		{"short.jpg", encodeJPEG(t, noise(64, 64))[:900], "broken image"},
		{"huge.png", huge, "16384×8192 pixels"},
	} {
		_, err := DecodeFile(t.Context(), write(t, c.name, c.data))
		require.ErrorContains(t, err, c.name)
		require.ErrorContains(t, err, c.want)
	}
	_, err := DecodeFile(t.Context(), filepath.Join(t.TempDir(), "absent.jpg"))
	require.ErrorIs(t, err, os.ErrNotExist)
	dir := t.TempDir()
	_, err = DecodeFile(t.Context(), dir)
	require.EqualError(t, err, dir+": is a directory")
	_, err = Decode(t.Context(), nil)
	require.EqualError(t, err, "no reader for the image")
}

// flat is a photo of one colour in a format, as large as the case says.
type flat struct {
	name string
	data []byte
	// tight tells that the estimate must be close: the decoder allocates what
	// every image of this kind needs.
	tight bool
}

func flats(t testing.TB, w, h int) []flat {
	all := []flat{}
	for _, c := range []struct {
		name     string
		sampling []byte
		adobe    int
	}{
		{"grey", []byte{0x11}, 0},
		{"4:4:4", []byte{0x11, 0x11, 0x11}, 0},
		{"4:2:0", []byte{0x22, 0x11, 0x11}, 0},
		{"4:2:2", []byte{0x21, 0x11, 0x11}, 0},
		{"4:4:0", []byte{0x12, 0x11, 0x11}, 0},
		{"4:1:1", []byte{0x41, 0x11, 0x11}, 0},
		{"4:1:0", []byte{0x42, 0x11, 0x11}, 0},
		{"RGB", []byte{0x11, 0x11, 0x11}, 1},
		{"CMYK", []byte{0x11, 0x11, 0x11, 0x11}, 1},
		{"YCCK", []byte{0x22, 0x11, 0x11, 0x22}, 3},
	} {
		for _, progressive := range []bool{false, true} {
			f := flatJPEG{w: w, h: h, sampling: c.sampling, adobe: c.adobe, progressive: progressive}
			all = append(all, flat{fmt.Sprintf("JPEG %s, progressive %v", c.name, progressive), f.encode(), true})
		}
	}
	rect := image.Rect(0, 0, w, h)
	palette := color.Palette{color.Black, color.White}
	opaque64 := image.NewRGBA64(rect)
	draw.Draw(opaque64, rect, image.White, image.Point{}, draw.Src)
	for _, c := range []struct {
		name  string
		img   image.Image
		tight bool
	}{
		{"Gray", image.NewGray(rect), false}, {"Gray16", image.NewGray16(rect), false}, {"NRGBA", image.NewNRGBA(rect), true},
		{"NRGBA64", image.NewNRGBA64(rect), true}, {"RGBA64", opaque64, true}, {"Paletted", image.NewPaletted(rect, palette), true},
	} {
		var b bytes.Buffer
		require.NoError(t, png.Encode(&b, c.img))
		all = append(all, flat{"PNG " + c.name, b.Bytes(), c.tight})
	}
	all = append(all, flat{"PNG interlaced", interlacedPNG(w, h, 6), true}, flat{"PNG interlaced, 16 bits", interlacedPNG(w, h, 0x106), true})
	all = append(all, flat{"PNG with a transparent grey", interlacedPNG(w, h, 0), true})
	var b bytes.Buffer
	require.NoError(t, gif.Encode(&b, image.NewPaletted(rect, palette), nil))
	all = append(all, flat{"GIF", b.Bytes(), false})
	interlaced := bytes.Clone(b.Bytes())
	interlaced[bytes.IndexByte(interlaced[13:], 0x2c)+13+9] |= 0x40
	all = append(all, flat{"GIF interlaced", interlaced, true})
	if w <= 1<<14 {
		all = append(all, flat{"WebP lossless", flatWebP(w, h), false})
	}
	for _, img := range []image.Image{image.NewGray(rect), image.NewNRGBA(rect), opaque64} {
		var b bytes.Buffer
		require.NoError(t, bmp.Encode(&b, img))
		all = append(all, flat{fmt.Sprintf("BMP of %T", img), b.Bytes(), false})
	}
	return all
}

// interlacedPNG writes a black PNG. The kind is that of the PNG standard, plus
// 0x100 for 16 bits; grey gets a transparent level.
func interlacedPNG(w, h, kind int) []byte {
	chunk := func(b []byte, name string, data []byte) []byte {
		b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
		at := len(b)
		b = append(append(b, name...), data...)
		return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[at:]))
	}
	depth, pixel := byte(8), 4
	if kind&0x100 != 0 {
		depth, pixel = 16, 8
	}
	if kind&0xff == 0 {
		pixel /= 4
	}
	header := binary.BigEndian.AppendUint32(nil, uint32(w))
	header = binary.BigEndian.AppendUint32(header, uint32(h))
	b := chunk([]byte("\x89PNG\r\n\x1a\n"), "IHDR", append(header, depth, byte(kind), 0, 0, 1))
	if kind&0xff == 0 {
		b = chunk(b, "tRNS", make([]byte, 2))
	}
	var data bytes.Buffer
	z := zlib.NewWriter(&data)
	for _, p := range [][4]int{{8, 8, 0, 0}, {8, 8, 4, 0}, {4, 8, 0, 4}, {4, 4, 2, 0}, {2, 4, 0, 2}, {2, 2, 1, 0}, {1, 2, 0, 1}} {
		columns, rows := (w-p[2]+p[0]-1)/p[0], (h-p[3]+p[1]-1)/p[1]
		if columns > 0 {
			z.Write(make([]byte, rows*(1+columns*pixel)))
		}
	}
	z.Close()
	return chunk(chunk(b, "IDAT", data.Bytes()), "IEND", nil)
}

// allocated returns the bytes that a call allocates in all.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// estimate is what decode reckons that it will allocate.
func estimate(t testing.TB, data []byte) int64 {
	o, err := openImage(t.Context(), bytes.NewReader(data), Limits{}, fullScale)
	require.NoError(t, err)
	return o.bytes
}

// Decode allocates no more than it has reckoned, which is what it refuses images
// for; and not much less where the decoder needs it all.
func TestDecodeAllocatesWhatItReckons(t *testing.T) {
	sizes := []image.Point{{17, 3}, {20000, 2}, {3, 9000}, {1203, 1005}}
	if testing.Short() {
		sizes = sizes[:3]
	}
	for _, size := range sizes {
		for _, c := range flats(t, size.X, size.Y) {
			reckoned := estimate(t, c.data)
			var err error
			used := allocated(func() { _, err = Decode(t.Context(), bytes.NewReader(c.data)) })
			require.NoError(t, err, "%s, %v", c.name, size)
			require.LessOrEqual(t, used, reckoned, "%s, %v", c.name, size)
			if c.tight && size.X*size.Y > 1<<20 {
				require.Greater(t, float64(used), 0.75*float64(reckoned), "%s, %v", c.name, size)
			}
			_, err = decode(t.Context(), bytes.NewReader(c.data), Limits{Bytes: reckoned - 1}, fullScale)
			require.ErrorContains(t, err, "bytes of memory, at most", c.name)
			_, err = decode(t.Context(), bytes.NewReader(c.data), Limits{Pixels: int64(size.X*size.Y) - 1}, fullScale)
			require.ErrorContains(t, err, "pixels, at most", c.name)
			_, err = decode(t.Context(), bytes.NewReader(c.data), Limits{Pixels: int64(size.X * size.Y), Bytes: reckoned}, fullScale)
			require.NoError(t, err, c.name)
		}
	}
}

// The usual photos of MaxPixels are accepted.
func TestDecodeAcceptsLargePhotos(t *testing.T) {
	for _, c := range []struct {
		pixels      int
		sampling    []byte
		progressive bool
	}{
		{MaxPixels, []byte{0x22, 0x11, 0x11}, false},
		{MaxPixels, []byte{0x11, 0x11, 0x11}, false},
		{MaxPixels, []byte{0x22, 0x11, 0x11}, true},
		{33e6, []byte{0x11, 0x11, 0x11}, true},
	} {
		h := 8192
		data := flatJPEG{w: c.pixels / h, h: h, sampling: c.sampling, progressive: c.progressive}.encode()
		require.LessOrEqual(t, estimate(t, data), int64(MaxBytes))
	}
}

// endless is a JPEG with segments for ever.
type endless struct{ started bool }

func (e *endless) Read(b []byte) (int, error) {
	start := ""
	if !e.started {
		start, e.started = "\xff\xd8", true
	}
	n := copy(b, start)
	for n+4 <= len(b) {
		n += copy(b[n:], "\xff\xe2\x00\x02")
	}
	return n, nil
}

func TestDecodeStopsReadingSegments(t *testing.T) {
	var err error
	used := allocated(func() { _, err = Decode(t.Context(), bufio.NewReaderSize(&endless{}, 4098)) })
	require.ErrorContains(t, err, "no size in the first")
	require.LessOrEqual(t, used, int64(4*maxHead+1<<18))
}

// FuzzDecode reads arbitrary files and prepares what they show.
func FuzzDecode(f *testing.F) {
	src := noise(5, 4)
	var b bytes.Buffer
	require.NoError(f, bmp.Encode(&b, src))
	f.Add(bytes.Clone(b.Bytes()))
	b.Reset()
	require.NoError(f, gif.Encode(&b, src, nil))
	f.Add(bytes.Clone(b.Bytes()))
	for _, img := range []image.Image{src, image.NewGray16(src.Rect), image.NewPaletted(src.Rect, color.Palette{color.Black, color.White})} {
		b.Reset()
		require.NoError(f, png.Encode(&b, img))
		f.Add(bytes.Clone(b.Bytes()))
	}
	for _, data := range webPs(f) {
		f.Add(data)
	}
	in := bcnn.Input{Shape: bcnn.Shape{H: 6, W: 5, C: 3}, DType: bcnn.Uint8, Resize: 7}
	for _, c := range flats(f, 5, 4) {
		f.Add(c.data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var img image.Image
		var err error
		const limit = 1 << 20
		used := allocated(func() {
			img, err = decode(t.Context(), bytes.NewReader(data), Limits{Pixels: 1 << 12, Bytes: limit}, fullScale)
		})
		// Before the size is known, the head alone is kept.
		require.LessOrEqual(t, used, int64(max(limit, 4*len(data)+1<<18)))
		if err == nil {
			pixels(t, img, in)
		}
	})
}
