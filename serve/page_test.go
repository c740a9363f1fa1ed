package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/serve/internal/picture"
	"github.com/bitcnn/bitcnn/vision"
)

// photo is a picture of noise that is larger than any input, as JPEG or PNG.
func photo(t *testing.T, format string) []byte {
	rng := rand.New(rand.NewPCG(8, 9))
	img := image.NewNRGBA(image.Rect(0, 0, 131, 97))
	for i := range 131 * 97 {
		img.Set(i%131, i/131, color.NRGBA{uint8(rng.Uint32()), uint8(rng.Uint32()), uint8(rng.Uint32()), 255})
	}
	var b bytes.Buffer
	if format == "jpeg" {
		require.NoError(t, jpeg.Encode(&b, img, nil))
	} else {
		require.NoError(t, png.Encode(&b, img))
	}
	return b.Bytes()
}

// An image that is posted is classified as package vision does.
func TestClassify(t *testing.T) {
	s := newServer(t, Options{}, "digits", "float")
	url := overWeb(t, s)
	net, err := bitcnn.Bundled("digits")
	require.NoError(t, err)
	session, err := bitcnn.Open(t.Context(), net, bitcnn.Options{Device: "cpu"})
	require.NoError(t, err)
	defer session.Close()
	c, err := vision.NewClassifier(session, vision.Options{})
	require.NoError(t, err)
	seven, err := os.ReadFile("../internal/samples/digit-7.png")
	require.NoError(t, err)
	for _, data := range [][]byte{photo(t, "jpeg"), photo(t, "png"), seven} {
		img, err := vision.Decode(t.Context(), bytes.NewReader(data))
		require.NoError(t, err)
		want, err := c.Classify(t.Context(), img)
		require.NoError(t, err)
		var got picture.Answer
		post(t, url+"/v2/models/digits/classify?top=3&seen=1", data).decode(t, &got)
		require.Equal(t, want.Class, got.Class)
		require.Equal(t, want.Logits, got.Logits)
		require.Equal(t, want.Top(3), got.Top)
		require.Equal(t, picture.Size{Width: 28, Height: 28, Channels: 1}, got.Seen.Size)
		in := bitcnn.NewTensor(bitcnn.Uint8, 1, session.Inputs()[0].Shape)
		require.NoError(t, c.Preprocessing().Fill(t.Context(), in, 0, img))
		require.Equal(t, in.U8, got.Seen.Pixels)
		var less picture.Answer
		post(t, url+"/v2/models/digits/versions/1/classify", data).decode(t, &less)
		require.Nil(t, less.Seen)
		require.Len(t, less.Top, 1)
	}
	var p picture.Profile
	post(t, url+"/v2/models/digits/profile", seven).decode(t, &p)
	require.Equal(t, len(session.Steps()), len(p.Steps))
	for i, step := range session.Steps() {
		require.Equal(t, step.Name, p.Steps[i].Name)
		require.Equal(t, step.Kind, p.Steps[i].Kind)
		require.GreaterOrEqual(t, p.Steps[i].Median, p.Steps[i].Min)
	}
	for _, path := range []string{"classify", "profile"} {
		post(t, url+"/v2/models/digits/"+path, []byte("no image")).fails(t, 400, "unsupported image format")
		post(t, url+"/v2/models/digits/"+path, []byte{}).fails(t, 400, "cannot read this image")
		post(t, url+"/v2/models/float/"+path, seven).fails(t, 400, `"float" does not classify photos`)
		post(t, url+"/v2/models/none/"+path, seven).fails(t, 404, "no model")
	}
	for _, top := range []string{"0", "-1", "1001", "x"} {
		post(t, url+"/v2/models/digits/classify?top="+top, seven).fails(t, 400, "want 1 to 1000")
	}
	s.profiling <- struct{}{}
	post(t, url+"/v2/models/digits/profile", seven).fails(t, http.StatusTooManyRequests, "for another client")
	<-s.profiling
}

// What lies under transparent pixels is an option, and black without it.
func TestBackground(t *testing.T) {
	clear := image.NewNRGBA(image.Rect(0, 0, 28, 28))
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, clear))
	for background, want := range map[[3]uint8]uint8{{}: 0, {255, 255, 255}: 255} {
		url := overWeb(t, newServer(t, Options{Background: background}, "digits"))
		var got picture.Answer
		post(t, url+"/v2/models/digits/classify?seen=1", b.Bytes()).decode(t, &got)
		require.Equal(t, bytes.Repeat([]byte{want}, 28*28), got.Seen.Pixels)
	}
}

// The page comes with everything that it names, from nowhere else, and no script but those of
// the server runs on it.
func TestPage(t *testing.T) {
	url := overWeb(t, newServer(t, Options{}, "digits", "float"))
	page := get(t, url+"/")
	require.Equal(t, 200, page.status)
	require.Contains(t, page.header.Get("Content-Security-Policy"), "default-src 'self'")
	require.Equal(t, "nosniff", page.header.Get("X-Content-Type-Options"))
	var named []string
	for _, m := range regexp.MustCompile(`(?:src|href|data-engine)="([^"]+)"`).FindAllSubmatch(page.body, -1) {
		named = append(named, string(m[1]))
	}
	require.Equal(t, []string{"./server.js", "icon.svg", "page.css", "page.js", "https://github.com/bitcnn/bitcnn#readme"}, named)
	for _, file := range []string{"/server.js", "/page.css", "/page.js", "/boxes.js"} {
		r := get(t, url+file)
		require.Equal(t, 200, r.status, file)
		require.NotContains(t, string(r.body), "://", file)
	}
	require.NotContains(t, string(page.body), "<style")
	require.NotContains(t, string(page.body), "onclick")
	require.Equal(t, 404, get(t, url+"/page.go").status)
	require.Equal(t, 405, post(t, url+"/", []byte{}).status)
	var models []picture.Model
	get(t, url+"/page/models").decode(t, &models)
	require.Len(t, models, 2)
	require.Equal(t, []string{"input UINT8 N×28×28×1"}, models[0].Inputs)
	require.Nil(t, models[1].Input, "it does not classify photos")
}

// FuzzInfer: whatever comes as a request is answered or refused, and never a fault of the server.
func FuzzInfer(f *testing.F) {
	s := newServer(f, Options{MaxBody: 1 << 20}, "digits", "float", "counting")
	h := s.Handler()
	f.Add(0, imageJSON, "", []byte{})
	header := `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2,4,3],"parameters":{"binary_data_size":96}}],` +
		`"outputs":[{"name":"y","parameters":{"binary_data":true}}]}`
	f.Add(1, header, fmt.Sprint(len(header)), bytes.Repeat([]byte{0xff}, 96))
	f.Add(2,
		`{"inputs":[{"name":"x","datatype":"INT8","shape":[1,4,4,1],"data":[[[[1]]]]}],"outputs":[{"name":"n","parameters":{"classification":9}}]}`, "", []byte{})
	f.Add(3, "", "0", []byte("GIF89a\x01\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, which int, text, length string, data []byte) {
		path := []string{"digits/infer", "float/infer", "counting/infer", "digits/classify"}[uint(which)%4]
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://x/v2/models/"+path,
			bytes.NewReader(append([]byte(text), data...)))
		require.NoError(t, err)
		if length != "" {
			r.Header.Set(headerLength, length)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if !slices.Contains([]int{200, 400, 413}, w.Code) {
			t.Errorf("%d: %s", w.Code, w.Body.Bytes())
		}
		if w.Header().Get("Content-Type") == "application/json" {
			require.True(t, json.Valid(w.Body.Bytes()), "%s", w.Body.Bytes())
		}
	})
}
