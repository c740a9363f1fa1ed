package main

import (
	"fmt"
	"strings"

	"github.com/bitcnn/bitcnn/internal/chart"
)

// trained is what photos.json has: how accurate networks are that python -m bitcnn.train has
// trained, by the number of photos.
type trained struct {
	File, Title string // of the chart
	Sets        []struct {
		Name string // of the data set
		Runs []struct {
			Photos         int // of a class
			Percent, Error float64
		}
	}
}

// accuracy returns the page and the chart of photos.json, by name.
func accuracy(data []byte, read func(string) ([]byte, error)) (map[string][]byte, error) {
	const page = "docs/photos.md"
	var f trained
	if err := decode("photos.json", data, &f); err != nil {
		return nil, err
	}
	var table strings.Builder
	table.WriteString("| data set | photos a class | accuracy |\n|---|---|---|\n")
	drawn := chart.Chart{Title: f.Title, Axis: "% right", Least: 100}
	for _, set := range f.Sets {
		panel := chart.Panel{Title: set.Name}
		for _, r := range set.Runs {
			figure := fmt.Sprintf("%.1f ± %.1f %%", r.Percent, r.Error)
			fmt.Fprintf(&table, "| %s | %d | %s |\n", set.Name, r.Photos, figure)
			panel.Bars = append(panel.Bars, chart.Bar{
				Label: fmt.Sprint(r.Photos, " a class"), Note: figure, Parts: []chart.Part{part(r.Percent, "bcnn")},
			})
		}
		drawn.Panels = append(drawn.Panels, panel)
	}
	text, err := withTable(page, "photos.json", table.String(), read)
	if err != nil {
		return nil, err
	}
	picture, err := svg(drawn)
	return map[string][]byte{page: text, f.File: picture}, err
}
