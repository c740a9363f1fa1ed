package bcnn

import (
	"fmt"
	"math"
	"reflect"

	"github.com/bitcnn/bitcnn/bcnn/internal/sets"
)

// Op is the operation of a layer: one of the types of this package that implement it. Its methods say
// all that packages must know of every operation; how it is stored is said in modelfile's codecs.
type Op interface {
	// Kind is the name of the operation, as used in model files.
	Kind() string
	// inputs returns how many layers it reads, at least and at most.
	inputs() (least, most int)
	// output checks the operation's parameters against its inputs, and which values it may read,
	// and returns the type of its result.
	output(in []ValueType) (ValueType, error)
	// values returns what its results can be, of what the values of its inputs can be; the first
	// input has the given shape.
	values(in Shape, of []sets.Set) sets.Set
}

// Values returns what the results of an operation can be, of what the values of its inputs can be; the
// first input has the given shape.
func Values(op Op, in Shape, of []sets.Set) sets.Set {
	if least, most := op.inputs(); len(of) < least || len(of) > most {
		return sets.Unknown
	}
	return op.values(in, of)
}

// ParameterBytes returns the bytes of an operation's parameters together, and those
// of the largest tensor of them. Its tensors are the slices that it holds.
func ParameterBytes(op Op) (sum, largest int64) {
	var add func(v reflect.Value)
	add = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				add(v.Field(i))
			}
		case reflect.Slice:
			bytes := int64(v.Len()) * int64(v.Type().Elem().Size())
			sum += bytes
			largest = max(largest, bytes)
		}
	}
	add(reflect.ValueOf(op))
	return sum, largest
}

// finite tests that no value is infinite or NaN.
func finite(what string, values []float32) error {
	const exponent = 0x7f800000 // all ones in infinities and NaNs alone
	for i, v := range values {
		if math.Float32bits(v)&exponent == exponent {
			return fmt.Errorf("%s[%d] is %v, want a finite number", what, i, v)
		}
	}
	return nil
}

// perChannel checks a vector of parameters of the given length; empty is
// allowed where optional is set.
func perChannel(what string, values []float32, n int, optional bool) error {
	if len(values) != n && !(optional && len(values) == 0) {
		return fmt.Errorf("%d values of %s for %d channels", len(values), what, n)
	}
	return finite(what, values)
}

// perChannelOrOne is perChannel for parameters that may be one for all channels, or none.
func perChannelOrOne(what string, values []float32, n int) error {
	if len(values) == 1 {
		n = 1
	}
	return perChannel(what, values, n, true)
}
