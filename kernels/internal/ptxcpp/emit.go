package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// kernel is a translated entry.
type kernel struct {
	*entry
	cpp string
}

// translate returns the kernels of the module, divided into parts of some thousand
// instructions.
func (m *module) translate() ([][]kernel, error) {
	var parts [][]kernel
	size := 0
	for _, e := range m.entries {
		text, err := e.translate(m)
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", e.name, err)
		}
		if parts == nil || size+len(e.body) > atOnce {
			parts = append(parts, nil)
			size = 0
		}
		size += len(e.body)
		parts[len(parts)-1] = append(parts[len(parts)-1], kernel{e, text})
	}
	return parts, nil
}

// cppFile is a C++ file of some kernels of a PTX file; function returns them.
func cppFile(file, function string, kernels []kernel) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#include \"emulation/ptx_machine.h\"\nnamespace {\nconst char PTX[] = %q;\n", file)
	for _, k := range kernels {
		b.WriteString(k.cpp)
	}
	fmt.Fprintf(&b, "} // namespace\nEMULATION std::vector<emulation::Kernel> %s()\n{\n\treturn {\n", function)
	for _, k := range kernels {
		var sizes, arrays []string
		for _, p := range k.params {
			sizes = append(sizes, fmt.Sprint(p.size))
		}
		for _, v := range k.shared {
			arrays = append(arrays, fmt.Sprintf("{%d, %d}", v.offset, v.offset+v.size))
		}
		fmt.Fprintf(&b, "\t\t{%q, entry_%s, {%s}, %d, PTX, {%s}},\n", k.name, k.name, strings.Join(sizes, ", "), k.ownShared(),
			strings.Join(arrays, ", "))
	}
	b.WriteString("\t};\n}\n")
	return b.String()
}

// paramSize is the size of the parameters as the emulated driver places them.
func (e *entry) paramSize() int {
	if n := len(e.params); n > 0 {
		return e.params[n-1].offset + e.params[n-1].size
	}
	return 0
}

// translate returns the C++ function of a kernel.
func (e *entry) translate(m *module) (string, error) {
	t := &translator{entry: e, labels: make(map[string]bool)}
	for _, in := range e.body {
		if in.label == "" {
			continue
		}
		if t.labels[in.label] {
			return "", fmt.Errorf("line %d: there are two labels %s", in.line, in.label)
		}
		t.labels[in.label] = true
	}
	var b strings.Builder
	fmt.Fprintf(&b, "void entry_%s([[maybe_unused]] void *const *parameters)\n{\n", e.name)
	fmt.Fprintf(&b, "\t[[maybe_unused]] const ptx::Space shared = ptx::shared_space(), param = ptx::param_space(parameters, %d);\n",
		e.paramSize())
	for _, r := range e.ranges {
		s := scalar{'u', r.bits}
		if r.kind == 'p' {
			s.kind = 'p'
		}
		for i := range r.count {
			fmt.Fprintf(&b, "\t%s %s%d;\n", s.unsigned(), cppName(r.prefix), i)
		}
	}
	for i := range e.body {
		in := &e.body[i]
		if in.label != "" {
			fmt.Fprintf(&b, "%s:;\n", labelName(in.label))
			continue
		}
		text, err := t.statement(m, in)
		if err != nil {
			return "", err
		}
		b.WriteString(text + "\n")
	}
	b.WriteString("}\n")
	return b.String(), nil
}

// statement translates one instruction.
func (t *translator) statement(m *module, in *instruction) (string, error) {
	t.in, t.err = in, nil
	f, ok := forms[in.op]
	switch {
	case !ok:
		t.fail("the opcode is not known")
	case len(in.args) != f.args:
		t.fail("%d operands instead of %d", len(in.args), f.args)
	case f.target > m.target:
		t.fail("it needs sm_%d", f.target)
	case f.only && !(m.only && f.target == m.target):
		t.fail("it needs sm_%da", f.target)
	case f.version > m.version:
		t.fail("it needs PTX %d.%d", f.version/10, f.version%10)
	}
	if t.err != nil {
		return "", t.err
	}
	text := f.cpp(t, strings.Split(in.op, "."), in.args)
	if in.guard != "" {
		guard := t.source(operand{kind: name, name: in.guard}, scalars["pred"])
		if in.negated {
			guard = "!" + guard
		}
		text = fmt.Sprintf("if (%s) %s", guard, text)
	}
	return text, t.err
}
