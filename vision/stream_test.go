package vision

import (
	"bytes"
	"errors"
	"image"
	"image/color/palette"
	"image/draw"
	"image/gif"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/bmp"
)

// encoded are images of all formats, each of another width.
func encoded(t *testing.T) [][]byte {
	size := 30
	next := func() *image.NRGBA { size++; return noise(size, 30) }
	var animation gif.GIF // with tables of colours, of the whole and of each picture
	for i := range 3 {
		picture := image.NewPaletted(image.Rect(0, 0, 34, 30), palette.Plan9[:16<<i])
		draw.Draw(picture, picture.Rect, noise(34, 30), image.Point{}, draw.Src)
		animation.Image, animation.Delay = append(animation.Image, picture), append(animation.Delay, 1)
	}
	animation.Config = image.Config{ColorModel: animation.Image[0].Palette, Width: 34, Height: 30}
	files := [][]byte{encodeJPEG(t, next()), encodePNG(t, next()), nil, nil, flatWebP(35, 30)}
	var b, c bytes.Buffer
	require.NoError(t, bmp.Encode(&b, next()))
	require.NoError(t, gif.EncodeAll(&c, &animation))
	files[2], files[3] = b.Bytes(), c.Bytes()
	return files
}

// Images that come one after the other are those that come alone, in every order and however
// their bytes come.
func TestDecoder(t *testing.T) {
	files := encoded(t)
	var all []byte
	var order []int
	for i := range files {
		for k := range files {
			all, order = append(append(all, files[i]...), files[k]...), append(order, i, k)
		}
	}
	for _, r := range []io.Reader{bytes.NewReader(all), iotest.OneByteReader(bytes.NewReader(all)), iotest.DataErrReader(bytes.NewReader(all))} {
		d := NewDecoder(r)
		for _, i := range order {
			img, err := d.Decode(t.Context())
			require.NoError(t, err)
			require.Equal(t, 31+i, img.Bounds().Dx())
			want, err := Decode(t.Context(), bytes.NewReader(files[i]))
			require.NoError(t, err)
			require.Equal(t, want, img)
		}
		for range 2 {
			_, err := d.Decode(t.Context())
			require.Equal(t, io.EOF, err)
		}
	}
}

// An image is there as soon as its last byte is.
func TestDecoderDoesNotWait(t *testing.T) {
	for _, file := range encoded(t) {
		r, w := io.Pipe()
		d := NewDecoder(r)
		next := make(chan bool)
		go func() {
			for range next {
				_, _ = w.Write(file)
			}
			w.CloseWithError(errors.New("unplugged"))
		}()
		for range 3 {
			next <- true
			_, err := d.Decode(t.Context())
			require.NoError(t, err)
		}
		close(next)
		_, err := d.Decode(t.Context())
		require.ErrorContains(t, err, "unplugged")
	}
}

func TestDecoderErrors(t *testing.T) {
	files := encoded(t)
	for _, file := range files {
		for n := 1; n < len(file); n += 1 + n/8 {
			d := NewDecoder(bytes.NewReader(file[:n]))
			for range 2 { // it stays
				_, err := d.Decode(t.Context())
				require.Error(t, err, n)
				require.NotEqual(t, io.EOF, err)
			}
		}
	}
	// Broken inside: the next one is whole.
	broken := bytes.Clone(files[1])
	broken[len(broken)-30]++ // a checksum
	d := NewDecoder(io.MultiReader(bytes.NewReader(broken), bytes.NewReader(files[0])))
	_, err := d.Decode(t.Context())
	require.ErrorContains(t, err, "broken image")
	img, err := d.Decode(t.Context())
	require.NoError(t, err)
	require.Equal(t, 31, img.Bounds().Dx())

	for text, want := range map[string]string{
		"no image":                                       "unsupported image format",
		"\xff\xd8\xff\xe0\x00\x01":                       "a segment of 1 bytes",
		"\x89PNG\r\n\x1a\n\xff\xff\xff\xffIDAT":          "more than 268435456 bytes",
		"GIF89a\x01\x00\x01\x00\x00\x00\x00\x07":         "a block of kind 0x7",
		"BM\x05\x00\x00\x00  ":                           "a size of 5 bytes",
		"BM\x00\x00\x00\x20  ":                           "a size of 536870912 bytes",
		"RIFF\x00\x00\x00\x20WEBP":                       "a size of 536870920 bytes",
		"RIFF\x03\x00\x00\x00WEBP":                       "a size of 11 bytes",
		"RIFF\x10\x00\x00\x00AVI LIST":                   "unsupported image format",
		string(files[0]) + "and what does not belong to": "unsupported image format",
	} {
		d := NewDecoder(bytes.NewReader([]byte(text)))
		_, err := d.Decode(t.Context())
		if err == nil {
			_, err = d.Decode(t.Context())
		}
		require.ErrorContains(t, err, want, "%q", text)
	}
	d = NewDecoder(io.MultiReader(bytes.NewReader([]byte("\xff\xd8")), zeros{}))
	d.most = 1 << 20
	_, err = d.Decode(t.Context())
	require.ErrorContains(t, err, "more than 1048576 bytes")
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// FuzzDecoder cuts arbitrary bytes into images: it ends, and takes no more than there is.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte("\xff\xd8\xff\xe0\x00\x04ab\xff\xda\x00\x02\x00\xff\x00\xff\xd0\xff\xd9"))
	f.Add([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x00IEND\xae\x42\x60\x82"))
	f.Add([]byte("GIF89a\x01\x00\x01\x00\x80\x00\x00abcdef\x21\xfe\x01a\x00\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x01a\x00\x3b"))
	f.Add([]byte("BM\x1a\x00\x00\x00\x00\x00\x00\x00\x1a\x00\x00\x00\x0c\x00\x00\x00\x01\x00\x01\x00\x01\x00\x18\x00"))
	f.Add(flatWebP(1, 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := NewDecoder(bytes.NewReader(data))
		for i := 0; ; i++ {
			_, err := d.Decode(t.Context())
			if d.failed != nil {
				require.Equal(t, d.failed, err)
				return
			}
			require.Less(t, i, len(data))
		}
	})
}
