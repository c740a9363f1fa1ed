package onnx

import (
	"errors"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
)

// clipValue limits a value.
func (im *importer) clipValue(n *node, v *value, lo, hi float64) (result, error) {
	if err := v.real(); err != nil {
		return result{}, err
	}
	if math.IsNaN(lo) || math.IsNaN(hi) || lo > hi {
		return result{}, fmt.Errorf("limits %v and %v", lo, hi)
	}
	out := v.with(n)
	if c := v.clip; c != nil {
		lo, hi = max(lo, min(c.lo, hi)), max(lo, min(c.hi, hi))
		out.clip = nil
	}
	if lo <= -math.MaxFloat32 && hi >= math.MaxFloat32 {
		return result{value: out}, nil
	}
	if lo == 0 && hi >= math.MaxFloat32 {
		settled, err := im.settle(out)
		if err != nil {
			return result{}, err
		}
		return result{value: im.emit(n, "", bcnn.ReLU{}, settled.shape, settled)}, nil
	}
	settled, err := im.settle(out)
	if err != nil {
		return result{}, err
	}
	out = settled.with(n)
	out.clip = &clip{lo, hi, n}
	return result{value: out}, nil
}

// clipNode imports Clip, with limits in attributes or inputs.
func (im *importer) clipNode(n *node) (result, error) {
	r, err := im.operand(n, 0)
	if err != nil {
		return result{}, err
	}
	typ := r.typ()
	limit := func(name string, input int, fallback float64) (float64, error) {
		f, err := n.float(name, float32(fallback))
		if err != nil {
			return 0, err
		}
		t, err := im.constant(n, input)
		switch {
		case err != nil:
			return 0, err
		case t == nil:
			return float64(f), nil
		case t.len() != 1:
			return 0, errors.New("a limit is not a single value")
		}
		return t.at(0), nil
	}
	lo, err := limit("min", 1, math.Inf(-1))
	if err != nil {
		return result{}, err
	}
	hi, err := limit("max", 2, math.Inf(1))
	if err != nil {
		return result{}, err
	}
	clamp := func(args []*tensor) (*tensor, error) {
		if !typ.real() {
			return nil, fmt.Errorf("Clip of %v is not supported", typ)
		}
		t, err := im.binary("Max")([]*tensor{args[0], scalar(typ, lo)})
		if err != nil {
			return nil, err
		}
		return im.binary("Min")([]*tensor{t, scalar(typ, hi)})
	}
	if r, ok, err := im.pointwise(n, []result{r}, clamp); ok || err != nil {
		return r, err
	}
	return im.clipValue(n, r.value, lo, hi)
}

// castNode imports Cast. Values are computed in float32; bytes become float
// exactly.
func (im *importer) castNode(n *node) (result, error) {
	r, err := im.operand(n, 0)
	if err != nil {
		return result{}, err
	}
	to, err := n.int("to", 0)
	if err != nil {
		return result{}, err
	}
	typ := elemType(to)
	if r, ok, err := im.pointwise(n, []result{r}, im.cast(typ)); ok || err != nil {
		return r, err
	}
	v := r.value
	if typ != v.typ && (typ != typeFloat || v.typ != typeUint8) {
		return result{}, fmt.Errorf("conversion of computed %v to %v is not supported", v.typ, typ)
	}
	out := v.with(n)
	out.typ = typ
	return result{value: out}, nil
}

// identity imports Identity and Dropout, which does nothing at inference.
func (im *importer) identity(n *node) (result, error) {
	if n.opType == "Dropout" {
		training, err := im.constant(n, 2)
		if err != nil {
			return result{}, err
		}
		if training != nil && (training.len() != 1 || training.at(0) != 0) {
			return result{}, errors.New("it is in training mode")
		}
	}
	r, err := im.operand(n, 0)
	if r.value != nil {
		r.value = r.value.with(n)
	}
	return r, err
}

// bipolarQuant imports the QONNX operator.
func (im *importer) bipolarQuant(n *node) (result, error) {
	operands, err := im.operands(n, 2)
	if err != nil {
		return result{}, err
	}
	return im.bipolar(n, operands[0], operands[1].constant)
}

func (im *importer) bipolar(n *node, x result, scale *tensor) (result, error) {
	if scale == nil {
		return result{}, errors.New("the scale must be constant")
	}
	if r, ok, err := im.pointwise(n, []result{x, {constant: scale}}, im.binary("BipolarQuant")); ok || err != nil {
		return r, err
	}
	minus, err := im.unary("Neg")([]*tensor{scale})
	if err != nil {
		return result{}, err
	}
	return im.threshold(n, x.value, scalar(x.value.typ, 0), minus, scale, scale)
}

// quantNode imports the QONNX operator Quant: on constants any, on values the
// one with one signed bit, which is bipolar.
func (im *importer) quantNode(n *node) (result, error) {
	operands, err := im.operands(n, 4)
	if err != nil {
		return result{}, err
	}
	var c [4]*tensor
	for i, o := range operands {
		c[i] = o.constant
		if i > 0 && (c[i] == nil || c[i].typ != typeFloat) {
			return result{}, fmt.Errorf("input %d must be a FLOAT constant", i)
		}
	}
	signed, err := n.int("signed", 1)
	if err != nil {
		return result{}, err
	}
	narrow, err := n.int("narrow", 1)
	if err != nil {
		return result{}, err
	}
	mode, err := n.string("rounding_mode", "ROUND")
	if err != nil {
		return result{}, err
	}
	rounding := map[string]string{"ROUND": "Round", "CEIL": "Ceil", "FLOOR": "Floor"}[mode]
	if rounding == "" {
		return result{}, fmt.Errorf("rounding mode %q is not supported", mode)
	}
	if r, ok, err := im.pointwise(n, operands, im.quant(signed != 0, narrow != 0, unaryOps[rounding])); ok || err != nil {
		return r, err
	}
	for i := range c[1].len() {
		if !(c[1].at(i) > 0) {
			return result{}, fmt.Errorf("scale %v, want more than 0", c[1].at(i))
		}
	}
	for i := range c[2].len() {
		if c[2].at(i) != 0 {
			return result{}, errors.New("a zero point is not supported")
		}
	}
	if signed == 0 || c[3].len() != 1 || c[3].at(0) != 1 {
		return result{}, errors.New("activations of more than one signed bit are not supported")
	}
	return im.bipolar(n, operands[0], c[1])
}
