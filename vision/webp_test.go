package vision

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// webPs are the files of testdata/webp.
func webPs(t testing.TB) map[string][]byte {
	found := map[string][]byte{}
	names, err := filepath.Glob("testdata/webp/*.webp")
	require.NoError(t, err)
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		found[strings.TrimSuffix(filepath.Base(name), ".webp")] = data
	}
	require.NotEmpty(t, found)
	return found
}

// flatWebP writes a lossless WebP of one colour: no pixel takes a bit.
func flatWebP(w, h int) []byte {
	bits, at := uint64(0), 0
	put := func(v, n int) { bits, at = bits|uint64(v)<<at, at+n }
	put(0, 3) // no transform, no cache, no groups
	for range 5 {
		put(1, 4) // a simple code of one symbol, 0
	}
	data := binary.LittleEndian.AppendUint32([]byte{0x2f}, uint32(w-1)|uint32(h-1)<<14)
	data = binary.LittleEndian.AppendUint64(data, bits)
	b := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8L\x00\x00\x00\x00"), append(data, 0)...)
	binary.LittleEndian.PutUint32(b[16:], uint32(len(data)))
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	return b
}

// A WebP has the pixels that libwebp gives it, turned upright, and an estimate that holds.
func TestDecodeWebP(t *testing.T) {
	for name, data := range webPs(t) {
		if name == "animation" {
			_, err := Decode(t.Context(), bytes.NewReader(data))
			require.EqualError(t, err, "unsupported image: animations of WebP")
			continue
		}
		f, err := os.Open("testdata/webp/" + name + ".png")
		require.NoError(t, err)
		want, err := png.Decode(f)
		f.Close()
		require.NoError(t, err)
		var got image.Image
		used := allocated(func() { got, err = Decode(t.Context(), bytes.NewReader(data)) })
		require.NoError(t, err, name)
		require.LessOrEqual(t, used, estimate(t, data), name)
		require.Equal(t, want.Bounds(), got.Bounds(), name)
		for y := range want.Bounds().Dy() {
			for x := range want.Bounds().Dx() {
				w := color.NRGBAModel.Convert(want.At(x, y))
				require.Equal(t, w, color.NRGBAModel.Convert(got.At(x, y)), "%s, (%d, %d)", name, x, y)
			}
		}
	}
}

// Sizes and lengths that the file gives are looked at before anything is allocated for them, and
// what is cut off is an error.
func TestDecodeWebPBroken(t *testing.T) {
	all := webPs(t)
	for name, data := range all {
		for n := range data {
			img, err := Decode(t.Context(), bytes.NewReader(data[:n]))
			if err == nil && n < len(data)-1 { // which may fill up a chunk
				require.Contains(t, name, "exif", "only what stands behind the pixels may be missing")
				require.NotNil(t, img)
			}
		}
	}
	for _, c := range []struct {
		name  string
		at    int
		value uint32
		want  string
	}{
		{"lossy-16x16", 4, 1<<32 - 9, "at most 67108864 are accepted"},
		{"lossy-16x16", 16, 1<<31 - 9, "broken image: unexpected EOF"},
		{"lossless", 16, 1<<31 - 9, "broken image: unexpected EOF"},
		{"lossy-alpha", 24, 0x3fff_ffff, "pixels, at most"},
		{"lossy-16x16", 26, 0x3fff_3fff, "16383×16383 pixels, at most"},
		{"lossless", 21, 0x0fff_ffff, "16384×16384 pixels, at most"},
		{"lossy-16x16", 20, 1, "no key frame"},
		{"lossy-16x16", 12, 0x20202020, `a first chunk "    "`},
	} {
		data := bytes.Clone(all[c.name])
		binary.LittleEndian.PutUint32(data[c.at:], c.value)
		var err error
		used := allocated(func() { _, err = Decode(t.Context(), bytes.NewReader(data)) })
		require.ErrorContains(t, err, c.want)
		require.LessOrEqual(t, used, int64(1<<20), c.want)
	}
	for _, side := range []int{1 << 11, 1<<11 + 1} { // the decoder does not stop
		_, err := reading(9, 9, 3, 0).DecodeBytes(t.Context(), bytes.NewReader(flatWebP(1<<14, side)))
		if side == 1<<11 {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, "the image has 16384×2049 pixels, at most 33554432 are accepted")
		}
	}
	// Profiles stand in front of the pixels, as long as other formats may have them. What is
	// reckoned is for the coding that comes behind.
	exif := all["exif-6"]
	require.Less(t, estimate(t, exif), int64(2<<20))
	require.Greater(t, estimate(t, all["lossless"]), int64(2<<20))
	for _, length := range []int{0, 1, 1000, maxHead - 38, maxHead - 37} {
		profile := binary.LittleEndian.AppendUint32([]byte("ICCP"), uint32(length))
		profile = append(profile, make([]byte, length+length&1)...)
		with := append(append(bytes.Clone(exif[:30]), profile...), exif[30:]...)
		binary.LittleEndian.PutUint32(with[4:], uint32(len(with)-8))
		var img image.Image
		var err error
		used := allocated(func() { img, err = Decode(t.Context(), bytes.NewReader(with)) })
		if length > maxHead-38 {
			require.ErrorContains(t, err, "no size in the first")
			continue
		}
		require.NoError(t, err, length)
		require.LessOrEqual(t, used, estimate(t, with))
		want, err := Decode(t.Context(), bytes.NewReader(exif))
		require.NoError(t, err)
		require.Equal(t, want, img)
	}
	// Whoever promises more than comes gets no more than the limit.
	data := bytes.Clone(all["lossy-16x16"])
	binary.LittleEndian.PutUint32(data[4:], maxWebP-8)
	_, err := decode(t.Context(), bytes.NewReader(data), Limits{Bytes: maxWebP}, fullScale)
	require.ErrorContains(t, err, "bytes of memory, at most 67108864 are accepted")
	for _, n := range []int{12, 20, 29} {
		_, err := Decode(t.Context(), io.LimitReader(bytes.NewReader(data), int64(n)))
		require.EqualError(t, err, "broken image: unexpected EOF")
	}
}
