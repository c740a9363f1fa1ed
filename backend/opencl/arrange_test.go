//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestArrange(t *testing.T) {
	type found struct {
		platform, place string
		merit           int
	}
	for name, c := range map[string]struct {
		found []found
		want  []string // IDs and platforms
	}{
		"none":                {nil, nil},
		"places are unknown":  {[]found{{"A", "", 1}, {"A", "", 2}}, []string{"opencl:0 A", "opencl:1 A"}},
		"two of one driver":   {[]found{{"A", "1", 1}, {"A", "2", 1}}, []string{"opencl:0 A", "opencl:1 A"}},
		"the first is better": {[]found{{"A", "1", 2}, {"Rusticl, new", "1", 1}, {"A", "2", 1}}, []string{"opencl:0 A", "opencl:1 A", "opencl:rusticl-new Rusticl, new"}},
		"the last is better":  {[]found{{"PoCL 1", "1", 1}, {"A", "2", 1}, {"B", "1", 2}}, []string{"opencl:0 B", "opencl:1 A", "opencl:pocl-1 PoCL 1"}},
		"equal":               {[]found{{"A", "1", 1}, {"B", "1", 1}}, []string{"opencl:0 A", "opencl:b B"}},
		"three":               {[]found{{"B", "1", 1}, {"B", "1", 2}, {"B", "1", 1}}, []string{"opencl:0 B", "opencl:b B", "opencl:b-2 B"}},
		"a name of signs":     {[]found{{"A", "1", 1}, {"(é)", "1", 1}}, []string{"opencl:0 A", "opencl:other (é)"}},
	} {
		t.Run(name, func(t *testing.T) {
			var devices []*device
			for _, f := range c.found {
				devices = append(devices, &device{platform: f.platform, place: f.place, merit: f.merit})
			}
			var got []string
			for _, d := range arrange(devices) {
				got = append(got, d.info.ID+" "+d.platform)
			}
			require.Equal(t, c.want, got)
		})
	}
}
