package main

import (
	"math"
	"math/big"
)

// What yields a NaN yields this one.
const canonicalNaN = 0x7fffffff

// roundTo32 rounds an exact number to a float; zero is the sign of an exact zero.
func roundTo32(x *big.Float, direction string, negativeZero bool) uint64 {
	if x.Sign() == 0 {
		if negativeZero {
			return 0x80000000
		}
		return 0
	}
	f, accuracy := x.Float32() // to the nearest, denormals too
	down, up := float32(math.Inf(-1)), float32(math.Inf(1))
	above, below := accuracy == big.Above, accuracy == big.Below
	switch {
	case direction == "rm" && above, direction == "rz" && above && x.Sign() > 0:
		f = math.Nextafter32(f, down)
	case direction == "rp" && below, direction == "rz" && below && x.Sign() < 0:
		f = math.Nextafter32(f, up)
	}
	return uint64(math.Float32bits(f))
}

func asFloat(bits uint64) float32 { return math.Float32frombits(uint32(bits)) }

func exact(f float32) *big.Float { return new(big.Float).SetPrec(1000).SetFloat64(float64(f)) }

// fused computes a·b + c, rounded once.
func fused(a, b, c float32, direction string) uint64 {
	product, sum := float64(a)*float64(b), float64(a)*float64(b)+float64(c)
	if math.IsNaN(sum) || math.IsInf(product, 0) || math.IsInf(float64(c), 0) {
		// An infinity of float64 is one of the operands: a product of floats is finite there.
		if math.IsNaN(sum) {
			return canonicalNaN
		}
		return uint64(math.Float32bits(float32(sum)))
	}
	x := exact(a)
	x.Mul(x, exact(b)).Add(x, exact(c))
	// Zeros of one sign keep it; others are −0 only where it is rounded down.
	negative := direction == "rm"
	if product == 0 && c == 0 && math.Signbit(product) == math.Signbit(float64(c)) {
		negative = math.Signbit(product)
	}
	return roundTo32(x, direction, negative)
}

func saturated(v uint64) uint64 {
	f := asFloat(v)
	switch {
	case !(f > 0):
		return 0
	case f > 1:
		return uint64(math.Float32bits(1))
	}
	return v
}

func floatCases() []opcodeCase {
	var all []opcodeCase
	add := func(op, dest string, operands []string, want func(a []uint64) uint64) {
		all = append(all, opcodeCase{op: op, dest: dest, operands: operands, want: want})
	}
	negate := func(v uint64) uint64 { return v ^ 0x80000000 }
	one := math.Float32bits(1)
	for _, direction := range []string{"rn", "rz", "rm", "rp"} {
		for name, f := range map[string]func(a []uint64) uint64{
			"fma": func(a []uint64) uint64 { return fused(asFloat(a[0]), asFloat(a[1]), asFloat(a[2]), direction) },
			"add": func(a []uint64) uint64 { return fused(asFloat(a[0]), 1, asFloat(a[1]), direction) },
			"sub": func(a []uint64) uint64 { return fused(asFloat(a[0]), 1, asFloat(negate(a[1])), direction) },
			"mul": func(a []uint64) uint64 {
				x, y := asFloat(a[0]), asFloat(a[1])
				zero := float32(math.Copysign(0, float64(x)*float64(y))) // of the product's sign
				return fused(x, y, zero, direction)
			},
		} {
			n := 2
			if name == "fma" {
				n = 3
			}
			add(name+"."+direction+".f32", "f32", repeat("f32", n), f)
			add(name+"."+direction+".sat.f32", "f32", repeat("f32", n), func(a []uint64) uint64 { return saturated(f(a)) })
		}
		for _, typ := range append([]string{"u8", "s8"}, intTypes...) {
			add("cvt."+direction+".f32."+typ, "f32", []string{registerOf(typ)}, func(a []uint64) uint64 {
				return roundTo32(new(big.Float).SetInt(value(a[0], typ)), direction, false)
			})
		}
	}
	for direction, round := range map[string]func(float64) float64{
		"rni": math.RoundToEven, "rzi": math.Trunc, "rmi": math.Floor, "rpi": math.Ceil,
	} {
		for _, typ := range []string{"u8", "s8", "u16", "s16", "u32", "s32"} {
			want := func(a []uint64) uint64 {
				f := round(float64(asFloat(a[0])))
				n := map[string]int{"b16": 16, "b32": 32}[registerOf(typ)]
				switch {
				case math.IsNaN(f):
					return 0
				case math.Abs(f) > 1<<40:
					f = math.Copysign(1<<40, f)
				}
				return word(clamp(big.NewInt(int64(f)), typ), n)
			}
			add("cvt."+direction+"."+typ+".f32", registerOf(typ), repeat("f32", 1), want)
			add("cvt."+direction+".sat."+typ+".f32", registerOf(typ), repeat("f32", 1), want)
		}
		rounded := func(a []uint64) uint64 {
			f := float32(round(float64(asFloat(a[0]))))
			if f != f {
				return canonicalNaN
			}
			return uint64(math.Float32bits(f))
		}
		add("cvt."+direction+".f32.f32", "f32", repeat("f32", 1), rounded)
		add("cvt."+direction+".sat.f32.f32", "f32", repeat("f32", 1), func(a []uint64) uint64 { return saturated(rounded(a)) })
	}
	add("neg.f32", "f32", repeat("f32", 1), func(a []uint64) uint64 { return negate(a[0]) })
	add("abs.f32", "f32", repeat("f32", 1), func(a []uint64) uint64 { return a[0] &^ 0x80000000 })
	for name, f := range map[string]func(x, y float64) float64{"min": math.Min, "max": math.Max} {
		add(name+".f32", "f32", repeat("f32", 2), func(a []uint64) uint64 {
			x, y := asFloat(a[0]), asFloat(a[1])
			switch {
			case x != x && y != y:
				return canonicalNaN
			case x != x:
				return a[1]
			case y != y:
				return a[0]
			}
			return uint64(math.Float32bits(float32(f(float64(x), float64(y)))))
		})
	}
	for name, f := range map[string]func(x, y float32) bool{
		"eq": func(x, y float32) bool { return x == y }, "ne": func(x, y float32) bool { return x < y || x > y },
		"lt": func(x, y float32) bool { return x < y }, "le": func(x, y float32) bool { return x <= y },
		"gt": func(x, y float32) bool { return x > y }, "ge": func(x, y float32) bool { return x >= y },
		"num": func(x, y float32) bool { return x == x && y == y },
	} {
		unordered := func(a []uint64) bool { return asFloat(a[0]) != asFloat(a[0]) || asFloat(a[1]) != asFloat(a[1]) }
		add("setp."+name+".f32", "pred", repeat("f32", 2), func(a []uint64) uint64 { return truth(f(asFloat(a[0]), asFloat(a[1]))) })
		other := name + "u"
		if name == "num" {
			other = "nan"
		}
		add("setp."+other+".f32", "pred", repeat("f32", 2), func(a []uint64) uint64 {
			return truth(unordered(a) || name != "num" && f(asFloat(a[0]), asFloat(a[1])))
		})
	}
	// A constant as an operand.
	add("fma.rn.f32", "f32", []string{"f32", "f32", "0f3F800000"}, func(a []uint64) uint64 {
		return fused(asFloat(a[0]), asFloat(a[1]), math.Float32frombits(one), "rn")
	})
	return all
}
