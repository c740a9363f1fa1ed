// Package answers tests importers with known answers: graphs drawn at random, their inputs,
// and what another engine computes of them, on which every bit counts but for the sign of 0.
// internal/importfuzz records the archives.
package answers

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"math"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/arrays"
	"github.com/bitcnn/bitcnn/internal/npy"
)

// graph is a model of an archive with its arrays by name.
type graph struct {
	number  string
	model   []byte
	in, out map[string]*npy.Array
}

// Test imports each graph of an archive, runs it, lowered with fusing and without, and compares.
func Test(t *testing.T, archive string, decode func(ctx context.Context, model []byte) (*bcnn.Network, error)) {
	TestWithin(t, archive, 0, decode)
}

// TestWithin is Test for answers that may differ by a fraction of the largest.
func TestWithin(t *testing.T, archive string, tolerance float64, decode func(ctx context.Context, model []byte) (*bcnn.Network, error)) {
	graphs := read(t, archive)
	require.Greater(t, len(graphs), 100)
	for _, g := range graphs {
		t.Run(g.number, func(t *testing.T) {
			net, err := decode(t.Context(), g.model)
			require.NoError(t, err)
			ports, err := arrays.PortsOf(net)
			require.NoError(t, err)
			require.Len(t, ports.Outputs, len(g.out))
			for _, unfused := range []bool{false, true} {
				g.compare(t, net, ports, unfused, tolerance)
			}
		})
	}
}

func (g graph) compare(t *testing.T, net *bcnn.Network, ports *arrays.Ports, unfused bool, tolerance float64) {
	plan, err := lower.Network(t.Context(), net, lower.Options{Unfused: unfused})
	require.NoError(t, err)
	var x []bcnn.Tensor
	images := 0
	for i, p := range ports.Inputs {
		a := find(t, g.in, p.Name, len(ports.Inputs))
		images, err = p.Batch(a.Shape)
		require.NoError(t, err)
		x = append(x, bcnn.NewTensor(net.Inputs[i].DType, images, net.Inputs[i].Shape))
		require.NoError(t, p.Fill(x[i], a))
	}
	results, err := ref.RunAll(t.Context(), plan, x, nil)
	require.NoError(t, err)
	for i, p := range ports.Outputs {
		a := find(t, g.out, p.Name, len(ports.Outputs))
		if !p.Flat(a.Shape, images) {
			n, err := p.Batch(a.Shape)
			require.NoError(t, err)
			require.Equal(t, images, n)
		}
		want, err := p.Numbers(a)
		require.NoError(t, err)
		values := make([]float32, images*p.Shape.Values())
		p.Values(values, results[i])
		p.Results(values)
		require.Len(t, values, len(want))
		largest := 0.0
		for _, v := range want {
			largest = max(largest, math.Abs(v))
		}
		for at, v := range values {
			if !(math.Abs(want[at]-float64(v)) <= tolerance*largest) {
				require.Failf(t, "another number", "%s, unfused %t: element %d is %v, want %v", p.Name, unfused, at, v, want[at])
			}
		}
	}
}

// find returns an array by name, or the only one.
func find(t *testing.T, list map[string]*npy.Array, name string, ports int) *npy.Array {
	if a := list[name]; a != nil {
		return a
	}
	require.Len(t, list, 1, name)
	require.Equal(t, 1, ports, name)
	for _, a := range list {
		return a
	}
	return nil
}

func read(t *testing.T, archive string) []graph {
	z, err := zip.OpenReader(archive)
	require.NoError(t, err)
	defer z.Close()
	var list []graph
	for _, f := range z.File {
		number, rest, _ := strings.Cut(f.Name, "/")
		r, err := f.Open()
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		if rest == "model" {
			list = append(list, graph{number, data, map[string]*npy.Array{}, map[string]*npy.Array{}})
			continue
		}
		g := &list[len(list)-1]
		file, err := npy.Open(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err, f.Name)
		a, err := file.Read(file.Names()[0])
		require.NoError(t, err, f.Name)
		folder, name := path.Split(rest)
		map[string]map[string]*npy.Array{"in/": g.in, "out/": g.out}[folder][strings.TrimSuffix(name, ".npy")] = a
	}
	return slices.Clip(list)
}
