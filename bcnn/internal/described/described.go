// Package described has the JSON by which files say how photos become an input and how boxes are made of
// outputs: .bcnn files, and the metadata of ONNX files. docs/model-file.md tells what it means.
package described

import (
	"encoding/json"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Photo describes a bcnn.Photo.
type Photo struct {
	Fit    string    `json:"fit,omitempty"`
	BGR    bool      `json:"bgr,omitempty"`
	Grey   uint8     `json:"grey,omitempty"`
	Corner bool      `json:"corner,omitempty"`
	Mean   []float32 `json:"mean,omitempty"`
	Scale  []float32 `json:"scale,omitempty"`
}

// OfPhoto describes p.
func OfPhoto(p *bcnn.Photo) *Photo {
	return &Photo{string(p.Fit), p.BGR, p.Grey, p.Corner, p.Mean, p.Scale}
}

// Photo returns what is described, unchecked.
func (j *Photo) Photo() *bcnn.Photo {
	return &bcnn.Photo{Fit: bcnn.Fit(j.Fit), BGR: j.BGR, Grey: j.Grey, Corner: j.Corner, Mean: j.Mean, Scale: j.Scale}
}

// Detection describes a bcnn.Detection.
type Detection struct {
	Classes    int     `json:"classes"`
	Background int     `json:"background"` // −1 for none
	Threshold  float32 `json:"threshold"`
	Overlap    float32 `json:"overlap"`
	TopK       int     `json:"top_k,omitempty"`
	Keep       int     `json:"keep,omitempty"`
	Heads      []Head  `json:"heads"`
}

// OfDetection describes d but for its heads.
func OfDetection(d *bcnn.Detection) *Detection {
	return &Detection{d.Classes, d.Background, d.Threshold, d.Overlap, d.TopK, d.Keep, nil}
}

// Detection returns what is described but for the heads, unchecked.
func (j *Detection) Detection() *bcnn.Detection {
	return &bcnn.Detection{Classes: j.Classes, Background: j.Background, Threshold: j.Threshold, Overlap: j.Overlap, TopK: j.TopK, Keep: j.Keep}
}

// Head describes a bcnn.Head. Its params are those of its kind.
type Head struct {
	Kind    string            `json:"kind"`
	Params  json.RawMessage   `json:"params"`
	Tensors map[string]string `json:"tensors,omitempty"` // role → name of the tensor
}

// YOLO are the params of a bcnn.YOLO.
type YOLO struct {
	Output  int         `json:"output"`
	Anchors [][]float32 `json:"anchors"` // width, height
	Cells   bool        `json:"cells,omitempty"`
	Squared bool        `json:"squared,omitempty"`
	Centre  string      `json:"centre,omitempty"` // functions
	Object  string      `json:"object,omitempty"`
	Class   string      `json:"class,omitempty"`
}

// OfYOLO describes h.
func OfYOLO(h bcnn.YOLO) YOLO {
	p := YOLO{h.Output, nil, h.Cells, h.Squared, string(h.Centre), string(h.Object), string(h.Class)}
	for _, a := range h.Anchors {
		p.Anchors = append(p.Anchors, []float32{a[0], a[1]})
	}
	return p
}

// Head returns what is described, unchecked but for the length of its anchors.
func (p YOLO) Head() (bcnn.YOLO, error) {
	y := bcnn.YOLO{
		Output: p.Output, Cells: p.Cells, Squared: p.Squared,
		Centre: bcnn.Activation(p.Centre), Object: bcnn.Activation(p.Object), Class: bcnn.Activation(p.Class),
	}
	for _, a := range p.Anchors {
		if len(a) != 2 {
			return y, fmt.Errorf("an anchor of %d numbers, want its width and height", len(a))
		}
		y.Anchors = append(y.Anchors, [2]float32{a[0], a[1]})
	}
	return y, nil
}
