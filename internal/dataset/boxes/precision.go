package boxes

import (
	"cmp"
	"context"
	"image"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/dataset"
	"github.com/bitcnn/bitcnn/vision"
)

// Precision is how well a detector finds the boxes of a set: the average precision as COCO defines it, which is
// the mean, over 101 recalls, of the best precision at such a recall or a higher one. A box counts as found if its
// intersection over union with one of its class reaches a threshold. Means are those of the classes that
// occur in the set.
type Precision struct {
	Images  int `json:"images"`
	Objects int `json:"objects"`
	// AP is the mean of thresholds from 0.5 to 0.95 in steps of 0.05, AP50 and AP75 are those of 0.5 and 0.75; 0
	// to 1.
	AP      float64 `json:"ap"`
	AP50    float64 `json:"ap50"`
	AP75    float64 `json:"ap75"`
	Classes []Class `json:"classes"`
}

// Class is the precision of a class that occurs.
type Class struct {
	Label   string  `json:"label"`
	Objects int     `json:"objects"`
	AP      float64 `json:"ap"`
	AP50    float64 `json:"ap50"`
	AP75    float64 `json:"ap75"`
}

// MostBoxes is how many boxes of a class count on an image, those with the highest scores.
const MostBoxes = 100

const (
	thresholds = 10  // 0.5, 0.55, …, 0.95
	recalls    = 101 // 0, 0.01, …, 1
	at75       = 5   // 0.75
)

// threshold returns one of the thresholds.
func threshold(k int) float64 { return float64(50+5*k) / 100 }

// Evaluate finds boxes on all images, a number of images in a batch, and compares them. Images that cannot be
// read are not counted.
func Evaluate(ctx context.Context, d *vision.Detector, set *Set, size int, o dataset.Observer) (*Precision, error) {
	p := d.Preprocessing()
	m := NewMeter(d.Labels())
	b := dataset.Batches[vision.Frame]{
		Images: len(set.Images), Size: size, Preprocessing: p,
		Read: func(i int) (image.Image, error) { return p.DecodeFile(ctx, set.Images[i].File) },
		Note: p.Frame,
		Run: func(batch bcnn.Tensor, members []int, frames []vision.Frame) error {
			found, err := d.DetectTensor(ctx, batch, frames...)
			if err != nil {
				return err
			}
			for k, f := range found {
				truths := set.Images[members[k]].Truths
				if set.Parts {
					truths = inPixels(truths, float64(f.Width), float64(f.Height))
				}
				m.Add(truths, f.Boxes)
			}
			return nil
		},
	}
	if err := b.Each(ctx, o); err != nil {
		return nil, err
	}
	return m.Precision(), nil
}

func inPixels(parts []Truth, w, h float64) []Truth {
	list := slices.Clone(parts)
	for i := range list {
		t := &list[i]
		t.X0, t.X1, t.Y0, t.Y1 = t.X0*w, t.X1*w, t.Y0*h, t.Y1*h
	}
	return list
}

// Meter counts, image by image, which boxes are found.
type Meter struct {
	labels  []string
	images  int
	objects []int   // of each class
	found   [][]hit // by class
}

// hit is a box that a detector gives, and whether it counts.
type hit struct {
	score             float32
	true, unimportant [thresholds]bool // an unimportant one is neither right nor wrong
}

// NewMeter returns a meter for classes.
func NewMeter(labels []string) *Meter {
	return &Meter{labels: labels, objects: make([]int, len(labels)), found: make([][]hit, len(labels))}
}

// Add compares the boxes that a detector gives for an image, the best first, with those that are on it.
func (m *Meter) Add(truths []Truth, boxes []vision.Box) {
	m.images++
	for c := range m.labels {
		var real []Truth
		for _, t := range truths {
			if t.Class == c && !t.Crowd {
				real = append(real, t)
			}
		}
		m.objects[c] += len(real)
		for _, t := range truths { // crowds come behind
			if t.Class == c && t.Crowd {
				real = append(real, t)
			}
		}
		var given []vision.Box
		for _, b := range boxes {
			if b.Index == c && len(given) < MostBoxes {
				given = append(given, b)
			}
		}
		m.found[c] = append(m.found[c], matched(real, given)...)
	}
}

// matched gives each box the truth that it overlaps most and that no better box has. Crowds are taken where there
// is nothing else, by any number of boxes.
func matched(truths []Truth, boxes []vision.Box) []hit {
	hits := make([]hit, len(boxes))
	overlaps := make([]float64, len(truths))
	taken := make([][thresholds]bool, len(truths))
	for i, b := range boxes {
		hits[i].score = b.Score
		for g, t := range truths {
			overlaps[g] = overlap(b, t)
		}
		for k := range thresholds {
			best, least := -1, threshold(k)
			for g, t := range truths {
				switch {
				case taken[g][k] && !t.Crowd:
				case best >= 0 && !truths[best].Crowd && t.Crowd:
				case overlaps[g] >= least:
					best, least = g, overlaps[g]
				}
			}
			if best >= 0 {
				taken[best][k] = true
				hits[i].true[k], hits[i].unimportant[k] = !truths[best].Crowd, truths[best].Crowd
			}
		}
	}
	return hits
}

// overlap is the intersection over union, for a crowd over the box.
func overlap(b vision.Box, t Truth) float64 {
	x0, y0, x1, y1 := float64(b.X0), float64(b.Y0), float64(b.X1), float64(b.Y1)
	w, h := min(x1, t.X1)-max(x0, t.X0), min(y1, t.Y1)-max(y0, t.Y0)
	if w <= 0 || h <= 0 {
		return 0
	}
	all := (x1 - x0) * (y1 - y0)
	if !t.Crowd {
		all += (t.X1-t.X0)*(t.Y1-t.Y0) - w*h
	}
	return w * h / all
}

// Precision returns what has been measured.
func (m *Meter) Precision() *Precision {
	p := &Precision{Images: m.images, Classes: []Class{}}
	for c, label := range m.labels {
		if m.objects[c] == 0 {
			continue
		}
		hits := m.found[c]
		slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
		class := Class{Label: label, Objects: m.objects[c]}
		for k := range thresholds {
			ap := average(hits, k, m.objects[c])
			class.AP += ap / thresholds
			switch k {
			case 0:
				class.AP50 = ap
			case at75:
				class.AP75 = ap
			}
		}
		p.Classes = append(p.Classes, class)
		p.Objects += class.Objects
	}
	n := float64(max(len(p.Classes), 1))
	for _, c := range p.Classes {
		p.AP, p.AP50, p.AP75 = p.AP+c.AP/n, p.AP50+c.AP50/n, p.AP75+c.AP75/n
	}
	return p
}

// average returns the average precision at a threshold of hits in the order of their scores, of which so many
// objects are to be found.
func average(hits []hit, k, objects int) float64 {
	var recall, precision []float64
	right, wrong := 0, 0
	for _, h := range hits {
		switch {
		case h.unimportant[k]:
		case h.true[k]:
			right++
		default:
			wrong++
		}
		recall = append(recall, float64(right)/float64(objects))
		precision = append(precision, float64(right)/float64(max(right+wrong, 1)))
	}
	for i := len(precision) - 2; i >= 0; i-- {
		precision[i] = max(precision[i], precision[i+1])
	}
	sum, at := 0.0, 0
	for r := range recalls {
		for at < len(recall) && recall[at] < float64(float64(r)*0.01) {
			at++
		}
		if at < len(recall) {
			sum += precision[at]
		}
	}
	return sum / recalls
}
