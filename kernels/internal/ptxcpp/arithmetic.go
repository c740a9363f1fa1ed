package main

import (
	"fmt"
	"strings"
)

func addArithmetic() {
	add("{add,sub,mul.lo}."+integers, form{args: 3, cpp: unsignedBinary})
	add("{and,or,xor}.{b16,b32,b64,pred}", form{args: 3, cpp: unsignedBinary})
	add("{mul.hi,mul.wide}.{u16,s16,u32,s32}", form{args: 3, cpp: product})
	add("mad.lo.{u16,s16,u32,s32}", form{args: 4, cpp: mad})
	add("mad.wide.{u16,s16,u32,s32}", form{args: 4, cpp: mad})
	add("{div,rem,min,max}."+integers, form{args: 3, cpp: signedBinary})
	add("{add,sub}.sat.s32", form{args: 3, cpp: signedBinary})
	add("not.{b16,b32,b64,pred}", form{args: 2, cpp: unary})
	add("{neg,abs}.{s16,s32,s64}", form{args: 2, cpp: unary})
	add("{popc,clz,brev}.b32", form{args: 2, cpp: unary})
	add("shl.{b16,b32,b64}", form{args: 3, cpp: shift})
	add("shr.{b16,b32,b64,u16,s16,u32,s32,u64,s64}", form{args: 3, cpp: shift})
	add("shf.{l,r}.{wrap,clamp}.b32", form{args: 4, cpp: funnel})
	add("bfe.{u32,s32,u64,s64}", form{args: 4, cpp: bfe})
	add("bfi.{b32,b64}", form{args: 5, cpp: bfi})
	add("prmt.b32", form{args: 4, cpp: ternary("ptx::prmt")})
	add("dp4a.s32.s32", form{args: 4, target: 61, version: 50, cpp: ternary("ptx::dp4a_ss")})
	add("dp4a.u32.u32", form{args: 4, target: 61, version: 50, cpp: ternary("ptx::dp4a_uu")})
	add("dp4a.u32.s32", form{args: 4, target: 61, version: 50, cpp: ternary("ptx::dp4a_us")})
	add("lop3.b32", form{args: 5, target: 50, version: 43, cpp: lop3})
	add("setp.{eq,ne,lt,le,gt,ge}."+integers, form{args: 3, cpp: setp})
	add("setp.{eq,ne}.{b16,b32,b64}", form{args: 3, cpp: setp})
	add("cvt{,.sat}.{u8,s8,u16,s16,u32,s32,u64,s64}.{u8,s8,u16,s16,u32,s32,u64,s64}", form{args: 2, cpp: cvt})
}

// unsignedBinary is for operations that are the same for signed and unsigned operands.
func unsignedBinary(t *translator, m []string, a []operand) string {
	s := last(m)
	operator := map[string]string{"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}[m[0]]
	// 16 bits would be multiplied as int, which may overflow.
	return fmt.Sprintf("%s = (%s)(%s %s (uint64_t)%s);", t.dest(a[0], s), s.unsigned(), t.source(a[1], s), operator, t.source(a[2], s))
}

// wide is the type of twice the size.
func wide(s scalar) scalar { return scalar{s.kind, 2 * s.bits} }

func product(t *translator, m []string, a []operand) string {
	s := last(m)
	w := wide(s)
	p := fmt.Sprintf("(%s)%s * (%s)%s", w.cpp(), t.typed(a[1], s), w.cpp(), t.typed(a[2], s))
	if m[1] == "hi" {
		return fmt.Sprintf("%s = (%s)((%s) >> %d);", t.dest(a[0], s), s.unsigned(), p, s.bits)
	}
	return fmt.Sprintf("%s = (%s)(%s);", t.dest(a[0], w), w.unsigned(), p)
}

func mad(t *translator, m []string, a []operand) string {
	s := last(m)
	if m[1] == "wide" {
		w := wide(s)
		return fmt.Sprintf("%s = (%s)((%s)((%s)%s * (%s)%s) + %s);", t.dest(a[0], w), w.unsigned(), w.unsigned(), w.cpp(),
			t.typed(a[1], s), w.cpp(), t.typed(a[2], s), t.source(a[3], w))
	}
	return fmt.Sprintf("%s = (%s)((uint64_t)%s * %s + %s);", t.dest(a[0], s), s.unsigned(), t.source(a[1], s), t.source(a[2], s),
		t.source(a[3], s))
}

func signedBinary(t *translator, m []string, a []operand) string {
	s := last(m)
	x, y := t.typed(a[1], s), t.typed(a[2], s)
	var v string
	switch m[0] {
	case "min", "max":
		v = fmt.Sprintf("std::%s<%s>(%s, %s)", m[0], s.cpp(), x, y)
	case "div", "rem":
		function := map[string]string{"div": "divide", "rem": "remainder"}[m[0]]
		v = fmt.Sprintf("ptx::%s<%s>(%s, %s, %s)", function, s.cpp(), x, y, t.at())
	default:
		v = fmt.Sprintf("ptx::%s_sat(%s, %s)", m[0], x, y)
	}
	return fmt.Sprintf("%s = (%s)%s;", t.dest(a[0], s), s.unsigned(), v)
}

func unary(t *translator, m []string, a []operand) string {
	s := last(m)
	x := t.source(a[1], s)
	v := map[string]string{
		"not": "~" + x, "neg": "(0 - (uint64_t)" + x + ")", "popc": "__builtin_popcount(" + x + ")",
		"clz": "ptx::clz(" + x + ")", "brev": "ptx::brev(" + x + ")",
		"abs": fmt.Sprintf("((%s)%s < 0 ? 0 - (uint64_t)%s : %s)", s.cpp(), x, x, x),
	}[m[0]]
	if s.kind == 'p' {
		v = "!" + x
	}
	return fmt.Sprintf("%s = (%s)%s;", t.dest(a[0], s), s.unsigned(), v)
}

func shift(t *translator, m []string, a []operand) string {
	s := last(m)
	return fmt.Sprintf("%s = (%s)ptx::%s<%s>(%s, %s);", t.dest(a[0], s), s.unsigned(), m[0], s.cpp(), t.typed(a[1], s), t.source(a[2], u32))
}

func funnel(t *translator, m []string, a []operand) string {
	n := t.source(a[3], u32)
	if m[2] == "wrap" {
		n += " & 31"
	} else {
		n = "std::min<uint32_t>(" + n + ", 32)"
	}
	return fmt.Sprintf("%s = ptx::shf_%s(%s, %s, %s);", t.dest(a[0], b32), m[1], t.source(a[1], b32), t.source(a[2], b32), n)
}

func bfe(t *translator, m []string, a []operand) string {
	s := last(m)
	return fmt.Sprintf("%s = (%s)ptx::bfe<%s>(%s, %s, %s);", t.dest(a[0], s), s.unsigned(), s.cpp(), t.typed(a[1], s),
		t.source(a[2], u32), t.source(a[3], u32))
}

func bfi(t *translator, m []string, a []operand) string {
	s := last(m)
	return fmt.Sprintf("%s = ptx::bfi<%s>(%s, %s, %s, %s);", t.dest(a[0], s), s.cpp(), t.source(a[1], s), t.source(a[2], s),
		t.source(a[3], u32), t.source(a[4], u32))
}

func ternary(function string) func(*translator, []string, []operand) string {
	return func(t *translator, _ []string, a []operand) string {
		return fmt.Sprintf("%s = %s(%s, %s, %s);", t.dest(a[0], b32), function, t.source(a[1], b32), t.source(a[2], b32), t.source(a[3], b32))
	}
}

func lop3(t *translator, _ []string, a []operand) string {
	return fmt.Sprintf("%s = ptx::lop3<%s>(%s, %s, %s);", t.dest(a[0], b32), t.constant(a[4], 0, 255), t.source(a[1], b32),
		t.source(a[2], b32), t.source(a[3], b32))
}

var comparisons = map[string]string{"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}

func setp(t *translator, m []string, a []operand) string {
	s := last(m)
	return fmt.Sprintf("%s = %s %s %s;", t.dest(a[0], scalars["pred"]), t.typed(a[1], s), comparisons[m[1]], t.typed(a[2], s))
}

// cvt converts integers: the source may be the low bits of a wider register, and a
// wider one is filled with zeros or the sign.
func cvt(t *translator, m []string, a []operand) string {
	d, s := scalars[m[len(m)-2]], last(m)
	if a[0].kind != name || a[1].kind != name {
		t.fail("an operand is no register")
	}
	to, from := t.registers[a[0].name], t.registers[a[1].name]
	if !d.holdsWider(to) || !s.holdsWider(from) {
		t.fail("an operand is no register of its type")
	}
	v := fmt.Sprintf("(%s)%s", s.cpp(), cppName(a[1].name))
	if m[1] == "sat" {
		v = fmt.Sprintf("ptx::saturate<%s>(%s)", d.cpp(), v)
	}
	return fmt.Sprintf("%s = (uint%d_t)(%s)%s;", cppName(a[0].name), to.bits, d.cpp(), v)
}

func addFloats() {
	// Without a direction of rounding a product and a sum may be contracted, and with
	// .ftz denormals are zeros: neither computes what the numeric contract says.
	add("{add,sub,mul}.{rn,rz,rm,rp}{,.sat}.f32", form{args: 3, cpp: floats})
	add("fma.{rn,rz,rm,rp}{,.sat}.f32", form{args: 4, cpp: floats})
	add("{neg,abs}.f32", form{args: 2, cpp: floats})
	add("{min,max}.f32", form{args: 3, cpp: floats})
	add("setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}.f32", form{args: 3, cpp: setpF32})
	add("cvt.{rn,rz,rm,rp}.f32.{u8,s8,u16,s16,u32,s32,u64,s64}", form{args: 2, cpp: cvtF32})
	// To 64 bits GPUs differ in what becomes of a NaN.
	add("cvt.{rni,rzi,rmi,rpi}{,.sat}.{u8,s8,u16,s16,u32,s32}.f32", form{args: 2, cpp: cvtF32})
	add("cvt.{rni,rzi,rmi,rpi}{,.sat}.f32.f32", form{args: 2, cpp: cvtF32})
}

func floats(t *translator, m []string, a []operand) string {
	var sources []string
	for _, o := range a[1:] {
		sources = append(sources, t.source(o, f32))
	}
	function := m[0] + "_f32"
	if m[1] != "f32" {
		function = m[0] + "<ptx::" + m[1] + ">"
	}
	v := fmt.Sprintf("ptx::%s(%s)", function, strings.Join(sources, ", "))
	if len(m) == 4 {
		v = "ptx::saturate_f32(" + v + ")"
	}
	return fmt.Sprintf("%s = %s;", t.dest(a[0], f32), v)
}

func setpF32(t *translator, m []string, a []operand) string {
	x, y := "ptx::f32("+t.source(a[1], f32)+")", "ptx::f32("+t.source(a[2], f32)+")"
	nan := fmt.Sprintf("__builtin_isunordered(%s, %s)", x, y)
	var v string
	switch c := m[1]; c {
	case "nan":
		v = nan
	case "num":
		v = "!" + nan
	case "ne": // of C++ it is true for NaN
		v = fmt.Sprintf("!%s && %s != %s", nan, x, y)
	default:
		v = fmt.Sprintf("%s %s %s", x, comparisons[c[:2]], y)
		if len(c) == 3 {
			v = nan + " || " + v
		}
	}
	return fmt.Sprintf("%s = %s;", t.dest(a[0], scalars["pred"]), v)
}

// cvtF32 converts to or from floats.
func cvtF32(t *translator, m []string, a []operand) string {
	d, s := scalars[m[len(m)-2]], last(m)
	if a[0].kind != name || a[1].kind != name {
		t.fail("an operand is no register")
	}
	to, from := t.registers[a[0].name], t.registers[a[1].name]
	if !d.holdsWider(to) || !s.holdsWider(from) {
		t.fail("an operand is no register of its type")
	}
	direction, x := m[1][:2], cppName(a[1].name)
	var v string
	switch {
	case s.kind != 'f':
		v = fmt.Sprintf("ptx::to_f32<ptx::%s>((%s)%s)", direction, s.cpp(), x)
	case d.kind != 'f': // what does not fit is clamped with and without .sat
		v = fmt.Sprintf("ptx::to_integer<%s, ptx::%s>(%s)", d.cpp(), direction, x)
	default:
		v = fmt.Sprintf("ptx::round_f32<ptx::%s>(%s)", direction, x)
		if m[2] == "sat" {
			v = "ptx::saturate_f32(" + v + ")"
		}
	}
	return fmt.Sprintf("%s = (uint%d_t)%s;", cppName(a[0].name), to.bits, v)
}
