package onnx

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/text"
)

// schemas.tsv has what operators take, from the schemas of ONNX and QONNX. train/onnx_schemas.py
// makes it and describes its format.
//
//go:embed schemas.tsv
var schemasTable string

// newestOpset is the newest operator set that the table knows.
var newestOpset = sync.OnceValue(func() int64 {
	first, _, _ := strings.Cut(schemasTable, "\n")
	n, _ := strconv.ParseInt(first[strings.LastIndexByte(first, ' ')+1:], 10, 64) // TestSignatures reads it
	return n
})

// signature is what an operator takes from opset since on.
type signature struct {
	since      int64
	inputs     []inputType
	repeated   bool // the last input may be repeated
	attributes []attribute
}

// attribute is an attribute of a type of pb.AttrFloat and so on. Its default is JSON, empty if it has
// none.
type attribute struct {
	name     string
	typ      int64
	fallback string
}

// inputType is the type of an input. Inputs with the same name have one type, which is one of
// allowed.
type inputType struct {
	name    string
	allowed []pb.DataType
}

// signatures are the signatures of each operator, the oldest first.
var signatures = sync.OnceValue(func() map[string][]signature {
	all := map[string][]signature{}
	for line := range strings.Lines(schemasTable) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		var s signature
		s.since, _ = strconv.ParseInt(fields[1], 10, 64) // TestSignatures reads all of them
		given := map[string][]pb.DataType{}
		for _, field := range fields[2:] {
			if field, ok := strings.CutPrefix(field, "@"); ok {
				name, rest, _ := strings.Cut(field, ":")
				typ, fallback, _ := strings.Cut(rest, "=")
				n, _ := strconv.ParseInt(typ, 10, 64)
				s.attributes = append(s.attributes, attribute{name, n, fallback})
				continue
			} else if field == "" {
				continue
			}
			field, s.repeated = strings.CutSuffix(strings.TrimSuffix(field, "?"), "*")
			name, list, ok := strings.Cut(field, ":")
			if ok {
				given[name] = nil
				for number := range strings.SplitSeq(list, ",") {
					n, _ := strconv.Atoi(number)
					given[name] = append(given[name], pb.DataType(n))
				}
			}
			s.inputs = append(s.inputs, inputType{name, given[name]})
		}
		all[fields[0]] = append(all[fields[0]], s)
	}
	return all
})

// signatureAt returns what holds at an operator set: nothing if the operator is newer.
func signatureAt(versions []signature, opset int64) (s signature) {
	for _, of := range versions {
		if of.since <= opset {
			s = of
		}
	}
	return s
}

// checkTypes checks the types of the inputs of a node against the schema of its operator. Types
// that only later opsets allow are fine: exporters write them, and they mean the same.
func (im *importer) checkTypes(n *pb.Node) error {
	if n.Domain != "" {
		return nil
	}
	versions := signatures()[n.OpType]
	s := signatureAt(versions, im.model.Opset)
	if len(s.inputs) == 0 {
		return nil
	}
	if err := im.budget.Charge(nameUnits * int64(len(n.Inputs))); err != nil {
		return err
	}
	first := map[string]int{} // by name of a type: the first input of it
	types := make([]pb.DataType, len(n.Inputs))
	for i, name := range n.Inputs {
		if i >= len(s.inputs) && !s.repeated {
			break // which is not about types
		}
		want := s.inputs[min(i, len(s.inputs)-1)]
		typ, ok := im.typeOf(name)
		if types[i] = typ; !ok || want.name == "-" {
			continue
		}
		allowed := func(of signature) bool {
			return i < len(of.inputs) && slices.Contains(of.inputs[i].allowed, typ) || of.repeated && slices.Contains(of.inputs[len(of.inputs)-1].allowed, typ)
		}
		if !slices.ContainsFunc(versions, allowed) {
			return fmt.Errorf("input %d (%s) is %v, which the operator does not take", i, text.Quote(name), typ)
		}
		k, ok := first[want.name]
		switch {
		case want.name == "of": // a type of its own
		case !ok:
			first[want.name] = i
		case types[k] != typ && !(narrow(types[k]) && narrow(typ)):
			return fmt.Errorf("input %d (%s) is %v and input %d (%s) is %v, which must be of one type", k, text.Quote(n.Inputs[k]), types[k], i, text.Quote(name), typ)
		}
	}
	return nil
}

// narrow reports whether FLOAT holds all values of a real type. PyTorch's exporter folds constants
// of such types to FLOAT, but leaves the tensors beside them.
func narrow(typ pb.DataType) bool { return typ.Real() && typ != pb.Double }

// typeOf returns the type of a tensor in the file. ok is false if it is not known; whatever reads
// the tensor then reports that.
func (im *importer) typeOf(name string) (typ pb.DataType, ok bool) {
	if typ, ok := im.types[name]; ok {
		return typ, true
	}
	if r, ok := im.env[name]; ok {
		switch {
		case r.Constant != nil:
			return r.Constant.Type, true
		case r.Value != nil && !r.Value.Hole:
			return r.Value.Type, true
		}
		return 0, false
	}
	if t := im.model.Graph.Initializers[name]; t != nil {
		return t.Type, true
	}
	return 0, false
}
