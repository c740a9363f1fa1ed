package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// module is a file of PTX.
type module struct {
	version int  // 78 for 7.8
	target  int  // 90 for sm_90
	only    bool // sm_90a, not newer ones
	dynamic map[string]bool
	entries []*entry
}

// variable is a parameter, or an array in shared memory.
type variable struct {
	name        string
	size, align int // bytes
	offset      int // in its space
}

// entry is a kernel.
type entry struct {
	name      string
	line      int
	params    []variable
	shared    []variable
	registers map[string]register
	ranges    []registers // in the order of the file
	body      []instruction
	dynamic   map[string]bool
}

// register is a typed register.
type register struct {
	kind byte // p predicate, b bits, f float
	bits int
}

// registers are those of a declaration: prefix0 to prefix(count-1).
type registers struct {
	register
	prefix string
	count  int
}

// instruction is a statement of a body, or a label.
type instruction struct {
	line    int
	label   string
	guard   string // the predicate that it depends on
	negated bool
	op      string
	args    []operand
}

type operandKind int

const (
	name operandKind = iota // a register, a symbol, a label
	integer
	float
	address // [base+offset]
	vector
)

type operand struct {
	kind   operandKind
	name   string // or the base of an address
	value  uint64 // an integer in two's complement, a float's bits, the offset of an address
	signed bool   // the integer was written with a minus
	parts  []operand
}

var (
	plainName   = regexp.MustCompile(`^[A-Za-z_$%][A-Za-z0-9_$]*$`)
	prefixName  = regexp.MustCompile(`^%[a-z]+$`)
	numeral     = regexp.MustCompile(`^(0|[1-9][0-9]*|0x[0-9A-Fa-f]+)$`)
	specialName = regexp.MustCompile(`^%n?(tid|ctaid)\.[xyz]$`)
	// What C++ reserves is no name: "__" comes first in names of the compiler's own.
	entryName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
)

// parser reads tokens; the first error stops it.
type parser struct {
	tokens []token
	at     int
	err    error
}

func (p *parser) line() int {
	if p.at < len(p.tokens) {
		return p.tokens[p.at].line
	}
	if n := len(p.tokens); n > 0 {
		return p.tokens[n-1].line
	}
	return 1
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("line %d: %s", p.line(), fmt.Sprintf(format, args...))
	}
}

// peek returns the next token, nothing at the end or after an error.
func (p *parser) peek() string {
	if p.err != nil || p.at == len(p.tokens) {
		return ""
	}
	return p.tokens[p.at].text
}

func (p *parser) next() string {
	t := p.peek()
	if t == "" {
		p.fail("the text ends")
		return ""
	}
	p.at++
	return t
}

func (p *parser) accept(text string) bool {
	if p.peek() != text {
		return false
	}
	p.at++
	return true
}

func (p *parser) expect(text string) {
	if got := p.peek(); got != text {
		p.fail("%q instead of %q", got, text)
		return
	}
	p.at++
}

// number reads a positive decimal number up to a limit.
func (p *parser) number(limit int) int {
	t := p.next()
	n, err := strconv.Atoi(t)
	if p.err == nil && (err != nil || n < 0 || n > limit) {
		p.at--
		p.fail("%q is no number up to %d", t, limit)
		return 0
	}
	return n
}

func (p *parser) name(what string, form *regexp.Regexp) string {
	t := p.next()
	if p.err == nil && !form.MatchString(t) {
		p.at--
		p.fail("%q is no name of %s", t, what)
	}
	return t
}

// typeSize returns the bytes of a type of memory, ".b8" for instance.
func (p *parser) typeSize() int {
	t := p.next()
	s, ok := scalars[strings.TrimPrefix(t, ".")]
	if p.err == nil && (!ok || s.kind == 'p' || !strings.HasPrefix(t, ".")) {
		p.at--
		p.fail("%q is no type of memory", t)
	}
	return s.bits / 8
}

// variable reads [.align N] .type name[[count]].
func (p *parser) variable(form *regexp.Regexp) variable {
	align := 0
	if p.accept(".align") {
		align = p.number(16)
	}
	size := p.typeSize()
	if align == 0 {
		align = size
	}
	if p.err == nil && align&(align-1) != 0 {
		p.fail("%d is no alignment", align)
	}
	if p.err != nil {
		return variable{align: 1}
	}
	v := variable{name: p.name("a variable", form), size: size, align: align}
	if p.accept("[") {
		v.size *= p.number(1 << 20)
		p.expect("]")
	}
	return v
}

// parse reads a file. Directives that it does not know are errors.
func parse(text string) (*module, error) {
	tokens, err := lex(text)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	m := &module{dynamic: make(map[string]bool)}
	p.expect(".version")
	if major, minor, ok := strings.Cut(p.next(), "."); ok {
		a, err := strconv.Atoi(major)
		b, err2 := strconv.Atoi(minor)
		if err == nil && err2 == nil && a >= 1 && a < 100 && b >= 0 && b <= 9 {
			m.version = 10*a + b
		}
	}
	p.expect(".target")
	if target, ok := strings.CutPrefix(p.next(), "sm_"); ok {
		// What ends in "a" has instructions that newer architectures have not.
		target, m.only = strings.CutSuffix(target, "a")
		if n, err := strconv.Atoi(target); err == nil && n > 0 && n < 1000 {
			m.target = n
		}
	}
	p.expect(".address_size")
	p.expect("64")
	if p.err == nil && (m.version == 0 || m.target == 0) {
		p.fail("the version or the target is not known")
	}
	seen := make(map[string]bool)
	for p.err == nil && p.peek() != "" {
		switch t := p.next(); t {
		case ".extern":
			p.expect(".shared")
			p.expect(".align")
			p.number(16)
			p.typeSize()
			m.dynamic[p.name("an array", plainName)] = true
			p.expect("[")
			p.expect("]")
			p.expect(";")
		case ".visible":
			p.expect(".entry")
			e := p.entry(m)
			if p.err == nil && seen[e.name] {
				p.fail("there are two entries %s", e.name)
			}
			seen[e.name] = true
			m.entries = append(m.entries, e)
		default:
			p.at--
			p.fail("directive %q is not known", t)
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	return m, nil
}

// entry reads a kernel from its name on.
func (p *parser) entry(m *module) *entry {
	e := &entry{registers: make(map[string]register), dynamic: m.dynamic}
	e.line = p.line()
	e.name = p.name("an entry", entryName)
	p.expect("(")
	offset := 0
	for first := true; p.err == nil && !p.accept(")"); first = false {
		if !first {
			p.expect(",")
		}
		p.expect(".param")
		v := p.variable(plainName)
		// As the emulated driver places them.
		v.offset = offset
		offset = roundUp(offset+v.size, 16)
		e.params = append(e.params, v)
	}
	for p.err == nil && !p.accept("{") {
		switch t := p.next(); t {
		case ".maxntid":
			for i := range 3 {
				if i > 0 {
					p.expect(",")
				}
				p.number(1024)
			}
		case ".minnctapersm":
			p.number(64)
		default:
			p.at--
			p.fail("directive %q is not known", t)
		}
	}
	for p.err == nil && !p.accept("}") {
		p.statement(e)
	}
	return e
}

// gap is how many bytes at least of no array lie behind each in shared memory, where an index that
// is too large shows.
const gap = 64

func roundUp(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }

func (p *parser) statement(e *entry) {
	line := p.line()
	switch t := p.next(); t {
	case ".reg":
		p.registers(e)
		return
	case ".shared":
		v := p.variable(plainName)
		p.expect(";")
		if n := len(e.shared); n > 0 {
			v.offset = e.shared[n-1].offset + e.shared[n-1].size + gap
		}
		v.offset = roundUp(v.offset, v.align)
		e.shared = append(e.shared, v)
		return
	case ".pragma":
		if s := p.next(); p.err == nil && s != `"nounroll"` {
			p.at--
			p.fail("pragma %s is not known", s)
		}
		p.expect(";")
		return
	case "@":
		in := instruction{line: line, negated: p.accept("!")}
		in.guard = p.name("a predicate", plainName)
		in.op = p.next()
		p.operands(e, &in)
	default:
		if p.err == nil && plainName.MatchString(t) && p.accept(":") {
			e.body = append(e.body, instruction{line: line, label: t})
			return
		}
		in := instruction{line: line, op: t}
		p.operands(e, &in)
	}
}

// registers reads .type %name<count>; behind .reg.
func (p *parser) registers(e *entry) {
	t := p.next()
	var r registers
	switch t {
	case ".pred":
		r.register = register{'p', 1}
	case ".b16", ".b32", ".b64":
		bits, _ := strconv.Atoi(t[2:])
		r.register = register{'b', bits}
	case ".f32":
		r.register = register{'f', 32}
	default:
		p.at--
		p.fail("registers of type %q are not known", t)
	}
	r.prefix = p.name("registers", prefixName)
	p.expect("<")
	r.count = p.number(1 << 16)
	p.expect(">")
	p.expect(";")
	if p.err != nil {
		return
	}
	for i := range r.count {
		n := r.prefix + strconv.Itoa(i)
		if _, ok := e.registers[n]; ok {
			p.fail("there are two registers %s", n)
			return
		}
		e.registers[n] = r.register
	}
	e.ranges = append(e.ranges, r)
}

// operands reads those of an instruction and its end.
func (p *parser) operands(e *entry, in *instruction) {
	for first := true; p.err == nil && !p.accept(";"); first = false {
		if !first {
			p.expect(",")
		}
		in.args = append(in.args, p.operand())
	}
	e.body = append(e.body, *in)
}

func (p *parser) operand() operand {
	switch {
	case p.accept("["):
		base := p.next()
		o := operand{kind: address, name: base}
		if p.err == nil && !plainName.MatchString(base) {
			p.fail("%q is no base of an address", base)
		}
		if p.accept("+") {
			offset := p.constant()
			if p.err == nil && offset.kind != integer {
				p.fail("an offset is no integer")
			}
			o.value = offset.value
		}
		p.expect("]")
		return o
	case p.accept("{"):
		o := operand{kind: vector}
		for first := true; p.err == nil && !p.accept("}"); first = false {
			if !first {
				p.expect(",")
			}
			o.parts = append(o.parts, p.operand())
		}
		return o
	}
	t := p.peek()
	if plainName.MatchString(t) || specialName.MatchString(t) {
		p.at++
		return operand{kind: name, name: t}
	}
	return p.constant()
}

// constant reads an integer, or a float as 0f and eight digits.
func (p *parser) constant() operand {
	negative := p.accept("-")
	t := p.next()
	if digits, ok := strings.CutPrefix(t, "0f"); ok && len(digits) == 8 && !negative {
		if v, err := strconv.ParseUint(digits, 16, 32); err == nil {
			return operand{kind: float, value: v}
		}
	}
	v, err := strconv.ParseUint(t, 0, 64)
	if p.err == nil && (err != nil || !numeral.MatchString(t)) {
		p.at--
		p.fail("operand %q is not known", t)
	}
	if negative {
		if p.err == nil && v > 1<<63 {
			p.fail("-%s is too small", t)
		}
		v = -v
	}
	return operand{kind: integer, value: v, signed: negative}
}
