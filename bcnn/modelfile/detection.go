package modelfile

import (
	"fmt"
	"strconv"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/described"
	"github.com/bitcnn/bitcnn/internal/text"
)

// detectionVersion is the first version of the format that says how boxes are made of outputs, and
// what becomes of photos but for their size.
const detectionVersion = 9

// borderVersion is the first version that says what the borders of photos are.
const borderVersion = 12

// dflVersion is the first version that has heads of distributions.
const dflVersion = 10

type ssdJSON struct {
	Locations   int  `json:"locations"` // numbers of outputs
	Confidences int  `json:"confidences"`
	Softmax     bool `json:"softmax,omitempty"`
}

type dflJSON struct {
	Output int    `json:"output"`
	Bins   int    `json:"bins"`
	Class  string `json:"class,omitempty"` // function
}

// Roles of tensors of a head.
const (
	priors    = "priors"
	variances = "variances"
)

func encodePhoto(p *bcnn.Photo, version *int) *described.Photo {
	if p == nil {
		return nil
	}
	*version = max(*version, detectionVersion)
	if p.Grey != 0 || p.Corner {
		*version = max(*version, borderVersion)
	}
	return described.OfPhoto(p)
}

func decodePhoto(j *described.Photo, version int) (*bcnn.Photo, error) {
	switch {
	case j == nil:
		return nil, nil
	case version < detectionVersion:
		return nil, fmt.Errorf("photos need version %d of the format, this file has version %d", detectionVersion, version)
	case version < borderVersion && (j.Grey != 0 || j.Corner):
		return nil, fmt.Errorf("borders of photos need version %d of the format, this file has version %d", borderVersion, version)
	}
	return j.Photo(), nil
}

// encodeDetection describes how boxes are made.
func encodeDetection(d *bcnn.Detection, version *int) (*described.Detection, []*tensor, error) {
	if d == nil {
		return nil, nil, nil
	}
	*version = max(*version, detectionVersion)
	out := described.OfDetection(d)
	var tensors []*tensor
	for i, h := range d.Heads {
		// No layer has tensors of these roles, so that names are unique.
		w := layerWriter{layer: layerJSON{Name: "detection." + strconv.Itoa(i)}}
		switch h := h.(type) {
		case bcnn.SSD:
			w.params = ssdJSON{h.Locations, h.Confidences, h.Softmax}
			w.floats(priors, &h.Priors)
			w.floats(variances, &h.Variances)
		case bcnn.YOLO:
			w.params = described.OfYOLO(h)
		case bcnn.DFL:
			*version = max(*version, dflVersion)
			w.params = dflJSON{h.Output, h.Bins, string(h.Class)}
		}
		params, err := marshal(w.params)
		if err != nil {
			return nil, nil, err
		}
		out.Heads = append(out.Heads, described.Head{Kind: h.Kind(), Params: params, Tensors: w.layer.Tensors})
		tensors = append(tensors, w.tensors...)
	}
	return out, tensors, nil
}

// detection reads how boxes are made.
func (r *layerReader) detection(j *described.Detection) (*bcnn.Detection, error) {
	switch {
	case j == nil:
		return nil, nil
	case r.version < detectionVersion:
		return nil, fmt.Errorf("it needs version %d of the format, this file has version %d", detectionVersion, r.version)
	}
	d := j.Detection()
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
		h := bcnn.SSD{Locations: p.Locations, Confidences: p.Confidences, Softmax: p.Softmax}
		r.floats(priors, &h.Priors)
		r.floats(variances, &h.Variances)
		return h, r.err
	case bcnn.YOLO{}.Kind():
		var p described.YOLO
		if err := r.params(&p); err != nil {
			return nil, err
		}
		return p.Head()
	case bcnn.DFL{}.Kind():
		if r.version < dflVersion {
			return nil, fmt.Errorf("it is of kind dfl, which needs version %d of the format, this file has version %d", dflVersion, r.version)
		}
		var p dflJSON
		err := r.params(&p)
		return bcnn.DFL{Output: p.Output, Bins: p.Bins, Class: bcnn.Activation(p.Class)}, err
	}
	return nil, fmt.Errorf("unknown kind of head %s", text.Quote(r.layer.Kind))
}
