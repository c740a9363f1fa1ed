package vision_test

import (
	"context"
	"fmt"
	"image"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/vision"
)

// A classifier with one of the trained models, on the CPU.
func ExampleClassifier() {
	ctx := context.Background()
	model, err := bitcnn.Bundled("digits") // or bitcnn.Load of a file
	if err != nil {
		log.Fatal(err)
	}
	session, err := bitcnn.Open(ctx, model, bitcnn.Options{Device: "cpu"}) // or "auto", "cuda:0", "opencl:1"
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	c, err := vision.NewClassifier(session, vision.Options{})
	if err != nil {
		log.Fatal(err)
	}

	img, err := vision.DecodeFile(ctx, "../internal/samples/digit-7.png")
	if err != nil {
		log.Fatal(err)
	}
	r, err := c.Classify(ctx, img)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, %.0f %%\n", r.Label, 100*r.Probability)
	// Output: 7, 92 %
}

// A service that says what is on the photos that it gets.
func Example_service() {
	ctx := context.Background()
	model, err := bitcnn.Bundled("digits")
	if err != nil {
		log.Fatal(err)
	}
	session, err := bitcnn.Open(ctx, model, bitcnn.Options{Device: "cpu"})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	classifier, err := vision.NewClassifier(session, vision.Options{})
	if err != nil {
		log.Fatal(err)
	}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		img, err := vision.Decode(r.Context(), r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		result, err := classifier.Classify(r.Context(), img)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, result.Label)
	}))
	defer service.Close()

	for _, file := range []string{"../internal/samples/digit-4.png", "example_test.go"} {
		f, err := os.Open(file)
		if err != nil {
			log.Fatal(err)
		}
		answer, err := http.Post(service.URL, "application/octet-stream", f)
		if err != nil {
			log.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(answer.StatusCode, strings.TrimSpace(string(text)))
	}
	// Output:
	// 200 4
	// 400 unsupported image format (supported: JPEG, PNG, GIF, BMP, WebP)
}

// Several images in one run of the device, and the two likeliest classes of each.
func ExampleClassifier_ClassifyBatch() {
	ctx := context.Background()
	model, err := bitcnn.Bundled("digits")
	if err != nil {
		log.Fatal(err)
	}
	session, err := bitcnn.Open(ctx, model, bitcnn.Options{Device: "cpu", MaxBatch: 16})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	c, err := vision.NewClassifier(session, vision.Options{})
	if err != nil {
		log.Fatal(err)
	}

	var images []image.Image
	for _, digit := range []int{3, 5} {
		img, err := vision.DecodeFile(ctx, fmt.Sprintf("../internal/samples/digit-%d.png", digit))
		if err != nil {
			log.Fatal(err)
		}
		images = append(images, img)
	}
	results, err := c.ClassifyBatch(ctx, images)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		top := r.Top(2)
		fmt.Printf("%s, if not %s\n", top[0].Label, top[1].Label)
	}
	// Output:
	// 3, if not 8
	// 5, if not 6
}

// The input of a network that was trained on (x/255 − 0.5)/0.25.
func ExamplePreprocessing() {
	p := vision.Preprocessing{
		Input: bcnn.Input{Shape: bcnn.Shape{H: 1, W: 2, C: 1}, DType: bcnn.Float32},
		Mean:  []float32{255 * 0.5},
		Scale: []float32{1 / (255 * 0.25)},
	}
	img := image.NewGray(image.Rect(0, 0, 4, 2)) // twice as large as the input
	copy(img.Pix, []uint8{
		0, 0, 255, 255,
		0, 0, 255, 255,
	})
	batch := bcnn.NewTensor(p.Input.DType, 1, p.Input.Shape)
	if err := p.Fill(context.Background(), batch, 0, img); err != nil {
		log.Fatal(err)
	}
	fmt.Println(batch.F32)
	// Output: [-1.4352942 1.4352942]
}

func ExampleTopK() {
	for _, c := range vision.TopK([]float32{1, 3, 2}, []string{"bike", "car", "truck"}, 2) {
		fmt.Printf("%s %.0f %%\n", c.Label, 100*c.Probability)
	}
	// Output:
	// car 67 %
	// truck 24 %
}
