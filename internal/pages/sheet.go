package pages

import (
	"cmp"
	"html/template"
	"slices"
	"strings"
)

// Sheet is a contact sheet of classified photos.
type Sheet struct {
	Title, Device string
	Total, Left   int
	Photos        []Photo
	Broken        []string // why photos could not be read
}

// Photo is a photo of a sheet with what is likely on it, the likeliest first.
type Photo struct {
	File    string
	Picture template.URL
	Answers []Answer
}

// Small reports whether the picture has so few pixels that they are to be seen.
func (p Photo) Small() bool { return strings.HasPrefix(string(p.Picture), "data:image/png") }

// mostPhotos are shown: a page of more pictures is slow in a browser.
const mostPhotos = 1000

// Add adds a photo.
func (s *Sheet) Add(p Photo) {
	s.Total++
	s.Photos = append(s.Photos, p)
	if len(s.Photos) >= 2*mostPhotos {
		s.sort()
	}
}

// sort puts the photos in order, and leaves out those that there are too many of.
func (s *Sheet) sort() {
	slices.SortStableFunc(s.Photos, func(a, b Photo) int { return cmp.Compare(a.certainty(), b.certainty()) })
	if extra := len(s.Photos) - mostPhotos; extra > 0 {
		s.Left += extra
		clear(s.Photos[mostPhotos:])
		s.Photos = s.Photos[:mostPhotos]
	}
}

// certainty is how much likelier the likeliest class is than the next one.
func (p Photo) certainty() float64 {
	switch len(p.Answers) {
	case 0:
		return 0
	case 1:
		return p.Answers[0].Percent
	}
	return p.Answers[0].Percent - p.Answers[1].Percent
}

// Write writes the page, completely or not at all.
func (s *Sheet) Write(path string) error {
	s.sort()
	return write(path, "sheet", s)
}
