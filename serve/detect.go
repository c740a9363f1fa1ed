package serve

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/internal/text"
	"github.com/bitcnn/bitcnn/serve/internal/picture"
	"github.com/bitcnn/bitcnn/vision"
)

// newDetector returns a detector by a session, nil where it is none or does not say how photos are read.
func newDetector(s *bitcnn.Session, photos vision.Options) *vision.Detector {
	d, err := vision.NewDetector(s, vision.DetectorOptions{Options: photos})
	if err != nil {
		return nil
	}
	return d
}

// preprocessing is how a model that reads images prepares them.
func (m *model) preprocessing() vision.Preprocessing {
	if m.detector != nil {
		return m.detector.Preprocessing()
	}
	return m.classifier.Preprocessing()
}

// The memory that boxes take while they are made: the outputs, and twice their size at the most for boxes
// that point to their scores; and, whatever the network, the candidates and the answer.
const (
	decodingFactor = 3
	decodingRest   = 2 << 20
)

// briefOutputs is the size of outputs of which boxes are made in a short time, whatever the threshold:
// of these there are few enough.
const briefOutputs = 256 << 10

// outputBytes is the memory of the outputs for an image.
func (m *model) outputBytes() (size int64) {
	for _, o := range m.session.Outputs() {
		size += o.Shape.Bytes(o.DType)
	}
	return size
}

func (s *Server) postDetect(w http.ResponseWriter, r *http.Request) error {
	return s.withImages(w, r, func(ctx context.Context, m *model, body *body) error {
		if m.detector == nil {
			return badf("the model %s is not a detector; use /classify", text.Quote(m.name))
		}
		opts, err := selection(r.URL.Query())
		if err != nil {
			return err
		}
		opts.Options = m.photos
		d, err := vision.NewDetector(m.session, opts)
		if err != nil {
			return err
		}
		if err := body.take(decodingFactor*m.outputBytes() + decodingRest); err != nil {
			return err
		}
		var found *picture.Found
		err = m.traced(ctx, "detection", func(ctx context.Context) error {
			image, err := s.decode(ctx, m, body)
			if err == nil {
				found, err = picture.Detect(ctx, m.name, m.session, d, image, wantsSeen(r), func(ctx context.Context) (func(), error) {
					return s.boxTurn(ctx, m, body.client)
				})
			}
			return err
		})
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, found)
	})
}

// boxTurn waits for a turn to make boxes, whose number the client sets by its threshold.
func (s *Server) boxTurn(ctx context.Context, m *model, client string) (done func(), err error) {
	queue := s.brief
	if m.outputBytes() > briefOutputs {
		queue = s.long
	}
	if err := queue.wait(ctx, client); err != nil {
		return nil, err
	}
	return func() { queue.done(client) }, nil
}

// selection reads which boxes a request wants: those with scores above threshold, the best top of them, of
// which none overlaps a better one by more than overlap.
func selection(query url.Values) (o vision.DetectorOptions, err error) {
	part := func(name string) float32 {
		v := query.Get(name)
		if v == "" || err != nil {
			return 0
		}
		f, wrong := strconv.ParseFloat(v, 32)
		if wrong != nil || !(f >= 0 && f <= 1) {
			err = badf("%s is %s, want 0 to 1", name, text.Quote(v))
		}
		return float32(f)
	}
	if o.Threshold, o.Overlap = part("threshold"), part("overlap"); err != nil {
		return o, err
	}
	if top := query.Get("top"); top != "" {
		if o.Top, err = strconv.Atoi(top); err != nil || o.Top < 1 || o.Top > mostClasses {
			return o, badf("top is %s, want 1 to %d", text.Quote(top), mostClasses)
		}
	}
	return o, nil
}
