package tensor

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// floats are the elements of FP32.
func floats(values ...float32) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		panic(err)
	}
	return b
}

func TestArrays(t *testing.T) {
	for _, c := range []struct {
		json, datatype string
		shape          []int64
		want           []byte
		fault          string
	}{
		{"[1,2,3,4]", Uint8, []int64{2, 2}, []byte{1, 2, 3, 4}, ""},
		{" [ [1, 2] ,\n[3,\t4] ] ", Uint8, []int64{2, 2}, []byte{1, 2, 3, 4}, ""},
		{"[[[1],[2]],[[3],[255]]]", Uint8, []int64{2, 2, 1}, []byte{1, 2, 3, 255}, ""},
		{"[]", Uint8, []int64{0, 3}, nil, ""},
		{"[7]", Uint8, nil, []byte{7}, ""},
		{"[-128,127]", Int8, []int64{2}, []byte{0x80, 0x7f}, ""},
		{"[-2]", Int32, []int64{1}, []byte{0xfe, 0xff, 0xff, 0xff}, ""},
		{"[-9223372036854775808]", Int64, []int64{1}, []byte{0, 0, 0, 0, 0, 0, 0, 0x80}, ""},
		{"[1,-0.5,1e-45,0.1]", FP32, []int64{4}, floats(1, -.5, 1e-45, .1), ""},
		// Halfway between two float32 and a little more: rounded once, not by way of float64.
		{"[1.00000005960464477539062501]", FP32, []int64{1}, floats(math.Nextafter32(1, 2)), ""},
		{"[256]", Uint8, []int64{1}, nil, `element 0 of a row of data: "256" is no whole number from 0 to 255`},
		{"[1,-1]", Uint8, []int64{2}, nil, `"-1" is no whole number from 0 to 255`},
		{"[128]", Int8, []int64{1}, nil, "from -128 to 127"},
		{"[9223372036854775808]", Int64, []int64{1}, nil, "is no whole number"},
		{"[1.0]", Uint8, []int64{1}, nil, `"1.0" is no whole number`},
		{"[1e39]", FP32, []int64{1}, nil, `"1e39" is no number of float32`},
		{"[null]", Uint8, []int64{1}, nil, `"null" is no whole number`},
		{`["1"]`, Uint8, []int64{1}, nil, "something else than numbers"},
		{`[{"a":1}]`, Uint8, []int64{1}, nil, "something else than numbers"},
		{"[1,2,3]", Uint8, []int64{2, 2}, nil, "data has 3 elements in a row, the shape has 4"},
		{"[1,2,3,4,5]", Uint8, []int64{2, 2}, nil, "more elements"},
		{"[[1,2]]", Uint8, []int64{2, 2}, nil, "not as many rows"},
		{"[[1,2],[3,4],[5,6]]", Uint8, []int64{2, 2}, nil, "not as many rows"},
		{"[[1,2],[3]]", Uint8, []int64{2, 2}, nil, "data has 1 elements in a row, the shape has 2"},
		{"[[1,2],3]", Uint8, []int64{2, 2}, nil, "a number where the shape has 1 more dimensions"},
		{"[[[1]]]", Uint8, []int64{1, 1}, nil, "something else than numbers where the shape has its last dimension"},
		{"[[1]]", Uint8, nil, nil, "more dimensions than the shape"},
		{"7", Uint8, []int64{1}, nil, "data is no array"},
		{"", Uint8, []int64{1}, nil, "data is no array"},
		{"[1]", Uint8, []int64{-1}, nil, "a dimension of -1"},
		{"[1]", Uint8, []int64{1 << 40, 0}, nil, "more than 2147483647 elements"},
		{"[1]", Uint8, []int64{1 << 20, 1 << 20}, nil, "more than 2147483647 elements"},
		{"[1]", "FP64", []int64{1}, nil, `datatype "FP64" is not supported`},
		{"[1]", Bytes, []int64{1}, nil, `datatype "BYTES" is not supported`},
	} {
		got, err := appendArray(t.Context(), nil, []byte(c.json), c.datatype, c.shape)
		if c.fault != "" {
			require.ErrorContains(t, err, c.fault, c.json)
			continue
		}
		require.NoError(t, err, c.json)
		require.Equal(t, c.want, got, c.json)
	}
}

// What is written as JSON is read as the same bits, for numbers drawn from all that there are.
func TestJSONKeepsBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, datatype := range []string{Uint8, Int8, Int32, Int64, FP32} {
		data := make([]byte, 3000*Size(datatype))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		if datatype == FP32 {
			for i := 0; i < len(data); i += 4 {
				if bits := binary.LittleEndian.Uint32(data[i:]); bits>>23&0xff == 0xff {
					data[i+3] ^= 0x40 // finite
				}
			}
		}
		shape := []int64{3000}
		text, err := AppendJSON(nil, Tensor{Datatype: datatype, Shape: shape, Data: data})
		require.NoError(t, err)
		require.True(t, json.Valid(text))
		back, err := appendArray(t.Context(), nil, text, datatype, shape)
		require.NoError(t, err)
		require.Equal(t, data, back, datatype)
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		_, err := AppendJSON(nil, Tensor{Name: "y", Datatype: FP32, Data: floats(float32(v))})
		require.ErrorContains(t, err, "ask for binary data")
	}
	_, err := AppendJSON(nil, Tensor{Datatype: FP32, Data: []byte{1, 2, 3}})
	require.ErrorContains(t, err, "3 bytes of FP32")
}

func TestStrings(t *testing.T) {
	list := []string{"", "a", "größer\"<\x00"}
	var data []byte
	for _, s := range list {
		data = AppendBytes(data, s)
	}
	got, err := Strings(data)
	require.NoError(t, err)
	require.Equal(t, list, got)
	text, err := AppendJSON(nil, Tensor{Datatype: Bytes, Data: data})
	require.NoError(t, err)
	var back []string
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, list, back)
	for cut := 1; cut < len(data); cut++ {
		if cut == 4 || cut == 9 { // behind an element
			continue
		}
		_, err := Strings(data[:cut])
		require.Error(t, err, cut)
	}
}

const twoInputs = `{"id":"7","inputs":[` +
	`{"name":"a","datatype":"UINT8","shape":[1,3],"parameters":{"binary_data_size":3}},` +
	`{"name":"b","datatype":"UINT8","shape":[2],"data":[8,9]},` +
	`{"name":"c","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":4}}],` +
	`"outputs":[{"name":"x","parameters":{"binary_data":true}},{"name":"y","parameters":{"classification":3}}],` +
	`"parameters":{"binary_data_output":false,"priority":0}}`

func TestParse(t *testing.T) {
	body := append([]byte(twoInputs), 1, 2, 3, 0, 0, 0x80, 0x3f)
	r, err := Parse(t.Context(), body, len(twoInputs), Most{3, 2})
	require.NoError(t, err)
	require.Equal(t, "7", r.ID)
	require.Equal(t, []Output{{Name: "x", Binary: true}, {Name: "y", Classes: 3}}, r.Outputs)
	require.Len(t, r.Inputs, 3)
	require.Equal(t, []byte{1, 2, 3}, r.Inputs[0].Data)
	require.Equal(t, []byte{0, 0, 0x80, 0x3f}, r.Inputs[2].Data)
	b, err := r.Inputs[1].Read(nil)
	require.NoError(t, err)
	require.Equal(t, []byte{8, 9}, b)

	input := func(rest string) string {
		return `{"inputs":[{"name":"a","datatype":"UINT8","shape":[1]` + rest + `}]}`
	}
	for _, c := range []struct {
		body   string
		length int
		fault  string
	}{
		{"", -1, "ends too early"},
		{`{"inputs":[`, -1, "ends too early"},
		{`[]`, -1, `has an array as ""`},
		{`nonsense`, -1, "not valid JSON"},
		{`{"inputs":[{"name":7}]}`, -1, `has a number as "inputs.name"`},
		{`{"inputs":[{"shape":[1.5]}]}`, -1, `has a number 1.5 as "inputs.shape"`},
		{`{} {}`, -1, "something behind the JSON"},
		{`{"inputs":[],"inputs":[]}`, -1, "has inputs twice"},
		{`{"inputs":{}}`, -1, `has an object as "inputs"`},
		{`{"inputs":[1]}`, -1, `has a number as "inputs"`},
		{`{"outputs":"x"}`, -1, `has a string as "outputs"`},
		{`{"outputs":[{"name":1}]}`, -1, `has a number as "outputs.name"`},
		{`{"parameters":1}`, -1, `has a number as "parameters"`},
		{`{"inputs":[{"shape":[` + strings.Repeat("1", 300) + `]}]}`, -1, `has a number ` + strings.Repeat("1", 57) + `… as "inputs.shape"`},
		{`{"inputs":[{"name":"` + strings.Repeat("x", maxSmall) + `"}]}`, -1, "an input of the request has more than 65536 bytes of JSON that are no data"},
		{`{"inputs":[{` + strings.Repeat(`"name":"x",`, 1<<13) + `"a":1}]}`, -1, "an input of the request has more than 65536 bytes"},
		{`{"outputs":[{"name":"` + strings.Repeat("x", maxSmall) + `"}]}`, -1, "the outputs of the request have more than 65536 bytes"},
		{`{"x":[` + strings.Repeat("1,", maxSmall) + `1]}`, -1, "the request has more than 65536 bytes"},
		{`{"x":` + strings.Repeat("[", maxDepth+1) + `1`, -1, "more than 128 arrays or objects within each other"},
		{`{}xx`, 2, "2 bytes of binary data belong to no input"},
		{`{"inputs":[{},{},{},{}]}`, -1, "the request has 4 inputs, want at most 3"},
		{`{"inputs":[{"a":[1,2,"]"]},{"b":"\\"},{"c":"\",\""} , [{},{}]]}`, -1, "the request has 4 inputs, want at most 3"},
		{`{"outputs":[{},{},{}]}`, -1, "the request has 3 outputs, want at most 2"},
		{`{"inputs":[{"shape":[` + strings.Repeat("1,", maxDimensions) + `1]}]}`, -1, "the request has 65 dimensions, want at most 64"},
		{`{"id":"` + strings.Repeat("x", MaxID+1) + `"}`, -1, "the id has 1025 bytes, want at most 1024"},
		{`{}`, 3, "the JSON has 3 bytes by the header Inference-Header-Content-Length, the body 2"},
		{input(`,"parameters":{"binary_data_size":1}`), -1, "a binary_data_size of 1, and 0 bytes are left"},
		{input(`,"parameters":{"binary_data_size":-1}`), -1, "a binary_data_size of -1"},
		{input(`,"parameters":{"binary_data_size":0},"data":[1]`), -1, "data and binary_data_size"},
		{input(`,"parameters":{"shared_memory_region":"x"}`), -1, "shared memory is not supported"},
		{`{"outputs":[{"name":"y","parameters":{"shared_memory_region":"x"}}]}`, -1, "shared memory is not supported"},
	} {
		_, err := Parse(t.Context(), []byte(c.body), c.length, Most{3, 2})
		require.ErrorContains(t, err, c.fault, c.body)
	}
}

// The parser takes and refuses what encoding/json does, and a value ends where that says.
func TestParser(t *testing.T) {
	for _, text := range []string{
		``, ` `, `0`, `-0`, `-`, `01`, `1.`, `.5`, `1.5`, `1e5`, `1E+05`, `1e-`, `1e`, `+1`, `0x1`, `NaN`, `1_0`, `--1`,
		`true`, `false`, `null`, `tru`, `trueX`, `nul`, `True`, `""`, `"`, `"a`, `"\\"`, `"\"`, `"\""`, `"\x"`, `"\u00e9"`, `"\u00g9"`, `"\u00"`,
		`"\u00E9\ud800"`, "\"\x1f\"", "\"\x7f\"", "\"\xff\"", "\"\n\"", `'a'`, `[]`, `[`, `]`, `[1`, `[1,`, `[,1]`, `[1,]`, `[1 2]`, `[1,,2]`, `[[],[[]],{}]`,
		`[}`, `{]`, `{}`, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1 "b":2}`, `{"a":1,"b":[{"c":null}]}`, `{a:1}`, `{1:1}`, `{"a":1}}`, `[1]]`,
		" \t\r\n[ 1 , 2 ] ", "\f[1]", "\u00a0[1]", `[1]x`, `{"a":[1,{"b":"]}"}],"c":"\\\""}`, `[-]`, `[1.e5]`, `[1e5.5]`, `{"a":{"b":{}},"c":[]}`,
	} {
		sameAsEncodingJSON(t, []byte(text))
	}
}

// A context that has ended ends the parsing, and the reading of data.
func TestParseEndsWithItsContext(t *testing.T) {
	body := []byte(`{"inputs":[{"name":"a","datatype":"UINT8","shape":[3000],"data":[` + strings.Repeat("1,", 2999) + `1]}]}`)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := Parse(ctx, body, -1, Most{1, 1})
	require.NoError(t, err)
	cancel()
	_, err = Parse(ctx, body, -1, Most{1, 1})
	require.ErrorIs(t, err, context.Canceled)
	_, err = r.Inputs[0].Read(nil)
	require.ErrorIs(t, err, context.Canceled)
}

// A request that means nothing takes no memory beside its own.
func TestParseTakesNoMemory(t *testing.T) {
	for name, body := range map[string]string{
		"inputs":  `{"inputs":[` + strings.Repeat(`{},`, 1<<20) + `{}]}`,
		"outputs": `{"outputs":[` + strings.Repeat(`{},`, 1<<20) + `{}]}`,
		"shape":   `{"inputs":[{"shape":[` + strings.Repeat(`1,`, 1<<20) + `1]}]}`,
		"unknown": `{"x":[` + strings.Repeat(`{},`, 1<<20) + `{}]}`,
		"name":    `{"inputs":[{"name":"` + strings.Repeat("x", 1<<20) + `"}]}`,
		"\\u":     `{"id":"` + strings.Repeat(`\u0041`, 1<<18) + `"}`,
		"number":  `{"inputs":[{"shape":[` + strings.Repeat("1", 1<<20) + `]}]}`,
		"key":     `{"` + strings.Repeat("x", 1<<20) + `":1}`,
		"data":    `{"inputs":[{"data":[` + strings.Repeat(`1,`, 1<<20) + `1]}]}`,
	} {
		b := []byte(body)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = Parse(t.Context(), b, -1, Most{1, 1})
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<10), name)
	}
}

func TestResponse(t *testing.T) {
	r := Response{
		Model: "m", Version: "1", ID: `"`,
		Outputs: []Tensor{
			{Name: "x", Datatype: Uint8, Shape: []int64{2}, Data: []byte{1, 2}},
			{Name: "y", Datatype: FP32, Shape: []int64{1, 1}, Data: floats(.5)},
		},
		Binary: []bool{false, true},
	}
	body, length, err := r.Append(nil)
	require.NoError(t, err)
	require.Equal(t, `{"model_name":"m","model_version":"1","id":"\"","outputs":[`+
		`{"name":"x","datatype":"UINT8","shape":[2],"data":[1,2]},`+
		`{"name":"y","datatype":"FP32","shape":[1,1],"parameters":{"binary_data_size":4}}]}`, string(body[:length]))
	require.Equal(t, floats(.5), body[length:])
	r.Binary[1] = false
	body, length, err = r.Append(nil)
	require.NoError(t, err)
	require.Equal(t, -1, length)
	require.True(t, json.Valid(body))
}

// FuzzArray: what is no array of the shape is an error, and what is one has as many elements.
func FuzzArray(f *testing.F) {
	f.Add("[[1,2],[3,4]]", 2, int64(2), int64(2))
	f.Add("[1.5,-3e8]", 4, int64(1), int64(2))
	f.Add("[[],[]]", 0, int64(2), int64(0))
	f.Fuzz(func(t *testing.T, text string, kind int, a, b int64) {
		if !json.Valid([]byte(text)) {
			return // what Parse does not let through
		}
		datatype := []string{Uint8, Int8, Int32, Int64, FP32}[uint(kind)%5]
		shape := []int64{a, b}
		got, err := appendArray(t.Context(), nil, []byte(text), datatype, shape)
		if err != nil {
			return
		}
		n, err := Elements(shape)
		require.NoError(t, err)
		require.Len(t, got, n*Size(datatype))
		// The same as encoding/json reads, flat or nested.
		var flat []json.Number
		if json.Unmarshal([]byte(text), &flat) != nil {
			var nested [][]json.Number
			require.NoError(t, json.Unmarshal([]byte(text), &nested))
			flat = nil
			for _, row := range nested {
				flat = append(flat, row...)
			}
		}
		var want []byte
		for _, v := range flat {
			want, err = appendNumber(want, datatype, v.String())
			require.NoError(t, err)
		}
		require.Equal(t, fmt.Sprintf("%x", want), fmt.Sprintf("%x", got))
	})
}

// sameAsEncodingJSON requires that the parser takes and refuses what encoding/json does, but for depth.
func sameAsEncodingJSON(t *testing.T, text []byte) {
	p := parser{ctx: t.Context(), json: text}
	value, err := p.value()
	if err != nil && strings.Contains(err.Error(), "within each other") {
		return
	}
	valid := err == nil && p.next() == 0 && p.at == len(text)
	require.Equal(t, json.Valid(text), valid, "%q: %v", text, err)
	if valid {
		require.Equal(t, strings.Trim(string(text), " \t\r\n"), string(value))
	}
}

// FuzzParse: bodies of any bytes are errors or requests whose tensors lie within them.
func FuzzParse(f *testing.F) {
	f.Add([]byte(twoInputs+"abcdefg"), len(twoInputs))
	f.Add([]byte(twoInputs), -1)
	f.Add([]byte(`{"inputs":[{"shape":[]}]}`), 25)
	f.Fuzz(func(t *testing.T, body []byte, length int) {
		if json := body; length < len(body) {
			if length >= 0 {
				json = body[:length]
			}
			sameAsEncodingJSON(t, json)
		}
		r, err := Parse(t.Context(), body, length, Most{3, 2})
		if err != nil {
			require.False(t, strings.Contains(err.Error(), "tensor."), "%v names a type of Go", err)
			return
		}
		binaryBytes := 0
		for _, in := range r.Inputs {
			binaryBytes += len(in.Data)
			if in.Read != nil {
				if data, err := in.Read(nil); err == nil {
					n, err := Elements(in.Shape)
					require.NoError(t, err)
					require.Len(t, data, n*Size(in.Datatype))
				}
			}
		}
		if length >= 0 {
			require.Equal(t, len(body)-length, binaryBytes)
		}
	})
}
