package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// frame writes a header and what follows it as a request.
func frame(header string, parts ...[]byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(header)))
	return append(append(b, header...), bytes.Join(parts, nil)...)
}

// model is a .bcnn file of a network that negates two channels.
func model(t *testing.T) []byte {
	data, err := modelfile.Encode(&bcnn.Network{
		Name:   "negation",
		Inputs: []bcnn.Input{{DType: bcnn.Float32, Shape: bcnn.Shape{H: 1, W: 1, C: 2}}},
		Layers: []bcnn.Layer{{Name: "y", Inputs: []int{bcnn.NetworkInput}, Op: bcnn.Affine{Scale: []float32{-1}, Bias: []float32{0}}}},
	})
	require.NoError(t, err)
	return data
}

// Requests behind each other are answered in their order, a refusal in between.
func TestServe(t *testing.T) {
	m := model(t)
	array := `[{"name":"input","dtype":"float32","dims":[2,2]}]`
	values := binary.LittleEndian.AppendUint32(nil, math.Float32bits(1.5))
	values = append(values, make([]byte, 12)...)
	var in, out bytes.Buffer
	in.Write(frame(fmt.Sprintf(`{"id":7,"model_bytes":%d,"inputs":%s,"checks":["roundtrip","isas","batch","threads","reference"]}`, len(m), array), m, values))
	in.Write(frame(`{"id":8,"model_bytes":3,"inputs":[]}`, []byte("abc")))
	in.Write(frame(fmt.Sprintf(`{"id":9,"model_bytes":%d,"inputs":%s}`, len(m), array), m, values))
	require.NoError(t, serve(&in, &out, time.Minute))
	for _, want := range []struct {
		id     int
		status string
	}{{7, ok}, {8, refused}, {9, ok}} {
		var n uint32
		require.NoError(t, binary.Read(&out, binary.LittleEndian, &n))
		var a answer
		require.NoError(t, json.Unmarshal(out.Next(int(n)), &a))
		require.Equal(t, want.id, a.ID)
		require.Equal(t, want.status, a.Status, a.Message)
		require.Empty(t, a.Differences)
		if a.Status != ok {
			require.NotEmpty(t, a.Message)
			continue
		}
		require.Equal(t, "float32", a.Outputs[0].DType)
		require.Equal(t, []int{2, 2}, a.Outputs[0].Dims)
		require.Equal(t, math.Float32bits(-1.5), binary.LittleEndian.Uint32(out.Next(16)))
	}
	require.Zero(t, out.Len())
}

// A stream that is cut off, or none of requests, is an error and not the end.
func TestServeBroken(t *testing.T) {
	whole := frame(`{"id":1,"model_bytes":4}`, []byte("1234"))
	for n := 1; n < len(whole); n++ {
		require.ErrorIs(t, serve(bytes.NewReader(whole[:n]), io.Discard, 0), io.ErrUnexpectedEOF)
	}
	for _, header := range []string{`{`, `{"no such":1}`, `{"model_bytes":-1}`, `{"inputs":[{"dtype":"float33"}]}`, `{"inputs":[{"dtype":"int8","dims":[-1]}]}`} {
		require.Error(t, serve(bytes.NewReader(frame(header)), io.Discard, 0), header)
	}
	require.ErrorContains(t, serve(bytes.NewReader([]byte{0, 0, 0, 255}), io.Discard, 0), "are allowed")
}

// Checks that fail. They stay: what never ends reads them for as long as the tests run.
func init() {
	checks["panic"] = func(*job, func(string, [][]float32)) error { panic("as asked") }
	checks["late"] = func(j *job, _ func(string, [][]float32)) error { <-j.ctx.Done(); return j.ctx.Err() }
	checks["never"] = func(*job, func(string, [][]float32)) error { select {} }
}

// Panics, time-outs and what does not end are answers.
func TestFailures(t *testing.T) {
	inputs := []array{{"input", "float32", []int{1, 2}}}
	for name, want := range map[string]string{"panic": "as asked", "late": "time-out", "never": "hang", "none": "no check"} {
		q := &request{model: model(t), Inputs: inputs, data: [][]byte{make([]byte, 8)}, Seconds: 0.5, Checks: []string{name}}
		a := answerInTime(q, time.Second)
		require.Equal(t, failed, a.Status)
		require.Contains(t, a.Message, want)
		require.Equal(t, name == "never", a.Last)
	}
}

// fails is a context that panics when it is asked whether it has ended.
type fails struct{ context.Context }

func (fails) Err() error { panic("as asked") }

// A panic that an importer has recovered from is a failure, and no refusal.
func TestRecovered(t *testing.T) {
	z, err := zip.OpenReader(filepath.Join(testenv.Root(t), "bcnn/tflite/testdata/lce.zip"))
	require.NoError(t, err)
	defer z.Close()
	model, err := fs.ReadFile(z, "op_bconv_00_float32.tflite")
	require.NoError(t, err)
	for _, c := range []struct {
		ctx    context.Context
		status string
	}{{fails{t.Context()}, failed}, {t.Context(), refused}} {
		data := model
		if c.status == refused {
			data = model[:len(model)-100]
		}
		a := respond(c.ctx, &request{model: data})
		require.Equal(t, c.status, a.Status, a.Message)
		require.Equal(t, c.status == failed, strings.Contains(a.Message, "fails.Err("))
	}
}

// Differences are of bits; NaNs are all the same one.
func TestDifferences(t *testing.T) {
	nan := float32(math.NaN())
	q := &request{model: model(t), Inputs: []array{{"input", "float32", []int{1, 2}}}, data: [][]byte{make([]byte, 8)}}
	net, _, err := convert(context.Background(), q.model, options{})
	require.NoError(t, err)
	j, err := newJob(context.Background(), net, q.Inputs, q.data)
	require.NoError(t, err)
	negativeZero := float32(math.Copysign(0, -1))
	require.Empty(t, j.differences("x", [][]float32{{nan, 0}}, [][]float32{{-nan, 0}}))
	require.Len(t, j.differences("x", [][]float32{{1, 0}}, [][]float32{{1, negativeZero}}), 1)
	require.Contains(t, j.differences("x", [][]float32{{1, 2}}, [][]float32{{3, nan}})[0], "2 of 2 values, first at 0: 3, not 1")
}
