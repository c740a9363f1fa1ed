package main

import (
	"fmt"
	"strings"
)

// scalar is a type of an instruction: u and s integers, b bits, f float, p predicate.
type scalar struct {
	kind byte
	bits int
}

var scalars = map[string]scalar{
	"u8": {'u', 8}, "u16": {'u', 16}, "u32": {'u', 32}, "u64": {'u', 64},
	"s8": {'s', 8}, "s16": {'s', 16}, "s32": {'s', 32}, "s64": {'s', 64},
	"b8": {'b', 8}, "b16": {'b', 16}, "b32": {'b', 32}, "b64": {'b', 64},
	"f32": {'f', 32}, "pred": {'p', 1},
}

// cpp is the C++ type that computes it; registers are unsigned.
func (s scalar) cpp() string {
	switch s.kind {
	case 'p':
		return "bool"
	case 's':
		return fmt.Sprintf("int%d_t", s.bits)
	}
	return fmt.Sprintf("uint%d_t", s.bits)
}

func (s scalar) unsigned() string {
	if s.kind == 'p' {
		return "bool"
	}
	return fmt.Sprintf("uint%d_t", s.bits)
}

var (
	u32 = scalar{'u', 32}
	b32 = scalar{'b', 32}
	f32 = scalar{'f', 32}
)

// holds reports whether a register may be an operand of a type: of the same size,
// and a float only where the type is float or bits.
func (s scalar) holds(r register) bool {
	switch {
	case s.kind == 'p' || r.kind == 'p':
		return s.kind == r.kind
	case s.bits != r.bits:
		return false
	}
	return r.kind == 'b' || s.kind != 'u' && s.kind != 's'
}

// holdsWider is holds for loads, stores and conversions, whose register may be wider.
func (s scalar) holdsWider(r register) bool {
	if s.kind == 'f' {
		return s.holds(r)
	}
	return s.kind != 'p' && (s.holds(r) || r.kind == 'b' && r.bits > s.bits)
}

// translator writes the C++ of one entry.
type translator struct {
	*entry
	labels map[string]bool
	in     *instruction
	err    error
}

// fail notes what is wrong with the instruction; the first mistake is reported.
func (t *translator) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf("line %d: %s: %s", t.in.line, t.in.op, fmt.Sprintf(format, args...))
	}
}

// at is where the instruction stands, the last arguments of what can fail. Lines count from that of
// the entry: what is compiled of a kernel stays when others change.
func (t *translator) at() string { return fmt.Sprintf("PTX, %d", t.in.line-t.line) }

func cppName(name string) string { return strings.NewReplacer("%", "", "$", "_").Replace(name) }

// dest is the register that a result goes to.
func (t *translator) dest(o operand, s scalar) string {
	r, ok := t.registers[o.name]
	if o.kind != name || !ok || !s.holds(r) {
		t.fail("the result is no register of its type")
	}
	return cppName(o.name)
}

// source is an operand as an unsigned value of the size of its type.
func (t *translator) source(o operand, s scalar) string {
	switch o.kind {
	case integer:
		return t.integer(o, s)
	case float:
		if s != f32 && s != b32 {
			t.fail("a float is no operand of its type")
		}
		return fmt.Sprintf("0x%xu", o.value)
	case name:
		if specialName.MatchString(o.name) {
			if s.bits != 32 || s.kind != 'u' {
				t.fail("%s is no operand of its type", o.name)
			}
			return special(o.name)
		}
		if r, ok := t.registers[o.name]; ok && s.holds(r) {
			return cppName(o.name)
		}
		t.fail("%s is no register of its type", o.name)
	}
	t.fail("an operand is neither a register nor a constant")
	return ""
}

// integer is a constant as an unsigned value.
func (t *translator) integer(o operand, s scalar) string {
	v := o.value
	switch {
	case s.kind == 'p':
		// Any value that is not zero is true.
		return fmt.Sprint(v != 0)
	case s.kind == 'f':
		t.fail("an integer is no operand of type f32")
	case s.bits < 64 && o.signed && -v > 1<<(s.bits-1), s.bits < 64 && !o.signed && v>>s.bits != 0:
		t.fail("%d does not fit into %d bits", int64(v), s.bits)
	}
	if s.bits == 64 {
		return fmt.Sprintf("(uint64_t)0x%xu", v)
	}
	return fmt.Sprintf("(%s)0x%xu", s.unsigned(), v&(1<<s.bits-1))
}

// typed is source in its type, signed or unsigned.
func (t *translator) typed(o operand, s scalar) string {
	v := t.source(o, s)
	if s.kind == 's' {
		return "(" + s.cpp() + ")" + v
	}
	return v
}

// special is a special register: %tid.x, for instance.
func special(name string) string {
	what, component, _ := strings.Cut(name[1:], ".")
	return map[string]string{
		"tid":    "emulation::current->index.",
		"ntid":   "emulation::block_size.",
		"ctaid":  "emulation::current->block->index.",
		"nctaid": "emulation::grid_size.",
	}[what] + component
}

// find returns the variable of a name.
func find(all []variable, name string) (variable, bool) {
	for _, v := range all {
		if v.name == name {
			return v, true
		}
	}
	return variable{}, false
}

// ownShared is the size of what the kernel has of shared memory itself; the dynamic
// array comes behind it.
func (e *entry) ownShared() int {
	size := 0
	for _, v := range e.shared {
		size = v.offset + v.size + gap
	}
	return roundUp(size, 16)
}

// symbol returns the space of a variable and its place there.
func (t *translator) symbol(name string) (space string, v variable, ok bool) {
	if v, ok := find(t.params, name); ok {
		return "param", v, true
	}
	if v, ok := find(t.shared, name); ok {
		return "shared", v, true
	}
	if t.dynamic[name] {
		return "shared", variable{name: name, offset: t.ownShared(), size: -1}, true
	}
	return "", variable{}, false
}

// base is the first address of a space in C++.
func base(space string) string {
	if space == "shared" {
		return "ptx::shared_base"
	}
	return "ptx::param_base"
}

// memory is the place of n bytes at an address operand: a char * that is checked for what is done
// there, a value of emulation::Access.
func (t *translator) memory(o operand, space string, n int, how string) string {
	if o.kind != address {
		t.fail("an operand is no address")
	}
	var a string
	if of, v, ok := t.symbol(o.name); ok {
		if of != space {
			t.fail("%s is not in the space of the instruction", o.name)
		}
		if v.size >= 0 && (int64(o.value) < 0 || o.value > uint64(v.size) || o.value+uint64(n) > uint64(v.size)) {
			t.fail("%d bytes at %d are outside of %s", n, int64(o.value), o.name)
		}
		a = fmt.Sprintf("%s + %d", base(space), int64(v.offset)+int64(o.value))
	} else {
		a = t.pointer(o, space)
	}
	if space == "" || space == "global" {
		return fmt.Sprintf("ptx::global<%d, ptx::Access::%s>(%s, %s)", n, how, a, t.at())
	}
	return fmt.Sprintf("ptx::within<%d, ptx::Access::%s>(%s, %s, %s)", n, how, space, a, t.at())
}

// pointer is the address that a register and an offset make. An address of shared
// memory may have 32 bits.
func (t *translator) pointer(o operand, space string) string {
	r, ok := t.registers[o.name]
	if !ok || r.kind != 'b' || r.bits != 64 && (space != "shared" || r.bits != 32) {
		t.fail("%s is no register for an address", o.name)
	}
	if r.bits == 32 {
		return fmt.Sprintf("(uint32_t)(%s + 0x%xu)", cppName(o.name), uint32(o.value))
	}
	return fmt.Sprintf("%s + 0x%xu", cppName(o.name), o.value)
}
