package pages

import (
	"math"

	"github.com/bitcnn/bitcnn/internal/dataset"
)

// Accuracy is how well a model knows a set of images.
type Accuracy struct {
	Title    string
	Labels   []string
	Result   *dataset.Evaluation
	Mistakes []Mistake
	More     int // mistakes that are not shown
}

// Mistake is a photo of a class that was taken for others.
type Mistake struct {
	Photo
	Class string
}

// MostMistakes are shown.
const MostMistakes = 60

// Row is a class of the confusion matrix.
type Row struct {
	Label   string
	Cells   []Cell
	Total   int
	Percent float64
}

// Cell is how many images of a class had an answer, with a shade in percent.
type Cell struct {
	Count int
	Right bool
	Shade float64
}

func (a *Accuracy) Correct() int     { return a.Result.Correct }
func (a *Accuracy) Total() int       { return a.Result.Total }
func (a *Accuracy) Percent() float64 { return 100 * a.Result.Accuracy }

// Low and High are the ends of the percentage's interval, Wilson's of one standard error (1927).
// It stays within 0 and 100, and is not empty if all answers are right.
func (a *Accuracy) Low() float64  { return a.bound(-1) }
func (a *Accuracy) High() float64 { return a.bound(1) }

func (a *Accuracy) bound(sign float64) float64 {
	p, n := a.Result.Accuracy, float64(a.Result.Total)
	half := math.Sqrt(p*(1-p)/n + 1/(4*n*n))
	return 100 * min(1, max(0, (p+1/(2*n)+sign*half)/(1+1/n)))
}

// Rows are those of the confusion matrix.
func (a *Accuracy) Rows() []Row {
	var rows []Row
	for class, counts := range a.Result.Confusion {
		r := Row{Label: a.Labels[class]}
		for _, n := range counts {
			r.Total += n
		}
		for answer, n := range counts {
			share := float64(n) / float64(max(1, r.Total))
			r.Cells = append(r.Cells, Cell{n, answer == class, 85 * math.Sqrt(share)})
		}
		r.Percent = 100 * float64(counts[class]) / float64(max(1, r.Total))
		rows = append(rows, r)
	}
	return rows
}

// Write writes the page, completely or not at all.
func (a *Accuracy) Write(path string) error { return write(path, "accuracy", a) }
