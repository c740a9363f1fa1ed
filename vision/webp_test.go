package vision

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// costlyWebP writes a lossy WebP with the probabilities of lossy-costly, by which a token takes few
// bits, and random tokens.
func costlyWebP(t testing.TB, w, h int) []byte {
	from := webPs(t)["lossy-costly"][20:]
	const head, parts = 10, 8
	n := int(binary.LittleEndian.Uint32(from) & 0xffffff >> 5)
	first := append(bytes.Clone(from[head:head+n]), make([]byte, w*h/256)...) // the simplest predictions
	each := 2 * w * h / parts
	frame := binary.LittleEndian.AppendUint32(nil, uint32(len(first)<<5|0x10))[:3]
	frame = append(frame, from[3:6]...)
	frame = append(frame, byte(w), byte(w>>8), byte(h), byte(h>>8))
	frame = append(frame, first...)
	for range parts - 1 {
		frame = append(frame, byte(each), byte(each>>8), byte(each>>16))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range parts * each {
		frame = append(frame, byte(rng.Uint32()))
	}
	b := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(12+len(frame)))
	return append(binary.LittleEndian.AppendUint32(append(b, "WEBPVP8 "...), uint32(len(frame))), frame...)
}

// How long decoding may go on when its context has ended follows from the header, and is bounded for
// who asks for it.
func TestOverrun(t *testing.T) {
	all := webPs(t)
	lossy := func(w, h, length int) []byte { // the beginning of a simple file
		b := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8 \x00\x00\x00\x00\x10\x00\x00\x9d\x01\x2a"), byte(w), byte(w>>8), byte(h), byte(h>>8))
		binary.LittleEndian.PutUint32(b[4:], uint32(length-8))
		binary.LittleEndian.PutUint32(b[16:], uint32(length-20))
		return b
	}
	extended := bytes.Clone(all["lossy-alpha"])
	frame := bytes.Index(extended, []byte("VP8 "))
	png := flats(t, 1203, 1005)[0].data
	for _, c := range []struct {
		name string
		data []byte
		want time.Duration
	}{
		{"lossless", flatWebP(1000, 500), 16 * time.Millisecond},
		{"few bytes", lossy(1000, 500, 10_000), 17200 * time.Microsecond},
		{"many bytes", lossy(1000, 500, 10_000_000), 76 * time.Millisecond},
		{"costly", costlyWebP(t, 64, 64), 1 << 12 * 152},
		{"largest", lossy(1<<13, 1<<12, maxWebP), 1 << 25 * 152},
		{"with alpha", extended, 37*29*32 + 120*time.Duration(binary.LittleEndian.Uint32(extended[frame+4:]))},
		{"no WebP", png, 0},
	} {
		p := reading(9, 9, 3, 0)
		o, err := openImage(t.Context(), bytes.NewReader(c.data), p.Limits, fullScale)
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, o.overrun, c.name)
		for _, limit := range []time.Duration{c.want, c.want - 1} {
			p.Limits.Overrun = limit
			_, err = p.DecodeBytes(t.Context(), bytes.NewReader(c.data))
			if limit < c.want && limit > 0 {
				require.ErrorContains(t, err, "pixels of a WebP cannot be stopped for up to", c.name)
				continue
			}
			require.NoError(t, err, c.name)
		}
	}
	p := reading(9, 9, 3, 0)
	p.Limits.Overrun = 100 * time.Millisecond
	_, err := p.Decode(t.Context(), bytes.NewReader(lossy(4000, 3000, 1_500_000)))
	require.EqualError(t, err, "decoding the 4000×3000 pixels of a WebP cannot be stopped for up to 564ms, at most 100ms are accepted: "+
		"make it smaller, or a JPEG or PNG")
}
