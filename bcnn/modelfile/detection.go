package modelfile

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/text"
)

// detectionVersion is the first version of the format that says how boxes are made of outputs, and
// what becomes of photos but for their size.
const detectionVersion = 9

type photoJSON struct {
	Fit   string    `json:"fit,omitempty"`
	BGR   bool      `json:"bgr,omitempty"`
	Mean  []float32 `json:"mean,omitempty"`
	Scale []float32 `json:"scale,omitempty"`
}

type detectionJSON struct {
	Classes    int        `json:"classes"`
	Background int        `json:"background"` // −1 for none
	Threshold  float32    `json:"threshold"`
	Overlap    float32    `json:"overlap"`
	TopK       int        `json:"top_k,omitempty"`
	Keep       int        `json:"keep,omitempty"`
	Heads      []headJSON `json:"heads"`
}

type headJSON struct {
	Kind    string            `json:"kind"`
	Params  json.RawMessage   `json:"params"`
	Tensors map[string]string `json:"tensors,omitempty"` // role → name of the tensor
}

type ssdJSON struct {
	Locations   int  `json:"locations"` // numbers of outputs
	Confidences int  `json:"confidences"`
	Softmax     bool `json:"softmax,omitempty"`
}

type yoloJSON struct {
	Output  int         `json:"output"`
	Anchors [][]float32 `json:"anchors"` // width, height
	Cells   bool        `json:"cells,omitempty"`
	Squared bool        `json:"squared,omitempty"`
	Centre  string      `json:"centre,omitempty"` // functions
	Object  string      `json:"object,omitempty"`
	Class   string      `json:"class,omitempty"`
}

// Roles of tensors of a head.
const (
	priors    = "priors"
	variances = "variances"
)

func encodePhoto(p *bcnn.Photo, version *int) *photoJSON {
	if p == nil {
		return nil
	}
	*version = max(*version, detectionVersion)
	return &photoJSON{string(p.Fit), p.BGR, p.Mean, p.Scale}
}

func (j *photoJSON) decode(version int) (*bcnn.Photo, error) {
	switch {
	case j == nil:
		return nil, nil
	case version < detectionVersion:
		return nil, fmt.Errorf("photos need version %d of the format, this file has version %d", detectionVersion, version)
	}
	return &bcnn.Photo{Fit: bcnn.Fit(j.Fit), BGR: j.BGR, Mean: j.Mean, Scale: j.Scale}, nil
}

// encodeDetection describes how boxes are made.
func encodeDetection(d *bcnn.Detection, version *int) (*detectionJSON, []*tensor, error) {
	if d == nil {
		return nil, nil, nil
	}
	*version = max(*version, detectionVersion)
	out := &detectionJSON{d.Classes, d.Background, d.Threshold, d.Overlap, d.TopK, d.Keep, nil}
	var tensors []*tensor
	for i, h := range d.Heads {
		// No layer has tensors of these roles, so that names are unique.
		w := layerWriter{layer: layerJSON{Name: "detection." + strconv.Itoa(i)}}
		switch h := h.(type) {
		case bcnn.SSD:
			w.params = ssdJSON{h.Locations, h.Confidences, h.Softmax}
			w.addF32(priors, h.Priors)
			w.addF32(variances, h.Variances)
		case bcnn.YOLO:
			p := yoloJSON{h.Output, nil, h.Cells, h.Squared, string(h.Centre), string(h.Object), string(h.Class)}
			for _, a := range h.Anchors {
				p.Anchors = append(p.Anchors, []float32{a[0], a[1]})
			}
			w.params = p
		}
		params, err := marshal(w.params)
		if err != nil {
			return nil, nil, err
		}
		out.Heads = append(out.Heads, headJSON{h.Kind(), params, w.layer.Tensors})
		tensors = append(tensors, w.tensors...)
	}
	return out, tensors, nil
}

// detection reads how boxes are made.
func (r *layerReader) detection(j *detectionJSON) (*bcnn.Detection, error) {
	switch {
	case j == nil:
		return nil, nil
	case r.version < detectionVersion:
		return nil, fmt.Errorf("it needs version %d of the format, this file has version %d", detectionVersion, r.version)
	}
	d := &bcnn.Detection{Classes: j.Classes, Background: j.Background, Threshold: j.Threshold, Overlap: j.Overlap, TopK: j.TopK, Keep: j.Keep}
	for i, h := range j.Heads {
		r.layer = layerJSON{Kind: h.Kind, Params: h.Params, Tensors: h.Tensors}
		head, err := r.head()
		if err == nil {
			err = r.checkUsed()
		}
		if err != nil {
			return nil, fmt.Errorf("head %d: %w", i, err)
		}
		d.Heads = append(d.Heads, head)
	}
	return d, nil
}

func (r *layerReader) head() (bcnn.Head, error) {
	switch r.layer.Kind {
	case bcnn.SSD{}.Kind():
		var p ssdJSON
		if err := r.params(&p); err != nil {
			return nil, err
		}
		v, err := r.floats(priors, variances)
		return bcnn.SSD{Locations: p.Locations, Confidences: p.Confidences, Softmax: p.Softmax, Priors: v[0], Variances: v[1]}, err
	case bcnn.YOLO{}.Kind():
		var p yoloJSON
		if err := r.params(&p); err != nil {
			return nil, err
		}
		y := bcnn.YOLO{
			Output: p.Output, Cells: p.Cells, Squared: p.Squared,
			Centre: bcnn.Activation(p.Centre), Object: bcnn.Activation(p.Object), Class: bcnn.Activation(p.Class),
		}
		for _, a := range p.Anchors {
			if len(a) != 2 {
				return nil, fmt.Errorf("an anchor of %d numbers, want its width and height", len(a))
			}
			y.Anchors = append(y.Anchors, [2]float32{a[0], a[1]})
		}
		return y, nil
	}
	return nil, fmt.Errorf("unknown kind of head %s", text.Quote(r.layer.Kind))
}
