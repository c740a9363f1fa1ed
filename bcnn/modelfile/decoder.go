package modelfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// workPerByte is what reading a file may take for each byte of it, in units of
// package budget. The JSON of a layer is gone through five times, checks and the
// layers of JSON in JSON included; most files are tensors, read once.
const workPerByte = 8 + (1+lineWork)*maxGrowth

// maxGrowth is how many bytes in memory one of a file may become: 16 of a line 255 thresholds.
const maxGrowth = 64

// decoder is what every stage of reading a file shares.
type decoder struct {
	*budget.Budget
	limits bcnn.Limits
}

func newDecoder(ctx context.Context, size int64, limits bcnn.Limits) *decoder {
	b := budget.New(ctx, 0)
	for range workPerByte {
		b.Grow(size)
	}
	return &decoder{b, limits}
}

// unmarshal is json.Unmarshal that takes JSON at its word: the members of an
// object must bear the very names of the fields, in their case, each once, and
// null is no value.
func (d *decoder) unmarshal(b []byte, v any) error {
	if err := d.Charge(int64(len(b))); err != nil {
		return err
	}
	if !json.Valid(b) {
		return json.Unmarshal(b, v) // says where
	}
	if err := d.checkMembers(b, reflect.TypeOf(v).Elem()); err != nil {
		return err
	}
	err := json.Unmarshal(b, v)
	if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) && len(wrong.Value) > maxValue {
		wrong.Value = wrong.Value[:maxValue] + "…" // a number of megabytes
	}
	return err
}

// maxValue is how many bytes of a wrong value an error shows.
const maxValue = 64

// open is an object or array that is being read.
type open struct {
	object bool
	keys   map[string]bool         // of an object, so far
	isKey  bool                    // the next string is the name of a member
	fields map[string]reflect.Type // of a struct; nil if any name will do
	value  reflect.Type            // of the values; of the next one, for a struct
}

// maxDepth is how deep objects and arrays may be nested: more than any value
// of the format is.
const maxDepth = 16

// checkMembers checks the names in b, valid JSON that is to become a value of
// type t, the number of layers and how deep values are nested, before anything
// is made of them.
func (d *decoder) checkMembers(b []byte, t reflect.Type) error {
	known := map[reflect.Type]map[string]reflect.Type{}
	stack := []open{{value: t}}
	layers := 0
	for i := 0; i < len(b); i++ {
		top := &stack[len(stack)-1]
		if len(stack) > maxDepth+1 {
			return fmt.Errorf("values are nested more than %d deep", maxDepth)
		}
		switch b[i] {
		case '{':
			if top.value == reflect.TypeFor[layerJSON]() {
				if layers++; layers > d.limits.Layers {
					return fmt.Errorf("more than %d layers; Limits.Layers allows more", d.limits.Layers)
				}
			}
			stack = append(stack, object(top.value, known))
		case '[':
			stack = append(stack, open{value: elem(top.value)})
		case '}', ']':
			stack = stack[:len(stack)-1]
		case ':':
			top.isKey = false
		case ',':
			top.isKey = top.object
		case 'n': // no other word has one
			return errors.New("null is not allowed as a value")
		case '"':
			end := i + 1
			for ; b[end] != '"'; end++ {
				if b[end] == '\\' {
					end++
				}
			}
			if top.isKey {
				if err := top.key(b[i : end+1]); err != nil {
					return err
				}
			}
			i = end
		}
	}
	return nil
}

// key enters the name of a member, in quotes.
func (o *open) key(quoted []byte) error {
	name := string(quoted[1 : len(quoted)-1])
	if strings.Contains(name, `\`) {
		if err := json.Unmarshal(quoted, &name); err != nil {
			return err
		}
	}
	if o.keys[name] {
		return fmt.Errorf("%s occurs twice", text.Quote(name))
	}
	if o.keys == nil {
		o.keys = map[string]bool{}
	}
	o.keys[name] = true
	if o.fields == nil {
		return nil
	}
	var ok bool
	if o.value, ok = o.fields[name]; !ok {
		return fmt.Errorf("unknown field %s", text.Quote(name))
	}
	return nil
}

// object is an object that becomes a value of type t.
func object(t reflect.Type, known map[reflect.Type]map[string]reflect.Type) open {
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	o := open{object: true, isKey: true, value: elem(t)}
	if t == nil || t.Kind() != reflect.Struct {
		return o
	}
	if known[t] == nil {
		known[t] = map[string]reflect.Type{}
		for _, f := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				known[t][name] = f.Type
			}
		}
	}
	o.fields = known[t]
	return o
}

// elem is the type of the values of a map or an array; nil if it is not known:
// JSON that is looked at later, or a value that Unmarshal will not accept.
func elem(t reflect.Type) reflect.Type {
	if t == nil || t == reflect.TypeFor[json.RawMessage]() || t.Kind() != reflect.Map && t.Kind() != reflect.Slice {
		return nil
	}
	return t.Elem()
}
