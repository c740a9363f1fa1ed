package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/internal/text"
	"github.com/bitcnn/bitcnn/serve/internal/picture"
	"github.com/bitcnn/bitcnn/serve/internal/tensor"
)

// headerLength is the header that says how many bytes of a body are JSON; binary data are
// behind those.
const headerLength = "Inference-Header-Content-Length"

// job does something with a model for a request with this body.
type job func(ctx context.Context, m *model, body *body) error

// withModel calls do with the model of a request, its body and a context that ends in time,
// and counts it. limit is the size of a body that the model can make something of, at the most.
func (s *Server) withModel(w http.ResponseWriter, r *http.Request, limit func(m *model) int64, do job) error {
	most := s.opts.MaxBody
	if m, err := s.repository.acquire(r.PathValue("model"), r.PathValue("version")); err == nil {
		most = min(most, limit(m))
		m.release()
	}
	// Whoever sends a body slowly takes no place of others, and keeps no model from being closed.
	body, err := s.body(w, r, most)
	if err != nil {
		return err
	}
	defer body.free()
	if err := s.begin(body.client); err != nil {
		return err
	}
	defer s.end(body.client)
	began := time.Now()
	m, err := s.repository.acquire(r.PathValue("model"), r.PathValue("version"))
	if err != nil {
		return err
	}
	defer m.release()
	ctx, cancel := context.WithTimeout(r.Context(), s.opts.Timeout)
	defer cancel()
	err = do(ctx, m, body)
	m.counters.done(overHTTP, time.Since(began), err)
	return err
}

// begin admits a request for a model, which ends with end.
func (s *Server) begin(client string) error {
	if err := s.requests.take(client, 1); err != nil {
		return err
	}
	s.metrics.progress.Inc()
	return nil
}

func (s *Server) end(client string) {
	s.requests.give(client, 1)
	s.metrics.progress.Dec()
}

// largeJSON is how much JSON takes its turn, as it takes long to read.
const largeJSON = 256 << 10

func (s *Server) postInfer(w http.ResponseWriter, r *http.Request) error {
	return s.withModel(w, r, (*model).largestBody, func(ctx context.Context, m *model, body *body) error {
		length := -1
		if h := r.Header.Get(headerLength); h != "" {
			n, err := strconv.Atoi(h)
			if err != nil || n < 0 {
				return badf("the header %s is %s, want a number of bytes", headerLength, text.Quote(h))
			}
			length = n
		}
		read := func() {} // ends the turn of those that read JSON
		if n := min(uint(length), uint(len(body.bytes))); n > largeJSON {
			if err := s.long.wait(ctx, body.client); err != nil {
				return err
			}
			read = sync.OnceFunc(func() { s.long.done(body.client) })
			defer read()
		}
		var request *tensor.Request
		var err error
		if length == 0 {
			request, err = m.raw(body.bytes)
		} else {
			request, err = tensor.Parse(ctx, body.bytes, length, tensor.Most{Inputs: len(m.inputs), Outputs: len(m.outputs)})
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return failure{codes.InvalidArgument, err}
		}
		response, err := m.infer(ctx, &body.hold, request, read)
		if err != nil {
			return err
		}
		answer, length, err := response.Append(nil)
		if errors.Is(err, tensor.ErrJSON) {
			return failure{codes.InvalidArgument, err} // the server is not to blame for what comes of a NaN
		}
		if err != nil {
			return err
		}
		if length < 0 {
			return writeBody(w, http.StatusOK, answer)
		}
		h := w.Header()
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Content-Length", strconv.Itoa(len(answer)))
		h.Set(headerLength, strconv.Itoa(length))
		_, err = w.Write(answer)
		return clientGone(err)
	})
}

// mostClasses bounds the classes that an image may be answered with.
const mostClasses = 1000

func (s *Server) postClassify(w http.ResponseWriter, r *http.Request) error {
	return s.withImages(w, r, func(ctx context.Context, m *model, body *body) error {
		if m.classifier == nil {
			return badf("the model %s is a detector; use /detect", text.Quote(m.name))
		}
		o := picture.Options{Top: 1, Seen: wantsSeen(r)}
		if top := r.URL.Query().Get("top"); top != "" {
			n, err := strconv.Atoi(top)
			if err != nil || n < 1 || n > mostClasses {
				return badf("top is %s, want 1 to %d", text.Quote(top), mostClasses)
			}
			o.Top = n
		}
		var answer *picture.Answer
		err := m.traced(ctx, "classification", func(ctx context.Context) error {
			image, err := s.decode(ctx, m, body)
			if err != nil {
				return err
			}
			answer, err = picture.Classify(ctx, m.name, m.session, m.classifier, image, o)
			return err
		})
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, answer)
	})
}

// wantsSeen reports whether a request asks for the image as the network reads it.
func wantsSeen(r *http.Request) bool { return r.URL.Query().Get("seen") == "1" }

func (s *Server) postProfile(w http.ResponseWriter, r *http.Request) error {
	return s.withImages(w, r, func(ctx context.Context, m *model, body *body) error {
		image, err := s.decode(ctx, m, body)
		if err != nil {
			return err
		}
		select {
		case s.profiling <- struct{}{}:
		default:
			return failf(codes.ResourceExhausted, "steps are being measured for another client")
		}
		defer func() { <-s.profiling }()
		p, err := picture.Measure(ctx, m.name, m.session, image)
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, p)
	})
}

// withImages is withModel for models that read images. The body is the picture alone then,
// also where it came in a form.
func (s *Server) withImages(w http.ResponseWriter, r *http.Request, do job) error {
	any := func(*model) int64 { return math.MaxInt64 }
	return s.withModel(w, r, any, func(ctx context.Context, m *model, body *body) error {
		if m.classifier == nil && m.detector == nil {
			return badf("the model %s does not classify photos; use /infer", text.Quote(m.name))
		}
		var err error
		if body.bytes, err = pictureOf(r.Header.Get("Content-Type"), body.bytes); err != nil {
			return err
		}
		return do(ctx, m, body)
	})
}

// briefBytes is the memory of pictures that take a short time to decode: a megapixel.
const briefBytes = 4 << 20

// maxOverrun is for how long the decoding of a picture may go on behind the end of its request.
const maxOverrun = 100 * time.Millisecond

// decode decodes the picture of a request. It takes its turn: more at the same time than there are
// threads are no faster, and take more memory.
func (s *Server) decode(ctx context.Context, m *model, body *body) (*picture.Image, error) {
	p := m.preprocessing()
	size, err := picture.DecodingBytes(ctx, p, body.bytes)
	if err == nil {
		// With the network's input, once as it reads it and once to be seen.
		if err = body.take(size + 8*int64(m.session.Inputs()[0].Shape.Values())); err != nil {
			return nil, err
		}
		queue := s.brief
		if size > briefBytes {
			queue = s.long
		}
		if err = queue.wait(ctx, body.client); err != nil {
			return nil, err
		}
		defer queue.done(body.client)
		var image *picture.Image
		if image, err = picture.Decode(ctx, p, body.bytes); err == nil {
			body.give(size)
			return image, nil
		}
	}
	if ctx.Err() == nil && errors.Is(err, picture.ErrImage) {
		return nil, failure{codes.InvalidArgument, err}
	}
	return nil, cmp.Or(ctx.Err(), err)
}

func (s *Server) getMetadata(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, map[string]any{
		"name": serverName, "version": bitcnn.Version(), "extensions": protocolExtensions,
	})
}

// getModels lists the models: their names as KServe does, and the rows of Triton's index.
func (s *Server) getModels(w http.ResponseWriter, _ *http.Request) error {
	index, names := s.repository.index(false), []string{}
	for _, i := range index {
		names = append(names, i.Name)
	}
	slices.Sort(names)
	return writeJSON(w, http.StatusOK, map[string]any{"models": slices.Compact(names), "index": index})
}

func (s *Server) getModel(w http.ResponseWriter, r *http.Request) error {
	m, err := s.repository.acquire(r.PathValue("model"), r.PathValue("version"))
	if err != nil {
		return err
	}
	defer m.release()
	type description struct {
		Name     string  `json:"name"`
		Datatype string  `json:"datatype"`
		Shape    []int64 `json:"shape"`
	}
	describe := func(ports []port) []description {
		var list []description
		for _, p := range ports {
			list = append(list, description{p.Name, p.datatype, p.shape(-1)})
		}
		return list
	}
	return writeJSON(w, http.StatusOK, map[string]any{
		"name": m.name, "versions": s.repository.versions(m.name), "platform": platform,
		"inputs": describe(m.inputs), "outputs": describe(m.outputs),
	})
}

func (s *Server) getModelReady(w http.ResponseWriter, r *http.Request) error {
	m, err := s.repository.acquire(r.PathValue("model"), r.PathValue("version"))
	if err != nil && classified(err).code != codes.Unavailable {
		return err
	}
	if err == nil {
		m.release()
	}
	ready := err == nil && !s.draining.Load()
	return writeReady(w, ready, map[string]any{"name": r.PathValue("model"), "ready": ready})
}

func (s *Server) getConfig(w http.ResponseWriter, r *http.Request) error {
	m, err := s.repository.acquire(r.PathValue("model"), r.PathValue("version"))
	if err != nil {
		return err
	}
	defer m.release()
	return writeJSON(w, http.StatusOK, plain(m.config().ProtoReflect()))
}

func (s *Server) getStatistics(w http.ResponseWriter, r *http.Request) error {
	answer, err := s.statistics(r.PathValue("model"), r.PathValue("version"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, plain(answer.ProtoReflect()))
}

// smallBody bounds the bodies of requests about the repository.
const smallBody = 64 << 10

func (s *Server) postIndex(w http.ResponseWriter, r *http.Request) error {
	body, err := s.body(w, r, smallBody)
	if err != nil {
		return err
	}
	defer body.free()
	var request struct {
		Ready bool `json:"ready"`
	}
	if len(body.bytes) > 0 {
		if err := json.Unmarshal(body.bytes, &request); err != nil {
			return badf("the request is not valid JSON: %w", err)
		}
	}
	return writeJSON(w, http.StatusOK, s.repository.index(request.Ready))
}

func (s *Server) postLoad(w http.ResponseWriter, r *http.Request) error {
	body, err := s.body(w, r, smallBody)
	if err != nil {
		return err
	}
	defer body.free()
	var request struct {
		Parameters map[string]json.RawMessage `json:"parameters"`
	}
	if len(body.bytes) > 0 {
		if err := json.Unmarshal(body.bytes, &request); err != nil {
			return badf("the request is not valid JSON: %w", err)
		}
	}
	if err := s.control(len(request.Parameters)); err != nil {
		return err
	}
	if err := s.load(r.Context(), body.client, r.PathValue("model")); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// control checks whether clients may load and unload models, with so many parameters.
func (s *Server) control(parameters int) error {
	switch {
	case s.opts.Fixed:
		return failf(codes.PermissionDenied, "clients may not load and unload models here")
	case parameters > 0:
		return badf("models are loaded from the server's files only: parameters are not supported")
	}
	return nil
}

func (s *Server) postUnload(w http.ResponseWriter, r *http.Request) error {
	if err := s.control(0); err != nil {
		return err
	}
	if err := s.repository.unload(r.Context(), r.PathValue("model")); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}
