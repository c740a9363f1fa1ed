package tflite

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// Every line of options.tsv is of an operator that is supported, and the other way round.
func TestOptionsTable(t *testing.T) {
	require.Regexp(t, `^# Made by train/tflite_options\.py of ai-edge-litert \d+\.\d+\.\d+\n`, optionsTable)
	supported := map[string]bool{}
	for name := range handlers {
		supported[name] = schema.Code(name) >= 0
	}
	for name := range folders {
		supported[name] = schema.Code(name) >= 0
	}
	for name := range wholeFolders {
		supported[name] = schema.Code(name) >= 0
	}
	maps.DeleteFunc(supported, func(_ string, builtin bool) bool { return !builtin })
	tables := optionTables()
	require.ElementsMatch(t, slices.Collect(maps.Keys(supported)), slices.Collect(maps.Keys(tables)))
	lines := strings.Split(strings.TrimSuffix(optionsTable, "\n"), "\n")[1:]
	require.Len(t, tables, len(lines), "each once")
	for _, line := range lines {
		columns := strings.Split(line, "\t")
		number, err := strconv.ParseUint(columns[1], 10, 8)
		require.NoError(t, err, line)
		require.Equal(t, number == 0, columns[2] == "-", line)
		table := tables[columns[0]]
		require.Len(t, table.fields, len(columns)-3, line)
		names := map[string]bool{}
		for _, column := range columns[3:] {
			f := strings.Split(column, ":")
			require.Len(t, f, 4, line)
			slot, err := strconv.Atoi(f[0])
			require.NoError(t, err, line)
			usual, err := strconv.ParseFloat(f[3], 64)
			require.NoError(t, err, line)
			require.Contains(t, []string{"bool", "int8", "int32", "float32", "offset"}, f[2], line)
			require.Equal(t, option{f[1], f[2], usual}, table.fields[slot], line)
			names[f[1]] = true
		}
		for name, why := range harmless[columns[0]] {
			require.True(t, names[name], "%s has no option %s", columns[0], name)
			require.NotEmpty(t, why)
		}
	}
	for name := range harmless {
		require.Contains(t, tables, name)
	}
	for name, version := range newest {
		require.Contains(t, tables, name)
		require.Greater(t, version, 1, name)
	}
}

// other is a value that is not v.
func (f option) other(v any) any {
	switch v := v.(type) {
	case uint8:
		if f.kind == "bool" {
			return 1 - v
		}
		return v + 1
	case int:
		return v + 1
	case float32:
		return v + 1.5
	case []int32:
		return append(slices.Clone(v), 7)
	}
	return struct{}{} // a table
}

// value is a number of a kind as tests write it.
func (f option) value(v float64) any {
	switch f.kind {
	case "int32":
		return int(v)
	case "float32":
		return float32(v)
	case "offset":
		return nil
	}
	return uint8(v)
}

// imported imports a file, and tells which options of the operator at a place were not read.
func imported(t *testing.T, g *smallGraph) (net *bcnn.Network, unread []int, err error) {
	t.Helper()
	data := g.encode()
	limits, err := bcnn.Limits{}.WithDefaults()
	require.NoError(t, err)
	b := budget.New(t.Context(), base)
	b.Grow(perByte * int64(len(data)))
	im, err := decodeWithin(b, data, Options{Name: "net"}, limits)
	if err != nil {
		return nil, nil, err
	}
	return im.net, im.model.Graph.Operators[g.at].Options.Unread(), nil
}

// Every field of every operator is read, or refused if it has another value than the usual one,
// or it is listed with a reason. What is read changes the network, or is refused.
func TestEveryOption(t *testing.T) {
	count := map[string]int{}
	seen := map[string]bool{}
	for _, s := range smalls() {
		t.Run(s.String(), func(t *testing.T) {
			seen[s.op+" "+strconv.FormatBool(s.form == "constant")] = true
			want, _, err := imported(t, s.graph(s.options))
			require.NoError(t, err)
			table := optionTables()[s.op]
			if table == nil {
				return // of LCE
			}
			all := maps.Clone(s.options)
			if all == nil {
				all = map[int]any{}
			}
			for slot, f := range table.fields {
				if _, given := all[slot]; !given {
					all[slot] = f.value(f.usual)
				}
			}
			// Written down, usual values are the same as left out.
			net, unread, err := imported(t, s.graph(all))
			require.NoError(t, err)
			require.Equal(t, want, net)
			for _, slot := range slices.Sorted(maps.Keys(table.fields)) {
				f := table.fields[slot]
				changed := maps.Clone(all)
				if changed[slot] = f.other(all[slot]); s.others[slot] != nil {
					changed[slot] = s.others[slot]
				}
				net, _, err := imported(t, s.graph(changed))
				switch read := !slices.Contains(unread, slot) && all[slot] != nil; {
				case harmless[s.op][f.name] != "":
					require.NoError(t, err, f.name)
					require.Equal(t, want, net, f.name)
					require.False(t, read, "%s is read: it need not be listed", f.name)
					count["listed"]++
				case read && err == nil:
					require.NotEqual(t, want, net, "%s changes nothing", f.name)
					count["read"]++
				case read:
					count["read, and refused with this value"]++
				default:
					require.ErrorContains(t, err, fmt.Sprintf("option %s = ", f.name))
					count["refused"]++
				}
			}
		})
	}
	for name := range handlers {
		require.True(t, seen[name+" false"], "no file of %s", name)
	}
	for name := range folders {
		require.True(t, seen[name+" true"], "no file of %s on constants", name)
	}
	for name := range wholeFolders {
		require.True(t, seen[name+" true"], "no file of %s on constants", name)
	}
	t.Log(count)
}

// What a file says of any operator beyond its options is refused where it is not known.
func TestUnknownOfOperators(t *testing.T) {
	for _, s := range smalls() {
		t.Run(s.String(), func(t *testing.T) {
			table, last := optionTables()[s.op], -1
			custom := table == nil
			if !custom {
				last = slices.Max(append(slices.Collect(maps.Keys(table.fields)), -1))
			}
			with := func(change func(g *smallGraph, o *testOperator)) (*bcnn.Network, error) {
				g := s.graph(maps.Clone(s.options))
				change(g, &g.operators[g.at])
				net, _, err := imported(t, g)
				return net, err
			}
			want, err := with(func(*smallGraph, *testOperator) {})
			require.NoError(t, err)
			refuse := func(why string, change func(g *smallGraph, o *testOperator)) {
				t.Helper()
				_, err := with(change)
				require.ErrorContains(t, err, s.op)
				require.ErrorContains(t, err, why)
			}
			most := max(newest[s.op], 1)
			for version := int32(1); version <= int32(most); version++ {
				net, err := with(func(_ *smallGraph, o *testOperator) { o.version = version })
				require.NoError(t, err)
				require.Equal(t, want, net)
			}
			for _, version := range []int32{-1, int32(most) + 1} {
				refuse(fmt.Sprintf("version %d of the operator is not supported, only 1 to %d", version, most), func(_ *smallGraph, o *testOperator) { o.version = version })
			}
			if s.op != "ADD_N" && s.op != "CONCATENATION" { // which take any number
				refuse("input", func(g *smallGraph, o *testOperator) {
					if s.op == "RESHAPE" || s.op == "TRANSPOSE_CONV" { // whose last input is left out
						o.inputs = append(o.inputs, -1)
					}
					o.inputs = append(o.inputs, g.floats([]int32{1}, 1))
				})
			}
			refuse("its table, Operator of a newer schema, has a field number 14", func(_ *smallGraph, o *testOperator) { o.more = map[int]any{14: 1} })
			refuse("builtin_options_2", func(_ *smallGraph, o *testOperator) { o.more = map[int]any{11: uint8(1), 12: struct{}{}} })
			refuse("(builtin_options_2)", func(_ *smallGraph, o *testOperator) { o.more = map[int]any{12: struct{}{}} })
			if custom {
				refuse("it has the options of another operator (builtin_options_type)", func(_ *smallGraph, o *testOperator) { o.more = map[int]any{3: uint8(1), 4: struct{}{}} })
				refuse("only FlexBuffers (custom_options_format)", func(_ *smallGraph, o *testOperator) { o.more = map[int]any{6: uint8(1)} })
				refuse("(large_custom_options_offset)", func(_ *smallGraph, o *testOperator) { o.more = map[int]any{9: uint64(1)} })
				refuse("(large_custom_options_size)", func(_ *smallGraph, o *testOperator) { o.more = map[int]any{10: uint64(1)} })
				if s.op == "Convolution2DTransposeBias" { // whose options are a struct
					refuse("byte 12 of its options is not read here", func(_ *smallGraph, o *testOperator) { o.custom = append(slices.Clone(o.custom), 1) })
					return
				}
				refuse(`option "another" = 1 is not known here`, func(_ *smallGraph, o *testOperator) { o.custom = another(t, o.custom) })
				return
			}
			refuse("it has the options of a custom operator (custom_options)", func(_ *smallGraph, o *testOperator) { o.custom = []byte{1} })
			options := func(o *testOperator, slot int, v any) {
				if o.options == nil {
					o.options = map[int]any{}
				}
				o.options[slot] = v
			}
			refuse(fmt.Sprintf("field number %d", last+1), func(_ *smallGraph, o *testOperator) { options(o, last+1, 1) })
			net, err := with(func(_ *smallGraph, o *testOperator) { options(o, last+1, 0) })
			require.NoError(t, err)
			require.Equal(t, want, net)
			foreign := 1 // CONV_2D
			if table.number == 1 {
				foreign = 2
			}
			if table.number > 0 {
				refuse(fmt.Sprintf("its options are of type %d, want %d (%s)", foreign, table.number, table.name), func(_ *smallGraph, o *testOperator) { options(o, last+1, 0); o.kind = foreign })
				refuse(fmt.Sprintf("it has options of no type, want %d (%s)", table.number, table.name), func(_ *smallGraph, o *testOperator) { options(o, last+1, 0); o.kind = -1 })
			} else {
				refuse(fmt.Sprintf("it has options of type %d, but the operator has none", foreign), func(_ *smallGraph, o *testOperator) { options(o, last+1, 0); o.kind = foreign })
			}
		})
	}
}

// another adds an entry to custom options, which are those of bconvOptions or of a pool.
func another(t *testing.T, custom []byte) []byte {
	t.Helper()
	switch {
	case custom == nil:
		return flexMap([]string{"another"}, []int32{1})
	case strings.Contains(string(custom), "channels_in"):
		return flexMap([]string{
			"another", "channels_in", "dilation_height_factor", "dilation_width_factor", "fused_activation_function", "pad_values", "padding",
			"stride_height", "stride_width",
		}, []int32{1, 32, 1, 1, 0, 0, 0, 1, 1})
	}
	return flexMap([]string{"another", "filter_height", "filter_width", "padding", "stride_height", "stride_width"}, []int32{1, 2, 2, 0, 2, 2})
}

// Options of LCE that are no integers are refused, though nothing asks for them.
func TestCustomOptionsOfOtherTypes(t *testing.T) {
	g := customs()[0].graph(nil)
	data, err := hex.DecodeString("660001030100000001000000010000000000003f0e052601") // {"f": 0.5}
	require.NoError(t, err)
	g.operators[g.at].custom = data
	refused(t, g.encode(), `(LceQuantize, index 0): option "f" is of type 3 of FlexBuffers, want an integer or a truth value`)
}
