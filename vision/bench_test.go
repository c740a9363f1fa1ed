package vision

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/webp"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/vehiclenet"
)

// BenchmarkFill prepares photos of 1920×1080 pixels for VehicleNet, and the same
// by package draw, in turns.
func BenchmarkFill(b *testing.B) {
	batch := bcnn.NewTensor(bcnn.Uint8, 1, rgb96.Shape)
	for _, img := range images(1920, 1080, contents[1]) {
		b.Run(img.name, func(b *testing.B) {
			// The shortest times: others may use the machine.
			draw, fill := time.Hour, time.Hour
			for b.Loop() {
				start := time.Now()
				drawn(img.Image, rgb96)
				draw = min(draw, time.Since(start))
				start = time.Now()
				if err := (Preprocessing{Input: rgb96}).Fill(b.Context(), batch, 0, img.Image); err != nil {
					b.Fatal(err)
				}
				fill = min(fill, time.Since(start))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(draw.Microseconds()), "draw-µs")
			b.ReportMetric(float64(fill.Microseconds()), "fill-µs")
			b.ReportMetric(draw.Seconds()/fill.Seconds(), "times-as-fast")
		})
	}
}

// BenchmarkClassify has goroutines classify photos of 1920×1080 pixels, by a
// Classifier, and by one that prepares them by package draw under a lock.
func BenchmarkClassify(b *testing.B) {
	net, err := vehiclenet.Load(b.Context(), "vehiclenet")
	require.NoError(b, err)
	c := classifier(b, open(b, net, bitcnn.Options{}), Options{})
	photo := images(1920, 1080, contents[1])[4]
	require.Equal(b, "YCbCrSubsampleRatio420", photo.name)

	var lock sync.Mutex
	locked := func() error {
		lock.Lock()
		defer lock.Unlock()
		in := c.tensor(1)
		copy(in.U8, drawn(photo.Image, net.Inputs[0]))
		_, err := c.ClassifyTensor(b.Context(), in)
		return err
	}
	free := func() error {
		_, err := c.Classify(b.Context(), photo.Image)
		return err
	}
	for _, goroutines := range []int{1, 2, 4} {
		for _, way := range []struct {
			name     string
			classify func() error
		}{{"draw-locked", locked}, {"Classifier", free}} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", way.name, goroutines), func(b *testing.B) {
				var next atomic.Int64
				var wg sync.WaitGroup
				for range goroutines {
					wg.Add(1)
					go func() {
						defer wg.Done()
						for next.Add(1) <= int64(b.N) {
							if err := way.classify(); err != nil {
								b.Error(err)
							}
						}
					}()
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "images/s")
			})
		}
	}
}

// BenchmarkDecodeWebP has the time of a pixel for which decoding does not stop: of a lossy frame
// of many tokens, and of lossless pixels and transforms that take no bits.
func BenchmarkDecodeWebP(b *testing.B) {
	for name, data := range map[string][]byte{"lossy": costlyWebP(b, 640, 480), "lossless": flatWebP(640, 480)} {
		o, err := openImage(b.Context(), bytes.NewReader(data), Limits{}, fullScale)
		require.NoError(b, err)
		pixels := float64(o.size.X * o.size.Y)
		b.Run(name, func(b *testing.B) {
			least := time.Hour // others may use the machine
			for b.Loop() {
				start := time.Now()
				if _, err := webp.Decode(bytes.NewReader(data)); err != nil {
					b.Fatal(err)
				}
				least = min(least, time.Since(start))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(least)/pixels, "ns/pixel")
			b.ReportMetric(float64(o.overrun)/pixels, "reckoned-ns/pixel")
		})
	}
}
