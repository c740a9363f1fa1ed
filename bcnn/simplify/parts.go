package simplify

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/weights"
)

// parted emits a layer on a concatenation, or a sum, of codes as a layer of its own for each
// of them, and the sum of their outputs; ok is false where the weights of one of them are no
// integers, nor sums of few bases.
func (p *pass) parted(l *layer, in value) (y int, ok bool, err error) {
	var list []scaled
	if in.sum != nil {
		if list = in.sum.terms; !in.sum.exact() {
			return 0, false, nil
		}
	} else if list = in.joined; l.rows.RowLen != l.in.C || l.groups() > 1 {
		return 0, false, nil
	}
	if p.room -= mostLayers * len(list); p.room < 0 {
		return 0, false, nil
	}
	layers := make([]layer, len(list))
	from := 0
	for i, c := range list {
		part := *l
		if i > 0 {
			part.bias = nil
		}
		if in.joined != nil {
			part.in.C = p.shape(c.layer).C
			if part.rows, err = p.columns(l.rows, from, part.in.C); err != nil {
				return 0, false, err
			}
			from += part.in.C
		}
		if ok, err = p.few(&part, c); !ok || err != nil {
			return 0, false, err
		}
		layers[i] = part
	}
	for i, c := range list {
		part, ok, err := p.coded(&layers[i], c)
		if !ok || err != nil {
			return 0, false, err
		}
		if i > 0 {
			part = p.emit("/parts", bcnn.Add{}, l.out, y, part)
		}
		y = part
	}
	kind := "joined"
	if in.sum != nil {
		kind = "added"
	}
	p.found(Parts, "its input is %d codes that are %s", len(list), kind)
	return y, true, nil
}

// columns returns the weights of some of the channels.
func (p *pass) columns(rows weights.Rows, from, n int) (weights.Rows, error) {
	count := len(rows.Values) / rows.RowLen
	list, err := p.floats(count * n)
	if err != nil {
		return rows, err
	}
	for r := range count {
		copy(list[r*n:][:n], rows.Values[r*rows.RowLen+from:])
	}
	return weights.Rows{Values: list, Out: rows.Out, RowLen: n}, nil
}

// few reports whether weights on codes are ±α or multiples of an α of each filter, or sums of
// binary bases.
func (p *pass) few(l *layer, c scaled) (bool, error) {
	form, _, err := weights.Find(p.budget, l.rows, true, c.signs, p.within())
	if form != nil || err != nil {
		return form != nil, err
	}
	if few, err := p.fewLevels(l, c); !few || err != nil {
		return false, err
	}
	s, err := weights.FindBases(p.budget, l.rows, p.within())
	return s != nil, err
}

// basesLevels is how many levels an input has at the most of which several products, with
// each base of the weights, are taken for one of real numbers.
const basesLevels = 4

// fewLevels reports whether codes are signs or so few levels that products with several
// bases of the weights are taken. Zeros around them must be among them.
func (p *pass) fewLevels(l *layer, c scaled) (bool, error) {
	if _, fits := l.around(c); !fits {
		return false, nil
	}
	of, err := p.sets.Of(c.layer)
	return c.signs || of.Max-of.Min < basesLevels, err
}

// based emits a layer with weights that are sums of binary bases, as a layer for each of
// them and the sum of their outputs; ok is false for other weights and codes.
func (p *pass) based(l *layer, c scaled) (y int, ok bool, err error) {
	if few, err := p.fewLevels(l, c); !few || err != nil {
		return 0, false, err
	}
	s, err := weights.FindBases(p.budget, l.rows, p.within())
	if s == nil || err != nil {
		return 0, false, err
	}
	around, _ := l.around(c)
	for m, signs := range s.Signs {
		base := *l
		base.rows.Values = signs
		if m > 0 {
			base.bias = nil
		}
		form := &weights.Form{Alpha: s.Alpha[m]}
		if form.Bits, err = weights.Pack(p.budget, base.rows); err != nil {
			return 0, false, err
		}
		part := p.factored(&base, c, form, around)
		if m > 0 {
			part = p.emit("/bases", bcnn.Add{}, l.out, y, part)
		}
		y = part
	}
	p.deviates(s.Deviation, true, "its weights are sums of %d times ±α, its input is %v", len(s.Signs), c)
	return y, true, nil
}
