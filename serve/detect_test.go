package serve

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/serve/internal/picture"
	"github.com/bitcnn/bitcnn/vision"
)

// spots writes a detector of light squares of 2×2 pixels, at even places, in grey images of 8×8. It reads bytes or
// float32; of the latter it says nothing of photos if it is mute.
func spots(t testing.TB, dtype bcnn.DType, mute bool) string {
	net := &bcnn.Network{
		Name: "spots", Labels: []string{"spot"},
		Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 8, W: 8, C: 1}, DType: dtype, Photo: &bcnn.Photo{Fit: bcnn.FitStretch}}},
	}
	scale := []float32{1. / 255}
	if dtype == bcnn.Float32 {
		net.Inputs[0].Photo.Scale, scale = scale, []float32{1}
	}
	if mute {
		net.Inputs[0].Photo = nil
	}
	net.Append("brightness", bcnn.Affine{Scale: scale})
	net.Append("pool", bcnn.AvgPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}})
	net.Append("boxes", bcnn.Conv2D{
		Window: bcnn.Window{KH: 1, KW: 1}, Out: 6, Weights: bcnn.Weights{F32: []float32{0, 0, 0, 0, 1, 0}}, Bias: []float32{0.5, 0.5, 0, 0, 0, 1},
	})
	net.Detection = &bcnn.Detection{Classes: 1, Background: -1, Threshold: 0.25, Overlap: 0.45, Heads: []bcnn.Head{bcnn.YOLO{Anchors: [][2]float32{{2, 2}}}}}
	file := t.TempDir() + "/spots.bcnn"
	require.NoError(t, modelfile.Save(file, net))
	return file
}

// spotted is a picture of 8×8 with two spots, the first the lighter one.
func spotted(t testing.TB) []byte {
	img := image.NewGray(image.Rect(0, 0, 8, 8))
	for at, v := range map[image.Point]uint8{{6, 0}: 255, {2, 4}: 204} {
		for i := range 4 {
			img.Pix[(at.Y+i/2)*8+at.X+i%2] = v
		}
	}
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, img))
	return b.Bytes()
}

func TestDetect(t *testing.T) {
	s := newServer(t, Options{}, "digits")
	for name, file := range map[string]string{"bytes": spots(t, bcnn.Uint8, false), "floats": spots(t, bcnn.Float32, false), "mute": spots(t, bcnn.Float32, true)} {
		require.NoError(t, s.Add(t.Context(), name, file))
	}
	url := overWeb(t, s)
	image := spotted(t)
	first := vision.Box{Label: "spot", Score: 1, X0: 6, Y0: 0, X1: 8, Y1: 2}
	second := vision.Box{Label: "spot", Score: 0.8, X0: 2, Y0: 4, X1: 4, Y1: 6}
	for _, name := range []string{"bytes", "floats"} {
		at := url + "/v2/models/" + name
		for query, want := range map[string][]vision.Box{
			"/detect": {first, second}, "/detect?top=1": {first}, "/detect?threshold=0.9": {first}, "/detect?overlap=0.1&top=9": {first, second},
			"/versions/1/detect": {first, second},
		} {
			var got picture.Found
			post(t, at+query, image).decode(t, &got)
			require.Equal(t, name, got.Model)
			require.Equal(t, 8, got.Width)
			require.Equal(t, 8, got.Height)
			require.Equal(t, "cpu", got.Device)
			require.Len(t, got.Boxes, len(want))
			for i, b := range got.Boxes {
				require.InDelta(t, want[i].Score, b.Score, 1e-6)
				b.Score = want[i].Score
				require.Equal(t, want[i], b)
			}
		}
		for query, want := range map[string]string{
			"?top=0": "top is \"0\", want 1 to 1000", "?top=x": "want 1 to 1000", "?threshold=2": "threshold is \"2\", want 0 to 1", "?overlap=NaN": "overlap is \"NaN\", want 0 to 1",
		} {
			post(t, at+"/detect"+query, image).fails(t, 400, want)
		}
		post(t, at+"/detect", []byte("no image")).fails(t, 400, "cannot read this image: unsupported image format")
		post(t, at+"/classify", image).fails(t, 400, "is a detector; use /detect")
		var p picture.Profile
		post(t, at+"/profile", image).decode(t, &p)
		require.NotEmpty(t, p.Steps)
	}
	post(t, url+"/v2/models/mute/detect", image).fails(t, 400, "does not classify photos")
	post(t, url+"/v2/models/digits/detect", image).fails(t, 400, "is not a detector; use /classify")
	post(t, url+"/v2/models/none/detect", image).fails(t, 404, "no model")
	nothingLeft(t, s)

	// Boxes without any in the answer are a list.
	body := post(t, url+"/v2/models/bytes/detect?threshold=1", image)
	require.Contains(t, string(body.body), `"boxes":[]`)
}

// What the network sees is a part of the answer for those who ask, with the order of its channels.
func TestDetectedImage(t *testing.T) {
	s := newServer(t, Options{})
	require.NoError(t, s.Add(t.Context(), "grey", spots(t, bcnn.Uint8, false)))
	net := bitcnn.Model{Name: "blue", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 8, W: 8, C: 3}, DType: bcnn.Uint8, Photo: &bcnn.Photo{Fit: bcnn.FitStretch, BGR: true}}}}
	net.Append("scale", bcnn.Affine{Scale: []float32{1. / 255}})
	net.Append("boxes", bcnn.Channels{Index: []int32{0, 1, 2, 0, 1, 2}})
	net.Detection = &bcnn.Detection{Classes: 1, Background: -1, Overlap: 0.45, Heads: []bcnn.Head{bcnn.YOLO{Anchors: [][2]float32{{1, 1}}}}}
	file := t.TempDir() + "/blue.bcnn"
	require.NoError(t, modelfile.Save(file, &net))
	require.NoError(t, s.Add(t.Context(), "blue", file))
	url := overWeb(t, s) + "/v2/models/"
	img := image.NewNRGBA(image.Rect(0, 0, 8, 8))
	var blue, grey []byte
	for i := range 64 {
		r, g, b := uint8(i), uint8(2*i), uint8(3*i)
		img.Set(i%8, i/8, color.NRGBA{r, g, b, 255})
		blue = append(blue, b, g, r)
	}
	var data bytes.Buffer
	require.NoError(t, png.Encode(&data, img))
	decoded, err := png.Decode(bytes.NewReader(spotted(t)))
	require.NoError(t, err)
	grey = decoded.(*image.Gray).Pix
	for name, c := range map[string]struct {
		image []byte
		want  picture.Seen
	}{
		"blue": {data.Bytes(), picture.Seen{Size: picture.Size{Width: 8, Height: 8, Channels: 3}, BGR: true, Pixels: blue}},
		"grey": {spotted(t), picture.Seen{Size: picture.Size{Width: 8, Height: 8, Channels: 1}, Pixels: grey}},
	} {
		var got picture.Found
		post(t, url+name+"/detect?seen=1", c.image).decode(t, &got)
		require.Equal(t, &c.want, got.Seen)
		got = picture.Found{}
		post(t, url+name+"/detect", c.image).decode(t, &got)
		require.Nil(t, got.Seen)
	}
	var models []picture.Model
	get(t, strings.TrimSuffix(url, "v2/models/")+"page/models").decode(t, &models)
	for _, m := range models {
		require.True(t, m.Detects)
		require.Equal(t, 8, m.Input.Width)
	}
	require.Equal(t, []string{"spot"}, models[1].Labels)
}

// Tokens and the budget of memory hold for detection as for all else.
func TestDetectIsLimited(t *testing.T) {
	s := newServer(t, Options{Tokens: []string{"secret-secret-secret"}})
	require.NoError(t, s.Add(t.Context(), "spots", spots(t, bcnn.Uint8, false)))
	url := overWeb(t, s) + "/v2/models/spots/detect"
	post(t, url, spotted(t)).fails(t, http.StatusUnauthorized, "token")
	require.Equal(t, 200, post(t, url, spotted(t), "Authorization", "Bearer secret-secret-secret").status)

	s = newServer(t, Options{Memory: 16 << 20, MaxBody: 8 << 20})
	net := bitcnn.Model{Name: "large", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1000, W: 1000, C: 1}, DType: bcnn.Uint8}}}
	net.Append("a", bcnn.Affine{Scale: []float32{1}})
	net.Append("b", bcnn.Channels{Index: make([]int32, 6)})
	net.Detection = &bcnn.Detection{Classes: 1, Background: -1, Heads: []bcnn.Head{bcnn.YOLO{Anchors: [][2]float32{{1, 1}}}}}
	file := t.TempDir() + "/large.bcnn"
	require.NoError(t, modelfile.Save(file, &net))
	require.NoError(t, s.Add(t.Context(), "large", file))
	url = overWeb(t, s) + "/v2/models/large/detect"
	post(t, url, spotted(t)).fails(t, http.StatusRequestEntityTooLarge, "memory")
	nothingLeft(t, s)
}

// Boxes of large outputs are made in turns, as their number is the client's choice; small outputs wait for none of them.
func TestBoxesTakeTheirTurn(t *testing.T) {
	s := newServer(t, Options{})
	net := bitcnn.Model{Name: "large", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 128, W: 128, C: 1}, DType: bcnn.Uint8, Photo: &bcnn.Photo{Fit: bcnn.FitStretch}}}}
	net.Append("a", bcnn.Affine{Scale: []float32{1. / 255}})
	net.Append("b", bcnn.Channels{Index: make([]int32, 6)})
	net.Detection = &bcnn.Detection{Classes: 1, Background: -1, Overlap: 0.45, Heads: []bcnn.Head{bcnn.YOLO{Anchors: [][2]float32{{1, 1}}}}}
	file := t.TempDir() + "/large.bcnn"
	require.NoError(t, modelfile.Save(file, &net))
	require.NoError(t, s.Add(t.Context(), "large", file))
	require.NoError(t, s.Add(t.Context(), "spots", spots(t, bcnn.Uint8, false)))
	url := overWeb(t, s) + "/v2/models/"
	threads := s.long.free
	for range threads {
		require.NoError(t, s.long.wait(t.Context(), "somebody"))
	}
	require.Equal(t, 200, post(t, url+"spots/detect", spotted(t)).status)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", url+"large/detect?threshold=0.01&overlap=1", bytes.NewReader(spotted(t)))
	require.NoError(t, err)
	ended := make(chan error)
	go func() {
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = answer.Body.Close()
		}
		ended <- err
	}()
	waiting := func(n int) func() bool {
		return func() bool {
			s.long.mu.Lock()
			defer s.long.mu.Unlock()
			return len(s.long.waiting) == n
		}
	}
	require.Eventually(t, waiting(1), 10*time.Second, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Eventually(t, waiting(0), 10*time.Second, time.Millisecond)
	for range threads {
		s.long.done("somebody")
	}
	require.Equal(t, 200, post(t, url+"large/detect?threshold=0.01&overlap=1", spotted(t)).status)
	require.Equal(t, threads, s.long.free)
	nothingLeft(t, s)
}
