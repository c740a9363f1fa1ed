package main

import (
	"fmt"
	"strings"
)

// form is an opcode with all its modifiers: what it takes, and the oldest target and
// version of PTX that have it (PTX ISA, "PTX ISA Notes" and "Target ISA Notes").
type form struct {
	args            int
	target, version int
	only            bool // no newer target has it
	// cpp returns the statement; m are the words between the points of the opcode.
	cpp func(t *translator, m []string, a []operand) string
}

// forms are all that is known. Another opcode, or another modifier, is an error: a
// guess would be tested instead of the file.
var forms = make(map[string]form)

// add adds the opcodes of a pattern: {a,b} stands for either of them.
func add(pattern string, f form) {
	open := strings.IndexByte(pattern, '{')
	if open < 0 {
		forms[pattern] = f
		return
	}
	end := open + strings.IndexByte(pattern[open:], '}')
	for _, choice := range strings.Split(pattern[open+1:end], ",") {
		add(pattern[:open]+choice+pattern[end+1:], f)
	}
}

const (
	integers   = "{u16,s16,u32,s32,u64,s64}"
	ofMemory   = "{u8,s8,b8,u16,s16,b16,u32,s32,b32,f32,u64,s64,b64}"
	ofMemory32 = "{u8,s8,b8,u16,s16,b16,u32,s32,b32,f32}"
)

func init() {
	addArithmetic()
	addFloats()

	add("mov.{b16,u16,s16,b32,u32,s32,f32,b64,u64,s64,pred}", form{args: 2, cpp: mov})
	add("selp.{b16,u16,s16,b32,u32,s32,f32,b64,u64,s64}", form{args: 4, cpp: selp})
	add("cvta.global.u64", form{args: 2, cpp: cvta})
	add("cvta.to.global.u64", form{args: 2, cpp: cvta})

	for _, space := range []string{"", ".global", ".global.nc", ".shared", ".param"} {
		add("ld"+space+"."+ofMemory, form{args: 2, cpp: ld})
		add("ld"+space+".v2."+ofMemory, form{args: 2, cpp: ld})
		add("ld"+space+".v4."+ofMemory32, form{args: 2, cpp: ld})
	}
	for _, space := range []string{"", ".global", ".shared"} {
		add("st"+space+"."+ofMemory, form{args: 2, cpp: st})
		add("st"+space+".v2."+ofMemory, form{args: 2, cpp: st})
		add("st"+space+".v4."+ofMemory32, form{args: 2, cpp: st})
	}
	add("ld.volatile.global.{u32,b32}", form{args: 2, cpp: ld})
	add("ld.acquire.gpu.global.{u32,b32}", form{args: 2, target: 70, version: 60, cpp: ld})
	add("atom{,.global,.shared}.{add.u32,add.s32,exch.b32,and.b32,or.b32,xor.b32}", form{args: 3, cpp: atom})
	add("atom.acq_rel.gpu.global.add.u32", form{args: 3, target: 70, version: 60, cpp: atom})
	add("atom{,.global}.{add.u64,exch.b64}", form{args: 3, cpp: atom})
	add("atom{,.global,.shared}.{min,max}.{u32,s32}", form{args: 3, cpp: atom})
	add("atom{,.global,.shared}.cas.b32", form{args: 4, cpp: atom})
	add("red{,.global,.shared}.{add.u32,add.s32,and.b32,or.b32,xor.b32}", form{args: 2, cpp: atom})
	add("red{,.global}.add.u64", form{args: 2, cpp: atom})
	add("red{,.global,.shared}.{min,max}.{u32,s32}", form{args: 2, cpp: atom})

	add("cp.async.ca.shared.global", form{args: 4, target: 80, version: 70, cpp: cpAsync})
	add("cp.async.cg.shared.global", form{args: 4, target: 80, version: 70, cpp: cpAsync})
	add("cp.async.commit_group", form{target: 80, version: 70, cpp: func(*translator, []string, []operand) string {
		return "emulation::close_group();"
	}})
	add("cp.async.wait_group", form{args: 1, target: 80, version: 70, cpp: func(t *translator, _ []string, a []operand) string {
		return fmt.Sprintf("emulation::wait_for_groups(%s);", t.constant(a[0], 0, 1<<20))
	}})

	add("bra{,.uni}", form{args: 1, cpp: bra})
	add("ret", form{cpp: func(*translator, []string, []operand) string { return "return;" }})
	add("bar.sync", form{args: 1, cpp: func(t *translator, _ []string, a []operand) string {
		t.constant(a[0], 0, 0) // others are not the block's
		return fmt.Sprintf("emulation::wait_for_block(%s);", t.at())
	}})
	add("membar.cta", form{cpp: func(*translator, []string, []operand) string { return ";" }}) // orders nothing for other blocks
	add("membar.{gl,sys}", form{cpp: func(*translator, []string, []operand) string { return "emulation::fence();" }})
	add("griddepcontrol.wait", form{target: 90, version: 78, cpp: func(t *translator, _ []string, _ []operand) string {
		return fmt.Sprintf("emulation::wait_for_previous(%s);", t.at())
	}})
	// The next kernel begins as early as it can, whether it is let or not.
	add("griddepcontrol.launch_dependents", form{target: 90, version: 78, cpp: func(*translator, []string, []operand) string { return ";" }})
	add("bar.warp.sync", form{args: 1, version: 60, cpp: func(t *translator, _ []string, a []operand) string {
		return fmt.Sprintf("ptx::warp_sync(%s, %s);", t.source(a[0], u32), t.at())
	}})
	add("vote.sync.{ballot.b32,any.pred,all.pred}", form{args: 3, version: 60, cpp: vote})
	add("shfl.sync.{up,down,bfly,idx}.b32", form{args: 5, version: 60, cpp: shfl})
	add("redux.sync.{add,min,max}.{u32,s32}", form{args: 3, target: 80, version: 70, cpp: redux})
	add("redux.sync.{and,or,xor}.b32", form{args: 3, target: 80, version: 70, cpp: redux})
	add("ldmatrix.sync.aligned.m8n8.x4.shared.b16", form{args: 2, target: 75, version: 65, cpp: ldmatrix})
	addWarpgroups()
	for opcode, f := range map[string]form{
		"m8n8k128.row.col.s32.b1.b1.s32.xor.popc":  {target: 75, version: 70, cpp: mma("xor_popc", 2, 1, 1)},
		"m16n8k256.row.col.s32.b1.b1.s32.and.popc": {target: 80, version: 71, cpp: mma("and_popc", 4, 4, 2)},
		"m16n8k256.row.col.s32.b1.b1.s32.xor.popc": {target: 80, version: 70, cpp: mma("xor_popc", 4, 4, 2)},
		"m16n8k32.row.col.s32.s8.s8.s32":           {target: 80, version: 70, cpp: mma("s8_s8", 4, 4, 2)},
		"m16n8k32.row.col.s32.s8.u8.s32":           {target: 80, version: 70, cpp: mma("s8_u8", 4, 4, 2)},
		"m8n8k16.row.col.s32.s8.u8.s32":            {target: 75, version: 65, cpp: mma("s8_u8", 2, 1, 1)},
		"m16n8k32.row.col.s32.u8.s8.s32":           {target: 80, version: 70, cpp: mma("u8_s8", 4, 4, 2)},
		"m8n8k16.row.col.s32.u8.s8.s32":            {target: 75, version: 65, cpp: mma("u8_s8", 2, 1, 1)},
	} {
		f.args = 4
		add("mma.sync.aligned."+opcode, f)
	}
}

// last is the type that an opcode ends with.
func last(m []string) scalar { return scalars[m[len(m)-1]] }

// constant is an integer operand between two bounds.
func (t *translator) constant(o operand, low, high uint64) string {
	if o.kind != integer || o.value < low || o.value > high {
		t.fail("an operand is no constant from %d to %d", low, high)
	}
	return fmt.Sprint(o.value)
}

func mov(t *translator, m []string, a []operand) string {
	s := last(m)
	if a[1].kind == name && s.bits == 64 {
		if space, v, ok := t.symbol(a[1].name); ok {
			return fmt.Sprintf("%s = %s + %d;", t.dest(a[0], s), base(space), v.offset)
		}
	}
	return fmt.Sprintf("%s = %s;", t.dest(a[0], s), t.source(a[1], s))
}

func selp(t *translator, m []string, a []operand) string {
	s := last(m)
	return fmt.Sprintf("%s = %s ? %s : %s;", t.dest(a[0], s), t.source(a[3], scalars["pred"]), t.source(a[1], s), t.source(a[2], s))
}

// cvta changes nothing: global addresses are generic ones.
func cvta(t *translator, _ []string, a []operand) string {
	return fmt.Sprintf("%s = %s;", t.dest(a[0], scalars["u64"]), t.source(a[1], scalars["u64"]))
}

// access is what ld, st, atom and red have in their opcodes: a space, nothing for a
// generic address, and the operands of a vector.
func (t *translator) access(m []string, o operand) (space string, elements []operand) {
	elements = []operand{o}
	for _, word := range m[1:] {
		switch word {
		case "global", "shared", "param":
			space = word
		case "v2", "v4":
			elements = o.parts
			if o.kind != vector || len(elements) != int(word[1]-'0') {
				t.fail("an operand has not the elements of .%s", word)
			}
		}
	}
	return space, elements
}

func ld(t *translator, m []string, a []operand) string {
	s := last(m)
	space, elements := t.access(m, a[0])
	var b strings.Builder
	// A result may go to the register of the address, so that is read first.
	how, poll := "read", ""
	if m[1] == "volatile" || m[1] == "acquire" { // others' stores are waited for with it
		how, poll = "acquire", fmt.Sprintf("emulation::poll(%s); ", t.at())
	}
	fmt.Fprintf(&b, "{ %sconst char *const p = %s;", poll, t.memory(a[1], space, s.bits/8*len(elements), how))
	for i, e := range elements {
		r := t.registers[e.name]
		if e.kind != name || !s.holdsWider(r) {
			t.fail("the result is no register of its type")
		}
		read := fmt.Sprintf("ptx::load<%s>(p + %d)", s.cpp(), i*s.bits/8)
		fmt.Fprintf(&b, " %s = (uint%d_t)%s;", cppName(e.name), r.bits, read)
	}
	return b.String() + " }"
}

func st(t *translator, m []string, a []operand) string {
	s := last(m)
	space, elements := t.access(m, a[1])
	var b strings.Builder
	fmt.Fprintf(&b, "{ char *const p = %s;", t.memory(a[0], space, s.bits/8*len(elements), "write"))
	for i, e := range elements {
		var v string
		if r, ok := t.registers[e.name]; ok && e.kind == name && s.holdsWider(r) {
			v = cppName(e.name)
		} else {
			v = t.source(e, s)
		}
		fmt.Fprintf(&b, " ptx::store<%s>(p + %d, (%s)%s);", s.unsigned(), i*s.bits/8, s.unsigned(), v)
	}
	return b.String() + " }"
}

// atom translates atomic operations: threads do not interrupt each other.
func atom(t *translator, m []string, a []operand) string {
	s, operation := last(m), m[len(m)-2]
	space, _ := t.access(m, operand{})
	result := ""
	if m[0] == "atom" {
		result = fmt.Sprintf("%s = (%s)", t.dest(a[0], s), s.unsigned())
		a = a[1:]
	}
	f := map[string]string{
		"add": fmt.Sprintf("(V)((%[1]s)o + (%[1]s)v)", s.unsigned()), "exch": "v", "and": "(V)(o & v)", "or": "(V)(o | v)", "xor": "(V)(o ^ v)",
		"min": "o < v ? o : v", "max": "o > v ? o : v", "cas": "o == v ? w : o",
	}[operation]
	w := "0"
	if operation == "cas" {
		w = t.source(a[2], s)
	}
	fence := ""
	if m[1] == "acq_rel" {
		fence = "emulation::fence(); "
	}
	return fmt.Sprintf("{ %susing V = %s; const V v = (V)%s, w = (V)%s; (void)w; %sptx::atomic<V>(%s, [=](V o) { return %s; }); }",
		fence, s.cpp(), t.source(a[1], s), w, result, t.memory(a[0], space, s.bits/8, "atomic"), f)
}

func cpAsync(t *translator, m []string, a []operand) string {
	n := t.constant(a[2], 4, 16)
	if n != "16" && (m[2] != "ca" || n != "4" && n != "8") {
		t.fail("%s bytes cannot be copied", n)
	}
	to, from := a[0], a[1]
	if to.kind != address || from.kind != address {
		t.fail("an operand is no address")
		return ""
	}
	if r := t.registers[from.name]; r.bits != 64 {
		t.fail("%s is no register for an address", from.name)
	}
	return fmt.Sprintf("ptx::cp_async<%s>(shared, %s, %s, %s, %s);", n, t.pointer(to, "shared"), t.pointer(from, "global"),
		t.source(a[3], u32), t.at())
}

func labelName(name string) string {
	return "L_" + strings.NewReplacer("$", "_", "%", "__").Replace(name)
}

func bra(t *translator, _ []string, a []operand) string {
	if a[0].kind != name || !t.labels[a[0].name] {
		t.fail("there is no label %q", a[0].name)
	}
	return "goto " + labelName(a[0].name) + ";"
}

func vote(t *translator, m []string, a []operand) string {
	mask := t.source(a[2], u32)
	ballot := fmt.Sprintf("ptx::ballot(%%s%s, %s, %s)", t.source(a[1], scalars["pred"]), mask, t.at())
	switch m[2] {
	case "any":
		return fmt.Sprintf("%s = %s != 0;", t.dest(a[0], scalars["pred"]), fmt.Sprintf(ballot, ""))
	case "all":
		return fmt.Sprintf("%s = %s == 0;", t.dest(a[0], scalars["pred"]), fmt.Sprintf(ballot, "!"))
	}
	return fmt.Sprintf("%s = %s;", t.dest(a[0], b32), fmt.Sprintf(ballot, ""))
}

func shfl(t *translator, m []string, a []operand) string {
	return fmt.Sprintf("%s = ptx::shfl<ptx::%s>(%s, %s, %s, %s, %s);", t.dest(a[0], b32), m[2], t.source(a[1], b32),
		t.source(a[2], u32), t.source(a[3], u32), t.source(a[4], u32), t.at())
}

func redux(t *translator, m []string, a []operand) string {
	s := last(m)
	f := map[string]string{
		"add": "(uint32_t)a + (uint32_t)b", "min": "a < b ? a : b", "max": "a > b ? a : b",
		"and": "a & b", "or": "a | b", "xor": "a ^ b",
	}[m[2]]
	return fmt.Sprintf("%s = ptx::redux<%s>(%s, %s, [](%s a, %s b) { return %s; }, %s);", t.dest(a[0], s), s.cpp(),
		t.source(a[1], s), t.source(a[2], u32), s.cpp(), s.cpp(), f, t.at())
}

// vector returns the registers of a vector operand, which has n of 32 bits.
func (t *translator) vector(o operand, n int) []string {
	if o.kind != vector || len(o.parts) != n {
		t.fail("an operand has not %d registers", n)
		return make([]string, n)
	}
	var all []string
	for _, e := range o.parts {
		all = append(all, t.dest(e, b32))
	}
	return all
}

func ldmatrix(t *translator, _ []string, a []operand) string {
	if a[1].kind != address {
		t.fail("an operand is no address")
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "{ uint32_t d[4]; ptx::ldmatrix(d, shared, %s, %s);", t.pointer(a[1], "shared"), t.at())
	for i, r := range t.vector(a[0], 4) {
		fmt.Fprintf(&b, " %s = d[%d];", r, i)
	}
	return b.String() + " }"
}

// mma translates a tensor-core instruction, d = x·y + c, of which a lane holds so many words; the
// product is one of ptx_machine.h.
func mma(product string, words, wordsX, wordsY int) func(*translator, []string, []operand) string {
	return func(t *translator, _ []string, a []operand) string {
		x, y := t.vector(a[1], wordsX), t.vector(a[2], wordsY)
		var b strings.Builder
		fmt.Fprintf(&b, "{ int32_t d[] = {(int32_t)%s}; ptx::mma<%d, %d>(d, {{%s}, {%s}}, ptx::%s, %s);",
			strings.Join(t.vector(a[3], words), ", (int32_t)"), words, wordsY, strings.Join(x, ", "), strings.Join(y, ", "), product, t.at())
		for i, r := range t.vector(a[0], words) {
			fmt.Fprintf(&b, " %s = (uint32_t)d[%d];", r, i)
		}
		return b.String() + " }"
	}
}
